import {
  complement,
  difference,
  fromSource,
  intersection,
  range,
  single,
  symmetricDifference,
  union,
} from './char-set.js'
import type { CharSet } from './char-set.js'
import type { Cursor } from './cursor.js'
import { codePointOf, parseEscape, setOf } from './escape.js'

const MAX_DEPTH = 100

/** Reads a bracketed class such as `[^a-z&&[^x]]`, whose `[` was just taken. */
export function parseClass(cursor: Cursor, ignoreCase: boolean, depth = 0): CharSet {
  if (depth > MAX_DEPTH) throw cursor.error(`character classes are nested deeper than ${MAX_DEPTH}`)
  const negated = cursor.eat('^')
  let items = leadingItems(cursor, ignoreCase)
  let combine: Combine = (_, right) => right
  let left: CharSet = union([])
  for (;;) {
    const operator = cursor.eat(']') ? 'end' : operatorAt(cursor)
    if (operator === undefined) {
      items.push(parseItem(cursor, ignoreCase, depth))
      continue
    }
    left = combine(left, union(items))
    if (operator === 'end') return negated ? complement(left) : left
    combine = operator
    items = []
  }
}

type Combine = (left: CharSet, right: CharSet) => CharSet

/** All operators bind alike, from left to right. */
function operatorAt(cursor: Cursor): Combine | undefined {
  if (cursor.eat('&&')) return intersection
  if (cursor.eat('--')) return difference
  if (cursor.eat('~~')) return symmetricDifference
  return undefined
}

/** At the very front, hyphens stand for themselves, and so does a `]` before which nothing stands. */
function leadingItems(cursor: Cursor, ignoreCase: boolean): CharSet[] {
  const items: CharSet[] = []
  while (cursor.eat('-')) items.push(single(codePointOf('-'), ignoreCase))
  if (items.length === 0 && cursor.eat(']')) items.push(single(codePointOf(']'), ignoreCase))
  return items
}

function parseItem(cursor: Cursor, ignoreCase: boolean, depth: number): CharSet {
  if (cursor.peek() === '[') {
    const named = namedClass(cursor, ignoreCase)
    if (named !== undefined) return named
    cursor.eat('[')
    return parseClass(cursor, ignoreCase, depth + 1)
  }
  const first = parseMember(cursor, ignoreCase)
  const isRange = cursor.peek() === '-' && cursor.peek(1) !== ']' && cursor.peek(1) !== '-'
  if (!isRange) return typeof first === 'number' ? single(first, ignoreCase) : first
  cursor.eat('-')
  const last = parseMember(cursor, ignoreCase)
  if (typeof first !== 'number' || typeof last !== 'number') {
    throw cursor.error('the ends of a range in `[…]` must be single characters')
  }
  if (first > last) throw cursor.error('a range in `[…]` runs backwards')
  return range(first, last, ignoreCase)
}

/** One character as its code point, or a class such as `\d` as its set. */
function parseMember(cursor: Cursor, ignoreCase: boolean): number | CharSet {
  const char = cursor.take('a `]`')
  if (char !== '\\') return codePointOf(char)
  const escape = parseEscape(cursor, ignoreCase)
  switch (escape.kind) {
    case 'character':
      return escape.codePoint
    case 'class':
      return setOf(escape, ignoreCase)
    case 'assertion':
      throw cursor.error('anchors and word boundaries cannot stand in `[…]`')
  }
}

/** `[:alpha:]` and its like: ASCII only. */
function namedClass(cursor: Cursor, ignoreCase: boolean): CharSet | undefined {
  for (const [name, source] of Object.entries(ASCII_CLASSES)) {
    if (cursor.eat(`[:${name}:]`)) return fromSource(source, ignoreCase)
    if (cursor.eat(`[:^${name}:]`)) return complement(fromSource(source, ignoreCase))
  }
  return undefined
}

const ASCII_CLASSES = {
  alnum: '0-9A-Za-z',
  alpha: 'A-Za-z',
  ascii: '\\0-\\x7f',
  blank: '\\t ',
  cntrl: '\\0-\\x1f\\x7f',
  digit: '0-9',
  graph: '!-~',
  lower: 'a-z',
  print: ' -~',
  punct: '!-\\/:-@\\[-`\\{-~',
  space: '\\t\\n\\v\\f\\r ',
  upper: 'A-Z',
  word: '0-9A-Za-z_',
  xdigit: '0-9A-Fa-f',
}
