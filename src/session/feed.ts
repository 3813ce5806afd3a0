import type { LogStore, RunEvent } from '../index.js'
import { isAborted } from '../util/abort.js'
import { beginsReply, isDelta, OpenReply } from '../util/queue/deltas.js'
import type { Mailbox } from '../util/queue/mailbox.js'
import { tail } from '../util/queue/tail.js'
import type { TailReader } from '../util/queue/tail.js'
import { BEGINNING, cursorOf, placeAfter, storedEvents } from './thread/cursor.js'
import type { ChatEvent, ChatPlace } from './thread/cursor.js'
import { reduceChat } from './thread/reduce-chat.js'
import type { ChatRun, ChatSnapshot } from './thread/reduce-chat.js'
import type { RunPlace, ThreadEvent } from './thread/thread-events.js'

type AnyEvent = ThreadEvent | RunEvent

export interface EventsOptions {
  /** The cursor of the last event that the reader has. Default: all events. */
  readonly after?: string | undefined
  /** Ends the iteration, without an error. */
  readonly signal?: AbortSignal | undefined
  /**
   * Also the events of child runs that this process executes, as they come. They are stored in the logs of their own runs, and not
   * read from there. Default false.
   */
  readonly children?: boolean | undefined
  /** False: ends after the stored events. Default true. */
  readonly live?: boolean | undefined
}

/** The events of one conversation in this process: one order for all readers, and the snapshot that they add up to. */
export class Feed {
  readonly #readers = new Set<(event: ChatEvent) => void>()
  readonly #childReaders = new Set<(event: ChatEvent) => void>()
  readonly #onGap: () => void
  readonly #boxes = new Set<Mailbox<ChatEvent>>()
  #hasEnded = false
  #place: ChatPlace = BEGINNING
  /** Of the latest run alone, and without the deltas in `#open`: they are folded when somebody looks. */
  #folded: ChatSnapshot | undefined
  /** The runs before the latest. A list of all runs would be copied at each event. */
  #earlier: ChatRun[] = []
  /** As last shown; undefined after another event. */
  #latest: ChatSnapshot | undefined
  #snapshot: ChatSnapshot | undefined
  /** All runs as last shown. */
  #all: { readonly latest: readonly ChatRun[]; readonly runs: readonly ChatRun[] } = { latest: [], runs: [] }
  #open = new OpenReply<RunEvent>()
  /** Events of the run that arrived while an event of the thread was being stored; null: none is. */
  #held: RunEvent[] | null = null

  /** `onGap` is called for an event that cannot be passed on, because one before it has not been: the log has both. */
  constructor(onGap: () => void) {
    this.#onGap = onGap
  }

