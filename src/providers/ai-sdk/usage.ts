import type { TokenUsage } from '../../contracts/entry.js'
import { UNREPORTED_USAGE } from '../../contracts/entry.js'
import { isObject } from '../../util/json.js'
import { countIn } from '../wire/read.js'
import type { Fields } from '../wire/read.js'

/** Token counts of any version; missing or invalid ones are null. */
export function tokenUsage(usage: unknown, providerMetadata: unknown): TokenUsage {
  if (!isObject(usage)) return UNREPORTED_USAGE
  const { inputTokens: input, outputTokens: output } = usage
  return isObject(input) || isObject(output)
    ? nestedUsage(isObject(input) ? input : {}, isObject(output) ? output : {}, usage['raw'])
    : flatUsage(usage, providerMetadata)
}

/** `v3` and `v4`. Providers report 0 for counts that their API did not report; the API's own usage is in `raw`. */
function nestedUsage(input: Fields, output: Fields, raw: unknown): TokenUsage {
  const reported = (value: unknown, names: RegExp): number | null => {
    const number = countIn(value)
    return number === 0 && isObject(raw) && !hasCount(raw, names) ? null : number
  }
  return {
    inputTokens: countIn(input['total']),
    outputTokens: countIn(output['total']),
    cacheReadTokens: reported(input['cacheRead'], /cache(?!.*(?:creat|writ))/i),
    cacheWriteTokens: reported(input['cacheWrite'], /cache.*(?:creat|writ)/i),
    ...longWrites(raw),
    reasoningTokens: reported(output['reasoning'], /reason|th(?:ink|ought)/i),
  }
}

/** True if an API's own usage has a number with such a name, at any level. */
function hasCount(raw: Fields, names: RegExp): boolean {
  return Object.entries(raw).some(([name, value]) =>
    isObject(value) ? hasCount(value, names) : typeof value === 'number' && names.test(name),
  )
}

/** `v2`, in which Anthropic's input tokens exclude tokens read from and written to the cache. */
function flatUsage(usage: Fields, providerMetadata: unknown): TokenUsage {
  const anthropic = isObject(providerMetadata) ? providerMetadata['anthropic'] : undefined
  const cacheReadTokens = countIn(usage['cachedInputTokens'])
  const cacheWriteTokens = isObject(anthropic) ? countIn(anthropic['cacheCreationInputTokens']) : null
  const cached = isObject(anthropic) ? (cacheReadTokens ?? 0) + (cacheWriteTokens ?? 0) : 0
  const input = countIn(usage['inputTokens'])
  return {
    inputTokens: input === null ? null : input + cached,
    outputTokens: countIn(usage['outputTokens']),
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
