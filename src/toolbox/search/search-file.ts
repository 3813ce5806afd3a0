import type { FileHandle } from 'node:fs/promises'
import { blocksOf } from './blocks.js'
import { MAX_MATCHES_COUNTED } from './hits.js'
import type { Line } from './hits.js'
import { lineText } from './line-text.js'
import { NOT_FOUND } from './pattern/matcher.js'
import type { Pattern } from './pattern/pattern.js'
import type { TimeBox } from './time-box.js'

export interface FileSearch {
  readonly pattern: Pattern
  /** Matching lines whose text is kept. */
  readonly keepLines: number
  readonly maxLineChars: number
  readonly time: TimeBox
}

const LF = 0x0a
/** A NUL among the first bytes makes a file binary: nothing in it is searched. A later one ends the search there. */
const BINARY_BYTES = 1 << 16

/** The matching lines of one file. A file that is not text has none. */
export async function searchFile(
  file: FileHandle,
  size: number,
  search: FileSearch,
): Promise<{ readonly matches: number; readonly lines: readonly Line[] }> {
  const found = new LineCollector(search)
  let offset = 0
  for await (const block of blocksOf(file, { size })) {
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
    const end = bytes.at(-1) === LF ? bytes.length - 1 : bytes.length
    let counted = 0
    for (let at = 0; at <= end && bytes.length > 0 && !this.isFull;) {
      const place = await this.#find(bytes, at, end)
      if (place === NOT_FOUND) break
      const start = place === 0 ? 0 : bytes.lastIndexOf(LF, place - 1) + 1
      const next = bytes.indexOf(LF, place)
      const lineEnd = next === -1 ? bytes.length : next
      this.#number += lineFeeds(bytes, counted, start)
      counted = start
      this.#take(bytes, start, lineEnd)
      at = lineEnd + 1
    }
    // Most files have one block and no match: their lines need not be counted.
    if (!isEnd) this.#number += lineFeeds(bytes, counted, bytes.length)
  }

  async #find(bytes: Buffer, from: number, to: number): Promise<number> {
    const { pattern, time } = this.#search
    let found = pattern.find(bytes, from, to)
    while (typeof found !== 'number') {
      await time.breathe()
      found = pattern.find(bytes, from, to, found)
    }
    return found
  }

  #take(bytes: Buffer, start: number, end: number): void {
    this.matches++
    if (this.lines.length >= this.#search.keepLines) return
    this.lines.push({ number: this.#number, text: lineText(bytes, start, end, this.#search.maxLineChars) })
  }
}

/** Line feeds from `from` to `to`. */
export function lineFeeds(bytes: Buffer, from: number, to: number): number {
  let count = 0
  for (let at = bytes.indexOf(LF, from); at !== -1 && at < to; at = bytes.indexOf(LF, at + 1)) count++
  return count
}
