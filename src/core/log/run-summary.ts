import type { HarnessErrorCode } from '#contracts/errors.js'
import type { PendingItem, StopReason } from '#contracts/result.js'
import type { RunUsage } from '#contracts/run-usage.js'
import type { JsonObject } from '#util/json.js'
import type { Labels } from '../state/labels.js'
import { askedInBackground } from '../state/background-state.js'
import type { Phase, RunParent, RunState } from '../state/state.js'
import { unanswered } from '../state/batch-call.js'

/**
 * The status of a run, seen from outside. `queued`: it waits to be begun, by `recover`; `running`: it has not ended and a process owns it; `interrupted`: it has not
 * ended and no process owns it, so that it can be recovered; `paused`: it waits for a person; `unreadable`: its log is
 * damaged, or of a version that is not known, as its `error` says.
 */
export type RunStatus =
  'queued' | 'running' | 'paused' | 'interrupted' | 'completed' | 'failed' | 'cancelled' | 'unreadable'

/** The summary of a run. */
export interface RunSummary {
  readonly runId: string
  readonly status: RunStatus
  /** How it ended, or why it is paused; null during the run. */
  readonly stopReason: StopReason | null
  /** Times of the first and the last event, and of the one that ended it: ISO 8601 in UTC. */
  readonly startedAt: string
  readonly updatedAt: string
  readonly endedAt: string | null
  /** The model that the run last began or continued with. */
  readonly provider: string | null
  readonly model: string | null
  readonly metadata: JsonObject
  readonly labels: Labels
  readonly usage: RunUsage
  /** Items that people have to answer, including those of its child runs. */
  readonly pending: readonly PendingItem[]
  /** The run and the call that started it; null at the top. */
  readonly parent: RunParent | null
  readonly error: { readonly code: HarnessErrorCode; readonly message: string } | null
  /** Number of the last event. */
  readonly lastSeq: number
  /** Where its last append is among those of all runs: see `changedAfter` of `list`. */
  readonly cursor: string
}

/** The summary of a thread. */
export interface ThreadSummary {
  readonly threadId: string
  /** Times of the first and the last event: ISO 8601 in UTC. */
  readonly createdAt: string
  readonly updatedAt: string
  /** Number of the last event. */
  readonly lastSeq: number
  /** As of a run, among the threads. */
  readonly cursor: string
  /** The owner; null if there is none, or its process has ended. */
  readonly owner: string | null
  /** The digest that its writer passed with the last events; null if there was none. */
  readonly digest: JsonObject | null
  /** Why its log cannot be read; absent if it can. */
  readonly error?: { readonly code: HarnessErrorCode; readonly message: string }
}

/** A summary of each kind of log. */
export interface LogSummaries {
  readonly run: RunSummary
  readonly thread: ThreadSummary
}

/** The summary of a run that a log stores in addition to the events; without its owner and its place in the log. */
export interface RunDigest extends Omit<RunSummary, 'status' | 'cursor'> {
  readonly phase: 'queued' | 'open' | 'paused' | 'completed' | 'failed' | 'cancelled'
}

/** The digest of a run. Does not look at its transcript. */
export function digestOf(state: RunState): RunDigest {
  const { runId, seq, startedAt, updatedAt, provider, model, metadata, usage, parent, phase, paused } = state
  const ended = phase.at === 'ended' ? phase : null
  return {
    runId,
    phase: ended === null ? phaseOf(state) : endOf(ended),
    stopReason: ended?.stopReason ?? paused ?? null,
    startedAt,
    updatedAt,
    endedAt: ended === null ? null : updatedAt,
    provider: provider === '' ? null : provider,
    model: model === '' ? null : model,
    metadata,
    labels: state.labels ?? {},
    usage,
    pending: pendingIn(state),
    parent,
    error: ended?.error === undefined ? null : { code: ended.error.code, message: ended.error.message },
    lastSeq: seq,
  }
}

function phaseOf({ queued, paused }: RunState): RunDigest['phase'] {
  return queued === true ? 'queued' : paused === undefined ? 'open' : 'paused'
}

function endOf({ error, stopReason }: Extract<Phase, { at: 'ended' }>): RunDigest['phase'] {
  if (stopReason === 'cancelled') return 'cancelled'
  return error === undefined ? 'completed' : 'failed'
}

function pendingIn(state: RunState): readonly PendingItem[] {
  if (state.phase.at === 'ended') return []
  const calls = state.phase.at === 'batch' ? state.phase.calls.flatMap(unanswered) : []
  return state.background === undefined ? calls : [...calls, ...askedInBackground(state)]
}

/** The summary of a run. `owned`: a process owns it. */
export function summaryOf({ phase, ...digest }: RunDigest, owned: boolean, cursor = ''): RunSummary {
  const status = phase !== 'open' ? phase : owned ? 'running' : 'interrupted'
  return { ...digest, status, cursor }
}
