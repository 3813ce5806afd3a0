import type { ContentPart, PendingItem } from '../../index.js'
import { FINAL_RESULT } from '../../output/format.js'
import { shownContent } from '../content.js'
import { DIAGNOSTICS } from '../projection.js'
import type { AnyRunEvent, Projection, ProjectionOptions } from '../projection.js'
import { sentenceOf } from '../sentences.js'
import { TurnReader } from '../turn.js'
import type { Told } from '../turn.js'
import { contentOfEnvelope, parsed, ToldCalls } from './calls.js'
import { ChildStatus } from './children.js'
import type { ToldCall } from './calls.js'
import type { Dialect, FinishReason, UiChunk, UiInputPart } from './chunk.js'
import { Step } from './step.js'

export interface UiStreamOptions extends ProjectionOptions {
  /** The version of the AI SDK on the page. Default 7. */
  readonly dialect?: Dialect | undefined
  /** In the metadata of the message. */
  readonly threadId?: string | undefined
  /** Arguments of calls as they arrive, or when the call starts. Default: `stream` for dialect 7, `whole` for 5 and 6. */
  readonly toolInputs?: 'stream' | 'whole' | undefined
  /** Tools that the page knows by name: their parts are `tool-<name>`, others are `dynamic-tool`. Default: none. */
  readonly staticTools?: readonly string[] | undefined
  /** Titles of tools by name. */
  readonly titles?: Readonly<Record<string, string>> | undefined
  /** Results as whole envelopes. Default false: their content. */
  readonly envelopes?: boolean | undefined
  /** The text of a structured answer as text too. Default false: as `data-output` alone. */
  readonly outputText?: boolean | undefined
  /** Child runs as a data part with their status, or not at all. Default `status`. */
  readonly children?: 'status' | 'none' | undefined
}

/** The chunks of an AI SDK UI message stream: one assistant message for a run, with all its stretches. */
export function uiMessageProjection(options: UiStreamOptions = {}): Projection<UiChunk> {
  return new UiMessageProjection(options)
}

type EventOf<Kind extends AnyRunEvent['kind']> = Extract<AnyRunEvent, { readonly kind: Kind }>
type Ending =
  { readonly kind: 'paused' | 'completed' | 'cancelled' } | { readonly kind: 'failed'; readonly errorText: string }

class UiMessageProjection implements Projection<UiChunk> {
  readonly #options: UiStreamOptions
  readonly #dialect: Dialect
  readonly #turn: TurnReader
  readonly #calls: ToldCalls
  readonly #children = new ChildStatus()
  readonly #step = new Step()
  readonly #after: number
  #runId = ''
  #seq = 0
  #isStarted = false
  #answersByTool = false
  /** The structured answer. */
  #answer: { readonly value: unknown } | null = null
  /** The log has no version: its first request repeats the prompt. */
  #repeatsPrompt = false
  #finishReason: FinishReason = 'stop'
  #ending: Ending | null = null
  /** Approvals and questions that wait, in the order in which they were asked. */
  #pending: PendingItem[] = []

