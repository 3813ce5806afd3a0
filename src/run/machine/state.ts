import { NO_USAGE, withTurn, withUsage } from '../../contracts/result.js'
import type { RunUsage, StopReason } from '../../contracts/result.js'
import { toolCallsOf } from '../../contracts/entry.js'
import type { ContentPart, ToolEntry, TranscriptEntry, Unstamped } from '../../contracts/entry.js'
import type { JsonObject, JsonValue } from '../../util/json.js'
import { verdictOf } from './answers.js'
import type { Answer } from './answers.js'
import {
  answerInBackground,
  forgetReports,
  leaveInBackground,
  reportEntries,
  reportFromBackground,
  waitInBackground,
} from './background-state.js'
import type { Background } from './background-state.js'
import type { BatchCall } from './batch-call.js'
import type { ConfigDigest } from './config-digest.js'
import { FINAL_RESULT } from '../../output/format.js'
import type { Resolution } from '../../output/resolve.js'
import type { DurableEvent, RequestKind } from './events.js'
import { countRetries } from './batch-retries.js'
import type { Exceeded } from './batch-retries.js'
import { batchBreach } from './limits.js'
import type { Breach } from './limits.js'
import type { RunRules } from './rules.js'
import { acceptedAnswer, cutOff, endedError } from './settled.js'
import type { CallNote, EndedError, SettledCall } from './settled.js'
import { asksVerdict } from './waiting.js'

/** Version of the stored form; one that is not ours is refused. */
export const RUN_STATE_VERSION = 1

/**
 * Everything that a run knows, as plain JSON: nothing alive is in it, and it is the only place where the conversation
 * is. It changes by `apply` alone.
 */
export interface RunState {
  readonly kind: 'run_state'
  readonly version: typeof RUN_STATE_VERSION
  readonly runId: string
  readonly parent: RunParent | null
  /** The last durable event that is in here. */
  seq: number
  readonly startedAt: string
  /** When it was last begun or gone on with, and the time of its last event: its clock. */
  begunAt: string
  updatedAt: string
  root: string
  provider: string
  model: string
  metadata: JsonObject
  rules: RunRules
  /** What the run is configured with since its first request. */
  config: ConfigDigest | null
  readonly prompt: string | readonly ContentPart[]
  readonly transcript: TranscriptEntry[]
  /** Where the entries of this run begin; what is before came with `resumeFrom`. */
  readonly firstEntry: number
  phase: Phase
  usage: RunUsage
  /** Keys of the notices that the model has been told. */
  readonly told: string[]
  /** W3C `traceparent` of the run's first span, where somebody traced it. */
  readonly traceparent?: string
  /** Why the last request was to be answered without tools; null when it was like any other. */
  closing: Breach | null
  /** Turns in a row whose calls brought nothing new, where that is counted. */
  staleTurns: number
  /** Retryable failures in a row, by tool name. */
  readonly streaks: Record<string, number>
  /** What is to be said of a call beside its entry, by call id. */
  readonly notes: Record<string, CallNote>
  /** Runs that ended calls have left behind, and what they have come to; absent while there is nothing of either. */
  background?: Background
}

export interface RunParent {
  readonly runId: string
  readonly callId: string
  readonly agentName: string
}

/** Where a run stands: what `decide` looks at. */
export type Phase =
  | { readonly at: 'opening' }
  | { readonly at: 'asking'; readonly requestKind: RequestKind; readonly notices: readonly string[] }
  | { readonly at: 'answered'; readonly resolution: Exclude<Resolution, { kind: 'continue' }> }
  | Batch
  | Ended

/** What a run came to. */
export interface Ended {
  readonly at: 'ended'
  readonly stopReason: StopReason
  /** The answer, where it is not the text of the last reply. */
  readonly output?: JsonValue
  /** Why there is none. */
  readonly error?: EndedError
}

