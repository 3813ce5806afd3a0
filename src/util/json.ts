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

/** The schema of an object with these properties and no others. */
export function objectSchema(
  required: readonly string[],
  properties: Readonly<Record<string, JsonSchema>>,
): JsonSchema {
  const named = required.length === 0 ? {} : { required }
  return { type: 'object', properties, ...named, additionalProperties: false }
}

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

/** The value of JSON text, or `otherwise`. */
export function jsonOr<Otherwise>(text: string, otherwise: Otherwise): JsonValue | Otherwise {
  const parsed = parseJson(text)
  return parsed.ok ? parsed.value : otherwise
}

/** The object in JSON text; an empty one for any other text. */
export function jsonObjectIn(text: string): JsonObject {
  const value = jsonOr(text, undefined)
  return isJsonObject(value) ? value : {}
}

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

/** JSON text with sorted keys: the same for the same content, whatever the order in which it was stored. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_, member: unknown) =>
    isObject(member) ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1))) : member,
  )
}

/** A copy in which each text, also in lists and plain objects, is changed; anything else is the same. */
export function mapStrings(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === 'string') return change(value)
  if (Array.isArray(value)) return value.map((each) => mapStrings(each, change))
  if (!isObject(value) || Object.getPrototypeOf(value) !== Object.prototype) return value
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, mapStrings(member, change)]))
}

/** The same, with changes that take time. */
export async function mapStringsLater(value: unknown, change: (text: string) => Promise<unknown>): Promise<unknown> {
  if (typeof value === 'string') return change(value)
  if (Array.isArray(value)) return Promise.all(value.map((each) => mapStringsLater(each, change)))
  if (!isObject(value) || Object.getPrototypeOf(value) !== Object.prototype) return value
  const later = async ([name, member]: [string, unknown]): Promise<[string, unknown]> => [
    name,
    await mapStringsLater(member, change),
  ]
  return Object.fromEntries(await Promise.all(Object.entries(value).map(later)))
}

/** Freezes plain objects and arrays, and everything in them. Objects that are frozen already are not visited again. */
export function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null) freezePlain(value)
  return value
}

/** A copy as plain JSON, frozen with everything in it. Texts are shared. */
export function frozenCopy<T>(value: T): T {
  return Object.freeze(jsonCopy(value)) as T
}

function jsonCopy(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map((item: unknown) => frozenCopy(isJsonMember(item) ? item : null))
  if (hasToJson(value)) return jsonCopy(value.toJSON())
  const members = Object.entries(value).filter(([, member]) => isJsonMember(member))
  return Object.fromEntries(members.map(([name, member]) => [name, frozenCopy<unknown>(member)]))
}

function hasToJson(value: object): value is { toJSON(): unknown } {
  return 'toJSON' in value && typeof value.toJSON === 'function'
}

/** JSON leaves out anything else. */
function isJsonMember(value: unknown): boolean {
  return value !== undefined && typeof value !== 'function' && typeof value !== 'symbol'
}

function freezePlain(value: object): void {
  if (Object.isFrozen(value)) return
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype !== Object.prototype && prototype !== Array.prototype && prototype !== null) return
  Object.freeze(value)
  for (const name in value) {
    const member: unknown = value[name as keyof typeof value]
    if (typeof member === 'object' && member !== null) freezePlain(member)
  }
}

const readOnlyViews = new WeakMap<object, object>()

/** Plain data that cannot be changed by whoever gets it, at any depth. Frozen data, and anything that is not plain, is given as it is. */
export function readOnly<T>(value: T): T {
  if (typeof value !== 'object' || value === null || !isOpen(value)) return value
  const known = readOnlyViews.get(value)
  if (known !== undefined) return known as T
  const proxy = new Proxy<object>(value, HANDLER)
  readOnlyViews.set(value, proxy)
  return proxy as T
}

function isOpen(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value)
  return (prototype === Object.prototype || prototype === Array.prototype) && !Object.isFrozen(value)
}

const HANDLER: ProxyHandler<object> = {
  get(target, name) {
    const member: unknown = Reflect.get(target, name)
    const own = Reflect.getOwnPropertyDescriptor(target, name)
    // A proxy has to give the value of a member that cannot change.
    return own?.configurable === false && own.writable === false ? member : readOnly(member)
  },
  set: refuse,
  defineProperty: refuse,
  deleteProperty: refuse,
  setPrototypeOf: refuse,
  preventExtensions: refuse,
}

function refuse(_target: object, name?: unknown): never {
  const member = typeof name === 'string' ? `: \`${name}\` cannot be changed` : ''
  throw new TypeError(`What a run shows of itself is read-only${member}.`)
}
