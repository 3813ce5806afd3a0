import type { HarnessErrorCode } from '#contracts/errors.js'
import type { ProviderFailure } from '#contracts/provider-failure.js'
import type { RequestAttempt, RequestPurpose, RequestWait, SubmittedRequest } from '#contracts/attempt.js'
import type { CacheBust, ModelToolCall, TransportRetry } from '../model-session.js'
import type { TranscriptRepair } from '#contracts/mend.js'
import type { Resolution } from './resolve-turn.js'
import type { CallDecision, HarnessResult, PendingItem, ResumeState, StopReason } from '#contracts/result.js'
import type { RunUsage } from '#contracts/run-usage.js'
import type { AssistantEntry, ContentPart, ContentSource, TokenUsage, ToolEntry, UserEntry } from '#contracts/entry.js'
import type { JsonObject, JsonValue } from '#util/json.js'
import type { Answer } from './answers.js'
import type { LeftRun } from './background-state.js'
import type { StoredChild } from './child-state.js'
import type { ConfigDigest } from './config-digest.js'
import type { StoredHistory } from './history.js'
import type { Labels } from './labels.js'
import type { Breach } from './limit-checks.js'
import type { LimitKind, RunRules } from './run-rules.js'
import type { View, ViewChange } from './view.js'

/** Version of the stored form of events and states. Others are rejected. */
export const FORMAT_VERSION = 3

/** Fields of every event. */
export interface EventBase {
  readonly runId: string
  /**
   * Number of the durable event, from 1 without gaps: the cursor of every reader. An ephemeral event has the number of
   * the durable event before it.
   */
  readonly seq: number
  /** ISO 8601 in UTC with milliseconds. */
  readonly at: string
  /** Stored in the run's log before it is emitted. */
  readonly durable: boolean
  /** The run whose tool call started this run; null at the top. */
  readonly parentRunId: string | null
  readonly parentToolCallId: string | null
  /** Name of the subagent; null at the top. */
  readonly agentName: string | null
}

/** Why a request is made. */
export type RequestKind =
  | 'start'
  | 'resume'
  | 'tool_outputs'
  | 'approval_resume'
  | 'correction'
  | 'output_retry_tool'
  | 'steering'
  | 'pause_continuation'
  | 'empty_retry'
  | 'background_report'

