import type { NativePart } from '#contracts/entry.js'
import { isObject } from '#util/json.js'
import type { JsonObject } from '#util/json.js'
import { errorWithin, providerError } from '../http/provider-errors.js'
import type { Compactor } from '../http/wire-format.js'
import { objectsIn, stringIn, without } from '../wire/wire-fields.js'
import type { WireFields } from '../wire/wire-fields.js'
import { responseFailure, responseUsage } from './reply.js'
import { PROVIDER } from './models.js'

/** The fields of a request that the endpoint takes too. */
const FIELDS = ['model', 'input', 'instructions', 'prompt_cache_key', 'prompt_cache_retention', 'service_tier']

/**
 * `POST /responses/compact`: the answer is the next window, the messages of the user followed by an encrypted item that holds the
 * rest. It is sent back as it is, in place of the conversation.
 */
export const compactor: Compactor = {
  path: '/responses/compact',
  headers: {},
  request: (whole) => without(whole, ...Object.keys(whole).filter((name) => !FIELDS.includes(name))),
  decode(reply) {
    const output = isObject(reply) ? objectsIn(reply['output']) : []
    if (!isObject(reply) || !output.some(({ type }) => type === 'compaction')) {
      const failure = isObject(reply) ? (responseFailure(reply) ?? errorWithin(reply)) : undefined
      throw failure ?? providerError('The provider sent no compaction.', {})
    }
    const items = output.map(inputItem)
    return { data: { items }, text: messagesText(items), usage: responseUsage(reply['usage']) }
  },
}

/** The items in place of a conversation; null for another provider's. */
export function compactedItems({ provider, data }: NativePart): readonly JsonObject[] | null {
  if (provider !== PROVIDER || !isObject(data)) return null
  return objectsIn(data['items']) as readonly JsonObject[]
}

/** The API rejects ids of messages that it has not stored. */
function inputItem(item: WireFields): JsonObject {
  return (item['type'] === 'message' ? without(item, 'id', 'status') : item) as JsonObject
}

/** The text of the messages. */
function messagesText(items: readonly JsonObject[]): string {
  const blocks = items.flatMap(({ content }) => objectsIn(content))
  return blocks
    .map(({ text }) => stringIn(text))
    .filter((text) => text !== '')
    .join('\n\n')
}
