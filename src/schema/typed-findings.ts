import { isObject } from '../util/json.js'
import type { JsonSchema, JsonValue } from '../util/json.js'
import { inNumber, issuesOf, MOST_FINDINGS, nearestAlternative, valueAt } from './findings.js'
import type { Finding, Path } from './findings.js'
import type { ArgumentIssue } from './validation.js'

/** The issues of a Standard Schema. */
export type StandardResult<T = unknown> =
  { readonly value: T; readonly issues?: undefined } | { readonly issues: readonly StandardIssue[] }

export interface StandardIssue {
  readonly message: string
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined
}

/**
 * The issues of a typed schema in plain words. `document` is its JSON Schema. The structure of zod's own issues is read,
 * since their messages are written for programmers; a message of the schema's author is kept, and so is any of another
 * library.
 */
export function typedIssues(
  issues: readonly StandardIssue[],
  vendor: string,
  { value, document }: { readonly value: unknown; readonly document: JsonSchema },
): ArgumentIssue[] {
  const read = vendor === 'zod' ? zodFindings : otherFindings
  const findings = issues.slice(0, MOST_FINDINGS).flatMap((issue) => read(issue, pathOf(issue), value))
  return issuesOf(findings, value, document)
}

function otherFindings({ message }: StandardIssue, path: Path, value: unknown): Finding[] {
  return [{ path, kind: 'other', type: valueAt(value, path) === undefined ? 'missing' : 'invalid', message }]
}

/** Texts that zod makes itself, in its default language. */
const MADE_BY_ZOD = /^(?:Invalid|Too (?:small|big)|Unrecognized)\b/

/** The fields of zod's issues that are not part of the standard. */
interface ZodIssue extends StandardIssue {
  readonly code?: unknown
  readonly expected?: unknown
  readonly values?: unknown
  readonly keys?: unknown
  readonly origin?: unknown
  readonly minimum?: unknown
  readonly maximum?: unknown
  readonly inclusive?: unknown
  readonly errors?: unknown
  readonly options?: unknown
  readonly issues?: unknown
}

function zodFindings(issue: ZodIssue, path: Path, value: unknown): readonly Finding[] {
  const { message, code } = issue
  const other = (text: string): Finding => ({
    path,
    kind: 'other',
    type: typeof code === 'string' ? code : 'invalid',
    message: text,
  })
  if (!MADE_BY_ZOD.test(message)) return [other(message)]
  if (valueAt(value, path) === undefined && path.length > 0) return [{ path, kind: 'missing' }]
  switch (code) {
    case 'invalid_type':
      return [{ path, kind: 'type', expected: [typeWord(issue.expected)] }]
    case 'invalid_value':
      return [{ path, kind: 'option', options: listOf(issue.values) }]
    case 'unrecognized_keys':
      return textsOf(issue.keys).map((key) => ({ path: [...path, key], kind: 'unknown_field' }))
    case 'too_small':
      return [other(limitMessage(issue, issue.minimum, ['at least', 'more than']))]
    case 'too_big':
      return [other(limitMessage(issue, issue.maximum, ['at most', 'less than']))]
    case 'invalid_union':
      return unionFindings(issue, path, value)
    case 'invalid_key':
      return [{ path, kind: 'other', type: 'field_name', message: 'a field of this name is not allowed' }]
    case 'invalid_element':
      return innerIssues(issue.issues).flatMap((each) => zodFindings(each, [...path, ...pathOf(each)], value))
    default:
      return [other(plainMessage(message))]
  }
}

function unionFindings({ errors, options, message }: ZodIssue, path: Path, value: unknown): readonly Finding[] {
  const branches = listOf(errors).map((branch) =>
    innerIssues(branch).flatMap((each) => zodFindings(each, [...path, ...pathOf(each)], value)),
  )
  if (branches.length > 0) return nearestAlternative(path, branches)
  if (listOf(options).length > 0) return [{ path, kind: 'option', options: listOf(options) }]
  return [{ path, kind: 'other', type: 'invalid_union', message: plainMessage(message) }]
}

function limitMessage({ origin, inclusive }: ZodIssue, limit: unknown, words: readonly [string, string]): string {
  const amount = `${inclusive === false ? words[1] : words[0]} ${String(limit)}`
  switch (origin) {
    case 'string':
      return inNumber(`must have ${amount} characters`)
    case 'array':
    case 'set':
      return inNumber(`must have ${amount} items`)
    case 'object':
    case 'map':
      return inNumber(`must have ${amount} fields`)
    default:
      return `must be ${amount}`
  }
}

/** `Invalid string: must start with "a"` → `must start with "a"`; `Invalid email address` → `is no valid email address`. */
function plainMessage(message: string): string {
  const detail = /^Invalid \w+: (.+)$/s.exec(message)?.[1]
  if (detail !== undefined) return detail
  const what = /^Invalid (.+)$/s.exec(message)?.[1]
  return what === undefined ? message : what === 'input' ? 'is not valid' : `is no valid ${what}`
}

/** zod's word for a type as JSON Schema has it. */
function typeWord(expected: unknown): string {
  switch (expected) {
    case 'int':
      return 'integer'
    case 'record':
      return 'object'
    case 'tuple':
      return 'array'
    default:
      return String(expected)
  }
}

function pathOf({ path }: StandardIssue): Path {
  return (path ?? []).map((step) => {
    const key = typeof step === 'object' ? step.key : step
    return typeof key === 'symbol' ? String(key) : key
  })
}

function innerIssues(value: unknown): ZodIssue[] {
  return listOf(value).filter(
    (each): each is JsonValue & ZodIssue => isObject(each) && typeof each['message'] === 'string',
  )
}

function textsOf(value: unknown): string[] {
  return listOf(value).filter((each) => typeof each === 'string')
}

function listOf(value: unknown): readonly JsonValue[] {
  return Array.isArray(value) ? (value as JsonValue[]) : []
}
