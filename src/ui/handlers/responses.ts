import type { Answer } from '../../index.js'
import { sha256 } from '../../util/platform/sha256.js'
import { encodeResponse, RESPONSES_END } from '../responses/event.js'
import { responseAnswers, ResponsesInputError, responsesInputIn } from '../responses/input.js'
import type { ResponsesInput } from '../responses/input.js'
import { OPEN_RESPONSE, parseResponseId } from '../responses/response.js'
import { responsesProjection } from '../responses/responses-projection.js'
import type { ResponsesProjection } from '../responses/responses-projection.js'
import type { AnyRunEvent } from '../projection.js'
import { RequestError } from './back-end.js'
import type { NewMessage, Taken, ThreadPort } from './back-end.js'
import { askedIn } from './followed.js'
import type { Gate, Handler } from './gate.js'
import { answersIn } from './given.js'
import { bodyOf, json, pathAfter } from './http.js'
import type { Action } from './options.js'

const KEEP_ALIVE = ': thinharness\n\n'

/**
 * Open Responses: `POST …/responses` begins a run, continues the conversation of `previous_response_id`, or answers what its run
 * waits for, and answers with the response or its stream; `GET …/responses/{id}` gives a response, with `?stream=true` its stream
 * from the beginning; `POST …/responses/{id}/cancel` stops its run. A response is one stretch of a run.
 */
export function responsesHandler(gate: Gate): Handler {
  return gate.handler(async (request, url) => {
    const path = pathAfter(url, 'responses')
    const [id, name] = path ?? []
    const isCancel = name === 'cancel'
    if (path === null || path.length > 2 || (name !== undefined && !isCancel)) throw unknown()
    const method = id === undefined || isCancel ? 'POST' : 'GET'
    if (request.method !== method)
      throw new RequestError(405, 'method_not_allowed', { message: `Expected the method ${method}.` })
    if (id === undefined) return created(gate, request)
    return isCancel ? cancelled(gate, request, id) : retrieved(gate, request, { id, url })
  }, errorOf)
}

/** A refused request in the form of the API. */
function errorOf({ status, code, message, pending, param }: RequestError): Response {
  const type = status >= 500 ? 'server_error' : 'invalid_request_error'
  const error = { message, type, param: param ?? null, code, ...(pending !== undefined && { pending }) }
  return json(status, { error })
}

function unknown(id?: string): RequestError {
  const message = id === undefined ? 'There is no such address.' : `There is no response \`${id.slice(0, 200)}\`.`
  return new RequestError(404, 'not_found', { message })
}

/** A conversation, or the run of a response in it. */
interface Place {
  readonly thread: ThreadPort
  readonly runId: string
}

/** A request that has begun a stretch, or attached to one. */
interface Begun {
  readonly thread: ThreadPort
  readonly taken: Taken
}

async function created(gate: Gate, request: Request): Promise<Response> {
  const { options } = gate
  const body = await bodyOf(request, gate.maxBodyBytes)
  const input = asRequest(() => responsesInputIn(body, options.allowUrl))
  const answers = body['answers'] === undefined ? [] : answersIn(body)
  const isAnswer = answers.length + input.results.length + input.approvals.length > 0
  const isEmpty = input.content.length === 0
  if (isAnswer !== isEmpty)
    throw badParam('input', 'Expected `input` to end with a message, or with answers, and not with both.')
  if (input.tools.length > 0 && options.clientTools !== true)
    throw badParam('tools', 'The tools of this server are fixed: send no `tools`.')
  const message = isAnswer ? null : await messageOf(gate, request, input)
  const begun =
    input.previous === null
      ? await begunAnew(gate, request, message)
      : await continued(gate, request, { input, message, answers })
  return begun instanceof Response ? begun : answerWith(gate, request, { ...begun, input })
}

/** The message of a request. `model` is checked against the table of the host. */
async function messageOf(gate: Gate, request: Request, input: ResponsesInput): Promise<NewMessage> {
  const { model, previous, metadata, background, content } = input
  const messageId = request.headers.get('idempotency-key') ?? input.messageId ?? globalThis.crypto.randomUUID()
  const said = { ...(model !== null && { model }), ...(previous !== null && { previous_response_id: previous }) }
  return {
    ...{ messageId, content, mode: modeOf(gate, model), whenBusy: 'reject' },
    metadata: { ...(await gate.clientTools(input.tools)), [OPEN_RESPONSE]: { ...said, metadata, background } },
  }
}

function modeOf({ options }: Gate, model: string | null): string | undefined {
  const { models } = options.responses ?? {}
  if (models === undefined || model === null) return undefined
  if (!Object.hasOwn(models, model))
    throw new RequestError(404, 'model_not_found', {
      message: `There is no model \`${model.slice(0, 200)}\`; there are ${Object.keys(models).join(', ')}.`,
      param: 'model',
    })
  const served = models[model]
  return typeof served === 'string' ? served : model
}

/** A new conversation. The same request, sent again with its `Idempotency-Key`, gets the same one. */
async function begunAnew(gate: Gate, request: Request, message: NewMessage | null): Promise<Begun | Response> {
  if (message === null)
    throw badParam('previous_response_id', 'Expected `previous_response_id` to name the response that is answered.')
  const key = request.headers.get('idempotency-key')
  const threadId = `thread_${key === null ? globalThis.crypto.randomUUID().replaceAll('-', '') : sha256(key).slice(0, 32)}`
  const thread = await gate.thread(request, { threadId, action: 'start', create: true })
  return thread instanceof Response ? refused(thread) : { thread, taken: await thread.send(message) }
}

interface Continued {
  readonly input: ResponsesInput
  readonly message: NewMessage | null
  readonly answers: readonly Answer[]
}

