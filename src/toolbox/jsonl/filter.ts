import type { Pattern } from '../search/pattern/pattern.js'
import { compilePattern } from '../search/pattern/pattern.js'
import { invalidInput } from '../workspace/failure.js'
import type { FileFailure } from '../workspace/failure.js'
import { compareDates, parseDate } from './date-value.js'
import type { DateValue } from './date-value.js'
import { compareDecimals, parseDecimal } from './decimal.js'
import type { Decimal } from './decimal.js'
import { parseFieldPath, valueAt } from './field-path.js'
import type { FieldPath } from './field-path.js'
import { sourceAt } from './json-source.js'
import { textAt } from './row.js'
import type { Row } from './row.js'

/** A filter as the model writes it; the types of its fields were checked against the schema. */
export interface WhereFilter {
  readonly field: string
  readonly op: FilterOperator
  readonly value?: string | number | boolean
  readonly values?: readonly (string | number | boolean)[]
  readonly type?: 'number' | 'date'
}

export const FILTER_OPERATORS = ['eq', 'ne', 'in', 'contains', 'regex', 'exists', 'gt', 'gte', 'lt', 'lte'] as const

export type FilterOperator = (typeof FILTER_OPERATORS)[number]

/** The result of a filter for a row. `incomparable`: the row has no value of the filter's type. */
export type Verdict = boolean | 'incomparable'

/** A filter that is ready to run. */
export interface Filter {
  /** As the summary shows it. */
  readonly shown: string
  readonly isTyped: boolean
  /**
   * In every row that passes, at least one of these strings occurs in the value's text, or equals it (`isWhole`);
   * `undefined` if none are known.
   */
  readonly needs?: { readonly texts: readonly string[]; readonly isWhole: boolean } | undefined
  /** `onPause` is called before long work, and may throw. */
  test(row: Row, onPause: () => void): Verdict
}

/**
 * Checks and compiles a filter.
 * @throws FileFailure `InvalidInput`.
 */
export async function compileFilter(where: WhereFilter): Promise<Filter> {
  const field = parseFieldPath(where.field)
  if (!field.ok) throw invalidFilter(where, `its field ${field.problem}`)
  const problem = operandProblem(where)
  if (problem !== undefined) throw invalidFilter(where, problem)
  return where.type === undefined ? untyped(where, field.path) : typed(where, where.type, field.path)
}

const RANGES = ['gt', 'gte', 'lt', 'lte']

/** The problem of the fields other than `field` and `op`; `undefined` if there is none. */
function operandProblem({ op, value, values, type }: WhereFilter): string | undefined {
  const isRange = RANGES.includes(op)
  if (isRange && type === undefined) return 'it needs a `type`, number or date'
  if (type !== undefined && !isRange && op !== 'eq' && op !== 'ne') return 'it takes no `type`'
  if (type !== undefined && (value === undefined || value === '')) return 'it needs a `value`'
  if (op === 'in') return values === undefined || values.length === 0 ? 'it needs `values`' : inexactProblem(values)
  if (values !== undefined && values.length > 0) return 'it takes no `values`: use `value`, or the operator in'
  if (op === 'exists') return undefined
  return value === undefined ? 'it needs a `value`' : inexactProblem([value])
}

/** A number that JSON has delivered here may have had more digits. Up to 15 digits are the same as a double. */
function inexactProblem(values: readonly (string | number | boolean)[]): string | undefined {
  const isInexact = (value: number): boolean => (parseDecimal(String(value))?.digits.length ?? Infinity) > 15
  const inexact = values.find((value) => typeof value === 'number' && isInexact(value))
  return inexact === undefined ? undefined : `write ${String(inexact)} as a string, so that no digit is lost`
}

async function untyped(where: WhereFilter, field: FieldPath): Promise<Filter> {
  const value = String(where.value ?? '')
  const filter = { shown: shownFilter(where, value), isTyped: false }
  switch (where.op) {
    case 'ne':
      return { ...filter, test: (row) => isPresent(row, field) && !hasText(row, field, value) }
    case 'in': {
      const values = (where.values ?? []).map(String)
      const test = (row: Row): boolean => values.some((each) => hasText(row, field, each))
      return { shown: shownFilter(where, `[${values.join(', ')}]`), isTyped: false, needs: whole(values), test }
    }
    case 'contains': {
      const needs = { texts: [value], isWhole: false }
      return { ...filter, needs, test: (row) => textAt(row, field)?.includes(value) === true }
    }
    case 'exists':
      return { shown: shownFilter(where, ''), isTyped: false, test: (row) => isPresent(row, field) }
    case 'regex': {
      const compiled = await compilePattern(value, { scope: 'text' })
      if (!compiled.ok) throw invalidFilter(where, `its regex cannot be used: ${compiled.problem}`)
      return { ...filter, ...matching(compiled.pattern, field) }
    }
    // Ranges have a type.
    case 'eq':
    case 'gt':
    case 'gte':
    case 'lt':
    case 'lte':
      return { ...filter, needs: whole([value]), test: (row) => hasText(row, field, value) }
  }
}

