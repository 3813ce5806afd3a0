import { cutText } from '#util/characters.js'
import type { FileCount } from '../search/engine.js'
import type { Line } from '../search/match-file.js'
import { ResultCollector } from '../search/result-collector.js'
import type { Workspace } from '../workspace/workspace.js'
import { valueAt } from './field-path.js'
import type { FieldPath } from './field-path.js'
import { isDate } from './filter.js'
import { jsonText, rowText } from './row-text.js'
import type { RowView } from './row-text.js'

/** One parsed line of a JSONL file. */
export interface JsonlRow {
  /** Absolute. */
  readonly path: string
  /** The path for the model. */
  readonly shown: string
  readonly line: number
  readonly value: unknown
  /** As it stands in the file. */
  readonly text: string
}

/** Receives the rows that pass, file by file, and shows them in the end. */
export interface RowResults {
  add(row: JsonlRow): void
  body(rowsMatched: number): Body
}

/** A result without its summary: the line that counts it, and the blocks that show it. */
export interface Body {
  readonly count: string
  readonly blocks: readonly string[]
}

/** The part of a list that a call asks for. */
export interface ListPart {
  readonly offset: number
  readonly limit: number
}

/** Longest text that is composed; the files after it are omitted. */
const MAX_TEXT_CHARS = 32_000_000
/** Characters of all rows, or of all distinct values, that are kept. */
const MAX_KEPT_CHARS = 32_000_000
const MAX_VALUE_CHARS = 500

interface FileRows extends FileCount {
  matches: number
  readonly lines: Line[]
}

/** Shows the first rows of each file, file by file. */
export class RowsByFile implements RowResults {
  readonly #collector: ResultCollector<FileRows>
  readonly #maxRows: number
  readonly #view: RowView
  #file: FileRows | undefined

  constructor(
    workspace: Workspace,
    { maxFiles, maxRows }: { readonly maxFiles: number; readonly maxRows: number },
    view: RowView,
  ) {
    this.#collector = new ResultCollector(workspace, {
      maxFiles,
      charsOf: ({ lines }) => lines.reduce((sum, { text }) => sum + text.length, 0),
    })
    this.#maxRows = maxRows
    this.#view = view
  }

  add({ path, line, value, text }: JsonlRow): void {
    if (this.#file?.path !== path) {
      this.#closeFile()
      this.#file = { path, matches: 0, lines: [] }
    }
    this.#file.matches++
    if (this.#file.lines.length >= this.#maxRows || !this.#collector.wants(path)) return
    this.#file.lines.push({ number: line, text: rowText({ value, text }, this.#view) })
  }

  body(): Body {
    this.#closeFile()
    const { totalFiles } = this.#collector
    const blocks: string[] = []
    let chars = 0
    for (const { shown, matches, lines } of this.#collector.firstFiles()) {
      const omitted = matches - lines.length
      const rows = lines.map(({ number, text }) => `  ${number}: ${text}`)
      const block = [shown, ...rows, ...(omitted > 0 ? [`  ... ${omitted} more row(s)`] : [])].join('\n')
      chars += block.length
      if (blocks.length > 0 && chars > MAX_TEXT_CHARS) break
      blocks.push(block)
    }
    return {
      count: `files: ${totalFiles} total, ${blocks.length} shown`,
      blocks: [...blocks, ...blocksWith([], totalFiles - blocks.length, 'file(s)')],
    }
  }

  #closeFile(): void {
    if (this.#file !== undefined) this.#collector.add(this.#file)
    this.#file = undefined
  }
}

export interface Order {
  readonly path: FieldPath
  readonly isDescending: boolean
  readonly type: 'number' | 'date' | undefined
}

/** The value by which a row is ordered: a number, a string, or JSON; `undefined` if it comes last. */
type OrderKey = { readonly rank: number; readonly value: number | string } | undefined

interface SortedRow {
  /** As the model sees its path. */
  readonly file: string
  readonly line: number
  readonly keys: readonly OrderKey[]
}

/**
 * Keeps the first rows of all files in an order: by the fields, then by file and line. Memory is bounded by the number of
 * rows that are kept. Only rows that may be kept are rendered.
 */
export class FirstRows implements RowResults {
  readonly #orders: readonly Order[]
  readonly #part: ListPart
  readonly #view: RowView
  #kept: (SortedRow & { readonly text: string })[] = []
  /** The last row that was kept when the others were dropped. */
  #last: SortedRow | undefined

