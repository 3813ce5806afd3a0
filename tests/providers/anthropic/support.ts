import { HarnessError } from 'thinharness'
import type { ModelDelta, RequestConstants } from 'thinharness'
import { messagesFormat } from '#providers/anthropic/request.js'
import type { MessagesRequestOptions } from '#providers/anthropic/request.js'
import { MessageList } from '#providers/wire/wire-session.js'
import type { DecodedReply, TailOptions, WireFormat } from '#providers/http/wire-format.js'
import type {
  AssistantEntry,
  AssistantPart,
  ContentPart,
  ToolEntry,
  TranscriptEntry,
  UserEntry,
} from '#contracts/entry.js'
import { UNREPORTED_USAGE } from '#contracts/entry.js'
import type { JsonObject } from '#util/json.js'

export const AT = '2026-01-01T00:00:00.000Z'

export const CONSTANTS: RequestConstants = { instructions: '', tools: [], structuredOutput: null, settings: {} }

export function format(options: Partial<MessagesRequestOptions> = {}): WireFormat {
  return messagesFormat({
    id: 'claude-sonnet-5',
    version: '2023-06-01',
    defaults: {},
    automaticCaching: true,
    ...options,
  })
}

export function user(content: string | readonly ContentPart[], notice = false): UserEntry {
  const parts = typeof content === 'string' ? [{ type: 'text', text: content } as const] : content
  return { role: 'user', id: 'e', at: AT, content: parts, ...(notice && { notice: true }) }
}

export function assistant(parts: readonly AssistantPart[], provider = 'anthropic'): AssistantEntry {
  return {
    role: 'assistant',
    id: 'e',
    at: AT,
    parts,
    provider,
    model: 'm',
    finishReason: 'stop',
    usage: UNREPORTED_USAGE,
  }
}

export function tool(callId: string, content: ToolEntry['content'], isError = false): ToolEntry {
  return { role: 'tool', id: 'e', at: AT, callId, name: 'read', content, isError }
}

export function call(callId: string, text = '{}', data?: JsonObject): AssistantPart {
  const native = data === undefined ? {} : { native: { provider: 'anthropic', data } }
  return { type: 'tool_call', callId, name: 'read', arguments: text, ...native }
}

/** The request body as JSON, as the session puts it together. */
export function bodyOf(
  wire: WireFormat,
  entries: readonly TranscriptEntry[],
  constants: RequestConstants = CONSTANTS,
  tail: Partial<TailOptions> = {},
): JsonObject {
  const list = new MessageList('json', wire.conversationField)
  list.open(wire.head(constants), wire.opening(constants))
  list.append(wire.encode(entries, constants))
  return list.finish(
    wire.tail({ streamed: false, toolChoice: undefined, previousResponseId: null, ...tail }, constants),
  ) as JsonObject
}

export const callIdFor = (index: number): string => `call_9_${index + 1}`

/** The sum of a stream of these events, and the deltas that it emitted. */
export function folded(events: readonly unknown[]): { reply: DecodedReply; deltas: ModelDelta[] } {
  const deltas: ModelDelta[] = []
  const fold = format().fold({ callIdFor, onDelta: (delta) => void deltas.push(delta) })
  for (const data of events) fold.add({ event: null, data })
  return { reply: fold.end(), deltas }
}

export function decoded(reply: unknown): DecodedReply {
  return format().decode(reply, { callIdFor, onDelta: undefined })
}

/** The error that `work` throws. */
export function errorOf(work: () => unknown): HarnessError {
  try {
    work()
  } catch (error) {
    if (error instanceof HarnessError) return error
    throw error
  }
  throw new Error('Expected an error.')
}

/** The events of a stream whose message has these blocks. */
export function events(
  blocks: readonly (readonly [start: JsonObject, ...deltas: JsonObject[]])[],
): (JsonObject & { type: string })[] {
  return [
    {
      type: 'message_start',
      message: { id: 'msg_1', type: 'message', role: 'assistant', model: 'claude', content: [] },
    },
    ...blocks.flatMap(([start, ...deltas], index) => [
      { type: 'content_block_start', index, content_block: start },
      ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
      { type: 'content_block_stop', index },
    ]),
    { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens: 5 } },
    { type: 'message_stop' },
  ]
}
