import { addTokens, UNREPORTED_USAGE } from '#contracts/entry.js'
import type { NativePart, TokenUsage } from '#contracts/entry.js'
import { isObject } from '#util/json.js'
import type { JsonObject } from '#util/json.js'
import { errorFromBody, errorWithin, providerError } from '../http/provider-errors.js'
import type { Compactor } from '../http/wire-format.js'
import { objectsIn, stringIn, without } from '../wire/wire-fields.js'
import { isError, tokenUsage } from './reply.js'
import { PROVIDER } from './models.js'

/**
 * Compaction on demand: the answer is one signed block with a summary. It is sent back as it is, first in the messages, in place of
 * those that it summarizes.
 */
export const compactor: Compactor = {
  path: '/v1/messages',
  headers: { 'anthropic-beta': 'compact-2026-09-04' },
  request(whole) {
    const {
      tool_choice: choice,
      output_config: output,
      ...rest
    } = without(whole, 'stop_sequences', 'context_management')
    const isForced = isObject(choice) && (choice['type'] === 'any' || choice['type'] === 'tool')
    const config = isObject(output) ? without(output, 'format') : {}
    return {
      ...rest,
      ...(choice !== undefined && !isForced && { tool_choice: choice }),
      ...(Object.keys(config).length > 0 && { output_config: config }),
      compaction: { type: 'summarize' },
    }
  },
  decode(reply) {
    if (isError(reply)) throw errorFromBody(200, {}, reply)
    const block = isObject(reply) ? objectsIn(reply['content']).find(({ type }) => type === 'compaction') : undefined
    const text = stringIn(block?.['content'])
    if (!isObject(reply) || block === undefined || text.trim() === '')
      throw errorWithin(reply) ?? providerError('The provider sent no compaction.', {})
    return { data: block as JsonObject, text, usage: compactionUsage(reply['usage']) }
  },
}

/** The block in place of a conversation; null for another provider's. */
export function compactionBlock({ provider, data }: NativePart): JsonObject | null {
  return provider === PROVIDER && isObject(data) ? data : null
}

/** The tokens of a compaction are in `iterations` only. */
function compactionUsage(usage: unknown): TokenUsage {
  const iterations = isObject(usage) ? objectsIn(usage['iterations']) : []
  if (iterations.length === 0) return tokenUsage(usage)
  return iterations.map(tokenUsage).reduce(addTokens, UNREPORTED_USAGE)
}
