import { UNREPORTED_USAGE } from '#contracts/entry.js'
import type { AssistantPart, FinishReason, NativePart, TokenUsage } from '#contracts/entry.js'
import type { HarnessError } from '#contracts/errors.js'
import { isObject } from '#util/json.js'
import type { JsonObject } from '#util/json.js'
import { providerError } from '../http/provider-errors.js'
import { countIn, isFilled, stringIn, without } from '../wire/wire-fields.js'
import type { WireFields } from '../wire/wire-fields.js'
import { hostedPart } from './hosted.js'
import { PROVIDER } from './models.js'

/** A call of a function: its final id and its arguments as text. */
export interface FunctionCall {
  readonly callId: string
  readonly arguments: string
}

/** The part of a reply as the transcript has it. `call` is that of a `functionCall`; `pages` are those that the reply cites. */
export function assistantPart(part: WireFields, call: FunctionCall | null, pages: string): AssistantPart {
  const { text, functionCall, ...others } = part
  if (call !== null && isObject(functionCall))
    return { type: 'tool_call', name: stringIn(functionCall['name']), ...call, ...nativeOf(others) }
  if (typeof text !== 'string') {
    const hosted = hostedPart(part, pages)
    // An image has its data itself.
    const { inlineData } = part
    const isImage = hosted?.type === 'image' && isObject(inlineData)
    const kept = isImage ? { ...part, inlineData: without(inlineData, 'data') } : part
    return { ...(hosted ?? { type: 'opaque' }), ...googleNative(kept) }
  }
  // A text that is empty is a thought in its sealed form. The mark `thought` itself says whose thought it is.
  if (others['thought'] === true || text === '') return { type: 'reasoning', text, ...googleNative(others) }
  return { type: 'text', text, ...nativeOf(without(others, 'thought')) }
}

function nativeOf(fields: WireFields): { readonly native?: NativePart } {
  return isFilled(fields) ? googleNative(fields) : {}
}

function googleNative(data: WireFields): { readonly native: NativePart } {
  return { native: { provider: PROVIDER, data: data as JsonObject } }
}

/** The API's finish reasons; those that are missing are `other`. */
const FINISH_REASONS = new Map<string, FinishReason>([
  ['STOP', 'stop'],
  ['MAX_TOKENS', 'length'],
  ...'SAFETY RECITATION BLOCKLIST PROHIBITED_CONTENT SPII MODEL_ARMOR JAILBREAK IMAGE_SAFETY IMAGE_PROHIBITED_CONTENT IMAGE_RECITATION'
    .split(' ')
    .map((word) => [word, 'content_filter'] as const),
])

/** The model has written something that the API cannot read: another try may succeed. */
const SPOILED = new Set([
  'MALFORMED_FUNCTION_CALL',
  'UNEXPECTED_TOOL_CALL',
  'MALFORMED_RESPONSE',
  'TOO_MANY_TOOL_CALLS',
])

/** How a reply ended. Throws `provider_error` if what the model wrote cannot be used. */
export function finishReasonOf(word: string, message: string, hasCalls: boolean): FinishReason {
  if (SPOILED.has(word)) throw spoiledReply(word, message)
  const reason = FINISH_REASONS.get(word) ?? 'other'
  return hasCalls && (reason === 'stop' || reason === 'other') ? 'tool_calls' : reason
}

function spoiledReply(word: string, message: string): HarnessError {
  const detail = message === '' || message.includes(word) ? message : `${word}: ${message}`
  return providerError(`Gemini could not finish its reply: ${detail === '' ? word : detail}`, {
    retryable: true,
    failure: 'server',
  })
}

/**
 * The API's `usageMetadata` as token counts. Results of Google's own tools are input, thoughts are output. A count of zero is
 * not sent, as JSON of the API leaves it out.
 */
export function tokenUsage(usage: unknown): TokenUsage {
  if (!isObject(usage)) return UNREPORTED_USAGE
  const prompt = countIn(usage['promptTokenCount'])
  const total = countIn(usage['totalTokenCount'])
  if (prompt === null && total === null) return UNREPORTED_USAGE
  const results = countIn(usage['toolUsePromptTokenCount']) ?? 0
  const thoughts = countIn(usage['thoughtsTokenCount']) ?? 0
  const written = countIn(usage['candidatesTokenCount'])
  // Without a count of the reply, the rest of the total is output: with thoughts, or nothing.
  const rest = total === null || prompt === null ? thoughts : Math.max(total - prompt - results, thoughts)
  return {
    ...UNREPORTED_USAGE,
    inputTokens: prompt === null ? null : prompt + results,
    outputTokens: written === null ? rest : written + thoughts,
    cacheReadTokens: countIn(usage['cachedContentTokenCount']) ?? 0,
    reasoningTokens: thoughts,
  }
}
