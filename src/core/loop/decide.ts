import { unanswered } from '../state/batch-call.js'
import type { BatchCall } from '../state/batch-call.js'
import type { RequestKind } from '../state/events.js'
import {
  areLimitsFar,
  batchBreach,
  closingBreach,
  mayPass,
  requestBreach,
  sizeOf,
  stallBreach,
} from '../state/limit-checks.js'
import type { Breach, Standing } from '../state/limit-checks.js'
import { askedInBackground, worksInBackground } from '../state/background-state.js'
import type { Answered, Batch, RunState, RunParent } from '../state/state.js'
import type { BlockedReply } from '../state/resolve-turn.js'
import { limitNotices } from './limit-notices.js'
import type { LimitNotice } from './limit-notices.js'
import type { AssistantEntry } from '#contracts/entry.js'
import { HarnessError } from '#contracts/errors.js'
import { withTurn } from '#contracts/run-usage.js'
import type { PendingItem } from '#contracts/result.js'

/** The next thing that must happen in a run. */
export type Command =
  | {
      readonly kind: 'ask'
      readonly requestKind: RequestKind
      readonly correction: Correction | null
      readonly notices: readonly LimitNotice[]
      /** Why this is the last request, without tools; null for any other. */
      readonly closing: Breach | null
    }
  /** The request was begun and never answered: ask again, with nothing new. */
  | { readonly kind: 'ask_again'; readonly requestKind: RequestKind }
  | { readonly kind: 'run_tools'; readonly calls: readonly BatchCall[] }
  /** Calls of a batch that is over its budget: they are answered with that. */
  | { readonly kind: 'refuse_calls'; readonly calls: readonly BatchCall[] }
  /** Calls that had started when the process that ran them ended: what became of them is not known. */
  | { readonly kind: 'settle_unknown'; readonly calls: readonly BatchCall[] }
  | { readonly kind: 'wait'; readonly items: readonly PendingItem[] }
  /** There is an answer, and runs in the background are still at work: the next of them is waited for. */
  | { readonly kind: 'await_others' }
  /** There is an answer, for which there was hardly time: runs in the background end. */
  | { readonly kind: 'end_others' }
  | { readonly kind: 'finish' }
  | { readonly kind: 'fail'; readonly failure: Failure }
  | { readonly kind: 'ended' }

/** The message for a model whose final answer does not fit; `callId` names the `final_result` call that it answers. */
export interface Correction {
  readonly message: string
  readonly callId: string | null
}

/** Why a run cannot continue, by its own rules. */
export type Failure =
  | { readonly kind: 'limit'; readonly breach: Breach; readonly isBudget?: boolean }
  | { readonly kind: 'tool_retries'; readonly toolName: string; readonly budget: number; readonly count: number }
  | { readonly kind: 'output'; readonly message: string; readonly retries: number }
  | { readonly kind: 'unexpected'; readonly message: string }
  | BlockedReply

/** Returns what must happen next. Pure: the same state gives the same command, here and after a crash. */
export function decide(state: RunState): Command {
  const { phase } = state
  switch (phase.at) {
    case 'opening':
      return askModel(state, state.firstEntry > 0 ? 'resume' : 'start')
    case 'asking':
      return { kind: 'ask_again', requestKind: phase.requestKind }
    case 'batch':
      return decideBatch(state, phase)
    case 'answered':
      return decideAnswer(state, phase)
    case 'ended':
      return { kind: 'ended' }
  }
}

/** True if no request can follow a reply: the model had to answer, or the reply uses up a budget of requests. */
export function isLastReply(
  { closing, rules, usage: before }: RunState,
  { provider, model, usage }: Pick<AssistantEntry, 'provider' | 'model' | 'usage'>,
  cost: number | null,
): boolean {
  if (closing !== null && closing.kind !== 'stall') return true
  return requestBreach(rules, withTurn(before, { provider, model, usage, cost: cost ?? undefined })) !== undefined
}

/** True if background runs are in progress, or their reports have not been read. */
export function hasOtherRuns({ background }: RunState): boolean {
  return background !== undefined
}

/** Returns what must happen if a steering message arrives after the model has given its answer. */
export function decideSteering(state: RunState): Command {
  return askModel(state, 'steering')
}

function decideBatch(state: RunState, batch: Batch): Command {
  // The model called tools although it had to answer.
  if (state.closing !== null && state.closing.kind !== 'stall') {
    return overLimit(requestBreach(state.rules, state.usage) ?? state.closing)
  }
  const open: BatchCall[] = []
  const interrupted: BatchCall[] = []
  let hasQuestions = false
  for (const call of batch.calls) {
    if (call.settled !== null) continue
    open.push(call)
    if (call.waiting.length > 0) hasQuestions = true
    else if (call.started) interrupted.push(call)
  }
  if (!batch.admitted) return overBudget(state, batch, open)
  if (interrupted.length > 0) return { kind: 'settle_unknown', calls: interrupted }
  if (hasQuestions) return decideQuestions(state, open)
  if (open.length > 0) return { kind: 'run_tools', calls: open }
  if (batch.exceeded !== null) return { kind: 'fail', failure: { kind: 'tool_retries', ...batch.exceeded } }
  return askModel(state, batch.resumed ? 'approval_resume' : 'tool_outputs')
}

/** People are asked about some of the open calls. */
function decideQuestions(state: RunState, open: readonly BatchCall[]): Command {
  const runnable = open.some(holdsAll) ? [] : open.filter((call) => isRunnable(call, open))
  if (runnable.length > 0) return { kind: 'run_tools', calls: runnable }
  return { kind: 'wait', items: [...open.flatMap(unanswered), ...askedInBackground(state)] }
}

