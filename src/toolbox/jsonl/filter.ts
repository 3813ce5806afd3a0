import type { Pattern } from '../search/pattern/pattern.js'
import { compilePattern } from '../search/pattern/pattern.js'
import { compareDates, parseDate } from './date-value.js'
import type { DateValue } from './date-value.js'
import { compareDecimals, parseDecimal } from './decimal.js'
import type { Decimal } from './decimal.js'
import { parseFieldPath, valueAt } from './field-path.js'
import type { FieldPath } from './field-path.js'
import { sourceAt } from './json-source.js'
import { textAt } from './row.js'
import type { Row } from './row.js'

/** A filter as the model writes it; the schema has checked the types of its fields. */
export interface WhereFilter {
  readonly field: string
  readonly op: FilterOperator
  readonly value?: string | number | boolean
  readonly values?: readonly (string | number | boolean)[]
  readonly type?: 'number' | 'date'
}

export const FILTER_OPERATORS = ['eq', 'ne', 'in', 'contains', 'regex', 'exists', 'gt', 'gte', 'lt', 'lte'] as const

export type FilterOperator = (typeof FILTER_OPERATORS)[number]

/** What a filter says of a row. `incomparable`: the row has no value of the filter's type. */
export type Verdict = boolean | 'incomparable'

/** A filter that is ready to run. */
export interface Filter {
  readonly field: FieldPath
  /** As the summary shows it. */
  readonly shown: string
  readonly isTyped: boolean
  /**
   * Texts of which one at least is in the value's text in every row that passes, or is that text (`isWhole`); `undefined`
   * when there is no such text.
   */
  readonly needs: { readonly texts: readonly string[]; readonly isWhole: boolean } | undefined
  /** `onPause` is called before what may take long, and may throw. */
  test(row: Row, onPause: () => void): Verdict
}

type FilterResult = { readonly ok: true; readonly filter: Filter } | { readonly ok: false; readonly problem: string }

/** Checks and compiles a filter: after this it cannot fail. */
export async function compileFilter(where: WhereFilter): Promise<FilterResult> {
  const field = parseFieldPath(where.field)
  if (!field.ok) return refuse(where, `its field ${field.problem}`)
  const problem = operandProblem(where)
  if (problem !== undefined) return refuse(where, problem)
  return where.type === undefined ? untyped(where, field.path) : typed(where, where.type, field.path)
}

const RANGES = ['gt', 'gte', 'lt', 'lte']

/** What is wrong with the fields beside `field` and `op`; `undefined` when nothing is. */
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

/** JSON has brought a number here that may have had more digits. */
function inexactProblem(values: readonly (string | number | boolean)[]): string | undefined {
  const inexact = values.find((value) => typeof value === 'number' && !hasFewDigits(String(value)))
  return inexact === undefined ? undefined : `write ${String(inexact)} as a text, so that no digit is lost`
}

/** A number of up to 15 digits is the same after it was a double. */
function hasFewDigits(text: string): boolean {
  return (parseDecimal(text)?.digits.length ?? Infinity) <= 15
}

async function untyped(where: WhereFilter, field: FieldPath): Promise<FilterResult> {
  const value = String(where.value ?? '')
  const make = (rest: Pick<Filter, 'needs' | 'test'>, shown = value): FilterResult => ({
    ok: true,
    filter: { field, shown: shownFilter(where, shown), isTyped: false, ...rest },
  })
  switch (where.op) {
    case 'eq':
      return make({ needs: { texts: [value], isWhole: true }, test: (row) => hasText(row, field, value) })
    case 'ne':
      return make({ needs: undefined, test: (row) => isPresent(row, field) && !hasText(row, field, value) })
    case 'in': {
      const values = (where.values ?? []).map(String)
      const test = (row: Row): boolean => values.some((each) => hasText(row, field, each))
      return make({ needs: { texts: values, isWhole: true }, test }, `[${values.join(', ')}]`)
    }
    case 'contains':
      return make({
        needs: { texts: [value], isWhole: false },
        test: (row) => textAt(row, field)?.includes(value) === true,
      })
    case 'exists':
      return make({ needs: undefined, test: (row) => isPresent(row, field) }, '')
    case 'regex': {
      const compiled = await compilePattern(value, { scope: 'text' })
      if (!compiled.ok) return refuse(where, `its regex cannot be used: ${compiled.problem}`)
      return make(matching(compiled.pattern, field))
    }
    case 'gt':
    case 'gte':
    case 'lt':
    case 'lte':
      return refuse(where, 'it needs a `type`, number or date')
  }
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

/** Whether a value's text is `text`. That of a number is only looked up where the number is the same. */
function hasText(row: Row, field: FieldPath, text: string): boolean {
  const value = valueAt(row.value, field)
  if (typeof value === 'string') return value === text
  if (typeof value === 'number' && Number.isFinite(value) && Number(text) !== value) return false
  return textAt(row, field) === text
}

function typed(where: WhereFilter, type: 'number' | 'date', field: FieldPath): FilterResult {
  const value = String(where.value ?? '')
  const shown = `${shownFilter(where, value)} (${type})`
  const compare = type === 'number' ? numberComparison(field, value) : dateComparison(field, value)
  if (compare === undefined) {
    return refuse(where, type === 'number' ? NO_NUMBER : NO_DATE)
  }
  const holds = comparisonFor(where.op)
  const test = (row: Row): Verdict => {
    const order = compare(row)
    return order === undefined ? 'incomparable' : holds(order)
  }
  return { ok: true, filter: { field, shown, isTyped: true, needs: undefined, test } }
}

const NO_NUMBER = 'its `value` must be a finite decimal number'
const NO_DATE = 'its `value` must be an ISO date such as 2024-05-31, or a date and time such as 2024-05-31T12:00:00Z'

/** How a row's value stands to the target: less than 0, 0, more than 0; `undefined` when they cannot be compared. */
type Comparison = (row: Row) => number | undefined

function numberComparison(field: FieldPath, text: string): Comparison | undefined {
  const target = parseDecimal(text.trim())
  if (target === undefined) return undefined
  return (row) => {
    const value = valueAt(row.value, field)
    if (typeof value !== 'number') return undefined
    // Rounding keeps the order: only numbers with the same double need their digits looked at.
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

/** A value of a row as a date; `undefined` for what is none. */
export function dateOf(value: unknown): DateValue | undefined {
  return typeof value === 'string' ? parseDate(value) : undefined
}

function comparisonFor(op: FilterOperator): (order: number) => boolean {
  switch (op) {
    case 'ne':
      return (order) => order !== 0
    case 'gt':
      return (order) => order > 0
    case 'gte':
      return (order) => order >= 0
    case 'lt':
      return (order) => order < 0
    case 'lte':
      return (order) => order <= 0
    case 'eq':
    case 'in':
    case 'contains':
    case 'regex':
    case 'exists':
      return (order) => order === 0
  }
}

function shownFilter({ field, op }: WhereFilter, value: string): string {
  return [field, op, value]
    .filter((part) => part !== '')
    .join(' ')
    .slice(0, 300)
}

function refuse({ field, op }: WhereFilter, problem: string): FilterResult {
  return { ok: false, problem: `\`${field.slice(0, 80)}\` ${op}: ${problem}` }
}
