import type { PendingItem } from '#contracts/result.js'
import type { JsonObject } from '#util/json.js'
import { agUiProjection, toAgUiMessages, untilBroken } from '../ag-ui/ag-ui-projection.js'
import { agUiCapabilities } from '../ag-ui/capabilities.js'
import { AG_UI_VERSION, encodeAgUi } from '../ag-ui/event.js'
import type { AgUiEvent } from '../ag-ui/event.js'
import { readAgUiInput, fromAgUiContent } from '../ag-ui/input.js'
import type { AgUiInput } from '../ag-ui/input.js'
import type { AgUiMessage } from '../ag-ui/message.js'
import type { AgUiOptions } from '../ag-ui/options.js'
import { clientAnswers, resumeAnswers } from '../ag-ui/interrupts.js'
import type { ResumeAnswers } from '../ag-ui/interrupts.js'
import { SSE_HEADERS, sseBody } from '../http/sse-body.js'
import type { StoredRun } from '../hub/runs-before-fork.js'
import type { AnyRunEvent, Projection } from '../projection.js'
import { notFound } from './authorization.js'
import type { HandlerContext } from './handler-context.js'
import { asHandler, asRequestError, badRequest, jsonResponse, pathAfter, RequestError } from './http.js'
import type { Handler } from './http.js'
import { storedRun } from './messages-response.js'
import type { ServedOptions } from './options.js'
import { readBody } from './request-body.js'
import { streamAbort, itemsOfRun, KEEP_ALIVE, streamResponse } from './run-stream.js'
import type { MessageDelivery, NewMessage, RunInfo, Thread } from './thread.js'

/**
 * AG-UI 1.0: `POST …/agui` with a `RunAgentInput` begins or continues a run, or attaches to the run in progress, and answers with its
 * stream; `GET …/agui/capabilities` says what the agent can do.
 */
export function agUiHandler(context: HandlerContext): Handler {
  return asHandler(context, async (request, url) => {
    const path = pathAfter(url, 'agui')
    if (path === null) return new Response(null, { status: 404 })
    const isDescription = path.length === 1 && path[0] === 'capabilities'
    if (path.length !== 0 && !isDescription) return new Response(null, { status: 404 })
    const method = isDescription ? 'GET' : 'POST'
    if (request.method !== method) return new Response(null, { status: 405, headers: { allow: method } })
    return isDescription ? answerCapabilities(context, request) : streamStretch(context, request)
  })
}

async function answerCapabilities(context: HandlerContext, request: Request): Promise<Response> {
  const refused = await context.checked(request, { threadId: null, runId: null, action: 'read' })
  if (refused !== null) return refused
  const { reasoning, deltas, clientTools } = context.options
  const description = await context.description()
  if (description === null) throw notFound()
  return jsonResponse(200, agUiCapabilities(description, { reasoning, deltas, clientTools }))
}

/** Begins a stretch, or attaches to one. */
async function streamStretch(context: HandlerContext, request: Request): Promise<Response> {
  const { options } = context
  const input = readInput(await readBody(request, options), options)
  const { threadId, message } = input
  const content = message === null ? null : fromAgUiContent(message.content, options.allowUrl)
  const isAnswer = input.results.length > 0 || (input.resume !== null && input.resume.length > 0)
  const action = isAnswer ? 'answer' : message === null ? 'read' : 'start'
  let metadata: object | undefined
  const readTools = async (): Promise<void> => void (metadata = await context.clientTools(input.tools))
  const thread = await context.thread(request, { threadId, action, create: action === 'start', prepare: readTools })
  if (thread instanceof Response) return thread
  try {
    const begun = isAnswer
      ? await answerPending(thread, input)
      : message === null || content === null
        ? attachLatest(thread)
        : await sendMessage(thread, { messageId: message.id, content, metadata }, options)
    return stretchResponse(options, request, { thread, input, begun })
  } catch (error) {
    const refused = asRequestError(error)
    if (refused === null) throw error
    return refusedStream(input, refused)
  }
}

/** The input of a request; without its tools and their results if the handlers do not take them. */
function readInput(body: JsonObject, { clientTools }: ServedOptions): AgUiInput {
  const input = readAgUiInput(body)
  return clientTools === true ? input : { ...input, tools: [], results: [] }
}

/** What a request has begun, or attached to. */
interface Begun extends MessageDelivery {
  /** Number of the last event that a snapshot alone has. Default: the place of the run when the stream begins. */
  readonly after?: number
  readonly warnings?: readonly string[]
}

async function sendMessage(thread: Thread, message: NewMessage, { newMessage }: ServedOptions): Promise<Begun> {
  const { latest } = thread
  if (latest !== null && thread.messageIds(latest.runId).includes(message.messageId)) return attachedTo(latest)
  if (latest !== null && latest.pending.length > 0 && newMessage !== 'decline')
    throw new RequestError(409, 'pending', {
      message: 'The run waits for people: answer with `resume`.',
      pending: latest.pending,
    })
  const { status, run } = await thread.send(message)
  // A message that waits for its run, or begins one, is at the beginning of that run.
  return status === 'started' || status === 'queued' ? { status, run, after: 0 } : { status, run }
}

