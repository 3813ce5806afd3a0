import type { JsonObject } from '../../util/json.js'
import { encodeUiChunk, UI_STREAM_END, UI_STREAM_HEADERS } from '../ai-sdk/chunk.js'
import type { Dialect } from '../ai-sdk/chunk.js'
import { answersOf, fromUIMessages, UiMessageError, uiMessagesIn } from '../ai-sdk/requests.js'
import type { GivenUiMessage } from '../ai-sdk/requests.js'
import { SkippedSteps } from '../ai-sdk/skipped-steps.js'
import { uiMessageProjection } from '../ai-sdk/ui-projection.js'
import { RequestError } from './back-end.js'
import type { Taken, ThreadPort } from './back-end.js'
import { runBatches } from './followed.js'
import type { Gate, Handler } from './gate.js'
import { answersIn, whenBusyIn } from './given.js'
import { dialectOf } from './dialect.js'
import { badRequest, bodyOf, pathAfter } from './http.js'

const KEEP_ALIVE = ': thinharness\n\n'

/**
 * The AI SDK UI message stream: `POST …/chat` with the body of `useChat` begins or continues a run and answers with its stream;
 * `GET …/chat/{chatId}/stream` attaches to the run in progress, 204 if there is none. A chat id is the id of a conversation. The
 * dialect is `?dialect=`, else that of the options, else 7.
 */
export function aiSdkHandler(gate: Gate): Handler {
  return gate.handler(async (request, url) => {
    const path = pathAfter(url, 'chat')
    if (path === null) return new Response(null, { status: 404 })
    const [chatId, last] = path
    if (request.method === 'POST' && chatId === undefined) return started(gate, request, url)
    if (request.method === 'GET' && chatId !== undefined && last === 'stream')
      return attached(gate, request, { url, threadId: chatId })
    if (path.length !== 0 && last !== 'stream') return new Response(null, { status: 404 })
    return new Response(null, { status: 405, headers: { allow: path.length === 0 ? 'POST' : 'GET' } })
  })
}

/** What a page posts. */
interface Posted {
  readonly threadId: string
  readonly messages: readonly GivenUiMessage[]
  readonly body: JsonObject
  /** The page answers what waits: it sends no new message. */
  readonly isAnswer: boolean
  /** The page wants a message to be answered again. */
  readonly regenerates: boolean
}

async function started(gate: Gate, request: Request, url: URL): Promise<Response> {
  const dialect = dialectOf(gate.options, url)
  const posted = postedIn(await bodyOf(request, gate.maxBodyBytes))
  const { threadId, messages, isAnswer } = posted
  const action = isAnswer ? 'answer' : 'start'
  const thread = await gate.thread(request, { threadId, action, create: !isAnswer })
  if (thread instanceof Response) return thread
  const taken = await takenBy(gate, thread, posted)
  const run = taken.status === 'queued' || taken.status === 'posted' ? null : await taken.run
  // The page that has the message of the run gets what follows; any other gets the message from its beginning.
  const hasMessage = isAnswer && run !== null && messages.at(-1)?.id === run.runId
  return streamOf(gate, request, {
    dialect,
    thread,
    run: taken.run,
    after: hasMessage ? (run.beyond ?? 0) : 0,
    starts: true,
  })
}

function postedIn(body: JsonObject): Posted {
  const { id, answers } = body
  if (typeof id !== 'string' || id === '') throw badRequest('Expected `id` to be the id of the chat.')
  const messages = asRequest(() => uiMessagesIn(body['messages'] ?? []))
  const regenerates = body['trigger'] === 'regenerate-message'
  const isAnswer =
    !regenerates && (answers !== undefined || messages.length === 0 || messages.at(-1)?.role === 'assistant')
  return { threadId: id, messages, body, isAnswer, regenerates }
}

function takenBy(gate: Gate, thread: ThreadPort, posted: Posted): Promise<Taken> {
  if (posted.isAnswer) return answered(thread, posted)
  return posted.regenerates ? regenerated(thread, posted) : sent(gate, thread, posted)
}

async function sent(gate: Gate, thread: ThreadPort, { messages, body }: Posted): Promise<Taken> {
  const content = asRequest(() => fromUIMessages(messages, { allowUrl: gate.options.allowUrl }))
  return thread.send({ messageId: messages.at(-1)?.id ?? '', content, whenBusy: whenBusyIn(body) })
}

