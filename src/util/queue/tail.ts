import { isAborted, onAbort } from '../abort.js'
import { beginsReply, isDelta, ReplyDeltas } from './deltas.js'
import { Mailbox } from './mailbox.js'
import type { Listener } from './mailbox.js'

interface AnyEvent {
  readonly kind: string
  readonly runId?: string
  readonly seq: number
}

/** The events of a log that this process sees as they come, for any number of readers. */
export class LiveEvents<Event extends AnyEvent> {
  readonly #listeners = new Set<Listener<Event>>()
  readonly #reply = new ReplyDeltas<Event>()
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
