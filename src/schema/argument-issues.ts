import { pointerSteps } from './subschemas.js'
import type { OutputUnit } from '@cfworker/json-schema'
import type { JsonObject } from '#util/json.js'
import { isObject } from '#util/json.js'

/** Checks arguments that fit a JSON Schema, and returns the parsed value. */
export type Validate = (args: JsonObject) => Validation | Promise<Validation>

/** The parsed arguments, or their problems. */
export type Validation =
  { readonly ok: true; readonly value: JsonObject } | { readonly ok: false; readonly issues: readonly ArgumentIssue[] }

/** One thing wrong with the arguments of a call. */
export interface ArgumentIssue {
  /** From the root: keys and array indices; empty for the root itself. */
  readonly path: readonly (string | number)[]
  /** The sentence of the validator. */
  readonly message: string
  /** A short class: the validator's own, such as `type`, `required` or `invalid_type`; `invalid` if it has none. */
  readonly type: string
}

/** From the root: keys and array indices. */
export type Path = readonly (string | number)[]

/** The result of a Standard Schema. */
export type StandardResult<T = unknown> =
  { readonly value: T; readonly issues?: undefined } | { readonly issues: readonly StandardIssue[] }

export interface StandardIssue {
  readonly message: string
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined
}

/** More issues than this of one value are of no use to anyone. */
export const MOST_ISSUES = 50

/** The issues of a typed schema, with the library's sentences. Of a union of zod, those of its alternatives follow. */
export function typedIssues(issues: readonly StandardIssue[]): ArgumentIssue[] {
  return distinctIssues(issues.flatMap((issue) => withInnerIssues(issue, [])))
}

/** The fields of zod's issues that are read. */
interface ZodIssue extends StandardIssue {
  readonly code?: unknown
  /** Of a union: the issues of each alternative. */
  readonly errors?: unknown
}

function withInnerIssues({ message, path = [], code, errors }: ZodIssue, outer: Path): ArgumentIssue[] {
  const steps = path.map((step) => (typeof step === 'object' ? step.key : step))
  const whole = [...outer, ...steps.map((step) => (typeof step === 'symbol' ? String(step) : step))]
  const alternatives = Array.isArray(errors) ? (errors as readonly unknown[]) : []
  return [
    { path: whole, type: typeof code === 'string' ? code : 'invalid', message },
    ...alternatives.flat().flatMap((issue) => (isIssue(issue) ? withInnerIssues(issue, whole) : [])),
  ]
}

function isIssue(value: unknown): value is ZodIssue {
  return isObject(value) && typeof value['message'] === 'string'
}

/**
 * The errors of the validator of JSON Schema, with its sentences. An error that only announces those of the parts that
 * follow it is left out.
 */
export function schemaIssues(units: readonly OutputUnit[], value: unknown): ArgumentIssue[] {
  const errors = units.filter((unit, index) => unit.keyword !== 'false' && !isAnnouncement(unit, units[index + 1]))
  return distinctIssues(
    errors.slice(0, MOST_UNITS).map((unit) => ({
      path: pathOfPointer(value, unit.instanceLocation),
      type: unit.keyword,
      message: unit.error,
    })),
  )
}

/** Most errors of one value that are read. */
const MOST_UNITS = 2_000

/** Keywords whose error says more than the errors of its parts. */
const TELLING = new Set(['anyOf', 'oneOf', 'contains', 'propertyNames'])

function isAnnouncement({ keyword, keywordLocation }: OutputUnit, next: OutputUnit | undefined): boolean {
  if (next === undefined || next.keyword === 'false' || TELLING.has(keyword)) return false
  return next.keywordLocation.startsWith(`${keywordLocation}/`)
}

function pathOfPointer(value: unknown, pointer: string): Path {
  let current = value
  return pointerSteps(pointer).map((name) => {
    const step = Array.isArray(current) ? Number(name) : name
    current = valueAt(current, [step])
    return step
  })
}

function distinctIssues(issues: readonly ArgumentIssue[]): ArgumentIssue[] {
  const byText = new Map(issues.map((issue) => [JSON.stringify([issue.path, issue.message]), issue]))
  return [...byText.values()].slice(0, MOST_ISSUES)
}

/** The value at `path` in `value`; `undefined` if there is none. */
export function valueAt(value: unknown, path: Path): unknown {
  let current = value
  for (const step of path) {
    if (typeof current !== 'object' || current === null || !Object.hasOwn(current, step)) return undefined
    current = (current as Record<string | number, unknown>)[step]
  }
  return current
}

/** `a string`, `a list`, … */
export function valueKind(value: unknown): string {
  if (value === null) return 'null'
  if (value === undefined) return 'nothing'
  if (Array.isArray(value)) return 'a list'
  return isObject(value) ? 'an object' : `a ${typeof value}`
}
