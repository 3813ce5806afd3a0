import { atOnce } from './wrapped.js'
import { isObject } from './json.js'
import type { JsonObject, JsonValue } from './json.js'
import { Mismatch, mismatch } from './mismatch.js'
import { didYouMean } from './suggest.js'
import { LONGEST_TIMER_MS } from './timeout.js'

/**
 * How data of type `T` looks. The type is exact: the compiler refuses a shape that lacks a field, or a member of a union,
 * of the type that it is written for.
 */
export interface Shape<in out T> {
  /** Completes 'Expected it to be …'. */
  readonly expected: string
  /** The value as a `T`: objects and lists are copies; values that a shape does not read are kept. */
  read(value: unknown): T | Mismatch
}

export type ParsedShape<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly problem: string; readonly path: readonly (string | number)[] }

/** Reads a value; `name` names it in a problem: 'the answer'. */
export function parseAs<T>(shape: Shape<T>, value: unknown, name: string): ParsedShape<T> {
  const read = shape.read(value)
  return read instanceof Mismatch
    ? { ok: false, problem: read.message(name), path: read.path }
    : { ok: true, value: read }
}

/** A value that is kept as it is if it fits. `hint` is a sentence about one that does not, or an empty string. */
export function leaf<T>(
  expected: string,
  fits: (value: unknown) => boolean,
  hint: (value: unknown) => string = () => '',
): Shape<T> {
  return {
    expected,
    read: (value) => (fits(value) ? (value as T) : mismatch(expected, value, afterSpace(hint(value)))),
  }
}

function afterSpace(sentence: string): string {
  return sentence === '' ? '' : ` ${sentence}`
}

export const string: Shape<string> = leaf('a string', (value) => typeof value === 'string')
export const filledString: Shape<string> = matching(/\S/, 'a string that is not empty')
export const boolean: Shape<boolean> = leaf('a boolean', (value) => typeof value === 'boolean')

/** A string in a form that `expected` puts into words. */
export function matching(form: RegExp, expected: string): Shape<string> {
  return leaf(expected, (value) => typeof value === 'string' && form.test(value))
}

export function integer(least = -Infinity, most = Infinity): Shape<number> {
  const fits = (value: unknown): boolean => Number.isSafeInteger(value) && isWithin(value, least, most)
  return leaf(`a whole number${range(least, most)}`, fits)
}

export function number(least = -Infinity, most = Infinity): Shape<number> {
  const fits = (value: unknown): boolean => Number.isFinite(value) && isWithin(value, least, most)
  return leaf(`a number${range(least, most)}`, fits)
}

export const dollars: Shape<number> = leaf(
  'US dollars from 0 up',
  (value) => Number.isFinite(value) && Number(value) >= 0,
)

/** A time that a timer of the platform can wait. */
export const milliseconds: Shape<number> = integer(1, LONGEST_TIMER_MS)

type Literal = string | number | boolean | null

export function oneOf<const Values extends readonly Literal[]>(...values: Values): Shape<Values[number]> {
  const names = values.map((value) => `\`${String(value)}\``).join(', ')
  const expected = values.length === 1 ? names : `one of ${names}`
  const words = values.filter((value) => typeof value === 'string')
  return {
    expected,
    read: (value) => {
      const found = values.find((each) => each === value)
      if (found !== undefined) return found
      return mismatch(expected, value, typeof value === 'string' ? didYouMean(value, words) : '')
    },
  }
}

/** A value that is checked by whoever uses it. */
export function anything<T>(): Shape<T> {
  return leaf('a value', (value) => value !== undefined)
}

export function functionOf<T>(): Shape<T> {
  return leaf('a function', (value) => typeof value === 'function')
}

/** A function that has to return its result at once: what `name` returns is checked each time. */
export function functionAtOnce<Call extends (...given: never[]) => unknown>(name: string): Shape<Call> {
  const plain = functionOf<Call>()
  return {
    expected: plain.expected,
    read: (value) => {
      const call = plain.read(value)
      if (call instanceof Mismatch) return call
      return ((...given: never[]) => atOnce(`\`${name}\``, call(...given))) as Call
    },
  }
}

