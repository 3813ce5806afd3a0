import type { ChatEvent } from '../../session/index.js'
import { shownEvent } from '../native/shown-event.js'
import { SSE_HEADERS, sseBody } from '../http/sse.js'
import type { Gate } from './gate.js'
import { RequestError } from './back-end.js'
import type { ThreadPort } from './back-end.js'
import { badRequest, json, waitMs } from './http.js'

/** Frames of events, which all readers of a conversation share, by the handlers that show them. */
const framesBy = new WeakMap<Gate, WeakMap<ChatEvent, string>>()

/**
 * The events of a conversation in one order, for `reduceChat`: those of the thread and of its runs, with the cursor as id. The
 * stream stays open from run to run. `?wait=<s>`: the stored ones as a JSON list, with the last cursor in `x-cursor`.
 */
export async function threadEvents(
  gate: Gate,
  request: Request,
  { url, threadId }: { readonly url: URL; readonly threadId: string },
): Promise<Response> {
  const thread = await gate.thread(request, { threadId, action: 'read' })
  if (thread instanceof Response) return thread
  if (thread.events === undefined)
    throw new RequestError(404, 'not_found', { message: 'Conversations are followed over sessions: follow the run.' })
  const follow = thread.events.bind(thread)
  const after = request.headers.get('last-event-id') ?? url.searchParams.get('after') ?? undefined
  if (after !== undefined && !/^\d{1,15}(?:\..+\.\d{1,15})?$/.test(after))
    throw badRequest(`Expected the cursor to be that of an event, got "${after.slice(0, 80)}".`)
  const from = after === '0' ? undefined : after
  const wait = url.searchParams.get('wait')
  if (wait !== null) return listed(gate, request, { follow, from, ms: waitMs(wait) })
  const abort = new AbortController()
  const events = follow({ after: from, signal: abort.signal })
  const { heartbeatMs, maxStreamMs } = gate.options
  const body = sseBody(framesOf(gate, events), {
    ...{ preamble: 'retry: 2000\n: thinharness\n\n', heartbeatMs, maxStreamMs, request },
    onCancel: () => abort.abort(),
  })
  return new Response(body, { headers: SSE_HEADERS })
}

interface Listed {
  readonly follow: NonNullable<ThreadPort['events']>
  readonly from: string | undefined
  /** How long to wait for the first event. */
  readonly ms: number
}

/** What is stored, for proxies that buffer. Deltas are left out: the next request would get them again at once. */
async function listed({ options }: Gate, request: Request, { follow, from, ms }: Listed): Promise<Response> {
  let stored = await storedBy(follow({ after: from, live: false }))
  if (stored.length === 0 && ms > 0) {
    await firstStored(follow, from, AbortSignal.any([AbortSignal.timeout(ms), request.signal]))
    stored = await storedBy(follow({ after: from, live: false }))
  }
  const shown = stored.flatMap((event) => shownTo(options, event) ?? [])
  return json(200, shown, { 'x-cursor': stored.at(-1)?.cursor ?? from ?? '0' })
}

async function storedBy(events: AsyncIterable<ChatEvent>): Promise<readonly ChatEvent[]> {
  const stored: ChatEvent[] = []
  for await (const event of events) stored.push(event)
  return stored
}

/** Resolves with the next stored event, or when `signal` aborts. */
async function firstStored(follow: Listed['follow'], after: string | undefined, signal: AbortSignal): Promise<void> {
  for await (const event of follow({ after, signal })) if (isStored(event)) return
}

async function* framesOf(gate: Gate, events: AsyncIterable<ChatEvent>): AsyncGenerator<string, void, undefined> {
  const frames = framesBy.get(gate) ?? new WeakMap<ChatEvent, string>()
  framesBy.set(gate, frames)
  let isTold = false
  for await (const event of events) {
    let frame = frames.get(event)
    if (frame === undefined) frames.set(event, (frame = frameOf(gate, event)))
    // A reader who comes back gets the open reply from its beginning.
    if (!isTold && !('threadId' in event) && event.kind.endsWith('_delta')) {
      isTold = true
      yield `event: open_turn\ndata: ${JSON.stringify({ seq: event.seq, runId: event.runId })}\n\n`
    }
    if (frame !== '') yield frame
  }
}

function frameOf({ options }: Gate, event: ChatEvent): string {
  const shown = shownTo(options, event)
  if (shown === null) return ''
  const idLine = isStored(event) ? `id: ${event.cursor}\n` : ''
  return `${idLine}event: ${event.kind}\ndata: ${JSON.stringify(shown)}\n\n`
}

/** What a page gets of an event; null: nothing. */
function shownTo(options: Gate['options'], { cursor, ...event }: ChatEvent): object | null {
  const shown = 'threadId' in event ? event : shownEvent(event, options)
  return shown && { ...shown, cursor }
}

function isStored(event: ChatEvent): boolean {
  return 'threadId' in event || event.durable
}
