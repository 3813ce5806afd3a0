import { isObject } from '../../util/json.js'
import type { JsonObject, JsonValue } from '../../util/json.js'

/** `body` as JSON text, with `\ufffd` in place of each half of a surrogate pair. */
export function wellFormedText(body: JsonObject): string {
  const text = JSON.stringify(body)
  return MAYBE_HALF.test(text) ? JSON.stringify(wellFormedJson(body)) : text
}

/** The escape with which `JSON.stringify` writes half of a pair. A string may also contain it literally. */
const MAYBE_HALF = /\\ud[89a-f]/

/** `value` with `\ufffd` in place of each half of a surrogate pair; the same value if there is none. */
export function wellFormedJson<T extends JsonValue>(value: T): T
export function wellFormedJson(value: JsonValue): JsonValue {
  if (typeof value === 'string') return value.toWellFormed()
  if (Array.isArray(value)) return listOf(value as JsonValue[])
  return isObject(value) ? objectOf(value) : value
}

function listOf(list: readonly JsonValue[]): readonly JsonValue[] {
  const items = list.map((item) => wellFormedJson(item))
  return items.some((item, index) => item !== list[index]) ? items : list
}

function objectOf(object: JsonObject): JsonObject {
  const members = Object.entries(object)
  const formed = members.map(([name, value]) => {
    return [name.toWellFormed(), value === undefined ? value : wellFormedJson(value)] as const
  })
  const isChanged = formed.some(([name, value], index) => name !== members[index]?.[0] || value !== members[index][1])
  return isChanged ? Object.fromEntries(formed) : object
}

/** JSON text of a model with the escape `\ufffd` in place of each escape that is half of a surrogate pair. */
export function wellFormedEscapes(text: string): string {
  return text.replace(ESCAPE, (escape) => (HALF_ESCAPE.test(escape) ? '\\ufffd' : escape))
}

/** A pair of escapes that is one character, half of a pair, or any other escape: of `\\\\`, too, both are consumed. */
const ESCAPE = /\\(?:ud[89ab][\da-f]{2}\\ud[c-f][\da-f]{2}|ud[89a-f][\da-f]{2}|[^])/gi
const HALF_ESCAPE = /^\\u.{4}$/