  constructor(options: UiStreamOptions) {
    const { dialect = 7, toolInputs = dialect === 7 ? 'stream' : 'whole', deltas, reasoning, outputText } = options
    this.#options = options
    this.#dialect = dialect
    this.#after = options.after ?? 0
    this.#turn = new TurnReader({
      ...{ live: deltas !== 'settled', inputs: toolInputs === 'stream' },
      ...{ reasoning: reasoning !== false, outputText: outputText === true },
    })
    this.#calls = new ToldCalls({ dialect, staticTools: new Set(options.staticTools) })
  }

  next(event: AnyRunEvent): readonly UiChunk[] {
    if (this.#runId === '') this.#runId = event.runId
    const isOwn = event.runId === this.#runId
    if (isOwn && event.durable) this.#seq = event.seq
    const chunks = isOwn ? this.#own(event) : this.#options.children === 'none' ? [] : this.#children.next(event)
    for (const chunk of chunks) this.#step.keep(chunk)
    if (chunks.length === 0 || this.#seq <= this.#after) return []
    if (this.#isStarted || chunks[0]?.type === 'start') {
      this.#isStarted = true
      return chunks
    }
    this.#isStarted = true
    return [{ type: 'start', messageId: this.#runId }, ...chunks]
  }

  end(): readonly UiChunk[] {
    const start: UiChunk[] = this.#isStarted || this.#runId === '' ? [] : [{ type: 'start', messageId: this.#runId }]
    this.#isStarted = true
    return [...start, ...this.#chunksOf(this.#turn.close()), ...this.#finishStep(), ...this.#ended()]
  }

  join(earlier: UiChunk, later: UiChunk): UiChunk | null {
    if (!('delta' in earlier) || !('delta' in later)) return null
    if (earlier.type !== later.type || earlier.id !== later.id) return null
    return { ...later, delta: earlier.delta + later.delta }
  }

  #ended(): readonly UiChunk[] {
    const ending = this.#ending
    if (ending === null) {
      const finishReason = this.#dialect === 7 ? 'interrupted' : 'other'
      return [
        { type: 'finish', finishReason },
        { type: 'error', errorText: this.#errorText({ code: 'interrupted', message: '' }) },
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

  #own(event: AnyRunEvent): readonly UiChunk[] {
    const handle = this.#handlers[event.kind] as ((event: AnyRunEvent) => readonly UiChunk[]) | undefined
    const told = this.#chunksOf(this.#turn.next(event))
    if (handle !== undefined) return [...told, ...handle(event)]
    if (!DIAGNOSTICS.has(event.kind) || this.#options.diagnostics !== true) return told
    const { runId: _runId, seq: _seq, durable: _durable, ...data } = event
    return [...told, { type: 'data-notice', data, transient: true }]
  }

  readonly #handlers: { readonly [Kind in AnyRunEvent['kind']]?: (event: EventOf<Kind>) => readonly UiChunk[] } = {
    run_started: (event) => {
      this.#ending = null
      this.#answersByTool = event.rules.answersByTool
      this.#repeatsPrompt = (event.version as number | undefined) === undefined
      if (this.#isStarted || (event.begun !== 'fresh' && event.begun !== 'forked')) return []
      const { threadId } = this.#options
      const model = `${event.provider}:${event.model}`
      const messageMetadata = {
        runId: event.runId,
        ...(threadId !== undefined && { threadId }),
        model,
        startedAt: event.at,
      }
      return [{ type: 'start', messageId: event.runId, messageMetadata }]
    },
    model_request_started: ({ entries, requestKind, runId }) => {
      const closed = this.#finishStep()
      this.#step.begin()
      const isPrompt = this.#repeatsPrompt && requestKind === 'start'
      const said = entries.flatMap((entry, index): UiChunk[] => {
        if (entry.role !== 'user' || entry.notice === true || entry.source !== undefined || (isPrompt && index === 0))
          return []
        const [id, parts] = [`${runId}.${entry.id}`, this.#inputParts(entry.content)]
        return [
          this.#dialect === 7
            ? { type: 'steering-message', id, parts }
            : { type: 'data-steering', id, data: { parts } },
        ]
      })
      return [...closed, ...said, { type: 'start-step' }]
    },
    model_message: ({ entry, resolution }) => {
      this.#finishReason = finishReasonOf(entry.finishReason)
      this.#answer =
        resolution.kind === 'final' && resolution.output !== undefined ? { value: resolution.output } : null
      const hasCalls = this.#calls.batch.some(({ isSettled }) => !isSettled)
      return hasCalls && resolution.kind === 'continue' ? [] : this.#finishStep()
    },
    call_prepared: ({ callId, arguments: changed }) => {
      const call = this.#calls.get(callId)
      if (call === undefined || changed === undefined) return []
      call.arguments = changed
      return call.told === null ? [] : this.#calls.input(call)
    },
    tool_call_started: (event) => {
      const call = this.#callOf(event, event.arguments)
      return call === null ? [] : this.#calls.input(call)
    },
    tool_progress: ({ callId, update }) => [{ type: 'data-progress', id: callId, data: update, transient: true }],
    tool_call_completed: (event) => this.#completed(event),
    tool_call_interrupted: ({ callId, settledBy }) => [{ type: 'data-interrupted', id: callId, data: { settledBy } }],
    output_delta: ({ output }) => [this.#output(output, false)],
    approval_requested: ({ items }) => items.flatMap((item) => this.#asked(item)),
    answer_received: ({ callId, answer }) => {
      const item = this.#pending.find((each) => each.callId === callId)
      this.#pending = this.#pending.filter((each) => each !== item)
      if (item !== undefined && item.kind !== 'approval') return [question(item, true)]
      const call = this.#calls.get(callId)
      return call === undefined ? [] : this.#calls.answer(call, answer)
    },
    background_reported: ({ childRunId, agent, ok }) => [
      { type: 'data-background', id: childRunId, data: { agent, ok, done: true } },
    ],
    approval_resumed: () => [this.#pendingPart([])],
    run_completed: (event) => this.#runCompleted(event),
    run_failed: (event) => {
      const closed = this.#chunksOf(this.#turn.close())
      this.#pending = []
      if (event.stopReason === 'cancelled') {
        this.#ending = { kind: 'cancelled' }
        return closed
      }
      const errorText = this.#errorText(event)
      this.#ending = { kind: 'failed', errorText }
      const data = { code: event.code, stopReason: event.stopReason, retryable: event.retryable === true }
      return [...closed, { type: 'data-error', id: `${event.runId}.error`, data }]
    },
  }

  #runCompleted({ pending, usage, stopReason, at }: EventOf<'run_completed'>): readonly UiChunk[] {
    if (pending.length > 0) {
      this.#ending = { kind: 'paused' }
      const waiting = this.#pending.filter(({ callId }) => pending.includes(callId))
      return [this.#pendingPart(waiting), ...this.#calls.answerOthers()]
    }
    this.#ending = { kind: 'completed' }
    const output = this.#answer === null ? [] : [this.#output(this.#answer.value, true)]
    return [
      ...output,
      { type: 'message-metadata', messageMetadata: { usage, costUsd: usage.costUsd, stopReason, endedAt: at } },
    ]
  }

  #completed(event: EventOf<'tool_call_completed'>): readonly UiChunk[] {
    const call = this.#callOf(event, '{}')
    if (call === null) return []
    const { ok, output, value, callId, runId, seq, parts = [] } = event
    const text = contentOfEnvelope(output)
    const shown = this.#options.envelopes === true ? parsed(output) : (value ?? text)
    const files = parts.flatMap((part, index): UiChunk[] => {
      const content = shownContent(part, { runId, seq, index }, this.#options)
      if (content?.url === undefined) return []
      return [{ type: 'file', url: content.url, mediaType: content.mediaType }]
    })
    const settled = this.#calls.settle(call, { ok, output: shown, text })
    const children = this.#calls.settleChildren(callId)
    const isLast = this.#calls.batch.every(({ isSettled }) => isSettled)
    return [...children, ...settled, ...files, ...(isLast ? this.#finishStep() : [])]
  }

  /** The call of an event; null for the answer that is given by a call. */
  #callOf({ callId, toolName }: { readonly callId: string; readonly toolName: string }, text: string): ToldCall | null {
    if (toolName === FINAL_RESULT && this.#answersByTool) return null
    return this.#calls.add(callId, { toolName, title: this.#options.titles?.[toolName], arguments: text })
  }

  #asked(item: PendingItem): readonly UiChunk[] {
    this.#pending.push(item)
    if (item.kind !== 'approval') return [question(item, false)]
    const isOfChild = item.path.length > 1
    const title = isOfChild ? this.#children.agentOf(item.path.at(-1)) : this.#options.titles?.[item.toolName]
    return this.#calls.ask(item, title)
  }

  #chunksOf(told: readonly Told[]): readonly UiChunk[] {
    return told.flatMap((each) => this.#chunksOfTold(each))
  }

  #chunksOfTold(told: Told): readonly UiChunk[] {
    switch (told.kind) {
      case 'text':
      case 'reasoning': {
        const { kind, part: id, text: delta, isFirst } = told
        const piece: UiChunk = { type: `${kind}-delta`, id, delta }
        return isFirst ? [{ type: `${kind}-start`, id }, piece] : [piece]
      }
      case 'ended':
        return [{ type: `${told.of}-end`, id: told.part }]
      case 'input': {
        const { callId: toolCallId, toolName, text: inputTextDelta, isFirst } = told
        const piece: UiChunk = { type: 'tool-input-delta', toolCallId, inputTextDelta }
        if (!isFirst) return [piece]
        const named = this.#calls.named({ toolCallId, toolName, title: this.#options.titles?.[toolName] })
        return [{ type: 'tool-input-start', ...named }, ...(inputTextDelta === '' ? [] : [piece])]
      }
      case 'call': {
        const call = this.#callOf(told, told.arguments)
        const isWhole = (this.#options.toolInputs ?? (this.#dialect === 7 ? 'stream' : 'whole')) === 'whole'
        return call === null || isWhole ? [] : this.#calls.input(call)
      }
      case 'withdrawn':
        this.#calls.forget(told.callIds)
        if (this.#dialect === 7) return [{ type: 'reset-step' }, ...this.#step.kept]
        return told.parts.length === 0 ? [] : [{ type: 'data-superseded', data: { parts: told.parts } }]
    }
  }

  #finishStep(): readonly UiChunk[] {
    if (!this.#step.isOpen) return []
    this.#step.isOpen = false
    return [{ type: 'finish-step' }]
  }

  #pendingPart(items: readonly PendingItem[]): UiChunk {
    return { type: 'data-pending', id: `${this.#runId}.pending`, data: { items } }
  }

  #output(value: unknown, done: boolean): UiChunk {
    return { type: 'data-output', id: `${this.#runId}.output`, data: { value, done } }
  }

  #inputParts(content: readonly ContentPart[]): readonly UiInputPart[] {
    return inputParts(content, (part, index) =>
      shownContent(part, { runId: this.#runId, seq: this.#seq, index }, this.#options),
    )
  }

  #errorText(error: { readonly code: string; readonly message: string }): string {
    return (this.#options.errorText ?? sentenceOf)(error)
  }
}

/** A person's message as parts of a UI message. Content that is too large and has no link is left out. */
export function inputParts(
  content: readonly ContentPart[],
  shown: (part: ContentPart, index: number) => ReturnType<typeof shownContent>,
): readonly UiInputPart[] {
  return content.flatMap((part, index): UiInputPart[] => {
    if (part.type === 'text') return [{ type: 'text', text: part.text }]
    const file = shown(part, index)
    if (file?.url === undefined) return []
    const { url, mediaType, name } = file
    return [{ type: 'file', url, mediaType, ...(name !== undefined && { filename: name }) }]
  })
}

function question(item: PendingItem, answered: boolean): UiChunk {
  const { kind, callId, toolName, arguments: text, payload, answerSchema, path } = item
  const data = {
    kind,
    toolName,
    arguments: parsed(text) ?? text,
    payload,
    answerSchema,
    path,
    ...(answered && { answered }),
  }
  return { type: 'data-question', id: callId, data }
}

function finishReasonOf(reason: string): FinishReason {
  if (reason === 'length') return 'length'
  return reason === 'refusal' || reason === 'content_filter' ? 'content-filter' : 'stop'
}
