import type { ChatEvent } from '../../session/index.js'
import { shownEvent } from '../native/shown-event.js'
import { SSE_HEADERS, sseBody } from '../http/sse.js'
import type { Gate } from './gate.js'
import { RequestError } from './back-end.js'
import { badRequest } from './http.js'

/** Frames of events, which all readers of a conversation share, by the handlers that show them. */
const framesBy = new WeakMap<Gate, WeakMap<ChatEvent, string>>()

/**
 * The events of a conversation in one order, for `reduceChat`: those of the thread and of its runs, with the cursor as id. The
 * stream stays open from run to run.
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
  const after = request.headers.get('last-event-id') ?? url.searchParams.get('after') ?? undefined
  if (after !== undefined && !/^\d{1,15}(?:\..+\.\d{1,15})?$/.test(after))
    throw badRequest(`Expected the cursor to be that of an event, got "${after.slice(0, 80)}".`)
  const abort = new AbortController()
  const events = thread.events({ after: after === '0' ? undefined : after, signal: abort.signal })
  const { heartbeatMs, maxStreamMs } = gate.options
  const body = sseBody(framesOf(gate, events), {
    ...{ preamble: 'retry: 2000\n: thinharness\n\n', heartbeatMs, maxStreamMs, request },
    onCancel: () => abort.abort(),
  })
  return new Response(body, { headers: SSE_HEADERS })
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
  const { cursor, ...plain } = event
  const shown = 'threadId' in plain ? plain : shownEvent(plain, options)
  if (shown === null) return ''
  const isStored = 'threadId' in plain || plain.durable
  const idLine = isStored ? `id: ${cursor}\n` : ''
  return `${idLine}event: ${event.kind}\ndata: ${JSON.stringify({ ...shown, cursor })}\n\n`
}