/** The tool calls of one reply, in model order. */
export interface Batch {
  readonly at: 'batch'
  /** Within the budget of tool calls, and counted. */
  admitted: boolean
  readonly calls: readonly BatchCall[]
  /** People have answered for it. */
  resumed: boolean
  /** A tool that failed more often in a row than its budget allows. */
  exceeded: Exceeded | null
}

type Event<Kind extends DurableEvent['kind']> = DurableEvent & { kind: Kind }

/** The state of a run at its first event. */
export function openState(event: Event<'run_started'>): RunState {
  const { runId, parentRunId, parentToolCallId, agentName, history } = event
  return {
    kind: 'run_state',
    version: RUN_STATE_VERSION,
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
    prompt: event.prompt ?? '',
    transcript: [...history],
    firstEntry: history.length,
    phase: { at: 'opening' },
    usage: NO_USAGE,
    told: [],
    closing: null,
    staleTurns: 0,
    streaks: {},
    notes: {},
    ...(event.traceparent !== undefined && { traceparent: event.traceparent }),
  }
}

/**
 * The state after `event`: the only way that a run's state changes. It has no effects, asks nobody and depends on
 * nothing but its arguments. It owns `state` and changes it in place, since a copied transcript at each event would
 * make a long run quadratic; to keep the old state, hand in a `structuredClone` of it.
 */
export function apply(state: RunState, event: DurableEvent): RunState {
  if (event.seq !== state.seq + 1) {
    throw new RangeError(`Expected event ${state.seq + 1} of run \`${state.runId}\`, got event ${event.seq}.`)
  }
  state.seq = event.seq
  state.updatedAt = event.at
  change(state, event)
  return state
}

/** The state at the end of a run's events so far; `undefined` when there are none. */
export function fold(events: Iterable<DurableEvent>): RunState | undefined {
  let state: RunState | undefined
  for (const event of events) {
    if (state !== undefined) apply(state, event)
    else if (event.kind === 'run_started') state = openState(event)
    else throw new RangeError(`Expected a log to begin with \`run_started\`, got \`${event.kind}\`.`)
  }
  return state
}

function change(state: RunState, event: DurableEvent): void {
  switch (event.kind) {
    case 'model_request_started':
      return changeByRequest(state, event)
    case 'model_message':
      return changeByReply(state, event)
    case 'tool_call_started':
      return changeByStart(callOf(state, event.callId))
    case 'tool_call_interrupted':
      if (event.settledBy === 'retry') callOf(state, event.callId).started = false
      return
    case 'tool_call_completed':
      return changeByCompletion(state, event)
    case 'approval_requested':
      return changeByQuestions(state, event)
    case 'background_reported':
      return reportFromBackground(state, event)
    case 'answer_received':
      return changeByAnswer(state, event.answer)
    case 'run_completed':
      if (event.result.pending.length === 0) end(state, event.result.stopReason, event.at)
      return
    case 'run_failed':
      return end(state, event.stopReason, event.at, endedError(event))
    case 'run_started':
      return changeByGoingOn(state, event)
    case 'approval_resumed':
    case 'limit_warning':
    case 'model_retry':
    case 'transcript_repaired':
    case 'cache_bust':
      return
    case 'hook_failed':
      state.usage = { ...state.usage, hookFailures: state.usage.hookFailures + 1 }
      return
  }
}

/** A run that goes on does so under the rules of the harness that it goes on with. */
function changeByGoingOn(state: RunState, event: Event<'run_started'>): void {
  const { root, provider, model, metadata, rules } = event
  Object.assign(state, { root, provider, model, metadata, rules, begunAt: event.at })
  if (state.phase.at !== 'batch') return
  state.closing = null
  admit(state, state.phase)
}

