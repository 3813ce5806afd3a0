import type { CitedSource, TranscriptEntry } from './entry.js'
import type { JsonObject, JsonSchema, JsonValue } from '#util/json.js'
import type { Flows } from './flows.js'
import type { RunUsage } from './run-usage.js'

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

/** What an end is to a page, an editor or another protocol. No failures: `stopped` by somebody, `limited` by a limit. */
export type EndKind = 'completed' | 'paused' | 'stopped' | 'limited' | 'failed'

const END_KINDS: Readonly<Record<StopReason, EndKind>> = {
  end_turn: 'completed',
  approval_required: 'paused',
  input_required: 'paused',
  cancelled: 'stopped',
  cancelled_by_hook: 'stopped',
  limit_reached: 'limited',
  provider_error: 'failed',
  tool_retries_exceeded: 'failed',
  output_validation_failed: 'failed',
  unexpected_model_behavior: 'failed',
  interrupted: 'failed',
  error: 'failed',
}

/** A reason of a later version counts as a failure. */
export function endKind(reason: StopReason): EndKind {
  return (END_KINDS as Readonly<Partial<Record<string, EndKind>>>)[reason] ?? 'failed'
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
