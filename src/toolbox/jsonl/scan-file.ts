import { parseJson } from '#util/json.js'
import { textBlocks } from '../search/blocks.js'
import { eachMatchingLine, lineFeeds } from '../search/pattern/matching-lines.js'
import type { Pattern } from '../search/pattern/pattern.js'
import type { CallTime } from '../workspace/call-time.js'
import type { ListedFile } from '../workspace/safe-open.js'
import type { Filter } from './filter.js'

/** The condition for rows. */
export interface RowQuery {
  /** Only matching lines are parsed. */
  readonly pattern: Pattern | undefined
  readonly filters: readonly Filter[]
}

/** Sums over all files; only ever added to. */
export interface ScanCounts {
  rowsMatched: number
  /** Rows that a typed filter could not compare. */
  compareWarnings: number
  /** Lines that are not JSON. */
  parseErrors: number
  /** Lines that are too long to be held in memory, or to be searched completely. */
  overlongLines: number
}

export interface Scan {
  readonly query: RowQuery
  readonly counts: ScanCounts
  readonly time: CallTime
  /** Receives each row that passes, with its line number. */
  readonly onRow: (value: unknown, line: number) => void
}

/** Rows between two checks of the time. */
const ROWS_BETWEEN_BREATHS = 128

/** Reads a JSONL file from beginning to end, in bounded memory: its lines are matched, parsed and filtered. */
export async function scanFile(file: ListedFile, scan: Scan): Promise<void> {
  const { counts, time } = scan
  const { pattern } = scan.query
  let lines = 0
  for await (const block of textBlocks(file, file)) {
    await time.breathe()
    if (block === null) {
      lines++
      counts.overlongLines++
      continue
    }
    if (pattern === undefined) {
      for (const text of linesOf(block)) {
        scanLine(text, ++lines, scan)
        if (lines % ROWS_BETWEEN_BREATHS === 0) await time.breathe()
      }
      continue
    }
    await eachMatchingLine(block, {
      pattern,
      time,
      onLine: ({ start, end, before }) => {
        scanLine(block.toString('utf8', start, end), lines + before + 1, scan)
        return true
      },
      onCut: () => counts.overlongLines++,
    })
    lines += lineFeeds(block, 0, block.length)
  }
}

function linesOf(block: Buffer): readonly string[] {
  const lines = block.toString('utf8').split('\n')
  // After the last line feed there is nothing.
  if (lines.at(-1) === '') lines.pop()
  return lines
}

function scanLine(text: string, line: number, { query, counts, time, onRow }: Scan): void {
  if (!/\S/.test(text)) return
  const parsed = parseJson(text)
  if (!parsed.ok) {
    counts.parseErrors++
    return
  }
  // Filters after the first that fails are not evaluated.
  for (const filter of query.filters) {
    const verdict = filter.test(parsed.value, time.check)
    if (verdict === 'incomparable') counts.compareWarnings++
    if (verdict !== true) return
  }
  counts.rowsMatched++
  onRow(parsed.value, line)
}
