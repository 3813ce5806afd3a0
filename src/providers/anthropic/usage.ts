import type { TokenUsage } from '../../contracts/entry.js'
import { UNREPORTED_USAGE } from '../../contracts/entry.js'
import { isObject } from '../../util/json.js'

/**
 * The API's `usage` as token counts. Its `input_tokens` leaves out what was read from and written to the cache, so the
 * three are added up. What is missing or no whole number is null (PR-18, PR-21).
 */
export function tokenUsage(usage: unknown): TokenUsage {
  if (!isObject(usage)) return UNREPORTED_USAGE
  const fresh = count(usage['input_tokens'])
  const cacheReadTokens = count(usage['cache_read_input_tokens'])
  const cacheWriteTokens = count(usage['cache_creation_input_tokens'])
  const longCacheWriteTokens = longWrites(usage['cache_creation'])
  const details = usage['output_tokens_details']
  return {
    inputTokens: fresh === null ? null : fresh + (cacheReadTokens ?? 0) + (cacheWriteTokens ?? 0),
    outputTokens: count(usage['output_tokens']),
    cacheReadTokens,
    cacheWriteTokens,
    ...(longCacheWriteTokens > 0 && { longCacheWriteTokens }),
    reasoningTokens: isObject(details) ? count(details['thinking_tokens']) : null,
  }
}

/** What was written to be kept for an hour. */
function longWrites(creation: unknown): number {
  return isObject(creation) ? (count(creation['ephemeral_1h_input_tokens']) ?? 0) : 0
}

function count(value: unknown): number | null {
  return typeof value === 'number' && Number.isInteger(value) ? value : null
}
