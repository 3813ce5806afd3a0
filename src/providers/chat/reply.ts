import { UNREPORTED_USAGE } from '#contracts/entry.js'
import type { AssistantPart, TokenUsage, FinishReason } from '#contracts/entry.js'
import type { HarnessError } from '#contracts/errors.js'
import { isObject, parseJson } from '#util/json.js'
import { withoutSecrets } from '#util/secrets.js'
import type { JsonObject } from '#util/json.js'
import { errorFromBody, errorWithin, providerError } from '../http/provider-errors.js'
import type { DecodedReply } from '../http/wire-format.js'
import { withHostedCalls } from '../hosted/calls.js'
import { chatImages, withAnnotations } from '../hosted/chat-calls.js'
import { argumentsText, customArguments } from '../wire/call-ids.js'
import { withoutRepeatedCalls } from '../wire/repeated-calls.js'
import type { WireCall } from '../wire/repeated-calls.js'
import { countIn, isFilled, listIn, objectsIn, outputTokens, stringIn, without } from '../wire/wire-fields.js'
import type { WireFields } from '../wire/wire-fields.js'
import { isJsonObject, chatNativePart, REASONING_FIELDS } from './dialect.js'

/** The final id of the call at `index`, whose server gave it `id`. */
type TakeId = (id: string, index: number) => string

/** A whole reply. If it has several choices, the first is used (PR-22). */
export function decodeReply(reply: unknown, provider: string, takeId: TakeId): DecodedReply {
  rejectError(reply)
  const choice: unknown = isObject(reply) ? listIn(reply['choices'])[0] : undefined
  if (!isObject(reply) || !isObject(choice)) throw noAnswer(reply)
  rejectErrorIn(choice)
  const word = stringIn(choice['finish_reason'])
  const message = isObject(choice['message']) ? choice['message'] : {}
  const parts = decodeMessage(message, provider, takeId)
  const refusal = refusalText(message)
  const given = reply['usage'] ?? choice['usage']
  const [usage, reported] = [chatUsage(given), isObject(given) ? given : {}]
  const finishReason = finishReasonOf(word, stringIn(choice['native_finish_reason']), {
    hasCalls: parts.some((part) => part.type === 'tool_call'),
    hasRefusal: refusal !== null,
  })
  if (finishReason === 'error') throw endedInError(word)
  // Without a finish reason, an incomplete call shows that the reply is incomplete.
  if (word === '' && parts.some(isCutCall)) throw cutReply()
  return {
    parts,
    finishReason,
    nativeFinishReason: word === '' ? null : word,
    ...(refusal !== null && refusal !== '' && { refusal }),
    usage: withHostedCalls(usage, [], reported['server_tool_use'] ?? reported['server_tool_use_details']),
    responseId: stringIn(reply['id']) || null,
    responseModel: stringIn(reply['model']) || stringIn(choice['model']) || null,
    raw: reply,
  }
}

/** Throws if `body`, a reply of status 200 or an event of its stream, is or contains an error. */
export function rejectError(body: unknown): void {
  const reply: unknown = Array.isArray(body) ? body[0] : body
  if (!isObject(reply)) return
  rejectErrorIn(reply)
  if (reply['object'] === 'error' || reply['type'] === 'error') throw errorFromBody(200, {}, reply)
  // Without an answer, a message is that of an error.
  const error = Array.isArray(reply['choices']) ? undefined : errorWithin(reply)
  if (error !== undefined) throw error
}

/** The same for a piece of a reply, such as a choice, which may have both an error and a part of the answer. */
export function rejectErrorIn(piece: WireFields): void {
  const { error } = piece
  const isError = isObject(error) ? Object.keys(error).length > 0 : typeof error === 'string' && error !== ''
  if (isError) throw errorFromBody(200, {}, piece)
}

/** A reply that stopped before its end. */
export function cutReply(): HarnessError {
  return providerError('The reply ended before it was complete.', { retryable: true, failure: 'connection' })
}

function endedInError(word: string): HarnessError {
  return providerError(`The provider ended the reply with an error (\`${word}\`).`, {
    retryable: true,
    failure: 'server',
  })
}

function noAnswer(reply: unknown): HarnessError {
  const got = withoutSecrets(JSON.stringify(reply ?? null)).slice(0, 300)
  return providerError(`Expected a chat completion with \`choices\`, got \`${got}\`.`, {
    retryable: true,
    failure: 'server',
  })
}

function isCutCall(part: AssistantPart): boolean {
  return part.type === 'tool_call' && !parseJson(part.arguments).ok
}

