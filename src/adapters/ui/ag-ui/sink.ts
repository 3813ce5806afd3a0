import type { AgUiEvent, AgUiEventOf } from './event.js'
import type { AgUiMessage, AgUiToolCall } from './message.js'

/** Parts of messages, by their ids. */
export interface Ids {
  readonly messageIds: readonly string[]
  readonly callIds: readonly string[]
}

/** The part of a reply that has arrived. */
export interface Arriving extends Ids {
  readonly events: readonly AgUiEvent[]
}

interface Reply {
  /** Ends what the reader has open of the reply that is arriving; null if none is. */
  interrupt(): Arriving | null
}

/** Where the events of a stream go: to the reader, and into the messages that the reader has after them. */
export class Sink {
  readonly #messages: AgUiMessages
  readonly #replies: Reply[] = []
  #events: AgUiEvent[] = []
  /** False until the stream has begun: the reader gets no events, but the messages count. */
  isOpen = false

  constructor(history: readonly AgUiMessage[]) {
    this.#messages = new AgUiMessages(history)
  }

  get messages(): readonly AgUiMessage[] {
    return this.#messages.all
  }

  send(...events: readonly AgUiEvent[]): void {
    for (const event of events) {
      this.#messages.add(event)
      if (this.isOpen) this.#events.push(event)
    }
  }

  /** The arguments with which a call runs: others stand in the messages, where the reader can get them with a snapshot alone. */
  changeArguments(toolCallId: string, text: string): void {
    if (this.#messages.changeArguments(toolCallId, text)) this.withdraw()
  }

  /** A message that the reader has, or gets with the next snapshot. */
  addMessage(message: AgUiMessage): void {
    this.#messages.push(message)
  }

  /** The replies of one more run. */
  addReply(reply: Reply): void {
    this.#replies.push(reply)
  }

  /**
   * A snapshot in the middle of the stream, without reasoning, replies and calls that are taken back. Replies of other runs that are
   * arriving are not in it and are sent again: a client appends to the messages of a snapshot.
   */
  withdraw(taken: Ids = NOTHING): void {
    const arriving = this.isOpen ? this.#replies.flatMap((reply) => reply.interrupt() ?? []) : []
    const held = this.#messages.all
    const all = [taken, ...arriving]
    this.#messages.withdraw(
      new Set(all.flatMap(({ messageIds }) => messageIds)),
      new Set(all.flatMap(({ callIds }) => callIds)),
    )
    this.snapshot(held)
    for (const { events } of arriving) this.send(...events)
  }

