import { UNREPORTED_USAGE } from '../../contracts/entry.js'
import type { AssistantPart, FinishReason, TokenUsage } from '../../contracts/entry.js'
import { HarnessError } from '../../contracts/errors.js'
import { isObject } from '../../util/json.js'
import type { JsonObject, JsonValue } from '../../util/json.js'
import { errorFromBody, errorWithin } from '../http/errors.js'
import type { DecodedReply, FoldOptions } from '../http/wire.js'
import { argumentsOf, CallIds } from './calls.js'
import type { NamedCall } from './calls.js'
import { containerOf } from './container.js'
import { PROVIDER } from './provider.js'
import { without } from './without.js'

type WireObject = Readonly<Record<string, unknown>>

/** A whole reply. Throws `provider_error` for an error in the guise of a reply, and for what is no message at all. */
export function decodeMessage(reply: unknown, { callIdFor }: Pick<FoldOptions, 'callIdFor'>): DecodedReply {
  if (isError(reply)) throw errorFromBody(200, {}, reply)
  if (!isObject(reply) || !Array.isArray(reply['content'])) throw errorWithin(reply) ?? noMessage()
  const ids = new CallIds(callIdFor)
  const callOf = ({ id, input }: WireObject): NamedCall => ({ callId: ids.next(id), arguments: argumentsOf(input) })
  const blocks = (reply['content'] as readonly unknown[]).filter(isObject)
  return replyOf(
    reply,
    blocks.flatMap((block) => partOf(block, callOf) ?? []),
  )
}

function noMessage(): HarnessError {
  return new HarnessError('provider_error', 'Anthropic answered with what is no message: it has no `content`.')
}

/** What `message` says beside its content. */
export function replyOf(message: WireObject, parts: readonly AssistantPart[]): DecodedReply {
  const nativeFinishReason = textOrNull(message['stop_reason'])
  return {
    parts,
    finishReason: finishReason(nativeFinishReason),
    nativeFinishReason,
    ...refusalOf(message['stop_details']),
    usage: tokenUsage(message['usage']),
    ...containerOf(message['container']),
    responseId: textOrNull(message['id']),
    responseModel: textOrNull(message['model']),
    raw: message,
  }
}

/** Why the model, or what watches over it, refused. */
function refusalOf(details: unknown): Pick<DecodedReply, 'refusal'> {
  const refusal = isObject(details) && details['type'] === 'refusal' ? textOrNull(details['explanation']) : null
  return refusal === null || refusal === '' ? {} : { refusal }
}

/** Whether a body or an event tells of an error. */
export function isError(body: unknown): body is WireObject {
  return isObject(body) && (body['type'] === 'error' || (body['type'] === undefined && isObject(body['error'])))
}

/** The part that a block is; null for an empty text. `callOf` names the call of a `tool_use` block. */
export function partOf(block: WireObject, callOf: (block: WireObject) => NamedCall): AssistantPart | null {
  switch (block['type']) {
    case 'text':
      return textPart(block)
    case 'thinking':
      return reasoningPart(block)
    case 'redacted_thinking':
      return { type: 'reasoning', text: '', ...native(block) }
    case 'tool_use':
      return toolCallPart(block, callOf(block))
    default:
      return { type: 'opaque', ...native(block) }
  }
}

/** Keeps what the part itself does not say: the citations. An empty text is nothing, and is refused when sent back. */
function textPart({ text, citations }: WireObject): AssistantPart | null {
  if (typeof text !== 'string' || text === '') return null
  return { type: 'text', text, ...(Array.isArray(citations) && citations.length > 0 && native({ citations })) }
}

/** A thought that was cut off has no signature: its text is all that there is of it. */
function reasoningPart(block: WireObject): AssistantPart {
  const { thinking, signature } = block
  const text = typeof thinking === 'string' ? thinking : ''
  const isSigned = typeof signature === 'string' && signature !== ''
  return { type: 'reasoning', text, ...(isSigned && native(without(block, 'thinking'))) }
}

/** Keeps what else the block has, such as who called (`caller`). */
function toolCallPart(block: WireObject, { callId, arguments: text }: NamedCall): AssistantPart {
  const { name } = block
  const rest = without(block, 'type', 'id', 'name', 'input')
  const call = { type: 'tool_call', callId, name: typeof name === 'string' ? name : '', arguments: text } as const
  return { ...call, ...(Object.keys(rest).length > 0 && native(rest)) }
}

function native(data: WireObject): { readonly native: { readonly provider: string; readonly data: JsonValue } } {
  return { native: { provider: PROVIDER, data: data as JsonObject } }
}

function textOrNull(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}

const FINISH_REASONS = new Map<string, FinishReason>([
  ['end_turn', 'stop'],
  ['stop_sequence', 'stop'],
  ['tool_use', 'tool_calls'],
  ['max_tokens', 'length'],
  ['model_context_window_exceeded', 'length'],
  ['refusal', 'refusal'],
  ['pause_turn', 'pause'],
  // Sent when a compaction alone was made: like `pause_turn`, the reply goes on when it is sent back.
  ['compaction', 'pause'],
])

/** The API's `stop_reason` as one of ours; `other` for a word that is not known, and for none. */
function finishReason(stopReason: string | null): FinishReason {
  return FINISH_REASONS.get(stopReason ?? '') ?? 'other'
}

/**
 * The API's `usage` as token counts. Its `input_tokens` leaves out what was read from and written to the cache, so the
 * three are added up. What is missing or no whole number is null (PR-18, PR-21).
 */
function tokenUsage(usage: unknown): TokenUsage {
  if (!isObject(usage)) return UNREPORTED_USAGE
  const fresh = count(usage['input_tokens'])
  const cacheReadTokens = count(usage['cache_read_input_tokens'])
  const cacheWriteTokens = count(usage['cache_creation_input_tokens'])
  const longCacheWriteTokens = longWrites(usage['cache_creation'])
  const details = usage['output_tokens_details']
  return {
    inputTokens: fresh === null ? null : fresh + (cacheReadTokens ?? 0) + (cacheWriteTokens ?? 0),
    outputTokens: count(usage['output_tokens']),
    cacheReadTokens,
    cacheWriteTokens,
    ...(longCacheWriteTokens > 0 && { longCacheWriteTokens }),
    reasoningTokens: isObject(details) ? count(details['thinking_tokens']) : null,
  }
}

/** What was written to be kept for an hour. */
function longWrites(creation: unknown): number {
  return isObject(creation) ? (count(creation['ephemeral_1h_input_tokens']) ?? 0) : 0
}

function count(value: unknown): number | null {
  return typeof value === 'number' && Number.isInteger(value) ? value : null
}