async function answerPending(thread: Thread, input: AgUiInput): Promise<Begun> {
  const { latest } = thread
  if (latest === null) throw badRequest('The thread has no run that waits for an answer.')
  const current = answersTo(input, latest.pending)
  // The same answers again, after their answer was lost: the run checks that they are the same.
  const earlier = current.answers.length === 0 ? await itemsOfRun(thread, latest.runId) : []
  const { answers } = current.answers.length === 0 ? answersTo(input, earlier) : current
  const warnings = current.stale.filter((id) => !earlier.some(({ callId }) => callId === id)).map(staleWarning)
  // Entries of `resume` are for all items that wait; without any, results of tools are enough.
  const isWhole = !input.resume?.length || current.open.length === 0 || current.answers.length === 0
  if (!isWhole || answers.length === 0) return { ...attachedTo(latest), warnings }
  try {
    const delivery = await thread.answer(latest.runId, answers)
    return { ...delivery, after: (await delivery.run)?.beyond ?? 0, warnings }
  } catch (error) {
    const isLate = error instanceof RequestError && error.code === 'stale_answer'
    if (!isLate || !input.resume?.length) throw error
    // Somebody else was first: the client learns how the run stands, and keeps no interrupt.
    const late = answers.map(({ callId }) => staleWarning(callId))
    return { ...attachedTo(thread.latest ?? latest), warnings: [...warnings, ...late] }
  }
}

function staleWarning(id: string): string {
  return `Nothing waits for the answer to \`${id.slice(0, 200)}\`.`
}

function answersTo({ resume, results }: AgUiInput, pending: readonly PendingItem[]): ResumeAnswers {
  const resumed = resumeAnswers(resume ?? [], pending)
  return { ...resumed, answers: [...resumed.answers, ...clientAnswers(results, pending)] }
}

function attachLatest({ latest }: Thread): Begun {
  if (latest === null)
    throw new RequestError(409, 'invalid_request', { message: 'The thread is empty: send a message.' })
  return attachedTo(latest)
}

function attachedTo({ runId, seq }: RunInfo): Begun {
  return { status: 'attached', run: Promise.resolve({ runId }), after: seq }
}

interface StretchOfThread {
  readonly thread: Thread
  readonly input: AgUiInput
  readonly begun: Begun
}

function stretchResponse(
  options: ServedOptions,
  request: Request,
  { thread, input, begun }: StretchOfThread,
): Response {
  const abort = streamAbort(options, thread, begun)
  const stream = new StretchStream({ thread, input, begun }, abort.signal, {
    ...options.agUi,
    ...options,
    threadId: input.threadId,
    runId: input.runId,
  })
  return streamResponse(options, request, stream.batches(), {
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

/** The stream of a request: its run may begin later, and with it what the client has to be sent of the runs before. */
class StretchStream implements Projection<AgUiEvent> {
  readonly #thread: Thread
  readonly #input: AgUiInput
  readonly #begun: Begun
  readonly #signal: AbortSignal
  readonly #options: AgUiOptions
  #projection: Projection<AgUiEvent>
  #warnings: readonly string[]

  constructor({ thread, input, begun }: StretchOfThread, signal: AbortSignal, options: AgUiOptions) {
    this.#thread = thread
    this.#input = input
    this.#begun = begun
    this.#signal = signal
    this.#options = options
    this.#warnings = begun.warnings ?? []
    this.#projection = agUiProjection(options)
  }

  /** The events of the run. A source that breaks ends the stream: clients do not notice that an end is missing. */
  batches(): AsyncIterable<readonly AnyRunEvent[]> {
    return untilBroken(this.#batches())
  }

  next(event: AnyRunEvent): readonly AgUiEvent[] {
    return this.#withWarnings(this.#projection.next(event))
  }

  end(): readonly AgUiEvent[] {
    return this.#withWarnings(this.#projection.end())
  }

  join(earlier: AgUiEvent, later: AgUiEvent): AgUiEvent | null {
    return this.#projection.join(earlier, later)
  }

  async *#batches(): AsyncGenerator<readonly AnyRunEvent[]> {
    const thread = this.#thread
    const reader = await this.#begun.run
    if (reader === null || this.#signal.aborted) return
    const { runId, beyond } = reader
    const place = thread.runs.find((run) => run.runId === runId)?.seq
    const after = this.#begun.after ?? beyond ?? place ?? 0
    const history = await this.#historyBefore(runId)
    const messageIds = thread.messageIds(runId)
    const isFirst = history.length === 0 && after === 0
    const held = isFirst ? undefined : this.#input.messages
    this.#projection = agUiProjection({ ...this.#options, after, history, held, messageIds: () => messageIds })
    yield* thread.follow(runId, { signal: this.#signal, children: true, beyond })
  }

  /** The messages of the runs before one. */
  async #historyBefore(runId: string): Promise<readonly AgUiMessage[]> {
    let history: readonly AgUiMessage[] = []
    const addRun = ({ events, messageIds }: StoredRun): void => {
      history = toAgUiMessages(events, { ...this.#options, history, messageIds: () => messageIds })
    }
    for (const earlier of await this.#thread.continued()) addRun(earlier)
    for (const earlier of this.#thread.runs) {
      if (earlier.runId === runId) break
      addRun(await storedRun(this.#thread, earlier.runId))
    }
    return history
  }

  #withWarnings(events: readonly AgUiEvent[]): readonly AgUiEvent[] {
    const [first, ...others] = events
    if (this.#warnings.length === 0 || first === undefined) return events
    const warnings = this.#warnings.map((message): AgUiEvent => ({
      type: 'CUSTOM',
      name: 'thinharness.warning',
      value: { message },
    }))
    this.#warnings = []
    return [first, ...warnings, ...others]
  }
}