  get snapshot(): ChatSnapshot | undefined {
    const { latest } = this
    if (latest === undefined) return undefined
    if (this.#all.latest !== latest.runs) this.#all = { latest: latest.runs, runs: [...this.#earlier, ...latest.runs] }
    return (this.#snapshot ??= { ...latest, runs: this.#all.runs })
  }

  /** The snapshot with the latest run alone. */
  get latest(): ChatSnapshot | undefined {
    return (this.#latest ??= this.#open.deltas.reduce(reduceChat, this.#folded))
  }

  get place(): ChatPlace {
    return this.#place
  }

  /** The last event of the latest run. */
  get runPlace(): RunPlace | null {
    const { runId, run } = this.#place
    return runId === null ? null : { runId, seq: run }
  }

  /** Holds the live events of the run until `work` has stored an event of the thread: `after` of that event stays true. */
  async whileHeld<T>(work: () => Promise<T>): Promise<T> {
    this.#held = []
    try {
      return await work()
    } finally {
      const held = this.#held
      this.#held = null
      for (const event of held) this.push(event)
    }
  }

  /** Passes an event of this process on; one that was passed on before is dropped. */
  readonly push = (event: AnyEvent): void => {
    if (this.#held !== null && !('threadId' in event)) this.#held.push(event)
    else this.pushStored(event)
  }

  /** Passes an event on that was read from the log, in its order: another process may have gone on to the next run. */
  readonly pushStored = (event: AnyEvent): void => {
    if (!('threadId' in event) && event.parentRunId !== null) {
      const shown: ChatEvent = { ...event, cursor: cursorOf(this.#place) }
      for (const reader of this.#childReaders) reader(shown)
      return
    }
    const place = placeAfter(this.#place, event)
    if (place === null) return
    if (
      place.thread > this.#place.thread + 1 ||
      (place.runId === this.#place.runId && place.run > this.#place.run + 1)
    ) {
      this.#onGap()
      return
    }
    this.#place = place
    this.#latest = undefined
    this.#snapshot = undefined
    if (event.kind === 'run_begun') this.#open = new OpenReply()
    if (!('threadId' in event)) this.#open.push(event)
    if (!isDelta(event)) this.#fold(event)
    if (this.#readers.size === 0) return
    const shown: ChatEvent = { ...event, cursor: cursorOf(place) }
    for (const reader of this.#readers) reader(shown)
  }

  #fold(event: AnyEvent): void {
    const folded = reduceChat(this.#folded, event)
    if (event.kind === 'run_begun') {
      const { replaces } = event
      if (replaces !== undefined) this.#earlier = this.#earlier.filter(({ runId }) => !replaces.runIds.includes(runId))
      this.#earlier.push(...folded.runs.slice(0, -1))
    }
    if (folded.runs.length > 1) this.#folded = { ...folded, runs: folded.runs.slice(-1) }
    // The run before one that was taken back is the latest again.
    else if (folded.runs.length === 0 && this.#earlier.length > 0)
      this.#folded = { ...folded, runs: this.#earlier.splice(-1) }
    else this.#folded = folded
  }

  get hasReaders(): boolean {
    return this.#readers.size > 0
  }

  listen(reader: (event: ChatEvent) => void): () => void {
    this.#readers.add(reader)
    return () => void this.#readers.delete(reader)
  }

  /** Resolves when the answers of all these calls are stored, which leave `ids` one by one. */
  answersOf(ids: Set<string>): { readonly stored: Promise<undefined>; readonly stop: () => void } {
    let stop = (): void => undefined
    const stored = new Promise<undefined>((resolve) => {
      stop = this.listen((event) => {
        if (event.kind === 'answer_received') ids.delete(event.callId)
        if (ids.size === 0) resolve(undefined)
      })
    })
    return { stored, stop }
  }

  /** Stored events from `from` on, then live ones, until the signal; without `live`, the stored ones alone. */
  async *read(
    thread: StoredThread,
    from: ChatPlace,
    { signal, children = false, live = true }: Omit<EventsOptions, 'after'>,
  ): AsyncGenerator<ChatEvent, void, undefined> {
    const reader = new FeedReader(this, { thread, from, signal, children })
    for await (const batch of live ? tail<ChatEvent>(reader, signal) : reader.stored())
      for (const event of batch) {
        if (isAborted(signal)) return
        yield event
      }
  }

  /** The deltas of the reply that is arriving, joined by part. */
  get openReply(): readonly RunEvent[] {
    return this.#open.deltas
  }

  /** Adds the events that come from now on to `box`; returns how to stop. */
  fill(box: Mailbox<ChatEvent>, children: boolean): () => void {
    const add = (event: ChatEvent): void => box.add(event)
    if (this.#hasEnded) box.close()
    this.#boxes.add(box)
    this.#readers.add(add)
    if (children) this.#childReaders.add(add)
    return () => {
      this.#boxes.delete(box)
      this.#readers.delete(add)
      this.#childReaders.delete(add)
    }
  }

  /** No further events come: ends the reading of all readers. */
  end(): void {
    this.#hasEnded = true
    for (const box of this.#boxes) box.close()
  }
}

interface StoredThread {
  readonly log: LogStore
  readonly threadId: string
}

interface FeedReaderOptions extends Pick<EventsOptions, 'signal' | 'children'> {
  readonly thread: StoredThread
  readonly from: ChatPlace
}

/** One reader of a conversation, and the reader's place in it. */
class FeedReader implements TailReader<ChatEvent> {
  readonly #feed: Feed
  readonly #options: FeedReaderOptions
  #place: ChatPlace
  /** Deltas of the present reply are missing: the reader gets it when it is complete. */
  #isCut = false
  readonly isOver = false

  constructor(feed: Feed, options: FeedReaderOptions) {
    this.#feed = feed
    this.#options = options
    this.#place = options.from
  }

  async *stored(): AsyncGenerator<readonly ChatEvent[]> {
    const { thread, signal } = this.#options
    for await (const event of storedEvents(thread.log, thread.threadId, this.#place)) {
      if (isAborted(signal)) return
      yield this.take([event])
    }
  }

  listen(box: Mailbox<ChatEvent>): () => void {
    return this.#feed.fill(box, this.#options.children === true)
  }

  openReply(): readonly ChatEvent[] {
    return this.#feed.openReply.map((delta) => ({ ...delta, cursor: '' }))
  }

  /** The feed has the events of other processes. */
  follow(): null {
    return null
  }

  take(events: readonly (AnyEvent | ChatEvent)[]): readonly ChatEvent[] {
    return events.flatMap((event) => this.#next(event) ?? [])
  }

  fallBehind(): void {
    this.#isCut = true
  }

  /** The event as all readers get it; null for one that the reader has, or cannot use. */
  #next(event: AnyEvent | ChatEvent): ChatEvent | null {
    if ('threadId' in event || event.parentRunId === null) {
      const after = placeAfter(this.#place, event)
      if (after === null) return null
      this.#place = after
      if (beginsReply(event.kind)) this.#isCut = false
      if (this.#isCut && isDelta(event)) return null
    }
    const cursor = cursorOf(this.#place)
    // All readers share the object, and with it what is made of it.
    return 'cursor' in event && event.cursor === cursor ? event : { ...event, cursor }
  }
}
