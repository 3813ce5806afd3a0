import { UNREPORTED_USAGE } from '#contracts/entry.js'
import type { AssistantPart, FinishReason, NativePart, TokenUsage } from '#contracts/entry.js'
import { HarnessError } from '#contracts/errors.js'
import { isObject } from '#util/json.js'
import type { JsonObject } from '#util/json.js'
import { errorFromBody, errorWithin } from '../http/provider-errors.js'
import type { DecodedReply, ReplyFoldOptions } from '../http/wire-format.js'
import { anthropicHostedPart, withServers } from '../hosted/anthropic-calls.js'
import { withHostedCalls } from '../hosted/calls.js'
import { annotated, anthropicCitations } from '../hosted/citations.js'
import { argumentsText, ReplyCallIds } from '../wire/call-ids.js'
import { withoutRepeatedCalls } from '../wire/repeated-calls.js'
import type { WireCall } from '../wire/repeated-calls.js'
import { countIn, isFilled, objectsIn, stringIn, without } from '../wire/wire-fields.js'
import type { WireFields } from '../wire/wire-fields.js'
import { PROVIDER } from './models.js'

/** A whole reply. Throws `provider_error` for an error in place of a reply, and for anything but a message. */
export function decodeMessage(reply: unknown, { callIdFor }: Pick<ReplyFoldOptions, 'callIdFor'>): DecodedReply {
  if (isError(reply)) throw errorFromBody(200, {}, reply)
  if (!isObject(reply) || !Array.isArray(reply['content'])) throw errorWithin(reply) ?? notMessage()
  const ids = new ReplyCallIds(callIdFor)
  const parts: AssistantPart[] = []
  for (const block of withoutRepeatedCalls(objectsIn(reply['content']), blockCall)) {
    const isCall = block['type'] === 'tool_use'
    const call = isCall ? { callId: ids.take(block['id']), arguments: argumentsText(block['input']) } : null
    const part = blockPart(block, call)
    if (part !== null) parts.push(part)
  }
  return replyOf(reply, parts)
}

function blockCall({ type, id, name, input }: WireFields): WireCall | null {
  return type === 'tool_use' ? { id: stringIn(id), name: stringIn(name), text: argumentsText(input) } : null
}

function notMessage(): HarnessError {
  return new HarnessError('provider_error', "Anthropic's answer is not a message: it has no `content`.", {
    failure: 'server',
  })
}

/** The fields of `message` other than its content. */
export function replyOf(message: WireFields, parts: readonly AssistantPart[]): DecodedReply {
  const stopReason = stringIn(message['stop_reason'])
  const { stop_details: details, container } = message
  const refusal = isObject(details) && details['type'] === 'refusal' ? stringIn(details['explanation']) : ''
  const { usage } = message
  let isHosted = false
  for (const { type } of parts) isHosted ||= type === 'hosted'
  const counts = tokenUsage(usage)
  return {
    parts: isHosted ? withServers(parts) : parts,
    finishReason: FINISH_REASONS.get(stopReason) ?? 'other',
    nativeFinishReason: stopReason || null,
    ...(refusal !== '' && { refusal }),
    usage: isHosted ? withHostedCalls(counts, parts, isObject(usage) ? usage['server_tool_use'] : {}) : counts,
    ...(isObject(container) && containerPart(container)),
    responseId: stringIn(message['id']) || null,
    responseModel: stringIn(message['model']) || null,
    raw: message,
  }
}

/** True if a body or an event is an error. */
export function isError(body: unknown): body is WireFields {
  return isObject(body) && (body['type'] === 'error' || (body['type'] === undefined && isObject(body['error'])))
}

/** A call of the harness: its final id and its arguments as text. */
export interface Call {
  readonly callId: string
  readonly arguments: string
}

/** The part for a block; null for an empty text. `call` is that of a `tool_use` block. */
export function blockPart(block: WireFields, call: Call | null): AssistantPart | null {
  switch (block['type']) {
    case 'text':
      return textPart(block)
    case 'thinking':
      return reasoningPart(block)
    case 'redacted_thinking':
      return { type: 'reasoning', text: '', ...anthropicNative(block) }
    case 'tool_use':
      if (call !== null) return toolCallPart(block, call)
  }
  const hosted = anthropicHostedPart(block)
  return { ...(hosted ?? { type: 'opaque' }), ...anthropicNative(block) }
}

/** Keeps the citations. An empty text has no meaning, and is rejected if it is sent back. */
function textPart({ text, citations }: WireFields): AssistantPart | null {
  if (typeof text !== 'string' || text === '') return null
  if (!Array.isArray(citations) || citations.length === 0) return { type: 'text', text }
  return { type: 'text', text, ...annotated(anthropicCitations(citations, text)), ...anthropicNative({ citations }) }
}

/** Reasoning that was cut off has no signature: only its text is kept. */
function reasoningPart(block: WireFields): AssistantPart {
  const isSigned = stringIn(block['signature']) !== ''
  return {
    type: 'reasoning',
    text: stringIn(block['thinking']),
    ...(isSigned && anthropicNative(without(block, 'thinking'))),
  }
}

/** Keeps the other fields of the block, such as `caller`. */
function toolCallPart(block: WireFields, call: Call): AssistantPart {
  const { type, id, name, input, ...others } = block
  const part = { type: 'tool_call', name: stringIn(name), ...call } as const
  return isFilled(others) ? { ...part, ...anthropicNative(others) } : part
}

function anthropicNative(data: WireFields): { readonly native: NativePart } {
  return { native: { provider: PROVIDER, data: data as JsonObject } }
}

/** The container in which the provider's own tools ran for a reply. It is kept because the next request names it. */
function containerPart({ id, expires_at: end }: WireFields): { readonly native?: NativePart } {
  if (typeof id !== 'string') return {}
  return anthropicNative({ container: { id, ...(typeof end === 'string' && { expires_at: end }) } })
}

const FINISH_REASONS = new Map<string, FinishReason>([
  ['end_turn', 'stop'],
  ['stop_sequence', 'stop'],
  ['tool_use', 'tool_calls'],
  ['max_tokens', 'length'],
  ['model_context_window_exceeded', 'length'],
  ['refusal', 'refusal'],
  ['pause_turn', 'pause'],
  // Sent after a compaction only: as with `pause_turn`, the reply continues when it is sent back.
  ['compaction', 'pause'],
])

/**
 * The API's `usage` as token counts. Its `input_tokens` exclude tokens read from and written to the cache, so the three
 * are added up. Missing or invalid counts are null (PR-18, PR-21).
 */
export function tokenUsage(usage: unknown): TokenUsage {
  if (!isObject(usage)) return UNREPORTED_USAGE
  const { output_tokens_details: details, cache_creation: creation } = usage
  const fresh = countIn(usage['input_tokens'])
  const cacheReadTokens = countIn(usage['cache_read_input_tokens'])
  const cacheWriteTokens = countIn(usage['cache_creation_input_tokens'])
  const longCacheWriteTokens = isObject(creation) ? (countIn(creation['ephemeral_1h_input_tokens']) ?? 0) : 0
  return {
    ...UNREPORTED_USAGE,
    inputTokens: fresh === null ? null : fresh + (cacheReadTokens ?? 0) + (cacheWriteTokens ?? 0),
    outputTokens: countIn(usage['output_tokens']),
    cacheReadTokens,
    cacheWriteTokens,
    ...(longCacheWriteTokens > 0 && { longCacheWriteTokens }),
    reasoningTokens: isObject(details) ? countIn(details['thinking_tokens']) : null,
  }
}
