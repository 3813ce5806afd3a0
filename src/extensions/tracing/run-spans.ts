import { contentOf, textOf } from '#contracts/entry.js'
import { withText } from '#contracts/notices.js'
import type { RequestConstants } from '#core/model-session.js'
import type { RunEvent } from '#core/state/events.js'
import type { RunTrace, TracedRun, TraceScope } from '#core/extension/run-tracer.js'
import type { UserEntry, AssistantEntry, AssistantPart, ContentPart, ToolEntry } from '#contracts/entry.js'
import type { JsonObject } from '#util/json.js'
import {
  tracedAgentName,
  callAttributes,
  callError,
  constantContent,
  conversationId,
  endAttributes,
  modelAttributes,
  outcomeAttributes,
  replyAttributes,
  requestAttributes,
  runAttributes,
  runError,
  ATTRIBUTE,
  CONTENT,
  OPERATION,
  OWN,
  SPAN_EVENT,
} from './attributes.js'
import type { CapturedContent, Identity } from './options.js'
import type { Attributes, EventOf, Span, SpanError, SpanSink } from './span-sink.js'

type Completed = EventOf<'tool_call_completed'>

/** Settings of the spans of runs. */
export interface SpanSettings {
  readonly sink: SpanSink
  readonly content: CapturedContent
  readonly identity: Identity
}

/** Makes the spans of runs, those of child runs inside the tool call that started them. */
export class RunSpanMaker {
  readonly #settings: SpanSettings
  /** Runs in progress, by run id: parents of the spans of children. */
  readonly #open = new Map<string, RunSpans>()

  constructor(settings: SpanSettings) {
    this.#settings = settings
  }

  startRun(run: TracedRun): RunTrace {
    const { parentRunId, parentToolCallId, runId } = run
    const outer = parentRunId === null ? undefined : this.#open.get(parentRunId)
    const spans = new RunSpans(this.#settings, run, {
      parent: outer?.spanOf(parentToolCallId) ?? null,
      ended: () => {
        if (this.#open.get(runId) === spans) this.#open.delete(runId)
      },
    })
    this.#open.set(runId, spans)
    return spans
  }
}

/** The spans of one run: one for the run, in it one for each request to the model and one for each tool call. */
class RunSpans implements RunTrace {
  readonly #settings: SpanSettings
  readonly #run: Span
  readonly #conversation: string | undefined
  readonly #ended: () => void
  #turn: Span | null = null
  readonly #tools = new Map<string, Span>()
  #constants: RequestConstants | null = null
  #model: Attributes = {}
  #modelId = ''
  /** Results for the next request, by their place in the batch; collected if messages are captured. */
  #results: (readonly [number, Message])[] = []
  #lastAt: string
  /** Until the first request has sent it; collected if messages are captured. */
  #prompt: UserEntry | null = null
  /** Of the last reply; collected if messages are captured. */
  #lastText = ''
  /** Its turns are computed: they are no requests. */
  #isProgram = false

