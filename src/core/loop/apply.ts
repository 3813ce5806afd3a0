import { withCall, withTokens, withTurn } from '#contracts/run-usage.js'
import { withText } from '#contracts/notices.js'
import { deepFreeze } from '#util/json.js'
import { FINAL_RESULT } from '../state/output-format.js'
import { verdictOf } from '../state/answers.js'
import type { Answer } from '../state/answers.js'
import {
  answerInBackground,
  forgetReports,
  leaveInBackground,
  reportFromBackground,
  waitInBackground,
} from '../state/background-state.js'
import { asksVerdict } from '../state/batch-call.js'
import type { BatchCall } from '../state/batch-call.js'
import { closeReply, complete, fail } from '../state/closing.js'
import type { DurableEvent } from '../state/events.js'
import { batchBreach, sizeOf } from '../state/limit-checks.js'
import { retryBudget } from '../state/run-rules.js'
import { setAsideAnswer } from '../state/call-endings.js'
import type { CallNote } from '../state/call-endings.js'
import { forgetHidden, rememberNotices } from '../state/seen-notices.js'
import type { Conversation } from '../state/history.js'
import { openState, promptEntry, queuedState } from '../state/state.js'
import type { Batch, RunState } from '../state/state.js'
import { withChanges, withPrepared } from '../state/view.js'

type Event<Kind extends DurableEvent['kind']> = DurableEvent & { kind: Kind }

/**
 * The state after `event`: the only way that a run's state changes. It has no effects and depends on
 * nothing but its arguments. It owns `state` and changes it in place, since a copied transcript at each event would
 * make a long run quadratic; to keep the old state, hand in a `structuredClone` of it.
 */
export function apply(state: RunState, event: DurableEvent): RunState {
  if (event.seq !== state.seq + 1) {
    throw new RangeError(`Expected event ${state.seq + 1} of run \`${state.runId}\`, got event ${event.seq}.`)
  }
  state.seq = event.seq
  state.updatedAt = event.at
  // To delete a member makes an object slow for the rest of its life.
  if (state.paused !== undefined) delete state.paused
  change(state, event)
  if (state.queued !== undefined) delete state.queued
  return state
}

/** The state at the end of a run's events, which follow `before`; `undefined` when there are none. */
export function fold(events: Iterable<DurableEvent>, history?: Conversation, before?: RunState): RunState | undefined {
  let state = before
  for (const event of events) {
    if (state !== undefined) apply(state, event)
    else state = stateAtFirst(event, history)
  }
  return state
}

/** The state at the first event of a log. */
export function stateAtFirst(event: DurableEvent, history?: Conversation): RunState {
  if (event.kind === 'run_queued') return queuedState(event)
  if (event.kind === 'run_started') return openState(event, history)
  throw new RangeError(`Expected a log to begin with \`run_started\`, got \`${event.kind}\`.`)
}

/** A copy of a state that shares the entries of the transcript, and nothing else. */
export function copyOfState({ transcript, ...rest }: RunState): RunState {
  return { ...structuredClone(rest), transcript: [...transcript] }
}

