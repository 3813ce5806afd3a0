import { parseJson } from '../../util/json.js'
import { valueAt } from './field-path.js'
import type { FieldPath } from './field-path.js'
import { normalizedJson, sourceAt, withoutNonFinite } from './json-source.js'

/** One line of a JSONL file, parsed. */
export interface Row {
  /** As written. */
  readonly text: string
  /** Numbers are doubles. A number that is not finite stands for one that must be read from the text. */
  readonly value: unknown
}

/** `undefined` if the text is not JSON. `NaN`, `Infinity` and `-Infinity` count as numbers, since some writers emit them. */
export function parseRow(text: string): Row | undefined {
  const parsed = parseJson(text)
  if (parsed.ok) return { text, value: parsed.value }
  const repaired = /NaN|Infinity/.test(text) ? parseJson(withoutNonFinite(text)) : parsed
  return repaired.ok ? { text, value: repaired.value } : undefined
}

/**
 * A value of a row as text: a string unchanged, anything else as JSON, with numbers as written. `undefined` for a missing or
 * null value.
 */
export function textAt(row: Row, path: FieldPath): string | undefined {
  const value = valueAt(row.value, path)
  if (value === undefined || value === null) return undefined
  return typeof value === 'string' ? value : jsonAt(row, path)
}

/** A value of a row as JSON in the form of `normalizedJson`; `null` for a missing one. */
export function jsonAt({ text }: Row, path: FieldPath): string {
  const source = sourceAt(text, path.steps)
  return source === undefined ? 'null' : normalizedJson(source)
}
