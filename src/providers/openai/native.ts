import type { AssistantPart, NativePart } from '../../contracts/entry.js'
import { isObject } from '../../util/json.js'
import type { JsonObject } from '../../util/json.js'

/** Name of the provider in entries, events and native parts. */
export const PROVIDER = 'openai'

/**
 * The data that a part keeps of the reply, to be sent back in its place:
 * - `item`: a whole item of the output. For a tool call, without the fields of the part itself.
 * - `block`: a block of a message's content, without the text of the part itself. The first block of a message also has
 *   the message, without its content; the others belong to the same message.
 *
 * A refusal is an opaque part: its text is in `block.refusal`.
 */
export type NativeData =
  | { readonly kind: 'item'; readonly item: JsonObject }
  | { readonly kind: 'block'; readonly block: JsonObject; readonly message?: JsonObject }

export function nativeOf(data: NativeData): NativePart {
  return { provider: PROVIDER, data: { ...data } }
}

/** The data of this provider in `part`; undefined for a part of another provider, or with invalid data. */
export function nativeDataOf({ native }: AssistantPart): NativeData | undefined {
  if (native?.provider !== PROVIDER || !isObject(native.data)) return undefined
  const { kind, item, block, message } = native.data
  if (kind === 'item' && isObject(item)) return { kind, item }
  if (kind !== 'block' || !isObject(block)) return undefined
  return { kind, block, ...(isObject(message) && { message }) }
}
