import type { JsonObject } from '#util/json.js'
import { encodeUiChunk, UI_STREAM_END, UI_STREAM_HEADERS } from '../ai-sdk/chunk.js'
import type { Dialect } from '../ai-sdk/chunk.js'
import { pendingAnswers, fromUIMessages, readUiMessages } from '../ai-sdk/read-messages.js'
import type { GivenUiMessage } from '../ai-sdk/read-messages.js'
import { SkippedSteps } from '../ai-sdk/skipped-steps.js'
import { uiMessageProjection } from '../ai-sdk/ui-projection.js'
import type { HandlerContext } from './handler-context.js'
import { asHandler, badRequest, requestDialect, pathAfter, RequestError } from './http.js'
import type { Handler } from './http.js'
import type { ServedOptions } from './options.js'
import { readAnswers, readBody, readWhenBusy } from './request-body.js'
import { streamAbort, KEEP_ALIVE, runBatches, streamResponse } from './run-stream.js'
import type { MessageDelivery, NewMessage, RunInfo, Thread } from './thread.js'

/**
 * The AI SDK UI message stream: `POST …/chat` with the body of `useChat` begins or continues a run and answers with its stream;
 * `GET …/chat/{chatId}/stream` attaches to the run in progress, or to one that waits for people, and continues one that was
 * interrupted; 204 if there is none. A chat id is the id of a conversation. The dialect is `?dialect=`, else that of the options, else 7.
 */
export function aiSdkHandler(context: HandlerContext): Handler {
  return asHandler(context, async (request, url) => {
    const path = pathAfter(url, 'chat')
    if (path === null) return new Response(null, { status: 404 })
    const [chatId, last] = path
    if (request.method === 'POST' && chatId === undefined) return startStream(context, request, url)
    if (request.method === 'GET' && chatId !== undefined && last === 'stream')
      return attachStream(context, request, { url, threadId: chatId })
    if (path.length !== 0 && last !== 'stream') return new Response(null, { status: 404 })
    return new Response(null, { status: 405, headers: { allow: path.length === 0 ? 'POST' : 'GET' } })
  })
}

/** What a page posts. */
interface ChatPost {
  readonly threadId: string
  readonly messages: readonly GivenUiMessage[]
  readonly body: JsonObject
  /** The page answers what waits: it sends no new message. */
  readonly isAnswer: boolean
  /** The page wants a message to be answered again. */
  readonly regenerates: boolean
}

async function startStream(context: HandlerContext, request: Request, url: URL): Promise<Response> {
  const { options } = context
  const dialect = requestDialect(url, options)
  const post = readChatPost(await readBody(request, options))
  const { threadId, messages, body, isAnswer, regenerates } = post
  const thread = await context.thread(request, { threadId, action: isAnswer ? 'answer' : 'start', create: !isAnswer })
  if (thread instanceof Response) return thread
  const delivery = isAnswer
    ? await answerPending(thread, post, options)
    : regenerates
      ? await regenerateReply(thread, post)
      : await sendAfterRecovery(thread, {
          messageId: messages.at(-1)?.id ?? '',
          content: fromUIMessages(messages, { allowUrl: options.allowUrl }),
          whenBusy: readWhenBusy(body),
        })
  const { status, run } = delivery
  const reader = status === 'queued' || status === 'posted' ? null : await run
  // The page that has the message of the run gets what follows; any other gets the message from its beginning.
  const hasMessage = isAnswer && reader !== null && messages.at(-1)?.id === reader.runId
  const abort = streamAbort(options, thread, delivery)
  return messageStreamResponse(options, request, {
    dialect,
    thread,
    run,
    abort,
    after: hasMessage ? (reader.beyond ?? 0) : 0,
  })
}

/** An interrupted run answers its own message first: pages show each answer below its question. */
async function sendAfterRecovery(thread: Thread, message: NewMessage): Promise<MessageDelivery> {
  const { latest } = thread
  if (latest?.status === 'interrupted') await thread.recover(latest.runId)
  return thread.send(message)
}

function readChatPost(body: JsonObject): ChatPost {
  const { id, answers } = body
  if (typeof id !== 'string' || id === '') throw badRequest('Expected `id` to be the id of the chat.')
  const messages = readUiMessages(body['messages'] ?? [])
  const regenerates = body['trigger'] === 'regenerate-message'
  const isAnswer =
    !regenerates && (answers !== undefined || messages.length === 0 || messages.at(-1)?.role === 'assistant')
  return { threadId: id, messages, body, isAnswer, regenerates }
}