/** A call runs if nothing of it waits, or some of it is answered, and if no call before it holds it. */
function isRunnable(call: BatchCall, open: readonly BatchCall[]): boolean {
  if (call.waiting.length > 0 && call.waiting.length === unanswered(call).length) return false
  return !open.some(({ holds, callId }) => callId !== call.callId && holds?.includes(call.callId) === true)
}

/** A call that needs an approval holds the whole batch, and so does a call with an unknown outcome. */
function holdsAll(call: BatchCall): boolean {
  const own = unanswered(call).filter(({ callId }) => callId === call.callId)
  return own.some(({ kind }) => kind !== 'question')
}

function overBudget(state: RunState, batch: Batch, open: readonly BatchCall[]): Command {
  const breach = batchBreach(state.rules, state.usage, sizeOf(state.rules, batch.calls))
  // It is counted when the run continues, as a fork does with a budget of its own.
  if (breach === undefined) return { kind: 'run_tools', calls: open }
  if (state.rules.onLimit !== 'answer') return overLimit(breach)
  return open.length > 0 ? { kind: 'refuse_calls', calls: open } : askModel(state, 'tool_outputs')
}

function overLimit(breach: Breach): Command {
  return { kind: 'fail', failure: { kind: 'limit', breach } }
}

function decideAnswer(state: RunState, { resolution, retried }: Answered): Command {
  switch (resolution.kind) {
    case 'final':
      return decideFinal(state)
    case 'ask_again':
      if (resolution.reason === 'aborted') return askModel(state, 'correction', { message: CUT_OFF, callId: null })
      return askModel(state, resolution.reason === 'pause' ? 'pause_continuation' : 'empty_retry')
    case 'unexpected':
      if (retried === true) return askModel(state, 'correction', { message: resolution.message, callId: null })
      return { kind: 'fail', failure: { kind: 'unexpected', message: resolution.message } }
    case 'blocked':
      if (retried === true) return askModel(state, 'correction', { message: resolution.message, callId: null })
      return { kind: 'fail', failure: resolution }
    case 'retry_tool_output':
      return correct(state, 'output_retry_tool', { message: resolution.message, callId: resolution.callId })
    case 'retry_user_message':
      return correct(state, 'correction', { message: resolution.message, callId: null })
  }
}

/** The message for a model whose reply was cut off, if the run is continued. */
const CUT_OFF = 'Your last reply was cut off before its end. Continue, and give the final answer as a whole.'

/** A run does not end while background runs are in progress; their reports come before its answer if the budget allows it. */
function decideFinal(state: RunState): Command {
  const { background, closing } = state
  if (background === undefined) return { kind: 'finish' }
  const hasTime = closing?.kind !== 'time_ms'
  if (background.reports.length > 0 && hasTime) {
    const command = askModel(state, 'background_report')
    if (command.kind === 'ask') return command
  }
  if (background.runs.length === 0) return { kind: 'finish' }
  if (!hasTime) return { kind: 'end_others' }
  return worksInBackground(state) ? { kind: 'await_others' } : { kind: 'wait', items: askedInBackground(state) }
}

function correct(state: RunState, requestKind: RequestKind, correction: Correction): Command {
  const retries = state.rules.outputRetries
  const isRetried = state.phase.at === 'answered' && state.phase.retried === true
  if (state.usage.outputRetries >= retries && !isRetried) {
    return { kind: 'fail', failure: { kind: 'output', message: correction.message, retries } }
  }
  return askModel(state, requestKind, correction)
}

function askModel(state: RunState, requestKind: RequestKind, correction: Correction | null = null): Command {
  const standing = standingOf(state)
  if (areLimitsFar(standing)) return { kind: 'ask', requestKind, correction, notices: [], closing: null }
  const closing = closingBreach(standing)
  const breach = requestBreach(state.rules, state.usage) ?? stallBreach(standing)
  const isLast = closing !== undefined && state.closing === null && state.rules.onLimit === 'answer'
  if (breach !== undefined && !(isLast && mayPass(breach))) return overLimit(breach)
  const notices = limitNotices(standing, closing, state.told)
  return { kind: 'ask', requestKind, correction, notices, closing: closing ?? null }
}

function standingOf(state: RunState): Standing {
  const { rules, usage, phase, transcript, firstEntry, staleTurns, begunAt, updatedAt } = state
  let last = transcript.length - 1
  while (last >= firstEntry && transcript[last]?.role !== 'assistant') last -= 1
  const reply = last >= firstEntry ? transcript[last] : undefined
  return {
    rules,
    usage,
    staleTurns,
    elapsedMs: rules.limits.timeMs === null ? 0 : Date.parse(updatedAt) - Date.parse(begunAt),
    lastInputTokens: reply?.role === 'assistant' ? (reply.usage.inputTokens ?? 0) : 0,
    refusedCalls: phase.at === 'batch' && !phase.admitted ? sizeOf(rules, phase.calls) : null,
  }
}

/** The items that people have not answered; empty unless the run waits. */
export function pendingOf(state: RunState): readonly PendingItem[] {
  if (state.phase.at !== 'batch' && !hasOtherRuns(state)) return []
  const command = decide(state)
  return command.kind === 'wait' ? command.items : []
}

/** The rejection of a child run: it continues with its call. */
export function belowAnother(runId: string, parent: RunParent): HarnessError {
  const message = `Run \`${runId}\` was started by a call of run \`${parent.runId}\`, and continues only with that one.`
  return new HarnessError('invalid_state', message)
}
