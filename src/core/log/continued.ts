import type { RunState } from '../state/state.js'
import { asLogStore } from './log.js'
import type { RunLog } from './log.js'

/**
 * The last event before each continuation or cancellation in this process, by log and run: a log in memory may forget the run.
 * An id and a number for each run, for as long as the log exists.
 */
const continued = new WeakMap<RunLog, Map<string, number>>()

/** Remembers that a run was continued, or cancelled, after its event `seq`. Logs that outlive the process hold it themselves. */
export function rememberContinued(log: RunLog, { runId, seq }: Pick<RunState, 'runId' | 'seq'>): void {
  if (asLogStore(log).outlives === true) return
  const runs = continued.get(log) ?? new Map<string, number>()
  continued.set(log, runs.set(runId, seq))
}

/** The last event before a run was continued here; 0 if it was not. */
export function continuedAt(log: RunLog, runId: string): number {
  return continued.get(log)?.get(runId) ?? 0
}