/** A page without its messages names the reply; others have removed it, so that the message comes last. */
function regenerateReply(thread: Thread, { messages, body: { messageId } }: ChatPost): Promise<MessageDelivery> {
  const id = messages.findLast(({ role }) => role === 'user')?.id ?? messageId
  if (typeof id !== 'string') throw badRequest('Expected `messageId` to be the id of a message.')
  return thread.regenerate(id)
}

async function answerPending(
  thread: Thread,
  { messages, body }: ChatPost,
  options: ServedOptions,
): Promise<MessageDelivery> {
  const { latest } = thread
  if (latest === null) throw badRequest('The conversation has no run that waits for an answer.')
  const ofBody = body['answers'] === undefined ? [] : readAnswers(body, options)
  const answers = pendingAnswers(messages, latest.pending, ofBody)
  if (answers.length > 0) return thread.answer(latest.runId, answers)
  if (latest.status === 'running') return { status: 'attached', run: Promise.resolve({ runId: latest.runId }) }
  const { pending } = latest
  throw new RequestError(409, 'pending', { message: 'The request answers nothing that waits.', pending })
}

async function attachStream(
  context: HandlerContext,
  request: Request,
  { url, threadId }: { readonly url: URL; readonly threadId: string },
): Promise<Response> {
  const { options } = context
  const dialect = requestDialect(url, options)
  const thread = await context.thread(request, { threadId, action: 'read' }).catch((error: unknown) => {
    // A page asks before it has sent its first message.
    if (error instanceof RequestError && error.status === 404) return new Response(null, { status: 204 })
    throw error
  })
  if (thread instanceof Response) return thread
  const { latest } = thread
  const isReplay = url.searchParams.get('replay') === '1'
  if (latest === null || !(isReplay || OPEN.has(latest.status))) return new Response(null, { status: 204 })
  const { runId, status } = latest
  // Clients that come back by themselves ask for a replay: a run that ends its process is not continued again and again.
  if (status === 'interrupted' && !isReplay && (await mayStart(context, request, { threadId, runId })))
    await thread.recover(runId)
  return messageStreamResponse(options, request, {
    dialect,
    thread,
    run: Promise.resolve({ runId }),
    abort: new AbortController(),
    skipped: await skippedSteps(options, thread, { url, runId }),
  })
}

/** Runs that a page returns to. */
const OPEN: ReadonlySet<RunInfo['status']> = new Set(['running', 'paused', 'interrupted'])

async function mayStart(
  context: HandlerContext,
  request: Request,
  named: { readonly threadId: string; readonly runId: string },
): Promise<boolean> {
  const refusal = await context.checked(request, { ...named, action: 'start' }).catch(() => 'refused')
  return refusal === null
}

interface Skipped {
  readonly steps: number
  /** Where the whole conversation is. */
  readonly url: string
}

/** The steps that a replay leaves out; undefined if it is whole. */
async function skippedSteps(
  { aiSdk }: ServedOptions,
  thread: Thread,
  { url, runId }: { readonly url: URL; readonly runId: string },
): Promise<Skipped | undefined> {
  const most = aiSdk?.replaySteps
  if (most === undefined) return undefined
  let steps = -most
  for await (const event of thread.stored(runId))
    if (event.kind === 'model_request_started' && event.runId === runId) steps += 1
  if (steps <= 0) return undefined
  const mount = url.pathname.slice(0, url.pathname.lastIndexOf('/chat/'))
  return { steps, url: `${mount}/threads/${encodeURIComponent(thread.threadId)}/messages?format=ui` }
}

interface MessageStream {
  readonly dialect: Dialect
  readonly thread: Thread
  readonly run: MessageDelivery['run']
  readonly abort: AbortController
  /** Number of the last event that the page has. Default 0. */
  readonly after?: number | undefined
  readonly skipped?: Skipped | undefined
}

function messageStreamResponse(options: ServedOptions, request: Request, stream: MessageStream): Response {
  const { dialect, thread, run, abort, after, skipped } = stream
  const whole = uiMessageProjection({ ...options.aiSdk, ...options, dialect, after, threadId: thread.threadId })
  const projection = skipped === undefined ? whole : new SkippedSteps(whole, skipped)
  return streamResponse(options, request, runBatches(thread, run, { signal: abort.signal, children: true }), {
    protocol: { projection, encode: encodeUiChunk, key: `ai-sdk ${dialect}` },
    headers: UI_STREAM_HEADERS,
    preamble: KEEP_ALIVE,
    finale: UI_STREAM_END,
    abort,
  })
}
