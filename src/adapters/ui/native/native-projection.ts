import { HarnessError } from '#contracts/errors.js'
import { isDelta } from '#util/queue/deltas.js'
import { isStretchEnd, project, untilEnd } from '../projection.js'
import type { AnyRunEvent, Projection, ProjectionOptions } from '../projection.js'
import { shownEvent } from './shown-event.js'
import { sseBody } from '../http/sse-body.js'

/** An event of a stream of native server-sent events. */
export interface NativeItem {
  /** The reader's cursor after it; absent for what is not stored. */
  readonly id?: string
  readonly event: string
  readonly data: unknown
}

/** How a stretch of a run ended. */
export type EndStatus = 'completed' | 'paused' | 'failed' | 'cancelled' | 'interrupted'

export interface NativeOptions extends Omit<ProjectionOptions, 'after'> {
  /** The reader's cursor. Default: the beginning. */
  readonly after?: NativeCursor | undefined
  /** With the events of child runs. Default false. */
  readonly children?: boolean | undefined
}

/** The last events that a reader has: of the run, and of its child runs by id. */
export interface NativeCursor {
  readonly seq: number
  readonly children: ReadonlyMap<string, number>
}

/** A cursor of a reader of child runs is no longer than this; it then drops child runs that have ended. */
const LONGEST_CURSOR = 4096

/** The run's own events, without what is private to the server. `shown`: how an event is shown; default: by the options. */
export function nativeProjection(
  options: NativeOptions = {},
  shown: (event: AnyRunEvent) => unknown = (event) => shownEvent(event, options),
): Projection<NativeItem> {
  return new NativeProjection(options, shown)
}

class NativeProjection implements Projection<NativeItem> {
  readonly #options: NativeOptions
  readonly #shown: (event: AnyRunEvent) => unknown
  /** The last events that the reader has, by run. */
  readonly #seen: Map<string, number>
  readonly #ended = new Set<string>()
  readonly #after: number
  #runId = ''
  #seq = 0
  #status: EndStatus = 'interrupted'
  /** Number of the request whose reply is arriving, if this stream has not named it. */
  #turnBefore: number | null = null

  constructor(options: NativeOptions, shown: (event: AnyRunEvent) => unknown) {
    this.#options = options
    this.#shown = shown
    this.#after = options.after?.seq ?? 0
    this.#seen = new Map(options.after?.children)
  }

  next(event: AnyRunEvent): readonly NativeItem[] {
    const isOwn = event.parentRunId === null || event.runId === this.#runId || this.#runId === ''
    if (this.#runId === '' && isOwn) this.#runId = event.runId
    if (!isOwn && this.#options.children !== true) return []
    if (isOwn) this.#follow(event)
    const isKnown = event.durable && event.seq <= (isOwn ? this.#after : (this.#seen.get(event.runId) ?? 0))
    if (isKnown) return []
    if (!isOwn && isStretchEnd(event)) this.#ended.add(event.runId)
    if (event.durable) this.#seen.set(event.runId, event.seq)
    const shown = this.#shown(event)
    if (shown === null) return []
    const item = event.durable
      ? { id: this.#cursor(), event: event.kind, data: shown }
      : { event: event.kind, data: shown }
    if (this.#turnBefore === null || !isOwn || !isDelta(event)) return [item]
    const seq = this.#turnBefore
    this.#turnBefore = null
    return [{ event: 'open_turn', data: { seq, runId: event.runId } }, item]
  }

  end(): readonly NativeItem[] {
    return [{ event: 'end', data: { status: this.#status, seq: this.#seq } }]
  }

  join(earlier: NativeItem, later: NativeItem): NativeItem | null {
    const [one, other] = [earlier.data, later.data] as readonly { readonly text?: unknown; readonly partId?: unknown }[]
    if (earlier.id !== undefined || earlier.event !== later.event || typeof one?.text !== 'string') return null
    if (one.partId !== other?.partId || typeof other?.text !== 'string') return null
    return { ...later, data: { ...other, text: one.text + other.text } }
  }

  #follow(event: AnyRunEvent): void {
    if (event.durable) this.#seq = event.seq
    if (event.kind === 'model_request_started') this.#turnBefore = event.seq <= this.#after ? event.seq : null
    else if (event.kind === 'model_message') this.#turnBefore = null
    if (event.kind === 'run_completed') this.#status = event.pending.length > 0 ? 'paused' : 'completed'
    else if (event.kind === 'run_failed') this.#status = event.stopReason === 'cancelled' ? 'cancelled' : 'failed'
    else if (event.durable) this.#status = 'interrupted'
  }

  /** Of the run alone its number; with child runs, `<run id>:<number>` of each. */
  #cursor(): string {
    if (this.#options.children !== true) return String(this.#seq)
    const seenPlaces = (): string => [...this.#seen].map(([runId, seq]) => `${runId}:${seq}`).join(',')
    const all = seenPlaces()
    if (all.length <= LONGEST_CURSOR) return all
    for (const runId of this.#ended) this.#seen.delete(runId)
    return seenPlaces()
  }
}

/** Reads a cursor: a number, or `<run id>:<number>` of each run. Throws `invalid_options` for anything else. */
export function parseNativeCursor(cursor: string, runId: string): NativeCursor {
  if (/^\d{1,15}$/.test(cursor)) return { seq: Number(cursor), children: new Map() }
  const places = cursor.split(',').map((place): [string, number] => {
    const [, id, seq] = /^(.+):(\d{1,15})$/.exec(place) ?? []
    if (id === undefined)
      throw new HarnessError(
        'invalid_options',
        `Expected the cursor to be a whole number from 0 up, or the id of an event, got "${cursor.slice(0, 80)}".`,
      )
    return [id, Number(seq)]
  })
  const children = new Map(places)
  const seq = children.get(runId) ?? 0
  children.delete(runId)
  return { seq, children }
}

/** The JSON of data that several readers share. */
const texts = new WeakMap<object, string>()

/** An item as server-sent event. */
export function encodeNative({ id, event, data }: NativeItem): string {
  const idLine = id === undefined ? '' : `id: ${id}\n`
  return `${idLine}event: ${event}\ndata: ${eventJson(data)}\n\n`
}

function eventJson(data: unknown): string {
  if (typeof data !== 'object' || data === null) return JSON.stringify(data)
  let text = texts.get(data)
  if (text === undefined) texts.set(data, (text = JSON.stringify(data)))
  return text
}

/**
 * The events of a run as a body of native server-sent events: `id` is the cursor of what is stored, and the last item is `end`.
 * A source that fails breaks the body off.
 *
 * @example
 * new Response(toSse(harness.stream('Hello.')), { headers: { 'content-type': 'text/event-stream' } })
 */
export function toSse(
  events: AsyncIterable<AnyRunEvent> | Iterable<AnyRunEvent>,
  options: NativeOptions = {},
): ReadableStream<Uint8Array> {
  return sseBody(nativeFrames(events, options))
}

async function* nativeFrames(
  events: AsyncIterable<AnyRunEvent> | Iterable<AnyRunEvent>,
  options: NativeOptions,
): AsyncGenerator<string, void, undefined> {
  for await (const item of project(untilEnd(events), nativeProjection(options))) yield encodeNative(item)
}
