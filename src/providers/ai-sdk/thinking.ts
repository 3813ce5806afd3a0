import type { ReasoningEffort } from '../../contracts/model.js'
import type { JsonObject } from '../../util/json.js'

type Thought = Exclude<ReasoningEffort, 'none'>

/** Tokens to think with, for models that are told a number. */
const BUDGETS: Readonly<Record<Thought, number>> = {
  minimal: 1024,
  low: 4096,
  medium: 8192,
  high: 16_384,
  xhigh: 24_576,
  max: 30_000,
}

/** Claude up to 4.5, which knows no effort. */
const CLAUDE_BY_BUDGET = /claude-(?:3-7|(?:opus|sonnet|haiku)-4(?!-[6-9]))/

/** Options of `@ai-sdk/anthropic` that ask a model to think as much as `effort` says. */
export function anthropicThinking(effort: ReasoningEffort, modelId: string): JsonObject {
  if (effort === 'none') return { thinking: { type: 'disabled' } }
  if (CLAUDE_BY_BUDGET.test(modelId)) return { thinking: { type: 'enabled', budgetTokens: BUDGETS[effort] } }
  return { thinking: { type: 'adaptive', display: 'summarized' }, effort: effort === 'minimal' ? 'low' : effort }
}

/** Gemini up to 2.5, which knows no level. */
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

/** Options of `@ai-sdk/google` that do the same. */
export function googleThinking(effort: ReasoningEffort, modelId: string): JsonObject {
  if (!GEMINI_BY_BUDGET.test(modelId)) return { thinkingConfig: { thinkingLevel: LEVELS[effort] } }
  return { thinkingConfig: { thinkingBudget: effort === 'none' ? 0 : Math.min(BUDGETS[effort], 24_576) } }
}
