import { addCounts, NO_TOKENS, TOKEN_FIELDS } from './entry.js'
import type { TokenCounts, TokenUsage } from './entry.js'

/**
 * The use of a run. Counts span its pauses. Tokens are sums that the provider reported, for the run and its child runs; a reply
 * without a report adds nothing.
 */
export interface RunUsage extends TokenCounts<number> {
  /** Replies received from the model; failed requests are not counted. */
  readonly modelRequests: number
  /** Turns of programs, which are no requests (`Model.computed`): of the run itself and below it. Absent if there were none. */
  readonly scriptSteps?: number
  /** Of a fork with recorded effects: calls that the recording does not have. Absent before its first call, and in other runs. */
  readonly unrecorded?: number
  /** Tool calls admitted to run, those that a hook cancelled included. */
  readonly toolCalls: number
  readonly cancelledToolCalls: number
  /** Corrective requests after an output that did not fit its schema. */
  readonly outputRetries: number
  /** Retryable failures seen, by tool name. */
  readonly toolRetries: Readonly<Record<string, number>>
  /** Hooks that threw or timed out, and were skipped. */
  readonly hookFailures: number
  /** The use of its child runs and theirs. Their requests and calls are not in the counts above. */
  readonly children: { readonly modelRequests: number; readonly toolCalls: number }
  /**
   * US dollars, exact to the micro-dollar, for the run and its child runs; null if a reply has no known price, and if no cost
   * was requested (`limits.costUsd`, `prices`).
   */
  readonly costUsd: number | null
  /** Calls that providers executed and charge for, by tool: `{ web_search: 2 }`. Absent if there were none. */
  readonly hostedCalls?: Readonly<Record<string, number>>
  /** The same by model, as `provider:model`. */
  readonly byModel: Readonly<Record<string, ModelUsage>>
}

/** The use and cost of one model. */
export interface ModelUsage extends TokenCounts<number> {
  readonly modelRequests: number
  /** Calls that providers executed and charge for, by tool: `{ web_search: 2 }`. Absent if there were none. */
  readonly hostedCalls?: Readonly<Record<string, number>>
  readonly costUsd: number | null
}

export const NO_USAGE: RunUsage = {
  modelRequests: 0,
  toolCalls: 0,
  cancelledToolCalls: 0,
  outputRetries: 0,
  toolRetries: {},
  hookFailures: 0,
  children: { modelRequests: 0, toolCalls: 0 },
  ...NO_TOKENS,
  costUsd: null,
  byModel: {},
}

/** One reply: its model, and its cost in micro-dollars, if known. */
export interface CountedReply {
  readonly provider: string
  readonly model: string
  readonly usage: TokenUsage
  readonly cost: number | undefined
  /** All attempts, the reply is the last one; `cost` is that of all. */
  readonly attempts?: readonly CountedAttempt[] | undefined
}

/** An attempt at a request; its cost in US dollars, if it is known. */
interface CountedAttempt {
  readonly provider: string
  readonly model: string
  readonly costUsd: number | null
}

/** `usage` with the cost of attempts that were no reply. */
export function withAttempts(usage: RunUsage, attempts: readonly CountedAttempt[]): RunUsage {
  let counted = usage
  for (const { provider, model, costUsd } of attempts) {
    if (costUsd === null || costUsd === 0) continue
    const lost = { modelRequests: 0, ...NO_TOKENS, costUsd }
    const byModel = withModels(counted.byModel, { [`${provider}:${model}`]: lost })
    counted = { ...counted, ...sumOf(whole(counted), lost), modelRequests: usage.modelRequests, byModel }
  }
  return counted
}

/** `usage` with one reply more. */
export function withTurn(given: RunUsage, counted: CountedReply): RunUsage {
  const { provider, model, usage: turn, attempts = ALONE } = counted
  let usage = given
  let { cost } = counted
  if (attempts.length > 1) {
    const others = attempts.slice(0, -1)
    usage = withAttempts(given, others)
    if (cost !== undefined) cost -= others.reduce((sum, { costUsd }) => sum + Math.round((costUsd ?? 0) * MICRO), 0)
  }
  const reply = requestUsage(turn, cost)
  const name = `${provider}:${model}`
  const before = usage.byModel[name]
  const byModel = { ...usage.byModel }
  byModel[name] = before === undefined ? reply : sumOf(before, reply)
  return Object.assign({ ...usage }, sumOf(whole(usage), reply), { modelRequests: usage.modelRequests + 1, byModel })
}

