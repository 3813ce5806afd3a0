import type { Answer } from '#core/state/answers.js'
import { sha256 } from '#util/platform/sha256.js'
import { encodeResponse, RESPONSES_END } from '../responses/event.js'
import { responseAnswers, readResponsesInput } from '../responses/input.js'
import type { ResponsesInput } from '../responses/input.js'
import { OPEN_RESPONSE, parseResponseId } from '../responses/response.js'
import { responsesProjection } from '../responses/responses-projection.js'
import type { ResponsesProjection } from '../responses/responses-projection.js'
import type { AnyRunEvent } from '../projection.js'
import type { HandlerContext } from './handler-context.js'
import { asHandler, jsonResponse, pathAfter, RequestError } from './http.js'
import type { Handler } from './http.js'
import type { ServedOptions } from './options.js'
import { readAnswers, readBody } from './request-body.js'
import { streamAbort, itemsOfRun, KEEP_ALIVE, streamResponse } from './run-stream.js'
import type { MessageDelivery, NewMessage, RequestedRuns, Thread } from './thread.js'

/**
 * Open Responses: `POST …/responses` begins a run, continues the conversation of `previous_response_id`, or answers what its run
 * waits for, and answers with the response or its stream; `GET …/responses/{id}` gives a response, with `?stream=true` its stream
 * from the beginning; `POST …/responses/{id}/cancel` stops its run. A response is one stretch of a run.
 */
export function responsesHandler(context: HandlerContext): Handler {
  return asHandler(
    context,
    async (request, url) => {
      const path = pathAfter(url, 'responses')
      const [id, name] = path ?? []
      const isCancel = name === 'cancel'
      if (path === null || path.length > 2 || (name !== undefined && !isCancel)) throw unknownResponse()
      const method = id === undefined || isCancel ? 'POST' : 'GET'
      if (request.method !== method)
        throw new RequestError(405, 'method_not_allowed', { message: `Expected the method ${method}.` })
      if (id === undefined) return createResponse(context, request)
      return isCancel ? cancelResponse(context, request, id) : retrieveResponse(context, request, { id, url })
    },
    responsesError,
  )
}

/** A refused request in the form of the API. */
function responsesError({ status, code, message, pending, param }: RequestError): Response {
  const type = status >= 500 ? 'server_error' : 'invalid_request_error'
  const error = { message, type, param: param ?? null, code, ...(pending !== undefined && { pending }) }
  return jsonResponse(status, { error })
}

function unknownResponse(id?: string): RequestError {
  const message = id === undefined ? 'There is no such address.' : `There is no response \`${id.slice(0, 200)}\`.`
  return new RequestError(404, 'not_found', { message })
}

/** A request that has begun a stretch, or attached to one. */
interface Begun {
  readonly thread: Thread
  readonly delivery: MessageDelivery
}

async function createResponse(context: HandlerContext, request: Request): Promise<Response> {
  const { options } = context
  const body = await readBody(request, options)
  const input = readResponsesInput(body, options.allowUrl)
  const answers = body['answers'] === undefined ? [] : readAnswers(body, options)
  const isAnswer = answers.length + input.results.length + input.approvals.length > 0
  const isEmpty = input.content.length === 0
  if (isAnswer !== isEmpty)
    throw badParam('input', 'Expected `input` to end with a message, or with answers, and not with both.')
  if (input.tools.length > 0 && options.clientTools !== true)
    throw badParam('tools', 'The tools of this server are fixed: send no `tools`.')
  const begun =
    input.previous === null
      ? await beginConversation(context, request, isAnswer ? null : input)
      : await continueConversation(context, request, { input, previous: input.previous, isAnswer, answers })
  return begun instanceof Response ? begun : answerWith(options, request, { ...begun, input })
}

