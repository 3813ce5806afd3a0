import { providerError, waitsForClient } from '../http/provider-errors.js'
import type { DecodedReply, ReplyFoldOptions } from '../http/wire-format.js'
import { argumentsText, ReplyCallIds } from '../wire/call-ids.js'
import { withoutRepeatedCalls } from '../wire/repeated-calls.js'
import type { WireCall } from '../wire/repeated-calls.js'
import { aiSdkHostedPart, withSources } from '../hosted/ai-sdk-calls.js'
import { withHostedCalls } from '../hosted/calls.js'
import { without, listIn, objectsIn, outputTokens, stringIn, countIn } from '../wire/wire-fields.js'
import type { WireFields } from '../wire/wire-fields.js'
import type { ProviderTraits } from './provider-traits.js'
import type { AssistantPart, FinishReason, TokenUsage, NativePart } from '#contracts/entry.js'
import { UNREPORTED_USAGE } from '#contracts/entry.js'
import type { HarnessError } from '#contracts/errors.js'
import { base64Of } from '#util/bytes.js'
import { isObject } from '#util/json.js'
import type { JsonObject, JsonValue } from '#util/json.js'

interface DecodeRules {
  /** As in `NativePart.provider`. */
  readonly provider: string
  readonly traits: ProviderTraits
}

/** The result of `doGenerate`, without the request, which contains the whole conversation. */
export function generatedReply(result: unknown, { callIdFor }: Pick<ReplyFoldOptions, 'callIdFor'>): AiSdkReply {
  if (!isObject(result) || !Array.isArray(result['content'])) {
    throw providerError('The result of the language model is not a reply: it has no `content`.', { failure: 'server' })
  }
  const { finishReason, usage, providerMetadata, response, warnings } = result
  const ids = new ReplyCallIds(callIdFor)
  return {
    content: withoutRepeatedCalls(objectsIn(result['content']), partCall).map((part) =>
      isOwnCall(part) ? { ...part, toolCallId: ids.take(part['toolCallId']) } : part,
    ),
    finishReason,
    usage,
    providerMetadata,
    response: isObject(response) ? response : {},
    warnings: listIn(warnings),
  }
}

/** A reply whose calls have their final ids. Throws `provider_error` if the provider ended it in an error. */
export function decodeReply(reply: AiSdkReply, rules: DecodeRules): DecodedReply {
  const failure = endedInError(reply.finishReason)
  if (failure !== null) throw failure
  if (reply.content.some(({ type }) => type === APPROVAL)) throw waitsForClient([APPROVAL])
  const all = reply.content.map((part) => assistantPart(part, rules.provider)).filter((part) => part !== null)
  const parts = withSources(all, sourcesIn(all, rules.provider))
  const hasCalls = parts.some((part) => part.type === 'tool_call')
  return {
    parts,
    ...replyFinish(reply.finishReason, hasCalls, rules.traits.filterWord),
    usage: withHostedCalls(tokenUsage(reply.usage, reply.providerMetadata), parts),
    responseId: stringIn(reply.response['id']) || null,
    responseModel: stringIn(reply.response['modelId']) || null,
    raw: reply,
  }
}

/** A call of the provider's own tool that a person has to approve. */
const APPROVAL = 'tool-approval-request'

/** True for a call of a tool of the harness, false for one that the provider executes itself. */
export function isOwnCall(part: WireFields): boolean {
  return part['type'] === 'tool-call' && part['providerExecuted'] !== true
}

/** A call as the provider names it; null for any other part. */
export function partCall(part: object): WireCall | null {
  const { toolCallId: id, toolName: name, input }: WireFields = { ...part }
  return isOwnCall({ ...part }) ? { id: stringIn(id), name: stringIn(name), text: argumentsText(input) } : null
}

/** Null for an empty text, and for a result that another one replaces. */
function assistantPart(part: WireFields, provider: string): AssistantPart | null {
  const { type, text, providerMetadata } = part
  const metadata = isObject(providerMetadata) ? { providerMetadata } : null
  const own = metadata === null ? {} : nativeForm(provider, metadata)
  switch (type) {
    case 'text':
      if (isCompaction(providerMetadata)) return compactionPart(part, provider)
      return text === '' && metadata === null ? null : { type, text: stringIn(text), ...own }
    case 'reasoning':
      return { type, text: stringIn(text), ...nativeForm(provider, metadata ?? {}) }
    case 'tool-call': {
      if (!isOwnCall(part)) break
      const { toolCallId, toolName, input } = part
      const call = { callId: stringIn(toolCallId), name: stringIn(toolName), arguments: argumentsText(input) }
      return { type: 'tool_call', ...call, ...own }
    }
    case 'tool-result':
      if (part['preliminary'] === true) return null
  }
  const hosted = aiSdkHostedPart({ ...part, data: plainJson(part['data']) })
  const kept = hosted?.type === 'image' && 'data' in hosted ? without(part, 'data') : part
  return { ...(hosted ?? { type: 'opaque' }), ...nativeForm(provider, kept) }
}