export const abortSignal: Shape<AbortSignal> = having('an `AbortSignal`', 'addEventListener')

/** An object, kept as it is, that is known by its methods. */
export function having<T>(expected: string, ...methods: readonly string[]): Shape<T> {
  return leaf(expected, (value) => {
    const members = value as Readonly<Record<string, unknown>> | null | undefined
    const isPort = typeof value === 'function' || isObject(value)
    return isPort && methods.every((method) => typeof members?.[method] === 'function')
  })
}

export function nullable<T>(shape: Shape<T>): Shape<T | null> {
  return {
    expected: `${shape.expected} or \`null\``,
    read: (value) => {
      if (value === null) return null
      const read = shape.read(value)
      return read instanceof Mismatch && read.path.length === 0
        ? mismatch(`${shape.expected} or \`null\``, value)
        : read
    },
  }
}

export function list<T>(shape: Shape<T>, expected = 'a list'): Shape<readonly T[]> {
  return {
    expected,
    read: (value) => {
      if (!Array.isArray(value)) return mismatch(expected, value)
      const copy: T[] = []
      for (const [index, each] of (value as readonly unknown[]).entries()) {
        const read = shape.read(each)
        if (read instanceof Mismatch) return read.within(index)
        copy.push(read)
      }
      return copy
    },
  }
}

/** The same list for an owner that may change it: a parsed list is a copy. */
export function mutable<T>(shape: Shape<readonly T[]>): Shape<T[]> {
  return shape as unknown as Shape<T[]>
}

/** An object with any keys, or with those that `keys` accepts. */
export function record<T>(shape: Shape<T>, keys = string): Shape<Readonly<Record<string, T>>> {
  return {
    expected: 'an object',
    read: (value) => {
      if (!isObject(value)) return mismatch('an object', value)
      const copy: [string, T][] = []
      for (const [key, each] of Object.entries(value)) {
        if (keys.read(key) instanceof Mismatch) return strangeKey(keys.expected, key)
        const read = shape.read(each)
        if (read instanceof Mismatch) return read.within(key)
        copy.push([key, read])
      }
      return Object.fromEntries(copy)
    },
  }
}

/** Plain JSON by name, which is not looked into. */
export const jsonObject: Shape<JsonObject> = record(leaf<JsonValue | undefined>('plain JSON', () => true))

/** A field that may be left out. */
export interface Optional<in out T> {
  readonly optional: Shape<T>
}

export function optional<T>(shape: Shape<T>): Optional<T> {
  return { optional: shape }
}

type IsOptional<T, Key extends keyof T> = [T] extends [Readonly<Record<Key, unknown>>] ? false : true

/** A shape for each field of `T`, no more and no less. */
export type Fields<T> = {
  readonly [Key in keyof T]-?: IsOptional<T, Key> extends true ? Optional<Exclude<T[Key], undefined>> : Shape<T[Key]>
}

/** The same for an object with optional fields only. */
export type PartialFields<T> = {
  readonly [Key in keyof T]-?: IsOptional<T, Key> extends true ? Shape<Exclude<T[Key], undefined>> : never
}

/** Options without those that are `undefined`. */
export type Given<T> = { readonly [Key in keyof T]: Exclude<T[Key], undefined> }

/** A copy without the fields that are `undefined`, which would replace a default. */
export function withoutUndefined<T extends object>(options: T): Given<T> {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as Given<T>
}

/** Options with a value for each. */
export type Complete<T> = Required<Given<T>>

/** Sentences about unknown fields, by name. */
export type Hints = Readonly<Record<string, string>>

/**
 * An object with these fields and no other. A field that is `undefined` counts as left out, and is not in the copy. `T` is that
 * of the field, list or union for which the shape is written, and need not be named there.
 */
export function object<T>(fields: Fields<NoInfer<T>>, hints: Hints = {}): Shape<T> {
  const members = Object.entries(fields as Readonly<Record<string, Reader | OptionalReader>>)
  const all = members.map(([key, field]): Member => ('optional' in field ? [key, field.optional] : [key, field, true]))
  return objectOf(all, hints)
}

