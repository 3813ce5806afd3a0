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
  const ended: string[] = []

  return {
    append(runId, events) {
      const kept = runs.get(runId)
      const first = events[0]
      if (first === undefined) return Promise.resolve()
      const expected = (kept?.at(-1)?.seq ?? 0) + 1
      // A run that is resumed from a stored state goes on in a log that has not seen its beginning.
      if (first.seq !== expected && kept !== undefined) {
        return Promise.reject(new RangeError(`Expected event ${expected} of run \`${runId}\`, got event ${first.seq}.`))
      }
      if (kept === undefined) runs.set(runId, [...events])
      else kept.push(...events)
      if (events.some((event) => event.kind === 'run_completed' || event.kind === 'run_failed')) {
        ended.push(runId)
        while (ended.length > keepEnded) runs.delete(ended.shift() ?? '')
      }
      return Promise.resolve()
    },
    async *read(runId, from = 1) {
      for (const event of runs.get(runId) ?? []) if (event.seq >= from) yield event
    },
  }
}
