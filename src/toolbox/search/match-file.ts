import { cutText } from '#util/characters.js'
import type { CallTime } from '../workspace/call-time.js'
import type { ListedFile } from '../workspace/safe-open.js'
import { textBlocks } from './text-blocks.js'
import { eachMatchingLine, lineFeeds } from './pattern.js'
import type { Pattern } from './pattern.js'

/** A line of a file. */
export interface Line {
  /** From 1. */
  readonly number: number
  /** Without its line end, cut. */
  readonly text: string
}

/** Matching lines that are counted in one file. Both engines stop there. */
export const MAX_MATCHES_COUNTED = 10_000

/** Longest excerpt of a line that is kept, in characters. */
export const MAX_LINE_CHARS = 10_000

/** A NUL in this many first bytes makes a file binary, even if a call names it. */
const BINARY_BYTES = 1 << 16
const CR = 0x0d

export interface FileMatching {
  readonly pattern: Pattern
  readonly time: CallTime
  /** A NUL after the first bytes makes the file binary too. */
  readonly isTextOnly: boolean
  /** Called for each matching line, ascending. The bytes are overwritten later. Returns `false` to end the search. */
  readonly onLine: (number: number, bytes: Buffer) => boolean
}

interface FileEnd {
  /** The lines reported so far do not count. */
  readonly isBinary: boolean
  /** A line was too long to be searched completely. */
  readonly isCut: boolean
}

/** Matches the lines of a file. */
export async function matchFile(
  file: ListedFile,
  { pattern, time, isTextOnly, onLine }: FileMatching,
): Promise<FileEnd> {
  let isCut = false
  let isFirst = true
  /** Number of the first line of the block. */
  let number = 1
  for await (const block of textBlocks(file, file)) {
    time.check()
    if ((isFirst && block?.subarray(0, BINARY_BYTES).includes(0) === true) || (isTextOnly && block?.includes(0))) {
      return { isBinary: true, isCut }
    }
    isFirst = false
    if (block === null) {
      isCut = true
      number++
      continue
    }
    const isEnded = await eachMatchingLine(block, {
      pattern,
      time,
      onLine: ({ start, end, before }) => onLine(number + before, block.subarray(start, end)),
      onCut: () => (isCut = true),
    })
    if (isEnded) break
    number += lineFeeds(block, 0, block.length)
  }
  return { isBinary: false, isCut }
}

/** The text of a line for a model: without a CR at its end, at most `maxChars` characters and then `...`. */
export function lineText(line: Buffer, maxChars: number): string {
  const end = line.at(-1) === CR ? line.length - 1 : line.length
  // A character has at most 4 bytes: the rest need not be decoded.
  return cutText(line.toString('utf8', 0, Math.min(end, maxChars * 4 + 4)), maxChars, '...')
}
