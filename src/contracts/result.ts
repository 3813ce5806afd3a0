import { addCounts, NO_TOKENS, TOKEN_FIELDS } from './entry.js'
import type { CitedSource, TokenCounts, TokenUsage, TranscriptEntry } from './entry.js'
import type { JsonObject, JsonSchema, JsonValue } from '#util/json.js'
import type { Flows } from './flows.js'

/**
 * How a run ended. The first three come with a result, the others with an error. A run with `interrupted` has not ended: it
 * was left, and can be recovered.
 */
export type StopReason =
  | 'end_turn'
  | 'approval_required'
  | 'input_required'
  | 'provider_error'
  | 'limit_reached'
  | 'tool_retries_exceeded'
  | 'output_validation_failed'
  | 'unexpected_model_behavior'
  | 'cancelled_by_hook'
  | 'cancelled'
  | 'interrupted'
  | 'error'

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

/** One tool call of a run with its result for the model, in model order. */
export interface ToolCallRecord {
  /** `via`: the tool that the model called, if that call stands for this one. */
  readonly call: { readonly id: string; readonly name: string; readonly arguments: string; readonly via?: string }
  /** The envelope's JSON text. */
  readonly output: string
  /** A hook cancelled it, or the run was aborted. */
  readonly cancelled?: true
  readonly approval?: { readonly approved: boolean; readonly reason?: string }
}

/** A question to a person, which must be answered before a paused run continues. */
export interface PendingItem extends Flows {
  readonly kind: 'approval' | 'question' | 'unknown_outcome'
  /** The id that an answer names. In a child run: the id of the call that started it, `/`, and the id of its own call. */
  readonly callId: string
  readonly toolName: string
  /** Raw JSON text of the arguments with which the call will run, after hooks. */
  readonly arguments: string
  /** The question or the preview of the tool. */
  readonly payload?: JsonValue
  /** Which of the call's questions it is, if the call asks several. */
  readonly key?: string
  /** JSON Schema of the answer to a question. */
  readonly answerSchema?: JsonSchema
  /** The policy that has a person asked; absent if `requiresApproval` of the tool does. */
  readonly decision?: CallDecision
  /** The other calls of the reply, in the model's order; absent if there are none. */
  readonly otherCalls?: readonly OtherCall[]
  /** Run ids from the outermost run to the one that holds the call. */
  readonly path: readonly string[]
}

/** A call of the same reply as a call that people are asked about. */
export interface OtherCall {
  readonly callId: string
  readonly toolName: string
  /** Raw JSON text of the arguments with which it runs; absent if people are asked about it too: then its own item has them. */
  readonly arguments?: string
  /**
   * `ended`: it has ended. `before` and `after`: it has not, and comes before or after the call of the item; calls whose
   * tools are not `sequential` may run at the same time.
   */
  readonly when: 'ended' | 'before' | 'after'
}

/** The decision of the policies about a call. */
export interface CallDecision {
  readonly decision: 'allow' | 'ask' | 'deny'
  /** Name of the extension with the deciding policy. */
  readonly extension: string
  /** Name of the rule that decided, if the policy gives one. */
  readonly rule: string | null
  readonly reason: string | null
  /** Names of the other extensions whose policies ask too; absent if there are none. */
  readonly alsoAsked?: readonly string[]
}

/** A run's state as one JSON document: store it, send it, pass it to `resume` or as `history`. Its inside is not an API. */
export interface ResumeState extends JsonObject {
  readonly kind: 'run_state'
  readonly version: number
  readonly runId: string
}

/** A run that ended without a result. */
export interface RunReport {
  readonly runId: string
  readonly stopReason: StopReason
  readonly usage: RunUsage
  readonly toolCallRecords: readonly ToolCallRecord[]
  /** Closed: every tool call in it has its answer, so that it can be continued. */
  readonly transcript: readonly TranscriptEntry[]
  /** The provider's raw replies, in order. */
  readonly responses: readonly unknown[]
  /** To be passed as `history` with a new prompt; null if there is no valid one. */
  readonly resumeState: ResumeState | null
}

/** The end of a run, or its pause: see `status`. */
export type HarnessResult<Output = string> = CompletedResult<Output> | PausedResult

/** A run that has ended with an answer. */
export interface CompletedResult<Output = string> extends ResultReport {
  readonly status: 'completed'
  /** The parsed answer; the text itself without an `outputType`. */
  readonly output: Output
  readonly stopReason: 'end_turn'
  readonly pending: readonly []
  /** The run's state as JSON, created when it is first read: for the `history` of another run. */
  readonly resumeState: ResumeState | null
}

/** A run that waits for people: `harness.resume` continues it with their answers. */
export interface PausedResult extends ResultReport {
  readonly status: 'paused'
  /** There is no answer yet: reading it throws `invalid_state`. */
  readonly output: never
  readonly stopReason: 'approval_required' | 'input_required'
  /** The items that people have to answer. */
  readonly pending: readonly [PendingItem, ...PendingItem[]]
  /** The run's state as JSON, created when it is first read: for `harness.resume`. */
  readonly resumeState: ResumeState
}

interface ResultReport {
  readonly runId: string
  /** Text of the last reply, as the model wrote it; of a paused run, the text of the reply with the calls. */
  readonly text: string
  readonly usage: RunUsage
  readonly toolCallRecords: readonly ToolCallRecord[]
  /** The pages that the replies of the run cite, in their order. */
  readonly sources: readonly CitedSource[]
  readonly transcript: readonly TranscriptEntry[]
  /** The provider's raw replies, in order, of the whole logical run. */
  readonly responses: readonly unknown[]
}
