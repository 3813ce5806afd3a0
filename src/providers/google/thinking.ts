import type { ReasoningEffort } from '#core/model-session.js'
import type { JsonObject } from '#util/json.js'
import type { Family, Level } from './models.js'

type ActiveEffort = Exclude<ReasoningEffort, 'none'>

/** Tokens of thoughts by effort, as in Google's own layer for OpenAI's API. */
const BUDGETS: Readonly<Record<ActiveEffort, number>> = {
  minimal: 512,
  low: 1024,
  medium: 8192,
  high: 24_576,
  xhigh: 32_768,
  max: 32_768,
}

/** The nearest levels, the best first. */
const LEVELS: Readonly<Record<ActiveEffort, readonly Level[]>> = {
  minimal: ['MINIMAL', 'LOW'],
  low: ['LOW'],
  medium: ['MEDIUM', 'HIGH'],
  high: ['HIGH'],
  xhigh: ['HIGH'],
  max: ['HIGH'],
}

/**
 * The fields for a reasoning effort; thoughts are shown as summaries. `maxOutputTokens` limits the reply with its thoughts, so a
 * budget takes at most four fifths of it.
 */
export function thinkingFields(
  { thinking, byDefault }: Family,
  effort: ReasoningEffort | undefined,
  maxOutputTokens: number | undefined,
): JsonObject {
  if (thinking.by === 'none') return {}
  if (effort === undefined) return byDefault ? { thinkingConfig: { includeThoughts: true } } : {}
  if (effort === 'none') return { thinkingConfig: { thinkingBudget: 0 } }
  if (thinking.by === 'level') {
    const thinkingLevel = LEVELS[effort].find((level) => thinking.levels.includes(level)) ?? 'LOW'
    return { thinkingConfig: { includeThoughts: true, thinkingLevel } }
  }
  const share = maxOutputTokens === undefined ? thinking.most : Math.floor(maxOutputTokens * 0.8)
  const thinkingBudget = Math.max(Math.min(BUDGETS[effort], thinking.most, share), thinking.least)
  return { thinkingConfig: { includeThoughts: true, thinkingBudget } }
}
