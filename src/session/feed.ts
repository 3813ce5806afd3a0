import type { LogStore, RunEvent } from '../index.js'
import { Mailbox, sizeOfJson } from '../util/queue/mailbox.js'
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

/** The characters that may wait for one reader; one that is further behind gets the rest from the log. */
const MAX_WAITING = 1_048_576

/** The events of one conversation in this process: one order for all readers, and the snapshot that they add up to. */
export class Feed {
  readonly #readers = new Set<(event: ChatEvent) => void>()
  readonly #childReaders = new Set<(event: ChatEvent) => void>()
  readonly #onGap: () => void
  readonly #mailboxes = new Set<Mailbox<ChatEvent>>()
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
  /** Deltas of the reply that is arriving, joined by part. */
  #open: Delta[] = []
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
    return (this.#latest ??= this.#open.reduce(reduceChat, this.#folded))
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
    if (!this.#keepOpen(event)) this.#fold(event)
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
    { log, threadId }: { readonly log: LogStore; readonly threadId: string },
    from: ChatPlace,
    { signal, children = false, live = true }: Omit<EventsOptions, 'after'>,
  ): AsyncGenerator<ChatEvent, void, undefined> {
    const reader = new FeedReader(from)
    for (;;) {
      const mailbox = new Mailbox({ maxSize: MAX_WAITING, sizeOf, join: joinedDeltas })
      const add = (event: ChatEvent): void => mailbox.add(event)
      this.#mailboxes.add(mailbox)
      const stops = [
        () => this.#mailboxes.delete(mailbox),
        this.listen(add),
        children ? this.#listenToChildren(add) : null,
        onAbort(signal, mailbox),
      ]
      const open = live ? this.#open.map((delta) => ({ ...delta })) : []
      try {
        for await (const event of joined(storedEvents(log, threadId, reader.place), open)) {
          if (signal?.aborted === true) return
          const shown = reader.next(event)
          if (shown !== null) yield shown
        }
        if (!live || this.#hasEnded) return
        for (let events = await mailbox.take(); events !== null; events = await mailbox.take()) {
          for (const event of events) {
            if (signal?.aborted === true) return
            const shown = reader.next(event)
            if (shown !== null) yield shown
          }
          // Only a closed mailbox gives none.
          if (events.length === 0) return
        }
      } finally {
        for (const stop of stops) stop?.()
      }
      reader.fallBehind()
    }
  }

  /** No further events come: ends the reading of all readers. */
  end(): void {
    this.#hasEnded = true
    for (const mailbox of this.#mailboxes) mailbox.close()
  }

  #listenToChildren(reader: (event: ChatEvent) => void): () => void {
    this.#childReaders.add(reader)
    return () => void this.#childReaders.delete(reader)
  }

  /** True for a delta, which is kept until the reply is complete or withdrawn. */
  #keepOpen(event: AnyEvent): boolean {
    if ('threadId' in event) return false
    if (!isDelta(event)) {
      if (event.durable || event.kind === 'deltas_withdrawn') this.#open = []
      return false
    }
    const last = this.#open.at(-1)
    if (last === undefined || partOf(last) !== partOf(event)) this.#open.push({ ...event })
    else last.text += event.text
    return true
  }
}

/** The place of one reader in the events of a conversation. */
class FeedReader {
  #place: ChatPlace
  /** Deltas of the present reply are missing: the reader gets it when it is complete. */
  #isCut = false

  constructor(from: ChatPlace) {
    this.#place = from
  }

  get place(): ChatPlace {
    return this.#place
  }

  /** The reader was too far behind: events are read from the log again. */
  fallBehind(): void {
    this.#isCut = true
  }

  /** The event as all readers get it; null for one that the reader has, or cannot use. */
  next(event: AnyEvent | ChatEvent): ChatEvent | null {
    if ('threadId' in event || event.parentRunId === null) {
      const after = placeAfter(this.#place, event)
      if (after === null) return null
      this.#place = after
      if (!('threadId' in event)) {
        if (BEGIN_TURN.has(event.kind)) this.#isCut = false
        if (this.#isCut && isDelta(event)) return null
      }
    }
    const cursor = cursorOf(this.#place)
    // All readers share the object, and with it what is made of it.
    return 'cursor' in event && event.cursor === cursor ? event : { ...event, cursor }
  }
}

/** Kinds after which the deltas of a reply are complete. */
const BEGIN_TURN: ReadonlySet<string> = new Set(['model_request_started', 'deltas_withdrawn'])

type StreamedDelta = Extract<RunEvent, { readonly kind: 'text_delta' | 'reasoning_delta' | 'tool_input_delta' }>

/** A copy to which the text of the next deltas is added. */
type Delta = StreamedDelta & { text: string }

function isDelta(event: RunEvent): event is StreamedDelta {
  return event.kind === 'text_delta' || event.kind === 'reasoning_delta' || event.kind === 'tool_input_delta'
}

/** Two neighbouring deltas of one part as one; null for anything else. */
function joinedDeltas(earlier: ChatEvent, later: ChatEvent): ChatEvent | null {
  if ('threadId' in earlier || 'threadId' in later || !isDelta(earlier) || !isDelta(later)) return null
  if (earlier.runId !== later.runId || partOf(earlier) !== partOf(later)) return null
  return { ...later, text: earlier.text + later.text }
}

function sizeOf(event: ChatEvent): number {
  return !('threadId' in event) && isDelta(event) ? event.text.length : sizeOfJson(event)
}

function onAbort(signal: AbortSignal | undefined, mailbox: Mailbox<ChatEvent>): () => void {
  const close = (): void => mailbox.close()
  if (signal?.aborted === true) close()
  signal?.addEventListener('abort', close)
  return () => signal?.removeEventListener('abort', close)
}

function partOf(event: StreamedDelta): string {
  return `${event.kind} ${'partId' in event ? event.partId : event.callId}`
}

async function* joined(stored: AsyncIterable<AnyEvent>, open: readonly RunEvent[]): AsyncGenerator<AnyEvent> {
  yield* stored
  yield* open
}
