import { continuedAt } from '#core/log/continued.js'
import { HarnessError } from '#contracts/errors.js'
import type { LoadedRun } from '#core/loop/run-plan.js'
import { runRef } from '#core/log/ref.js'
import { asLogStore, eventsIn } from '#core/log/log.js'
import type { RunLog } from '#core/log/log.js'
import { isChildReference } from '#core/state/child-state.js'
import type { ChildReference, StoredChild } from '#core/state/child-state.js'
import { apply } from '#core/loop/apply.js'
import type { DurableEvent } from '#core/state/events.js'
import type { RunState } from '#core/state/state.js'
import { foldLog } from './read-log.js'
import { isSameState } from './state-digest.js'
import { readState } from './stored-state.js'
import type { StoredState } from './stored-state.js'

/** Folds the stored events of a run; null if there are none. `storedSeq` is the last event of its stored state. */
export async function loadRun(log: RunLog, runId: string, storedSeq = 0): Promise<LoadedRun | null> {
  const answered: string[] = []
  const onEvent = (event: DurableEvent): void => {
    if (event.kind === 'answer_received' && event.seq > storedSeq) answered.push(event.callId)
  }
  const found = await foldLog(log, runId, { onEvent })
  return found === null ? null : { ...found, isLogged: true, answered }
}

/** A run that waits for people, from its log; null when the log has nothing of it. `check` throws for one that cannot take the answers. */
export async function loadPaused(
  log: RunLog,
  runId: string,
  check: (state: RunState) => void,
): Promise<LoadedRun | null> {
  const found = await loadRun(log, runId)
  if (found === null) return null
  check(found.state)
  const { state, responses, last, isLogged } = found
  return { state, responses, last, isLogged }
}

/**
 * The stored state of a run that waits. If the log has the run, the content of the log counts, and the state must be the
 * one that the log holds. Events that the pause itself has added since are no continuation: a `run_end` hook can store the state.
 */
export async function loadStored(log: RunLog, stored: StoredState): Promise<LoadedRun> {
  const { runId, seq } = stored.state
  if (seq <= continuedAt(log, runId)) throw stale(runId)
  const known = await foldLog(log, runId, { upTo: seq })
  if (known !== null && !isSameState(stored, known.state)) throw changed(runId)
  // Equal to what the log holds, and with the states of its children, which the log may not know.
  for await (const event of eventsIn(log, runRef(runId), { after: seq })) {
    if (event.kind !== 'run_completed' && event.kind !== 'hook_failed') throw stale(runId)
    apply(stored.state, event)
  }
  return { ...stored, last: null, isLogged: known !== null }
}

/**
 * A run that is to be retried; null if the log has no such run. Rejects with `invalid_state` if other runs refer to it: they
 * continue its conversation as it ended.
 */
export async function loadRetried(log: RunLog, runId: string): Promise<LoadedRun | null> {
  const found = await loadRun(log, runId)
  if (found?.state.phase.at !== 'ended' || found.state.phase.error === undefined) return found
  const referrers = (await asLogStore(log).referrers?.(runRef(runId))) ?? []
  const continuing = referrers.find(({ kind }) => kind === 'run')
  if (continuing !== undefined) throw continuedBy(runId, continuing.id)
  return found
}

/**
 * A run under a call: the content of the log, unless the state that the call has kept is newer. A run that was cancelled
 * since then is reopened: its call is entered again.
 */
export async function loadChild(log: RunLog, runId: string, stored: StoredChild | null): Promise<LoadedRun | null> {
  if (stored === null) return reopened(await loadBegun(log, runId), 0)
  if (isChildReference(stored)) {
    const logged = await loadBegun(log, runId, stored.seq)
    if (logged !== null && logged.state.seq >= stored.seq) return reopened(logged, stored.seq)
    throw notHeld(stored)
  }
  const kept = readState(stored, `The state of run \`${runId}\``, null)
  const logged = await loadBegun(log, runId, kept.state.seq)
  if (logged !== null && logged.state.seq >= kept.state.seq) return reopened(logged, kept.state.seq)
  return { ...kept, last: null, isLogged: logged !== null }
}

function reopened(found: LoadedRun | null, storedSeq: number): LoadedRun | null {
  if (found === null || found.state.seq === storedSeq) return found
  const { phase } = found.state
  return phase.at === 'ended' && phase.stopReason === 'cancelled' ? { ...found, isReopened: true } : found
}

function notHeld({ runId, seq }: ChildReference): HarnessError {
  return new HarnessError(
    'invalid_log',
    `The log does not hold run \`${runId}\` up to event ${seq}, which its parent needs.`,
  )
}

function continuedBy(runId: string, other: string): HarnessError {
  return new HarnessError(
    'invalid_state',
    `retry: run \`${other}\` continues the conversation of run \`${runId}\` as it ended. Continue it in a new run, with \`history\`.`,
  )
}

function changed(runId: string): HarnessError {
  return new HarnessError(
    'invalid_state',
    `resume: the state of run \`${runId}\` is not the one that the log holds: it was changed.`,
  )
}

function stale(runId: string): HarnessError {
  return new HarnessError(
    'invalid_state',
    `resume: the state is stale: run \`${runId}\` has continued since it was stored.`,
  )
}

/**
 * A run whose log was cut within its first event had not done anything: it is none, and begins anew. A log that holds more
 * takes no beginning.
 */
async function loadBegun(log: RunLog, runId: string, storedSeq = 0): Promise<LoadedRun | null> {
  try {
    return await loadRun(log, runId, storedSeq)
  } catch (error) {
    if (error instanceof HarnessError && error.code === 'invalid_log' && !(await hasEvents(log, runId))) return null
    throw error
  }
}

async function hasEvents(log: RunLog, runId: string): Promise<boolean> {
  try {
    const first = await log.read(runRef(runId))[Symbol.asyncIterator]().next()
    return first.done !== true
  } catch {
    return false
  }
}
