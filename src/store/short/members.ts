import { isObject } from '../../util/json.js'
import type { JsonObject, JsonValue } from '../../util/json.js'

/** Members of an object by name. */
export type Fields = Readonly<Record<string, unknown>>

/** The value of a member that is left out: this one, the members of an object, or a value that others imply. */
export type Default = JsonValue | Members | Each | Derived | typeof KEPT

/** A member that is never left out: it is listed for its place among the others. */
export const KEPT = Symbol('kept')

/** A value that other members of the whole document imply. */
export class Derived {
  readonly from: (whole: Fields) => unknown

  constructor(from: (whole: Fields) => unknown) {
    this.from = from
  }
}

/**
 * An object with any names, whose values are objects with these members. One name alone stands for an object with this name,
 * whose value has the members `sole` of the object that it is in.
 */
export class Each {
  readonly value: Members
  readonly sole: readonly string[]

  constructor(value: Members, sole: readonly string[]) {
    this.value = value
    this.sole = sole
  }
}

/** The given value cannot be shortened: a member that has a default is missing from it. */
export const NOT_SHORT = Symbol('not short')

/** An object, some of whose members have defaults. In its short form, members that are equal to their defaults are left out. */
export class Members {
  readonly #defaults: ReadonlyMap<string, Default>
  readonly #derived: readonly (readonly [string, Derived])[]
  /** They may be absent: those with a default have it if their object is there. */
  readonly #optional: ReadonlySet<string>
  readonly #required: number

  constructor(defaults: Readonly<Record<string, Default>>, optional: readonly string[] = []) {
    const entries = Object.entries(defaults)
    this.#defaults = new Map(entries)
    this.#derived = entries.filter((entry): entry is [string, Derived] => entry[1] instanceof Derived)
    this.#optional = new Set(optional)
    this.#required = entries.length - optional.length
  }

  shorten(given: Fields, whole: Fields): Fields | typeof NOT_SHORT {
    const short: Record<string, unknown> = {}
    let met = 0
    for (const name of Object.keys(given)) {
      const value = given[name]
      if (value === undefined) continue
      // Such a member is lost when it is copied.
      if (name === '__proto__') return NOT_SHORT
      const known = this.#defaults.get(name)
      const isOptional = this.#optional.has(name)
      if (known !== undefined && !isOptional) met += 1
      const kept = known === undefined ? value : shortValue(value, known, { whole, owner: given })
      if (kept === NOT_SHORT) return NOT_SHORT
      if (kept !== undefined) short[name] = kept
      else if (isOptional) short[name] = {}
    }
    return met === this.#required ? short : NOT_SHORT
  }

  /** Adds the members of `short`, and those that it leaves out, to `into`. */
  complete(short: Fields, into: Record<string, unknown>, whole: Fields = into): Fields {
    for (const [name, known] of this.#defaults) {
      const value = short[name]
      if (known instanceof Derived) into[name] ??= value
      else if (value !== undefined || !this.#optional.has(name))
        into[name] = completeValue(value, known, { whole, owner: into })
    }
    for (const [name, { from }] of this.#derived) if (into[name] === undefined) into[name] = from(whole)
    for (const name of Object.keys(short)) if (!this.#defaults.has(name)) into[name] = short[name]
    return into
  }
}

interface Place {
  readonly whole: Fields
  /** The object with the member. */
  readonly owner: Fields
}

/** Undefined: the value is left out. */
function shortValue(value: unknown, known: Default, { whole, owner }: Place): unknown {
  if (known === KEPT) return value
  if (known instanceof Derived) return value === known.from(whole) ? undefined : value
  if (known instanceof Members) {
    if (!isObject(value)) return value
    const short = known.shorten(value, whole)
    return short !== NOT_SHORT && isEmpty(short) ? undefined : short
  }
  if (!(known instanceof Each)) return isSame(value, known) ? undefined : value
  if (!isObject(value)) return value
  return isEmpty(value) ? undefined : (soleName(value, known, owner) ?? shortValues(value, known.value, whole))
}

/** The name of the only value, if it has the members of the owner. */
function soleName(value: Fields, { sole }: Each, owner: Fields): string | undefined {
  const [name, ...others] = Object.keys(value)
  const only = name === undefined || name === '__proto__' || others.length > 0 ? null : value[name]
  if (!isObject(only) || Object.keys(only).length !== sole.length) return undefined
  return sole.every((member) => only[member] !== undefined && only[member] === owner[member]) ? name : undefined
}

function shortValues(given: Fields, known: Members, whole: Fields): Fields | typeof NOT_SHORT {
  const short: Record<string, unknown> = {}
  for (const name of Object.keys(given)) {
    const value = given[name]
    if (name === '__proto__') return NOT_SHORT
    const kept = isObject(value) ? known.shorten(value, whole) : value
    if (kept === NOT_SHORT) return NOT_SHORT
    short[name] = kept
  }
  return short
}

function completeValue(short: unknown, known: Exclude<Default, Derived>, { whole, owner }: Place): unknown {
  if (known === KEPT) return short
  if (known instanceof Members) {
    if (short !== undefined && !isObject(short)) return short
    return known.complete(short ?? {}, {}, whole)
  }
  if (!(known instanceof Each)) return short === undefined ? copyOf(known) : short
  if (typeof short === 'string')
    return { [short]: Object.fromEntries(known.sole.map((member) => [member, owner[member]])) }
  if (short !== undefined && !isObject(short)) return short
  const complete: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(short ?? {}))
    complete[name] = isObject(value) ? known.value.complete(value, {}, whole) : value
  return complete
}

function isEmpty(value: Fields): boolean {
  for (const name in value) if (value[name] !== undefined) return false
  return true
}

/** Whether a value is equal to a default: a primitive, an empty array, or an object of primitives. */
function isSame(value: unknown, known: JsonValue): boolean {
  if (value === known) return true
  if (typeof value !== 'object' || typeof known !== 'object' || value === null || known === null) return false
  if (Array.isArray(known)) return Array.isArray(value) && value.length === 0 && known.length === 0
  if (Array.isArray(value)) return false
  const [names, own] = [Object.keys(known), Object.keys(value)]
  return names.length === own.length && names.every((name) => (value as Fields)[name] === (known as Fields)[name])
}

/** Readers may change what they get. */
function copyOf(known: JsonValue): JsonValue {
  if (typeof known !== 'object' || known === null) return known
  return Array.isArray(known) ? known.slice() : { ...(known as JsonObject) }
}
