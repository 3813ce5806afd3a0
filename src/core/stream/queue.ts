import { areOfOnePart } from '#util/queue/deltas.js'
import type { EphemeralEvent, StreamEvent } from '../state/events.js'

/** How many events may wait for a slow reader before deltas are joined and the run waits. */
const ROOM = 256

/** Who gets every event of a run, read or not. */
export interface RunListeners {
  /** By run id. */
  readonly listeners: ReadonlyMap<string, ReadonlySet<(event: StreamEvent) => void>>
  /** Called before the listeners. */
  onEphemeral(event: EphemeralEvent): void
}

/**
 * The events of a run that its reader has not taken yet. Durable events are never dropped: when there are too many, the
 * run waits for the reader. Deltas never make it wait: neighbouring ones of one part are joined instead, and of the
 * progress of one call only the latest is kept.
 */
export class EventQueue {
  #events: StreamEvent[] = []
  #readersWait: (() => void)[] = []
  #runWaits: (() => void)[] = []
  /** Without a reader: `keep` events for a later one, `wait` as for a slow one, or `drop` everything. */
  #unread: 'keep' | 'wait' | 'drop' = 'wait'
  #reading = false
  #runEnds = false
  #closed = false
  readonly #live: RunListeners | undefined

  constructor(live?: RunListeners) {
    this.#live = live
  }

  /** A reader reads from now on. */
  startReading(): void {
    this.#reading = true
  }

  /** Nobody has to read: the run never waits, and its events wait here. Without a reader, deltas are left out. */
  keepUnread(): void {
    this.#unread = 'keep'
    this.#letRunGo()
  }

  /** The run ends now: it emits only a few more events, and waits for no reader. */
  stopWaiting(): void {
    this.#runEnds = true
    this.#letRunGo()
  }

  /** There will be no reader. */
  drop(): void {
    this.#unread = 'drop'
    this.#reading = false
    this.#events = []
    this.#letRunGo()
  }

  /** Resolves when the run may continue; `undefined` if it may continue immediately. */
  push(event: StreamEvent): Promise<void> | undefined {
    if (!event.durable) this.#live?.onEphemeral(event)
    this.#live?.listeners.get(event.runId)?.forEach((listener) => listener(event))
    if (this.#closed || (!this.#reading && this.#unread === 'drop')) return undefined
    if (!event.durable) {
      // The end of a run is kept for a later reader, even if the log could not store it.
      const isEnd = event.kind === 'run_failed' || event.kind === 'run_left'
      const isWanted = isEnd || this.#reading || this.#unread === 'wait'
      if (isWanted && !(this.#events.length >= ROOM && this.#joins(event))) this.#add(event)
      return undefined
    }
    this.#add(event)
    const goesOn = this.#runEnds || this.#unread === 'keep'
    if (goesOn || this.#events.length < ROOM) return undefined
    return new Promise((resolve) => this.#runWaits.push(resolve))
  }

  /** Everything that waits; empty when the run is over and all has been taken. */
  async take(): Promise<readonly StreamEvent[]> {
    while (this.#events.length === 0 && !this.#closed) {
      await new Promise<void>((resolve) => this.#readersWait.push(resolve))
    }
    const taken = this.#events
    this.#events = []
    this.#letRunGo()
    return taken
  }

  /** No more events come; those that wait can still be taken. */
  close(): void {
    this.#closed = true
    this.#letRunGo()
    this.#wakeReaders()
  }

  /**
   * Joins `event` to the last one of its part that waits, if nothing stands between the two that it may not overtake: a
   * durable event, or a withdrawal: later deltas belong to another attempt.
   */
  #joins(event: EphemeralEvent): boolean {
    if (!isJoinable(event)) return false
    for (let index = this.#events.length - 1; index >= 0; index--) {
      const earlier = this.#events[index]
      if (earlier === undefined || !isJoinable(earlier)) return false
      if (!areOfOnePart(earlier, event)) continue
      this.#events[index] = joined(earlier, event)
      return true
    }
    return false
  }

  #add(event: StreamEvent): void {
    this.#events.push(event)
    this.#wakeReaders()
  }

  #wakeReaders(): void {
    const waiting = this.#readersWait
    if (waiting.length === 0) return
    this.#readersWait = []
    for (const resolve of waiting) resolve()
  }

  #letRunGo(): void {
    const waiting = this.#runWaits
    this.#runWaits = []
    for (const resolve of waiting) resolve()
  }
}

type JoinableEvent = EphemeralEvent & { readonly kind: keyof typeof JOINABLE }

/** The kinds that are joined when there are too many. */
const JOINABLE = {
  text_delta: true,
  reasoning_delta: true,
  output_delta: true,
  tool_input_delta: true,
  tool_progress: true,
} as const

function isJoinable(event: StreamEvent): event is JoinableEvent {
  return event.kind in JOINABLE
}

function joined(earlier: JoinableEvent, later: JoinableEvent): JoinableEvent {
  return 'text' in earlier && 'text' in later && earlier.kind === later.kind
    ? { ...later, text: earlier.text + later.text }
    : later
}
