import { cutText } from '#util/characters.js'
import type { Pattern } from '../search/pattern.js'
import { splitLines } from '../workspace/lines.js'
import { valueAt } from './field-path.js'
import type { FieldPath } from './field-path.js'

/** A field to show. */
export interface RowProjection {
  readonly path: FieldPath
  /** Longest text, in characters; 0 for no limit. */
  readonly maxChars: number
}

/** A search in the lines of a field. */
export interface FieldSearch {
  readonly label: string
  readonly path: FieldPath
  readonly pattern: Pattern
  readonly contextLines: number
  readonly maxMatches: number
  readonly maxLineChars: number
}

/** How rows are shown. */
export interface RowView {
  /** Empty: the whole row, or nothing of it if there are field searches. */
  readonly fields: readonly RowProjection[]
  readonly searches: readonly FieldSearch[]
  /** Called during long work; may throw. */
  readonly onPause: () => void
}

/** Longest text of one row and longest excerpt of one field, in characters. */
const MAX_ROW_CHARS = 1_000_000
const MAX_EXCERPT_CHARS = 500_000

/** A value that is nested deeper is not shown. */
const MAX_DEPTH = 500

/** A value as JSON on one line, with a space after `,` and `:`. */
export function jsonText(value: unknown, depth = 0): string {
  if (typeof value === 'number') return String(value)
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  if (depth > MAX_DEPTH) return '…'
  if (Array.isArray(value)) return `[${value.map((each) => jsonText(each, depth + 1)).join(', ')}]`
  const members = Object.entries(value).map(([key, each]) => `${JSON.stringify(key)}: ${jsonText(each, depth + 1)}`)
  return `{${members.join(', ')}}`
}

/** A value as text: a string unchanged, anything else as JSON; `undefined` for a missing or null value. */
export function valueText(value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined
  return typeof value === 'string' ? value : jsonText(value)
}

/** A row as it stands in the file, or its fields as JSON; below it, on lines of their own, the results of its field searches. */
export function rowText({ value, text }: { readonly value: unknown; readonly text: string }, view: RowView): string {
  const { fields, searches } = view
  const shown = fields.length > 0 ? fieldsJson(value, fields) : searches.length > 0 ? '{}' : text
  return cutText([shown, ...searchLines(value, view)].join('\n'), MAX_ROW_CHARS)
}

function fieldsJson(row: unknown, fields: readonly RowProjection[]): string {
  return `{${fields.map((field) => `${JSON.stringify(field.path.text)}: ${fieldJson(row, field)}`).join(', ')}}`
}

/** A value that is longer than its limit becomes a string, cut. */
function fieldJson(row: unknown, { path, maxChars }: RowProjection): string {
  const value = valueAt(row, path)
  const text = valueText(value)
  if (text === undefined) return 'null'
  const cut = maxChars === 0 ? text : cutText(text, maxChars)
  return typeof value === 'string' || cut !== text ? JSON.stringify(cut) : text
}

/** Searches without a match are reported only if no search of the row matches and no fields are shown. */
function searchLines(row: unknown, { fields, searches, onPause }: RowView): string[] {
  const results = searches.map((search) => ({ search, found: searchField(row, search, onPause) }))
  const hits = results.filter(({ found }) => typeof found !== 'string')
  if (hits.length === 0 && fields.length > 0) return []
  return (hits.length > 0 ? hits : results).flatMap(({ search, found }) =>
    typeof found === 'string' ? [`    ${search.label}: ${found}`] : [`    ${search.label}:`, ...found],
  )
}

/** The lines with a match, or the reason why there are none. */
function searchField(row: unknown, search: FieldSearch, onPause: () => void): readonly string[] | string {
  const value = valueAt(row, search.path)
  if (value === undefined) return 'none (missing field)'
  if (value === null) return 'none (null field)'
  if (typeof value !== 'string') return 'none (non-string field)'
  const lines = splitLines(value)
  const matches = lines.flatMap((line, index) => {
    onPause()
    return search.pattern.test(line) ? [index] : []
  })
  return matches.length === 0 ? 'none' : rowExcerpt(lines, matches, search)
}

function rowExcerpt(lines: readonly string[], matches: readonly number[], search: FieldSearch): readonly string[] {
  const { contextLines, maxMatches, maxLineChars } = search
  const windows = new Set<number>()
  for (const match of matches.slice(0, maxMatches)) {
    const last = Math.min(lines.length - 1, match + contextLines)
    for (let index = Math.max(0, match - contextLines); index <= last; index++) windows.add(index)
  }
  const shown: string[] = []
  const visible = new Set<number>()
  let chars = 0
  for (const index of [...windows].sort((left, right) => left - right)) {
    const text = cutText(lines[index] ?? '', maxLineChars)
    chars += text.length
    if (chars > MAX_EXCERPT_CHARS) break
    visible.add(index)
    shown.push(`      ${index + 1}: ${text}`)
  }
  const omitted = matches.filter((match) => !visible.has(match)).length
  return omitted === 0 ? shown : [...shown, `      ... ${omitted} more match(es)`]
}
