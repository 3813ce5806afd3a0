import { NO_USAGE } from '#contracts/run-usage.js'
import type { StopReason } from '#contracts/result.js'
import type { RunUsage } from '#contracts/run-usage.js'
import { contentOf, entryId } from '#contracts/entry.js'
import type { TranscriptEntry } from '#contracts/entry.js'
import type { SubmittedRequest } from '#contracts/attempt.js'
import type { HarnessErrorCode } from '#contracts/errors.js'
import type { ProviderFailure } from '#contracts/provider-failure.js'
import type { Resolution } from './resolve-turn.js'
import { deepFreeze } from '#util/json.js'
import type { JsonObject, JsonValue } from '#util/json.js'
import type { Background } from './background-state.js'
import type { BatchCall } from './batch-call.js'
import type { ConfigDigest } from './config-digest.js'
import { FORMAT_VERSION } from './events.js'
import type { DurableEvent, RequestKind } from './events.js'
import { isReference } from './history.js'
import type { Conversation } from './history.js'
import type { Labels } from './labels.js'
import type { Breach } from './limit-checks.js'
import { NO_RULES } from './run-rules.js'
import type { RunRules } from './run-rules.js'
import type { HostNotice } from './seen-notices.js'
import type { CallNote } from './call-endings.js'
import type { View } from './view.js'

/**
 * Everything that a run knows, as plain JSON without live objects, and the only copy of the conversation.
 * Only `apply` changes it.
 */
export interface RunState {
  readonly kind: 'run_state'
  readonly version: typeof FORMAT_VERSION
  readonly runId: string
  readonly parent: RunParent | null
  /** The last durable event that is in here. */
  seq: number
  readonly startedAt: string
  /** The time when it was last begun or continued, and the time of its last event: its clock. */
  begunAt: string
  updatedAt: string
  root: string
  provider: string
  model: string
  metadata: JsonObject
  /** Absent if there are none. */
  labels?: Labels
  rules: RunRules
  /** The configuration of the run since its first request. */
  config: ConfigDigest | null
  readonly transcript: TranscriptEntry[]
  /** Index of the prompt in the transcript; the entries before it are the history of the run. */
  readonly firstEntry: number
  phase: Phase
  usage: RunUsage
  /** Keys of the notices that the model has read. */
  readonly told: string[]
  /** W3C `traceparent` of the run's first span, if it is traced. */
  readonly traceparent?: string
  /** Why the last request was to be answered without tools; null when it was like any other. */
  closing: Breach | null
  /** Turns in a row whose calls brought nothing new, if they are counted. */
  staleTurns: number
  /** Turns in a row with retryable failures, by tool name. */
  streaks: Record<string, number>
  /** Facts about calls that are not in their entries, by call id. */
  readonly notes: Record<string, CallNote>
  /** Runs in the background and their unread reports; absent if there are none. */
  background?: Background
  /** Which entries the model gets in another form; absent until that changes for the first time. */
  view?: View
  /** The last notices of the host that the model can still see, by name. */
  hostNotices?: Record<string, HostNotice>
  /** Values that extensions have recorded, by the name of the extension. */
  recorded?: Record<string, JsonValue[]>
  /** Absent unless its last event is `run_queued`: it has not begun. */
  queued?: true
  /** Of a program: the whole values that its calls have returned, by call id, in the order of their ends. */
  values?: [callId: string, value: JsonValue][]
  /** Why the run is paused; absent unless its last event is that pause. */
  paused?: StopReason
}

export interface RunParent {
  readonly runId: string
  readonly callId: string
  readonly agentName: string
}

/** The position of a run, or its end: the input of `decide`. */
export type Phase = Position | Ended

/** The position of a run that has not ended. */
export type Position = { readonly at: 'opening' } | Asking | Answered | Batch

/** A request has begun, and has no reply. */
interface Asking {
  readonly at: 'asking'
  readonly requestKind: RequestKind
  readonly notices: readonly string[]
  /** The provider has accepted it under this id. */
  readonly submitted?: SubmittedRequest
}

