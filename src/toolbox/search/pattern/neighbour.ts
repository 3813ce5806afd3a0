import { assertNever } from '../../../util/assert-never.js'
import type { Assertion } from './syntax.js'

/** What stands beside a place in a text, as far as assertions care. */
export const Neighbour = {
  /** The end of the text. */
  edge: 0,
  word: 1,
  other: 2,
  lf: 3,
  cr: 4,
  /** A byte that is no part of UTF-8. */
  invalid: 5,
  /**
   * A byte that could continue a character of UTF-8 but does not. ripgrep sees through it when it looks back, and so do
   * we: in a text of Windows-1252 the `s` of `it’s` begins no word.
   */
  stray: 6,
} as const

export type Neighbour = (typeof Neighbour)[keyof typeof Neighbour]

const { edge, word, other, lf, cr, invalid, stray } = Neighbour

/** Whether `assertion` holds between two neighbours. */
export function holds(assertion: Assertion, before: Neighbour, after: Neighbour): boolean {
  switch (assertion) {
    case 'text_start':
      return before === edge
    case 'text_end':
      return after === edge
    case 'line_start':
      return before === edge || before === lf
    case 'line_end':
      return after === edge || after === lf
    case 'crlf_line_start':
      return before === edge || before === lf || (before === cr && after !== lf)
    case 'crlf_line_end':
      return after === edge || after === cr || (after === lf && before !== cr)
    case 'word_boundary':
      return (before === word) !== (after === word)
    case 'not_word_boundary':
      return before !== invalid && isCharacter(after) && (before === word) === (after === word)
    case 'word_start':
      return before !== word && after === word
    case 'word_end':
      return before === word && after !== word
    case 'word_start_half':
      return before !== word && before !== invalid
    case 'word_end_half':
      return after !== word && isCharacter(after)
    default:
      return assertNever(assertion)
  }
}

function isCharacter(after: Neighbour): boolean {
  return after !== invalid && after !== stray
}

/** What stands before the place behind a character. Where a line begins is told by the very byte before. */
export function beforeNext(before: Neighbour, passed: Neighbour): Neighbour {
  if (passed !== stray) return passed
  if (before === cr) return other
  return before === edge || before === lf ? invalid : before
}
