import type { EphemeralEvent, RunEvent } from './events.js'

/** How many events may wait for a slow reader before deltas are joined and the run waits. */
const ROOM = 256

/**
 * What a run has told and its reader has not yet taken. Durable events are never dropped: when there are too many, the
 * run waits for the reader. Deltas never make it wait: neighbouring ones of one part are joined instead, and of the
 * progress of one call only the latest is kept.
 */
export class EventQueue {
  #events: RunEvent[] = []
  /** Where the last joinable event of each part waits; emptied by each durable event, which nothing may overtake. */
  readonly #joinable = new Map<string, number>()
  #readersWait: (() => void)[] = []
  #runWaits: (() => void)[] = []
  /** What to do while nobody reads: `keep` for a reader to come, `wait` like for a slow one, `drop` everything. */
  #unread: 'keep' | 'wait' | 'drop' = 'wait'
  #reading = false
  #runEnds = false
  #closed = false

  /** Somebody reads from now on. */
  startReading(): void {
    this.#reading = true
  }

  /** Nobody has to read: the run goes on, and its events wait here for a reader to come, deltas left out. */
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
  push(event: RunEvent): Promise<void> | undefined {
    if (this.#closed || (!this.#reading && this.#unread === 'drop')) return undefined
    if (!event.durable) {
      // The end of a run is for whoever comes to read, also where the log could not keep it.
      const isEnd = event.kind === 'run_failed'
      if (isEnd || this.#reading || this.#unread === 'wait') this.#pushEphemeral(event)
      return undefined
    }
    this.#joinable.clear()
    this.#add(event)
    const goesOn = this.#runEnds || (!this.#reading && this.#unread === 'keep')
    if (goesOn || this.#events.length < ROOM) return undefined
    return new Promise((resolve) => this.#runWaits.push(resolve))
  }

  /** Everything that waits; empty when the run is over and all has been taken. */
  async take(): Promise<readonly RunEvent[]> {
    while (this.#events.length === 0 && !this.#closed) {
      await new Promise<void>((resolve) => this.#readersWait.push(resolve))
    }
    const taken = this.#events
    this.#events = []
    this.#joinable.clear()
    this.#letRunGo()
    return taken
  }

  /** No more events come; those that wait can still be taken. */
  close(): void {
    this.#closed = true
    this.#letRunGo()
    this.#wakeReaders()
  }

  #pushEphemeral(event: EphemeralEvent): void {
    const part = partOf(event)
    if (part === undefined) {
      // Deltas behind a withdrawal are new ones.
      this.#joinable.clear()
      this.#add(event)
      return
    }
    const index = this.#joinable.get(part)
    const earlier = index === undefined ? undefined : this.#events[index]
    if (this.#events.length >= ROOM && index !== undefined && earlier !== undefined) {
      this.#events[index] = joined(earlier, event)
      return
    }
    this.#joinable.set(part, this.#events.length)
    this.#add(event)
  }

  #add(event: RunEvent): void {
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

/** What two events must share to be joined; `undefined` for kinds that never are. */
function partOf(event: EphemeralEvent): string | undefined {
  switch (event.kind) {
    case 'text_delta':
    case 'reasoning_delta':
    case 'output_delta':
      return `${event.runId} ${event.kind}`
    case 'tool_input_delta':
    case 'tool_progress':
      return `${event.runId} ${event.kind} ${event.callId}`
    case 'transport_retry':
    case 'deltas_withdrawn':
    case 'run_failed':
      return undefined
  }
}

function joined(earlier: RunEvent, later: EphemeralEvent): RunEvent {
  return 'text' in earlier && 'text' in later && earlier.kind === later.kind
    ? { ...later, text: earlier.text + later.text }
    : later
}
