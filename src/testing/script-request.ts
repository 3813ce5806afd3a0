import { resultForModel, textOf, toolCallsOf } from '#contracts/entry.js'
import type { FailureMark, TranscriptEntry } from '#contracts/entry.js'
import type { ModelToolCall } from '#core/model-session.js'
import { isObject } from '#util/json.js'

/** One message of a conversation, in the same form for transcripts and every wire format. */
export type ScriptMessage =
  | {
      readonly role: 'user'
      /** The text, or the unchanged parts if not all of them are text. */
      readonly content: MessageContent
      /** True if the harness wrote it. Over HTTP that is unknown. */
      readonly notice?: true
    }
  | { readonly role: 'assistant'; readonly text: string; readonly calls: readonly HeardCall[] }
  | {
      readonly role: 'tool'
      readonly callId: string
      readonly content: MessageContent
      /** Absent for an API without a flag for failures. */
      readonly isError?: boolean
    }

export type MessageContent = string | readonly unknown[]

/** A tool call of an earlier reply. */
export type HeardCall = ModelToolCall

/** The result of a tool call as the model reads it: its text, and images or files after it. */
export interface HeardOutput {
  readonly callId: string
  /** False for a failure, by the flag of the API or, if it has none, by the prefix `Error: `. */
  readonly ok: boolean
  readonly content: string
  readonly parts?: readonly unknown[]
}

/**
 * The new messages of a request, and so its reason: a first prompt (`start`), results of tool calls, a further message of
 * a person, a correction by the harness, or nothing new (`continuation`, after a pause).
 */
export type Heard =
  | { readonly kind: 'start' | 'message' | 'correction'; readonly prompt: MessageContent }
  | {
      readonly kind: 'tool_outputs'
      readonly outputs: readonly HeardOutput[]
      /** Messages after the results: notices, steering. */
      readonly prompt?: MessageContent
    }
  | { readonly kind: 'continuation' }

/** A request as a script's function sees it. */
export interface ScriptRequest {
  /** Number of replies in the conversation: 0 for a first request. */
  readonly turn: number
  /** The new messages. */
  readonly heard: Heard
  /** The whole conversation. */
  readonly messages: readonly ScriptMessage[]
  /** The system prompt; empty if there is none. */
  readonly instructions: string
  /** Names of the offered tools. */
  readonly tools: readonly string[]
}

/** A request of a conversation. */
export function scriptRequest(
  messages: readonly ScriptMessage[],
  instructions: string,
  tools: readonly string[],
): ScriptRequest {
  const turn = messages.filter((message) => message.role === 'assistant').length
  return { turn, heard: hearConversation(messages, turn), messages, instructions, tools }
}

function hearConversation(messages: readonly ScriptMessage[], turn: number): Heard {
  const news = messages.slice(messages.findLastIndex((message) => message.role === 'assistant') + 1)
  const outputs = news.filter((message) => message.role === 'tool').map(heardOutput)
  const said = news.filter((message) => message.role === 'user')
  const prompt = joinContents(said.map((message) => message.content))
  if (outputs.length > 0) return { kind: 'tool_outputs', outputs, ...(prompt !== '' && { prompt }) }
  if (turn === 0) return { kind: 'start', prompt }
  if (said.length === 0) return { kind: 'continuation' }
  return { kind: said.at(-1)?.notice === true ? 'correction' : 'message', prompt }
}

function joinContents(contents: readonly MessageContent[]): MessageContent {
  if (contents.every((content) => typeof content === 'string')) return contents.join('\n\n')
  return contents.flatMap((content) => (typeof content === 'string' ? [{ type: 'text', text: content }] : content))
}

const FAILURE = /^Error: /

function heardOutput({ callId, content, isError }: ScriptMessage & { role: 'tool' }): HeardOutput {
  const [first, ...others] = typeof content === 'string' ? [content] : content
  const text = partText(first)
  // A result may have no text.
  const parts = text === undefined && first !== undefined ? [first, ...others] : others
  const failed = isError ?? FAILURE.test(text ?? '')
  return { callId, ok: !failed, content: text ?? '', ...(parts.length > 0 && { parts }) }
}

/** An entry of a transcript as a message of an API that marks failures so. */
export function scriptMessage(entry: TranscriptEntry, mark: FailureMark = 'flag'): ScriptMessage {
  switch (entry.role) {
    case 'user':
      return { role: 'user', content: partsContent(entry.content), ...(entry.notice && { notice: true }) }
    case 'tool':
      return {
        role: 'tool',
        callId: entry.callId,
        content: resultForModel(entry, mark),
        ...(mark === 'flag' && { isError: entry.isError }),
      }
    case 'assistant': {
      const calls = toolCallsOf(entry.parts)
      return { role: 'assistant', text: textOf(entry.parts), calls: calls.map(withoutNative) }
    }
  }
}

function withoutNative({ callId, name, arguments: args }: ModelToolCall): HeardCall {
  return { callId, name, arguments: args }
}

/** The text of a part of any API. */
function partText(part: unknown): string | undefined {
  if (typeof part === 'string') return part
  return isObject(part) && typeof part['text'] === 'string' ? part['text'] : undefined
}

/** A list of parts as a message's content: a string if all of them are text. */
export function partsContent(parts: readonly unknown[]): MessageContent {
  const texts = parts.map(partText)
  return texts.every((text) => text !== undefined) ? texts.join('') : parts
}

/** The content of a message of any API: a string, a list of parts, or nothing. */
export function messageContent(content: unknown): MessageContent {
  if (Array.isArray(content)) return partsContent(content)
  return typeof content === 'string' ? content : ''
}

/** The same as one string. */
export function textContent(content: unknown): string {
  const read = messageContent(content)
  return typeof read === 'string' ? read : JSON.stringify(read)
}
