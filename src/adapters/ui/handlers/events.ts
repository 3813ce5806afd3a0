import type { ChatEvent } from '#session/thread/chat-cursor.js'
import type { EventsOptions } from '#session/conversation/feed.js'
import { SSE_HEADERS, sseBody } from '../http/sse-body.js'
import { encodeNative, nativeProjection, parseNativeCursor } from '../native/native-projection.js'
import type { NativeCursor, NativeItem, NativeOptions } from '../native/native-projection.js'
import { shownEvent, shownOnce } from '../native/shown-event.js'
import type { AnyRunEvent, Projection } from '../projection.js'
import type { HandlerContext } from './handler-context.js'
import { asHandler, badRequest, jsonResponse, pathAfter, waitMs } from './http.js'
import type { Handler } from './http.js'
import type { ServedOptions } from './options.js'
import { streamResponse } from './run-stream.js'
import type { Thread } from './thread.js'

/** How a browser reconnects: after so long, in ms. */
const PREAMBLE = 'retry: 2000\n: thinharness\n\n'

/**
 * Native server-sent events: `GET …/runs/{runId}/events` follows a run to its pause or end; `GET …/threads/{threadId}/events`
 * follows a conversation. The cursor is `Last-Event-ID` or `?after=`, and `?wait=<s>` answers with a JSON list. For a run,
 * `?children=1` includes child runs and `?deltas=0` leaves deltas out.
 */
export function eventsHandler(context: HandlerContext): Handler {
  const frames = new ThreadFrames(context.options)
  return asHandler(context, async (request, url) => {
    if (request.method !== 'GET') return new Response(null, { status: 405, headers: { allow: 'GET' } })
    const [threadId, last] = pathAfter(url, 'threads') ?? []
    if (threadId !== undefined && last === 'events') return threadEvents(context, request, { url, threadId, frames })
    const [runId, name] = pathAfter(url, 'runs') ?? []
    if (runId === undefined || name !== 'events') return new Response(null, { status: 404 })
    return runEvents(context, request, { url, runId })
  })
}

async function runEvents(
  context: HandlerContext,
  request: Request,
  { url, runId }: { readonly url: URL; readonly runId: string },
): Promise<Response> {
  const { options } = context
  const { searchParams } = url
  const cursor = runCursor(request, url, runId)
  const thread = await context.run(request, { runId, action: 'read' })
  if (thread instanceof Response) return thread
  const [children, deltas] = [searchParams.get('children') === '1', searchParams.get('deltas') !== '0']
  const shown: NativeOptions = { ...options, after: cursor, children }
  const run = thread.runs.find((each) => each.runId === runId)
  const hasEnded = run !== undefined && run.status !== 'running' && run.status !== 'interrupted'
  if (hasEnded && run.status !== 'paused' && cursor.seq >= run.seq) return new Response(null, { status: 204 })
  const abort = new AbortController()
  const batches = thread.follow(runId, { signal: abort.signal, deltas, children })
  const projection = nativeProjection(shown, shownOnce(options))
  const wait = searchParams.get('wait')
  if (wait !== null) return runList(batches, { projection, ms: waitMs(wait), abort, after: String(cursor.seq) })
  return streamResponse(options, request, batches, {
    protocol: {
      projection,
      encode: encodeNative,
      key: `native ${children} ${options.reasoning !== false} ${options.diagnostics === true}`,
    },
    preamble: PREAMBLE,
    abort,
  })
}

function runCursor(request: Request, url: URL, runId: string): NativeCursor {
  const text = request.headers.get('last-event-id') ?? url.searchParams.get('after') ?? '0'
  try {
    return parseNativeCursor(text, runId)
  } catch (error) {
    throw badRequest(error instanceof Error ? error.message : 'The cursor is not valid.')
  }
}

interface RunList {
  readonly projection: Projection<NativeItem>
  /** How long to wait for the first event. */
  readonly ms: number
  readonly abort: AbortController
  readonly after: string
}

/**
 * What is stored as one JSON list, for proxies that buffer; with a time, the answer waits for something until then. Deltas
 * are left out: without a cursor of their own, the next request would get them again at once.
 */
async function runList(
  batches: AsyncIterable<readonly AnyRunEvent[]>,
  { projection, ms, abort, after }: RunList,
): Promise<Response> {
  const items: NativeItem[] = []
  const timer = setTimeout(() => abort.abort(), ms)
  try {
    for await (const batch of batches) {
      items.push(...batch.flatMap((event) => projection.next(event)).filter(({ id }) => id !== undefined))
      if (items.length === 0) continue
      // What is stored comes at once: what follows it is for the next request.
      clearTimeout(timer)
      setTimeout(() => abort.abort(), 0)
    }
  } finally {
    clearTimeout(timer)
  }
  const hasEnded = !abort.signal.aborted
  const [end] = projection.end()
  const { status } = (end?.data ?? {}) as { readonly status?: string }
  const body = items.map(({ data }) => data)
  return jsonResponse(200, body, {
    'x-cursor': items.at(-1)?.id ?? after,
    ...(hasEnded && status !== undefined && { 'x-end': status }),
  })
}

