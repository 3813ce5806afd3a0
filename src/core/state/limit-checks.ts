import type { RunUsage } from '#contracts/run-usage.js'
import { FINAL_RESULT } from './output-format.js'
import type { BatchCall } from './batch-call.js'
import type { LimitKind, RunRules } from './run-rules.js'

/** A budget that is used up. */
export interface Breach {
  readonly kind: LimitKind
  /** The allowed amount. */
  readonly limit: number
  /** The amount that has been used, or would be. */
  readonly count: number
}

/** The most turns of a program. */
const MOST_STEPS = 10_000

/** The limit that forbids one more request, if any does. */
export function requestBreach(rules: RunRules, usage: RunUsage): Breach | undefined {
  if (rules.computed === true) return breach('script_steps', MOST_STEPS, usage.scriptSteps ?? 0)
  const { modelRequests, inputTokens, outputTokens, costUsd } = rules.limits
  return (
    breach('model_requests', modelRequests, usage.modelRequests) ??
    breach('input_tokens', inputTokens, usage.inputTokens) ??
    breach('output_tokens', outputTokens, usage.outputTokens) ??
    breach('cost_usd', costUsd, usage.costUsd ?? 0)
  )
}

/** The limit that forbids a batch of `size` calls: a batch runs as a whole or not at all. */
export function batchBreach(rules: RunRules, usage: RunUsage, size: number): Breach | undefined {
  const limit = rules.limits.toolCalls
  const count = (rules.callsBefore ?? 0) + usage.toolCalls + size
  return limit !== null && count > limit ? { kind: 'tool_calls', limit, count } : undefined
}

function breach(kind: LimitKind, limit: number | null, used: number): Breach | undefined {
  return limit !== null && used >= limit ? { kind, limit, count: used } : undefined
}

/** How many tool calls a batch has: the call by which a model gives its answer is none. */
export function sizeOf({ answersByTool }: RunRules, calls: readonly Pick<BatchCall, 'name'>[]): number {
  return answersByTool ? calls.filter(({ name }) => name !== FINAL_RESULT).length : calls.length
}

/** How far a run has come with its budgets. */
export interface Standing {
  readonly rules: RunRules
  readonly usage: RunUsage
  /** Time since the run began or was last continued, in ms. */
  readonly elapsedMs: number
  /** Of the last reply: the next request will have as many at least. */
  readonly lastInputTokens: number
  /** Turns in a row that brought nothing new. */
  readonly staleTurns: number
  /** Calls of a batch that is over its budget. */
  readonly refusedCalls: number | null
}

/** A budget that is nearly used up, and how much of it is left. */
export interface NearLimit extends Breach {
  readonly remaining: number
}

/** The last part of a budget, as a share of it. */
const NEAR = 0.1

/** True only if nothing can forbid the next request, and nothing is to be said about limits: so it is in most turns. */
export function areLimitsFar({ rules, usage, elapsedMs, lastInputTokens, refusedCalls }: Standing): boolean {
  if (rules.computed === true) return requestBreach(rules, usage) === undefined
  const { modelRequests, toolCalls, inputTokens, outputTokens, timeMs, costUsd } = rules.limits
  return (
    rules.stall === undefined &&
    refusedCalls === null &&
    costUsd === null &&
    (modelRequests === null || modelRequests - usage.modelRequests > 1) &&
    (toolCalls === null || toolCalls - usage.toolCalls > 1) &&
    (inputTokens === null || inputTokens - usage.inputTokens > Math.max(inputTokens * NEAR, lastInputTokens)) &&
    (outputTokens === null || outputTokens - usage.outputTokens > outputTokens * NEAR) &&
    (timeMs === null || timeMs - elapsedMs > timeMs * NEAR)
  )
}

/** Budgets of tokens, time and money that have a tenth left, or too little for another request as long as the last one. */
export function nearLimits({ rules, usage, elapsedMs, lastInputTokens }: Standing): readonly NearLimit[] {
  const { inputTokens, outputTokens, timeMs, costUsd } = rules.limits
  return [
    near('input_tokens', inputTokens, { count: usage.inputTokens, least: lastInputTokens }),
    near('output_tokens', outputTokens, { count: usage.outputTokens }),
    near('time_ms', timeMs, { count: elapsedMs }),
    near('cost_usd', costUsd, { count: usage.costUsd ?? 0 }),
  ].filter((each) => each !== undefined)
}

/** An unused budget is not near its limit. */
function near(
  kind: LimitKind,
  limit: number | null,
  { count, least = 0 }: { readonly count: number; readonly least?: number },
): NearLimit | undefined {
  if (limit === null || count === 0) return undefined
  const remaining = Math.max(0, Number((limit - count).toFixed(6)))
  return remaining <= Math.max(limit * NEAR, least) ? { kind, limit, count, remaining } : undefined
}

/**
 * The reason why the next request is the last, without tools: the end of a budget, if the model is to answer then
 * (`onLimit: 'answer'`), or too many turns without news.
 */
export function closingBreach(standing: Standing): Breach | undefined {
  const { rules, usage, staleTurns, refusedCalls } = standing
  const answerAfter = rules.stall?.answerAfter ?? null
  if (answerAfter !== null && staleTurns >= answerAfter) return { kind: 'stall', limit: answerAfter, count: staleTurns }
  if (rules.onLimit !== 'answer') return undefined
  const { modelRequests, toolCalls } = rules.limits
  const [nearest] = nearLimits(standing)
  return (
    (refusedCalls === null ? undefined : batchBreach(rules, usage, refusedCalls)) ??
    lastRequest(modelRequests, usage.modelRequests) ??
    breach('tool_calls', toolCalls, usage.toolCalls) ??
    (nearest === undefined ? undefined : { kind: nearest.kind, limit: nearest.limit, count: nearest.count })
  )
}

function lastRequest(limit: number | null, count: number): Breach | undefined {
  return limit !== null && count >= limit - 1 ? { kind: 'model_requests', limit, count } : undefined
}

/** The limit that ends a run after too many turns without anything new. */
export function stallBreach({ rules, staleTurns }: Standing): Breach | undefined {
  const limit = rules.stall?.stopAfter ?? null
  return limit !== null && staleTurns >= limit ? { kind: 'stall', limit, count: staleTurns } : undefined
}

/** True for limits that one last request may pass: its use is unknown beforehand, and it is not expensive. */
export function mayPass({ kind }: Breach): boolean {
  return kind === 'input_tokens' || kind === 'output_tokens'
}