function changeByRequest(state: RunState, event: Event<'model_request_started'>): void {
  if (event.config !== undefined) state.config = event.config
  closeReply(state, event.at)
  for (const entry of event.entries) state.transcript.push(entry)
  forgetReports(state)
  const retrying = event.requestKind === 'correction' || event.requestKind === 'output_retry_tool'
  if (retrying) state.usage = { ...state.usage, outputRetries: state.usage.outputRetries + 1 }
  state.closing = event.closing ?? null
  state.phase = { at: 'asking', requestKind: event.requestKind, notices: event.notices }
}

function changeByReply(state: RunState, { entry, resolution, cost }: Event<'model_message'>): void {
  if (state.phase.at === 'asking') state.told.push(...state.phase.notices)
  state.transcript.push(entry)
  const { provider, model, usage } = entry
  state.usage = withTurn(state.usage, { provider, model, usage, cost })
  if (resolution.kind !== 'continue') {
    state.phase = { at: 'answered', resolution }
    return
  }
  const calls = toolCallsOf(entry.parts).map(({ callId, name, arguments: text }) => {
    const fresh = { started: false, entries: 0, waiting: [], answers: [], verdict: null, children: [], settled: null }
    return { callId, name, arguments: text, ...fresh }
  })
  const batch: Batch = { at: 'batch', admitted: false, calls, resumed: false, exceeded: null }
  state.phase = batch
  admit(state, batch)
}

/** Counts the calls of a batch that is within the budget. */
function admit(state: RunState, batch: Batch): void {
  const { length } = batch.calls
  if (batch.admitted || batchBreach(state.rules, state.usage, length) !== undefined) return
  batch.admitted = true
  state.usage = { ...state.usage, toolCalls: state.usage.toolCalls + length }
}

function changeByStart(call: BatchCall): void {
  call.started = true
  call.entries += 1
  call.waiting = []
  call.verdict = null
}

function changeByQuestions(state: RunState, event: Event<'approval_requested'>): void {
  const { items, callId, children = [] } = event
  if (event.background !== undefined) return waitInBackground(state, event.background, items, children)
  if (callId === undefined) {
    for (const item of items) callOf(state, item.callId).waiting = [item]
    return
  }
  const call = callOf(state, callId)
  call.waiting = items
  // Whether it happened is asked about a call that has all its answers.
  if (items.some((item) => asksVerdict(call, item))) return
  // A decision on the call itself holds for each time that it is entered.
  call.answers = call.answers.filter((answer) => answer.callId === callId && 'approved' in answer)
  call.children = children
}

function changeByAnswer(state: RunState, answer: Answer): void {
  const { phase } = state
  if (answerInBackground(state, answer) || phase.at !== 'batch') return
  phase.resumed = true
  for (const call of phase.calls) {
    const item = call.waiting.find(({ callId }) => callId === answer.callId)
    if (item === undefined) continue
    if (asksVerdict(call, item)) call.verdict = verdictOf(answer)
    else call.answers = [...call.answers, answer]
    if (!('approved' in answer) || item.callId !== call.callId) continue
    const { approved, reason } = answer
    note(state, call.callId, { approval: { approved, ...(reason !== undefined && { reason }) } })
  }
}

function changeByCompletion(state: RunState, event: Event<'tool_call_completed'>): void {
  const { callId, at, output, parts, ok, cancelled, retryKind, childUsage, source, stale } = event
  const call = callOf(state, callId)
  const marks = { ...(source && { source }), ...(stale && { stale }) }
  call.settled = { at, output, parts: parts ?? null, ok, cancelled, retryKind, ...marks }
  call.waiting = []
  call.children = []
  leaveInBackground(state, event)
  if (childUsage !== undefined) state.usage = withUsage(state.usage, childUsage)
  if (cancelled) {
    state.usage = { ...state.usage, cancelledToolCalls: state.usage.cancelledToolCalls + 1 }
    note(state, callId, { cancelled: true })
  }
  const { phase } = state
  if (phase.at === 'batch' && phase.calls.every((call) => call.settled !== null)) closeBatch(state, phase)
}