const ALONE: readonly CountedAttempt[] = []

/** With tokens that were used in addition to those of the run's own requests. `cost` is in micro-dollars. */
export function withTokens(usage: RunUsage, tokens: TokenUsage, cost: number | null): RunUsage {
  const used = requestUsage(tokens, cost ?? undefined)
  return { ...usage, ...sumOf(whole(usage), used), modelRequests: usage.modelRequests }
}

function requestUsage(tokens: TokenUsage, cost: number | undefined): ModelUsage {
  const usage: Counted = { ...NO_REQUEST, modelRequests: 1, costUsd: cost === undefined ? null : cost / MICRO }
  for (const field of TOKEN_FIELDS) usage[field] = tokens[field] ?? 0
  if (tokens.hostedCalls !== undefined) usage.hostedCalls = tokens.hostedCalls
  return usage
}

type Counted = { -readonly [Field in keyof ModelUsage]: ModelUsage[Field] }

/** Copied for each sum: to add a member to a copy would cost more than all else here. */
const NO_REQUEST: Counted = { modelRequests: 0, ...NO_TOKENS, costUsd: null }

const MICRO = 1_000_000

/** With the requests of the runs below it, as the tokens have theirs. */
function whole(usage: RunUsage): ModelUsage {
  const { modelRequests: below } = usage.children
  return below === 0 ? usage : { ...usage, modelRequests: usage.modelRequests + below }
}

function sumOf(one: ModelUsage, other: ModelUsage): ModelUsage {
  let costUsd = null
  // No requests cost nothing, unless something was asked beside them.
  if (one.modelRequests === 0 && one.costUsd === null) costUsd = other.costUsd
  else if (other.modelRequests === 0 && other.costUsd === null) costUsd = one.costUsd
  else if (one.costUsd !== null && other.costUsd !== null)
    // In whole micro-dollars, so that the sum is exact.
    costUsd = (Math.round(one.costUsd * MICRO) + Math.round(other.costUsd * MICRO)) / MICRO
  const sum: Counted = { ...NO_REQUEST, modelRequests: one.modelRequests + other.modelRequests, costUsd }
  for (const field of TOKEN_FIELDS) sum[field] = one[field] + other[field]
  const hostedCalls =
    one.hostedCalls === undefined ? other.hostedCalls : addCounts(one.hostedCalls, other.hostedCalls ?? {})
  if (hostedCalls !== undefined) sum.hostedCalls = hostedCalls
  return sum
}

function withModels(known: RunUsage['byModel'], added: RunUsage['byModel']): RunUsage['byModel'] {
  const sums = { ...known }
  for (const [name, usage] of Object.entries(added)) {
    const before = known[name]
    sums[name] = before === undefined ? usage : sumOf(before, usage)
  }
  return sums
}

/** `usage` with that of the runs that a call of it started: tokens and requests of a run count those of its children. */
export function withUsage(usage: RunUsage, children: RunUsage): RunUsage {
  return {
    ...usage,
    ...sumOf(whole(usage), whole(children)),
    modelRequests: usage.modelRequests,
    children: {
      modelRequests: usage.children.modelRequests + children.modelRequests + children.children.modelRequests,
      toolCalls: usage.children.toolCalls + children.toolCalls + children.children.toolCalls,
    },
    byModel: withModels(usage.byModel, children.byModel),
    ...counted('scriptSteps', usage, children),
    ...counted('unrecorded', usage, children),
  }
}

/** `usage` with that of the runs of one call. Calls that are not those of its children are those of its programs: the run's own. */
export function withCall(usage: RunUsage, used: RunUsage): RunUsage {
  const { children, ...sum } = withUsage(usage, used)
  return {
    ...sum,
    toolCalls: usage.toolCalls + used.toolCalls,
    cancelledToolCalls: usage.cancelledToolCalls + used.cancelledToolCalls,
    children: { ...children, toolCalls: children.toolCalls - used.toolCalls },
  }
}

function counted(name: 'scriptSteps' | 'unrecorded', one: RunUsage, other: RunUsage): Partial<RunUsage> {
  if (one[name] === undefined && other[name] === undefined) return {}
  return { [name]: (one[name] ?? 0) + (other[name] ?? 0) }
}
