/** A value that JSON text keeps unchanged. */
export type JsonValue = string | number | boolean | null | readonly JsonValue[] | JsonObject

/** A JSON object. Its keys may be absent, never `undefined` on the wire. */
export interface JsonObject {
  readonly [key: string]: JsonValue | undefined
}

/** Anything that callers pass as JSON: objects of any interface, with or without an index signature. */
export type JsonInput = string | number | boolean | null | object

/** A JSON Schema document: an object, or `true` and `false` in the places where JSON Schema allows them. */
export type JsonSchema = JsonObject

/** True if `value` is an object with keys, neither `null` nor an array. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** `base` with the members of `more`: Node 20 takes twenty times as long for a spread that adds members. */
export function withMembers<Base extends object, More extends object>(base: Base, more: More): Base & More {
  const whole = base as Record<string, unknown>
  for (const [name, value] of Object.entries(more)) whole[name] = value
  return whole as Base & More
}

/** `JSON.parse` as a result: model and wire text is often no JSON, and that is no exception. */
export function parseJson(
  text: string,
): { readonly ok: true; readonly value: JsonValue } | { readonly ok: false; readonly problem: string } {
  try {
    return { ok: true, value: JSON.parse(text) as JsonValue }
  } catch (error) {
    return { ok: false, problem: error instanceof Error ? error.message : String(error) }
  }
}
