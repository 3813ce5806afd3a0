import type { RowCollector } from './row.js'
import { compareKeys, detach, orderKey } from './order.js'
import type { Order, OrderKey } from './order.js'
import { rowText } from './row-text.js'
import type { RowView } from './row-text.js'
import { cutAt } from './field-search.js'
import type { Row } from './row.js'

export interface RankedRow {
  /** Relative to the root. */
  readonly file: string
  readonly line: number
  readonly text: string
  readonly keys: readonly OrderKey[]
}

/** Characters of all rows that are kept. */
const MAX_KEPT_CHARS = 32_000_000

/**
 * Keeps the first rows of all files in an order: that of the fields, then by file and line. Memory is bounded by the number
 * of rows that are kept; a row's text is only made when the row is kept.
 */
export class Ranked implements RowCollector {
  readonly #orders: readonly Order[]
  readonly #count: number
  readonly #view: RowView
  readonly #display: (path: string) => string
  readonly #kept: RankedRow[] = []

  constructor(
    orders: readonly Order[],
    count: number,
    { view, display }: { readonly view: RowView; readonly display: (path: string) => string },
  ) {
    this.#orders = orders
    this.#count = count
    this.#view = view
    this.#display = display
  }

  /** In order. */
  get rows(): readonly RankedRow[] {
    return this.#kept
  }

  openFile(path: string): ReturnType<RowCollector['openFile']> {
    const file = this.#display(path)
    return { add: (row, line) => this.#offer(row, file, line), close: () => undefined }
  }

  #offer(row: Row, file: string, line: number): void {
    const keys = this.#orders.map((order) => orderKey(row, order))
    const candidate = { file, line, keys }
    const last = this.#kept.at(-1)
    const isFull = this.#kept.length >= this.#count
    if (isFull && last !== undefined && this.#compare(last, candidate) <= 0) return
    const text = cutAt(rowText(row, this.#view), Math.ceil(MAX_KEPT_CHARS / this.#count))
    keys.forEach(detach)
    this.#kept.splice(this.#placeFor(candidate), 0, { ...candidate, text })
    if (isFull) this.#kept.pop()
  }

  #placeFor(candidate: Omit<RankedRow, 'text'>): number {
    let low = 0
    let high = this.#kept.length
    while (low < high) {
      const middle = (low + high) >> 1
      const there = this.#kept[middle]
      if (there !== undefined && this.#compare(there, candidate) <= 0) low = middle + 1
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
