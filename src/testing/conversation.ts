import type { JsonObject } from '../index.js'
import { isObject, parsedOf } from './json.js'

/** One message of a conversation, the same from a model's transcript and from every wire format. */
export type ScriptMessage =
  | {
      readonly role: 'user'
      /** The text; the parts as they came where not all of them are text. */
      readonly content: MessageContent
      /** The harness wrote it, as far as that can be told: over HTTP it cannot. */
      readonly notice?: true
    }
  | { readonly role: 'assistant'; readonly text: string; readonly calls: readonly HeardCall[] }
  | { readonly role: 'tool'; readonly callId: string; readonly content: MessageContent }

export type MessageContent = string | readonly unknown[]

/** A tool call of an earlier reply. */
export interface HeardCall {
  readonly callId: string
  readonly name: string
  /** Raw JSON text. */
  readonly arguments: string
}

/** The answer to a tool call: the envelope that the harness sends, and images or files beside it. */
export interface HeardOutput {
  readonly callId: string
  readonly ok: boolean
  readonly content: string
  readonly metadata: JsonObject
  readonly parts?: readonly unknown[]
}

/**
 * What is new in a request, and so why it was made: a first prompt (`start`), answers to tool calls, a further message
 * of a person, a correction by the harness, or nothing new (`continuation`, after a pause).
 */
export type Heard =
  | { readonly kind: 'start' | 'message' | 'correction'; readonly prompt: MessageContent }
  | {
      readonly kind: 'tool_outputs'
      readonly outputs: readonly HeardOutput[]
      /** What was said behind the answers: notices, steering. */
      readonly prompt?: MessageContent
    }
  | { readonly kind: 'continuation' }

/** A request as a script's function sees it. */
export interface ScriptRequest {
  /** Replies that are in the conversation: 0 for a first request. */
  readonly turn: number
  /** What is new. */
  readonly heard: Heard
  /** The whole conversation. */
  readonly messages: readonly ScriptMessage[]
  /** The system prompt; empty when there is none. */
  readonly instructions: string
  /** Names of the tools that are offered. */
  readonly tools: readonly string[]
}

/** A request of a conversation. */
export function scriptRequest(
  messages: readonly ScriptMessage[],
  instructions: string,
  tools: readonly string[],
): ScriptRequest {
  const turn = messages.filter((message) => message.role === 'assistant').length
  return { turn, heard: heardIn(messages, turn), messages, instructions, tools }
}

function heardIn(messages: readonly ScriptMessage[], turn: number): Heard {
  const news = messages.slice(messages.findLastIndex((message) => message.role === 'assistant') + 1)
  const outputs = news.filter((message) => message.role === 'tool').map(heardOutput)
  const said = news.filter((message) => message.role === 'user')
  const prompt = joined(said.map((message) => message.content))
  if (outputs.length > 0) return { kind: 'tool_outputs', outputs, ...(prompt !== '' && { prompt }) }
  if (turn === 0) return { kind: 'start', prompt }
  if (said.length === 0) return { kind: 'continuation' }
  return { kind: said.at(-1)?.notice === true ? 'correction' : 'message', prompt }
}

function joined(contents: readonly MessageContent[]): MessageContent {
  if (contents.every((content) => typeof content === 'string')) return contents.join('\n\n')
  return contents.flatMap((content) => (typeof content === 'string' ? [{ type: 'text', text: content }] : content))
}

function heardOutput({ callId, content }: ScriptMessage & { role: 'tool' }): HeardOutput {
  const [first, ...parts] = typeof content === 'string' ? [content] : content
  const text = textIn(first) ?? ''
  const envelope = parsedOf(text)
  const beside = parts.length === 0 ? {} : { parts }
  if (!isObject(envelope) || typeof envelope['content'] !== 'string') {
    return { callId, ok: false, content: text, metadata: {}, ...beside }
  }
  const metadata = isObject(envelope['metadata']) ? (envelope['metadata'] as JsonObject) : {}
  return { callId, ok: envelope['ok'] === true, content: envelope['content'], metadata, ...beside }
}

/** The text of a part of any API. */
function textIn(part: unknown): string | undefined {
  if (typeof part === 'string') return part
  return isObject(part) && typeof part['text'] === 'string' ? part['text'] : undefined
}

/** A list of parts as a message's content: one text when they are all text. */
export function contentOf(parts: readonly unknown[]): MessageContent {
  const texts = parts.map(textIn)
  return texts.every((text) => text !== undefined) ? texts.join('') : parts
}

/** A message's content as any API writes it: a text, a list of parts, or nothing. */
export function contentIn(content: unknown): MessageContent {
  if (Array.isArray(content)) return contentOf(content)
  return typeof content === 'string' ? content : ''
}

/** The same as one text. */
export function textContent(content: unknown): string {
  const read = contentIn(content)
  return typeof read === 'string' ? read : JSON.stringify(read)
}
