import type { RunEvent, StreamEvent } from '#core/state/events.js'

/** An event of a run, from its log or live. */
export type AnyRunEvent = RunEvent | StreamEvent

/** The events of a kind. */
export type AnyEventOf<Kind extends AnyRunEvent['kind']> = Extract<AnyRunEvent, { readonly kind: Kind }>

/**
 * Turns the events of one run, and of its child runs, into the items of a protocol. Pure: no I/O, no clock, no random numbers;
 * the same events give the same items, and ids are made of ids in the log.
 *
 * The events come in the order of the run: durable ones by `seq` from 1 on; deltas of a reply between its
 * `model_request_started` and its `model_message`, or none of them. Events of a child run come by its own `seq`, after the
 * `tool_call_started` of their call.
 */
export interface Projection<Item> {
  /** The items of the next event, in order. */
  next(event: AnyRunEvent): readonly Item[]
  /**
   * The last items of the stream, when no more events come: of the pause or end that the last event of the run was, or, if it was
   * neither, of a run that was interrupted: its owner has died, or it was left. What is open is closed. Items that end a stream
   * come from here and not from `next`: a log has several stretches, and a stream of it has one end.
   */
  end(): readonly Item[]
  /** Two neighbouring items as one, for a reader who is behind; null if they cannot be joined. */
  join(earlier: Item, later: Item): Item | null
}

/** Options of every projection. */
export interface ProjectionOptions {
  /**
   * Number of the last durable event whose items the client has: items of events up to it are left out, and the stream opens
   * after it. The projection is given all events nevertheless. Default 0.
   */
  readonly after?: number | undefined
  /** Text and reasoning as they arrive, or with the complete reply. Default `live`. */
  readonly deltas?: 'live' | 'settled' | undefined
  /** With reasoning. Default true. */
  readonly reasoning?: boolean | undefined
  /** With events that only diagnose: retries, limit warnings, failed hooks. Default false. */
  readonly diagnostics?: boolean | undefined
  /** The sentence that a reader gets of an error. Default: one by its code; messages of errors are not sent. */
  readonly errorText?: ((error: { readonly code: string; readonly message: string }) => string) | undefined
  /** The largest image or file that is sent in an item, in bytes. Default 262,144. */
  readonly maxInlineBytes?: number | undefined
  /** The link to content that is not sent in an item. Default: none. */
  readonly contentUrl?: ((content: LinkedContent) => string | undefined) | undefined
}

/** Content that is too large for an item, and its place in the log. */
export interface LinkedContent {
  readonly runId: string
  /** The event that has the content. */
  readonly seq: number
  /** The part of the event, from 0. */
  readonly index: number
  readonly mediaType: string
  /** In bytes. */
  readonly size: number
}

/** The items of a whole log, or of any other source of a run's events. */
export async function* project<Item>(
  events: AsyncIterable<AnyRunEvent> | Iterable<AnyRunEvent>,
  projection: Projection<Item>,
): AsyncGenerator<Item, void, undefined> {
  for await (const event of events) yield* projection.next(event)
  yield* projection.end()
}

/** A stream of items that come as its reader takes them; a reader that is gone ends them. */
export function toReadable<Item>(items: AsyncGenerator<Item, void, undefined>): ReadableStream<Item> {
  return new ReadableStream<Item>({
    async pull(controller) {
      const next = await items.next()
      if (next.done === true) controller.close()
      else controller.enqueue(next.value)
    },
    async cancel() {
      await items.return()
    },
  })
}

/** True for the last event of a run before a pause, or of all. */
export function isStretchEnd({ kind }: AnyRunEvent): boolean {
  return kind === 'run_completed' || kind === 'run_failed'
}

/** Kinds that only diagnose. */
export const DIAGNOSTICS: ReadonlySet<AnyRunEvent['kind']> = new Set([
  'transport_retry',
  'cache_bust',
  'hook_failed',
  'transcript_repaired',
  'limit_warning',
  'model_retry',
  'warning',
])

/** The events of each run with those of its child runs. */
export function splitRuns(events: Iterable<AnyRunEvent>): readonly (readonly AnyRunEvent[])[] {
  const runs = new Map<string, AnyRunEvent[]>()
  /** The run that the page shows, by run id: a child run belongs to the one that it is below. */
  const shown = new Map<string, string>()
  for (const event of events) {
    const { runId, parentRunId } = event
    const top = shown.get(runId) ?? (parentRunId === null ? undefined : shown.get(parentRunId)) ?? runId
    shown.set(runId, top)
    const own = runs.get(top) ?? []
    runs.set(top, own)
    own.push(event)
  }
  return [...runs.values()]
}

/** Without the error of a stream: the failure of a run is its last event. */
export async function* untilEnd(
  events: AsyncIterable<AnyRunEvent> | Iterable<AnyRunEvent>,
): AsyncGenerator<AnyRunEvent> {
  let hasFailed = false
  try {
    for await (const event of events) {
      hasFailed = event.kind === 'run_failed' && event.parentRunId === null
      yield event
    }
  } catch (error) {
    if (!hasFailed) throw error
  }
}