/** The message of a request. `model` is checked against the table of the host. */
async function newMessage(context: HandlerContext, request: Request, input: ResponsesInput): Promise<NewMessage> {
  const { model, previous, metadata, background, content } = input
  const messageId = request.headers.get('idempotency-key') ?? input.messageId ?? globalThis.crypto.randomUUID()
  const said = { ...(model !== null && { model }), ...(previous !== null && { previous_response_id: previous }) }
  return {
    messageId,
    content,
    mode: responseMode(context.options, model),
    whenBusy: 'reject',
    metadata: { ...(await context.clientTools(input.tools)), [OPEN_RESPONSE]: { ...said, metadata, background } },
  }
}

function responseMode({ responses }: ServedOptions, model: string | null): string | undefined {
  const models = responses?.models
  if (models === undefined || model === null) return undefined
  if (!Object.hasOwn(models, model))
    throw new RequestError(404, 'model_not_found', {
      message: `There is no model \`${model.slice(0, 200)}\`; there are ${Object.keys(models).join(', ')}.`,
      param: 'model',
    })
  const served = models[model]
  return typeof served === 'string' ? served : model
}

/** A new conversation. The same request of the same owner, sent again with its `Idempotency-Key`, gets the same one. */
async function beginConversation(
  context: HandlerContext,
  request: Request,
  input: ResponsesInput | null,
): Promise<Begun | Response> {
  if (input === null)
    throw badParam('previous_response_id', 'Expected `previous_response_id` to name the response that is answered.')
  const key = request.headers.get('idempotency-key')
  const messages: NewMessage[] = []
  const thread = await context.begin(request, async ({ resourceId }) => {
    messages.push(await newMessage(context, request, input))
    return key === null
      ? `thread_${globalThis.crypto.randomUUID().replaceAll('-', '')}`
      : derivedThreadId(resourceId, key)
  })
  if (thread instanceof Response) return thread
  const [message = await newMessage(context, request, input)] = messages
  return { thread, delivery: await thread.send(message) }
}

interface Continuation {
  readonly input: ResponsesInput
  /** Id of the response that is continued. */
  readonly previous: string
  readonly isAnswer: boolean
  readonly answers: readonly Answer[]
}

/** The conversation of a response: an earlier one than the last is continued in a conversation of its own. */
async function continueConversation(
  context: HandlerContext,
  request: Request,
  { input, previous, isAnswer, answers }: Continuation,
): Promise<Begun | Response> {
  const { runId } = parseResponseId(previous)
  const action = isAnswer ? 'answer' : 'start'
  const thread = await orUnknown(context.threadOfRun(request, { runId, action }), previous)
  if (thread instanceof Response) return thread
  if (isAnswer) return { thread, delivery: await thread.answer(runId, await answersTo(thread, runId, input, answers)) }
  const message = await newMessage(context, request, input)
  const { latest } = thread
  const isNewest = latest === null || latest.runId === runId
  if (isNewest || thread.messageIds(latest.runId).includes(message.messageId))
    return { thread, delivery: await thread.send(message) }
  const fork = await context.fork(thread, { after: runId, forkId: derivedThreadId(runId, message.messageId) })
  return { thread: fork, delivery: await fork.send(message) }
}

function derivedThreadId(...parts: readonly string[]): string {
  return `thread_${sha256(JSON.stringify(parts)).slice(0, 32)}`
}

/** The answers of a request: to what waits, or, sent again, to what has waited. */
async function answersTo(
  thread: Thread,
  runId: string,
  input: ResponsesInput,
  ofBody: readonly Answer[],
): Promise<readonly Answer[]> {
  const pending = thread.runs.find((each) => each.runId === runId)?.pending ?? []
  let ofInput = responseAnswers(input, pending)
  if (ofInput.length === 0 && ofBody.length === 0) ofInput = responseAnswers(input, await itemsOfRun(thread, runId))
  const callIds = new Set(ofBody.map(({ callId }) => callId))
  const answers = [...ofBody, ...ofInput.filter(({ callId }) => !callIds.has(callId))]
  if (answers.length > 0) return answers
  throw new RequestError(409, 'stale_answer', { message: 'The request answers nothing that waits.', pending })
}