/** The text of a refusal, which may be empty; null if there is none. */
function refusalText({ refusal, content }: WireFields): string | null {
  if (stringIn(refusal) !== '') return stringIn(refusal)
  const blocks = objectsIn(content).filter(({ type }) => type === 'refusal')
  return blocks.length === 0 ? null : blocks.map((block) => stringIn(block['refusal'])).join('')
}

/** The parts of an assistant message. Its fields have no order, so the order of the parts is fixed. */
function decodeMessage(message: WireFields, provider: string, takeId: TakeId): AssistantPart[] {
  return [
    ...decodeReasoning(message, provider),
    ...withAnnotations(decodeContent(message['content'], provider), message['annotations']),
    ...chatImages(message['images']).map((image) => ({ ...image, native: chatNativePart(provider, KEPT_APART) })),
    ...messageCalls(message).map((call, index) => decodeCall(call, takeId(stringIn(call['id']), index), provider)),
    ...decodeOthers(message, provider),
  ]
}

/** The details are sent back. The plain text repeats them, and is a part of its own only if the details have no text. */
function decodeReasoning(message: WireFields, provider: string): AssistantPart[] {
  const details = listIn(message['reasoning_details']).filter(isJsonObject)
  const parts = details.map((value): AssistantPart => {
    return { type: 'reasoning', text: textOfDetail(value), native: chatNativePart(provider, { form: 'detail', value }) }
  })
  if (details.some((detail) => textOfDetail(detail) !== '')) return parts
  const field = REASONING_FIELDS.find((name) => stringIn(message[name]) !== '')
  if (field === undefined) return parts
  const plain = chatNativePart(provider, { form: 'field', value: field })
  return [{ type: 'reasoning', text: stringIn(message[field]), native: plain }, ...parts]
}

/** The text of an entry of `reasoning_details`; empty for an encrypted one. */
export function textOfDetail(detail: WireFields): string {
  return stringIn(detail['text']) || stringIn(detail['summary'])
}

/** An image is sent back in the field that it came in. */
const KEPT_APART = { form: 'message', value: {} } as const

function decodeContent(content: unknown, provider: string): AssistantPart[] {
  if (typeof content === 'string') return content === '' ? [] : [{ type: 'text', text: content }]
  return listIn(content).flatMap((block) => (isJsonObject(block) ? decodeBlock(block, provider) : []))
}

function decodeBlock(block: JsonObject, provider: string): AssistantPart[] {
  const form = chatNativePart(provider, { form: 'block', value: block })
  if (block['type'] === 'thinking') return [{ type: 'reasoning', text: thinkingText(block['thinking']), native: form }]
  if (block['type'] !== 'text') return [{ type: 'opaque', native: form }]
  const text = stringIn(block['text'])
  return text === '' ? [] : [{ type: 'text', text }]
}

/** The text of a thinking block, which is a string or a list of text blocks. */
function thinkingText(thinking: unknown): string {
  if (typeof thinking === 'string') return thinking
  return objectsIn(thinking)
    .map((part) => stringIn(part['text']))
    .join('')
}

/** The calls of a message. A message of the old form has one `function_call`, without an id. */
function messageCalls(message: WireFields): readonly JsonObject[] {
  const calls = withoutRepeatedCalls(listIn(message['tool_calls']).filter(isJsonObject), sentCall)
  if (calls.length > 0) return calls
  const old: unknown = { function: message['function_call'] }
  return isJsonObject(old) && isObject(old['function']) && stringIn(old['function']['name']) !== '' ? [old] : []
}

function sentCall({ id, function: func, custom }: WireFields): WireCall | null {
  const body = isObject(func) ? func : custom
  if (!isObject(body)) return null
  const given = body['arguments'] ?? body['input'] ?? ''
  return { id: stringIn(id), name: stringIn(body['name']), text: given === '' ? '' : argumentsText(given) }
}

function decodeCall(call: JsonObject, callId: string, provider: string): AssistantPart {
  const isCustom = call['type'] === 'custom'
  const body = isCustom ? call['custom'] : call['function']
  if (!isObject(body)) {
    return { type: 'opaque', native: chatNativePart(provider, { form: 'message', value: { tool_calls: [call] } }) }
  }
  const isSpecial = !['', 'function'].includes(stringIn(call['type']))
  const others = without(call, 'id', 'index', 'function', 'custom', ...(isSpecial ? [] : ['type']))
  return {
    type: 'tool_call',
    callId,
    name: stringIn(body['name']),
    arguments: isCustom ? customArguments(stringIn(body['input'])) : argumentsText(body['arguments']),
    ...(isFilled(others) && { native: chatNativePart(provider, { form: 'call', value: others }) }),
  }
}