/**
 * The events of a conversation in one order, for `reduceChat`: those of the thread and of its runs, with the cursor as id. The
 * stream stays open from run to run. `?wait=<s>`: the stored ones as a JSON list, with the last cursor in `x-cursor`.
 */
async function threadEvents(
  context: HandlerContext,
  request: Request,
  { url, threadId, frames }: { readonly url: URL; readonly threadId: string; readonly frames: ThreadFrames },
): Promise<Response> {
  const { options } = context
  const thread = await context.thread(request, { threadId, action: 'read' })
  if (thread instanceof Response) return thread
  const after = await threadCursor(request, url, thread)
  const wait = url.searchParams.get('wait')
  if (wait !== null) return threadList(thread, options, { after, ms: waitMs(wait), signal: request.signal })
  const abort = new AbortController()
  const body = sseBody(frames.of(thread.events({ after, signal: abort.signal })), {
    preamble: PREAMBLE,
    heartbeatMs: options.heartbeatMs,
    maxStreamMs: options.maxStreamMs,
    request,
    onCancel: () => abort.abort(),
  })
  return new Response(body, { headers: SSE_HEADERS })
}

async function threadCursor(request: Request, url: URL, thread: Thread): Promise<string | undefined> {
  const text = request.headers.get('last-event-id') ?? url.searchParams.get('after') ?? '0'
  if (text === '0') return undefined
  await thread.checkCursor(text)
  return text
}

/** What is stored, for proxies that buffer. Deltas are left out: the next request would get them again at once. */
async function threadList(
  thread: Thread,
  options: ServedOptions,
  { after, ms, signal }: Pick<EventsOptions, 'after'> & { readonly ms: number; readonly signal: AbortSignal },
): Promise<Response> {
  let stored = await storedEvents(thread, after)
  if (stored.length === 0 && ms > 0) {
    await firstStored(thread, after, AbortSignal.any([AbortSignal.timeout(ms), signal]))
    stored = await storedEvents(thread, after)
  }
  const shown = stored.flatMap((event) => shownThreadEvent(event, options) ?? [])
  return jsonResponse(200, shown, { 'x-cursor': stored.at(-1)?.cursor ?? after ?? '0' })
}

async function storedEvents(thread: Thread, after: string | undefined): Promise<readonly ChatEvent[]> {
  const stored: ChatEvent[] = []
  for await (const event of thread.events({ after, live: false })) stored.push(event)
  return stored
}

/** Resolves with the next stored event, or when `signal` aborts. */
async function firstStored(thread: Thread, after: string | undefined, signal: AbortSignal): Promise<void> {
  for await (const event of thread.events({ after, signal })) if (isStored(event)) return
}

/** Frames of the events of conversations; all readers share them. */
class ThreadFrames {
  readonly #options: ServedOptions
  readonly #frames = new WeakMap<ChatEvent, string>()

  constructor(options: ServedOptions) {
    this.#options = options
  }

  async *of(events: AsyncIterable<ChatEvent>): AsyncGenerator<string, void, undefined> {
    let hasDelta = false
    for await (const event of events) {
      // A reader who comes back gets the open reply from its beginning.
      if (!hasDelta && !('threadId' in event) && event.kind.endsWith('_delta')) {
        hasDelta = true
        yield `event: open_turn\ndata: ${JSON.stringify({ seq: event.seq, runId: event.runId })}\n\n`
      }
      const frame = this.#frameOf(event)
      if (frame !== '') yield frame
    }
  }

  #frameOf(event: ChatEvent): string {
    let frame = this.#frames.get(event)
    if (frame === undefined) {
      const shown = shownThreadEvent(event, this.#options)
      const idLine = isStored(event) ? `id: ${event.cursor}\n` : ''
      const data = shown === null ? '' : this.#options.paths.hide(JSON.stringify(shown))
      frame = shown === null ? '' : `${idLine}event: ${event.kind}\ndata: ${data}\n\n`
      this.#frames.set(event, frame)
    }
    return frame
  }
}

/** What a page gets of an event; null: nothing. */
function shownThreadEvent({ cursor, ...event }: ChatEvent, options: ServedOptions): object | null {
  if (!('threadId' in event)) options.paths.learn(event)
  const shown = 'threadId' in event ? event : shownEvent(event, options)
  return shown && { ...shown, cursor }
}

function isStored(event: ChatEvent): boolean {
  return 'threadId' in event || event.durable
}
