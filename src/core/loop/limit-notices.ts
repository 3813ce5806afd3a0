import type { HarnessNotice } from '#contracts/notices.js'
import { nearLimits } from '../state/limit-checks.js'
import type { Breach, NearLimit, Standing } from '../state/limit-checks.js'
import type { LimitKind, RunRules } from '../state/run-rules.js'

/** The form of the keys of these notices. */
export const NOTICE_KEY =
  /^limit_warning:(model_requests|tool_calls|tool_retries|input_tokens|output_tokens|time_ms|cost_usd|stall):(near|\d+)$/

/** A notice that a budget runs out, or that a run goes in circles. */
export interface LimitNotice extends HarnessNotice {
  readonly limitKind: LimitKind
  readonly remaining: number
}

/**
 * The notices for the next request as budgets run out; each is given once. `closing` is the reason why
 * the request is the last one.
 */
export function limitNotices(
  standing: Standing,
  closing: Breach | undefined,
  told: readonly string[],
): readonly LimitNotice[] {
  const near = closing === undefined ? nearLimits(standing) : []
  const { answersByTool } = standing.rules
  return [
    requestNotice(standing),
    toolNotice(standing),
    ...near.map((limit) => nearNotice(limit, answersByTool)),
    closing === undefined ? stallNotice(standing) : closingNotice(closing, answersByTool),
  ]
    .filter((notice) => notice !== undefined)
    .filter(({ key }, index, all) => !told.includes(key) && all.findIndex((other) => other.key === key) === index)
}

function requestNotice({ rules, usage }: Standing): LimitNotice | undefined {
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

function toolNotice({ rules, usage, refusedCalls }: Standing): LimitNotice | undefined {
  const limit = rules.limits.toolCalls
  if (limit === null) return undefined
  const left = limit - usage.toolCalls
  if (left > 1 || (left === 1 && refusedCalls !== null)) return undefined
  if (left === 1) return limitNotice('tool_calls', 1, oneCallLeft(rules.answersByTool))
  return limitNotice(
    'tool_calls',
    0,
    limit === 0 ? toolsUnavailable(rules.answersByTool) : noCallsLeft(rules.answersByTool),
  )
}

function nearNotice({ kind, limit, remaining }: NearLimit, answersByTool: boolean): LimitNotice {
  const left = `About ${amount(kind, remaining)} of ${amount(kind, limit)} remain for this run`
  const how = answersByTool ? 'come to an answer, with `final_result`' : 'come to an answer'
  return { ...limitNotice(kind, remaining, `${left}: ${how}.`), key: `limit_warning:${kind}:near` }
}

function amount(kind: LimitKind, value: number): string {
  switch (kind) {
    case 'input_tokens':
      return `${value} input tokens`
    case 'output_tokens':
      return `${value} output tokens`
    case 'time_ms':
      return `${Math.round(value / 1000)} s`
    case 'cost_usd':
      return `$${value.toFixed(2)}`
    case 'model_requests':
    case 'tool_calls':
    case 'tool_retries':
    case 'stall':
    case 'script_steps':
      return String(value)
  }
}

function closingNotice({ kind }: Breach, answersByTool: boolean): LimitNotice | undefined {
  switch (kind) {
    case 'model_requests':
    case 'script_steps':
      // Said already, or there is nobody to be told.
      return undefined
    case 'tool_calls':
      return limitNotice(kind, 0, noCallsLeft(answersByTool))
    case 'stall':
      return limitNotice(kind, 0, `The last calls have brought nothing new. ${answerNow(answersByTool)}`)
    case 'input_tokens':
    case 'output_tokens':
    case 'time_ms':
    case 'cost_usd':
    case 'tool_retries':
      return limitNotice(kind, 0, `This run is at the end of its ${BUDGETS[kind]}. ${answerNow(answersByTool)}`)
  }
}

const BUDGETS = {
  input_tokens: 'input tokens',
  output_tokens: 'output tokens',
  time_ms: 'time',
  cost_usd: 'money',
  tool_retries: 'retries',
} as const satisfies Partial<Record<LimitKind, string>>

function answerNow(answersByTool: boolean): string {
  return answersByTool
    ? 'Answer now with what you have, by calling `final_result`.'
    : 'Answer now with what you have, without tools.'
}

/** The first step against a run that goes in circles. */
function stallNotice({ rules, staleTurns }: Standing): LimitNotice | undefined {
  const noticeAfter = rules.stall?.noticeAfter ?? null
  if (noticeAfter === null || staleTurns < noticeAfter) return undefined
  const content = `The last ${staleTurns} turns have brought nothing new: the same calls, or calls like them, with the same results. Do something else, or answer with what you have.`
  return { ...limitNotice('stall', staleTurns, content), key: `limit_warning:stall:${noticeAfter}` }
}

function limitNotice(limitKind: LimitKind, remaining: number, content: string): LimitNotice {
  return { key: `limit_warning:${limitKind}:${remaining}`, kind: 'limit_warning', limitKind, remaining, content }
}

/** The result of each call of a batch that is over the limit of tool calls. */
export function refusedContent({ answersByTool, limits }: RunRules, calls: number, used: number): string {
  const left = Math.max(0, (limits.toolCalls ?? 0) - used)
  const what = `This call was not run: ${calls} ${calls === 1 ? 'call was' : 'calls were'} asked for, and ${left} of ${limits.toolCalls} remain.`
  return `${what} ${answerNow(answersByTool)}`
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
