import { isObject } from './json.js'
import type { JsonObject, JsonValue } from './json.js'

/** `base` with `changes`: objects are merged deeply, any other value is replaced. Changes nothing in place. */
export function mergeJson(base: JsonObject, changes: JsonObject | undefined): JsonObject {
  if (changes === undefined) return base
  const changed = Object.entries(changes).filter(([, value]) => value !== undefined)
  const merged = changed.map(([key, value]) => [key, mergedValue(base[key], value)] as const)
  return { ...base, ...Object.fromEntries(merged) }
}

function mergedValue(base: JsonValue | undefined, change: JsonValue | undefined): JsonValue | undefined {
  return isJsonObject(base) && isJsonObject(change) ? mergeJson(base, change) : change
}

function isJsonObject(value: JsonValue | undefined): value is JsonObject {
  return isObject(value)
}
