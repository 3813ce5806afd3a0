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
  #readerWaits: (() => void) | null = null
  #runWaits: (() => void)[] = []
  /** What to do while nobody reads: `keep` for a reader to come, `wait` like for a slow one, `drop` everything. */
  #unread: 'keep' | 'wait' | 'drop' = 'wait'
  #reading = false
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

  /** Nobody will ever read. */
  drop(): void {
    this.#unread = 'drop'
    this.#events = []
    this.#letRunGo()
  }

  /** Resolves when the run may go on; `undefined` when it may at once. */
  push(event: RunEvent): Promise<void> | undefined {
    if (this.#closed || (!this.#reading && this.#unread === 'drop')) return undefined
    if (!event.durable) {
      if (this.#reading || this.#unread === 'wait') this.#pushEphemeral(event)
      return undefined
    }
    this.#joinable.clear()
    this.#add(event)
    if (this.#events.length < ROOM || (!this.#reading && this.#unread === 'keep')) return undefined
    return new Promise((resolve) => this.#runWaits.push(resolve))
  }

  /** Everything that waits; empty when the run is over and all has been taken. */
  async take(): Promise<readonly RunEvent[]> {
    if (this.#events.length === 0 && !this.#closed) {
      await new Promise<void>((resolve) => (this.#readerWaits = resolve))
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
    this.#wakeReader()
  }

  #pushEphemeral(event: EphemeralEvent): void {
    const part = partOf(event)
    if (this.#events.length < ROOM || part === undefined) {
      if (part !== undefined) this.#joinable.set(part, this.#events.length)
      this.#add(event)
      return
    }
    const index = this.#joinable.get(part)
    const earlier = index === undefined ? undefined : this.#events[index]
    if (index === undefined || earlier === undefined) {
      this.#joinable.set(part, this.#events.length)
      this.#add(event)
      return
    }
    this.#events[index] = joined(earlier, event)
  }

  #add(event: RunEvent): void {
    this.#events.push(event)
    this.#wakeReader()
  }

  #wakeReader(): void {
    this.#readerWaits?.()
    this.#readerWaits = null
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
