import { cutText } from '../../util/characters.js'

/** A line of a file. */
export interface Line {
  /** From 1. */
  readonly number: number
  /** Without its line end, cut. */
  readonly text: string
}

/** A line that a program reported. */
export interface ReportedLine extends Line {
  /** Its start in the file, in bytes; `undefined` if the program did not report it. */
  readonly offset: number | undefined
}

/** The matches in one file. */
export type FileHits = ReadHits | ReportedHits

/** The file was read here, at its place inside the root. */
export interface ReadHits {
  readonly kind: 'read'
  /** Absolute. */
  readonly path: string
  /** Number of matching lines; counting ends at `MAX_MATCHES_COUNTED`. */
  readonly matches: number
  /** The first of them, ascending; none if only the number is wanted. */
  readonly lines: readonly Line[]
}

/** A program that opens files by name read it: must be confirmed before any of it is shown. */
export interface ReportedHits extends Omit<ReadHits, 'kind' | 'lines'> {
  readonly kind: 'reported'
  readonly lines: readonly ReportedLine[]
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
