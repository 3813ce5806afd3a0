import { isObject } from '../../util/json.js'

/** Says what is wrong with a value at `path`, in plain words; nothing where it fits. */
export type Shape = (value: unknown, path: string) => string | undefined

export const text: Shape = expected('a text', (value) => typeof value === 'string')
export const flag: Shape = expected('a boolean', (value) => typeof value === 'boolean')
export const count: Shape = expected(
  'a whole number from 0 up',
  (value) => Number.isSafeInteger(value) && Number(value) >= 0,
)
export const number: Shape = expected(
  'a number from 0 up',
  (value) => typeof value === 'number' && Number.isFinite(value) && value >= 0,
)
/** Anything that is there. */
export const anything: Shape = expected('a value', (value) => value !== undefined)

export function oneOf(...values: readonly (string | number | boolean | null)[]): Shape {
  const shown = values.map((value) => `\`${String(value)}\``).join(', ')
  return expected(values.length === 1 ? shown : `one of ${shown}`, (value) => values.includes(value as never))
}

export function nullable(shape: Shape): Shape {
  return (value, path) => (value === null ? undefined : shape(value, path))
}

export function listOf(shape: Shape): Shape {
  return (value, path) => {
    if (!Array.isArray(value)) return wrong('a list', value, path)
    return first(value.map((each: unknown, index) => () => shape(each, `${path}[${index}]`)))
  }
}

export function recordOf(shape: Shape): Shape {
  return (value, path) => {
    if (!isObject(value)) return wrong('an object', value, path)
    return first(
      Object.entries(value).map(
        ([key, each]) =>
          () =>
            shape(each, join(path, key)),
      ),
    )
  }
}

/** An object of exactly these fields; those of `optional` may be absent. */
export function objectOf(
  required: Readonly<Record<string, Shape>>,
  optional: Readonly<Record<string, Shape>> = {},
): Shape {
  return (value, path) => {
    if (!isObject(value)) return wrong('an object', value, path)
    const missing = Object.keys(required).find((key) => value[key] === undefined)
    if (missing !== undefined) return `\`${join(path, missing)}\` is missing`
    const known = { ...optional, ...required }
    const unknown = Object.keys(value).find((key) => !Object.hasOwn(known, key))
    if (unknown !== undefined) return `\`${join(path, unknown)}\` is no known field`
    return first(
      Object.entries(known).map(
        ([key, shape]) =>
          () =>
            value[key] === undefined ? undefined : shape(value[key], join(path, key)),
      ),
    )
  }
}

/** One of several objects, told apart by what their field `tag` says. */
export function taggedBy(tag: string, members: Readonly<Record<string, Shape>>): Shape {
  return (value, path) => {
    if (!isObject(value)) return wrong('an object', value, path)
    const name = value[tag]
    const member = typeof name === 'string' && Object.hasOwn(members, name) ? members[name] : undefined
    return member === undefined ? oneOf(...Object.keys(members))(name, join(path, tag)) : member(value, path)
  }
}

/** A value that fits the first shape that does not object; else what the last one says. */
export function either(...shapes: readonly Shape[]): Shape {
  return (value, path) => {
    let problem: string | undefined
    for (const shape of shapes) {
      problem = shape(value, path)
      if (problem === undefined) return undefined
    }
    return problem
  }
}

function expected(what: string, fits: (value: unknown) => boolean): Shape {
  return (value, path) => (fits(value) ? undefined : wrong(what, value, path))
}

function wrong(what: string, value: unknown, path: string): string {
  return `\`${path}\` must be ${what}, got ${shown(value)}`
}

function shown(value: unknown): string {
  if (value === undefined) return 'nothing'
  if (isObject(value)) return 'an object'
  return Array.isArray(value)
    ? 'a list'
    : `\`${(typeof value === 'string' ? value : JSON.stringify(value)).slice(0, 60)}\``
}

function join(path: string, key: string): string {
  return path === '' ? key : `${path}.${key}`
}

function first(checks: readonly (() => string | undefined)[]): string | undefined {
  for (const check of checks) {
    const problem = check()
    if (problem !== undefined) return problem
  }
  return undefined
}