async function answerWith(
  options: ServedOptions,
  request: Request,
  { thread, delivery, input }: Begun & { readonly input: ResponsesInput },
): Promise<Response> {
  const run = await delivery.run
  if (run === null)
    throw new RequestError(409, 'invalid_state', { message: 'The message was removed before its run began.' })
  const { runId, beyond = 0 } = run
  const projection = responsesProjection({ ...options, after: beyond })
  const abort = input.background ? new AbortController() : streamAbort(options, thread, delivery)
  if (input.stream) return responseStream(options, request, { thread, runId, projection, abort })
  request.signal.addEventListener('abort', () => abort.abort())
  for await (const batch of thread.follow(runId, { signal: abort.signal, deltas: false })) {
    for (const event of batch) projection.next(event)
    if (projection.isOver || (input.background && projection.response !== null)) break
  }
  if (!input.background) projection.end()
  return jsonResponse(200, projection.response)
}

/** `GET …/responses/{id}`. */
async function retrieveResponse(
  context: HandlerContext,
  request: Request,
  { id, url }: { readonly id: string; readonly url: URL },
): Promise<Response> {
  const { options } = context
  if (url.searchParams.has('starting_after'))
    throw badParam('starting_after', 'Streams are sent from their beginning: send no `starting_after`.')
  const { runId, stretch } = parseResponseId(id)
  const thread = await orUnknown(context.run(request, { runId, action: 'read' }), id)
  if (thread instanceof Response) return thread
  const { response } = await storedResponse(options, thread, id)
  if (response === null) throw unknownResponse(id)
  if (url.searchParams.get('stream') !== 'true') return jsonResponse(200, response)
  const projection = responsesProjection({ ...options, stretch })
  return responseStream(options, request, { thread, runId, projection, abort: new AbortController() })
}

async function cancelResponse(context: HandlerContext, request: Request, id: string): Promise<Response> {
  const { runId } = parseResponseId(id)
  const thread = await orUnknown(context.threadOfRun(request, { runId, action: 'stop' }), id)
  if (thread instanceof Response) return thread
  await thread.stop(runId)
  const { response } = await storedResponse(context.options, thread, id)
  if (response === null) throw unknownResponse(id)
  return jsonResponse(200, response)
}

/** A response from the log alone. */
async function storedResponse(options: ServedOptions, thread: RequestedRuns, id: string): Promise<ResponsesProjection> {
  const { runId, stretch } = parseResponseId(id)
  const projection = responsesProjection({ ...options, stretch })
  for await (const event of thread.stored(runId)) projection.next(event)
  if (thread.runs.find((each) => each.runId === runId)?.status !== 'running') projection.end()
  return projection
}

/** What does not exist, and what is refused like it, is named as the request names it. */
async function orUnknown<Found>(opened: Promise<Found>, id: string): Promise<Found> {
  try {
    return await opened
  } catch (error) {
    throw error instanceof RequestError && error.code === 'not_found' ? unknownResponse(id) : error
  }
}

interface ResponseStream {
  readonly thread: RequestedRuns
  readonly runId: string
  readonly projection: ResponsesProjection
  readonly abort: AbortController
}

function responseStream(
  options: ServedOptions,
  request: Request,
  { thread, runId, projection, abort }: ResponseStream,
): Response {
  const batches = thread.follow(runId, { signal: abort.signal })
  return streamResponse(options, request, untilOver(batches, projection), {
    protocol: { projection, encode: encodeResponse, key: null },
    preamble: KEEP_ALIVE,
    finale: RESPONSES_END,
    abort,
  })
}

/** The batches up to the end of a stretch: the run may have gone on. */
async function* untilOver(
  batches: AsyncIterable<readonly AnyRunEvent[]>,
  projection: ResponsesProjection,
): AsyncGenerator<readonly AnyRunEvent[]> {
  for await (const batch of batches) {
    yield batch
    if (projection.isOver) return
  }
}

function badParam(param: string, message: string): RequestError {
  return new RequestError(400, 'invalid_request', { message, param })
}
