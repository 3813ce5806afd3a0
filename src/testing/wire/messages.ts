import type { JsonObject } from '#util/json.js'
import type { TokenUsage } from '#contracts/entry.js'
import { parsedOf } from '../conversation.js'
import { piecesOf } from '../reply.js'
import { filled, sse } from './api.js'
import type { WireApi, WireReply } from './api.js'
import { readMessagesRequest } from './messages-request.js'
import { sealed, signatureOf } from './seals.js'

/** Anthropic's Messages API. */
export const messagesApi: WireApi = {
  read: readMessagesRequest,
  callId: (ordinal) => `toolu_01${String(ordinal).padStart(22, '0')}`,
  chargesCacheWrites: true,
  whole: (reply) => ({
    ...shell(reply),
    content: reply.parts.flatMap(blocksOf),
    ...ending(reply),
    ...usageField(reply.usage),
  }),
  stream,
  error: (status, message) => ({ type: 'error', error: { type: errorType(status), message }, request_id: REQUEST_ID }),
  errorEvent: (message) =>
    event({ type: 'error', error: { details: null, type: 'overloaded_error', message }, request_id: REQUEST_ID }),
}

const REQUEST_ID = 'req_011CScripted'

type Part = WireReply['parts'][number]

function shell({ id, model }: WireReply): JsonObject {
  return { model, id: `msg_01${id}`, type: 'message', role: 'assistant' }
}

/** The block of a part; none for a refusal, whose explanation is not part of the content. */
function blocksOf(part: Part): JsonObject[] {
  switch (part.type) {
    case 'text':
      return [{ type: 'text', text: part.text }]
    case 'reasoning':
      if (part.text === '') return [{ type: 'redacted_thinking', data: sealed('') }]
      return [{ type: 'thinking', thinking: part.text, signature: signatureOf(part.text) }]
    case 'refusal':
      return []
    case 'block':
      return [part.data]
    case 'call': {
      // Arguments that are not JSON have no other place in a whole reply.
      const input = (parsedOf(part.arguments || '{}') ?? part.arguments) as JsonObject
      return [{ type: 'tool_use', ...filled({ id: part.callId }), name: part.name, input }]
    }
  }
}

function stream(reply: WireReply): string[] {
  const start = { ...shell(reply), content: [], stop_reason: null, stop_sequence: null }
  const opening = reply.usage === null ? null : { ...reply.usage, outputTokens: 1, reasoningTokens: null }
  return [
    event({ type: 'message_start', message: { ...start, ...usageField(opening) } }),
    event({ type: 'ping' }),
    ...reply.parts
      .filter((part) => part.type !== 'refusal')
      .flatMap((part, index) => [...blockEvents(part, index), event({ type: 'content_block_stop', index })]),
    event({ type: 'message_delta', delta: ending(reply), ...(reply.usage && { usage: usageOf(reply.usage) }) }),
    event({ type: 'message_stop' }),
  ]
}

/** The start of a block and its deltas. */
function blockEvents(part: Exclude<Part, { type: 'refusal' }>, index: number): string[] {
  const block = blocksOf(part)[0] ?? {}
  const start = (blank: JsonObject) =>
    event({ type: 'content_block_start', index, content_block: { ...block, ...blank } })
  const delta = (content: JsonObject) => event({ type: 'content_block_delta', index, delta: content })
  switch (part.type) {
    case 'text':
      return [start({ text: '' }), ...piecesOf(part.text).map((text) => delta({ type: 'text_delta', text }))]
    case 'reasoning':
      if (part.text === '') return [start({})]
      return [
        start({ thinking: '', signature: '' }),
        ...piecesOf(part.text).map((thinking) => delta({ type: 'thinking_delta', thinking })),
        delta({ type: 'signature_delta', signature: signatureOf(part.text) }),
      ]
    case 'block':
      return [start({})]
    case 'call': {
      const pieces = ['', ...piecesOf(part.arguments)]
      return [start({ input: {} }), ...pieces.map((text) => delta({ type: 'input_json_delta', partial_json: text }))]
    }
  }
}

function ending({ parts, finishReason, nativeFinishReason }: WireReply): JsonObject {
  const refusal = parts.find((part) => part.type === 'refusal')
  const details = { type: 'refusal', category: null, explanation: refusal?.text ?? null }
  return {
    stop_reason: nativeFinishReason ?? STOP_REASONS[finishReason],
    stop_sequence: null,
    ...(finishReason === 'refusal' && { stop_details: details }),
  }
}

const STOP_REASONS: Readonly<Record<WireReply['finishReason'], string>> = {
  stop: 'end_turn',
  tool_calls: 'tool_use',
  length: 'max_tokens',
  refusal: 'refusal',
  content_filter: 'refusal',
  pause: 'pause_turn',
  cancelled: 'cancelled',
  error: 'error',
  other: 'other',
}

function usageField(usage: TokenUsage | null): JsonObject {
  return usage === null ? {} : { usage: { ...usageOf(usage), service_tier: 'standard' } }
}

/** The API does not count cache reads and writes as input tokens. */
function usageOf(usage: TokenUsage): JsonObject {
  const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens, reasoningTokens } = usage
  return filled({
    input_tokens: inputTokens === null ? null : inputTokens - (cacheReadTokens ?? 0) - (cacheWriteTokens ?? 0),
    cache_creation_input_tokens: cacheWriteTokens,
    cache_read_input_tokens: cacheReadTokens,
    output_tokens: outputTokens,
    output_tokens_details: reasoningTokens === null ? null : { thinking_tokens: reasoningTokens },
  })
}

const ERROR_TYPES: ReadonlyMap<number, string> = new Map([
  [400, 'invalid_request_error'],
  [401, 'authentication_error'],
  [402, 'billing_error'],
  [403, 'permission_error'],
  [404, 'not_found_error'],
  [413, 'request_too_large'],
  [429, 'rate_limit_error'],
  [504, 'timeout_error'],
  [529, 'overloaded_error'],
])

function errorType(status: number): string {
  return ERROR_TYPES.get(status) ?? (status >= 500 ? 'api_error' : 'invalid_request_error')
}

function event(data: JsonObject & { readonly type: string }): string {
  return sse(data, data.type)
}