  constructor(
    settings: SpanSettings,
    run: TracedRun,
    { parent, ended }: { readonly parent: Span | null; readonly ended: () => void },
  ) {
    const { sink, identity } = settings
    this.#settings = settings
    this.#ended = ended
    this.#lastAt = run.at
    this.#conversation = conversationId(run, identity)
    this.#run = sink.startRun({
      name: `${OPERATION.run} ${tracedAgentName(run, identity)}`,
      kind: 'internal',
      startedAt: run.at,
      attributes: runAttributes(run, identity),
      parent,
      runId: run.runId,
      parentRunId: run.parentRunId,
      root: run.root,
      earlier: run.traceparent,
    })
  }

  get traceparent(): string | null {
    return this.#run.traceparent
  }

  /** The span of a call in progress, else that of the run. */
  spanOf(callId: string | null): Span {
    return (callId === null ? undefined : this.#tools.get(callId)) ?? this.#run
  }

  constants(constants: RequestConstants): void {
    this.#constants = constants
    this.#run.set(constantContent(constants, this.#settings.content))
  }

  within<T>(scope: TraceScope, work: () => T): T {
    const span = scope.kind === 'turn' ? this.#turnSpan(scope.requestKind) : this.spanOf(scope.callId)
    return span.within(work)
  }

  event(event: RunEvent): void {
    if (event.kind === 'run_started') this.#started(event)
    if (event.kind === 'model_request_started' && !this.#isProgram) this.#requested(event)
    if (event.kind === 'model_message') this.#replied(event)
    if (event.kind === 'tool_call_started') this.#callStarted(event)
    if (event.kind === 'tool_call_completed') this.#callCompleted(event)
    if (event.kind === 'run_completed') this.#completed(event)
    if (event.kind === 'run_failed') this.#failed(event)
    const mark = EVENT_MARKS[event.kind] as ((event: RunEvent, content: CapturedContent) => Attributes) | undefined
    if (mark !== undefined)
      (this.#turn ?? this.#run).event(`thinharness.${event.kind}`, mark(event, this.#settings.content), event.at)
    this.#lastAt = event.at
  }

  #started(event: EventOf<'run_started'>): void {
    this.#setModel(event)
    this.#isProgram = event.rules.computed === true
    const { content } = this.#settings
    if (!content.kinds.messages || event.prompt === null) return
    const { prompt } = event
    this.#prompt = { role: 'user', content: contentOf(prompt), id: '', at: event.at }
    this.#run.set({ [CONTENT.input]: [inputMessage(this.#prompt, content)] })
  }

  #requested(event: EventOf<'model_request_started'>): void {
    this.#turn?.end(event.at)
    this.#setModel(event)
    this.#turn = this.#startTurn(event.at, {
      [OWN.requestKind]: event.requestKind,
      [OWN.notices]: event.notices.length === 0 ? undefined : event.notices,
    })
    const { content } = this.#settings
    if (!content.kinds.messages) return
    const results = [...this.#results].sort(([one], [other]) => one - other).map(([, message]) => message)
    this.#results = []
    const messages = [...this.#takePrompt(event), ...event.entries].map((entry) => inputMessage(entry, content))
    this.#turn.set({ [CONTENT.input]: [...results, ...messages] })
  }

  /** The prompt, as the first request sends it. */
  #takePrompt({ promptAddition }: EventOf<'model_request_started'>): readonly UserEntry[] {
    const prompt = this.#prompt
    this.#prompt = null
    if (prompt === null) return []
    return [promptAddition === undefined ? prompt : { ...prompt, content: withText(prompt.content, promptAddition) }]
  }

  #setModel(event: EventOf<'run_started' | 'model_request_started'>): void {
    this.#modelId = event.model
    this.#model = modelAttributes(event)
    this.#run.set(this.#model)
  }

  /** The span of the current request. A request that is repeated without an event begins with its work. */
  #turnSpan(requestKind: string | null): Span {
    this.#turn ??= this.#startTurn(this.#lastAt, { [OWN.requestKind]: requestKind ?? undefined })
    return this.#turn
  }

  #startTurn(startedAt: string, attributes: Attributes): Span {
    return this.#settings.sink.start({
      name: `${OPERATION.turn} ${this.#modelId}`,
      kind: 'client',
      startedAt,
      attributes: {
        [ATTRIBUTE.operation]: OPERATION.turn,
        ...this.#model,
        [ATTRIBUTE.conversation]: this.#conversation,
        ...requestAttributes(this.#constants),
        ...attributes,
      },
      parent: this.#run,
    })
  }

  #replied(event: EventOf<'model_message'>): void {
    const { content } = this.#settings
    if (this.#isProgram) {
      this.#lastText = textOf(event.entry.parts)
      return
    }
    const turn = this.#turnSpan(null)
    turn.set(replyAttributes(event))
    if (content.kinds.messages) {
      turn.set({ [CONTENT.output]: [outputMessage(event.entry, content)] })
      this.#lastText = textOf(event.entry.parts)
    }
    turn.end(event.at)
    this.#turn = null
  }

  #callStarted(event: EventOf<'tool_call_started'> | Completed, startedAt: string = event.at): Span {
    const { content, sink } = this.#settings
    const span = sink.start({
      name: `${OPERATION.tool} ${event.toolName}`,
      kind: 'internal',
      startedAt,
      attributes: callAttributes(event, this.#constants),
      parent: this.#run,
    })
    if (content.kinds.toolArguments && event.kind === 'tool_call_started') {
      span.set({ [CONTENT.toolArguments]: content.redactJson(event.arguments, CONTENT.toolArguments) })
    }
    this.#tools.set(event.callId, span)
    return span
  }

  #callCompleted(event: Completed): void {
    const { content } = this.#settings
    // A call that began before a crash ends in a trace that has not seen its beginning.
    const span = this.#tools.get(event.callId) ?? this.#callStarted(event, earlierTime(event.at, event.durationMs))
    const error = callError(event, content)
    span.set(outcomeAttributes(event, content))
    if (error !== null) span.fail(error, event.at)
    span.end(event.at)
    this.#tools.delete(event.callId)
    if (content.kinds.messages && !this.#isProgram) this.#results.push([event.toolIndex, toolMessage(event, content)])
  }

  #completed({ stopReason, usage, pending, at }: EventOf<'run_completed'>): void {
    const { content } = this.#settings
    this.#run.set(endAttributes(stopReason, usage))
    if (pending.length > 0) {
      this.#run.set({ [OWN.paused]: true, [OWN.pendingCallIds]: pending })
    }
    if (content.kinds.messages && stopReason === 'end_turn') {
      const text = { type: 'text', content: content.redact(this.#lastText, CONTENT.output) }
      this.#run.set({ [CONTENT.output]: [{ role: 'assistant', parts: [text] }] })
    }
    this.#end(at, null)
  }

  #failed(event: EventOf<'run_failed'>): void {
    this.#run.set(endAttributes(event.stopReason, event.usage))
    this.#end(event.at, runError(event, this.#settings.content))
  }

  /** Open spans end with their run, in the run's error. */
  #end(at: string, error: SpanError | null): void {
    for (const span of [...this.#tools.values(), this.#turn, this.#run]) {
      if (error !== null) span?.fail(error, at)
      span?.end(at)
    }
    this.#tools.clear()
    this.#turn = null
    this.#ended()
  }
}

