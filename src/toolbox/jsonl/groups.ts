import type { FileCollector, RowCollector } from './row.js'
import { valueAt } from './field-path.js'
import type { FieldPath } from './field-path.js'
import { jsonAt } from './row.js'
import type { Row } from './row.js'

export interface Group {
  /** The value as JSON, or `(missing)`. */
  readonly value: string
  readonly rows: number
}

/** Characters of all values that are kept apart. */
const MAX_KEPT_CHARS = 32_000_000

/** Counts the rows for each value of a field. */
export class Groups implements RowCollector {
  readonly #path: FieldPath
  /** Rows by text, and by JSON where the value is no text. */
  readonly #texts = new Map<string, number>()
  readonly #values = new Map<string, number>()
  #keptChars = 0
  #others = 0

  constructor(path: FieldPath) {
    this.#path = path
  }

  /** Rows whose values came when there was no more room to keep them apart. */
  get others(): number {
    return this.#others
  }

  /** The most frequent first, then by value. */
  sorted(): Group[] {
    const texts = [...this.#texts].map(([text, rows]) => ({ value: JSON.stringify(text), rows }))
    const values = [...this.#values].map(([value, rows]) => ({ value, rows }))
    return [...texts, ...values].sort((left, right) => right.rows - left.rows || (left.value < right.value ? -1 : 1))
  }

  openFile(): FileCollector {
    return { add: (row) => this.#count(row), close: () => undefined }
  }

  #count(row: Row): void {
    const value = valueAt(row.value, this.#path)
    if (typeof value === 'string') this.#countIn(this.#texts, value)
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
