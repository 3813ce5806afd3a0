import type { AssistantPart } from '../../contracts/entry.js'
import { isObject } from '../../util/json.js'
import type { JsonObject, JsonValue } from '../../util/json.js'

/** Message fields that hold reasoning as plain text, by server; where both are sent they say the same. */
export const REASONING_FIELDS = ['reasoning_content', 'reasoning'] as const

export type ReasoningField = (typeof REASONING_FIELDS)[number]

/**
 * A part's own form in this API: where in the message it stood, so that it can be put back there.
 * `detail`: an entry of `reasoning_details`. `field`: the message field that held the reasoning's text. `block`: an
 * element of a list as `content`. `call`: what a tool call had beside id, name and arguments. `message`: a field of the
 * message that is no answer, such as `annotations`.
 */
export type ChatNative =
  | { readonly form: 'detail'; readonly value: JsonObject }
  | { readonly form: 'field'; readonly value: ReasoningField }
  | { readonly form: 'block'; readonly value: JsonObject }
  | { readonly form: 'call'; readonly value: JsonObject }
  | { readonly form: 'message'; readonly value: JsonObject }

/** `part` in the form in which `provider` gave it; undefined for a part of another provider. */
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

/** The same as what a part stores. */
export function native(
  provider: string,
  { form, value }: ChatNative,
): { readonly provider: string; readonly data: JsonValue } {
  return { provider, data: { form, value } }
}

/** What was parsed from JSON, is an object, and so holds JSON. */
export function isJsonObject(value: unknown): value is JsonObject {
  return isObject(value)
}
