import { textOf, UNREPORTED_USAGE } from '../../contracts/entry.js'
import type { AssistantPart, FinishReason, TokenUsage } from '../../contracts/entry.js'
import { HarnessError } from '../../contracts/errors.js'
import { isObject } from '../../util/json.js'
import { errorFromBody } from '../http/errors.js'
import type { DecodedReply, FoldOptions } from '../http/wire.js'
import { CallIds } from './call-ids.js'
import { listOf, stringOf, nativeDataOf } from './native.js'
import type { WireObject } from './native.js'
import { partsOf } from './parts.js'

/**
 * A whole reply. A refusal is a reply that finishes with `refusal`: its words are no text, they stand in
 * `refusal` and in an opaque part. Throws `provider_error` for a failed response and for what is none.
 */
export function decodeReply(reply: unknown, { callIdFor }: Pick<FoldOptions, 'callIdFor'>): DecodedReply {
  const response = responseIn(reply)
  const ids = new CallIds(callIdFor)
  const parts = listOf(response['output']).flatMap((item, position) => partsOf(item, () => ids.give(position, item)))
  return decodedReply(response, parts)
}

/** A response that did not fail, whose output is `parts`. */
export function decodedReply(response: WireObject, parts: readonly AssistantPart[]): DecodedReply {
  const spoken = withOutputText(parts, response)
  return {
    parts: spoken,
    ...finishOf(response, spoken),
    ...refusalOf(spoken),
    usage: usageOf(response['usage']),
    responseId: stringOf(response['id']) || null,
    responseModel: stringOf(response['model']) || null,
    raw: response,
  }
}

/** The error of a response that failed or was cancelled; undefined for any other. */
export function failureOf(response: WireObject): HarnessError | undefined {
  const { status, error } = response
  if (status === 'cancelled') return new HarnessError('provider_error', 'The provider cancelled the response.')
  if (status !== 'failed') return undefined
  const known = isObject(error) || typeof error === 'string'
  return known ? errorFromBody(200, {}, { error }) : new HarnessError('provider_error', 'The response failed.')
}

function responseIn(reply: unknown): WireObject {
  if (!isObject(reply)) throw noResponse(reply)
  const failure = failureOf(reply)
  if (failure !== undefined) throw failure
  if (Array.isArray(reply['output']) || typeof reply['output_text'] === 'string' || isPending(reply)) return reply
  const isError = ['error', 'detail', 'message'].some((name) => reply[name] !== undefined && reply[name] !== null)
  throw isError ? errorFromBody(200, {}, reply) : noResponse(reply)
}

/** A background response that has not begun to speak. */
function isPending({ status }: WireObject): boolean {
  return status === 'queued' || status === 'in_progress'
}

function noResponse(reply: unknown): HarnessError {
  const came = reply === undefined ? 'nothing' : JSON.stringify(reply).slice(0, 200)
  return new HarnessError('provider_error', `Expected a reply of the Responses API with \`output\`, got ${came}.`)
}

/** Some servers give the text at the top level alone. */
function withOutputText(parts: readonly AssistantPart[], { output_text: text }: WireObject): readonly AssistantPart[] {
  if (typeof text !== 'string' || text === '' || textOf(parts) !== '') return parts
  return [...parts, { type: 'text', text }]
}

interface Finish {
  readonly finishReason: FinishReason
  readonly nativeFinishReason: string | null
}

/**
 * Why a reply ended, with the API's own word: its `status`, for an incomplete reply with the reason behind a colon, as
 * in `incomplete:max_output_tokens`. `failed` and `cancelled` never come here: they are errors.
 */
function finishOf(response: WireObject, parts: readonly AssistantPart[]): Finish {
  const status = typeof response['status'] === 'string' ? response['status'] : null
  if (status === 'incomplete') return incomplete(response['incomplete_details'])
  if (status === 'queued' || status === 'in_progress') return { finishReason: 'error', nativeFinishReason: status }
  // A compatible server may leave the status out.
  const ended = status === null || status === 'completed'
  return { finishReason: ended ? completed(parts) : 'other', nativeFinishReason: status }
}

/** Whatever the reason, and where none is given: it is not the whole reply, and so no answer. */
function incomplete(details: unknown): Finish {
  const reason = isObject(details) && typeof details['reason'] === 'string' ? details['reason'] : null
  const finishReason = INCOMPLETE_REASONS.get(reason ?? '') ?? 'error'
  return { finishReason, nativeFinishReason: reason === null ? 'incomplete' : `incomplete:${reason}` }
}

const INCOMPLETE_REASONS: ReadonlyMap<string, FinishReason> = new Map([
  ['max_output_tokens', 'length'],
  ['max_tokens', 'length'],
  ['content_filter', 'content_filter'],
])

/** The words of a reply's refusals, where it has any. */
function refusalOf(parts: readonly AssistantPart[]): { readonly refusal?: string } {
  const refusal = parts.map((part) => refusalIn(part) ?? '').join('')
  return refusal === '' ? {} : { refusal }
}

function completed(parts: readonly AssistantPart[]): FinishReason {
  if (parts.some((part) => refusalIn(part) !== undefined)) return 'refusal'
  if (parts.some(isCutCall)) return 'length'
  return parts.some((part) => part.type === 'tool_call') ? 'tool_calls' : 'stop'
}

/** The words of a part that is a refusal, which may be empty. */
function refusalIn(part: AssistantPart): string | undefined {
  const native = part.type === 'opaque' ? nativeDataOf(part) : undefined
  if (native?.kind !== 'block' || native.block['type'] !== 'refusal') return undefined
  return stringOf(native.block['refusal'])
}

/** A call whose arguments stop short, in a reply that calls itself complete. */
function isCutCall(part: AssistantPart): boolean {
  const native = part.type === 'tool_call' ? nativeDataOf(part) : undefined
  return native?.kind === 'item' && native.item['status'] === 'incomplete'
}

/** Token counts of a reply's `usage`; null where it says nothing or no whole number (PR-19, PR-21). Input includes the cache's. */
function usageOf(usage: unknown): TokenUsage {
  if (!isObject(usage)) return UNREPORTED_USAGE
  const input = detailsOf(usage['input_tokens_details'] ?? usage['prompt_tokens_details'])
  const output = detailsOf(usage['output_tokens_details'] ?? usage['completion_tokens_details'])
  return {
    inputTokens: count(usage['input_tokens'] ?? usage['prompt_tokens']),
    outputTokens: count(usage['output_tokens'] ?? usage['completion_tokens']),
    cacheReadTokens: count(input['cached_tokens']),
    cacheWriteTokens: count(input['cache_write_tokens']),
    reasoningTokens: count(output['reasoning_tokens']),
  }
}

function detailsOf(details: unknown): Readonly<Record<string, unknown>> {
  return isObject(details) ? details : {}
}

function count(tokens: unknown): number | null {
  return typeof tokens === 'number' && Number.isInteger(tokens) ? tokens : null
}