/** An object with any of these fields and no other. */
export function partial<T>(fields: PartialFields<NoInfer<T>>, hints: Hints = {}): Shape<T> {
  return objectOf(Object.entries(fields as Readonly<Record<string, Reader>>), hints)
}

interface Reader {
  readonly expected: string
  read(value: unknown): unknown
}

interface OptionalReader {
  readonly optional: Reader
}

type Member = readonly [key: string, shape: Reader, isRequired?: boolean]

function objectOf<T>(members: readonly Member[], hints: Hints): Shape<T> {
  const expected = 'an object'
  const known = new Set(members.map(([key]) => key))
  return {
    expected,
    read: (value) => {
      if (!isObject(value)) return mismatch(expected, value)
      for (const key of Object.keys(value)) if (!known.has(key)) return unknownKey(key, known, hints)
      const copy: Record<string, unknown> = {}
      for (const [key, shape, isRequired] of members) {
        const given = value[key]
        if (given === undefined && isRequired !== true) continue
        const read = shape.read(given)
        if (read instanceof Mismatch) return read.within(key)
        copy[key] = read
      }
      return copy as T
    },
  }
}

/** One of several kinds of objects, distinguished by the field `tag`. */
export function union<T, Tag extends keyof T & string>(
  tag: Tag,
  members: { readonly [Name in T[Tag] & string]: Shape<Extract<T, Readonly<Record<Tag, Name>>>> },
): Shape<T> {
  const shapes = new Map(Object.entries(members as Readonly<Record<string, Reader>>))
  const tags = oneOf(...shapes.keys())
  return {
    expected: 'an object',
    read: (value) => {
      if (!isObject(value)) return mismatch('an object', value)
      const name = tags.read(value[tag])
      return name instanceof Mismatch ? name.within(tag) : (shapes.get(name)?.read(value) as T | Mismatch)
    },
  }
}

type ValueOf<S> = S extends Shape<infer T> ? T : never

/** A value that fits one of several shapes: the first one. */
export function either<const Shapes extends readonly Reader[]>(...shapes: Shapes): Shape<ValueOf<Shapes[number]>> {
  const expected = shapes.map((shape) => shape.expected).join(' or ')
  return {
    expected,
    read: (value) => {
      let nearest: Mismatch = mismatch(expected, value)
      for (const shape of shapes) {
        const read = shape.read(value)
        if (!(read instanceof Mismatch)) return read as ValueOf<Shapes[number]>
        // A value of the right kind has a problem further down.
        if (read.path.length > nearest.path.length) nearest = read
      }
      return nearest
    },
  }
}

/** A value of a shape with a rule of its own, which `expected` puts into words. */
export function where<T>(shape: Shape<T>, expected: string, fits: (value: T) => boolean): Shape<T> {
  return {
    expected,
    read: (value) => {
      const read = shape.read(value)
      if (read instanceof Mismatch) return read.path.length === 0 ? mismatch(expected, value) : read
      return fits(read) ? read : mismatch(expected, value)
    },
  }
}

/** A shape whose problems do not show the value: it may be a secret. */
export function secret<T>(shape: Shape<T>): Shape<T> {
  return {
    expected: shape.expected,
    read: (value) => {
      const read = shape.read(value)
      const shows = (typeof value === 'string' && value !== '') || typeof value === 'number'
      return read instanceof Mismatch && shows ? read.withoutValue() : read
    },
  }
}

function strangeKey(expected: string, key: string): Mismatch {
  return new Mismatch({ path: [], expected: `an object with ${expected} as keys`, got: `\`${key}\``, hint: '' })
}

function unknownKey(key: string, known: Iterable<string>, hints: Hints): Mismatch {
  const hint = Object.hasOwn(hints, key) ? afterSpace(hints[key] ?? '') : didYouMean(key, known)
  return new Mismatch({ path: [key], expected: null, got: '', hint })
}

function isWithin(value: unknown, least: number, most: number): boolean {
  return Number(value) >= least && Number(value) <= most
}

function range(least: number, most: number): string {
  if (most !== Infinity) return ` from ${least} to ${most}`
  return least === -Infinity ? '' : ` from ${least} up`
}
