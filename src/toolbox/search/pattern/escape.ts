import { complement, fromSource, single } from './char-set.js'
import type { CharSet } from './char-set.js'
import type { Cursor } from './cursor.js'
import { propertySet } from './property.js'
import type { Assertion } from './syntax.js'

/** What stands behind a backslash. */
type Escape =
  | { readonly kind: 'character'; readonly codePoint: number }
  | { readonly kind: 'class'; readonly set: CharSet }
  | { readonly kind: 'assertion'; readonly assertion: Assertion }

/** Reads the escape whose backslash was just taken. */
export function parseEscape(cursor: Cursor, ignoreCase: boolean): Escape {
  const char = cursor.take('a character after `\\`')
  const control = CONTROLS[char]
  if (control !== undefined) return { kind: 'character', codePoint: control }
  const perl = perlClass(char)
  if (perl !== undefined) return { kind: 'class', set: perl }
  if (char === 'p' || char === 'P') return { kind: 'class', set: parseProperty(cursor, char === 'P', ignoreCase) }
  if (char === 'x' || char === 'u' || char === 'U') return { kind: 'character', codePoint: parseHex(cursor, char) }
  const assertion = parseAssertion(cursor, char)
  if (assertion !== undefined) return { kind: 'assertion', assertion }
  if (/[0-9]/.test(char)) throw cursor.error('backreferences are not supported')
  // Any other ASCII character stands for itself, letters excepted: they are kept for escapes yet to come.
  if (/[^A-Za-z\u{80}-\u{10ffff}]/u.test(char)) return { kind: 'character', codePoint: codePointOf(char) }
  throw cursor.error(`\`\\${char}\` is not a known escape`)
}

const CONTROLS: Readonly<Partial<Record<string, number>>> = { a: 7, f: 12, t: 9, n: 10, r: 13, v: 11 }
const HEX_DIGITS = { x: 2, u: 4, U: 8 }

const digits = fromSource('\\p{Nd}')
const spaces = fromSource('\\p{White_Space}')

/** What `\w` matches and what `\b` tells apart (Unicode TR 18, annex C). */
export const wordCharacters = fromSource('\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\p{Join_Control}')

function perlClass(char: string): CharSet | undefined {
  switch (char) {
    case 'd':
      return digits
    case 'D':
      return complement(digits)
    case 's':
      return spaces
    case 'S':
      return complement(spaces)
    case 'w':
      return wordCharacters
    case 'W':
      return complement(wordCharacters)
    default:
      return undefined
  }
}

function parseProperty(cursor: Cursor, negated: boolean, ignoreCase: boolean): CharSet {
  const first = cursor.take('the name of a Unicode property')
  const name = first === '{' ? cursor.takeUntil('}', 'a `}` after the name of a Unicode property') : first
  const set = propertySet(name, ignoreCase)
  if (set === undefined) throw cursor.error(`\`${name.slice(0, 40)}\` is not a known Unicode property`)
  return negated ? complement(set) : set
}

function parseHex(cursor: Cursor, kind: keyof typeof HEX_DIGITS): number {
  const text = cursor.eat('{') ? cursor.takeUntil('}', 'a `}` after hexadecimal digits') : fixedHex(cursor, kind)
  const codePoint = /^[0-9A-Fa-f]{1,8}$/.test(text) ? Number.parseInt(text, 16) : Number.NaN
  const isScalar = codePoint <= 0x10_ffff && !(codePoint >= 0xd800 && codePoint <= 0xdfff)
  if (!isScalar) throw cursor.error(`\`\\${kind}\` needs the hexadecimal number of a Unicode character`)
  return codePoint
}

function fixedHex(cursor: Cursor, kind: keyof typeof HEX_DIGITS): string {
  let text = ''
  while (text.length < HEX_DIGITS[kind]) text += cursor.take('a hexadecimal digit')
  return text
}

function parseAssertion(cursor: Cursor, char: string): Assertion | undefined {
  switch (char) {
    case 'A':
      return 'text_start'
    case 'z':
      return 'text_end'
    case '<':
      return 'word_start'
    case '>':
      return 'word_end'
    case 'B':
      return 'not_word_boundary'
    case 'b':
      return parseBoundary(cursor)
    default:
      return undefined
  }
}

/** `\b{start}` and its like; a `{` with anything but a letter behind it is a repetition of `\b`. */
function parseBoundary(cursor: Cursor): Assertion {
  if (cursor.peek() !== '{' || !/[A-Za-z-]/.test(cursor.peek(1))) return 'word_boundary'
  if (cursor.eat('{start}')) return 'word_start'
  if (cursor.eat('{end}')) return 'word_end'
  if (cursor.eat('{start-half}')) return 'word_start_half'
  if (cursor.eat('{end-half}')) return 'word_end_half'
  throw cursor.error('`\\b{…}` knows only start, end, start-half and end-half')
}

/** The code point of a text of one character. */
export function codePointOf(char: string): number {
  return char.codePointAt(0) ?? 0
}

/** What stands behind a backslash, as a set; an assertion has none. */
export function setOf(escape: Exclude<Escape, { kind: 'assertion' }>, ignoreCase: boolean): CharSet {
  return escape.kind === 'class' ? escape.set : single(escape.codePoint, ignoreCase)
}
