import { isObject } from '../../util/json.js'
import type { JsonValue } from '../../util/json.js'

/** Members of an object by name. */
export type Fields = Readonly<Record<string, unknown>>

/** What a member has if it is left out: this value, the members of an object, or a value that follows from the whole. */
export type Default = JsonValue | Members | Each | Derived

/** A value that other members of the whole document imply. Those of its own level must come before it. */
export class Derived {
  readonly from: (whole: Fields) => unknown

  constructor(from: (whole: Fields) => unknown) {
    this.from = from
  }
}

/** An object with any names, whose values are objects with these members. */
export class Each {
  readonly value: Members

  constructor(value: Members) {
    this.value = value
  }
}

/** The given value cannot be shortened: a member that has a default is missing from it. */
export const NOT_SHORT = Symbol('not short')

/** An object, some of whose members have defaults. In its short form, members that are equal to their defaults are left out. */
export class Members {
  readonly #defaults: ReadonlyMap<string, Default>

  constructor(defaults: Readonly<Record<string, Default>>) {
    this.#defaults = new Map(Object.entries(defaults))
  }

  /** With further members. */
  and(more: Readonly<Record<string, Default>>): Members {
    return new Members({ ...Object.fromEntries(this.#defaults), ...more })
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
      if (known === undefined) {
        short[name] = value
        continue
      }
      met += 1
      const kept = shortValue(value, known, whole)
      if (kept === NOT_SHORT) return NOT_SHORT
      if (kept !== undefined) short[name] = kept
    }
    return met === this.#defaults.size ? short : NOT_SHORT
  }

  /** Adds the members of `short`, and those that it leaves out, to `into`. */
  complete(short: Fields, into: Record<string, unknown>, whole: Fields = into): Fields {
    for (const [name, known] of this.#defaults) into[name] = completeValue(short[name], known, whole)
    for (const name of Object.keys(short)) if (!this.#defaults.has(name)) into[name] = short[name]
    return into
  }
}

/** Undefined: the value is left out. */
function shortValue(value: unknown, known: Default, whole: Fields): unknown {
  if (known instanceof Derived) return value === known.from(whole) ? undefined : value
  if (known instanceof Members) {
    if (!isObject(value)) return value
    const short = known.shorten(value, whole)
    return short !== NOT_SHORT && isEmpty(short) ? undefined : short
  }
  if (known instanceof Each) {
    if (!isObject(value)) return value
    return isEmpty(value) ? undefined : shortValues(value, known.value, whole)
  }
  return isSame(value, known) ? undefined : value
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

function completeValue(short: unknown, known: Default, whole: Fields): unknown {
  if (known instanceof Derived) return short === undefined ? known.from(whole) : short
  if (known instanceof Members) {
    if (short !== undefined && !isObject(short)) return short
    return known.complete(short ?? {}, {}, whole)
  }
  if (known instanceof Each) {
    if (short !== undefined && !isObject(short)) return short
    const complete: Record<string, unknown> = {}
    for (const [name, value] of Object.entries(short ?? {}))
      complete[name] = isObject(value) ? known.value.complete(value, {}, whole) : value
    return complete
  }
  return short === undefined ? copyOf(known) : short
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
  return Array.isArray(known) ? [...(known as readonly JsonValue[])] : { ...known }
}
