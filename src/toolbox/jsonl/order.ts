import { orderDates } from './date-value.js'
import type { DateValue } from './date-value.js'
import { compareDecimals } from './decimal.js'
import type { Decimal } from './decimal.js'
import { parseFieldPath, valueAt } from './field-path.js'
import type { FieldPath } from './field-path.js'
import { dateOf, exactNumber } from './filter.js'
import { jsonAt } from './row.js'
import type { Row } from './row.js'

/** An order as the model writes it. */
export interface OrderArguments {
  readonly field: string
  readonly direction?: 'asc' | 'desc'
  readonly type?: 'number' | 'date'
}

export interface Order {
  readonly path: FieldPath
  readonly isDescending: boolean
  readonly type: 'number' | 'date' | undefined
}

/** What a row is ordered by. Numbers come before texts, and those before all else. */
export type OrderKey =
  | NumberKey
  | { readonly kind: 'date'; readonly value: DateValue }
  | { readonly kind: 'text'; readonly value: string }
  | { readonly kind: 'json'; readonly value: string }
  /** Missing, null, or not of the order's type: last in either direction. */
  | { readonly kind: 'none' }

type OrdersResult =
  { readonly ok: true; readonly orders: readonly Order[] } | { readonly ok: false; readonly problem: string }

/** A number that is read digit by digit only when it is met by one with the same double. */
class NumberKey {
  readonly kind = 'number'
  readonly double: number
  readonly #path: FieldPath
  #row: Row | undefined
  #exact: Decimal | undefined

  constructor(double: number, row: Row, path: FieldPath) {
    this.double = double
    this.#row = row
    this.#path = path
  }

  /** All its digits. Once asked for them, the key lets go of its row. */
  exact(): Decimal | undefined {
    if (this.#row !== undefined) this.#exact = exactNumber(this.#row, this.#path)
    this.#row = undefined
    return this.#exact
  }
}

export function compileOrders(all: readonly OrderArguments[]): OrdersResult {
  const orders: Order[] = []
  for (const { field, direction, type } of all) {
    const path = parseFieldPath(field)
    if (!path.ok) return { ok: false, problem: `invalid field path: ${path.problem}` }
    orders.push({ path: path.path, isDescending: direction === 'desc', type })
  }
  return { ok: true, orders }
}

export function orderKey(row: Row, { path, type }: Order): OrderKey {
  const value = valueAt(row.value, path)
  if (value === undefined || value === null) return { kind: 'none' }
  if (type === 'date') {
    const date = dateOf(value)
    return date === undefined ? { kind: 'none' } : { kind: 'date', value: date }
  }
  if (typeof value === 'number') {
    const key = new NumberKey(value, row, path)
    return Number.isFinite(value) || key.exact() !== undefined ? key : { kind: 'none' }
  }
  if (type === 'number') return { kind: 'none' }
  return typeof value === 'string' ? { kind: 'text', value } : { kind: 'json', value: jsonAt(row, path) }
}

/** Lets go of the row that a key was made from, for keys that are kept. */
export function detach(key: OrderKey): void {
  if (key.kind === 'number') key.exact()
}

/** Less than 0 when `left` comes first. */
export function compareKeys(left: OrderKey, right: OrderKey, isDescending: boolean): number {
  if (left.kind === 'none' || right.kind === 'none') return Number(left.kind === 'none') - Number(right.kind === 'none')
  const order = ascending(left, right)
  return isDescending ? -order : order
}

type SomeKey = Exclude<OrderKey, { kind: 'none' }>

const RANK = { number: 0, date: 0, text: 1, json: 2 }

function ascending(left: SomeKey, right: SomeKey): number {
  if (left.kind === 'number' && right.kind === 'number') return compareNumbers(left, right)
  if (left.kind === 'date' && right.kind === 'date') return orderDates(left.value, right.value)
  if (left.kind === 'number' || right.kind === 'number' || left.kind !== right.kind)
    return RANK[left.kind] - RANK[right.kind]
  return left.value === right.value ? 0 : left.value < right.value ? -1 : 1
}

function compareNumbers(left: NumberKey, right: NumberKey): number {
  if (left.double !== right.double) return left.double - right.double
  const [exact, other] = [left.exact(), right.exact()]
  return exact && other ? compareDecimals(exact, other) : 0
}
