import type { TokenUsage, TranscriptEntry } from './transcript/entry.js'
import type { JsonObject, JsonSchema, JsonValue } from './util/json.js'

/** How a run ended (spec/harness-behaviour.md §2.7). The first three come with a result, the others with an error. */
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
  | 'error'

/** What a run has used up. Counts span the pauses of a run. */
export interface RunUsage {
  /** Replies received from the model; failed requests are not counted. */
  readonly modelRequests: number
  /** Tool calls admitted to run, those that a hook cancelled included. */
  readonly toolCalls: number
  readonly cancelledToolCalls: number
  /** Corrective requests after an output that did not fit its schema. */
  readonly outputRetries: number
  /** Retryable failures seen, by tool name. */
  readonly toolRetries: Readonly<Record<string, number>>
  /** Hooks that threw or ran out of time, and were passed over. */
  readonly hookFailures: number
  /** What the runs did that its calls started, and theirs. Their requests and calls are not in the counts above. */
  readonly children: { readonly modelRequests: number; readonly toolCalls: number }
  /**
   * Sums of what the provider reported, for the run and the runs that it started; a reply that reported nothing adds
   * nothing.
   */
  readonly inputTokens: number
  readonly outputTokens: number
  readonly cacheReadTokens: number
  readonly cacheWriteTokens: number
  readonly reasoningTokens: number
}

export const NO_USAGE: RunUsage = {
  modelRequests: 0,
  toolCalls: 0,
  cancelledToolCalls: 0,
  outputRetries: 0,
  toolRetries: {},
  hookFailures: 0,
  children: { modelRequests: 0, toolCalls: 0 },
  inputTokens: 0,
  outputTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  reasoningTokens: 0,
}

/** `usage` with one reply more. */
export function withTurn(usage: RunUsage, turn: TokenUsage): RunUsage {
  return {
    ...usage,
    modelRequests: usage.modelRequests + 1,
    inputTokens: usage.inputTokens + (turn.inputTokens ?? 0),
    outputTokens: usage.outputTokens + (turn.outputTokens ?? 0),
    cacheReadTokens: usage.cacheReadTokens + (turn.cacheReadTokens ?? 0),
    cacheWriteTokens: usage.cacheWriteTokens + (turn.cacheWriteTokens ?? 0),
    reasoningTokens: usage.reasoningTokens + (turn.reasoningTokens ?? 0),
  }
}

/** `usage` with that of the runs that a call of it started: tokens and requests of a run count those of its children. */
export function withUsage(usage: RunUsage, children: RunUsage): RunUsage {
  return {
    ...usage,
    children: {
      modelRequests: usage.children.modelRequests + children.modelRequests + children.children.modelRequests,
      toolCalls: usage.children.toolCalls + children.toolCalls + children.children.toolCalls,
    },
    inputTokens: usage.inputTokens + children.inputTokens,
    outputTokens: usage.outputTokens + children.outputTokens,
    cacheReadTokens: usage.cacheReadTokens + children.cacheReadTokens,
    cacheWriteTokens: usage.cacheWriteTokens + children.cacheWriteTokens,
    reasoningTokens: usage.reasoningTokens + children.reasoningTokens,
  }
}

/** One tool call of a run and what the model was told of it, in model order. */
export interface ToolCallRecord {
  readonly call: { readonly id: string; readonly name: string; readonly arguments: string }
  /** The envelope's JSON text. */
  readonly output: string
  /** A hook cancelled it, or the run was aborted. */
  readonly cancelled?: true
  readonly approval?: { readonly approved: boolean; readonly reason?: string }
}

/** What a person has to answer before a paused run goes on. */
export interface PendingItem {
  readonly kind: 'approval' | 'question' | 'unknown_outcome'
  /** What an answer names. Of a run that a call started: that call's id and `/` before the id of its own call. */
  readonly callId: string
  readonly toolName: string
  /** Raw JSON text, as the model sent it. */
  readonly arguments: string
  /** What the tool asks (a question) or shows (a preview). */
  readonly payload?: JsonValue
  /** JSON Schema of the answer to a question. */
  readonly answerSchema?: JsonSchema
  /** Run ids from the outermost run to the one that holds the call. */
  readonly path: readonly string[]
}

/** A run's state as one JSON document: store it, send it, hand it to `resume` or `resumeFrom`. Its inside is not an API. */
export interface ResumeState extends JsonObject {
  readonly kind: 'run_state'
  readonly version: number
  readonly runId: string
}

/** What a run had done when it ended without a result. */
export interface RunReport {
  readonly runId: string
  readonly stopReason: StopReason
  readonly usage: RunUsage
  readonly toolCallRecords: readonly ToolCallRecord[]
  /** Closed: every tool call in it has its answer, so that it can be continued. */
  readonly transcript: readonly TranscriptEntry[]
  /** The provider's raw replies, in order. */
  readonly responses: readonly unknown[]
  /** To be given to `resumeFrom` with a new prompt; null where nothing valid is there. */
  readonly resumeState: ResumeState | null
}

/** What a run came to. */
export interface HarnessResult<Output = string> {
  readonly runId: string
  /** Text of the last reply, as the model wrote it; on a pause, what it said beside its tool calls. */
  readonly text: string
  /** The parsed answer; the text itself where no `outputType` was asked for. On a pause there is none: do not read it. */
  readonly output: Output
  readonly stopReason: 'end_turn' | 'approval_required' | 'input_required'
  readonly usage: RunUsage
  readonly toolCallRecords: readonly ToolCallRecord[]
  /** What a person has to answer before the run goes on; empty unless it is paused. */
  readonly pending: readonly PendingItem[]
  /** The run's state as JSON, made when it is first read: for `resume` after a pause, else for `resumeFrom`. */
  readonly resumeState: ResumeState | null
  readonly transcript: readonly TranscriptEntry[]
  /** The provider's raw replies, in order, of the whole logical run. */
  readonly responses: readonly unknown[]
}