/** The sources that came as parts of their own, by place. */
function sourcesIn(parts: readonly AssistantPart[], provider: string): readonly (readonly [number, JsonObject])[] {
  return parts.flatMap((part, index) => {
    const own = part.type === 'opaque' ? nativeData(part, provider) : null
    return own?.['type'] === 'source' ? [[index, own] as const] : []
  })
}

/**
 * A summary in place of the conversation so far, which the AI SDK gives as text. It is no part of the answer, and only this
 * provider gets it back.
 */
function compactionPart({ text, providerMetadata }: WireFields, provider: string): AssistantPart {
  return { type: 'opaque', ...nativeForm(provider, { type: 'compaction', content: text, providerMetadata }) }
}

interface Finish {
  readonly finishReason: FinishReason
  /** Null for `v2`, which has no field for it. */
  readonly nativeFinishReason: string | null
}

/**
 * The finish reason of a reply. The specification has fewer reasons, with `stop` for a pause and `content-filter` for a
 * refusal, so the provider's own word takes precedence. A reply with tool calls has `tool_calls` in place of `stop`.
 * `filterWord`: see `ProviderTraits`.
 */
export function replyFinish(given: unknown, hasCalls: boolean, filterWord?: string): Finish {
  const { word, native } = finishWords(given)
  const unified = WORDS.get(word) ?? 'other'
  const isFiltered = unified === 'content_filter' && isObject(given)
  const isRefusal = isFiltered && filterWord !== undefined && native !== filterWord
  const finishReason = isRefusal ? 'refusal' : (NATIVE_WORDS.get(native) ?? unified)
  return {
    finishReason: hasCalls && finishReason === 'stop' ? 'tool_calls' : finishReason,
    nativeFinishReason: native === '' ? null : native,
  }
}

/**
 * The error of a reply that the provider ended in an error; null for any other reply. Providers of the AI SDK give words
 * that they do not know as `other`, such as `error` of a gateway.
 */
function endedInError(given: unknown): HarnessError | null {
  const { word, native } = finishWords(given)
  if (word !== 'error' && !ERROR_WORDS.test(native)) return null
  return providerError(`The provider ended the reply with an error (\`${native || word}\`).`, {
    retryable: true,
    failure: 'server',
  })
}

const ERROR_WORDS = /^(error|failed|abort|aborted|cancelled|network_error|insufficient_system_resource)$/i

/**
 * True if a stream ended without the provider's finish reason: it was cut. Some providers close it as if it were
 * complete, with `other`, `unknown` or `interrupted`, and no reason of the API.
 */
export function isCut(given: unknown): boolean {
  const { word, native } = finishWords(given)
  return (
    word === 'interrupted' ||
    (native === '' && (word === '' || word === 'unknown' || (word === 'other' && isObject(given))))
  )
}

/** `v2` has a word, later versions also the provider's own. */
function finishWords(given: unknown): { readonly word: string; readonly native: string } {
  return isObject(given)
    ? { word: stringIn(given['unified']), native: stringIn(given['raw']) }
    : { word: stringIn(given), native: '' }
}

const WORDS: ReadonlyMap<string, FinishReason> = new Map([
  ['stop', 'stop'],
  ['length', 'length'],
  ['tool-calls', 'tool_calls'],
  ['content-filter', 'content_filter'],
])

const NATIVE_WORDS: ReadonlyMap<string, FinishReason> = new Map([
  ['refusal', 'refusal'],
  ['pause_turn', 'pause'],
  // After a compaction only, Anthropic continues the reply when it is sent back.
  ['compaction', 'pause'],
  ['model_context_window_exceeded', 'length'],
])

/** Token counts of any version; missing or invalid ones are null. */
function tokenUsage(usage: unknown, providerMetadata: unknown): TokenUsage {
  if (!isObject(usage)) return UNREPORTED_USAGE
  const { inputTokens: input, outputTokens: output } = usage
  return isObject(input) || isObject(output)
    ? nestedUsage(isObject(input) ? input : {}, isObject(output) ? output : {}, usage['raw'])
    : flatUsage(usage, providerMetadata)
}

