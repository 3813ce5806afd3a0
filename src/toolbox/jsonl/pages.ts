import type { FileCount } from '../search/engine.js'
import type { Line } from '../search/match-file.js'
import { ResultCollector } from '../search/result-collector.js'
import type { Workspace } from '../workspace/workspace.js'
import { blocksWith } from './collector.js'
import type { Body, FileCollector, RowCollector } from './collector.js'
import { rowText } from './row-text.js'
import type { RowView } from './row-text.js'

/** Longest text that is composed; the files after it are omitted. */
const MAX_TEXT_CHARS = 32_000_000

interface FileRows extends FileCount {
  readonly lines: readonly Line[]
}

/** Shows the first rows of each file, file by file. */
export class Pages implements RowCollector {
  readonly #collector: ResultCollector<FileRows>
  readonly #maxRows: number
  readonly #view: RowView

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

  openFile(path: string): FileCollector {
    const lines: Line[] = []
    const keepRows = this.#collector.wants(path) ? this.#maxRows : 0
    let rows = 0
    return {
      add: (row, number) => {
        rows++
        if (lines.length < keepRows) lines.push({ number, text: rowText(row, this.#view) })
      },
      close: () => {
        if (rows > 0) this.#collector.add({ path, matches: rows, lines })
      },
    }
  }

  body(): Body {
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
}
