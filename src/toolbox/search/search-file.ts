import type { ListedFile } from '../workspace/safe-open.js'
import { blocksOf } from './blocks.js'
import { MAX_MATCHES_COUNTED } from './hits.js'
import type { Line } from './hits.js'
import { lineText } from './line-text.js'
import { eachMatchingLine, lineFeeds } from './matching-lines.js'
import type { Pattern } from './pattern/pattern.js'
import type { CallTime } from '../workspace/call-time.js'

interface FileSearch {
  readonly pattern: Pattern
  /** Matching lines whose text is kept. */
  readonly keepLines: number
  readonly maxLineChars: number
  readonly time: CallTime
}

const LF = 0x0a
/** A NUL among the first bytes makes a file binary: nothing in it is searched. A later one ends the search there. */
const BINARY_BYTES = 1 << 16

/** The matching lines of one file. A file that is not text has none. */
export async function searchFile(
  file: ListedFile,
  search: FileSearch,
): Promise<{ readonly matches: number; readonly lines: readonly Line[] }> {
  const found = new LineCollector(search)
  let offset = 0
  for await (const block of blocksOf(file, file)) {
    search.time.check()
    if (block.kind === 'overlong') {
      found.skipLine()
      offset = BINARY_BYTES
      continue
    }
    const nul = block.bytes.indexOf(0)
    if (nul !== -1 && offset + nul < BINARY_BYTES) return { matches: 0, lines: [] }
    const isEnd = block.isLast || nul !== -1
    await found.add(nul === -1 ? block.bytes : linesBefore(block.bytes, nul), isEnd)
    offset += block.bytes.length
    if (isEnd || found.isFull) break
  }
  return { matches: found.matches, lines: found.lines }
}

function linesBefore(bytes: Buffer, at: number): Buffer {
  return bytes.subarray(0, bytes.lastIndexOf(LF, at) + 1)
}

class LineCollector {
  readonly lines: Line[] = []
  matches = 0
  readonly #search: FileSearch
  /** Number of the first line of the block at hand. */
  #number = 1

  constructor(search: FileSearch) {
    this.#search = search
  }

  get isFull(): boolean {
    return this.matches >= MAX_MATCHES_COUNTED
  }

  skipLine(): void {
    this.#number++
  }

  async add(bytes: Buffer, isEnd: boolean): Promise<void> {
    const { pattern, time } = this.#search
    await eachMatchingLine(bytes, pattern, time, (start, end, linesBefore) => {
      this.#take(bytes, start, end, this.#number + linesBefore)
      return !this.isFull
    })
    // Most files have one block: their lines need not be counted.
    if (!isEnd) this.#number += lineFeeds(bytes, 0, bytes.length)
  }

  #take(bytes: Buffer, start: number, end: number, number: number): void {
    this.matches++
    if (this.lines.length >= this.#search.keepLines) return
    this.lines.push({ number, text: lineText(bytes, start, end, this.#search.maxLineChars) })
  }
}
