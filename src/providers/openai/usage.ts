import { UNREPORTED_USAGE } from '../../contracts/entry.js'
import type { TokenUsage } from '../../contracts/entry.js'
import { isObject } from '../../util/json.js'

/** Token counts of a reply's `usage`; null where it says nothing or no whole number (PR-19, PR-21). Input includes the cache's. */
export function usageOf(usage: unknown): TokenUsage {
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
