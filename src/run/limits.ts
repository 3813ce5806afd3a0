import type { Notice } from '../model/notices.js'
import type { RunUsage } from '../report.js'
import type { LimitKind, RunRules } from './rules.js'

/** A budget that is used up. */
export interface Breach {
  readonly kind: LimitKind
  /** What was allowed. */
  readonly limit: number
  /** What has been used, or would be. */
  readonly count: number
}

/** What forbids one more request, if anything does. */
export function requestBreach(rules: RunRules, usage: RunUsage): Breach | undefined {
  const { modelRequests, inputTokens, outputTokens } = rules.limits
  return (
    breach('model_requests', modelRequests, usage.modelRequests) ??
    breach('input_tokens', inputTokens, usage.inputTokens) ??
    breach('output_tokens', outputTokens, usage.outputTokens)
  )
}

/** What forbids a batch of `size` calls: it is run whole or not at all. */
export function batchBreach(rules: RunRules, usage: RunUsage, size: number): Breach | undefined {
  const limit = rules.limits.toolCalls
  const count = usage.toolCalls + size
  return limit !== null && count > limit ? { kind: 'tool_calls', limit, count } : undefined
}

function breach(kind: LimitKind, limit: number | null, used: number): Breach | undefined {
  return limit !== null && used >= limit ? { kind, limit, count: used } : undefined
}

/** A notice that a budget runs out. */
export interface LimitNotice extends Notice {
  readonly limitKind: 'model_requests' | 'tool_calls'
  readonly remaining: number
}

/** What to tell the model with the next request as its budgets run out (spec §10.2); nothing is told twice. */
export function limitNotices(rules: RunRules, usage: RunUsage, told: readonly string[]): LimitNotice[] {
  return [requestNotice(rules, usage), toolNotice(rules, usage)]
    .filter((notice) => notice !== undefined)
    .filter((notice) => !told.includes(notice.key))
}

function requestNotice(rules: RunRules, usage: RunUsage): LimitNotice | undefined {
  const limit = rules.limits.modelRequests
  if (limit === null || limit - usage.modelRequests !== 1) return undefined
  return limitNotice(
    'model_requests',
    1,
    rules.answersByTool
      ? 'This is the final model request of this run: give the final answer now by calling `final_result`, and request no other tools.'
      : 'This is the final model request of this run: answer now, and request no tools.',
  )
}

function toolNotice(rules: RunRules, usage: RunUsage): LimitNotice | undefined {
  const limit = rules.limits.toolCalls
  if (limit === null) return undefined
  const left = limit - usage.toolCalls
  if (left === 1) return limitNotice('tool_calls', 1, oneCallLeft(rules.answersByTool))
  if (left > 0) return undefined
  return limitNotice(
    'tool_calls',
    0,
    limit === 0 ? toolsUnavailable(rules.answersByTool) : noCallsLeft(rules.answersByTool),
  )
}

function limitNotice(limitKind: LimitNotice['limitKind'], remaining: number, content: string): LimitNotice {
  return { key: `limit_warning:${limitKind}:${remaining}`, kind: 'limit_warning', limitKind, remaining, content }
}

function oneCallLeft(answersByTool: boolean): string {
  return answersByTool
    ? 'One tool call remains besides `final_result`: do not request several tools at once.'
    : 'One tool call remains: do not request several tools at once.'
}

function toolsUnavailable(answersByTool: boolean): string {
  return answersByTool
    ? 'Tools are not available on this run: use `final_result` to answer.'
    : 'Tools are not available on this run: answer without them.'
}

function noCallsLeft(answersByTool: boolean): string {
  return answersByTool
    ? 'No tool calls remain: answer now with `final_result`.'
    : 'No tool calls remain: answer now without tools.'
}
