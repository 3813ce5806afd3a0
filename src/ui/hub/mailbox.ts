import { HarnessError } from '../../index.js'
import type { AnyRunEvent } from '../projection.js'
import { isDelta, joinedDeltas } from './open-turn.js'

/** How many events may wait before their sizes are added up. */
const FEW = 32

/**
 * The events that wait for one reader, who takes all of them at once. Neighbouring deltas of one part are joined while they
 * wait. A reader who is too far behind is let go of: the next `take` rejects, and the reader comes back with its cursor.
 */
export class Mailbox {
  readonly #maxBytes: number
  #events: AnyRunEvent[] = []
  #bytes = 0
  #isBehind = false
  #isClosed = false
  #wake: (() => void) | null = null

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  add(event: AnyRunEvent): void {
    if (this.#isBehind || this.#isClosed) return
    const last = this.#events.at(-1)
    const joined = last === undefined ? null : joinedDeltas(last, event)
    if (joined === null) this.#events.push(event)
    else this.#events[this.#events.length - 1] = joined
    this.#bytes += isDelta(event) ? event.text.length : 0
    if (this.#events.length > FEW || this.#bytes > this.#maxBytes) this.#measure()
    this.#wake?.()
  }

  /** No more events come. */
  close(): void {
    this.#isClosed = true
    this.#wake?.()
  }

  /** Everything that waits; empty once the mailbox is closed. */
  async take(): Promise<readonly AnyRunEvent[]> {
    while (this.#events.length === 0 && !this.#isClosed && !this.#isBehind)
      await new Promise<void>((resolve) => (this.#wake = resolve))
    this.#wake = null
    if (this.#isBehind) throw new HarnessError('closed', 'The reader is too far behind: follow again with its cursor.')
    return this.takeNow()
  }

  /** What waits at this moment. */
  takeNow(): readonly AnyRunEvent[] {
    const taken = this.#events
    this.#events = []
    this.#bytes = 0
    return taken
  }

  #measure(): void {
    let bytes = 0
    for (const event of this.#events) bytes += sizeOf(event)
    if (bytes <= this.#maxBytes) return
    this.#isBehind = true
    this.#events = []
  }
}

/** Sizes of durable events, in characters of their JSON: counted once for all readers. */
const sizes = new WeakMap<AnyRunEvent, number>()

function sizeOf(event: AnyRunEvent): number {
  if (isDelta(event)) return event.text.length
  let size = sizes.get(event)
  if (size === undefined) sizes.set(event, (size = JSON.stringify(event).length))
  return size
}