/** A page without its messages names the reply; others have removed it, so that the message comes last. */
function regenerated(thread: ThreadPort, { messages, body: { messageId } }: Posted): Promise<Taken> {
  const id = messages.findLast(({ role }) => role === 'user')?.id ?? messageId
  if (typeof id !== 'string') throw badRequest('Expected `messageId` to be the id of a message.')
  return thread.regenerate(id)
}

async function answered(thread: ThreadPort, { messages, body }: Posted): Promise<Taken> {
  const latest = await thread.latest()
  if (latest === null) throw badRequest('The conversation has no run that waits for an answer.')
  const given = body['answers'] === undefined ? [] : answersIn(body)
  const answers = answersOf(messages, latest.pending, given)
  if (answers.length > 0) return thread.answer(latest.runId, answers)
  if (latest.status === 'running') return { status: 'attached', run: Promise.resolve({ runId: latest.runId }) }
  const { pending } = latest
  throw new RequestError(409, 'pending', { message: 'The request answers nothing that waits.', pending })
}

async function attached(
  gate: Gate,
  request: Request,
  { url, threadId }: { readonly url: URL; readonly threadId: string },
): Promise<Response> {
  const dialect = dialectOf(gate.options, url)
  const thread = await gate.thread(request, { threadId, action: 'read' })
  // A page asks before it has sent its first message.
  if (thread instanceof Response) return thread.status === 404 ? new Response(null, { status: 204 }) : thread
  const latest = await thread.latest()
  const isWanted = latest?.status === 'running' || (latest !== null && url.searchParams.get('replay') === '1')
  if (!isWanted) return new Response(null, { status: 204 })
  return streamOf(gate, request, {
    dialect,
    thread,
    run: Promise.resolve({ runId: latest.runId }),
    after: 0,
    starts: false,
    skipped: await skippedSteps(gate, thread, { url, runId: latest.runId }),
  })
}

interface Skipped {
  readonly steps: number
  /** Where the whole conversation is. */
  readonly url: string
}

/** The steps that a replay leaves out; undefined if it is whole. */
async function skippedSteps(
  { options }: Gate,
  thread: ThreadPort,
  { url, runId }: { readonly url: URL; readonly runId: string },
): Promise<Skipped | undefined> {
  const most = options.aiSdk?.replaySteps
  if (most === undefined) return undefined
  let steps = -most
  for await (const event of thread.stored(runId))
    if (event.kind === 'model_request_started' && event.runId === runId) steps += 1
  if (steps <= 0) return undefined
  const mount = url.pathname.slice(0, url.pathname.lastIndexOf('/chat/'))
  return { steps, url: `${mount}/threads/${encodeURIComponent(thread.threadId)}/messages?format=ui` }
}

interface Streamed {
  readonly dialect: Dialect
  readonly thread: ThreadPort
  readonly run: Taken['run']
  readonly after: number
  /** The request has begun the run. */
  readonly starts: boolean
  readonly skipped?: Skipped | undefined
}

function streamOf(gate: Gate, request: Request, streamed: Streamed): Response {
  const { dialect, thread, run, after, starts, skipped } = streamed
  const { options } = gate
  const abort = new AbortController()
  if (starts && options.stopOnDisconnect === true)
    abort.signal.addEventListener(
      'abort',
      () => void run.then((found) => found && thread.stop(found.runId)).catch(() => undefined),
    )
  const whole = uiMessageProjection({ ...options.aiSdk, ...options, dialect, after, threadId: thread.threadId })
  const projection = skipped === undefined ? whole : new SkippedSteps(whole, skipped)
  return gate.stream(request, runBatches(thread, run, { signal: abort.signal, children: true }), {
    protocol: { projection, encode: encodeUiChunk, key: `ai-sdk ${dialect}` },
    headers: UI_STREAM_HEADERS,
    preamble: KEEP_ALIVE,
    finale: UI_STREAM_END,
    abort,
  })
}

function asRequest<T>(read: () => T): T {
  try {
    return read()
  } catch (error) {
    if (error instanceof UiMessageError) throw badRequest(error.message)
    throw error
  }
}
