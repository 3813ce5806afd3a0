import { valueAt } from './field-path.js'
import type { FieldPath } from './field-path.js'
import { cutAt, searchFields } from './field-search.js'
import type { FieldSearch } from './field-search.js'
import { normalizedJson } from './json-source.js'
import { jsonAt, textAt } from './row.js'
import type { Row } from './row.js'

/** A field to show. */
export interface Projection {
  readonly path: FieldPath
  /** Longest text, in characters; 0 for no limit. */
  readonly maxChars: number
}

/** How rows are shown. */
export interface RowView {
  /** Empty: the whole row, or nothing of it where field searches show what is of interest. */
  readonly fields: readonly Projection[]
  readonly searches: readonly FieldSearch[]
  /** Called when it takes long; may throw. */
  readonly onPause: () => void
}

/** Longest text of one row, in characters. */
const MAX_ROW_CHARS = 1_000_000

/** A row as JSON, and under it, on lines of their own, what its field searches found. */
export function rowText(row: Row, { fields, searches, onPause }: RowView): string {
  const json = searches.length > 0 && fields.length === 0 ? '{}' : rowJson(row, fields)
  const under = searchFields(row, searches, { tellMisses: fields.length === 0, onPause })
  return cutAt([json, ...under].join('\n'), MAX_ROW_CHARS)
}

function rowJson(row: Row, fields: readonly Projection[]): string {
  if (fields.length === 0) return normalizedJson(row.text)
  return `{${fields.map((field) => `${JSON.stringify(field.path.text)}: ${fieldJson(row, field)}`).join(', ')}}`
}

/** What is longer than its limit becomes a text, cut. */
function fieldJson(row: Row, { path, maxChars }: Projection): string {
  const value = valueAt(row.value, path)
  if (value === undefined || value === null) return 'null'
  const text = textAt(row, path) ?? 'null'
  const cut = maxChars === 0 ? text : cutAt(text, maxChars)
  return typeof value === 'string' || cut !== text ? JSON.stringify(cut) : jsonAt(row, path)
}
