import type { CharSet } from './char-set.js'

/**
 * A regular expression as a tree. It keeps only what decides whether a text matches: groups, captures and greed leave
 * no trace.
 */
export type PatternNode =
  | { readonly kind: 'empty' }
  | { readonly kind: 'set'; readonly set: CharSet }
  | { readonly kind: 'assertion'; readonly assertion: Assertion }
  | { readonly kind: 'sequence'; readonly parts: readonly PatternNode[] }
  | { readonly kind: 'choice'; readonly options: readonly PatternNode[] }
  | { readonly kind: 'repeat'; readonly part: PatternNode; readonly min: number; readonly max: number }

/** What must hold between two characters. In the `crlf` forms CR, LF and CR LF each end a line. */
export type Assertion =
  | 'text_start'
  | 'text_end'
  | 'line_start'
  | 'line_end'
  | 'crlf_line_start'
  | 'crlf_line_end'
  | 'word_boundary'
  | 'not_word_boundary'
  | 'word_start'
  | 'word_end'
  | 'word_start_half'
  | 'word_end_half'

/**
 * What a pattern is matched against. `line`: the lines of a file, of which no match reaches over the end, and whose ends
 * `^` and `$` find. `text`: a whole text, line breaks included; `^` and `$` find its ends unless `(?m)` is on.
 */
export type PatternScope = 'line' | 'text'

/** What `(?i)` and its like switch. */
export interface PatternFlags {
  readonly ignoreCase: boolean
  readonly multiLine: boolean
  readonly dotAll: boolean
  readonly crlf: boolean
}

/** Why a text is no pattern. The message is one line for the model. */
export class PatternError extends Error {
  override readonly name = 'PatternError'
}
