import { HarnessError } from '#contracts/errors.js'
import type { Forgotten } from '#core/loop/child-run.js'
import type { RunContext } from '#core/loop/run-context.js'
import { rememberContinued } from '#core/log/continued.js'
import { loadRun } from './load-run.js'
import { asLogStore, storeFailure } from '#core/log/log.js'
import type { RunLog } from '#core/log/log.js'
import type { RunParent, RunState } from '#core/state/state.js'
import { belowAnother } from '#core/loop/decide.js'
import { otherRunIds } from '#core/state/background-state.js'

/** The log of the runs, and a factory of contexts. */
export interface CancelMeans {
  readonly log: RunLog
  readonly contextOf: (run: { readonly runId: string; readonly parent: RunParent | null }) => RunContext
}

/**
 * Ends a run that is paused or was interrupted, after its child runs, from its log: no tool runs, and no request is sent.
 * False if it had ended. Rejects with `run_not_found`, and with `run_owned` while another process executes it.
 */
export async function cancelStored(means: CancelMeans, runId: string): Promise<boolean> {
  return end(means, runId, null)
}

/** Ends the child runs of a run that was cancelled, if they are paused or were interrupted. */
export async function cancelChildren(means: CancelMeans, runId: string): Promise<void> {
  const found = await loadRun(means.log, runId)
  // It was cancelled before its beginning was stored.
  if (found?.state.queued === true) await end(means, runId, null)
  else if (found !== null) await endChildren(means, found.state)
}

/** Ends a child run that is paused or was interrupted, and the runs below it. Nothing happens if the log does not have it. */
export async function endRun(means: CancelMeans, runId: string): Promise<void> {
  const state = (await loadRun(means.log, runId))?.state
  if (state === undefined) return
  if (state.phase.at !== 'ended') await end(means, runId, state.parent)
  // A completed run has waited for the runs below it, or has ended them.
  else if (state.phase.error !== undefined) await endChildren(means, state)
}

/**
 * Ends the child runs of a run that went on, as far as their calls have ended without starting them again: the call was
 * cancelled before its handler was entered, or its handler has gone another way.
 */
export async function endForgotten(
  means: CancelMeans,
  state: RunState,
  { named, isAfterCrash, isPaused }: Forgotten,
): Promise<void> {
  const { phase } = state
  const open = isPaused && phase.at === 'batch' ? phase.calls.filter(({ settled }) => settled === null) : []
  const kept = new Set(isPaused ? otherRunIds(state) : [])
  const found = new Set(named)
  if (isAfterCrash) for await (const runId of listedBelow(means.log, state.runId)) found.add(runId)
  for (const runId of found) {
    const callId = kept.has(runId) ? undefined : (await loadRun(means.log, runId))?.state.parent?.callId
    if (callId !== undefined && !open.some((call) => call.callId === callId)) await endRun(means, runId)
  }
}

async function end(means: CancelMeans, runId: string, parent: RunParent | null): Promise<boolean> {
  const context = means.contextOf({ runId, parent })
  try {
    await context.claim(false)
    const found = await loadRun(means.log, runId)
    if (found === null) throw new HarnessError('run_not_found', `The log has no run \`${runId}\`.`)
    const { state, responses } = found
    if (state.phase.at === 'ended') return false
    if (parent === null && state.parent !== null) throw belowAnother(runId, state.parent)
    await endChildren(means, state)
    context.adopt(state, responses, null)
    const { code, name: errorType, message } = new HarnessError('cancelled', 'The run was cancelled.')
    await context.emit('run_failed', { stopReason: 'cancelled', code, errorType, message, usage: state.usage })
    rememberContinued(context.log, state)
    return true
  } finally {
    context.abort.release()
    await context.release()
  }
}

async function endChildren(means: CancelMeans, state: RunState): Promise<void> {
  for (const childRunId of await childrenOf(means.log, state)) await endRun(means, childRunId)
}

/** The child runs that the state names, and those that the log lists. */
async function childrenOf(log: RunLog, state: RunState): Promise<ReadonlySet<string>> {
  const { runId, phase } = state
  const position = phase.at === 'ended' ? phase.position : phase
  const calls = position?.at === 'batch' ? position.calls : []
  const named = calls.flatMap(({ children }) => children.map((child) => child.runId))
  const found = new Set([...named, ...otherRunIds(state)])
  for await (const below of listedBelow(log, runId)) found.add(below)
  return found
}

/** The child runs that have not completed, as far as the log can list them. */
async function* listedBelow(log: RunLog, parentRunId: string): AsyncIterable<string> {
  const store = asLogStore(log)
  if (store.list === undefined) return
  try {
    for await (const summary of store.list({ parentRunId, status: NOT_COMPLETED }))
      if ('runId' in summary) yield summary.runId
  } catch (thrown) {
    throw storeFailure(`list the runs below run \`${parentRunId}\``, thrown)
  }
}

const NOT_COMPLETED = ['paused', 'interrupted', 'running', 'failed', 'cancelled'] as const
