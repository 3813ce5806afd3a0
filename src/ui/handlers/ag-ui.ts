import type { PendingItem } from '../../index.js'
import type { JsonObject } from '../../util/json.js'
import { agUiCapabilities } from '../ag-ui/capabilities.js'
import { AG_UI_VERSION, encodeAgUi } from '../ag-ui/event.js'
import type { AgUiEvent } from '../ag-ui/event.js'
import { AgUiInputError, agUiInputIn, fromAgUiContent } from '../ag-ui/input.js'
import type { AgUiInput } from '../ag-ui/input.js'
import { clientAnswers, resumeAnswers } from '../ag-ui/resume.js'
import type { ResumeAnswers } from '../ag-ui/resume.js'
import { SSE_HEADERS, sseBody } from '../http/sse.js'
import { AgUiThreadStream } from './ag-ui-stream.js'
import { RequestError } from './back-end.js'
import type { NewMessage, RunInfo, Taken, ThreadPort } from './back-end.js'
import { askedIn } from './followed.js'
import type { Gate, Handler } from './gate.js'
import { asRequestError, badRequest, bodyOf, json, pathAfter } from './http.js'
import type { HandlerOptions } from './options.js'

const KEEP_ALIVE = ': thinharness\n\n'

/**
 * AG-UI 1.0: `POST …/agui` with a `RunAgentInput` begins or continues a run, or attaches to the run in progress, and answers with its
 * stream; `GET …/agui/capabilities` says what the agent can do.
 */
export function agUiHandler(gate: Gate): Handler {
  return gate.handler(async (request, url) => {
    const path = pathAfter(url, 'agui')
    if (path === null) return new Response(null, { status: 404 })
    const isDescription = path.length === 1 && path[0] === 'capabilities'
    if (path.length !== 0 && !isDescription) return new Response(null, { status: 404 })
    const method = isDescription ? 'GET' : 'POST'
    if (request.method !== method) return new Response(null, { status: 405, headers: { allow: method } })
    return isDescription ? described(gate, request) : run(gate, request)
  })
}

async function described(gate: Gate, request: Request): Promise<Response> {
  const refused = await gate.checked(request, { threadId: null, runId: null, action: 'read' })
  if (refused !== null) return refused
  const { reasoning, deltas, clientTools } = gate.options
  const description = await gate.description()
  if (description === null) return new Response(null, { status: 404 })
  return json(200, agUiCapabilities(description, { reasoning, deltas, clientTools }))
}

async function run(gate: Gate, request: Request): Promise<Response> {
  const body = await bodyOf(request, gate.maxBodyBytes)
  const { options } = gate
  const input = inputIn(body, options)
  const metadata = await gate.clientTools(input.tools)
  const { threadId, message } = input
  const content = message === null ? null : asRequest(() => fromAgUiContent(message.content, options.allowUrl))
  const isAnswer = input.results.length > 0 || (input.resume !== null && input.resume.length > 0)
  const action = isAnswer ? 'answer' : message === null ? 'read' : 'start'
  const thread = await gate.thread(request, { threadId, action, create: action === 'start' })
  if (thread instanceof Response) return thread
  try {
    const begun = isAnswer
      ? await answered(thread, input)
      : message === null || content === null
        ? await attached(thread)
        : await sent(thread, { messageId: message.id, content, metadata }, options.newMessage === 'decline')
    return streamOf(gate, request, { thread, input, begun })
  } catch (error) {
    const refused = asRequestError(error)
    if (refused === null) throw error
    return refusedStream(input, refused)
  }
}

/** The input of a request; without its tools and their results if the handlers do not take them. */
function inputIn(body: JsonObject, { clientTools }: HandlerOptions): AgUiInput {
  return asRequest(() => {
    const input = agUiInputIn(body)
    return clientTools === true ? input : { ...input, tools: [], results: [] }
  })
}

/** What a request has begun, or attached to. */
interface Begun {
  readonly run: Taken['run']
  /** The request has begun the stretch. */
  readonly starts: boolean
  /** Number of the last event that is told by a snapshot alone. Default: the place of the run when the stream begins. */
  readonly after?: number
  readonly warnings?: readonly string[]
}