function closeBatch(state: RunState, batch: Batch): void {
  const isStale = state.rules.stall !== undefined && batch.calls.every(({ settled }) => settled?.stale === true)
  state.staleTurns = isStale ? state.staleTurns + 1 : 0
  const { toolRetries } = state.usage
  const counted = countRetries(batch.calls, { rules: state.rules, streaks: state.streaks, toolRetries })
  state.usage = { ...state.usage, toolRetries: counted.toolRetries }
  batch.exceeded ??= counted.exceeded
}

/** Closes a run: what is still open in its transcript is answered. */
export function end(state: RunState, stopReason: StopReason, at: string, error?: Ended['error']): void {
  closeOpenCalls(state, at)
  for (const entry of reportEntries(state))
    state.transcript.push({ id: entryId(state.transcript.length), at, ...entry })
  delete state.background
  const { phase } = state
  const isFinal = stopReason === 'end_turn' && phase.at === 'answered' && phase.resolution.kind === 'final'
  const output = isFinal ? phase.resolution.output : undefined
  state.phase = { at: 'ended', stopReason, ...(output !== undefined && { output }), ...(error && { error }) }
}

/**
 * Moves the results of the batch in hand into the transcript, in model order. An answer given by a call is accepted there
 * when the run goes on behind it, because somebody still had something to say.
 */
function closeReply(state: RunState, at: string): void {
  const { phase } = state
  if (phase.at === 'batch') {
    for (const { callId, name, settled } of phase.calls) {
      if (settled !== null) pushResult(state, { callId, name }, settled)
    }
  }
  const callId = acceptedCall(phase)
  if (callId !== null) pushResult(state, { callId, name: FINAL_RESULT }, acceptedAnswer(at))
}

/** The `final_result` call by which the final answer was given. */
function acceptedCall(phase: Phase): string | null {
  return phase.at === 'answered' && phase.resolution.kind === 'final' ? phase.resolution.callId : null
}

/** At the end of a run no call stays without an answer: the transcript can be sent to any provider as it is. */
function closeOpenCalls(state: RunState, at: string): void {
  const { phase } = state
  const settled = new Map(phase.at === 'batch' ? phase.calls.map((call) => [call.callId, call]) : [])
  const last = state.transcript.at(-1)
  const accepted = acceptedCall(phase)
  if (last?.role !== 'assistant') return
  for (const { callId, name } of toolCallsOf(last.parts)) {
    const call = settled.get(callId)
    const open = callId === accepted ? acceptedAnswer(at) : cutOff(call?.started ?? false, at)
    pushResult(state, { callId, name }, call?.settled ?? open)
  }
}

function pushResult(state: RunState, call: { callId: string; name: string }, settled: SettledCall): void {
  const { at, output, parts, ok, source } = settled
  const content = parts === null ? output : [{ type: 'text' as const, text: output }, ...parts]
  const about = { callId: call.callId, name: call.name, content, isError: !ok, ...(source && { source }) }
  const entry: Unstamped<ToolEntry> = { role: 'tool', ...about }
  state.transcript.push({ id: entryId(state.transcript.length), at, ...entry })
}

/** Id of the entry at `index` of a transcript. */
export function entryId(index: number): string {
  return `e${index + 1}`
}

/** How many entries the transcript will have once the last reply is answered for by the next request. */
export function lengthWhenClosed({ transcript, phase }: RunState): number {
  if (phase.at === 'batch') return transcript.length + phase.calls.length
  return transcript.length + (acceptedCall(phase) === null ? 0 : 1)
}

function note(state: RunState, callId: string, added: CallNote): void {
  state.notes[callId] = { ...state.notes[callId], ...added }
}

function callOf(state: RunState, callId: string): BatchCall {
  const call = state.phase.at === 'batch' ? state.phase.calls.find((each) => each.callId === callId) : undefined
  if (call === undefined) throw new RangeError(`Expected call \`${callId}\` in the batch of run \`${state.runId}\`.`)
  return call
}
