import type { HarnessErrorCode } from '../../contracts/errors.js'
import type { CacheBust, TransportRetry } from '../../contracts/model.js'
import type { TranscriptRepair } from '../../contracts/mend.js'
import type { Resolution } from '../../output/resolve.js'
import type { HarnessResult, PendingItem, ResumeState, RunUsage, StopReason } from '../../contracts/result.js'
import type {
  AssistantEntry,
  ContentPart,
  ContentSource,
  ToolEntry,
  TranscriptEntry,
  UserEntry,
} from '../../contracts/entry.js'
import type { JsonObject, JsonValue } from '../../util/json.js'
import type { Answer } from './answers.js'
import type { LeftRun } from './background-state.js'
import type { ConfigDigest } from './config-digest.js'
import type { Breach } from './limits.js'
import type { LimitKind, RunRules } from './rules.js'

/** On every event. */
export interface EventBase {
  readonly runId: string
  /**
   * Durable events of a run are numbered from 1 without gaps: the cursor of every reader. An ephemeral event carries
   * the number of the durable one that it follows.
   */
  readonly seq: number
  /** ISO 8601 in UTC with milliseconds. */
  readonly at: string
  /** Kept in the run's log before it is told. */
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

/** What each durable kind carries, beside the fields of every event. */
export interface DurablePayloads {
  run_started: {
    /**
     * `resumed` and `recovered`: a run goes on whose first `run_started` is further up in its log, or whose `state` is
     * here; `forked`: a new run goes on from `state`, which was another's.
     */
    readonly begun: 'fresh' | 'resumed' | 'recovered' | 'forked'
    /** As the caller gave it; null when a run goes on. */
    readonly prompt: string | readonly ContentPart[] | null
    readonly root: string
    readonly provider: string
    readonly model: string
    readonly maxModelRequests: number | null
    readonly maxToolCalls: number | null
    readonly metadata: JsonObject
    /** W3C `traceparent` of the span that begins here, where somebody traces the run. */
    readonly traceparent?: string
    /** What decides the course of the run: limits and budgets. */
    readonly rules: RunRules
    /** The conversation that the run goes on from (`resumeFrom`); empty for a fresh one. */
    readonly history: readonly TranscriptEntry[]
    /** All that came before, where the log does not hold it: of a run that is resumed from a stored state. */
    readonly state?: ResumeState
  }
  model_request_started: {
    readonly requestKind: RequestKind
    readonly provider: string
    readonly model: string
    /** What the harness adds to the transcript for this request, behind the batch's results: prompt, correction, steering, notices. */
    readonly entries: readonly (UserEntry | ToolEntry)[]
    /** Keys of the notices among the entries. */
    readonly notices: readonly string[]
    /** With the first request, and again when a run that goes on is configured otherwise. */
    readonly config?: ConfigDigest
    /** Why this is the last request, to be answered without tools: the end of a budget, or turns without news. */
    readonly closing?: Breach
  }
  limit_warning: { readonly limitKind: LimitKind; readonly remaining: number; readonly content: string }
  model_message: {
    readonly text: string
    readonly toolCalls: readonly { readonly id: string; readonly name: string }[]
    /** The mode in which a structured output was settled by this reply. */
    readonly finalizedOutputMode: string | null
    readonly entry: AssistantEntry
    readonly resolution: Resolution
    readonly nativeFinishReason: string | null
    readonly responseId: string | null
    readonly responseModel: string | null
    /** In whole micro-dollars, rounded up, at the price of that time; absent where it is not known. */
    readonly cost?: number
  }
  tool_call_started: {
    readonly callId: string
    readonly toolName: string
    readonly toolIndex: number
    /** Raw JSON text. */
    readonly arguments: string
  }
  tool_call_completed: {
    readonly callId: string
    readonly toolName: string
    readonly toolIndex: number
    readonly ok: boolean
    readonly cancelled: boolean
    /** Class of the failure when it counts against the tool's retry budget, as it was before hooks. */
    readonly retryKind: string | null
    readonly errorType: string | null
    /** The envelope's content when the call did not succeed. */
    readonly message: string | null
    /** From start to outcome, hooks included, in ms. */
    readonly durationMs: number
    /** The envelope's JSON text, as the model reads it. */
    readonly output: string
    /** Images and files beside the envelope. */
    readonly parts?: readonly ContentPart[]
    /** Where the content comes from, as far as the tool says. */
    readonly source?: ContentSource
    /** What the runs that the call started have used, when it started any. */
    readonly childUsage?: RunUsage
    /** Runs that it left behind in the background: they begin now. */
    readonly background?: readonly LeftRun[]
    /** It brought nothing that the calls before it had not brought; told where a run watches for that (`stall`). */
    readonly stale?: true
  }
  /** A call had started when the process that ran it ended: how it is settled. */
  tool_call_interrupted: {
    readonly callId: string
    readonly toolName: string
    readonly toolIndex: number
    readonly settledBy: 'retry' | 'report' | 'pause' | 'reconcile'
  }
  model_retry: {
    readonly retryKind: 'structured_output' | 'tool_retry'
    readonly message: string
    readonly callId: string | null
  }
  hook_failed: { readonly hookEvent: string; readonly message: string }
  /** The run waits for people: it pauses, unless others of the batch still run. */
  approval_requested: {
    readonly items: readonly PendingItem[]
    /** The call that asks, when it has started: itself, or through runs that it started. */
    readonly callId?: string
    /** The run in the background that asks, when it is one: the id of the call that left it, `/` and its key. */
    readonly background?: string
    /** The runs that the call started, as they are now: those that wait, and those that have ended; or the one in the background. */
    readonly children?: readonly ResumeState[]
  }
  /** A run in the background has ended; the model reads of it with the next request. */
  background_reported: {
    /** The call that left it. */
    readonly callId: string
    readonly toolName: string
    readonly childRunId: string
    readonly agent: string
    readonly ok: boolean
    /** Code of its error. */
    readonly errorType: string | null
    /** As the model reads it. */
    readonly content: string
    readonly source: ContentSource
    /** What it and the runs below it have used. */
    readonly childUsage: RunUsage
  }
  approval_resumed: { readonly decisions: readonly Answer[] }
  answer_received: { readonly callId: string; readonly answer: Answer }
  transcript_repaired: TranscriptRepair
  cache_bust: CacheBust
  run_completed: { readonly result: HarnessResult<unknown> }
  run_failed: {
    readonly stopReason: StopReason
    readonly code: HarnessErrorCode
    /** Name of the error that the caller gets. */
    readonly errorType: string
    readonly message: string
    /** HTTP status of the provider's answer, where that was what failed. */
    readonly status?: number
    /** The same request may succeed later. */
    readonly retryable?: true
    readonly usage: RunUsage
  }
}

/** What each ephemeral kind carries. Ephemeral events are streamed, never stored, never needed. */
export interface EphemeralPayloads {
  text_delta: { readonly text: string }
  reasoning_delta: { readonly text: string }
  tool_input_delta: { readonly text: string; readonly callId: string }
  tool_progress: { readonly callId: string; readonly toolName: string; readonly update: JsonValue }
  output_delta: { readonly output: JsonValue }
  transport_retry: TransportRetry
  deltas_withdrawn: { readonly attempt: number }
  /** What the host should know and the run can do without: a server that failed, a skill that is broken. */
  warning: { readonly message: string }
  /** The end of a run whose log could not keep it. */
  run_failed: DurablePayloads['run_failed']
}

type EventOf<Payloads, Durable extends boolean> = {
  [Kind in keyof Payloads]: EventBase & { readonly kind: Kind; readonly durable: Durable } & Payloads[Kind]
}[keyof Payloads]

/** An event that is kept in the run's log and, with the ones before it, rebuilds the run's state. */
export type DurableEvent = EventOf<DurablePayloads, true>
/** An event that only listeners get. */
export type EphemeralEvent = EventOf<EphemeralPayloads, false>
/** What a run tells. Tell them apart by `kind`. */
export type RunEvent = DurableEvent | EphemeralEvent
export type RunEventKind = RunEvent['kind']
