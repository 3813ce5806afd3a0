import type { AnyRunEvent } from '../projection.js'
import { TurnReader } from '../turn-reader.js'
import type { CutOffCall, ReplyChange } from '../turn-reader.js'
import type { AgUiEvent } from './event.js'
import type { Arriving, Ids, Sink } from './sink.js'

/** How the items of a run are named. */
export interface RunNames {
  readonly runId: string
  /** `subagentRunId` of a child run. */
  readonly owner: { readonly subagentRunId?: string }
  readonly callId: (callId: string) => string
}

/** The replies of one run: one message of the assistant for each, and one for each span of reasoning. */
export class ReplyEvents {
  readonly #sink: Sink
  readonly #names: RunNames
  readonly #turn: TurnReader
  /** Ids of the message and of the span that are open. */
  #text: string | null = null
  #reasoning: string | null = null
  /** How much of the arguments of open calls was sent, by call id. */
  readonly #calls = new Map<string, number>()
  /** What was sent of the reply that is arriving. */
  #open: AgUiEvent[] = []

  constructor(sink: Sink, names: RunNames, options: { readonly live: boolean; readonly reasoning: boolean }) {
    this.#sink = sink
    this.#names = names
    this.#turn = new TurnReader({ ...options, inputs: true, outputText: false })
    sink.addReply(this)
  }

  /** Gives the calls that the run has ended without. */
  next(event: AnyRunEvent): readonly CutOffCall[] {
    const changes = this.#turn.next(event)
    for (const change of changes) this.#apply(change)
    if (event.kind === 'model_message') {
      this.#endText()
      this.#open = []
    }
    return changes.filter((change) => change.kind === 'cut_off')
  }

  /** The reply that is arriving will not be completed. */
  close(): void {
    for (const change of this.#turn.close()) this.#apply(change)
    this.#endText()
    this.#open = []
  }

  /** Takes what was sent of the reply that is arriving out of `sink`, and gives its events. */
  takeOpen(): readonly AgUiEvent[] {
    this.#sink.withdraw(eventIds(this.#open))
    return this.#open
  }

  /** Ends what is open, for a snapshot without the reply that is arriving. Its events open it again. */
  interrupt(): Arriving | null {
    if (this.#open.length === 0) return null
    const { owner, callId: named } = this.#names
    if (this.#reasoning !== null) this.#sink.send(...reasoningEnds(this.#reasoning, owner))
    if (this.#text !== null) this.#sink.send({ type: 'TEXT_MESSAGE_END', messageId: this.#text, ...owner })
    for (const callId of this.#calls.keys())
      this.#sink.send({ type: 'TOOL_CALL_END', toolCallId: named(callId), ...owner })
    return { events: this.#open, ...eventIds(this.#open) }
  }

  get #messageId(): string {
    return `${this.#names.runId}:${this.#turn.turn}`
  }

  #apply(change: ReplyChange): void {
    switch (change.kind) {
      case 'text':
        return this.#extendText(change.text)
      case 'reasoning':
        return this.#extendReasoning(change.part, change.text, change.isFirst)
      case 'ended':
        return change.of === 'reasoning' ? this.#endReasoning() : undefined
      case 'input':
        return this.#extendCall(change.callId, change.toolName, change.text)
      case 'call':
        this.#extendCall(change.callId, change.toolName, change.arguments.slice(this.#calls.get(change.callId) ?? 0))
        return this.#endCall(change.callId)
      case 'withdrawn':
        return this.#withdraw(change.parts, change.callIds)
      case 'cited':
        return this.#custom('sources', { messageId: this.#messageId, sources: change.citations })
      case 'hosted':
        return this.#custom('hosted_call', change.hosted)
      case 'image':
        return this.#custom('image', change.image)
      case 'cut_off':
        return
    }
  }

  /** What the protocol has no event for. */
  #custom(name: string, value: unknown): void {
    this.#sink.send({ type: 'CUSTOM', name: `thinharness.${name}`, value, ...this.#names.owner })
  }

  #extendText(delta: string): void {
    if (this.#text === null) {
      this.#text = this.#messageId
      this.#add({ type: 'TEXT_MESSAGE_START', messageId: this.#text, role: 'assistant', ...this.#names.owner })
    }
    this.#add({ type: 'TEXT_MESSAGE_CONTENT', messageId: this.#text, delta, ...this.#names.owner })
  }

  #endText(): void {
    if (this.#text === null) return
    this.#add({ type: 'TEXT_MESSAGE_END', messageId: this.#text, ...this.#names.owner })
    this.#text = null
  }

  #extendReasoning(part: string, delta: string, isFirst: boolean): void {
    const { owner } = this.#names
    const messageId = this.#reasoningId(part)
    if (isFirst) {
      this.#reasoning = messageId
      this.#add({ type: 'REASONING_START', messageId, ...owner })
      this.#add({ type: 'REASONING_MESSAGE_START', messageId, role: 'reasoning', ...owner })
    }
    this.#add({ type: 'REASONING_MESSAGE_CONTENT', messageId, delta, ...owner })
  }

  #endReasoning(): void {
    if (this.#reasoning === null) return
    for (const event of reasoningEnds(this.#reasoning, this.#names.owner)) this.#add(event)
    this.#reasoning = null
  }

  #extendCall(callId: string, toolCallName: string, delta: string): void {
    const { owner, callId: named } = this.#names
    const toolCallId = named(callId)
    const sent = this.#calls.get(callId)
    if (sent === undefined)
      this.#add({ type: 'TOOL_CALL_START', toolCallId, toolCallName, parentMessageId: this.#messageId, ...owner })
    if (delta !== '') this.#add({ type: 'TOOL_CALL_ARGS', toolCallId, delta, ...owner })
    this.#calls.set(callId, (sent ?? 0) + delta.length)
  }

  #endCall(callId: string): void {
    this.#add({ type: 'TOOL_CALL_END', toolCallId: this.#names.callId(callId), ...this.#names.owner })
    this.#calls.delete(callId)
  }

  #withdraw(parts: readonly string[], callIds: readonly string[]): void {
    this.#endReasoning()
    this.#endText()
    for (const callId of this.#calls.keys()) this.#endCall(callId)
    const ids = parts.map((part) => (part.includes('.r') ? this.#reasoningId(part) : this.#messageId))
    const parents = callIds.length > 0 ? [this.#messageId] : []
    this.#open = []
    this.#sink.withdraw({
      messageIds: [...ids, ...parents],
      callIds: callIds.map((callId) => this.#names.callId(callId)),
    })
  }

  #add(event: AgUiEvent): void {
    this.#open.push(event)
    this.#sink.send(event)
  }

  /** `<run>:<seq of the request>:r<n>` of a part `<seq>.r<n>`. */
  #reasoningId(part: string): string {
    return `${this.#names.runId}:${part.replace('.', ':')}`
  }
}

function reasoningEnds(messageId: string, owner: RunNames['owner']): readonly AgUiEvent[] {
  return [
    { type: 'REASONING_MESSAGE_END', messageId, ...owner },
    { type: 'REASONING_END', messageId, ...owner },
  ]
}

/** The messages of events, those of their calls included, and the calls. */
function eventIds(events: readonly AgUiEvent[]): Ids {
  const ids = events.flatMap((event) => ('messageId' in event ? [event.messageId] : []))
  const callIds = events.flatMap((event) => (event.type === 'TOOL_CALL_START' ? [event.toolCallId] : []))
  const parents = events.flatMap((event) => (event.type === 'TOOL_CALL_START' ? [event.parentMessageId] : []))
  return { messageIds: [...ids, ...parents], callIds }
}