  /** Makes the messages of a reader who has `held` equal to those here. Default: nothing has changed. */
  snapshot(held: readonly HeldMessage[] = this.#messages.all): void {
    this.send(...messageSnapshots(this.#messages.all, held))
  }

  /** The events since the last time. */
  take(): readonly AgUiEvent[] {
    const events = this.#events
    this.#events = []
    return events
  }
}

const NOTHING: Ids = { messageIds: [], callIds: [] }

/** A message that a client has. */
export interface HeldMessage {
  readonly id: string
  readonly role: string
}

/** The messages of a thread after some events, as the official client makes them. */
export class AgUiMessages {
  #messages: AgUiMessage[]

  constructor(history: readonly AgUiMessage[] = []) {
    this.#messages = [...history]
  }

  get all(): readonly AgUiMessage[] {
    return this.#messages
  }

  add(event: AgUiEvent): void {
    ;(this.#handlers[event.type] as ((event: AgUiEvent) => void) | undefined)?.(event)
  }

  push(message: AgUiMessage): void {
    this.#messages.push(message)
  }

  /** True if the call had other arguments. */
  changeArguments(toolCallId: string, text: string): boolean {
    const parent = this.#callerOf(toolCallId)
    if (parent?.role !== 'assistant') return false
    const isOther = ({ id, function: { arguments: before } }: AgUiToolCall): boolean =>
      id === toolCallId && before !== text
    if (parent.toolCalls?.some(isOther) !== true) return false
    const toolCalls = parent.toolCalls.map((call) =>
      isOther(call) ? { ...call, function: { ...call.function, arguments: text } } : call,
    )
    this.#replace(parent, { ...parent, toolCalls })
    return true
  }

  /** Without the reasoning with these ids, and without the text of these replies, and their calls with these ids. */
  withdraw(messageIds: ReadonlySet<string>, callIds: ReadonlySet<string>): void {
    this.#messages = this.#messages.flatMap((message): AgUiMessage[] => {
      if (!messageIds.has(message.id)) return [message]
      if (message.role !== 'assistant') return []
      const { content: _content, toolCalls, ...rest } = message
      const kept = toolCalls?.filter(({ id }) => !callIds.has(id)) ?? []
      return kept.length === 0 ? [] : [{ ...rest, toolCalls: kept }]
    })
  }

  readonly #handlers: { readonly [Type in AgUiEvent['type']]?: (event: AgUiEventOf<Type>) => void } = {
    TEXT_MESSAGE_START: ({ messageId: id, role, subagentRunId }) => {
      if (this.#find(id) === undefined) this.push({ id, role, content: '', ...ofSubagent(subagentRunId) })
    },
    TEXT_MESSAGE_CONTENT: ({ messageId, delta }) => this.#extend(messageId, delta),
    REASONING_MESSAGE_START: ({ messageId: id, subagentRunId }) =>
      this.push({ id, role: 'reasoning', content: '', ...ofSubagent(subagentRunId) }),
    REASONING_MESSAGE_CONTENT: ({ messageId, delta }) => this.#extend(messageId, delta),
    TOOL_CALL_START: ({ toolCallId, toolCallName, parentMessageId, subagentRunId }) => {
      const call: AgUiToolCall = {
        id: toolCallId,
        type: 'function',
        function: { name: toolCallName, arguments: '' },
      }
      const parent = this.#find(parentMessageId)
      if (parent?.role !== 'assistant')
        this.push({ id: parentMessageId, role: 'assistant', toolCalls: [call], ...ofSubagent(subagentRunId) })
      else this.#replace(parent, { ...parent, toolCalls: [...(parent.toolCalls ?? []), call] })
    },
    TOOL_CALL_ARGS: ({ toolCallId, delta }) => {
      const parent = this.#callerOf(toolCallId)
      if (parent?.role !== 'assistant') return
      const toolCalls = parent.toolCalls?.map((call) =>
        call.id === toolCallId
          ? { ...call, function: { ...call.function, arguments: call.function.arguments + delta } }
          : call,
      )
      this.#replace(parent, { ...parent, ...(toolCalls && { toolCalls }) })
    },
    TOOL_CALL_RESULT: ({ messageId: id, toolCallId, content, role, subagentRunId, metadata }) => {
      const result = { id, toolCallId, role, content, ...ofSubagent(subagentRunId), ...(metadata && { metadata }) }
      const caller = this.#callerOf(toolCallId)
      if (caller === undefined) return this.push(result)
      let place = this.#messages.indexOf(caller) + 1
      while (this.#messages[place]?.role === 'tool') place++
      this.#messages.splice(place, 0, result)
    },
    ACTIVITY_SNAPSHOT: ({ messageId: id, activityType, content, subagentRunId }) => {
      const activity = { id, role: 'activity' as const, activityType, content, ...ofSubagent(subagentRunId) }
      const known = this.#find(id)
      if (known === undefined) this.push(activity)
      else this.#replace(known, activity)
    },
    MESSAGES_SNAPSHOT: ({ messages }) => {
      this.#messages = [...messages]
    },
  }

  /** Messages that are looked for are near the end. */
  #find(id: string): AgUiMessage | undefined {
    return this.#messages.findLast((message) => message.id === id)
  }

  #callerOf(toolCallId: string): AgUiMessage | undefined {
    return this.#messages.findLast(
      (message) => message.role === 'assistant' && message.toolCalls?.some(({ id }) => id === toolCallId) === true,
    )
  }

  #extend(id: string, delta: string): void {
    const message = this.#find(id)
    if (message === undefined || message.role === 'activity') return
    const { content = '' } = message
    if (typeof content === 'string') this.#replace(message, { ...message, content: content + delta })
  }

  #replace(message: AgUiMessage, by: AgUiMessage): void {
    this.#messages[this.#messages.lastIndexOf(message)] = by
  }
}

function ofSubagent(subagentRunId: string | undefined): { readonly subagentRunId?: string } {
  return subagentRunId === undefined ? {} : { subagentRunId }
}

/**
 * The snapshots after which a client that has `held` has exactly `messages`, in this order. A client replaces messages in their
 * places, appends new ones, and drops those that are missing, except for reasoning if a snapshot has none: one snapshot is enough,
 * unless that is not the order of `messages`, or such reasoning would stay.
 */
export function messageSnapshots(
  messages: readonly AgUiMessage[],
  held: readonly HeldMessage[],
): readonly AgUiEventOf<'MESSAGES_SNAPSHOT'>[] {
  const ids = new Set(messages.map(({ id }) => id))
  const misplaced = held.filter(({ id }) => ids.has(id)).findIndex(({ id }, index) => messages[index]?.id !== id)
  const first = misplaced === -1 ? messages : messages.slice(0, misplaced)
  const firstIds = new Set(first.map(({ id }) => id))
  const stays = first.some(({ role }) => role === 'reasoning')
    ? []
    : held.filter(({ id, role }) => role === 'reasoning' && !firstIds.has(id))
  // As a reply it is dropped by the next snapshot.
  const dropped = stays.map(({ id }): AgUiMessage => ({ id, role: 'assistant' }))
  return [
    ...(dropped.length > 0 ? [messageSnapshot([...first, ...dropped])] : []),
    ...(misplaced === -1 ? [] : [messageSnapshot(first)]),
    messageSnapshot(messages),
  ]
}

function messageSnapshot(messages: readonly AgUiMessage[]): AgUiEventOf<'MESSAGES_SNAPSHOT'> {
  return { type: 'MESSAGES_SNAPSHOT', messages: [...messages] }
}
