import { isObject } from '../util/json.js'
import type { JsonSchema, JsonValue } from '../util/json.js'
import { nearestName } from '../util/suggest.js'
import { openPlaces } from './places.js'
import type { ArgumentIssue } from './validation.js'

/** From the root: keys and array indices. */
export type Path = readonly (string | number)[]

/** One thing that a check found wrong, before it is put into words. */
export type Finding = { readonly path: Path } & (
  | { readonly kind: 'missing' }
  /** Not of these JSON types. */
  | { readonly kind: 'type'; readonly expected: readonly string[] }
  /** None of these values. */
  | { readonly kind: 'option'; readonly options: readonly JsonValue[] }
  | { readonly kind: 'unknown_field' }
  | { readonly kind: 'other'; readonly type: string; readonly message: string }
)

/** More than this of one value is of no use to anyone. */
export const MOST_FINDINGS = 50

/** Findings in plain words, each place and kind once. `value` was checked against `schema`. */
export function issuesOf(findings: readonly Finding[], value: unknown, schema: JsonSchema): ArgumentIssue[] {
  const reported = new Set<string>()
  const issues: ArgumentIssue[] = []
  for (const finding of findings) {
    const issue = issueOf(finding, value, schema)
    const key = JSON.stringify([issue.path, issue.type, issue.message])
    if (reported.has(key)) continue
    reported.add(key)
    issues.push(issue)
    if (issues.length === MOST_FINDINGS) break
  }
  return issues
}

/**
 * The problem of a value that fits none of several alternatives: the kinds of value that they take, if it is none
 * of these; the values of the field that distinguishes them, if it has none of these; else the findings of the nearest.
 */
export function nearestAlternative(path: Path, alternatives: readonly (readonly Finding[])[]): readonly Finding[] {
  const rightKind = alternatives.filter((findings) => typesAt(findings, path).length === 0)
  if (rightKind.length === 0) {
    const expected = alternatives.flatMap((findings) => typesAt(findings, path))
    if (expected.length > 0) return [{ path, kind: 'type', expected }]
    return [{ path, kind: 'other', type: 'alternatives', message: 'has none of the allowed forms' }]
  }
  const labels = rightKind.map((findings) => labelOf(findings, path))
  const label = labels[0]
  if (label !== undefined && labels.every((each) => each !== undefined && samePath(each.path, label.path))) {
    return [{ ...label, options: labels.flatMap((each) => each?.options ?? []) }]
  }
  const unlabelled = rightKind.filter((_, index) => labels[index] === undefined)
  const candidates = unlabelled.length > 0 ? unlabelled : rightKind
  return candidates.reduce((best, each) => (each.length < best.length ? each : best))
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

/** `at least 1 items` → `at least 1 item`. */
export function inNumber(message: string): string {
  return message.replace(/\b1 (character|item|field)s\b/, '1 $1')
}

/** `a string`, `a list`, … */
export function kindOf(value: unknown): string {
  if (value === null) return 'null'
  if (value === undefined) return 'nothing'
  if (Array.isArray(value)) return 'a list'
  return isObject(value) ? 'an object' : `a ${typeof value}`
}

function issueOf(finding: Finding, root: unknown, schema: JsonSchema): ArgumentIssue {
  const { path } = finding
  switch (finding.kind) {
    case 'missing':
      return { path, type: 'missing', message: 'missing' }
    case 'type':
      return { path, type: 'type', message: typeMessage(finding.expected, valueAt(root, path)) }
    case 'option':
      return { path, type: 'option', message: optionMessage(finding.options) }
    case 'unknown_field':
      return { path, type: 'unknown_field', message: `unknown field${suggestion(path, schema)}` }
    case 'other':
      return { path, type: finding.type, message: finding.message }
  }
}

function typeMessage(expected: readonly string[], value: unknown): string {
  const kinds = [...new Set(expected)].map((type) => KINDS[type] ?? `a ${type}`)
  const got = typeof value === 'number' && expected.includes('integer') ? 'a number with a fraction' : kindOf(value)
  return `expected ${listed(kinds)}, got ${got}`
}

const KINDS: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  integer: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
  null: 'null',
}

const MOST_OPTIONS = 20

function optionMessage(options: readonly JsonValue[]): string {
  const texts = [...new Set(options.map((option) => JSON.stringify(option)))]
  if (texts.length === 1) return `must be ${texts[0] ?? ''}`
  const more = texts.length > MOST_OPTIONS ? ` or one of ${texts.length - MOST_OPTIONS} more` : ''
  return `must be one of ${texts.slice(0, MOST_OPTIONS).join(', ')}${more}`
}

/** A name that is longer than any field's is no misspelling, and costly to compare. */
const LONGEST_MISSPELLING = 64

function suggestion(path: Path, schema: JsonSchema): string {
  const name = path.at(-1)
  if (typeof name !== 'string' || name.length > LONGEST_MISSPELLING) return ''
  const near = nearestName(name, openPlaces(schema).at(path.slice(0, -1))?.names ?? [])
  return near === undefined ? '' : `; did you mean \`${near}\`?`
}

function typesAt(findings: readonly Finding[], path: Path): readonly string[] {
  return findings.flatMap((each) => (each.kind === 'type' && samePath(each.path, path) ? each.expected : []))
}

/** The sign that another alternative was meant: a wrong fixed value of the value itself or of one of its fields. */
function labelOf(findings: readonly Finding[], path: Path): (Finding & { readonly kind: 'option' }) | undefined {
  return findings.find((each) => each.kind === 'option' && each.path.length <= path.length + 1) as
    (Finding & { readonly kind: 'option' }) | undefined
}

export function samePath(left: Path, right: Path): boolean {
  return left.length === right.length && left.every((step, index) => step === right[index])
}

function listed(words: readonly string[]): string {
  if (words.length < 2) return words.join('')
  return `${words.slice(0, -1).join(', ')} or ${words.at(-1) ?? ''}`
}
