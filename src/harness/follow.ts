import { HarnessError } from '../contracts/errors.js'
import { runRef } from '../run/log/ref.js'
import type { FollowOptions, RunLog } from '../run/log/log.js'
import type { RunEvent } from '../run/machine/events.js'
import { sleep } from '../util/sleep.js'

/** Where the events of a run come from. */
export interface FollowSource {
  readonly log: RunLog
  /** Calls `listener` with each event of the run in this process; returns how to stop. */
  readonly listen: (listener: (event: RunEvent) => void) => () => void
}

/** How long to wait before the log is read again, in ms: shorter after an event, longer while nothing happens. */
const SHORTEST_WAIT_MS = 50
const LONGEST_WAIT_MS = 1000
/** Live events that wait for a slow reader, at most; then they are read from the log instead, without deltas. */
const MOST_WAITING = 1024

/**
 * The events of a run, wherever it is executed: those of the log, then those that follow, across pauses, until the run ends.
 * A run of this process also gives its ephemeral events. Claims nothing. Rejects with `run_not_found` for an unknown run.
 */
export async function* followRun(
  runId: string,
  { log, listen }: FollowSource,
  { after = 0, signal = new AbortController().signal }: FollowOptions,
): AsyncGenerator<RunEvent, void, undefined> {
  const live = new LiveEvents()
  const isStopped = (): boolean => signal.aborted
  const stopListening = listen(live.add)
  try {
    let seq = after
    let waitMs = SHORTEST_WAIT_MS
    while (!isStopped()) {
      let last: RunEvent | undefined
      // The event at the cursor is read too: it can be the end.
      for await (const event of log.read(runRef(runId), { after: seq - 1 })) {
        last = event
        if (event.seq <= seq) continue
        ;[seq, waitMs] = [event.seq, SHORTEST_WAIT_MS]
        yield event
        if (isStopped()) return
      }
      if (last === undefined && live.isEmpty()) throw notFound(runId)
      if (last !== undefined && isEnd(last)) return
      while (await live.arriveWithin(waitMs, signal)) {
        for (let event = live.next(seq); event !== undefined; event = live.next(seq)) {
          if (event.durable) seq = event.seq
          yield event
          if (isStopped() || isEnd(event)) return
        }
        if (live.hasGap) break
      }
      waitMs = Math.min(waitMs * 1.5, LONGEST_WAIT_MS)
    }
  } finally {
    stopListening()
  }
}

/** The events of a run in this process that its follower has not taken yet. */
class LiveEvents {
  #events: RunEvent[] = []
  #wake: (() => void) | null = null
  /** The next events are in the log only. */
  hasGap = false

  readonly add = (event: RunEvent): void => {
    if (this.#events.length >= MOST_WAITING) this.#events = []
    this.#events.push(event)
    this.#wake?.()
  }

  isEmpty(): boolean {
    return this.#events.length === 0
  }

  /** The next event after the cursor; undefined when there is none, or when the log has to be read before it. */
  next(seq: number): RunEvent | undefined {
    this.hasGap = false
    for (;;) {
      const event = this.#events[0]
      if (event === undefined) return undefined
      if (event.seq > seq + (event.durable ? 1 : 0)) {
        this.hasGap = true
        return undefined
      }
      this.#events.shift()
      if (event.durable ? event.seq > seq : event.seq === seq) return event
    }
  }

  /** False after `ms` without an event, and when `signal` is aborted. */
  async arriveWithin(ms: number, signal: AbortSignal): Promise<boolean> {
    if (!this.isEmpty()) return true
    const over = new AbortController()
    this.#wake = () => over.abort()
    await sleep(ms, AbortSignal.any([signal, over.signal])).catch(() => undefined)
    this.#wake = null
    return !this.isEmpty() && !signal.aborted
  }
}

/** Whether nothing follows this event, unless the run is retried. */
function isEnd(event: RunEvent): boolean {
  return event.kind === 'run_failed' || (event.kind === 'run_completed' && event.pending.length === 0)
}

function notFound(runId: string): HarnessError {
  return new HarnessError('run_not_found', `The log has no run \`${runId}\`.`)
}