async function sent(
  thread: ThreadPort,
  message: Pick<NewMessage, 'messageId' | 'content' | 'metadata'>,
  declines: boolean,
): Promise<Begun> {
  const latest = await thread.latest()
  const known = latest === null ? [] : await thread.messageIds(latest.runId)
  if (latest !== null && known.includes(message.messageId)) return attachedTo(latest)
  if (latest !== null && latest.pending.length > 0 && !declines) throw pendingError(latest.pending)
  const whenBusy = declines && latest !== null && latest.pending.length > 0 ? 'decline' : undefined
  const { status, run } = await thread.send({ ...message, whenBusy })
  if (status === 'attached') return { run, starts: false }
  // A message that waits for its run, or begins one, is at the beginning of that run.
  return { run, starts: true, ...(status === 'started' || status === 'queued' ? { after: 0 } : {}) }
}

async function answered(thread: ThreadPort, input: AgUiInput): Promise<Begun> {
  const latest = await thread.latest()
  if (latest === null) throw badRequest('The thread has no run that waits for an answer.')
  const given = answersTo(input, latest.pending)
  // The same answers again, after their answer was lost: the run checks that they are the same.
  const asked = given.answers.length === 0 ? await askedIn(thread, latest.runId) : []
  const { answers } = given.answers.length === 0 ? answersTo(input, asked) : given
  const isKnown = (id: string): boolean => asked.some(({ callId }) => callId === id)
  const warnings = given.stale
    .filter((id) => !isKnown(id))
    .map((id) => `Nothing waits for the answer to \`${id.slice(0, 200)}\`.`)
  // Entries of `resume` are for all items that wait; without any, results of tools are enough.
  const isWhole = !input.resume?.length || given.open.length === 0 || given.answers.length === 0
  if (!isWhole || answers.length === 0) return { ...attachedTo(latest), warnings }
  const { run, status } = await thread.answer(latest.runId, answers)
  const after = (await run)?.beyond ?? 0
  return { run, starts: status === 'started', after, warnings }
}

function answersTo({ resume, results }: AgUiInput, pending: readonly PendingItem[]): ResumeAnswers {
  const resumed = resumeAnswers(resume ?? [], pending)
  return { ...resumed, answers: [...resumed.answers, ...clientAnswers(results, pending)] }
}

async function attached(thread: ThreadPort): Promise<Begun> {
  const latest = await thread.latest()
  if (latest === null)
    throw new RequestError(409, 'invalid_request', { message: 'The thread is empty: send a message.' })
  return attachedTo(latest)
}

function attachedTo({ runId, seq }: RunInfo): Begun {
  return { run: Promise.resolve({ runId }), starts: false, after: seq }
}

function pendingError(pending: readonly PendingItem[]): RequestError {
  return new RequestError(409, 'pending', { message: 'The run waits for people: answer with `resume`.', pending })
}

interface Streamed {
  readonly thread: ThreadPort
  readonly input: AgUiInput
  readonly begun: Begun
}

function streamOf(gate: Gate, request: Request, { thread, input, begun }: Streamed): Response {
  const { options } = gate
  const { run, starts, after, warnings } = begun
  const abort = new AbortController()
  if (starts && options.stopOnDisconnect === true)
    abort.signal.addEventListener(
      'abort',
      () => void run.then((found) => found && thread.stop(found.runId)).catch(() => undefined),
    )
  const stream = new AgUiThreadStream(thread, {
    ...{ run, after, warnings, signal: abort.signal },
    shown: { ...options.agUi, ...options, threadId: input.threadId, runId: input.runId },
    messages: input.messages,
  })
  return gate.stream(request, stream.batches(), {
    protocol: { projection: stream, encode: encodeAgUi, key: 'ag-ui' },
    preamble: KEEP_ALIVE,
    abort,
  })
}

/** A refused request of the right form is a stream too: clients show its error. */
function refusedStream({ threadId, runId }: AgUiInput, { code, message }: RequestError): Response {
  const events: readonly AgUiEvent[] = [
    { type: 'RUN_STARTED', threadId, runId, protocolVersion: AG_UI_VERSION },
    { type: 'RUN_ERROR', message, code },
  ]
  const frames = [KEEP_ALIVE, ...events.map(encodeAgUi)].values()
  return new Response(sseBody({ next: () => Promise.resolve(frames.next() as IteratorResult<string>) }), {
    headers: SSE_HEADERS,
  })
}

function asRequest<T>(read: () => T): T {
  try {
    return read()
  } catch (error) {
    if (error instanceof AgUiInputError) throw badRequest(error.message)
    throw error
  }
}
