import { UNREPORTED_USAGE } from '../../contracts/entry.js'
import type { TokenUsage } from '../../contracts/entry.js'
import { isObject } from '../../util/json.js'

/** A server's usage object as token counts. Input tokens include what was read from and written to a cache (PR-20, PR-21). */
export function usageOf(usage: unknown): TokenUsage {
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