export interface Answered {
  readonly at: 'answered'
  readonly resolution: Exclude<Resolution, { kind: 'continue' }>
  /** The run failed with this reply and is retried: one corrective request is allowed, whatever the budget. */
  readonly retried?: true
}

/** Why a run ended without an answer. */
export interface EndedError {
  readonly code: HarnessErrorCode
  readonly message: string
  /** HTTP status of the provider's answer, if the request failed. */
  readonly status?: number
  /** The same request may succeed later. */
  readonly retryable?: true
  /** Why the provider gave no answer, if the request failed. */
  readonly failure?: ProviderFailure
}

/** The end of a run. */
export interface Ended {
  readonly at: 'ended'
  readonly stopReason: StopReason
  /** The answer, if it is not the text of the last reply. */
  readonly output?: JsonValue
  /** The reason why there is no answer. */
  readonly error?: EndedError
  /** The position of the run when it failed: a retry continues there. */
  readonly position?: Position
}

/** A tool that failed in more turns in a row than its budget allows. */
export interface Exceeded {
  readonly toolName: string
  readonly budget: number
  readonly count: number
}

/** The tool calls of one reply, in model order. */
export interface Batch {
  readonly at: 'batch'
  /** Within the budget of tool calls, and counted. */
  admitted: boolean
  readonly calls: readonly BatchCall[]
  /** People have answered for it. */
  resumed: boolean
  exceeded: Exceeded | null
}

/** The state of a run at its first event. The conversation before it is given if the event only refers to it. */
export function openState(
  event: DurableEvent & { kind: 'run_started' },
  { entries, view }: Conversation = inlineIn(event),
): RunState {
  const { runId, parentRunId, parentToolCallId, agentName } = event
  return {
    kind: 'run_state',
    version: FORMAT_VERSION,
    runId,
    parent:
      parentRunId === null ? null : { runId: parentRunId, callId: parentToolCallId ?? '', agentName: agentName ?? '' },
    seq: event.seq,
    startedAt: event.at,
    begunAt: event.at,
    updatedAt: event.at,
    root: event.root,
    provider: event.provider,
    model: event.model,
    metadata: event.metadata,
    rules: event.rules,
    config: null,
    transcript: [...entries, promptEntry(event, entries.length)],
    firstEntry: entries.length,
    phase: { at: 'opening' },
    usage: NO_USAGE,
    told: [],
    closing: null,
    staleTurns: 0,
    streaks: {},
    notes: {},
    ...(event.labels !== undefined && { labels: event.labels }),
    ...(event.traceparent !== undefined && { traceparent: event.traceparent }),
    ...(view !== undefined && { view }),
  }
}

/** The state of a run that waits to be begun: nothing is known yet of what will run it. */
export function queuedState(event: DurableEvent & { kind: 'run_queued' }): RunState {
  const unknown = { ...event, root: '', provider: '', model: '', rules: NO_RULES, history: [] } as const
  const started = {
    ...unknown,
    kind: 'run_started',
    begun: 'fresh',
    maxModelRequests: null,
    maxToolCalls: null,
  } as const
  return { ...openState(started), queued: true }
}

/** The prompt of a run, as an entry of its transcript. */
export function promptEntry(
  { at, prompt }: Pick<DurableEvent & { kind: 'run_started' }, 'at' | 'prompt'>,
  index: number,
): TranscriptEntry {
  return deepFreeze({ id: entryId(index), at, role: 'user', content: contentOf(prompt ?? '') })
}

function inlineIn({ runId, history, view }: DurableEvent & { kind: 'run_started' }): Conversation {
  if (!isReference(history)) return { entries: history, ...(view && { view }) }
  throw new RangeError(
    `Expected the history of run \`${runId}\` to be resolved: it is that of run \`${history.runId}\`.`,
  )
}
