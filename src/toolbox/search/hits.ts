/** A line of a file. */
export interface Line {
  /** From 1. */
  readonly number: number
  /** Without its line end, cut. */
  readonly text: string
}

/** What a search found in one file. */
export interface FileHits {
  /** Absolute. */
  readonly path: string
  /** Lines that match; at most `MAX_MATCHES_COUNTED`, at which the counting ends. */
  readonly matches: number
  /** The first of them, ascending. */
  readonly lines: readonly Line[]
}

/**
 * Matching lines that are counted in one file. Both engines stop there: an engine that is to count a million matches must
 * hold or print them all.
 */
export const MAX_MATCHES_COUNTED = 10_000

/** Longest excerpt of a line that is kept, in characters. */
export const MAX_LINE_CHARS = 10_000
