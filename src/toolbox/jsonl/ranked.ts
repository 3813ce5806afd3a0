import { cutText } from '../../util/characters.js'
import { blocksWith } from './collector.js'
import type { Body, FileCollector, Page, RowCollector } from './collector.js'
import { orderDates } from './date-value.js'
import type { DateValue } from './date-value.js'
import { compareDecimals } from './decimal.js'
import type { Decimal } from './decimal.js'
import { valueAt } from './field-path.js'
import type { FieldPath } from './field-path.js'
import { dateOf, exactNumber } from './filter.js'
import { rowText } from './row-text.js'
import type { RowView } from './row-text.js'
import { jsonAt } from './row.js'
import type { Row } from './row.js'

export interface Order {
  readonly path: FieldPath
  readonly isDescending: boolean
  readonly type: 'number' | 'date' | undefined
}

interface RankedRow {
  /** Relative to the root. */
  readonly file: string
  readonly line: number
  readonly text: string
  readonly keys: readonly OrderKey[]
}

/** Characters of all rows that are kept. */
const MAX_KEPT_CHARS = 32_000_000

/**
 * Keeps the first rows of all files in an order: by the fields, then by file and line. Memory is bounded by the number of
 * rows that are kept. Only rows that are kept are rendered.
 */
export class Ranked implements RowCollector {
  readonly #orders: readonly Order[]
  readonly #page: Page
  readonly #view: RowView
  readonly #kept: RankedRow[] = []

  constructor(orders: readonly Order[], page: Page, view: RowView) {
    this.#orders = orders
    this.#page = page
    this.#view = view
  }

  openFile(path: string): FileCollector {
    const file = this.#view.display(path)
    return { add: (row, line) => this.#add(row, file, line) }
  }

  body(rowsMatched: number): Body {
    const { offset } = this.#page
    const shown = this.#kept.slice(offset)
    const lines = shown.map(({ file, line, text }) => `  ${file}:${line}: ${text}`)
    return {
      count: `rows: ${shown.length} shown, ${Math.min(offset, rowsMatched)} skipped`,
      blocks: blocksWith(lines, rowsMatched - offset - shown.length, 'row(s)'),
    }
  }

  #add(row: Row, file: string, line: number): void {
    const most = this.#page.offset + this.#page.limit
    const keys = this.#orders.map((order) => orderKey(row, order))
    const candidate = { file, line, keys }
    const last = this.#kept.at(-1)
    const isFull = this.#kept.length >= most
    if (isFull && last !== undefined && this.#compare(last, candidate) <= 0) return
    const text = cutText(rowText(row, this.#view), Math.ceil(MAX_KEPT_CHARS / most))
    // A key that is kept must not keep its row.
    for (const key of keys) if (key.kind === 'number') key.exact()
    this.#kept.splice(this.#placeFor(candidate), 0, { ...candidate, text })
    if (isFull) this.#kept.pop()
  }

  #placeFor(candidate: Omit<RankedRow, 'text'>): number {
    let low = 0
    let high = this.#kept.length
    while (low < high) {
      const middle = (low + high) >> 1
      const other = this.#kept[middle]
      if (other !== undefined && this.#compare(other, candidate) <= 0) low = middle + 1
      else high = middle
    }
    return low
  }

  #compare(left: Omit<RankedRow, 'text'>, right: Omit<RankedRow, 'text'>): number {
    for (const [index, { isDescending }] of this.#orders.entries()) {
      const [leftKey, rightKey] = [left.keys[index], right.keys[index]]
      const order = leftKey && rightKey ? compareKeys(leftKey, rightKey, isDescending) : 0
      if (order !== 0) return order
    }
    if (left.file !== right.file) return left.file < right.file ? -1 : 1
    return left.line - right.line
  }
}

/** The value by which a row is ordered. Numbers come before strings, and strings before everything else. */
type OrderKey =
  | NumberKey
  | { readonly kind: 'date'; readonly value: DateValue }
  | { readonly kind: 'text'; readonly value: string }
  | { readonly kind: 'json'; readonly value: string }
  /** Missing, null, or not of the order's type: last in either direction. */
  | { readonly kind: 'none' }

interface NumberKey {
  readonly kind: 'number'
  readonly double: number
  /** All its digits: needed only to compare it with a number that has the same double. Releases the row. */
  exact(): Decimal | undefined
}

function orderKey(row: Row, { path, type }: Order): OrderKey {
  const value = valueAt(row.value, path)
  if (value === undefined || value === null) return { kind: 'none' }
  if (type === 'date') {
    const date = dateOf(value)
    return date === undefined ? { kind: 'none' } : { kind: 'date', value: date }
  }
  if (typeof value === 'number') {
    const key = numberKey(value, row, path)
    return Number.isFinite(value) || key.exact() !== undefined ? key : { kind: 'none' }
  }
  if (type === 'number') return { kind: 'none' }
  return typeof value === 'string' ? { kind: 'text', value } : { kind: 'json', value: jsonAt(row, path) }
}

function numberKey(double: number, source: Row, path: FieldPath): NumberKey {
  let row: Row | undefined = source
  let digits: Decimal | undefined
  const exact = (): Decimal | undefined => {
    if (row !== undefined) digits = exactNumber(row, path)
    row = undefined
    return digits
  }
  return { kind: 'number', double, exact }
}

/** Less than 0 if `left` comes first. */
function compareKeys(left: OrderKey, right: OrderKey, isDescending: boolean): number {
  if (left.kind === 'none' || right.kind === 'none') return Number(left.kind === 'none') - Number(right.kind === 'none')
  const order = ascending(left, right)
  return isDescending ? -order : order
}

const RANK = { number: 0, date: 0, text: 1, json: 2 }

type SomeKey = Exclude<OrderKey, { kind: 'none' }>

function ascending(left: SomeKey, right: SomeKey): number {
  if (left.kind === 'number' && right.kind === 'number') return compareNumbers(left, right)
  if (left.kind === 'date' && right.kind === 'date') return orderDates(left.value, right.value)
  if (left.kind === 'number' || right.kind === 'number' || left.kind !== right.kind)
    return RANK[left.kind] - RANK[right.kind]
  return left.value === right.value ? 0 : left.value < right.value ? -1 : 1
}

function compareNumbers(left: NumberKey, right: NumberKey): number {
  if (left.double !== right.double) return left.double - right.double
  const [leftDigits, rightDigits] = [left.exact(), right.exact()]
  return leftDigits && rightDigits ? compareDecimals(leftDigits, rightDigits) : 0
}
