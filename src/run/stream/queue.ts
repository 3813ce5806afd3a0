import type { EphemeralEvent, StreamEvent } from '../machine/events.js'

/** How many events may wait for a slow reader before deltas are joined and the run waits. */
const ROOM = 256

/** Listeners that get every event of a run, read or not, by run id. */
export type Followers = ReadonlyMap<string, ReadonlySet<(event: StreamEvent) => void>>

/**
 * What a run has told and its reader has not yet taken. Durable events are never dropped: when there are too many, the
 * run waits for the reader. Deltas never make it wait: neighbouring ones of one part are joined instead, and of the
 * progress of one call only the latest is kept.
 */
export class EventQueue {
  #events: StreamEvent[] = []
  #readersWait: (() => void)[] = []
  #runWaits: (() => void)[] = []
  /** What to do while nobody reads: `keep` for a reader to come, `wait` like for a slow one, `drop` everything. */
  #unread: 'keep' | 'wait' | 'drop' = 'wait'
  #reading = false
  #runEnds = false
  #closed = false
  readonly #followers: Followers

  constructor(followers: Followers = new Map()) {
    this.#followers = followers
  }

  /** Somebody reads from now on. */
  startReading(): void {
    this.#reading = true
  }

  /** Nobody has to read: the run never waits, and its events wait here. Without a reader, deltas are left out. */
  keepUnread(): void {
    this.#unread = 'keep'
    this.#letRunGo()
  }

  /** The run ends now: what it has to tell is little, and it waits for no reader any more. */
  stopWaiting(): void {
    this.#runEnds = true
    this.#letRunGo()
  }

  /** Nobody will ever read. */
  drop(): void {
    this.#unread = 'drop'
    this.#reading = false
    this.#events = []
    this.#letRunGo()
  }

  /** Resolves when the run may go on; `undefined` when it may at once. */
  push(event: StreamEvent): Promise<void> | undefined {
    if (this.#followers.size > 0) this.#passToFollowers(event)
    if (this.#closed || (!this.#reading && this.#unread === 'drop')) return undefined
    if (!event.durable) {
      // The end of a run is for whoever comes to read, also where the log could not keep it.
      const isEnd = event.kind === 'run_failed'
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
   * durable event, or a withdrawal, behind which deltas are new ones.
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

  #passToFollowers(event: StreamEvent): void {
    for (const listener of this.#followers.get(event.runId) ?? []) listener(event)
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

function areOfOnePart(earlier: JoinableEvent, later: JoinableEvent): boolean {
  if (earlier.kind !== later.kind || earlier.runId !== later.runId) return false
  if ('partId' in earlier && 'partId' in later) return earlier.partId === later.partId
  return 'callId' in earlier && 'callId' in later ? earlier.callId === later.callId : true
}

function joined(earlier: JoinableEvent, later: JoinableEvent): JoinableEvent {
  return 'text' in earlier && 'text' in later && earlier.kind === later.kind
    ? { ...later, text: earlier.text + later.text }
    : later
}
