import type { AssistantPart } from '../../contracts/entry.js'
import { isJsonObject, native, REASONING_FIELDS } from './native.js'
import { listIn, stringIn } from './read.js'
import type { Fields } from './read.js'

/**
 * The reasoning of a message. Its details are what must be replayed; the plain text stands beside them for reading, and
 * is a part of its own only where the details show none.
 */
export function decodeReasoning(message: Fields, provider: string): AssistantPart[] {
  const details = listIn(message['reasoning_details']).filter(isJsonObject)
  const parts = details.map((value): AssistantPart => {
    return { type: 'reasoning', text: textOfDetail(value), native: native(provider, { form: 'detail', value }) }
  })
  if (details.some((detail) => textOfDetail(detail) !== '')) return parts
  const field = REASONING_FIELDS.find((name) => stringIn(message[name]) !== '')
  if (field === undefined) return parts
  const plain = native(provider, { form: 'field', value: field })
  return [{ type: 'reasoning', text: stringIn(message[field]), native: plain }, ...parts]
}

/** What an entry of `reasoning_details` shows; an encrypted one shows nothing. */
export function textOfDetail(detail: Fields): string {
  return stringIn(detail['text']) || stringIn(detail['summary'])
}
