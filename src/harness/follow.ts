import { HarnessError } from '../contracts/errors.js'
import { runRef } from '../run/log/ref.js'
import { eventsIn } from '../run/log/log.js'
import type { FollowOptions, LogStore, RunLog } from '../run/log/log.js'
import type { DurableEvent, EphemeralEvent, RunEvent } from '../run/machine/events.js'
import { sleep } from '../util/timeout.js'

/** Where the events of a run come from. */
export interface FollowSource {
  readonly log: RunLog
  /** The run is in progress in this process. */
  readonly isOpen: boolean
  /** Calls `listener` with each event of the run in this process; returns how to stop. */
  readonly listen: (listener: (event: RunEvent) => void) => () => void
}

/** How long to wait before a log without `follow` is read again, in ms: shorter after an event, longer while nothing happens. */
const SHORTEST_WAIT_MS = 50
const LONGEST_WAIT_MS = 1000
/** Ephemeral events that wait for a slow reader, at most; then they are dropped. */
const MOST_WAITING = 1024

/**
 * The events of a run, wherever it is executed: those of the log, then those that follow, across pauses, until the run ends.
 * A run of this process also gives its ephemeral events. Claims nothing. Rejects with `run_not_found` for an unknown run.
 */
export async function* followRun(
  runId: string,
  { log, isOpen, listen }: FollowSource,
  { after = 0, signal }: FollowOptions,
): AsyncGenerator<RunEvent, void, undefined> {
  const live = new LiveEvents()
  const stopListening = listen(live.add)
  const over = new AbortController()
  const either = signal === undefined ? over.signal : AbortSignal.any([signal, over.signal])
  try {
    let last: DurableEvent | undefined
    // The event at the cursor is read too: it can be the end.
    for await (const event of eventsIn(log, runRef(runId), { after: after - 1 })) {
      if (isAborted(signal)) return
      last = event
      if (event.seq > after) yield event
    }
    if (last === undefined && !isOpen) throw notFound(runId)
    if (last !== undefined && isEnd(last)) return
    yield* followFrom(Math.max(after, last?.seq ?? 0), { log, runId, live, signal: either })
  } finally {
    over.abort()
    stopListening()
  }
}

interface Followed {
  readonly log: RunLog
  readonly runId: string
  readonly live: LiveEvents
  readonly signal: AbortSignal
}

/** The events after the cursor as they come: each ephemeral one after the durable one that it follows. */
async function* followFrom(after: number, followed: Followed): AsyncGenerator<RunEvent, void, undefined> {
  const { live, signal } = followed
  const stored = new Arrivals(storedEvents(after, followed), live.wake)
  signal.addEventListener('abort', live.wake)
  try {
    for (let seq = after; !isAborted(signal);) {
      const event = live.take(seq) ?? stored.take()
      if (event === undefined) {
        if (stored.isOver) return
        await live.change()
        continue
      }
      if (event.durable) seq = event.seq
      yield event
      if (isEnd(event)) return
    }
  } finally {
    stored.close()
  }
}

function storedEvents(after: number, { log, runId, live, signal }: Followed): AsyncIterable<DurableEvent> {
  const { follow } = log as Partial<LogStore>
  if (follow !== undefined) return follow.call(log, runRef(runId), { after, signal }) as AsyncIterable<DurableEvent>
  return polled(after, { log, runId, live, signal })
}

/** The durable events of a log without `follow`. Events of this process are read when they are stored. */
async function* polled(after: number, { log, runId, live, signal }: Followed): AsyncGenerator<DurableEvent> {
  let seq = after
  let waitMs = SHORTEST_WAIT_MS
  while (!isAborted(signal)) {
    const start = seq
    for await (const event of eventsIn(log, runRef(runId), { after: seq })) {
      seq = event.seq
      yield event
    }
    waitMs = seq > start ? SHORTEST_WAIT_MS : Math.min(waitMs * 1.5, LONGEST_WAIT_MS)
    await live.stored(seq, { ms: waitMs, signal })
  }
}

/** The next of some events, once it is there: without waiting for it. */
class Arrivals<Event> {
  readonly #iterator: AsyncIterator<Event>
  readonly #wake: () => void
  #next: IteratorResult<Event> | null = null
  #failure: { readonly error: unknown } | null = null

  /** `wake` is called when the next event is there. */
  constructor(events: AsyncIterable<Event>, wake: () => void) {
    this.#iterator = events[Symbol.asyncIterator]()
    this.#wake = wake
    this.#advance()
  }

  get isOver(): boolean {
    return this.#next?.done === true
  }

  close(): void {
    this.#iterator.return?.().catch(() => undefined)
  }

  /** Throws the error of the iteration. */
  take(): Event | undefined {
    if (this.#failure !== null) throw this.#failure.error
    if (this.#next === null || this.#next.done === true) return undefined
    const { value } = this.#next
    this.#advance()
    return value
  }

  #advance(): void {
    this.#next = null
    this.#iterator.next().then(
      (next) => {
        this.#next = next
        this.#wake()
      },
      (error: unknown) => {
        this.#failure = { error }
        this.#wake()
      },
    )
  }
}

/** The ephemeral events of a run in this process that its follower has not taken yet. */
class LiveEvents {
  #events: EphemeralEvent[] = []
  #lastSeq = 0
  #hasChanged = false
  #wake: (() => void) | null = null
  #wakeReader: (() => void) | null = null

  readonly add = (event: RunEvent): void => {
    this.#lastSeq = event.seq
    if (event.durable) {
      this.#wakeReader?.()
      return
    }
    if (this.#events.length >= MOST_WAITING) this.#events = []
    this.#events.push(event)
    this.wake()
  }

  readonly wake = (): void => {
    this.#hasChanged = true
    this.#wake?.()
  }

  /** The next event that follows the durable one at the cursor; undefined if there is none yet. */
  take(seq: number): EphemeralEvent | undefined {
    while (this.#events[0] !== undefined && this.#events[0].seq < seq) this.#events.shift()
    return this.#events[0]?.seq === seq ? this.#events.shift() : undefined
  }

  /** Resolves after `wake`. */
  async change(): Promise<void> {
    if (!this.#hasChanged) await new Promise<void>((resolve) => (this.#wake = resolve))
    this.#hasChanged = false
    this.#wake = null
  }

  /** Resolves when this process has stored an event after the cursor, or after `ms`. */
  async stored(seq: number, { ms, signal }: { readonly ms: number; readonly signal: AbortSignal }): Promise<void> {
    if (this.#lastSeq > seq) return
    const bell = new AbortController()
    this.#wakeReader = () => bell.abort()
    await sleep(ms, AbortSignal.any([signal, bell.signal])).catch(() => undefined)
    this.#wakeReader = null
  }
}

function isAborted(signal: AbortSignal | undefined): boolean {
  return signal?.aborted === true
}

/** True if no event follows this one in this process, unless the run is retried. */
function isEnd(event: RunEvent): boolean {
  if (event.kind === 'run_left') return true
  return event.kind === 'run_failed' || (event.kind === 'run_completed' && event.pending.length === 0)
}

function notFound(runId: string): HarnessError {
  return new HarnessError('run_not_found', `The log has no run \`${runId}\`.`)
}
