import { HarnessError } from '#contracts/errors.js'
import type { ReasoningEffort } from '#core/model-session.js'
import { isObject } from '#util/json.js'
import type { JsonObject } from '#util/json.js'
import type { ReasoningSummary } from '../http/options.js'
import type { ThinkingControl } from './models.js'

type ActiveEffort = Exclude<ReasoningEffort, 'none'>

/** Share of the tokens of a reply that may be used for thinking. */
const BUDGET_SHARES: Readonly<Record<ActiveEffort, number>> = {
  minimal: 0.1,
  low: 0.2,
  medium: 0.5,
  high: 0.8,
  xhigh: 0.9,
  max: 0.95,
}
const SMALLEST_BUDGET = 1024

/** The fields for a reasoning effort. `maxTokens` limits the reply, thinking included. */
export function effortFields(
  { by, off }: ThinkingControl,
  effort: ReasoningEffort | undefined,
  maxTokens: number,
): JsonObject {
  if (effort === undefined) return {}
  if (effort === 'none') return by === 'none' ? {} : { thinking: { type: off ?? 'disabled' } }
  if (by === 'budget') return { thinking: { type: 'enabled', budget_tokens: budgetTokens(effort, maxTokens) } }
  return { thinking: { type: 'adaptive' }, output_config: { effort: effort === 'minimal' ? 'low' : effort } }
}

/**
 * The same fields, with what readers see of the thoughts. A model that thinks although nobody asked is told too; one that does not think
 * is not made to.
 */
export function withSummary(
  fields: JsonObject,
  { by, byDefault }: ThinkingControl,
  summary: ReasoningSummary | undefined,
): JsonObject {
  const { thinking = byDefault && by === 'adaptive' ? { type: 'adaptive' } : undefined } = fields
  const isActive = isObject(thinking) && (thinking['type'] === 'adaptive' || thinking['type'] === 'enabled')
  if (summary === undefined || !isActive) return fields
  return { ...fields, thinking: { ...thinking, display: summary === 'none' ? 'omitted' : 'summarized' } }
}

function budgetTokens(effort: ActiveEffort, maxTokens: number): number {
  if (maxTokens <= SMALLEST_BUDGET) {
    throw new HarnessError(
      'invalid_options',
      `Expected \`maxOutputTokens\` above ${SMALLEST_BUDGET} for \`reasoningEffort: '${effort}'\`, got ${maxTokens}: thinking counts as output.`,
    )
  }
  return Math.min(Math.max(Math.floor(maxTokens * BUDGET_SHARES[effort]), SMALLEST_BUDGET), maxTokens - 1)
}

/** True if the model thinks in reply to a request with these fields. */
export function isThinking({ byDefault }: ThinkingControl, { thinking }: JsonObject): boolean {
  const type = isObject(thinking) ? thinking['type'] : undefined
  return typeof type === 'string' ? type !== 'disabled' : byDefault
}