/** A refusal, and every other field with content: annotations, audio, images and future fields. */
function decodeOthers(message: WireFields, provider: string): AssistantPart[] {
  return Object.entries(message).flatMap(([name, value]): AssistantPart[] => {
    if (ANSWER_FIELDS.has(name)) return []
    if (name === 'refusal' ? stringIn(value) === '' : !isFilled(value)) return []
    const field: unknown = { [name]: value }
    return isJsonObject(field)
      ? [{ type: 'opaque', native: chatNativePart(provider, { form: 'message', value: field }) }]
      : []
  })
}

/** Fields of a message that other functions decode. */
const ANSWER_FIELDS: ReadonlySet<string> = new Set([
  'role',
  'content',
  'reasoning_content',
  'reasoning',
  'reasoning_details',
  'tool_calls',
  'function_call',
])

/** A server's usage object as token counts. Input tokens include tokens read from and written to a cache (PR-20, PR-21). */
export function chatUsage(usage: unknown): TokenUsage {
  if (!isObject(usage)) return UNREPORTED_USAGE
  const input = isObject(usage['prompt_tokens_details']) ? usage['prompt_tokens_details'] : {}
  const output = isObject(usage['completion_tokens_details']) ? usage['completion_tokens_details'] : {}
  const inputTokens = firstCount(usage['prompt_tokens'], usage['input_tokens'])
  const reasoningTokens = firstCount(output['reasoning_tokens'], usage['reasoning_tokens'])
  const counts = { input: inputTokens, reasoning: reasoningTokens, total: countIn(usage['total_tokens']) }
  const cacheReadTokens = firstCount(
    input['cached_tokens'],
    usage['cached_tokens'],
    usage['prompt_cache_hit_tokens'],
    usage['cache_read_input_tokens'],
  )
  const cacheWriteTokens = firstCount(
    input['cache_write_tokens'],
    input['cache_creation_tokens'],
    input['cache_creation_input_tokens'],
    usage['cache_creation_input_tokens'],
  )
  const all = (cacheReadTokens ?? 0) + (cacheWriteTokens ?? 0)
  return {
    ...UNREPORTED_USAGE,
    cacheReadTokens,
    cacheWriteTokens,
    // As in Anthropic's API, some count what is cached beside the rest.
    inputTokens: inputTokens !== null && all > inputTokens ? inputTokens + all : inputTokens,
    outputTokens: outputTokens({ ...counts, output: firstCount(usage['completion_tokens'], usage['output_tokens']) }),
    reasoningTokens,
  }
}

function firstCount(...values: readonly unknown[]): number | null {
  return values.map(countIn).find((count) => count !== null) ?? null
}

/** The content of a reply, as far as it determines the finish reason. */
interface ReplyContent {
  readonly hasCalls: boolean
  readonly hasRefusal: boolean
}

/**
 * The finish reason of a reply. Servers label replies unreliably: one with tool calls may have `stop` or nothing, a refusal
 * always has `stop`. `upstream` is the word of the provider behind a gateway.
 */
function finishReasonOf(word: string, upstream: string, { hasCalls, hasRefusal }: ReplyContent): FinishReason {
  const reason = REASONS.get(word.toLowerCase()) ?? 'other'
  if (reason !== 'stop' && reason !== 'other') return reason
  if (hasRefusal || upstream.toLowerCase() === 'refusal') return 'refusal'
  return hasCalls ? 'tool_calls' : reason
}

/** The words of OpenAI and other servers, by finish reason. */
const WORDS_BY_REASON: readonly (readonly [FinishReason, string])[] = [
  ['stop', 'stop eos eos_token stop_token end_turn stop_sequence completed complete'],
  ['tool_calls', 'tool_calls function_call function_calls tool_call tool_use'],
  ['length', 'length max_tokens max_output_tokens max_completion_tokens max_new_tokens model_length'],
  ['length', 'model_context_window_exceeded'],
  ['content_filter', 'content_filter content_filtered sensitive safety image_safety prohibited_content'],
  ['content_filter', 'blocklist spii guardrail_intervened recitation'],
  ['refusal', 'refusal'],
  ['pause', 'pause_turn'],
  ['error', 'error abort aborted cancelled network_error insufficient_system_resource'],
]

const REASONS: ReadonlyMap<string, FinishReason> = new Map(
  WORDS_BY_REASON.flatMap(([reason, words]) => words.split(' ').map((word) => [word, reason] as const)),
)
