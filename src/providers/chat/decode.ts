import { UNREPORTED_USAGE } from '../../contracts/entry.js'
import type { AssistantPart, TokenUsage } from '../../contracts/entry.js'
import { isObject, parseJson } from '../../util/json.js'
import type { JsonObject } from '../../util/json.js'
import type { DecodedReply } from '../http/wire.js'
import { finishReasonOf } from './finish.js'
import { cutReply, endedInError, noAnswer, refuseErrorIn, refuseError } from './in-band-error.js'
import { isJsonObject, native } from './native.js'
import { isFilled, listIn, stringIn } from './read.js'
import type { Fields } from './read.js'
import { decodeReasoning } from './reasoning.js'
import { decodeCalls } from './tool-calls.js'

/** What a whole reply says; of several choices, the first (PR-22). `callIds` gives the ids of its calls. */
export function decodeReply(
  reply: unknown,
  provider: string,
  callIds: (given: readonly string[]) => string[],
): DecodedReply {
  refuseError(reply)
  const choice: unknown = isObject(reply) ? listIn(reply['choices'])[0] : undefined
  if (!isObject(reply) || !isObject(choice)) throw noAnswer(reply)
  refuseErrorIn(choice)
  const word = stringIn(choice['finish_reason'])
  const parts = decodeMessage(choice['message'], provider, callIds)
  const refusal = isObject(choice['message']) ? refusalIn(choice['message']) : null
  const finishReason = finishReasonOf(word, stringIn(choice['native_finish_reason']), {
    hasCalls: parts.some((part) => part.type === 'tool_call'),
    hasRefusal: refusal !== null,
  })
  if (finishReason === 'error') throw endedInError(word)
  // Nothing says that the reply is whole, and it is not.
  if (word === '' && parts.some(isCutCall)) throw cutReply()
  return {
    parts,
    finishReason,
    nativeFinishReason: word === '' ? null : word,
    ...(refusal !== null && refusal !== '' && { refusal }),
    usage: usageOf(reply['usage'] ?? choice['usage']),
    responseId: stringIn(reply['id']) || null,
    responseModel: stringIn(reply['model']) || stringIn(choice['model']) || null,
    raw: reply,
  }
}

/** The parts of an assistant message. Its fields have no order, so the parts have one of their own. */
function decodeMessage(
  message: unknown,
  provider: string,
  callIds: (given: readonly string[]) => string[],
): AssistantPart[] {
  if (!isObject(message)) return []
  return [
    ...decodeReasoning(message, provider),
    ...decodeContent(message['content'], provider),
    ...decodeCalls(message, provider, callIds),
    ...decodeOthers(message, provider),
  ]
}

function decodeContent(content: unknown, provider: string): AssistantPart[] {
  if (typeof content === 'string') return content === '' ? [] : [{ type: 'text', text: content }]
  return listIn(content).flatMap((block) => (isJsonObject(block) ? decodeBlock(block, provider) : []))
}

function decodeBlock(block: JsonObject, provider: string): AssistantPart[] {
  const form = native(provider, { form: 'block', value: block })
  if (block['type'] === 'thinking') return [{ type: 'reasoning', text: thinkingIn(block['thinking']), native: form }]
  if (block['type'] !== 'text') return [{ type: 'opaque', native: form }]
  const text = stringIn(block['text'])
  return text === '' ? [] : [{ type: 'text', text }]
}

function isCutCall(part: AssistantPart): boolean {
  return part.type === 'tool_call' && !parseJson(part.arguments).ok
}

/** The words of a refusal, which may be empty; null where the message is none. */
function refusalIn({ refusal, content }: Fields): string | null {
  const blocks = listIn(content).filter((block) => isObject(block) && block['type'] === 'refusal')
  const words = blocks.filter(isObject).map((block) => stringIn(block['refusal']))
  if (stringIn(refusal) !== '') return stringIn(refusal)
  return blocks.length === 0 ? null : words.join('')
}

/** The text of a thinking block, which is a string or a list of text blocks. */
function thinkingIn(thinking: unknown): string {
  if (typeof thinking === 'string') return thinking
  return listIn(thinking)
    .map((part) => (isObject(part) ? stringIn(part['text']) : ''))
    .join('')
}

/** A refusal, and every other field that holds something: annotations, audio, images, what may come. */
function decodeOthers(message: Fields, provider: string): AssistantPart[] {
  return Object.entries(message).flatMap(([name, value]): AssistantPart[] => {
    if (ANSWER_FIELDS.has(name)) return []
    if (name === 'refusal' ? stringIn(value) === '' : !isFilled(value)) return []
    const held: unknown = { [name]: value }
    return isJsonObject(held) ? [{ type: 'opaque', native: native(provider, { form: 'message', value: held }) }] : []
  })
}

/** Fields of a message that are no parts of their own. */
const ANSWER_FIELDS: ReadonlySet<string> = new Set([
  'role',
  'content',
  'reasoning_content',
  'reasoning',
  'reasoning_details',
  'tool_calls',
  'function_call',
])

/** A server's usage object as token counts. Input tokens include what was read from and written to a cache (PR-20, PR-21). */
function usageOf(usage: unknown): TokenUsage {
  if (!isObject(usage)) return UNREPORTED_USAGE
  const input = isObject(usage['prompt_tokens_details']) ? usage['prompt_tokens_details'] : {}
  const output = isObject(usage['completion_tokens_details']) ? usage['completion_tokens_details'] : {}
  return {
    inputTokens: count(usage['prompt_tokens'], usage['input_tokens']),
    outputTokens: count(usage['completion_tokens'], usage['output_tokens']),
    cacheReadTokens: count(input['cached_tokens'], usage['cached_tokens'], usage['prompt_cache_hit_tokens']),
    cacheWriteTokens: count(input['cache_write_tokens']),
    reasoningTokens: count(output['reasoning_tokens'], usage['reasoning_tokens']),
  }
}

/** The first that is a whole number. */
function count(...values: readonly unknown[]): number | null {
  return values.find((value): value is number => Number.isInteger(value)) ?? null
}
