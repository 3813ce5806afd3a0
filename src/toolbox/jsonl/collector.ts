import type { Row } from './row.js'

/** Receives the rows that a scan finds, and renders them in the end. Several files may be open at once. */
export interface RowCollector {
  openFile(path: string): FileCollector
  body(rowsMatched: number): Body
}

export interface FileCollector {
  add(row: Row, line: number): void
  close?(): void
}

/** A result without its summary: the line that counts it, and the blocks that show it. */
export interface Body {
  readonly count: string
  readonly blocks: readonly string[]
}

/** The part of the result that a call asks for. */
export interface Page {
  readonly offset: number
  readonly limit: number
}

/** The lines of a block, if there are any, and a note on those that are left out. */
export function blocksWith(lines: readonly string[], omitted: number, what: string): string[] {
  return [
    ...(lines.length > 0 ? [lines.join('\n')] : []),
    ...(omitted > 0 ? [`note: ${omitted} more ${what} omitted`] : []),
  ]
}
