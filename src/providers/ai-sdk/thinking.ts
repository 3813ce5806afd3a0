import type { ReasoningEffort } from '#core/model-session.js'
import type { JsonObject } from '#util/json.js'

type ActiveEffort = Exclude<ReasoningEffort, 'none'>

/** Thinking budgets in tokens, for models without efforts. */
const BUDGETS: Readonly<Record<ActiveEffort, number>> = {
  minimal: 1024,
  low: 4096,
  medium: 8192,
  high: 16_384,
  xhigh: 24_576,
  max: 30_000,
}

/** Claude up to 4.5 has no efforts. */
const CLAUDE_BY_BUDGET = /claude-(?:3-7|(?:opus|sonnet|haiku)-4(?!-[6-9]))/

/** Options of `@ai-sdk/anthropic` for an effort. */
export function anthropicThinking(effort: ReasoningEffort, modelId: string): JsonObject {
  if (effort === 'none') return { thinking: { type: 'disabled' } }
  if (CLAUDE_BY_BUDGET.test(modelId)) return { thinking: { type: 'enabled', budgetTokens: BUDGETS[effort] } }
  return { thinking: { type: 'adaptive', display: 'summarized' }, effort: effort === 'minimal' ? 'low' : effort }
}

/** Gemini up to 2.5 has no levels. */
const GEMINI_BY_BUDGET = /gemini-2/

const LEVELS: Readonly<Record<ReasoningEffort, string>> = {
  none: 'minimal',
  minimal: 'minimal',
  low: 'low',
  medium: 'medium',
  high: 'high',
  xhigh: 'high',
  max: 'high',
}

/** Options of `@ai-sdk/google` for an effort. */
export function googleThinking(effort: ReasoningEffort, modelId: string): JsonObject {
  if (!GEMINI_BY_BUDGET.test(modelId)) return { thinkingConfig: { thinkingLevel: LEVELS[effort] } }
  return { thinkingConfig: { thinkingBudget: effort === 'none' ? 0 : Math.min(BUDGETS[effort], 24_576) } }
}

export const byEffortWord = (effort: ReasoningEffort): JsonObject => ({ reasoningEffort: effort })