async function continued(
  gate: Gate,
  request: Request,
  { input, message, answers }: Continued,
): Promise<Begun | Response> {
  const id = input.previous ?? ''
  const place = await placeOf(gate, request, { id, action: message === null ? 'answer' : 'start' })
  if (place instanceof Response) return place
  const { thread, runId } = place
  if (message === null) return { thread, taken: await thread.answer(runId, await answersTo(place, input, answers)) }
  const latest = await thread.latest()
  const isNewest = latest === null || latest.runId === runId
  const isKnown = !isNewest && (await thread.messageIds(latest.runId)).includes(message.messageId)
  if (isNewest || isKnown) return { thread, taken: await thread.send(message) }
  if (thread.branch === undefined)
    throw new RequestError(409, 'not_supported', {
      message: 'The conversation has gone on from that response: continue its last one.',
      param: 'previous_response_id',
    })
  return thread.branch(runId, message)
}

/** The answers of a request: to what waits, or, sent again, to what has waited. */
async function answersTo(
  { thread, runId }: Place,
  input: ResponsesInput,
  given: readonly Answer[],
): Promise<readonly Answer[]> {
  const run = (await thread.runs()).find((each) => each.runId === runId)
  let own = responseAnswers(input, run?.pending ?? [])
  if (own.length === 0 && given.length === 0) own = responseAnswers(input, await askedIn(thread, runId))
  const taken = new Set(given.map(({ callId }) => callId))
  const answers = [...given, ...own.filter(({ callId }) => !taken.has(callId))]
  if (answers.length > 0) return answers
  throw new RequestError(409, 'stale_answer', {
    message: 'The request answers nothing that waits.',
    pending: run?.pending ?? [],
  })
}

async function answerWith(
  gate: Gate,
  request: Request,
  { thread, taken, input }: Begun & { readonly input: ResponsesInput },
): Promise<Response> {
  const run = await taken.run
  if (run === null)
    throw new RequestError(409, 'invalid_state', { message: 'The message was removed before its run began.' })
  const { runId, beyond = 0 } = run
  const projection = responsesProjection({ ...gate.options, after: beyond })
  const abort = new AbortController()
  if (gate.options.stopOnDisconnect === true && !input.background)
    abort.signal.addEventListener('abort', () => void thread.stop(runId).catch(() => undefined))
  if (input.stream)
    return streamed(gate, request, { batches: thread.follow(runId, { signal: abort.signal }), projection, abort })
  request.signal.addEventListener('abort', () => abort.abort())
  for await (const batch of thread.follow(runId, { signal: abort.signal, deltas: false })) {
    for (const event of batch) projection.next(event)
    if (projection.isOver || (input.background && projection.response !== null)) break
  }
  if (!input.background) projection.end()
  return json(200, projection.response)
}

/** `GET …/responses/{id}`. */
async function retrieved(
  gate: Gate,
  request: Request,
  { id, url }: { readonly id: string; readonly url: URL },
): Promise<Response> {
  if (url.searchParams.has('starting_after'))
    throw badParam('starting_after', 'Streams are told from their beginning: send no `starting_after`.')
  const place = await placeOf(gate, request, { id, action: 'read' })
  if (place instanceof Response) return place
  const { thread, runId } = place
  const { stretch } = parseResponseId(id)
  const stored = await storedResponse(gate, place, stretch)
  if (stored.response === null) throw unknown(id)
  if (url.searchParams.get('stream') !== 'true') return json(200, stored.response)
  const projection = responsesProjection({ ...gate.options, stretch })
  const abort = new AbortController()
  return streamed(gate, request, { batches: thread.follow(runId, { signal: abort.signal }), projection, abort })
}

async function cancelled(gate: Gate, request: Request, id: string): Promise<Response> {
  const place = await placeOf(gate, request, { id, action: 'stop' })
  if (place instanceof Response) return place
  await place.thread.stop(place.runId)
  const { response } = await storedResponse(gate, place, parseResponseId(id).stretch)
  if (response === null) throw unknown(id)
  return json(200, response)
}

/** A response from the log alone. */
async function storedResponse(
  { options }: Gate,
  { thread, runId }: Place,
  stretch: number,
): Promise<ResponsesProjection> {
  const projection = responsesProjection({ ...options, stretch })
  for await (const event of thread.stored(runId)) projection.next(event)
  const run = (await thread.runs()).find((each) => each.runId === runId)
  if (run?.status !== 'running') projection.end()
  return projection
}

async function placeOf(
  gate: Gate,
  request: Request,
  { id, action }: { readonly id: string; readonly action: Action },
): Promise<Place | Response> {
  const { runId } = parseResponseId(id)
  const thread = await gate.run(request, { runId, action })
  return thread instanceof Response ? refused(thread, id) : { thread, runId }
}

/** What does not exist, and what is refused like it, is told in the form of the API; other answers of the host as they are. */
function refused(response: Response, id?: string): Response {
  if (response.status === 404) throw unknown(id)
  return response
}

interface Streamed {
  readonly batches: AsyncIterable<readonly AnyRunEvent[]>
  readonly projection: ResponsesProjection
  readonly abort: AbortController
}

function streamed(gate: Gate, request: Request, { batches, projection, abort }: Streamed): Response {
  return gate.stream(request, untilOver(batches, projection), {
    protocol: { projection, encode: encodeResponse, key: null },
    ...{ preamble: KEEP_ALIVE, finale: RESPONSES_END, abort },
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

function asRequest<T>(read: () => T): T {
  try {
    return read()
  } catch (error) {
    if (error instanceof ResponsesInputError) throw badParam(error.param, error.message)
    throw error
  }
}