/** Fields of each durable kind, in addition to those of every event. */
export interface DurablePayloads {
  /** A run that has not begun waits in its own log, in which this is the first event; `run_started` follows when it begins. */
  run_queued: {
    /** Of the format of this event and those that follow it. */
    readonly version: typeof FORMAT_VERSION
    /** Name of the agent that is to run it, for whoever begins it. */
    readonly agent: string | null
    readonly prompt: string | readonly ContentPart[]
    readonly metadata: JsonObject
    /** As in `run_started`. */
    readonly labels?: Labels
    /** Who queued it, if that is known. */
    readonly by: string | null
  }
  run_started: {
    /** Of the format of this event and those that follow it. */
    readonly version: typeof FORMAT_VERSION
    /**
     * `resumed` and `recovered`: the run continues; its first `run_started` is earlier in the log, or its `state` is
     * here. `retried`: a run that failed or was cancelled continues. `forked`: a new run continues from the `state` of another run.
     */
    readonly begun: 'fresh' | 'resumed' | 'recovered' | 'retried' | 'forked'
    /** The caller's prompt; null if the run continues. */
    readonly prompt: string | readonly ContentPart[] | null
    readonly root: string
    readonly provider: string
    readonly model: string
    readonly maxModelRequests: number | null
    readonly maxToolCalls: number | null
    readonly metadata: JsonObject
    /** By which runs are found. Absent if there are none, and when a run goes on: it keeps those it began with. */
    readonly labels?: Labels
    /** W3C `traceparent` of the run's span, if the run is traced. */
    readonly traceparent?: string
    /** Limits and retry budgets of the run. */
    readonly rules: RunRules
    /** The conversation that the run continues; empty if there is none, and for a run that continues itself. */
    readonly history: StoredHistory
    /** How the model sees a history of entries, if not as it is; a history by reference has the view of its run. */
    readonly view?: View
    /** Everything before this event, if the log does not contain it: the run was resumed from a stored state. */
    readonly state?: ResumeState
  }
  model_request_started: {
    readonly requestKind: RequestKind
    readonly provider: string
    readonly model: string
    /** Entries that the harness adds for this request, after the results of the batch: correction, steering, notices. */
    readonly entries: readonly (UserEntry | ToolEntry)[]
    /** Text that hooks and notices add to the prompt; with the first request only. */
    readonly promptAddition?: string
    /** Keys of the notices among the entries. */
    readonly notices: readonly string[]
    /** Sent with the first request, and again if a continued run has a different configuration. */
    readonly config?: ConfigDigest
    /** Why this request is the last one, without tools: a limit, or turns without progress. */
    readonly closing?: Breach
    /** Notices of the host, which are in the last entry: the names, and digests of their texts. */
    readonly hostNotices?: readonly { readonly name: string; readonly digest: string }[]
  }
  /** The provider has accepted the request and answers later: a process that recovers the run asks for that answer. */
  request_submitted: SubmittedRequest
  limit_warning: { readonly limitKind: LimitKind; readonly remaining: number; readonly content: string }
  model_message: {
    /** The output mode, if this reply is the final structured answer. */
    readonly finalizedOutputMode: string | null
    /** The reply: its text, its calls and its usage. */
    readonly entry: AssistantEntry
    readonly resolution: Resolution
    readonly nativeFinishReason: string | null
    readonly responseId: string | null
    readonly responseModel: string | null
    /** In whole micro-dollars, rounded up, at the price of that time, with all attempts; absent if unknown. */
    readonly cost?: number
    /** The calls for which calls of the reply stand, by the ids of these; absent if each stands for itself. */
    readonly resolvedCalls?: readonly ModelToolCall[]
    /** Why a filter blocked the reply: it is not in the transcript, and readers get it without its parts. */
    readonly blocked?: string
    /** The reply came from a cache of replies. */
    readonly cached?: true
    /** All attempts at the request, the last of which is the answer; absent if it was the only one. */
    readonly attempts?: readonly RequestAttempt[]
  }
  /** The `before_tool_call` hooks were asked about a call. After a pause or a crash they are not asked again. */
  call_prepared: {
    readonly callId: string
    readonly toolName: string
    readonly via?: string
    readonly toolIndex: number
    /** Raw JSON text in place of the model's arguments, if a hook changed them. */
    readonly arguments?: string
    /** The reason of a hook that cancelled the call: the tool does not run. */
    readonly cancelled?: string
  }
  tool_call_started: {
    readonly callId: string
    readonly toolName: string
    /** The tool that the model called, if that call stands for this one. */
    readonly via?: string
    readonly toolIndex: number
    /** Raw JSON text, as the model sent it. */
    readonly arguments: string
    /** The decision of the policies; absent if none has an opinion. */
    readonly decision?: CallDecision
    /** The call has begun before, has asked, and is entered again: a reader that counts calls passes it over. */
    readonly again?: true
  }
  tool_call_completed: {
    readonly callId: string
    readonly toolName: string
    readonly via?: string
    readonly toolIndex: number
    readonly ok: boolean
    readonly cancelled: boolean
    /** Class of the failure, before hooks, if it counts against the tool's retry budget. */
    readonly retryKind: string | null
    readonly errorType: string | null
    /** The envelope's content, if the call did not succeed. */
    readonly message: string | null
    /** From start to outcome, in ms. */
    readonly durationMs: number
    /** The envelope's JSON text; the model reads its content. */
    readonly output: string
    /** The value that the tool returned, as JSON; absent if its text is the value, was shortened, or was replaced by a hook. */
    readonly value?: JsonValue
    /** Images and files, in addition to the envelope. */
    readonly parts?: readonly ContentPart[]
    /** Source of the content, if the tool declares it. */
    readonly source?: ContentSource
    /** Usage of the runs that the call started, if any. */
    readonly childUsage?: RunUsage
    /** Background runs that the call started; they begin now. */
    readonly background?: readonly LeftRun[]
    /** The call made no progress; only set with loop detection (`stall`). */
    readonly stale?: true
    /** Only in a fork with recorded effects: whether the recording does not have the call. */
    readonly unrecorded?: boolean
  }
  /** A call that a crash interrupted, and how it is resolved. */
  tool_call_interrupted: {
    readonly callId: string
    readonly toolName: string
    readonly via?: string
    readonly toolIndex: number
    readonly settledBy: 'retry' | 'report' | 'pause' | 'reconcile'
  }
  model_retry: {
    readonly retryKind: 'structured_output' | 'tool_retry'
    readonly message: string
    readonly callId: string | null
  }
  /** From this request on, the model gets some entries in another form. Without changes: a policy tried without effect. */
  view_changed: {
    /** Disjoint from the earlier ones, or containing them whole. */
    readonly changes: readonly ViewChange[]
    /** Name of the extension whose policy it was. */
    readonly policy: string
    /** Estimated input tokens of the request; null if the policy gave no estimate. */
    readonly tokensBefore: number | null
    readonly tokensAfter: number | null
    /** Tokens used to prepare the changes; null if no model was asked. */
    readonly usage: TokenUsage | null
    /** In whole micro-dollars; null if unknown. */
    readonly cost: number | null
  }
  /** A policy has a text for entries, written ahead of time, which a later `view_changed` may show in their place. */
  view_prepared: {
    /** Name of the extension whose policy it is. */
    readonly policy: string
    /** Ids of the first and the last entry of the range; both belong to it. */
    readonly from: string
    readonly to: string
    /** Null: it could not be written. */
    readonly shown: string | null
    /** Tokens used for it; null if no model was asked. */
    readonly usage: TokenUsage | null
    /** In whole micro-dollars; null if unknown. */
    readonly cost: number | null
  }
  /** A model was asked beside the conversation. Its usage counts as the run's. */
  aside: {
    readonly purpose: RequestPurpose
    readonly usage: TokenUsage
    /** Null if it is unknown. */
    readonly costUsd: number | null
    /** The answer to a question with a closed list of them. */
    readonly choice?: string
  }
  /** A value that an extension keeps of this run. */
  extension_recorded: { readonly extension: string; readonly value: JsonValue }
  /** A hook, or another member of an extension such as `notices`, failed, and the run continued without it. */
  hook_failed: { readonly hookEvent: string; readonly message: string; readonly extension?: string }
  /** The run is waiting for people. It pauses once the other calls of the batch have ended. */
  approval_requested: {
    readonly items: readonly PendingItem[]
    /** The call that asks, itself or through its child runs; absent if it has not started. */
    readonly callId?: string
    /** The background run that asks, if any: the id of the call that started it, `/` and its key. */
    readonly background?: string
    /**
     * States of the call's child runs, paused or ended, or of the background run: references to the logs of these runs.
     * Documents in a log that stands alone.
     */
    readonly children?: readonly StoredChild[]
    /** Calls of the batch that begin only after the call that asks has ended: ids, in the model's order. */
    readonly holds?: readonly string[]
  }
  /** A background run has ended; its report is part of the next request. */
  background_reported: {
    /** The call that started it. */
    readonly callId: string
    readonly toolName: string
    readonly childRunId: string
    readonly agent: string
    readonly ok: boolean
    /** Code of its error, if it failed. */
    readonly errorType: string | null
    /** As the model reads it. */
    readonly content: string
    readonly source: ContentSource
    /** Its usage, child runs included. */
    readonly childUsage: RunUsage
  }
  approval_resumed: { readonly decisions: readonly Answer[] }
  answer_received: { readonly callId: string; readonly answer: Answer }
  transcript_repaired: TranscriptRepair
  cache_bust: CacheBust
  /** The end of a run, or a pause. The answer is in the last reply: its text, or the output of its resolution. */
  run_completed: {
    readonly stopReason: HarnessResult['stopReason']
    readonly usage: RunUsage
    /** Call ids of what people have to answer; empty unless the run pauses. The items are in `approval_requested`. */
    readonly pending: readonly string[]
  }
  run_failed: {
    readonly stopReason: StopReason
    readonly code: HarnessErrorCode
    /** Name of the error that the caller receives. */
    readonly errorType: string
    readonly message: string
    /** HTTP status of the provider's response, if that caused the failure. */
    readonly status?: number
    /** The same request may succeed later. */
    readonly retryable?: true
    /** Why the provider gave no answer, if that caused the failure. */
    readonly failure?: ProviderFailure
    /** The attempts at the request that had no answer; absent if the run failed otherwise. Their cost is in `usage`. */
    readonly attempts?: readonly RequestAttempt[]
    readonly usage: RunUsage
  }
}

