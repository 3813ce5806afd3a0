import { blocksOf } from '../search/blocks.js'
import { eachMatchingLine, lineFeeds } from '../search/pattern/matching-lines.js'
import type { Pattern } from '../search/pattern/pattern.js'
import type { CallTime } from '../workspace/call-time.js'
import type { ReadableFile } from '../workspace/safe-open.js'
import type { Filter } from './filter.js'
import type { Needle } from './needle.js'
import { parseRow } from './row.js'
import type { Row } from './row.js'

/** The condition for rows. */
export interface RowQuery {
  /** Only matching lines are rows. */
  readonly pattern: Pattern | undefined
  readonly filters: readonly Filter[]
  readonly needle: Needle | undefined
}

/** Sums over all files; only ever added to. */
export interface ScanCounts {
  rowsMatched: number
  /** Rows that a typed filter could not compare. */
  compareWarnings: number
  /** Lines that are not JSON. Of lines that cannot pass the filters, only both ends are checked. */
  parseErrors: number
  /** Lines that are too long to be held in memory, or to be searched completely. */
  overlongLines: number
}

interface Scan {
  readonly query: RowQuery
  readonly counts: ScanCounts
  readonly time: CallTime
  /** Receives each row that passes, with its line number. */
  readonly onRow: (row: Row, line: number) => void
}

const LF = 0x0a
/** Rows between two checks of the time. */
const ROWS_BETWEEN_BREATHS = 128

/** Reads a JSONL file from beginning to end, in bounded memory. */
export async function scanFile(file: ReadableFile, size: number, scan: Scan): Promise<void> {
  const lines = new LineScan(scan)
  for await (const block of blocksOf(file, { size })) {
    await scan.time.breathe()
    if (block === null) lines.skipLine()
    else if (scan.query.pattern === undefined) await lines.scanAll(block)
    else await lines.scanMatching(block, scan.query.pattern)
  }
}

class LineScan {
  readonly #scan: Scan
  /** Lines before the current block. */
  #lines = 0
  #rows = 0

  constructor(scan: Scan) {
    this.#scan = scan
  }

  skipLine(): void {
    this.#lines++
    this.#scan.counts.overlongLines++
  }

  async scanAll(bytes: Buffer): Promise<void> {
    const mayPass = needleTest(bytes, this.#scan.query.needle)
    for (let start = 0; start < bytes.length;) {
      const lineFeed = bytes.indexOf(LF, start)
      const end = lineFeed === -1 ? bytes.length : lineFeed
      this.#lines++
      if (mayPass(start, end) || !looksWhole(bytes, start, end)) {
        this.#addLine(bytes.subarray(start, end), this.#lines)
        if (++this.#rows % ROWS_BETWEEN_BREATHS === 0) await this.#scan.time.breathe()
      }
      start = end + 1
    }
  }

  async scanMatching(bytes: Buffer, pattern: Pattern): Promise<void> {
    const { counts, time } = this.#scan
    await eachMatchingLine(bytes, {
      pattern,
      time,
      onLine: ({ start, end, before }) => {
        this.#addLine(bytes.subarray(start, end), this.#lines + before + 1)
        return true
      },
      onCut: () => counts.overlongLines++,
    })
    this.#lines += lineFeeds(bytes, 0, bytes.length)
  }

  #addLine(bytes: Buffer, line: number): void {
    const first = firstVisible(bytes, 0, bytes.length)
    if (first === bytes.length) return
    const row = parseRow(bytes.toString('utf8', first))
    if (row === undefined) this.#scan.counts.parseErrors++
    else if (this.#passes(row)) {
      this.#scan.counts.rowsMatched++
      this.#scan.onRow(row, line)
    }
  }

  /** Filters after the first that fails are not evaluated. */
  #passes(row: Row): boolean {
    for (const filter of this.#scan.query.filters) {
      const verdict = filter.test(row, this.#scan.time.check)
      if (verdict === 'incomparable') this.#scan.counts.compareWarnings++
      if (verdict !== true) return false
    }
    return true
  }
}

function needleTest(bytes: Buffer, needle: Needle | undefined): (start: number, end: number) => boolean {
  if (needle === undefined) return () => true
  const [first, ...others] = [...needle.texts, needle.marker].map((text) => new Occurrences(bytes, text))
  return (start, end) => first?.isWithin(start, end) === true || others.some((each) => each.isWithin(start, end))
}

/** True if a line begins and ends like an object or an array, which a line that was cut off does not. */
function looksWhole(bytes: Buffer, start: number, end: number): boolean {
  const first = bytes[firstVisible(bytes, start, end)]
  let last = end - 1
  while (last > start && isSpace(bytes[last])) last--
  return (first === 0x7b && bytes[last] === 0x7d) || (first === 0x5b && bytes[last] === 0x5d)
}

function firstVisible(bytes: Buffer, start: number, end: number): number {
  let at = start
  while (at < end && isSpace(bytes[at])) at++
  return at
}

function isSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x09 || byte === 0x0d
}

/** The occurrences of a string in a block, for ranges in ascending order: the block is scanned once. */
class Occurrences {
  readonly #bytes: Buffer
  readonly #text: Buffer
  #next: number

  constructor(bytes: Buffer, text: Buffer) {
    this.#bytes = bytes
    this.#text = text
    this.#next = bytes.indexOf(text)
  }

  /** True if one lies between `start` and `end`. */
  isWithin(start: number, end: number): boolean {
    if (this.#next !== -1 && this.#next < start) this.#next = this.#bytes.indexOf(this.#text, start)
    return this.#next !== -1 && this.#next + this.#text.length <= end
  }
}
