import { cutText } from '../../util/characters.js'

/** A line of a file. */
export interface Line {
  /** From 1. */
  readonly number: number
  /** Without its line end, cut. */
  readonly text: string
  /** Its start in the file, in bytes, if a program reported it. */
  readonly offset?: number | undefined
}

/** The matches in one file. */
export interface FileHits {
  /** Absolute. */
  readonly path: string
  /** Number of matching lines; counting ends at `MAX_MATCHES_COUNTED`. */
  readonly matches: number
  /** The first of them, ascending; none if only the number is wanted. */
  readonly lines: readonly Line[]
  /** A program that opens files by name read it, not this process: must be confirmed before any of it is shown. */
  readonly isReported: boolean
}

/** Matching lines that are counted in one file. Both engines stop there: counting a million would mean holding or printing them. */
export const MAX_MATCHES_COUNTED = 10_000

/** A NUL in this many first bytes makes a file binary: it is not searched. */
export const BINARY_BYTES = 1 << 16

/** Longest excerpt of a line that is kept, in characters. */
export const MAX_LINE_CHARS = 10_000

const CR = 0x0d

/** The text of a line for a model: without a CR at its end, at most `maxChars` characters and then `...`. */
export function lineText(line: Buffer, maxChars: number): string {
  const end = line.at(-1) === CR ? line.length - 1 : line.length
  // A character has at most 4 bytes: the rest need not be decoded.
  return cutText(line.toString('utf8', 0, Math.min(end, maxChars * 4 + 4)), maxChars, '...')
}
