import { HarnessError } from '../errors.js'
import type { DurableEvent } from './events.js'

/**
 * Where the durable events of runs are kept. The harness calls `append` on the very object that it was given, one call
 * at a time for each run, with events numbered without gaps.
 */
export interface RunLog {
  /** Resolved = kept. Must reject, and keep nothing, when `events` do not follow the last one that it has. */
  append(runId: string, events: readonly DurableEvent[]): Promise<void>
  /** The events of a run with `seq >= from` (default 1), in order; nothing for a run that it does not know. */
  read(runId: string, from?: number): AsyncIterable<DurableEvent>
}

export interface MemoryLogOptions {
  /** How many ended runs are kept, the latest first. Default: all. */
  readonly keepEnded?: number
}

/** A log in memory: events are kept by reference for as long as the log lives. */
export function memoryLog({ keepEnded = Infinity }: MemoryLogOptions = {}): RunLog {
  const runs = new Map<string, DurableEvent[]>()
  const ended = new Set<string>()

  return {
    append(runId, events) {
      const kept = runs.get(runId)
      if (events.length === 0) return Promise.resolve()
      // A run that is resumed from a stored state goes on in a log that has not seen its beginning.
      let last = kept?.at(-1)?.seq
      for (const { seq } of events) {
        if (last !== undefined && seq !== last + 1) return Promise.reject(doesNotFollow(runId, last, seq))
        last = seq
      }
      if (kept === undefined) runs.set(runId, [...events])
      else kept.push(...events)
      // A paused run has ended for now: what comes behind its end makes it one that is under way again.
      ended.delete(runId)
      if (events.some((event) => event.kind === 'run_completed' || event.kind === 'run_failed')) ended.add(runId)
      for (const earliest of ended) {
        if (ended.size <= keepEnded) break
        ended.delete(earliest)
        runs.delete(earliest)
      }
      return Promise.resolve()
    },
    async *read(runId, from = 1) {
      for (const event of runs.get(runId) ?? []) if (event.seq >= from) yield event
    },
  }
}

/** The refusal of events that do not follow the last one: of a second run of one id, where they begin anew. */
export function doesNotFollow(runId: string, lastSeq: number, seq: number): HarnessError {
  const message = `The log of run \`${runId}\` ends with event ${lastSeq}: it does not take event ${seq}.`
  return new HarnessError(seq === 1 ? 'run_exists' : 'store_failure', message)
}
