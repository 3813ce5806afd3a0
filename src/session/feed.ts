import type { LogStore, RunEvent } from '../index.js'
import { BEGINNING, cursorOf, placeAfter, storedEvents } from './thread/cursor.js'
import type { ChatEvent, ChatPlace } from './thread/cursor.js'
import { reduceChat } from './thread/reduce-chat.js'
import type { ChatSnapshot } from './thread/reduce-chat.js'
import type { RunPlace, ThreadEvent } from './thread/thread-events.js'

type AnyEvent = ThreadEvent | RunEvent

export interface EventsOptions {
  /** The cursor of the last event that the reader has. Default: all events. */
  readonly after?: string | undefined
  /** Ends the iteration, without an error. */
  readonly signal?: AbortSignal | undefined
}

/** The events of one conversation in this process: one order for all readers, and the snapshot that they add up to. */
export class Feed {
  readonly #readers = new Set<(event: ChatEvent) => void>()
  readonly #onGap: () => void
  #place: ChatPlace = BEGINNING
  /** Without the deltas in `#open`: they are folded when somebody looks. */
  #snapshot: ChatSnapshot | undefined
  /** The snapshot as last shown; undefined after another event. */
  #shown: ChatSnapshot | undefined
  /** Deltas of the reply that is arriving, joined by part. */
  #open: Delta[] = []
  /** Events of the run that arrived while an event of the thread was being stored; null: none is. */
  #held: RunEvent[] | null = null

  /** `onGap` is called for an event that cannot be passed on, because one before it has not been: the log has both. */
  constructor(onGap: () => void) {
    this.#onGap = onGap
  }

  get snapshot(): ChatSnapshot | undefined {
    return (this.#shown ??= this.#open.reduce(reduceChat, this.#snapshot))
  }

  get place(): ChatPlace {
    return this.#place
  }

  /** The last event of the latest run. */
  get runPlace(): RunPlace | null {
    const { runId, run } = this.#place
    return runId === null ? null : { runId, seq: run }
  }

  /** Holds the events of the run until `work` has stored an event of the thread: `after` of that event stays true. */
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

  /** Passes an event on; one that was passed on before is dropped. */
  readonly push = (event: AnyEvent): void => {
    if (this.#held !== null && !('threadId' in event)) {
      this.#held.push(event)
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
    this.#shown = undefined
    if (!this.#keepOpen(event)) this.#snapshot = reduceChat(this.#snapshot, event)
    if (this.#readers.size === 0) return
    const shown: ChatEvent = { ...event, cursor: cursorOf(place) }
    for (const reader of this.#readers) reader(shown)
  }

  get hasReaders(): boolean {
    return this.#readers.size > 0
  }

  listen(reader: (event: ChatEvent) => void): () => void {
    this.#readers.add(reader)
    return () => void this.#readers.delete(reader)
  }

  /** Stored events from `from` on, then live ones, until the signal. */
  async *read(
    { log, threadId }: { readonly log: LogStore; readonly threadId: string },
    from: ChatPlace,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<ChatEvent, void, undefined> {
    const live: ChatEvent[] = []
    let wake = (): void => undefined
    const stop = this.listen((event) => {
      live.push(event)
      wake()
    })
    const onAbort = (): void => wake()
    signal?.addEventListener('abort', onAbort)
    const open = this.#open.map((delta) => ({ ...delta }))
    const isOver = (): boolean => signal?.aborted === true
    let place = from
    try {
      const next = (event: AnyEvent): ChatEvent | null => {
        const after = placeAfter(place, event)
        if (after === null) return null
        place = after
        return { ...event, cursor: cursorOf(place) }
      }
      for await (const event of joined(storedEvents(log, threadId, from), open)) {
        if (isOver()) return
        const shown = next(event)
        if (shown !== null) yield shown
      }
      while (!isOver()) {
        const event = live.shift()
        if (event === undefined) await new Promise<void>((resolve) => (wake = resolve))
        else {
          const shown = next(event)
          if (shown !== null) yield shown
        }
      }
    } finally {
      stop()
      signal?.removeEventListener('abort', onAbort)
    }
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

type StreamedDelta = Extract<RunEvent, { readonly kind: 'text_delta' | 'reasoning_delta' | 'tool_input_delta' }>

/** A copy to which the text of the next deltas is added. */
type Delta = StreamedDelta & { text: string }

function isDelta(event: RunEvent): event is StreamedDelta {
  return event.kind === 'text_delta' || event.kind === 'reasoning_delta' || event.kind === 'tool_input_delta'
}

function partOf(event: StreamedDelta): string {
  return `${event.kind} ${'partId' in event ? event.partId : event.callId}`
}

async function* joined(stored: AsyncIterable<AnyEvent>, open: readonly RunEvent[]): AsyncGenerator<AnyEvent> {
  yield* stored
  yield* open
}