function earlierTime(at: string, ms: number): string {
  return new Date(Date.parse(at) - ms).toISOString()
}

/** A message as the semantic conventions write it. */
type Message = JsonObject

/** A message of a request. */
function inputMessage(entry: UserEntry | ToolEntry, content: CapturedContent): Message {
  if (entry.role === 'user') return { role: 'user', parts: entry.content.map((part) => inputPart(part, content)) }
  const { callId, content: given } = entry
  if (typeof given === 'string') return toolMessage({ callId, output: given }, content)
  const [first, ...parts] = given
  return toolMessage({ callId, output: first?.type === 'text' ? first.text : '', parts }, content)
}

/** The result of a tool call as the model reads it. */
function toolMessage(
  { callId, output, parts = [] }: { callId: string; output: string; parts?: readonly ContentPart[] },
  content: CapturedContent,
): Message {
  const response = content.kinds.toolResults ? content.redactJson(output, CONTENT.input) : NOT_CAPTURED
  const others = parts.map((part) => inputPart(part, content))
  return { role: 'tool', parts: [{ type: 'tool_call_response', id: callId, response }, ...others] }
}

/** A reply: reasoning as far as it is text, text, and tool calls. */
function outputMessage({ parts, finishReason }: AssistantEntry, content: CapturedContent): Message {
  return {
    role: 'assistant',
    parts: parts.flatMap((part) => outputPart(part, content)),
    finish_reason: finishReason === 'tool_calls' ? 'tool_call' : finishReason,
  }
}

