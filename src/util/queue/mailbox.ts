/** How many events may wait before their sizes are added up. */
const FEW = 32

export interface MailboxOptions<Event> {
  /** The most that may wait, in the unit of `sizeOf`. */
  readonly maxSize: number
  readonly sizeOf: (event: Event) => number
  /** Two neighbouring events as one; null if they cannot be joined. */
  readonly join: (earlier: Event, later: Event) => Event | null
}

/**
 * The events that wait for one reader, who takes all of them at once. Neighbours are joined while they wait. A reader who is too
 * far behind is dropped: the next `take` is null, and the reader returns to the log.
 */
export class Mailbox<Event extends object> {
  readonly #options: MailboxOptions<Event>
  #events: Event[] = []
  /** Of everything that waits, once it is many events; before, of what was joined. */
  #size = 0
  #isMeasured = false
  #isBehind = false
  #isClosed = false
  #wake: (() => void) | null = null

  constructor(options: MailboxOptions<Event>) {
    this.#options = options
  }

  add(event: Event): void {
    if (this.#isBehind || this.#isClosed) return
    const { sizeOf, join, maxSize } = this.#options
    const last = this.#events.at(-1)
    const joined = last === undefined ? null : joinedOnce(last, event, join)
    if (joined === null) this.#events.push(event)
    else this.#events[this.#events.length - 1] = joined
    if (joined !== null || this.#isMeasured) this.#size += sizeOf(event)
    if (this.#events.length > FEW || this.#size > maxSize) this.#measure()
    this.#wake?.()
  }

  /** No more events come. */
  close(): void {
    this.#isClosed = true
    this.#wake?.()
  }

  /** Everything that waits; empty once the mailbox is closed, null for a reader who is too far behind. */
  async take(): Promise<readonly Event[] | null> {
    while (this.#events.length === 0 && !this.#isClosed && !this.#isBehind)
      await new Promise<void>((resolve) => (this.#wake = resolve))
    this.#wake = null
    return this.#isBehind ? null : this.takeNow()
  }

  /** The size of everything that waits. */
  takeNow(): readonly Event[] {
    const taken = this.#events
    this.#events = []
    this.#size = 0
    this.#isMeasured = false
    return taken
  }

  #measure(): void {
    const { sizeOf, maxSize } = this.#options
    if (!this.#isMeasured) {
      this.#isMeasured = true
      this.#size = 0
      for (const event of this.#events) this.#size += sizeOf(event)
    }
    if (this.#size <= maxSize) return
    this.#isBehind = true
    this.#events = []
  }
}

/** The events that two neighbours were last joined to, by the later one: readers at the same place share them. */
const joins = new WeakMap<object, { readonly earlier: object; readonly joined: unknown }>()

function joinedOnce<Event extends object>(
  earlier: Event,
  later: Event,
  join: MailboxOptions<Event>['join'],
): Event | null {
  const known = joins.get(later)
  if (known?.earlier === earlier) return known.joined as Event | null
  const joined = join(earlier, later)
  joins.set(later, { earlier, joined })
  return joined
}

/** Sizes of events, in characters of their JSON: counted once for all readers. */
const sizes = new WeakMap<object, number>()

export function sizeOfJson(event: object): number {
  let size = sizes.get(event)
  if (size === undefined) sizes.set(event, (size = JSON.stringify(event).length))
  return size
}
