import { contentOf } from '#contracts/entry.js'
import { atOnce } from '#util/wrapped.js'
import { contentOfEnvelope, shownContent, shownEnvelope } from '../shown-content.js'
import { DIAGNOSTICS, project, toReadable, splitRuns, untilEnd } from '../projection.js'
import type { AnyEventOf, AnyRunEvent, Projection, LinkedContent, ProjectionOptions } from '../projection.js'
import { errorSentence } from '../error-sentence.js'
import { TurnReader } from '../turn-reader.js'
import { hostedChunks } from './hosted-chunks.js'
import type { ReplyChange } from '../turn-reader.js'
import { ToolCallChunks, parseInput } from './tool-call-chunks.js'
import type { ApprovalForm, SentCall } from './tool-call-chunks.js'
import { ChildMessages, ChildStatus } from './child-messages.js'
import type { Dialect, UiFinishReason, UiChunk, UiInputPart, UiStreamOptions } from './chunk.js'
import { UiMessageFold } from './message-fold.js'
import type { UiMessage } from './message-fold.js'
import { hasWholeInputs } from './chunk.js'
import type { ContentPart } from '#contracts/entry.js'
import type { PendingItem } from '#contracts/result.js'
import type { RunUsage } from '#contracts/run-usage.js'
import { FINAL_RESULT } from '#core/state/output-format.js'

/** The chunks of an AI SDK UI message stream: one assistant message for a run, with all its stretches. */
export function uiMessageProjection(options: UiStreamOptions = {}): Projection<UiChunk> {
  const { dialect = 7 } = options
  return new UiMessageProjection(options, dialect === 7 ? 'full' : dialect === 6 ? 'requests' : 'data')
}

/** The chunks of messages that are made from the log: they hold the answers that a client of dialect 6 adds itself. */
function messageProjection(options: UiStreamOptions): Projection<UiChunk> {
  return options.dialect === 6 ? new UiMessageProjection(options, 'answered') : uiMessageProjection(options)
}

type Ending =
  { readonly kind: 'paused' | 'completed' | 'cancelled' } | { readonly kind: 'failed'; readonly errorText: string }

class UiMessageProjection implements Projection<UiChunk> {
  readonly #options: UiStreamOptions
  readonly #dialect: Dialect
  readonly #turn: TurnReader
  readonly #calls: ToolCallChunks
  readonly #children = new ChildStatus()
  readonly #messages: ChildMessages | null
  readonly #step = new UiStep()
  readonly #after: number
  #runId = ''
  #seq = 0
  #isStarted = false
  #answersByTool = false
  /** The structured answer. */
  #answer: { readonly value: unknown } | null = null
  #finishReason: UiFinishReason = 'stop'
  #ending: Ending | null = null
  /** Approvals and questions that wait, in the order in which they were asked. */
  #pending: PendingItem[] = []
  /** The client has a part that says what waits. */
  #hasPendingPart = false
  /** Parts that came while a reply was arriving: they stand after it, however it is read. */
  #held: UiChunk[] = []