  constructor(orders: readonly Order[], part: ListPart, view: RowView) {
    this.#orders = orders
    this.#part = part
    this.#view = view
  }

  add({ shown, line, value, text }: JsonlRow): void {
    const keys = this.#orders.map((order) => orderKey(value, order))
    const row = { file: shown, line, keys }
    if (this.#last !== undefined && this.#compare(this.#last, row) <= 0) return
    const most = this.#part.offset + this.#part.limit
    this.#kept.push({ ...row, text: cutText(rowText({ value, text }, this.#view), Math.ceil(MAX_KEPT_CHARS / most)) })
    if (this.#kept.length >= most * 2) this.#trim(most)
  }

  body(rowsMatched: number): Body {
    const { offset, limit } = this.#part
    this.#trim(offset + limit)
    const shown = this.#kept.slice(offset)
    const lines = shown.map(({ file, line, text }) => `  ${file}:${line}: ${text}`)
    return {
      count: `rows: ${shown.length} shown, ${Math.min(offset, rowsMatched)} skipped`,
      blocks: blocksWith(lines, rowsMatched - offset - shown.length, 'row(s)'),
    }
  }

  #trim(most: number): void {
    this.#kept = this.#kept.sort((left, right) => this.#compare(left, right)).slice(0, most)
    if (this.#kept.length === most) this.#last = this.#kept.at(-1)
  }

  #compare(left: SortedRow, right: SortedRow): number {
    for (const [index, { isDescending }] of this.#orders.entries()) {
      const order = compareKeys(left.keys[index], right.keys[index], isDescending)
      if (order !== 0) return order
    }
    return compareSortKeys(left.file, right.file) || left.line - right.line
  }
}

/** Numbers come before strings, and strings before everything else. */
function orderKey(row: unknown, { path, type }: Order): OrderKey {
  const value = valueAt(row, path)
  if (value === undefined || value === null) return undefined
  if (type === 'date') return isDate(value) ? { rank: 0, value } : undefined
  if (typeof value === 'number') return { rank: 0, value }
  if (type === 'number') return undefined
  return typeof value === 'string' ? { rank: 1, value } : { rank: 2, value: jsonText(value) }
}

function compareKeys(left: OrderKey, right: OrderKey, isDescending: boolean): number {
  if (left === undefined || right === undefined) return Number(left === undefined) - Number(right === undefined)
  const order = left.rank - right.rank || compareSortKeys(left.value, right.value)
  return isDescending ? -order : order
}

function compareSortKeys(left: number | string, right: number | string): number {
  return left === right ? 0 : left < right ? -1 : 1
}

/** Counts the rows for each value of a field. */
export class RowCounts implements RowResults {
  readonly #path: FieldPath
  readonly #part: ListPart
  /** By JSON, or `(missing)`. */
  readonly #rows = new Map<string, number>()
  #keptChars = 0
  /** Rows with values that were found when there was no more room to keep them. */
  #otherRows = 0

  constructor(path: FieldPath, part: ListPart) {
    this.#path = path
    this.#part = part
  }

  add(row: JsonlRow): void {
    const value = valueAt(row.value, this.#path)
    const key = value === undefined ? '(missing)' : jsonText(value)
    const count = this.#rows.get(key)
    if (count === undefined && this.#keptChars > MAX_KEPT_CHARS) {
      this.#otherRows++
      return
    }
    if (count === undefined) this.#keptChars += key.length
    this.#rows.set(key, (count ?? 0) + 1)
  }

  /** The most frequent values first, then by value. */
  body(): Body {
    const { offset, limit } = this.#part
    const groups = [...this.#rows].sort(([left, many], [right, most]) => most - many || compareSortKeys(left, right))
    const shown = groups.slice(offset, offset + limit)
    const lines = shown.map(([value, rows]) => `  ${rows}: ${cutText(value, MAX_VALUE_CHARS)}`)
    return {
      count: `groups: ${groups.length} total, ${shown.length} shown`,
      blocks: [
        ...blocksWith(lines, groups.length - offset - shown.length, 'group(s)'),
        ...(this.#otherRows > 0
          ? [`note: ${this.#otherRows} row(s) have other values, too many to count separately`]
          : []),
      ],
    }
  }
}

/** The lines of a block, if there are any, and a note on those that are left out. */
function blocksWith(lines: readonly string[], omitted: number, what: string): string[] {
  return [
    ...(lines.length > 0 ? [lines.join('\n')] : []),
    ...(omitted > 0 ? [`note: ${omitted} more ${what} omitted`] : []),
  ]
}
