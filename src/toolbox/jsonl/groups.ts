import { cutText } from '../../util/characters.js'
import { blocksWith } from './collector.js'
import type { Body, FileCollector, Page, RowCollector } from './collector.js'
import { valueAt } from './field-path.js'
import type { FieldPath } from './field-path.js'
import { jsonAt } from './row.js'
import type { Row } from './row.js'

interface Group {
  /** The value as JSON, or `(missing)`. */
  readonly value: string
  readonly rows: number
}

/** Characters of all distinct values that are kept. */
const MAX_KEPT_CHARS = 32_000_000
const MAX_SHOWN_CHARS = 500

/** Counts the rows for each value of a field. */
export class Groups implements RowCollector {
  readonly #path: FieldPath
  readonly #page: Page
  /** Rows by string, and by JSON for other values. */
  readonly #strings = new Map<string, number>()
  readonly #values = new Map<string, number>()
  #keptChars = 0
  #others = 0

  constructor(path: FieldPath, page: Page) {
    this.#path = path
    this.#page = page
  }

  /** Rows with values that were found when there was no more room to keep them. */
  get others(): number {
    return this.#others
  }

  openFile(): FileCollector {
    return { add: (row) => this.#count(row) }
  }

  body(): Body {
    const { offset, limit } = this.#page
    const groups = this.sorted()
    const shown = groups.slice(offset, offset + limit)
    const lines = shown.map(({ value, rows }) => `  ${rows}: ${cutText(value, MAX_SHOWN_CHARS)}`)
    return {
      count: `groups: ${groups.length} total, ${shown.length} shown`,
      blocks: [
        ...blocksWith(lines, groups.length - offset - shown.length, 'group(s)'),
        ...(this.#others > 0 ? [`note: ${this.#others} row(s) have other values, too many to count separately`] : []),
      ],
    }
  }

  /** The most frequent first, then by value. */
  sorted(): Group[] {
    const strings = [...this.#strings].map(([text, rows]) => ({ value: JSON.stringify(text), rows }))
    const values = [...this.#values].map(([value, rows]) => ({ value, rows }))
    return [...strings, ...values].sort((left, right) => right.rows - left.rows || (left.value < right.value ? -1 : 1))
  }

  #count(row: Row): void {
    const value = valueAt(row.value, this.#path)
    if (typeof value === 'string') this.#countIn(this.#strings, value)
    else this.#countIn(this.#values, value === undefined ? '(missing)' : jsonAt(row, this.#path))
  }

  #countIn(counts: Map<string, number>, value: string): void {
    const count = counts.get(value)
    if (count !== undefined) counts.set(value, count + 1)
    else if (this.#keptChars > MAX_KEPT_CHARS) this.#others++
    else {
      this.#keptChars += value.length
      counts.set(value, 1)
    }
  }
}
