import type { Line } from '../search/hits.js'
import { Shelf } from '../search/shelf.js'
import type { Workspace } from '../workspace/workspace.js'
import { blocksWith } from './collector.js'
import type { Body, FileCollector, RowCollector } from './collector.js'
import { rowText } from './row-text.js'
import type { RowView } from './row-text.js'

/** Longest text that is composed; the files after it are omitted. */
const MAX_TEXT_CHARS = 32_000_000

/** Shows the first rows of each file, file by file. */
export class Pages implements RowCollector {
  readonly #shelf: Shelf
  readonly #maxRows: number
  readonly #view: RowView

  constructor(
    workspace: Workspace,
    { maxFiles, maxRows }: { readonly maxFiles: number; readonly maxRows: number },
    view: RowView,
  ) {
    this.#shelf = new Shelf(workspace, maxFiles)
    this.#maxRows = maxRows
    this.#view = view
  }

  openFile(path: string): FileCollector {
    const lines: Line[] = []
    const keepRows = this.#shelf.wants(path) ? this.#maxRows : 0
    let rows = 0
    return {
      add: (row, number) => {
        rows++
        if (lines.length < keepRows) lines.push({ number, text: rowText(row, this.#view) })
      },
      close: () => {
        if (rows > 0) this.#shelf.add({ path, matches: rows, lines, isReported: false })
      },
    }
  }

  body(): Body {
    const { totalFiles } = this.#shelf
    const blocks: string[] = []
    let chars = 0
    for (const { shown, matches, lines } of this.#shelf.shown()) {
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
}
