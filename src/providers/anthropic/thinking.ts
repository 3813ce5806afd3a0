import { HarnessError } from '../../contracts/errors.js'
import type { ReasoningEffort } from '../../contracts/model.js'
import { isObject } from '../../util/json.js'
import type { JsonObject } from '../../util/json.js'
import { thinkingControl } from './models.js'

type Thought = Exclude<ReasoningEffort, 'none'>

/** Share of the tokens of a reply that may be thought. */
const BUDGET_SHARES: Readonly<Record<Thought, number>> = {
  minimal: 0.1,
  low: 0.2,
  medium: 0.5,
  high: 0.8,
  xhigh: 0.9,
  max: 0.95,
}
const SMALLEST_BUDGET = 1024

const EFFORTS: Readonly<Record<Thought, string>> = {
  minimal: 'low',
  low: 'low',
  medium: 'medium',
  high: 'high',
  xhigh: 'xhigh',
  max: 'max',
}

/** The fields that ask the model `id` to think as much as `effort` says. `maxTokens` caps the reply, thoughts included. */
export function effortFields(id: string, effort: ReasoningEffort | undefined, maxTokens: number): JsonObject {
  if (effort === undefined) return {}
  const { by, off } = thinkingControl(id)
  if (effort === 'none') return by === 'none' ? {} : { thinking: { type: off ?? 'disabled' } }
  if (by === 'budget') return { thinking: { type: 'enabled', budget_tokens: budgetTokens(effort, maxTokens) } }
  return { thinking: { type: 'adaptive' }, output_config: { effort: EFFORTS[effort] } }
}

/** Whether a request of these fields is answered by a model that thinks. */
export function isThinking(id: string, { thinking }: JsonObject): boolean {
  const type = isObject(thinking) ? thinking['type'] : undefined
  return typeof type === 'string' ? type !== 'disabled' : thinkingControl(id).byDefault
}

function budgetTokens(effort: Thought, maxTokens: number): number {
  if (maxTokens <= SMALLEST_BUDGET) {
    throw new HarnessError(
      'invalid_options',
      `Expected \`maxOutputTokens\` above ${SMALLEST_BUDGET} for \`reasoningEffort: '${effort}'\`, got ${maxTokens}: thoughts count as output.`,
    )
  }
  return Math.min(Math.max(Math.floor(maxTokens * BUDGET_SHARES[effort]), SMALLEST_BUDGET), maxTokens - 1)
}
