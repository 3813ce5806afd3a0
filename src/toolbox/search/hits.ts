/** A line of a file. */
export interface Line {
  /** From 1. */
  readonly number: number
  /** Without its line end, cut. */
  readonly text: string
}

/** A line that a program reported. */
export interface ReportedLine extends Line {
  /** Where it begins in the file, in bytes; `undefined` when the program did not say. */
  readonly offset: number | undefined
}

/** What a search found in one file. */
export type FileHits = ReadHits | ReportedHits

/** The file was read here, where it lies inside the root. */
export interface ReadHits {
  readonly kind: 'read'
  /** Absolute. */
  readonly path: string
  /** Lines that match; at most `MAX_MATCHES_COUNTED`, at which the counting ends. */
  readonly matches: number
  /** The first of them, ascending; none when nobody wants them. */
  readonly lines: readonly Line[]
}

/** A program that opens files by name read it: to be confirmed before any of it is shown. */
export interface ReportedHits extends Omit<ReadHits, 'kind' | 'lines'> {
  readonly kind: 'reported'
  readonly lines: readonly ReportedLine[]
}

/**
 * Matching lines that are counted in one file. Both engines stop there: an engine that is to count a million matches must
 * hold or print them all.
 */
export const MAX_MATCHES_COUNTED = 10_000

/** A NUL among so many first bytes makes a file binary: nothing in it is searched. */
export const BINARY_BYTES = 1 << 16

/** Longest excerpt of a line that is kept, in characters. */
export const MAX_LINE_CHARS = 10_000
