import type { AssistantPart } from '#contracts/entry.js'
import { isObject } from '#util/json.js'
import type { JsonObject, JsonValue } from '#util/json.js'

/** Message fields with reasoning as plain text, by server. If a message has both, they are equal. */
export const REASONING_FIELDS = ['reasoning_content', 'reasoning'] as const

export type ReasoningField = (typeof REASONING_FIELDS)[number]

/**
 * A part's original form and place in the message, for sending it back.
 * `detail`: an entry of `reasoning_details`. `field`: the message field with the reasoning's text. `block`: an element of
 * a `content` list. `call`: the fields of a tool call other than id, name and arguments. `message`: any other field of
 * the message, such as `annotations`.
 */
export type ChatNative =
  | { readonly form: 'detail'; readonly value: JsonObject }
  | { readonly form: 'field'; readonly value: ReasoningField }
  | { readonly form: 'block'; readonly value: JsonObject }
  | { readonly form: 'call'; readonly value: JsonObject }
  | { readonly form: 'message'; readonly value: JsonObject }

/** The original form of `part`; undefined for a part of another provider. */
export function nativeOf(part: AssistantPart, provider: string): ChatNative | undefined {
  const { native } = part
  if (native?.provider !== provider || !isObject(native.data)) return undefined
  const { form, value } = native.data
  if (form === 'field') {
    const field = REASONING_FIELDS.find((name) => name === value)
    return field === undefined ? undefined : { form, value: field }
  }
  const isKnown = form === 'detail' || form === 'block' || form === 'call' || form === 'message'
  return isKnown && isJsonObject(value) ? { form, value } : undefined
}

/** The same, in the form that a part stores. */
export function native(
  provider: string,
  { form, value }: ChatNative,
): { readonly provider: string; readonly data: JsonValue } {
  return { provider, data: { form, value } }
}

/** True for an object; values in parsed JSON are JSON. */
export function isJsonObject(value: unknown): value is JsonObject {
  return isObject(value)
}