const NOT_CAPTURED = '[not captured]'

function inputPart(part: ContentPart, content: CapturedContent): JsonObject {
  if (part.type === 'text') return { type: 'text', content: content.redact(part.text, CONTENT.input) }
  const modality = part.type === 'file' ? 'document' : part.type
  if ('id' in part) return { type: 'file', modality, file_id: content.redact(part.id, CONTENT.input) }
  if (!('url' in part)) return leftOut(modality, part.mediaType, part.data.length)
  const inline = /^data:([^;,]*)/i.exec(part.url)
  if (inline !== null) return leftOut(modality, inline[1] ?? '', part.url.length)
  return { type: 'uri', modality, uri: content.redact(part.url, CONTENT.input) }
}

/** The kind of the data is recorded; the data never reach a trace. */
function leftOut(modality: string, mediaType: string, characters: number): JsonObject {
  return { type: 'blob_left_out', modality, mime_type: mediaType, characters }
}

/** Signatures and other native data of a provider are never traced. */
function outputPart(part: AssistantPart, content: CapturedContent): JsonObject[] {
  switch (part.type) {
    case 'reasoning':
      return part.text === '' ? [] : [{ type: 'reasoning', content: content.redact(part.text, CONTENT.output) }]
    case 'text':
      return [{ type: 'text', content: content.redact(part.text, CONTENT.output) }]
    case 'tool_call': {
      const { callId: id, name, arguments: text } = part
      const given = content.kinds.toolArguments ? content.redactJson(text, CONTENT.output) : NOT_CAPTURED
      return [{ type: 'tool_call', id, name, arguments: given }]
    }
    case 'hosted': {
      const { callId: id, name, arguments: text, result } = part
      const captured = (given: string) =>
        content.kinds.toolArguments ? content.redactJson(given, CONTENT.output) : NOT_CAPTURED
      const call = text === undefined ? [] : [{ type: 'server_tool_call', id, name, arguments: captured(text) }]
      return result === undefined
        ? call
        : [...call, { type: 'server_tool_call_response', id, result: captured(result) }]
    }
    case 'image':
      return 'url' in part
        ? [{ type: 'uri', modality: 'image', uri: content.redact(part.url, CONTENT.output) }]
        : [leftOut('image', part.mediaType, part.data.length)]
    case 'opaque':
      return []
  }
}

type EventMarks = {
  readonly [Kind in RunEvent['kind']]?: (event: EventOf<Kind>, content: CapturedContent) => Attributes
}

/** The attributes of what is an event of the open span, by the kind of the run's event. */
const EVENT_MARKS: EventMarks = {
  transport_retry: ({ attempt, delayMs: delay_ms, status, withdrawn, failure, ...event }, content) => {
    const reason = content.redact(event.reason, SPAN_EVENT.exceptionMessage)
    return { attempt, delay_ms, status: status ?? undefined, failure, withdrawn, reason }
  },
  model_retry: ({ retryKind: kind, callId }) => ({ kind, call_id: callId ?? undefined }),
  limit_warning: ({ limitKind: limit, remaining }) => ({ limit, remaining }),
  cache_bust: ({ path, cause }) => ({ path, cause }),
  hook_failed: ({ hookEvent: hook }) => ({ hook }),
  view_changed: ({ policy, changes, tokensBefore, tokensAfter }) => {
    const tokens = { tokens_before: tokensBefore ?? undefined, tokens_after: tokensAfter ?? undefined }
    return { policy, changes: changes.length, ...tokens }
  },
  view_prepared: ({ policy, shown }) => ({ policy, ok: shown !== null }),
  tool_call_interrupted: ({ callId, settledBy }) => ({ call_id: callId, settled_by: settledBy }),
  background_reported: ({ callId, childRunId, agent, ok }) => ({ call_id: callId, run_id: childRunId, agent, ok }),
}
