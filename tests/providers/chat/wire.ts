import { chatFormat } from '#providers/chat/request.js'
import { OPENAI, OPENROUTER, dialectFor } from '#providers/chat/dialect.js'
import type { ChatDialect } from '#providers/chat/dialect.js'
import { EventReader } from '#providers/http/sse-reader.js'
import type { ProviderOptions } from '#providers/http/options.js'
import type { DecodedReply, WireChunk, WireFormat } from '#providers/http/wire-format.js'
import type { ModelDelta, RequestConstants } from '#core/model-session.js'
import { UNREPORTED_USAGE } from '#contracts/entry.js'
import type {
  AssistantEntry,
  AssistantPart,
  ContentPart,
  ToolEntry,
  TranscriptEntry,
  UserEntry,
} from '#contracts/entry.js'
import type { JsonObject } from '#util/json.js'

export const AT = '2026-01-01T00:00:00.000Z'

export const DIALECTS = {
  openai: OPENAI,
  openrouter: OPENROUTER,
  compatible: dialectFor('http://127.0.0.1:8080/v1', {}),
  mistral: dialectFor('https://api.mistral.ai/v1', {}),
  deepseek: dialectFor('https://api.deepseek.com', {}),
} as const

/** A format of provider `here`. */
export function formatOf(
  dialect: ChatDialect = DIALECTS.compatible,
  defaults: ProviderOptions = {},
  provider = 'here',
): WireFormat {
  return chatFormat({ id: 'some-model', provider, dialect, defaults }, defaults.capabilities?.inputs)
}

const callIdFor = (index: number): string => `call_7_${index + 1}`

export interface Heard {
  readonly reply: DecodedReply
  readonly deltas: readonly ModelDelta[]
}

/** The reply of a stream of these bytes, and the deltas that it emitted. */
export function hearBytes(pieces: readonly Uint8Array[], format: WireFormat = formatOf()): Heard {
  const reader = new EventReader()
  const chunks = pieces.flatMap((bytes) => [...reader.push(bytes)])
  chunks.push(...reader.end())
  if (reader.failure !== null) throw reader.failure
  return hear(chunks, format)
}

export function hear(chunks: readonly WireChunk[], format: WireFormat = formatOf()): Heard {
  const deltas: ModelDelta[] = []
  const fold = format.fold({ callIdFor, onDelta: (delta) => void deltas.push(delta) })
  for (const chunk of chunks) fold.add(chunk)
  return { reply: fold.end(), deltas }
}

/** Chunks of these deltas, then the end. */
export function chunksOf(deltas: readonly unknown[], finish: string | null = 'stop'): WireChunk[] {
  const data = (delta: unknown, finish_reason: string | null): unknown => {
    return { id: 'reply_1', model: 'm', object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason }] }
  }
  const chunks = deltas.map((delta) => ({ event: null, data: data(delta, null) }))
  return [...chunks, { event: null, data: data({}, finish) }, { event: null, data: null }]
}

/** A whole reply with this message. */
export function replyOf(message: unknown, finish_reason: string | null = 'stop'): JsonObject {
  return { id: 'reply_1', model: 'm', choices: [{ index: 0, message, finish_reason }] } as JsonObject
}

export function decode(reply: unknown, format: WireFormat = formatOf()): DecodedReply {
  return format.decode(reply, { callIdFor, onDelta: undefined })
}

export function constants(changes: Partial<RequestConstants> = {}): RequestConstants {
  return { instructions: '', tools: [], structuredOutput: null, settings: {}, ...changes }
}

export function user(...content: readonly (ContentPart | string)[]): UserEntry {
  const parts = content.map((part) => (typeof part === 'string' ? ({ type: 'text', text: part } as const) : part))
  return { role: 'user', id: 'e1', at: AT, content: parts }
}

export function assistant(parts: readonly AssistantPart[], provider = 'here'): AssistantEntry {
  const { finishReason, usage } = { finishReason: 'stop', usage: UNREPORTED_USAGE } as const
  return { role: 'assistant', id: 'e2', at: AT, parts, provider, model: 'some-model', finishReason, usage }
}

export function result(callId: string, content: ToolEntry['content'], name = 'look'): ToolEntry {
  return { role: 'tool', id: 'e3', at: AT, callId, name, content, isError: false }
}

/** The whole body, as it would be sent. */
export function bodyOf(
  format: WireFormat,
  entries: readonly TranscriptEntry[],
  given: RequestConstants = constants(),
  streamed = false,
): JsonObject {
  const messages = [...format.opening(given), ...format.encode(entries, given)]
  const tail = format.tail({ streamed, toolChoice: undefined, previousResponseId: null }, given)
  return { ...format.head(given), messages, ...tail }
}

/** The messages of entries. */
export function encode(
  entries: Parameters<ReturnType<typeof formatOf>['encode']>[0],
  format = formatOf(),
): readonly JsonObject[] {
  return format.encode(entries, constants())
}