/** Fields of each ephemeral kind. Ephemeral events are streamed but never stored. */
export interface EphemeralPayloads {
  text_delta: {
    readonly text: string
    /** Unique in the run: the same for the deltas of one part of a reply. */
    readonly partId: string
  }
  reasoning_delta: {
    readonly text: string
    /** As in `text_delta`. */
    readonly partId: string
  }
  tool_input_delta: {
    readonly text: string
    readonly callId: string
    /** Absent until the provider has sent the name. */
    readonly toolName?: string
  }
  tool_progress: { readonly callId: string; readonly toolName: string; readonly update: JsonValue }
  output_delta: { readonly output: JsonValue }
  transport_retry: TransportRetry
  /** A request waits before it is sent. */
  request_waiting: RequestWait
  deltas_withdrawn: { readonly attempt: number }
  /** A problem that the run can continue without: a server that failed, a broken skill. */
  warning: { readonly message: string }
  /** The end of a run, if the log could not store it. */
  run_failed: DurablePayloads['run_failed']
  /** The last event of a run that was left when its harness was closed: `recover` continues it. */
  run_left: { readonly usage: RunUsage }
}

type EventOf<Payloads, Durable extends boolean> = {
  [Kind in keyof Payloads]: EventBase & { readonly kind: Kind; readonly durable: Durable } & Payloads[Kind]
}[keyof Payloads]