function whole(texts: readonly string[]): Filter['needs'] {
  return { texts, isWhole: true }
}

function matching(pattern: Pattern, field: FieldPath): Pick<Filter, 'needs' | 'test'> {
  return {
    needs: pattern.literal && { texts: [pattern.literal.toString()], isWhole: false },
    test(row, onPause) {
      onPause()
      const text = textAt(row, field)
      return text !== undefined && pattern.test(text)
    },
  }
}

function isPresent(row: Row, field: FieldPath): boolean {
  const value = valueAt(row.value, field)
  return value !== undefined && value !== null
}

/** True if a value's text is `text`. The text of a number is looked up only if the number is the same. */
function hasText(row: Row, field: FieldPath, text: string): boolean {
  const value = valueAt(row.value, field)
  if (typeof value === 'string') return value === text
  if (typeof value === 'number' && Number.isFinite(value) && Number(text) !== value) return false
  return textAt(row, field) === text
}

function typed(where: WhereFilter, type: 'number' | 'date', field: FieldPath): Filter {
  const value = String(where.value ?? '')
  const compare = type === 'number' ? numberComparison(field, value) : dateComparison(field, value)
  if (compare === undefined) throw invalidFilter(where, type === 'number' ? NO_NUMBER : NO_DATE)
  const accepted = ACCEPTED[where.op]
  const test = (row: Row): Verdict => {
    const order = compare(row)
    return order === undefined ? 'incomparable' : accepted?.includes(Math.sign(order)) === true
  }
  return { shown: `${shownFilter(where, value)} (${type})`, isTyped: true, test }
}

const NO_NUMBER = 'its `value` must be a finite decimal number'
const NO_DATE = 'its `value` must be an ISO date such as 2024-05-31, or a date and time such as 2024-05-31T12:00:00Z'

/** The signs of a comparison with which a row passes. */
const ACCEPTED: Readonly<Partial<Record<FilterOperator, readonly number[]>>> = {
  eq: [0],
  ne: [-1, 1],
  gt: [1],
  gte: [0, 1],
  lt: [-1],
  lte: [-1, 0],
}

/** Compares a row's value with the target: less than 0, 0, more than 0; `undefined` if they cannot be compared. */
type Comparison = (row: Row) => number | undefined

function numberComparison(field: FieldPath, text: string): Comparison | undefined {
  const target = parseDecimal(text.trim())
  if (target === undefined) return undefined
  return (row) => {
    const value = valueAt(row.value, field)
    if (typeof value !== 'number') return undefined
    // Rounding keeps the order: the digits matter only for numbers with the same double.
    if (Number.isFinite(value) && value !== target.double) return value - target.double
    const exact = exactNumber(row, field)
    return exact === undefined ? undefined : compareDecimals(exact, target)
  }
}

/** A number of a row with all its digits; `undefined` for `NaN` and the infinities. */
export function exactNumber({ text }: Row, { steps }: FieldPath): Decimal | undefined {
  return parseDecimal(sourceAt(text, steps) ?? '')
}

function dateComparison(field: FieldPath, text: string): Comparison | undefined {
  const target = parseDate(text.trim())
  if (target === undefined) return undefined
  return (row) => {
    const value = dateOf(valueAt(row.value, field))
    return value === undefined ? undefined : compareDates(value, target)
  }
}

/** A value of a row as a date; `undefined` for anything else. */
export function dateOf(value: unknown): DateValue | undefined {
  return typeof value === 'string' ? parseDate(value) : undefined
}

function shownFilter({ field, op }: WhereFilter, value: string): string {
  return [field, op, value]
    .filter((part) => part !== '')
    .join(' ')
    .slice(0, 300)
}

function invalidFilter({ field, op }: WhereFilter, problem: string): FileFailure {
  return invalidInput(`invalid where filter: \`${field.slice(0, 80)}\` ${op}: ${problem}`)
}
