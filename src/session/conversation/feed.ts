import type { RunEvent } from '#core/state/events.js'
import { isAborted } from '#util/abort.js'
import { deepFreeze } from '#util/json.js'
import { isDelta } from '#util/queue/deltas.js'
import { LiveEvents, tail } from '#util/queue/tail.js'
import type { TailReader } from '#util/queue/tail.js'
import { BEGINNING, chatCursor, placeAfter } from '../thread/chat-cursor.js'
import type { ChatEvent, ChatPlace } from '../thread/chat-cursor.js'
import type { StoredError } from '../errors.js'
import { reduceConversation } from '../thread/transcript.js'
import type { ChatRun, ChatSnapshot } from '../thread/reduce-chat.js'
import type { RunPlace, ThreadEvent } from '../thread/thread-events.js'

type AnyEvent = ThreadEvent | RunEvent

export interface EventsOptions {
  /** The cursor of the last event that the reader has; `end`: that of the last event so far. Default: all events. */
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
  readonly live = new LiveEvents<ChatEvent>()
  readonly #onGap: () => void
  #place: ChatPlace = BEGINNING
  /** Of the latest run alone, and without the deltas of the reply that is arriving: they are folded when somebody looks. */
  #folded: ChatSnapshot | undefined
  /** The runs before the latest. A list of all runs would be copied at each event. */
  #earlier: ChatRun[] = []
  /** As last shown; undefined after another event. */
  #latest: ChatSnapshot | undefined
  #snapshot: ChatSnapshot | undefined
  /** All runs as last shown. */
  #all: { readonly latest: readonly ChatRun[]; readonly runs: readonly ChatRun[] } = { latest: [], runs: [] }
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
    return (this.#latest ??= this.live.openReply.reduce(reduceConversation, this.#folded))
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
    if (isOfChild(event)) {
      this.live.push(deepFreeze({ ...event, cursor: chatCursor(this.#place) }), false)
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
    if (!isDelta(event)) this.#fold(event)
    // A conversation that is opened has thousands of events, and no reader.
    const isSeen = this.live.hasReaders || isDelta(event)
    const shown = isSeen ? deepFreeze({ ...event, cursor: chatCursor(place) }) : (event as ChatEvent)
    this.live.push(shown, !('threadId' in event))
  }

  /** The log of the latest run cannot be read to its end: the conversation shows why, as if it had been tried to go on. */
  refuse(error: StoredError): void {
    const { thread } = this.#folded ?? {}
    if (this.#folded === undefined || thread === undefined || thread.refused !== undefined) return
    this.#folded = { ...this.#folded, thread: { ...thread, refused: { ...error, seq: undefined } } }
    this.#latest = undefined
    this.#snapshot = undefined
  }

  #fold(event: AnyEvent): void {
    const folded = reduceConversation(this.#folded, event)
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
    return this.live.hasReaders
  }

  /** Calls `listener` with each event of the thread and its runs, without child runs; returns how to stop. */
  listen(listener: (event: ChatEvent) => void): () => void {
    const addEvent = (event: ChatEvent): void => {
      if (!isOfChild(event)) listener(event)
    }
    return this.live.listen({ add: addEvent, close: () => undefined })
  }

  /** Resolves when the answers of all these calls are stored, which leave `ids` one by one. */
  answersOf(ids: Set<string>): { readonly stored: Promise<undefined>; readonly stop: () => void } {
    let stopReading = (): void => undefined
    const stored = new Promise<undefined>((resolve) => {
      stopReading = this.listen((event) => {
        if (event.kind === 'answer_received') ids.delete(event.callId)
        if (ids.size === 0) resolve(undefined)
      })
    })
    return { stored, stop: stopReading }
  }

  /** Stored events from a place on, then live ones, until the signal; without `live`, the stored ones alone. */
  async *read(reading: FeedReading): AsyncGenerator<ChatEvent, void, undefined> {
    const { signal, live = true, from } = reading
    const reader = new FeedReader(this.live, await from(), reading)
    for await (const batch of live ? tail<ChatEvent>(reader, signal) : reader.stored())
      for (const event of batch) {
        if (isAborted(signal)) return
        yield event
      }
  }

  /** No further events come: ends the reading of all readers. */
  end(): void {
    this.live.close()
  }
}

function isOfChild(event: AnyEvent): boolean {
  return !('threadId' in event) && event.parentRunId !== null
}

interface FeedReading extends EventsOptions {
  readonly from: () => Promise<ChatPlace>
  /** The stored events after a place. */
  readonly stored: (place: ChatPlace) => AsyncIterable<AnyEvent>
  /** An event of the thread as readers get it. */
  readonly shown: <Event extends ThreadEvent>(event: Event) => Event
}

/** One reader of a conversation, and the reader's place in it. */
class FeedReader implements TailReader<ChatEvent> {
  readonly live: LiveEvents<ChatEvent>
  readonly #reading: FeedReading
  #place: ChatPlace

  constructor(live: LiveEvents<ChatEvent>, from: ChatPlace, reading: FeedReading) {
    this.live = live
    this.#place = from
    this.#reading = reading
  }

  async *stored(): AsyncGenerator<readonly ChatEvent[]> {
    const { stored, signal } = this.#reading
    for await (const event of stored(this.#place)) {
      if (isAborted(signal)) return
      yield this.take([event])
    }
  }

  take(events: readonly (AnyEvent | ChatEvent)[]): readonly ChatEvent[] {
    return events.flatMap((event) => this.#next(event) ?? [])
  }

  /** The event as all readers get it; null for one that the reader has, or cannot use. */
  #next(event: AnyEvent | ChatEvent): ChatEvent | null {
    if (!isOfChild(event)) {
      const after = placeAfter(this.#place, event)
      if (after === null) return null
      this.#place = after
    } else if (this.#reading.children !== true) return null
    const cursor = chatCursor(this.#place)
    // All readers share the object, and with it what is made of it.
    const placed = 'cursor' in event && event.cursor === cursor ? event : { ...event, cursor }
    return deepFreeze('threadId' in placed ? this.#reading.shown(placed) : placed)
  }
}
