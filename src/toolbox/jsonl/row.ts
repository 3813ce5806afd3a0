import { valueAt } from './field-path.js'
import type { FieldPath } from './field-path.js'
import { normalizedJson, sourceAt, withoutNonFinite } from './json-source.js'

/** One line of a JSONL file, parsed. */
export interface Row {
  /** As it was written. */
  readonly text: string
  /** Its numbers are only as exact as JavaScript's: a number that is not finite stands for one whose text must be asked. */
  readonly value: unknown
}

/** `undefined` for what is no JSON. `NaN`, `Infinity` and `-Infinity` pass as numbers, as some writers leave them. */
export function parseRow(text: string): Row | undefined {
  const value = parsed(text) ?? (/NaN|Infinity/.test(text) ? parsed(withoutNonFinite(text)) : undefined)
  return value === undefined ? undefined : { text, value: value.json }
}

/**
 * A value of a row as text: a string as it is, anything else as JSON, numbers as they were written. `undefined` for what is
 * missing or null.
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

function parsed(text: string): { readonly json: unknown } | undefined {
  try {
    return { json: JSON.parse(text) as unknown }
  } catch {
    return undefined
  }
}

/** Takes the rows that a scan finds. Several files may be open at once. */
export interface RowCollector {
  openFile(path: string): FileCollector
}

export interface FileCollector {
  add(row: Row, line: number): void
  close(): void
}
