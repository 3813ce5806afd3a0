import { encodeNative, nativeProjection, parseNativeCursor } from '../native/native-projection.js'
import type { NativeCursor, NativeItem, NativeOptions } from '../native/native-projection.js'
import { shownOnce } from '../native/shown-event.js'
import type { AnyRunEvent, Projection } from '../projection.js'
import type { ThreadPort } from './back-end.js'
import type { Gate, Handler } from './gate.js'
import { badRequest, json, pathAfter, waitMs } from './http.js'
import { threadEvents } from './thread-events.js'

/** How a browser reconnects: after so long, in ms. */
const PREAMBLE = 'retry: 2000\n: thinharness\n\n'

/**
 * Native server-sent events: `GET …/runs/{runId}/events` follows a run to its pause or end; `GET …/threads/{threadId}/events`
 * follows a conversation. The cursor is `Last-Event-ID` or `?after=`, and `?wait=<s>` answers with a JSON list. For a run,
 * `?children=1` includes child runs and `?deltas=0` leaves deltas out.
 */
export function eventsHandler(gate: Gate): Handler {
  return gate.handler(async (request, url) => {
    if (request.method !== 'GET') return new Response(null, { status: 405, headers: { allow: 'GET' } })
    const [threadId, last] = pathAfter(url, 'threads') ?? []
    if (threadId !== undefined && last === 'events') return threadEvents(gate, request, { url, threadId })
    const [runId, name] = pathAfter(url, 'runs') ?? []
    if (runId === undefined || name !== 'events') return new Response(null, { status: 404 })
    const cursor = cursorOf(request, url, runId)
    const thread = await gate.run(request, { runId, action: 'read' })
    if (thread instanceof Response) return thread
    return runEvents(gate, request, { url, thread, runId, cursor })
  })
}

function cursorOf(request: Request, url: URL, runId: string): NativeCursor {
  const given = request.headers.get('last-event-id') ?? url.searchParams.get('after') ?? '0'
  try {
    return parseNativeCursor(given, runId)
  } catch (error) {
    throw badRequest(error instanceof Error ? error.message : 'The cursor is not valid.')
  }
}

interface Followed {
  readonly url: URL
  readonly thread: ThreadPort
  readonly runId: string
  readonly cursor: NativeCursor
}

async function runEvents(gate: Gate, request: Request, { url, thread, runId, cursor }: Followed): Promise<Response> {
  const { searchParams } = url
  const [children, deltas] = [searchParams.get('children') === '1', searchParams.get('deltas') !== '0']
  const options: NativeOptions = { ...gate.options, after: cursor, children }
  const run = (await thread.runs()).find((each) => each.runId === runId)
  const hasEnded = run !== undefined && run.status !== 'running' && run.status !== 'interrupted'
  if (hasEnded && run.status !== 'paused' && cursor.seq >= run.seq) return new Response(null, { status: 204 })
  const abort = new AbortController()
  const batches = thread.follow(runId, { signal: abort.signal, deltas, children })
  const projection = nativeProjection(options, shownOnce(gate.options))
  const wait = searchParams.get('wait')
  if (wait !== null) return listed(batches, { projection, wait, abort, after: String(cursor.seq) })
  const key = `native ${children} ${gate.options.reasoning !== false} ${gate.options.diagnostics === true}`
  return gate.stream(request, batches, {
    protocol: { projection, encode: encodeNative, key },
    preamble: PREAMBLE,
    abort,
  })
}

interface Listed {
  readonly projection: Projection<NativeItem>
  readonly wait: string
  readonly abort: AbortController
  readonly after: string
}

/**
 * What is stored as one JSON list, for proxies that buffer; with a time, the answer waits for something until then. Deltas
 * are left out: without a cursor of their own, the next request would get them again at once.
 */
async function listed(
  batches: AsyncIterable<readonly AnyRunEvent[]>,
  { projection, wait, abort, after }: Listed,
): Promise<Response> {
  const items: NativeItem[] = []
  const timer = setTimeout(() => abort.abort(), waitMs(wait))
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
  const cursor = items.at(-1)?.id ?? after
  const { status } = (end?.data ?? {}) as { readonly status?: string }
  const headers = { 'x-cursor': cursor, ...(hasEnded && status !== undefined ? { 'x-end': status } : {}) }
  return json(
    200,
    items.map(({ data }) => data),
    headers,
  )
}
