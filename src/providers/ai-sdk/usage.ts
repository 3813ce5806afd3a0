import type { TokenUsage } from '../../contracts/entry.js'
import { UNREPORTED_USAGE } from '../../contracts/entry.js'
import { isObject } from '../../util/json.js'
import type { Fields } from './wire.js'

/** Token counts in the form of any version; what is missing or no number is null. */
export function tokenUsage(usage: unknown, providerMetadata: unknown): TokenUsage {
  if (!isObject(usage)) return UNREPORTED_USAGE
  const { inputTokens: input, outputTokens: output } = usage
  return isObject(input) || isObject(output)
    ? nestedUsage(isObject(input) ? input : {}, isObject(output) ? output : {}, usage['raw'])
    : flatUsage(usage, providerMetadata)
}

/** `v3` and `v4`. Providers say 0 of what their API did not tell; what it told is beside it, as `raw`. */
function nestedUsage(input: Fields, output: Fields, raw: unknown): TokenUsage {
  const told = (value: unknown, names: RegExp): number | null => {
    const number = count(value)
    return number === 0 && isObject(raw) && !hasCount(raw, names) ? null : number
  }
  return {
    inputTokens: count(input['total']),
    outputTokens: count(output['total']),
    cacheReadTokens: told(input['cacheRead'], /cache(?!.*(?:creat|writ))/i),
    cacheWriteTokens: told(input['cacheWrite'], /cache.*(?:creat|writ)/i),
    ...longWrites(raw),
    reasoningTokens: told(output['reasoning'], /reason|th(?:ink|ought)/i),
  }
}

/** Whether an API's own usage has a number of such a name, in itself or in its details. */
function hasCount(raw: Fields, names: RegExp): boolean {
  return Object.entries(raw).some(([name, value]) =>
    isObject(value) ? hasCount(value, names) : typeof value === 'number' && names.test(name),
  )
}

/** `v2`, in which Anthropic's input tokens leave out what was read from and written to the cache. */
function flatUsage(usage: Fields, providerMetadata: unknown): TokenUsage {
  const anthropic = isObject(providerMetadata) ? providerMetadata['anthropic'] : undefined
  const cacheReadTokens = count(usage['cachedInputTokens'])
  const cacheWriteTokens = isObject(anthropic) ? count(anthropic['cacheCreationInputTokens']) : null
  const beside = isObject(anthropic) ? (cacheReadTokens ?? 0) + (cacheWriteTokens ?? 0) : 0
  const input = count(usage['inputTokens'])
  return {
    inputTokens: input === null ? null : input + beside,
    outputTokens: count(usage['outputTokens']),
    cacheReadTokens,
    cacheWriteTokens,
    ...longWrites(isObject(anthropic) ? anthropic['usage'] : undefined),
    reasoningTokens: count(usage['reasoningTokens']),
  }
}

/** What Anthropic's API says that is kept for an hour. */
function longWrites(raw: unknown): Pick<TokenUsage, 'longCacheWriteTokens'> {
  const creation = isObject(raw) ? raw['cache_creation'] : undefined
  const longCacheWriteTokens = isObject(creation) ? (count(creation['ephemeral_1h_input_tokens']) ?? 0) : 0
  return longCacheWriteTokens > 0 ? { longCacheWriteTokens } : {}
}

function count(value: unknown): number | null {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 ? value : null
}