/** An event stored in the run's log. Together, a run's durable events rebuild its state. */
export type DurableEvent = EventOf<DurablePayloads, true>
/** An event that is only streamed. */
export type EphemeralEvent = EventOf<EphemeralPayloads, false>
/** An event emitted by a run, discriminated by `kind`. */
export type RunEvent = DurableEvent | EphemeralEvent
/**
 * An event as a stream yields it. Some durable events have members there that are not stored and not in their JSON, since
 * they repeat the content of other events.
 */
export type StreamEvent = {
  [Kind in RunEvent['kind']]: Extract<RunEvent, { kind: Kind }> &
    (Kind extends keyof StreamExtras ? StreamExtras[Kind] : unknown)
}[RunEvent['kind']]

/** Members that durable events have in a stream only. */
export interface StreamExtras {
  model_message: {
    /** The text of the reply. */
    readonly text: string
    readonly toolCalls: readonly { readonly id: string; readonly name: string }[]
  }
  run_completed: { readonly result: HarnessResult<unknown> }
}
export type RunEventKind = RunEvent['kind']

/** The kind of the event by which a run in the background reports its end. */
export const REPORTED = 'background_reported'

/** Events that a replay makes again. Others are of processes, people, hooks and adapters, or of a later version: taken as they are. */
export const REPLAYED_KINDS: ReadonlySet<string> = new Set<DurableEvent['kind']>([
  ...(['run_started', 'approval_resumed', 'answer_received', 'run_completed', 'run_failed'] as const),
  ...(['model_request_started', 'limit_warning', 'model_message', 'model_retry', 'approval_requested'] as const),
  ...(['call_prepared', 'tool_call_started', 'tool_call_completed', 'tool_call_interrupted'] as const),
])
