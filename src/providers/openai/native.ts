import type { AssistantPart, NativePart } from '../../contracts/entry.js'
import { isObject } from '../../util/json.js'
import type { JsonObject } from '../../util/json.js'

/** Name of the provider in entries, events and native parts. */
export const PROVIDER = 'openai'

/** An item of a reply's `output`, or a block of a message, as it came. */
export type WireObject = Readonly<Record<string, unknown>>

/**
 * What a part keeps of the reply, to be sent back in place:
 * - `item`: a whole item of the output. Of a tool call, without what the part itself holds.
 * - `block`: a block of a message's content, without the text that the part itself holds. The first block of a message
 *   has the message beside it, without content; the others belong to the message that is open.
 *
 * A refusal is an opaque part: its words are in `block.refusal`.
 */
export type NativeData =
  | { readonly kind: 'item'; readonly item: JsonObject }
  | { readonly kind: 'block'; readonly block: JsonObject; readonly message?: JsonObject }

export function nativeOf(data: NativeData): NativePart {
  return { provider: PROVIDER, data: { ...data } }
}

/** What `part` keeps of this provider; undefined for a part of another, or of one whose data is not ours. */
export function nativeDataOf({ native }: AssistantPart): NativeData | undefined {
  if (native?.provider !== PROVIDER || !isObject(native.data)) return undefined
  const { kind, item, block, message } = native.data
  if (kind === 'item' && isObject(item)) return { kind, item: item }
  if (kind !== 'block' || !isObject(block)) return undefined
  const own = { kind, block: block } as const
  return isObject(message) ? { ...own, message: message } : own
}

/** `object` without the fields of these names. */
export function without(object: WireObject, ...names: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(object).filter(([name]) => !names.includes(name))) as JsonObject
}

export function stringOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

export function listOf(value: unknown): readonly WireObject[] {
  return Array.isArray(value) ? value.filter(isObject) : []
}
