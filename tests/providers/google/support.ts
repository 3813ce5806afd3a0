import type { ModelDelta, RequestConstants } from 'thinharness'
import { UNREPORTED_USAGE } from '#contracts/entry.js'
import type {
  AssistantEntry,
  AssistantPart,
  ContentPart,
  ToolEntry,
  TranscriptEntry,
  UserEntry,
} from '#contracts/entry.js'
import { contentFormat } from '#providers/google/request.js'
import type { ContentRequestOptions } from '#providers/google/request.js'
import type { DecodedReply, TailOptions, WireFormat } from '#providers/http/wire-format.js'
import { MessageList } from '#providers/wire/wire-session.js'
import type { JsonObject } from '#util/json.js'

const STAMP = { id: 'e', at: '2026-01-01T00:00:00.000Z' }

const CONSTANTS: RequestConstants = { instructions: '', tools: [], structuredOutput: null, settings: {} }

export function format(options: Partial<ContentRequestOptions> = {}): WireFormat {
  return contentFormat({ id: 'gemini-3-pro', defaults: {}, hasCallIds: true, ...options })
}

export function user(content: string | readonly ContentPart[], notice = false): UserEntry {
  const parts = typeof content === 'string' ? [{ type: 'text', text: content } as const] : content
  return { role: 'user', ...STAMP, content: parts, ...(notice && { notice: true }) }
}

export function assistant(parts: readonly AssistantPart[]): AssistantEntry {
  const reply = { provider: 'google', model: 'm', finishReason: 'stop', usage: UNREPORTED_USAGE } as const
  return { role: 'assistant', ...STAMP, parts, ...reply }
}

export function tool(callId: string, content: ToolEntry['content'], isError = false): ToolEntry {
  return { role: 'tool', ...STAMP, callId, name: 'read', content, isError }
}

export function call(callId: string, data?: JsonObject, provider = 'google'): AssistantPart {
  const native = data === undefined ? {} : { native: { provider, data } }
  return { type: 'tool_call', callId, name: 'read', arguments: '{"path":"a"}', ...native }
}

/** The contents of a request. */
export function contentsOf(wire: WireFormat, entries: readonly TranscriptEntry[]): readonly JsonObject[] {
  return wire.encode(entries, CONSTANTS)
}

/** The request body as JSON, as the session puts it together. */
export function bodyOf(
  wire: WireFormat,
  entries: readonly TranscriptEntry[],
  constants: Partial<RequestConstants> = {},
  tail: Partial<TailOptions> = {},
): JsonObject {
  const given = { ...CONSTANTS, ...constants }
  const list = new MessageList('json', wire.conversationField)
  list.open(wire.head(given), wire.opening(given))
  list.append(wire.encode(entries, given))
  const options = { streamed: false, toolChoice: undefined, previousResponseId: null, ...tail }
  return list.finish(wire.tail(options, given)) as JsonObject
}

export const callIdFor = (index: number): string => `call_9_${index + 1}`

/** What a stream of these events adds up to, and its deltas. */
export function folded(events: readonly unknown[], wire = format()): { reply: DecodedReply; deltas: ModelDelta[] } {
  const deltas: ModelDelta[] = []
  const fold = wire.fold({ callIdFor, onDelta: (delta) => void deltas.push(delta) })
  for (const data of events) fold.add({ event: null, data })
  return { reply: fold.end(), deltas }
}

/** An event with these parts. */
export function event(parts: readonly JsonObject[], finishReason?: string, rest: JsonObject = {}): JsonObject {
  const candidate = { content: { role: 'model', parts }, ...(finishReason !== undefined && { finishReason }), index: 0 }
  return { candidates: [candidate], ...rest }
}
