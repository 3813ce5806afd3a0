import { characterCount, cutText, firstCharacters, isLonger, lastCharacters } from '#util/characters.js'
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
  /** Matches in it that are not shown. */
  readonly hidden?: number
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
  // A character has at most 4 bytes: the rest need not be decoded.
  return cutText(line.toString('utf8', 0, Math.min(lengthOf(line), maxChars * 4 + 4)), maxChars, '...')
}

/** Of a longer line, its beginning is searched for the match. */
const MAX_DECODED_BYTES = 4 << 20

/** A line with a match: of a long one, the part around its first match, and the number of matches that are not shown. */
export function matchText(line: Buffer, pattern: Pattern, maxChars: number): Omit<Line, 'number'> {
  const end = Math.min(lengthOf(line), MAX_DECODED_BYTES)
  const text = line.toString('utf8', 0, end)
  if (end === lengthOf(line) && !isLonger(text, maxChars)) return { text }
  const [first = [0, 0], ...others] = pattern.places(text)
  const [start, matchEnd] = first
  const room = maxChars - Math.min(maxChars, characterCount(text.slice(start, matchEnd)))
  const after = firstCharacters(text.slice(start, start + 2 * maxChars), maxChars)
  const wantedBefore = Math.max(Math.floor(room / 2), maxChars - characterCount(after))
  const before = lastCharacters(text.slice(Math.max(0, start - 2 * maxChars), start), wantedBefore)
  const shown = before + firstCharacters(after, maxChars - characterCount(before))
  const [from, to] = [start - before.length, start - before.length + shown.length]
  const isCut = to < text.length || end < lengthOf(line)
  return {
    text: `${from > 0 ? '...' : ''}${shown}${isCut ? '...' : ''}`,
    hidden: others.filter((place) => place[1] > to).length,
  }
}

function lengthOf(line: Buffer): number {
  return line.at(-1) === CR ? line.length - 1 : line.length
}