  constructor(options: UiStreamOptions, approvals: ApprovalForm) {
    const { dialect = 7, deltas, reasoning, outputText } = options
    this.#options = options
    this.#dialect = dialect
    this.#after = options.after ?? 0
    this.#turn = new TurnReader({
      live: deltas !== 'settled',
      inputs: !hasWholeInputs(options),
      reasoning: reasoning !== false,
      outputText: outputText === true,
    })
    this.#calls = new ToolCallChunks({ dialect, approvals, staticTools: new Set(options.staticTools) })
    const ofChild = { ...options, after: 0, threadId: undefined }
    const beginMessage = (): Projection<UiChunk> => new UiMessageProjection(ofChild, approvals)
    this.#messages = options.children === 'message' ? new ChildMessages(dialect, beginMessage) : null
  }

  next(event: AnyRunEvent): readonly UiChunk[] {
    if (this.#runId === '') this.#runId = event.runId
    const isOwn = event.runId === this.#runId
    if (isOwn && event.durable) this.#seq = event.seq
    const chunks = isOwn ? this.#own(event) : this.#ofChild(event)
    for (const chunk of chunks) this.#step.keep(chunk)
    if (chunks.length === 0 || this.#seq <= this.#after) return []
    return [...this.#start(chunks[0]), ...chunks]
  }

  end(): readonly UiChunk[] {
    if (this.#runId === '') return []
    const lost = [...this.#chunksOf(this.#turn.close()), ...this.#release()]
    const children = this.#options.children === 'none' ? [] : this.#children.rest({ all: this.#after > 0 })
    const calls = [...this.#calls.withdrawOutputs(), ...this.#calls.waiting()]
    return [...this.#start(), ...lost, ...children, ...calls, ...this.#finishStep(), ...this.#ended()]
  }

  join(earlier: UiChunk, later: UiChunk): UiChunk | null {
    if (earlier.type === 'tool-output-available' && later.type === 'tool-output-available')
      return earlier.preliminary === true && earlier.toolCallId === later.toolCallId ? later : null
    if (!('delta' in earlier) || !('delta' in later)) return null
    if (earlier.type !== later.type || earlier.id !== later.id) return null
    return { ...later, delta: earlier.delta + later.delta }
  }

  /** The beginning of the message, unless it was sent or comes first anyway. */
  #start(first?: UiChunk): readonly UiChunk[] {
    const isSent = this.#isStarted || first?.type === 'start'
    this.#isStarted = true
    return isSent ? [] : [{ type: 'start', messageId: this.#runId }]
  }

  #ended(): readonly UiChunk[] {
    const ending = this.#ending
    if (ending === null) {
      const finishReason = this.#dialect === 7 ? 'interrupted' : 'other'
      const errorText = this.#errorText({ code: 'interrupted', message: '' })
      return [
        { type: 'finish', finishReason },
        { type: 'error', errorText },
      ]
    }
    // Clients stop at `error`: what comes before it stays.
    if (ending.kind === 'failed')
      return [
        { type: 'finish', finishReason: 'error' },
        { type: 'error', errorText: ending.errorText },
      ]
    if (ending.kind === 'cancelled')
      return [
        { type: 'abort', ...(this.#dialect > 5 && { reason: 'cancelled' }) },
        { type: 'finish', finishReason: 'other' },
      ]
    return [{ type: 'finish', finishReason: ending.kind === 'paused' ? 'tool-calls' : this.#finishReason }]
  }

  #ofChild(event: AnyRunEvent): readonly UiChunk[] {
    if (this.#options.children === 'none') return []
    const child = this.#messages?.next(event, this.#runId) ?? null
    const message = child === null ? [] : this.#calls.preliminary(child.callId, child.message)
    // Runs below a child run are in the stream of that run.
    return event.parentRunId === this.#runId ? [...this.#children.next(event), ...message] : message
  }

  #own(event: AnyRunEvent): readonly UiChunk[] {
    const chunks = this.#chunksOf(this.#turn.next(event))
    const handle = this.#handlers[event.kind] as ((event: AnyRunEvent) => readonly UiChunk[]) | undefined
    if (this.#turn.isOpen && event.durable && event.kind !== 'model_request_started') {
      this.#held.push(...(handle?.(event) ?? []))
      return [...chunks, ...this.#noticeOf(event)]
    }
    return [...chunks, ...this.#release(), ...(handle?.(event) ?? this.#noticeOf(event))]
  }

  #release(): readonly UiChunk[] {
    const held = this.#held
    this.#held = []
    return held
  }

  #noticeOf(event: AnyRunEvent): readonly UiChunk[] {
    if (!DIAGNOSTICS.has(event.kind) || this.#options.diagnostics !== true) return []
    const { runId: _runId, seq: _seq, durable: _durable, ...data } = event
    return [{ type: 'data-notice', data, transient: true }]
  }

  readonly #handlers: { readonly [Kind in AnyRunEvent['kind']]?: (event: AnyEventOf<Kind>) => readonly UiChunk[] } = {
    run_started: (event) => this.#runStarted(event),
    model_request_started: (event) => this.#requestStarted(event),
    model_message: ({ entry, resolution }) => {
      this.#finishReason = uiFinishReason(entry.finishReason)
      this.#answer =
        resolution.kind === 'final' && resolution.output !== undefined ? { value: resolution.output } : null
      const hasCalls = entry.parts.some((part) => part.type === 'tool_call')
      return hasCalls && resolution.kind === 'continue' ? [] : this.#finishStep()
    },
    call_prepared: ({ callId, arguments: changed }) => {
      const call = this.#calls.get(callId)
      if (call === undefined || changed === undefined) return []
      call.arguments = changed
      return call.sentArguments === null ? [] : this.#calls.input(call)
    },
    tool_call_started: (event) => {
      const call = this.#callOf(event, event.arguments)
      return call === null ? [] : this.#calls.input(call)
    },
    tool_progress: ({ callId, update }) => [{ type: 'data-progress', id: callId, data: update, transient: true }],
    tool_call_completed: (event) => this.#completed(event),
    tool_call_interrupted: ({ callId, settledBy }) => [{ type: 'data-interrupted', id: callId, data: { settledBy } }],
    output_delta: ({ output }) => [{ ...this.#output(output, false), transient: true }],
    approval_requested: ({ items }) => items.flatMap((item) => this.#asked(item)),
    answer_received: ({ callId, answer }) => {
      const item = this.#pending.find((each) => each.callId === callId)
      this.#pending = this.#pending.filter((each) => each !== item)
      if (item !== undefined && item.kind !== 'approval') return [questionPart(item, { answered: true })]
      const call = this.#calls.get(callId)
      return call === undefined ? [] : this.#calls.answer(call, answer)
    },
    background_reported: ({ childRunId, callId, agent, ok }) => [
      ...this.#calls.settleChildren(callId),
      { type: 'data-background', id: childRunId, data: { agent, ok, done: true } },
    ],
    approval_resumed: () => this.#pendingPart([]),
    run_completed: (event) => this.#runCompleted(event),
    run_failed: (event) => this.#runFailed(event),
  }

  #runStarted(event: AnyEventOf<'run_started'>): readonly UiChunk[] {
    this.#ending = null
    this.#answersByTool = event.rules.answersByTool
    if (this.#isStarted || (event.begun !== 'fresh' && event.begun !== 'forked')) return []
    const { runId, at: startedAt, provider, model } = event
    const { threadId, usage } = this.#options
    const messageMetadata = {
      runId,
      ...(threadId !== undefined && { threadId }),
      ...(usage === true && { model: `${provider}:${model}` }),
      startedAt,
    }
    return [{ type: 'start', messageId: runId, messageMetadata }]
  }

  #requestStarted({ entries, runId, seq }: AnyEventOf<'model_request_started'>): readonly UiChunk[] {
    const closed = this.#finishStep()
    this.#step.begin()
    this.#calls.beginStep()
    const said = entries.flatMap((entry): UiChunk[] => {
      if (entry.role !== 'user' || entry.notice === true || entry.source !== undefined) return []
      const [id, parts] = [`${runId}.${entry.id}`, inputParts(entry.content, { runId, seq }, this.#options)]
      return [
        this.#dialect === 7 ? { type: 'steering-message', id, parts } : { type: 'data-steering', id, data: { parts } },
      ]
    })
    return [...closed, ...said, { type: 'start-step' }]
  }

  #runCompleted({ pending, usage, stopReason, at }: AnyEventOf<'run_completed'>): readonly UiChunk[] {
    if (pending.length > 0) {
      this.#ending = { kind: 'paused' }
      this.#pending = this.#pending.filter(({ callId }) => pending.includes(callId))
      return [...this.#pendingPart(this.#pending), ...this.#calls.pause()]
    }
    this.#ending = { kind: 'completed' }
    const output = this.#answer === null ? [] : [this.#output(this.#answer.value, true)]
    const messageMetadata = { ...this.#usage(usage), stopReason, endedAt: at }
    return [...this.#left(), ...output, { type: 'message-metadata', messageMetadata }]
  }

  #runFailed(event: AnyEventOf<'run_failed'>): readonly UiChunk[] {
    const { runId, code, stopReason, retryable, usage, at, durable } = event
    const isCancelled = stopReason === 'cancelled'
    this.#ending = isCancelled ? { kind: 'cancelled' } : { kind: 'failed', errorText: this.#errorText(event) }
    // An end that is not stored is none for those who read the log: the message stays as it is.
    if (!durable) return []
    const messageMetadata = { ...this.#usage(usage), stopReason, endedAt: at }
    const data = { code, stopReason, retryable: retryable === true }
    const error: UiChunk = { type: 'data-error', id: `${runId}.error`, data }
    return [...this.#left(), ...(isCancelled ? [] : [error]), { type: 'message-metadata', messageMetadata }]
  }

  #usage(usage: RunUsage): object {
    return this.#options.usage === true ? { usage, costUsd: usage.costUsd } : {}
  }

  /** What a run leaves open at its end: nothing waits any more. */
  #left(): readonly UiChunk[] {
    this.#pending = []
    return [...this.#calls.settleAll('The run ended before this call.'), ...this.#pendingPart([])]
  }

  #completed(event: AnyEventOf<'tool_call_completed'>): readonly UiChunk[] {
    const call = this.#callOf(event, '{}')
    if (call === null) return []
    const { ok, output, value, callId, runId, seq, parts = [], background = [] } = event
    const text = contentOfEnvelope(output)
    const shown = this.#options.envelopes === true ? parseInput(shownEnvelope(output)) : (value ?? text)
    const settled = this.#calls.settle(call, { ok, output: shown, text })
    const files = fileChunks(parts, { runId, seq, callId }, this.#options)
    const begun =
      this.#options.children === 'none'
        ? []
        : background.flatMap(({ childRunId, agent }) => this.#children.begin({ runId: childRunId, agent, callId }))
    const children = background.length > 0 ? [] : this.#calls.settleChildren(callId)
    const isLast = this.#calls.step.every(({ isSettled }) => isSettled)
    return [...children, ...settled, ...files, ...begun, ...(isLast ? this.#finishStep() : [])]
  }

  /** The call of an event; null for the answer that is given by a call. */
  #callOf({ callId, toolName }: { readonly callId: string; readonly toolName: string }, text: string): SentCall | null {
    if (toolName === FINAL_RESULT && this.#answersByTool) return null
    return this.#calls.add(callId, { toolName, title: this.#options.titles?.[toolName], arguments: text })
  }

  #asked(item: PendingItem): readonly UiChunk[] {
    this.#pending = [...this.#pending.filter(({ callId }) => callId !== item.callId), item]
    if (item.kind !== 'approval') return [questionPart(item, { answered: false })]
    const isOfChild = item.path.length > 1
    const title = isOfChild ? this.#children.agentOf(item.path[1]) : this.#options.titles?.[item.toolName]
    return this.#calls.ask(item, title)
  }

  #chunksOf(changes: readonly ReplyChange[]): readonly UiChunk[] {
    return changes.flatMap((change) => this.#chunksOfChange(change))
  }

  #chunksOfChange(change: ReplyChange): readonly UiChunk[] {
    switch (change.kind) {
      case 'text':
      case 'reasoning': {
        const { kind, part: id, text: delta, isFirst } = change
        const piece: UiChunk = { type: `${kind}-delta`, id, delta }
        return isFirst ? [{ type: `${kind}-start`, id }, piece] : [piece]
      }
      case 'ended':
        return [{ type: `${change.of}-end`, id: change.part }]
      case 'input': {
        const { callId: toolCallId, toolName, text: inputTextDelta, isFirst } = change
        const piece: UiChunk = { type: 'tool-input-delta', toolCallId, inputTextDelta }
        if (!isFirst) return [piece]
        const named = this.#calls.named({ toolCallId, toolName, title: this.#options.titles?.[toolName] })
        return [{ type: 'tool-input-start', ...named }, ...(inputTextDelta === '' ? [] : [piece])]
      }
      case 'call': {
        const call = this.#callOf(change, change.arguments)
        return call === null || hasWholeInputs(this.#options) ? [] : this.#calls.input(call)
      }
      case 'cut_off': {
        const call = this.#calls.get(change.callId)
        const isShown = call !== undefined && !call.isSettled && call.sentArguments !== null
        return isShown ? this.#calls.settle(call, { ok: false, output: null, text: change.text }) : []
      }
      case 'cited':
      case 'hosted':
      case 'image':
        return hostedChunks(change)
      case 'withdrawn':
        this.#calls.forget(change.callIds)
        if (this.#dialect === 7) return [{ type: 'reset-step' }, ...this.#step.kept]
        return change.parts.length === 0 ? [] : [{ type: 'data-superseded', data: { parts: change.parts } }]
    }
  }

  #finishStep(): readonly UiChunk[] {
    if (!this.#step.isOpen) return []
    this.#step.isOpen = false
    return [{ type: 'finish-step' }]
  }

  /** What waits; that nothing does any more, once. */
  #pendingPart(items: readonly PendingItem[]): readonly UiChunk[] {
    if (items.length === 0 && !this.#hasPendingPart) return []
    this.#hasPendingPart = items.length > 0
    return [{ type: 'data-pending', id: `${this.#runId}.pending`, data: { items } }]
  }

  #output(value: unknown, done: boolean): UiChunk & { readonly type: 'data-output' } {
    return { type: 'data-output', id: `${this.#runId}.output`, data: { value, done } }
  }

  #errorText(error: { readonly code: string; readonly message: string }): string {
    return atOnce('`errorText`', (this.#options.errorText ?? errorSentence)(error))
  }
}

/** The chunks of the present step of a message that hold if the reply of the step is taken back: they are sent again. */
class UiStep {
  readonly #kept = new Map<string, UiChunk>()
  isOpen = false

  begin(): void {
    this.isOpen = true
    this.#kept.clear()
  }

  /** Keeps a part that is not of the reply: data of child runs and of questions. */
  keep(chunk: UiChunk): void {
    if (!('data' in chunk) || chunk.id === undefined || chunk.transient === true) return
    if (chunk.type !== 'data-output') this.#kept.set(`${chunk.type} ${chunk.id}`, chunk)
  }

  /** What holds of the step, to be sent again. */
  get kept(): readonly UiChunk[] {
    return [...this.#kept.values()]
  }
}

export interface UiMessagesOptions extends Omit<UiStreamOptions, 'after' | 'deltas'> {
  /**
   * The ids of the messages with which a run began. Default: `metadata.message_id` of the run, else `<run id>.prompt`.
   */
  readonly messageIds?: ((runId: string) => readonly string[]) | undefined
}

/**
 * The messages of a conversation, as `useChat` has them after reading all of its streams: of each run the prompt, and one message
 * of the assistant with everything since. `events`: those of one run, or of several in order, with those of their child runs.
 *
 * @example
 * const messages = toUIMessages(await Array.fromAsync(log.read({ kind: 'run', id: runId })))
 */
export function toUIMessages(events: Iterable<AnyRunEvent>, options: UiMessagesOptions = {}): readonly UiMessage[] {
  return splitRuns(events).flatMap((run) => messagesOfRun(run, options))
}

function messagesOfRun(events: readonly AnyRunEvent[], options: UiMessagesOptions): readonly UiMessage[] {
  const projection = messageProjection(options)
  const fold = new UiMessageFold(options.dialect ?? 7)
  for (const event of events) for (const chunk of projection.next(event)) fold.add(chunk)
  for (const chunk of projection.end()) fold.add(chunk)
  const prompt = promptMessage(events[0], options)
  return [prompt, fold.message].filter((message) => message !== null)
}

/** The message with which a run began; null for one that continues a stored state. */
function promptMessage(first: AnyRunEvent | undefined, options: UiMessagesOptions): UiMessage | null {
  if (first?.kind !== 'run_started' || first.prompt === null) return null
  const { prompt, runId, seq, metadata } = first
  const given = options.messageIds?.(runId)[0] ?? metadata['message_id']
  const id = typeof given === 'string' ? given : `${runId}.prompt`
  return { id, role: 'user', parts: inputParts(contentOf(prompt), { runId, seq }, options) }
}

/**
 * The events of a run as a UI message stream, for `createUIMessageStreamResponse` or `readUIMessageStream` of the AI SDK. A source
 * that fails without an end of its run fails the stream.
 *
 * @example
 * return createUIMessageStreamResponse({ stream: toUIMessageStream(harness.stream(prompt), { dialect: 7 }) })
 */
export function toUIMessageStream(
  events: AsyncIterable<AnyRunEvent> | Iterable<AnyRunEvent>,
  options: UiStreamOptions = {},
): ReadableStream<UiChunk> {
  return toReadable(project(untilEnd(events), uiMessageProjection(options)))
}

type Place = Pick<LinkedContent, 'runId' | 'seq'>
type ContentOptions = Pick<ProjectionOptions, 'maxInlineBytes' | 'contentUrl'>

/** A person's message as parts of a UI message. Content that is too large and has no link is left out. */
function inputParts(content: readonly ContentPart[], place: Place, options: ContentOptions): readonly UiInputPart[] {
  return content.flatMap((part, index): UiInputPart[] => {
    if (part.type === 'text') return [{ type: 'text', text: part.text }]
    const file = shownContent(part, { ...place, index }, options)
    if (file?.url === undefined) return []
    const { url, mediaType, name } = file
    return [{ type: 'file', url, mediaType, ...(name !== undefined && { filename: name }) }]
  })
}

/** Images and files of a result. What is too large and has no link is a `data-file` with its type and size. */
function fileChunks(
  parts: readonly ContentPart[],
  place: Place & { readonly callId: string },
  options: ContentOptions,
): readonly UiChunk[] {
  const { callId, ...event } = place
  return parts.flatMap((part, index): UiChunk[] => {
    const content = shownContent(part, { ...event, index }, options)
    if (content === null) return []
    const { url, mediaType } = content
    if (url === undefined) return [{ type: 'data-file', id: `${callId}.${index}`, data: { callId, ...content } }]
    return [{ type: 'file', url, mediaType }]
  })
}

/** A question to a person, or a call with an unknown outcome. */
function questionPart(item: PendingItem, { answered }: { readonly answered: boolean }): UiChunk {
  const { kind, callId, toolName, arguments: text, payload, answerSchema, path } = item
  const data = {
    kind,
    toolName,
    arguments: parseInput(text) ?? text,
    path,
    ...(payload !== undefined && { payload }),
    ...(answerSchema !== undefined && { answerSchema }),
    ...(answered && { answered }),
  }
  return { type: 'data-question', id: callId, data }
}

function uiFinishReason(reason: string): UiFinishReason {
  if (reason === 'length') return 'length'
  return reason === 'refusal' || reason === 'content_filter' ? 'content-filter' : 'stop'
}
