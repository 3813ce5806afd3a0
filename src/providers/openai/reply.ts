import { textOf, UNREPORTED_USAGE } from '#contracts/entry.js'
import type { AssistantPart, FinishReason, TokenUsage } from '#contracts/entry.js'
import { HarnessError } from '#contracts/errors.js'
import { isObject } from '#util/json.js'
import { withoutSecrets } from '#util/secrets.js'
import { errorFromBody, waitsForClient } from '../http/provider-errors.js'
import type { DecodedReply, ReplyFoldOptions } from '../http/wire-format.js'
import { withHostedCalls } from '../hosted/calls.js'
import { ReplyCallIds } from '../wire/call-ids.js'
import { withoutRepeatedCalls } from '../wire/repeated-calls.js'
import { countIn, objectsIn, outputTokens, stringIn } from '../wire/wire-fields.js'
import type { WireFields } from '../wire/wire-fields.js'
import { nativeDataOf, callIdOf, clientItems, outputParts, itemCall } from './output-items.js'

/**
 * A whole reply. A refusal has the finish reason `refusal`; its text is in `refusal` and in an opaque part, not in a text
 * part. Throws `provider_error` for a failed response, and for anything but a response.
 */
export function decodeReply(reply: unknown, { callIdFor }: Pick<ReplyFoldOptions, 'callIdFor'>): DecodedReply {
  const response = responseFields(reply)
  const ids = new ReplyCallIds(callIdFor)
  const parts: AssistantPart[] = []
  for (const [position, item] of withoutRepeatedCalls(objectsIn(response['output']), itemCall).entries())
    parts.push(...outputParts(item, () => ids.take(callIdOf(item), position)))
  return decodedReply(response, parts)
}

/** A response that did not fail, whose output is `parts`. Throws `unexpected_model_behavior` if it waits for the client. */
export function decodedReply(response: WireFields, parts: readonly AssistantPart[]): DecodedReply {
  const waiting = clientItems(parts)
  if (waiting.length > 0) throw waitsForClient(waiting)
  const all = withOutputText(parts, response)
  const refusals: string[] = []
  for (const part of all) refusals.push(...partRefusal(part))
  const refusal = refusals.join('')
  return {
    parts: all,
    ...responseFinish(response, all, refusals.length > 0),
    ...(refusal !== '' && { refusal }),
    usage: withHostedCalls(responseUsage(response['usage']), all),
    responseId: stringIn(response['id']) || null,
    responseModel: stringIn(response['model']) || null,
    raw: response,
  }
}

/** The error of a response that failed or was cancelled; undefined for any other. */
export function responseFailure(response: WireFields): HarnessError | undefined {
  const { status, error } = response
  if (status === 'cancelled') return failed('The provider cancelled the response.')
  if (status !== 'failed') return undefined
  const known = isObject(error) || typeof error === 'string'
  return known ? errorFromBody(200, {}, { error }) : failed('The response failed.')
}

function failed(message: string): HarnessError {
  return new HarnessError('provider_error', message, { failure: 'server' })
}

function responseFields(reply: unknown): WireFields {
  if (!isObject(reply)) throw noResponse(reply)
  const failure = responseFailure(reply)
  if (failure !== undefined) throw failure
  if (Array.isArray(reply['output']) || typeof reply['output_text'] === 'string' || isPending(reply)) return reply
  const isError = ['error', 'detail', 'message'].some((name) => reply[name] !== undefined && reply[name] !== null)
  throw isError ? errorFromBody(200, {}, reply) : noResponse(reply)
}

/** True for a background response without output. */
function isPending({ status }: WireFields): boolean {
  return status === 'queued' || status === 'in_progress'
}

function noResponse(reply: unknown): HarnessError {
  const got = reply === undefined ? 'nothing' : withoutSecrets(JSON.stringify(reply)).slice(0, 200)
  return failed(`Expected a reply of the Responses API with \`output\`, got ${got}.`)
}

