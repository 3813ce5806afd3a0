import type { JsonValue } from '../../util/json.js'

/**
 * Performs the effects of a run, each under an id that is the same whenever the run comes to this place: `turn:7`,
 * `tool:call_3`. A durable engine plugs in here: it keeps what `work` returned and gives it back in place of doing the
 * work again.
 */
export interface StepRunner {
  step<T extends JsonValue>(id: string, work: () => Promise<T>): Promise<T>
}

/** Does the work. What is kept of it is in the run's log. */
export const directSteps: StepRunner = { step: (_id, work) => work() }

/** `step` for results that are JSON by contract, though their types do not say so. */
export function performStep<T>(steps: StepRunner, id: string, work: () => Promise<T>): Promise<T> {
  return steps.step(id, work as () => Promise<never>)
}
