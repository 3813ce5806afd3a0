import type { Line } from '../search/hits.js'
import type { Shelf } from '../search/shelf.js'
import type { RowCollector } from './collector.js'
import { rowText } from './row-text.js'
import type { RowView } from './row-text.js'

/** Shows the first rows of each file, file by file. */
export function pageCollector(shelf: Shelf, maxRows: number, view: RowView): RowCollector {
  return {
    openFile(path) {
      const lines: Line[] = []
      const keepRows = shelf.wants(path) ? maxRows : 0
      let rows = 0
      return {
        add(row, number) {
          rows++
          if (lines.length < keepRows) lines.push({ number, text: rowText(row, view) })
        },
        close() {
          if (rows > 0) shelf.add({ kind: 'read', path, matches: rows, lines })
        },
      }
    },
  }
}
