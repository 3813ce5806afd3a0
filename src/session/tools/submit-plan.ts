import { defineTool } from '#core/tools/define.js'
import { ToolResult } from '#core/tools/result.js'
import type { Answer } from '#core/state/answers.js'
import type { JsonObject, JsonSchema } from '#util/json.js'
import type { ToolSpec } from '#core/tools/tool-spec.js'
import { isObject } from '#util/json.js'
import { isPayload, outputMetadata } from './result.js'

/** The payload of the pending item of `submit_plan`, for pages. */
export interface SubmittedPlan {
  readonly kind: 'plan'
  readonly title: string
  /** Markdown. */
  readonly plan: string
  /** The mode that carries the plan out; null: the same. */
  readonly then: string | null
}

/** A person's answer to a plan. */
export interface PlanAnswer {
  readonly action: 'approved' | 'rejected'
  /** For the model. A plan that is rejected without any ends the run. */
  readonly feedback?: string
  /** Set by a session: the mode that the plan named when it was submitted, whatever the tool names when it is answered. */
  readonly then?: string
}

const PARAMETERS: JsonSchema = {
  type: 'object',
  properties: {
    title: { type: 'string', minLength: 1 },
    plan: { type: 'string', minLength: 1, description: 'The whole plan, as Markdown.' },
  },
  required: ['plan'],
  additionalProperties: false,
}

const ANSWER: JsonSchema = {
  type: 'object',
  properties: { action: { enum: ['approved', 'rejected'] }, feedback: { type: 'string' }, then: { type: 'string' } },
  required: ['action'],
  additionalProperties: false,
}

/** An answer with the mode that its plan named; any other answer as it is. */
export function withPlannedMode(answer: Answer, payload: unknown): Answer {
  if (!('answer' in answer) || !isObject(answer.answer) || !isPayload<SubmittedPlan>(payload, 'plan')) return answer
  return payload.then === null ? answer : { ...answer, answer: { ...answer.answer, then: payload.then } }
}

/** The run after an answered plan: `mode` to continue in, or null to end. */
export interface PlanOutcome {
  readonly mode: string | null
}

export const SUBMIT_PLAN = 'submit_plan'
const OUTCOME = 'plan_outcome'

/**
 * The tool `submit_plan`: the model shows a plan to the person, and the run waits for a `PlanAnswer`. An approved plan is carried
 * out in the same run; in a session, under the mode `then`. The pending item has a `SubmittedPlan` as its payload.
 */
export function submitPlan({ then }: { readonly then?: string | undefined } = {}): ToolSpec {
  return defineTool({
    name: SUBMIT_PLAN,
    description:
      'Show the user a complete plan and wait for approval before anything of it is done. It has to be the only call.',
    parameters: PARAMETERS,
    annotations: { readOnly: true, openWorld: false },
    sequential: 'alone',
    handler: async (args, { ask }) => {
      const { plan, title = 'Plan' } = args as unknown as { readonly plan: string; readonly title?: string }
      const submitted: SubmittedPlan = { kind: 'plan', title, plan, then: then ?? null }
      const answer = (await ask(submitted, ANSWER)) as unknown as PlanAnswer
      return planResult(submitted, answer)
    },
  })
}

function planResult({ title, ...plan }: SubmittedPlan, { action, feedback = '', ...answer }: PlanAnswer): ToolResult {
  const then = answer.then ?? plan.then
  const metadata: JsonObject = { submitted_plan: { title, action, ...(feedback !== '' && { feedback }) } }
  if (action === 'approved') {
    const note = feedback === '' ? '' : ` The user adds: ${feedback}`
    const next = then === null ? {} : { [OUTCOME]: { mode: then } }
    return new ToolResult({
      content: `The plan is approved. Carry it out now.${note}`,
      metadata: { ...metadata, ...next },
    })
  }
  if (feedback !== '') {
    const content = `The plan is not approved. The user says: ${feedback}\nRevise the plan and submit it again.`
    return new ToolResult({ content, metadata })
  }
  const content = 'The plan is not approved. Stop here and wait for the user.'
  return new ToolResult({ content, metadata: { ...metadata, [OUTCOME]: { mode: null } } })
}

/** The outcome of an answered plan, from the envelope's JSON text; null if the run continues as it is. */
export function planOutcome(output: string): PlanOutcome | null {
  const outcome = outputMetadata(output)[OUTCOME]
  if (!isObject(outcome)) return null
  return { mode: typeof outcome['mode'] === 'string' ? outcome['mode'] : null }
}