function change(state: RunState, event: DurableEvent): void {
  switch (event.kind) {
    case 'model_request_started':
      return changeByRequest(state, event)
    case 'model_message':
      return changeByReply(state, event)
    case 'call_prepared':
      return changeByPreparation(callOf(state, event.callId), event)
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
      if (event.pending.length === 0) complete(state, event)
      else state.paused = event.stopReason
      return
    case 'run_failed':
      return fail(state, event)
    case 'view_changed':
      return changeByView(state, event)
    case 'view_prepared':
      return changeByPrepared(state, event)
    case 'extension_recorded':
      return changeByRecord(state, event)
    case 'aside':
      state.usage = withTokens(
        state.usage,
        event.usage,
        event.costUsd === null ? null : Math.round(event.costUsd * 1e6),
      )
      return
    case 'run_started':
      return changeByContinuation(state, event)
    case 'run_queued':
      throw new RangeError(`Expected run \`${state.runId}\` to be queued by its first event only.`)
    case 'request_submitted': {
      const { provider, id } = event
      if (state.phase.at === 'asking') state.phase = { ...state.phase, submitted: { provider, id } }
      return
    }
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

/** A run continues under the rules of the harness that continues it. */
function changeByContinuation(state: RunState, event: Event<'run_started'>): void {
  const { root, provider, model, metadata, rules } = event
  Object.assign(state, { root, provider, model, metadata, rules, begunAt: event.at })
  if (state.queued === true) beginQueued(state, event)
  if (event.begun === 'retried') reopen(state)
  if (state.phase.at !== 'batch') return
  state.closing = null
  admit(state, state.phase)
}

/** A run that waited begins with the prompt and the labels that it has now. */
function beginQueued(state: RunState, event: Event<'run_started'>): void {
  if (event.labels !== undefined) state.labels = event.labels
  if (event.prompt !== null) state.transcript[state.firstEntry] = promptEntry(event, state.firstEntry)
}

/** Puts a failed or cancelled run back to its last position, with new budgets for consecutive failures. */
function reopen(state: RunState): void {
  const { phase } = state
  if (phase.at !== 'ended' || phase.position === undefined)
    throw new RangeError(`Expected run \`${state.runId}\` to have failed, so that it can be retried.`)
  const { position } = phase
  state.phase = position.at === 'answered' ? { ...position, retried: true } : position
  if (position.at === 'batch') position.exceeded = null
  state.streaks = {}
  state.staleTurns = 0
}

function changeByRequest(state: RunState, event: Event<'model_request_started'>): void {
  if (event.config !== undefined) state.config = event.config
  if (state.phase.at === 'opening') addToPrompt(state, event.promptAddition)
  closeReply(state, event.at)
  for (const entry of event.entries) state.transcript.push(entry)
  if (event.hostNotices !== undefined) rememberNotices(state, event.hostNotices)
  if (state.background !== undefined) forgetReports(state)
  const { phase, usage } = state
  // A reply that was cut off is continued by a correction too.
  const isRefused = phase.at === 'answered' && phase.resolution.kind !== 'ask_again'
  const retrying = event.requestKind === 'correction' || event.requestKind === 'output_retry_tool'
  if (retrying && isRefused) state.usage = { ...usage, outputRetries: usage.outputRetries + 1 }
  state.closing = event.closing ?? null
  state.phase = { at: 'asking', requestKind: event.requestKind, notices: event.notices }
}

function changeByView(state: RunState, { changes, policy }: Event<'view_changed'>): void {
  if (changes.length === 0) return
  forgetHidden(state, changes)
  state.view = withChanges(state, changes, policy)
}

function changeByPrepared(state: RunState, { policy, from, to, shown }: Event<'view_prepared'>): void {
  if (shown !== null) state.view = withPrepared(state, { policy, from, to, shown })
}

function changeByRecord(state: RunState, { extension, value }: Event<'extension_recorded'>): void {
  const values = state.recorded?.[extension]
  if (values === undefined) state.recorded = { ...state.recorded, [extension]: [value] }
  else values.push(value)
}

/** The prompt has not been sent before its first request: until then it may grow. */
function addToPrompt({ transcript, firstEntry }: RunState, addition: string | undefined): void {
  const prompt = transcript[firstEntry]
  if (addition === undefined || prompt?.role !== 'user') return
  transcript[firstEntry] = deepFreeze({ ...prompt, content: withText(prompt.content, addition) })
}

function changeByReply(state: RunState, event: Event<'model_message'>): void {
  const { at, entry, resolution, cost, attempts, resolvedCalls = [], blocked } = event
  if (state.phase.at === 'asking') state.told.push(...state.phase.notices)
  if (blocked === undefined) state.transcript.push(entry)
  const { provider, model, usage } = entry
  if (state.rules.computed === true) state.usage = { ...state.usage, scriptSteps: (state.usage.scriptSteps ?? 0) + 1 }
  else state.usage = withTurn(state.usage, { provider, model, usage, cost, attempts })
  if (resolution.kind !== 'continue') {
    state.phase = { at: 'answered', resolution }
    return
  }
  const calls: BatchCall[] = []
  for (const part of entry.parts) {
    if (part.type !== 'tool_call') continue
    const { callId } = part
    const other = resolvedCalls.find((call) => call.callId === callId)
    const { name, arguments: text } = other ?? part
    if (other !== undefined) note(state, callId, { call: { name, arguments: text, via: part.name } })
    const settled = state.rules.answersByTool && name === FINAL_RESULT ? setAsideAnswer(at) : null
    calls.push({
      callId,
      name,
      arguments: text,
      started: false,
      entries: 0,
      waiting: [],
      answers: [],
      verdict: null,
      children: [],
      settled,
      ...(other !== undefined && { via: part.name }),
    })
  }
  const batch: Batch = { at: 'batch', admitted: false, calls, resumed: false, exceeded: null }
  state.phase = batch
  admit(state, batch)
}

/** Counts the calls of a batch that is within the budget. */
function admit(state: RunState, batch: Batch): void {
  const size = state.rules.answersByTool ? sizeOf(state.rules, batch.calls) : batch.calls.length
  if (batch.admitted || batchBreach(state.rules, state.usage, size) !== undefined) return
  batch.admitted = true
  state.usage = { ...state.usage, toolCalls: state.usage.toolCalls + size }
}

function changeByPreparation(call: BatchCall, { arguments: text, cancelled }: Event<'call_prepared'>): void {
  call.prepared = { ...(text !== undefined && { arguments: text }), ...(cancelled !== undefined && { cancelled }) }
}

function changeByStart(call: BatchCall): void {
  call.started = true
  call.entries += 1
  call.waiting = []
  call.verdict = null
  if (call.holds !== undefined) delete call.holds
}

function changeByQuestions(state: RunState, event: Event<'approval_requested'>): void {
  const { items, callId, children = [] } = event
  if (event.background !== undefined) return waitInBackground(state, event.background, { items, children })
  if (callId === undefined) {
    for (const item of items) callOf(state, item.callId).waiting = [item]
    return
  }
  const call = callOf(state, callId)
  call.waiting = items
  // A call whose outcome is asked for has all its answers.
  if (items.some((item) => asksVerdict(call, item))) return
  // A decision on the call itself holds for each time that it is entered.
  call.answers = call.answers.filter((answer) => answer.callId === callId)
  call.children = children
  if (event.holds !== undefined) call.holds = event.holds
}

function changeByAnswer(state: RunState, answer: Answer): void {
  const { phase } = state
  if (answerInBackground(state, answer) || phase.at !== 'batch') return
  phase.resumed = true
  for (const call of phase.calls) {
    const item = call.waiting.find(({ callId }) => callId === answer.callId)
    if (item === undefined) continue
    if (asksVerdict(call, item)) call.verdict = verdictOf(answer)
    else call.answers = [...call.answers, item.key === undefined ? answer : { ...answer, key: item.key }]
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
  if (event.background !== undefined) leaveInBackground(state, { ...event, background: event.background })
  if (childUsage !== undefined) state.usage = withCall(state.usage, childUsage)
  if (state.rules.computed === true && event.value !== undefined) (state.values ??= []).push([callId, event.value])
  const { unrecorded = 0 } = state.usage
  if (event.unrecorded !== undefined)
    state.usage = { ...state.usage, unrecorded: unrecorded + Number(event.unrecorded) }
  if (cancelled) {
    state.usage = { ...state.usage, cancelledToolCalls: state.usage.cancelledToolCalls + 1 }
    note(state, callId, { cancelled: true })
  }
  if (state.phase.at === 'batch') closeBatch(state, state.phase)
}

/**
 * Once every call has ended, counts the failures of the batch, in model order: the order in which calls ended is random. The
 * model has seen none of them before: those of one tool are one failure in a row.
 */
function closeBatch(state: RunState, batch: Batch): void {
  let isStale = state.rules.stall !== undefined
  for (const call of batch.calls) {
    if (call.settled === null) return
    isStale &&= call.settled.stale === true || (state.rules.answersByTool && call.name === FINAL_RESULT)
  }
  state.staleTurns = isStale ? state.staleTurns + 1 : 0
  const { rules, streaks } = state
  const failing = new Set<string>()
  for (const { name, settled } of batch.calls) {
    if (settled === null || settled.cancelled) continue
    if (settled.ok) {
      streaks[name] = 0
      failing.delete(name)
    }
    if (settled.retryKind === null) continue
    const toolRetries = { ...state.usage.toolRetries, [name]: countOf(state.usage.toolRetries, name) + 1 }
    state.usage = { ...state.usage, toolRetries }
    // A program that fails is one failed call of the run above it; what it catches counts nowhere.
    if (failing.has(name) || rules.computed === true) continue
    failing.add(name)
    streaks[name] = countOf(streaks, name) + 1
  }
  for (const name of failing) {
    const [count, budget] = [countOf(streaks, name), retryBudget(rules, name)]
    if (count > budget) batch.exceeded ??= { toolName: name, budget, count }
  }
}

/** A tool may be called `constructor`. */
function countOf(counts: Readonly<Record<string, number>>, name: string): number {
  return Object.hasOwn(counts, name) ? (counts[name] ?? 0) : 0
}

function note(state: RunState, callId: string, added: CallNote): void {
  state.notes[callId] = { ...state.notes[callId], ...added }
}

function callOf(state: RunState, callId: string): BatchCall {
  if (state.phase.at === 'batch') for (const call of state.phase.calls) if (call.callId === callId) return call
  throw new RangeError(`Expected call \`${callId}\` in the batch of run \`${state.runId}\`.`)
}
