import { compilePattern } from '../search/pattern.js'
import { invalidInput } from '../workspace/file-failure.js'
import type { FileFailure } from '../workspace/file-failure.js'
import { parseFieldPath, valueAt } from './field-path.js'
import type { FieldPath } from './field-path.js'
import { valueText } from './row-text.js'

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
export type FilterVerdict = boolean | 'incomparable'

/** A filter that is ready to run. */
export interface Filter {
  /** As the summary shows it. */
  readonly shown: string
  /** `onPause` is called before long work, and may throw. */
  test(row: unknown, onPause: () => void): FilterVerdict
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
  return where.type === undefined ? untypedFilter(where, field.path) : typedFilter(where, where.type, field.path)
}

const RANGES = ['gt', 'gte', 'lt', 'lte']

/** The problem of the fields other than `field` and `op`; `undefined` if there is none. */
function operandProblem({ op, value, values, type }: WhereFilter): string | undefined {
  const isRange = RANGES.includes(op)
  if (isRange && type === undefined) return 'it needs a `type`, number or date'
  if (type !== undefined && !isRange && op !== 'eq' && op !== 'ne') return 'it takes no `type`'
  if (type !== undefined && (value === undefined || value === '')) return 'it needs a `value`'
  if (op === 'in') return values === undefined || values.length === 0 ? 'it needs `values`' : undefined
  if (values !== undefined && values.length > 0) return 'it takes no `values`: use `value`, or the operator in'
  return op === 'exists' || value !== undefined ? undefined : 'it needs a `value`'
}

async function untypedFilter(where: WhereFilter, field: FieldPath): Promise<Filter> {
  const value = String(where.value ?? '')
  const shown = shownFilter(where, value)
  switch (where.op) {
    case 'ne':
      return { shown, test: (row) => isPresent(row, field) && !hasText(row, field, value) }
    case 'in': {
      const values = (where.values ?? []).map(String)
      const test = (row: unknown): boolean => values.some((each) => hasText(row, field, each))
      return { shown: shownFilter(where, `[${values.join(', ')}]`), test }
    }
    case 'contains':
      return { shown, test: (row) => valueText(valueAt(row, field))?.includes(value) === true }
    case 'exists':
      return { shown: shownFilter(where, ''), test: (row) => isPresent(row, field) }
    case 'regex':
      return { shown, test: await regexTest(where, field, value) }
    // Ranges have a type.
    case 'eq':
    case 'gt':
    case 'gte':
    case 'lt':
    case 'lte':
      return { shown, test: (row) => hasText(row, field, value) }
  }
}

async function regexTest(where: WhereFilter, field: FieldPath, source: string): Promise<Filter['test']> {
  const compiled = await compilePattern(source, { scope: 'text' })
  if (!compiled.ok) throw invalidFilter(where, `its regex cannot be used: ${compiled.problem}`)
  return (row, onPause) => {
    onPause()
    const text = valueText(valueAt(row, field))
    return text !== undefined && compiled.pattern.test(text)
  }
}

function isPresent(row: unknown, field: FieldPath): boolean {
  const value = valueAt(row, field)
  return value !== undefined && value !== null
}

/** True if a value's text is `text`, or if it is the number that `text` spells. */
function hasText(row: unknown, field: FieldPath, text: string): boolean {
  const value = valueAt(row, field)
  return typeof value === 'number' ? parseNumber(text) === value : valueText(value) === text
}

function typedFilter(where: WhereFilter, type: 'number' | 'date', field: FieldPath): Filter {
  const value = String(where.value ?? '')
  const compare = type === 'number' ? numberComparison(value) : dateComparison(value)
  if (compare === undefined) throw invalidFilter(where, type === 'number' ? NO_NUMBER : NO_DATE)
  const accepted = ACCEPTED[where.op]
  const test = (row: unknown): FilterVerdict => {
    const order = compare(valueAt(row, field))
    return order === undefined ? 'incomparable' : accepted?.includes(Math.sign(order)) === true
  }
  return { shown: `${shownFilter(where, value)} (${type})`, test }
}

const NO_NUMBER = 'its `value` must be a finite number'
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
type Comparison = (value: unknown) => number | undefined

function numberComparison(text: string): Comparison | undefined {
  const target = parseNumber(text)
  if (target === undefined) return undefined
  return (value) => (typeof value === 'number' ? value - target : undefined)
}

/** `undefined` for text that is not a finite number. */
function parseNumber(text: string): number | undefined {
  const number = Number(text)
  return text.trim() !== '' && Number.isFinite(number) ? number : undefined
}

/**
 * Dates are compared as they are written; if one has no time of day, only the days. Times with an offset from UTC and times
 * without one cannot be compared.
 */
function dateComparison(text: string): Comparison | undefined {
  const target = text.trim()
  if (!isDate(target)) return undefined
  return (value) => {
    if (!isDate(value)) return undefined
    if (value.length === DAY_CHARS || target.length === DAY_CHARS) {
      return compareText(value.slice(0, DAY_CHARS), target.slice(0, DAY_CHARS))
    }
    return OFFSET.test(value) === OFFSET.test(target) ? compareText(value, target) : undefined
  }
}

function compareText(left: string, right: string): number {
  return left === right ? 0 : left < right ? -1 : 1
}

const DAY_CHARS = 10
const OFFSET = /(?:[Zz]|[+-]\d{2}:?\d{2})$/
const DATE = /^\d{4}-(?:0\d|1[0-2])-(?:[0-2]\d|3[01])(?:[Tt ]\d{2}:\d{2}[\d:.,Zz+-]*)?$/

/** True for an ISO 8601 date, or date and time. */
export function isDate(value: unknown): value is string {
  return typeof value === 'string' && DATE.test(value)
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
