import { PartialJson } from '#run/output/partial-json.js'
import { isObject, parseJson } from '#util/json.js'
import type { FileRecord } from './session.js'

/** A session file as JSON: lines, or one document. */
export interface SourceFile {
  /** The objects of the lines, or of a document that is a list. */
  readonly records: readonly FileRecord[]
  /** The document, if it is an object. */
  readonly document: FileRecord | null
  /** Lines, or elements of the list, that are no JSON object; of a document 1 if it is cut off. */
  readonly broken: number
}

/** Reads what there is to read: a line that is broken is passed over, a document that is cut off is read to that place. */
export function sourceFileOf(text: string): SourceFile {
  const whole = parseJson(text.replace(/^\uFEFF/, ''))
  if (whole.ok && isObject(whole.value)) {
    // A file with one line, unless it is a document.
    const isLine = typeof whole.value['type'] === 'string' && whole.value['messages'] === undefined
    return isLine ? fromList([whole.value], 0) : { records: [], document: whole.value, broken: 0 }
  }
  if (whole.ok) return Array.isArray(whole.value) ? fromList(whole.value, 0) : fromList([whole.value], 0)
  const lines = text.split(/\r?\n/).filter((line) => line.trim() !== '')
  const parsed = lines.map((line) => parseJson(line.replace(/^\uFEFF/, '')))
  const good = parsed.flatMap((line) => (line.ok ? [line.value] : []))
  const isLines = good.some((value) => isObject(value)) && !startsDocument(lines)
  if (isLines || lines.length === 0) return fromList(good, parsed.length - good.length)
  const beginning = new PartialJson()
  beginning.push(text)
  const value = beginning.value()
  if (isObject(value)) return { records: [], document: value, broken: 1 }
  return fromList(Array.isArray(value) ? (value as readonly unknown[]) : [], 1)
}

/** A document over several lines: its first line is no JSON by itself, and is the beginning of one. */
function startsDocument([first = '']: readonly string[]): boolean {
  return /^\s*[[{]\s*$/.test(first) || /^\s*\[\s*\{/.test(first)
}

function fromList(list: readonly unknown[], broken: number): SourceFile {
  const records = list.filter((value) => isObject(value))
  return { records, document: null, broken: broken + list.length - records.length }
}
