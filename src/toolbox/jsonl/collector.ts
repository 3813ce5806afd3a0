import type { Row } from './row.js'

/** Takes the rows that a scan finds. Several files may be open at once. */
export interface RowCollector {
  openFile(path: string): FileCollector
}

export interface FileCollector {
  add(row: Row, line: number): void
  close(): void
}
