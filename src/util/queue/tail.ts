import { isAborted, onAbort } from '../abort.js'
import { beginsReply, isDelta, ArrivingReply, joinDeltas } from './deltas.js'
import { Bell } from './polled.js'

interface AnyEvent {
  readonly kind: string
  readonly runId?: string
  readonly seq: number
}

/** The events of a log that this process sees as they come, for any number of readers. */
export class LiveEvents<Event extends AnyEvent> {
  readonly #listeners = new Set<Listener<Event>>()
  readonly #reply = new ArrivingReply<Event>()
  readonly #onIdle: () => void
  #isClosed = false

  /** `onIdle` is called when nobody listens any more, and no reply is arriving. */
  constructor(onIdle: () => void = () => undefined) {
    this.#onIdle = onIdle
  }

  get hasReaders(): boolean {
    return this.#listeners.size > 0
  }

  /** The deltas of the reply that is arriving, joined by part. */
  get openReply(): readonly Event[] {
    return this.#reply.deltas
  }

  /** Passes on each event from now on; returns how to stop. */
  listen(listener: Listener<Event>): () => void {
    if (this.#isClosed) listener.close()
    this.#listeners.add(listener)
    return () => {
      this.#listeners.delete(listener)
      this.#checkIdle()
    }
  }

  /** `isOwn`: the event is one of the run that is listened to, and not of a child run. */
  push(event: Event, isOwn = true): void {
    if (isOwn) this.#reply.push(event)
    for (const listener of this.#listeners) listener.add(event)
    this.#checkIdle()
  }

  /** No more events come. */
  close(): void {
    this.#isClosed = true
    for (const listener of this.#listeners) listener.close()
  }

  #checkIdle(): void {
    if (this.#listeners.size === 0 && this.#reply.isEmpty) this.#onIdle()
  }
}

/** One reader of a log that is being written, and the reader's place in it. */
export interface TailReader<Event extends AnyEvent> {
  /** The events that this process sees; null if it sees none. */
  readonly live: LiveEvents<Event> | null
  /** The reader has the last event: no other follows. */
  isOver?(): boolean
  /** The stored events after the reader's place. */
  stored(): AsyncIterable<readonly Event[]>
  /** The events that other processes store after the reader's place. Absent, or null: none are waited for. */
  follow?(signal: AbortSignal): AsyncIterable<Event> | null
  /** Those of some events that the reader does not have. */
  take(events: readonly Event[]): readonly Event[] | Promise<readonly Event[]>
}

/**
 * The events of a log from a reader's place on, each once, in batches of what is there: the stored ones, the reply that is
 * arriving, then the others as they come. A reader who is too slow is given the stored events again, from its place on, and no more
 * deltas of the replies that are arriving then. Ends at the signal, after the last event, and when no more events come.
 */
export async function* tail<Event extends AnyEvent>(
  reader: TailReader<Event>,
  signal: AbortSignal | undefined,
  maxWaiting?: number,
): AsyncGenerator<readonly Event[], void, undefined> {
  for (let wholeReplies = null; ; wholeReplies = new WholeReplies()) {
    const box = new Mailbox<Event>(maxWaiting)
    const over = new AbortController()
    const stops = [reader.live?.listen(box), onAbort(signal, () => box.close()), () => over.abort()]
    try {
      const openReply = reader.live?.openReply ?? []
      for await (const batch of reader.stored()) yield wholeReplies?.filter(batch) ?? batch
      if (reader.isOver?.() === true || isAborted(signal)) return
      const others = reader.follow?.(over.signal) ?? null
      if (others !== null) pump(others, box, over.signal)
      for (let events: readonly Event[] | null = openReply; events !== null; events = await box.take()) {
        const batch = await reader.take(wholeReplies?.filter(events) ?? events)
        if (batch.length > 0) yield batch
        if (reader.isOver?.() === true || isAborted(signal) || (events.length === 0 && events !== openReply)) return
      }
    } finally {
      for (const stop of stops) stop?.()
    }
  }
}

/** The replies of which a reader who had fallen behind gets the deltas: those that have begun since then. */
class WholeReplies {
  readonly #runIds = new Set<string | undefined>()

  filter<Event extends AnyEvent>(events: readonly Event[]): readonly Event[] {
    return events.filter(({ kind, runId }) => {
      if (beginsReply(kind)) this.#runIds.add(runId)
      return !isDelta({ kind }) || this.#runIds.has(runId)
    })
  }
}

/** Adds events to a mailbox until the signal. Closes the mailbox after the last one, and passes an error on to its reader. */
export function pump<Event extends { readonly kind: string }>(
  events: AsyncIterable<Event>,
  box: Mailbox<Event>,
  signal: AbortSignal,
): void {
  const readAll = async (): Promise<void> => {
    for await (const event of events) {
      if (signal.aborted) return
      box.add(event)
    }
    if (!signal.aborted) box.close()
  }
  void readAll().catch((error: unknown) => box.fail(error))
}

/** How often it is checked that somebody still writes to a log, in ms. */
const CHECK_MS = 1_000

/** The events that `follow` gives until nobody will store another: `isOver` is asked again and again. */
export async function* untilOver<Event>(
  follow: (signal: AbortSignal) => AsyncIterable<Event>,
  isOver: () => Promise<boolean>,
  signal: AbortSignal | undefined,
): AsyncGenerator<Event, void, undefined> {
  const over = new AbortController()
  const endTail = (): void => over.abort()
  const stopListening = onAbort(signal, endTail)
  const timer = setInterval(() => void isOver().then((is) => is && endTail(), ignoreFailure), CHECK_MS)
  try {
    yield* follow(over.signal)
  } finally {
    clearInterval(timer)
    endTail()
    stopListening()
  }
}

/** The store failed: the next check finds out. */
function ignoreFailure(): void {}

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
    this.#size += eventSize(event)
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

function eventSize(event: { readonly kind: string }): number {
  if (isDelta(event)) return event.text.length
  let size = sizes.get(event)
  if (size === undefined) sizes.set(event, (size = JSON.stringify(event).length))
  return size
}