/** Some servers send the text only at the top level. */
function withOutputText(parts: readonly AssistantPart[], { output_text: text }: WireFields): readonly AssistantPart[] {
  if (typeof text !== 'string' || text === '' || textOf(parts) !== '') return parts
  return [...parts, { type: 'text', text }]
}

interface Finish {
  readonly finishReason: FinishReason
  readonly nativeFinishReason: string | null
}

/**
 * The finish reason, with the API's own: its `status`, and for an incomplete reply the reason, as in
 * `incomplete:max_output_tokens`. `failed` and `cancelled` are errors.
 */
function responseFinish(response: WireFields, parts: readonly AssistantPart[], isRefusal: boolean): Finish {
  const status = typeof response['status'] === 'string' ? response['status'] : null
  if (status === 'incomplete') return incompleteFinish(response['incomplete_details'])
  if (status === 'queued' || status === 'in_progress') return { finishReason: 'error', nativeFinishReason: status }
  // A compatible server may omit the status.
  const ended = status === null || status === 'completed'
  return { finishReason: ended ? completedReason(parts, isRefusal) : 'other', nativeFinishReason: status }
}

/** With any reason or none, the reply is not complete and so not an answer. */
function incompleteFinish(details: unknown): Finish {
  const reason = isObject(details) && typeof details['reason'] === 'string' ? details['reason'] : null
  const finishReason = INCOMPLETE_REASONS.get(reason ?? '') ?? 'error'
  return { finishReason, nativeFinishReason: reason === null ? 'incomplete' : `incomplete:${reason}` }
}

const INCOMPLETE_REASONS: ReadonlyMap<string, FinishReason> = new Map([
  ['max_output_tokens', 'length'],
  ['max_tokens', 'length'],
  ['content_filter', 'content_filter'],
])

function completedReason(parts: readonly AssistantPart[], isRefusal: boolean): FinishReason {
  if (isRefusal) return 'refusal'
  if (parts.some(isCutCall)) return 'length'
  return parts.some((part) => part.type === 'tool_call') ? 'tool_calls' : 'stop'
}

/** The text of a refusal, which may be empty; undefined for any other part. */
function partRefusal(part: AssistantPart): readonly string[] {
  const native = part.type === 'opaque' ? nativeDataOf(part) : undefined
  if (native?.kind !== 'block' || native.block['type'] !== 'refusal') return []
  return [stringIn(native.block['refusal'])]
}

/** True for a call whose arguments are incomplete in a reply with status `completed`. */
function isCutCall(part: AssistantPart): boolean {
  const native = part.type === 'tool_call' ? nativeDataOf(part) : undefined
  return native?.kind === 'item' && native.item['status'] === 'incomplete'
}

/** Token counts of a reply's `usage`; missing or invalid counts are null (PR-19, PR-21). Input includes cached tokens. */
export function responseUsage(usage: unknown): TokenUsage {
  if (!isObject(usage)) return UNREPORTED_USAGE
  const input = usage['input_tokens_details'] ?? usage['prompt_tokens_details']
  const output = usage['output_tokens_details'] ?? usage['completion_tokens_details']
  const inputTokens = countIn(usage['input_tokens'] ?? usage['prompt_tokens'])
  const reasoningTokens = isObject(output) ? countIn(output['reasoning_tokens']) : null
  const total = countIn(usage['total_tokens'])
  const said = countIn(usage['output_tokens'] ?? usage['completion_tokens'])
  return {
    ...UNREPORTED_USAGE,
    inputTokens,
    outputTokens: outputTokens({ input: inputTokens, output: said, reasoning: reasoningTokens, total }),
    cacheReadTokens: isObject(input) ? countIn(input['cached_tokens']) : null,
    cacheWriteTokens: isObject(input) ? countIn(input['cache_write_tokens']) : null,
    reasoningTokens,
  }
}