/** `v3` and `v4`. Providers report 0 for counts that their API did not report; the API's own usage is in `raw`. */
function nestedUsage(input: WireFields, output: WireFields, raw: unknown): TokenUsage {
  const reported = (value: unknown, names: RegExp): number | null => {
    const number = countIn(value)
    return number === 0 && isObject(raw) && !hasCount(raw, names) ? null : number
  }
  return {
    ...UNREPORTED_USAGE,
    inputTokens: countIn(input['total']),
    outputTokens: outputTokens({
      input: countIn(input['total']),
      output: countIn(output['total']),
      reasoning: countIn(output['reasoning']),
      total: isObject(raw) ? countIn(raw['total_tokens']) : null,
    }),
    cacheReadTokens: reported(input['cacheRead'], /cache(?!.*(?:creat|writ))/i),
    cacheWriteTokens: reported(input['cacheWrite'], /cache.*(?:creat|writ)/i),
    ...longWrites(raw),
    reasoningTokens: reported(output['reasoning'], /reason|th(?:ink|ought)/i),
  }
}

/** True if an API's own usage has a number with such a name, at any level. */
function hasCount(raw: WireFields, names: RegExp): boolean {
  return Object.entries(raw).some(([name, value]) =>
    isObject(value) ? hasCount(value, names) : typeof value === 'number' && names.test(name),
  )
}

/** `v2`, in which Anthropic's input tokens exclude tokens read from and written to the cache. */
function flatUsage(usage: WireFields, providerMetadata: unknown): TokenUsage {
  const anthropic = isObject(providerMetadata) ? providerMetadata['anthropic'] : undefined
  const cacheReadTokens = countIn(usage['cachedInputTokens'])
  const cacheWriteTokens = isObject(anthropic) ? countIn(anthropic['cacheCreationInputTokens']) : null
  const cached = isObject(anthropic) ? (cacheReadTokens ?? 0) + (cacheWriteTokens ?? 0) : 0
  const input = countIn(usage['inputTokens'])
  return {
    ...UNREPORTED_USAGE,
    inputTokens: input === null ? null : input + cached,
    outputTokens: outputTokens({
      input,
      output: countIn(usage['outputTokens']),
      reasoning: countIn(usage['reasoningTokens']),
      total: countIn(usage['totalTokens']),
    }),
    cacheReadTokens,
    cacheWriteTokens,
    ...longWrites(isObject(anthropic) ? anthropic['usage'] : undefined),
    reasoningTokens: countIn(usage['reasoningTokens']),
  }
}

/** Tokens that Anthropic's API caches for an hour. */
function longWrites(raw: unknown): Pick<TokenUsage, 'longCacheWriteTokens'> {
  const creation = isObject(raw) ? raw['cache_creation'] : undefined
  const longCacheWriteTokens = isObject(creation) ? (countIn(creation['ephemeral_1h_input_tokens']) ?? 0) : 0
  return longCacheWriteTokens > 0 ? { longCacheWriteTokens } : {}
}

/** A reply in the form of `doGenerate`, which is also the sum of a stream, in any version. Unchecked. */
export interface AiSdkReply {
  readonly content: readonly WireFields[]
  readonly finishReason: unknown
  readonly usage: unknown
  readonly providerMetadata: unknown
  /** `id`, `modelId`, `timestamp`, `headers`, and of a whole reply its `body`. */
  readonly response: WireFields
  readonly warnings: readonly unknown[]
}

/**
 * The data that a part keeps of the reply. For text, reasoning and calls: `providerMetadata`, if there is any. For an
 * opaque part: the whole part.
 */
function nativeForm(provider: string, data: WireFields): { readonly native: NativePart } {
  return { native: { provider, data: plainJson(data) } }
}

/** True for the metadata of a text that is a summary of the conversation, made by the provider itself. */
export function isCompaction(providerMetadata: unknown): boolean {
  const spaces: readonly unknown[] = isObject(providerMetadata) ? Object.values(providerMetadata) : []
  return spaces.some((space) => isObject(space) && space['type'] === 'compaction')
}

/** The data of this provider in a part; null for a part of another provider. */
export function nativeData(part: { readonly native?: NativePart }, provider: string): JsonObject | null {
  const { native } = part
  return native?.provider === provider && isObject(native.data) ? native.data : null
}

/** A value of a provider as plain JSON: bytes as base64, URLs and dates as strings. */
function plainJson(value: unknown): JsonValue {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value
  if (typeof value === 'number') return Number.isFinite(value) ? value : null
  if (typeof value === 'bigint') return String(value)
  if (value instanceof Uint8Array) return base64Of(value)
  if (value instanceof URL) return value.href
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : value.toISOString()
  if (Array.isArray(value)) return value.map(plainJson)
  if (!isObject(value)) return null
  const fields = Object.entries(value).filter(([, field]) => field !== undefined && typeof field !== 'function')
  return Object.fromEntries(fields.map(([name, field]) => [name, plainJson(field)]))
}
