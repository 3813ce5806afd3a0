import { isDelta, joinDeltas } from './deltas.js'
import { Bell } from './polled.js'

/** The characters that may wait for one reader. */
const MAX_WAITING = 1_048_576

/** Who gets the events of a log as they come. */
export interface Listener<Event> {
  add(event: Event): void
  /** No more events come. */
  close(): void
}

/**
 * The events that wait for one reader, who takes all of them at once. Neighbouring deltas are joined while they wait. For a reader
 * who is too far behind they are dropped: the next `take` is null, and the reader returns to the log.
 */
export class Mailbox<Event extends { readonly kind: string }> implements Listener<Event> {
  readonly #bell = new Bell()
  readonly #maxWaiting: number
  #events: Event[] = []
  #size = 0
  #isBehind = false
  #isClosed = false
  #failure: { readonly error: unknown } | null = null

  constructor(maxWaiting = MAX_WAITING) {
    this.#maxWaiting = maxWaiting
  }

  add(event: Event): void {
    if (this.#isBehind || this.#isClosed) return
    const last = this.#events.at(-1)
    const joined = last === undefined ? null : joinedOnce(last, event)
    if (joined === null) this.#events.push(event)
    else this.#events[this.#events.length - 1] = joined
    this.#size += sizeOf(event)
    // One event may be larger: the log would give it to the reader as well.
    this.#isBehind = this.#size > this.#maxWaiting && last !== undefined
    this.#bell.ring()
  }

  close(): void {
    this.#isClosed = true
    this.#bell.ring()
  }

  /** No more events come: the reader gets those that wait, then the error. */
  fail(error: unknown): void {
    this.#failure = { error }
    this.close()
  }

  /** Everything that waits; empty once the mailbox is closed, null for a reader who is too far behind. */
  async take(): Promise<readonly Event[] | null> {
    while (this.#events.length === 0 && !this.#isClosed) await this.#bell.wait()
    const events = this.#events
    this.#events = []
    this.#size = 0
    if (this.#isBehind) return null
    if (events.length === 0 && this.#failure !== null) throw this.#failure.error
    return events
  }
}

/** The events that two neighbours were last joined to, by the later one: readers at the same place share them. */
const joins = new WeakMap<object, { readonly earlier: object; readonly joined: unknown }>()

function joinedOnce<Event extends { readonly kind: string }>(earlier: Event, later: Event): Event | null {
  const known = joins.get(later)
  if (known?.earlier === earlier) return known.joined as Event | null
  const joined = joinDeltas(earlier, later)
  joins.set(later, { earlier, joined })
  return joined
}

/** Sizes of events, in characters of their JSON: counted once for all readers. */
const sizes = new WeakMap<object, number>()

function sizeOf(event: { readonly kind: string }): number {
  if (isDelta(event)) return event.text.length
  let size = sizes.get(event)
  if (size === undefined) sizes.set(event, (size = JSON.stringify(event).length))
  return size
}
