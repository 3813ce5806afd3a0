import type { JsonObject } from '../../util/json.js'
import { bounded } from './bounded.js'
import { failureOf } from './failure.js'
import type { ToolOutcome } from '../outcome.js'
import { isOutcome, outcomeOf } from '../result.js'
import type { ToolContext, ToolSpec } from '../spec.js'
import { ChildPaused, Suspension } from '../suspension.js'
import type { SuspendedCall } from '../suspension.js'

/** Characters that the model gets of one result, where the tool does not say otherwise. */
const DEFAULT_MAX_OUTPUT_CHARS = 200_000

/**
 * Calls a tool once with checked arguments. What it throws and what it returns become an outcome within its bounds.
 * A handler that asks a person has no outcome yet. Does not reject. Knows no time limit and no abort: the tool has `context.signal`, and its caller decides how long
 * to wait.
 */
export async function invoke<Deps>(
  spec: ToolSpec<Deps>,
  args: JsonObject,
  context: ToolContext<Deps>,
): Promise<ToolOutcome | SuspendedCall> {
  try {
    const returned: unknown = await spec.call(args, context)
    return withinBounds(spec, isOutcome(returned) ? returned : outcomeOf(returned))
  } catch (thrown) {
    if (thrown instanceof Suspension) return thrown.call
    if (thrown instanceof ChildPaused) return CHILD_PAUSED
    return withinBounds(spec, failureOf(thrown))
  }
}

/** An outcome within the tool's bounds. */
export function withinBounds({ maxOutputChars }: Pick<ToolSpec, 'maxOutputChars'>, outcome: ToolOutcome): ToolOutcome {
  return bounded(outcome, maxOutputChars ?? DEFAULT_MAX_OUTPUT_CHARS)
}

/** What the child asks is with the child. */
const CHILD_PAUSED: SuspendedCall = { kind: 'suspended', payload: null, answerSchema: {} }
