import type { JsonObject } from '#util/json.js'
import type { TokenUsage } from '#contracts/entry.js'
import { parsedJson } from '../conversation.js'
import { textPieces } from '../reply.js'
import { withoutNulls, sseFrame } from './api.js'
import type { WireApi, WireReply } from './api.js'
import { readMessagesRequest } from './messages-request.js'
import { sealText, reasoningSignature } from './seals.js'

/** Anthropic's Messages API. */
export const messagesApi: WireApi = {
  read: readMessagesRequest,
  callId: (ordinal) => `toolu_01${String(ordinal).padStart(22, '0')}`,
  chargesCacheWrites: true,
  whole: (reply) => ({
    ...messageShell(reply),
    content: reply.parts.flatMap(contentBlocks),
    ...messageEnding(reply),
    ...usageField(reply.usage),
  }),
  stream: messageStream,
  error: (status, message) => ({ type: 'error', error: { type: errorType(status), message }, request_id: REQUEST_ID }),
  errorEvent: (message) =>
    namedEvent({ type: 'error', error: { details: null, type: 'overloaded_error', message }, request_id: REQUEST_ID }),
}

const REQUEST_ID = 'req_011CScripted'

type Part = WireReply['parts'][number]

function messageShell({ id, model }: WireReply): JsonObject {
  return { model, id: `msg_01${id}`, type: 'message', role: 'assistant' }
}

/** The block of a part; none for a refusal, whose explanation is not part of the content. */
function contentBlocks(part: Part): JsonObject[] {
  switch (part.type) {
    case 'text':
      return [{ type: 'text', text: part.text }]
    case 'reasoning':
      if (part.text === '') return [{ type: 'redacted_thinking', data: sealText('') }]
      return [{ type: 'thinking', thinking: part.text, signature: reasoningSignature(part.text) }]
    case 'refusal':
      return []
    case 'block':
      return [part.data]
    case 'call': {
      // Arguments that are not JSON have no other place in a whole reply.
      const input = (parsedJson(part.arguments || '{}') ?? part.arguments) as JsonObject
      return [{ type: 'tool_use', ...withoutNulls({ id: part.callId }), name: part.name, input }]
    }
  }
}

function messageStream(reply: WireReply): string[] {
  const start = { ...messageShell(reply), content: [], stop_reason: null, stop_sequence: null }
  const opening = reply.usage === null ? null : { ...reply.usage, outputTokens: 1, reasoningTokens: null }
  return [
    namedEvent({ type: 'message_start', message: { ...start, ...usageField(opening) } }),
    namedEvent({ type: 'ping' }),
    ...reply.parts
      .filter((part) => part.type !== 'refusal')
      .flatMap((part, index) => [...blockEvents(part, index), namedEvent({ type: 'content_block_stop', index })]),
    namedEvent({ type: 'message_delta', delta: messageEnding(reply), ...(reply.usage && { usage: messagesUsage(reply.usage) }) }),
    namedEvent({ type: 'message_stop' }),
  ]
}

/** The start of a block and its deltas. */
function blockEvents(part: Exclude<Part, { type: 'refusal' }>, index: number): string[] {
  const block = contentBlocks(part)[0] ?? {}
  const startBlock = (blank: JsonObject) =>
    namedEvent({ type: 'content_block_start', index, content_block: { ...block, ...blank } })
  const deltaEvent = (content: JsonObject) => namedEvent({ type: 'content_block_delta', index, delta: content })
  switch (part.type) {
    case 'text':
      return [startBlock({ text: '' }), ...textPieces(part.text).map((text) => deltaEvent({ type: 'text_delta', text }))]
    case 'reasoning':
      if (part.text === '') return [startBlock({})]
      return [
        startBlock({ thinking: '', signature: '' }),
        ...textPieces(part.text).map((thinking) => deltaEvent({ type: 'thinking_delta', thinking })),
        deltaEvent({ type: 'signature_delta', signature: reasoningSignature(part.text) }),
      ]
    case 'block':
      return [startBlock({})]
    case 'call': {
      const pieces = ['', ...textPieces(part.arguments)]
      return [startBlock({ input: {} }), ...pieces.map((text) => deltaEvent({ type: 'input_json_delta', partial_json: text }))]
    }
  }
}

function messageEnding({ parts, finishReason, nativeFinishReason }: WireReply): JsonObject {
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
  return usage === null ? {} : { usage: { ...messagesUsage(usage), service_tier: 'standard' } }
}

/** The API does not count cache reads and writes as input tokens. */
function messagesUsage(usage: TokenUsage): JsonObject {
  const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens, reasoningTokens } = usage
  return withoutNulls({
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

function namedEvent(data: JsonObject & { readonly type: string }): string {
  return sseFrame(data, data.type)
}
