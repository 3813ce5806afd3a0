import { splitLines } from '../../workspace/lines.js'
import { hasLoneSurrogate, cutText } from '#util/characters.js'

export interface Replacement {
  readonly oldText: string
  readonly newText: string
  readonly replaceAll: boolean
  /** Required number of matches; `undefined` for any. */
  readonly expected: number | undefined
}

export type Replaced =
  | {
      readonly kind: 'replaced'
      readonly text: string
      readonly count: number
      /** The first few changes, in order. */
      readonly changes: readonly Change[]
      /** `oldText` only matched once its JSON escapes were decoded. */
      readonly repaired: boolean
    }
  | { readonly kind: 'equal' }
  | { readonly kind: 'not_found' }
  | { readonly kind: 'unexpected_count'; readonly count: number; readonly expected: number }
  | { readonly kind: 'ambiguous'; readonly count: number; readonly offsets: readonly number[] }
  | { readonly kind: 'too_large' }

/** One replacement: its offset and length in the text before and in the text after. */
export interface Change {
  readonly oldAt: number
  readonly newAt: number
  readonly oldLength: number
  readonly newLength: number
}

const FIRST_MATCHES = 5
const MAX_TEXT_CHARS = 100_000_000

/**
 * Replaces exact text, never similar text. LF and CRLF are the same in the arguments and in the text: lines that stay keep their end,
 * and new ones have the end of the line before.
 */
export function replaceText(text: string, { oldText, newText, replaceAll, expected }: Replacement): Replaced {
  const source = sourceOf(text)
  const exact = { old: withLf(oldText), new: withLf(newText) }
  if (exact.old === exact.new) return { kind: 'equal' }
  const matches = textMatches(source.plain, exact.old)
  if (matches.count === 0) return replaceRepaired(source, { oldText, newText, expected })
  if (expected !== undefined && matches.count !== expected) {
    return { kind: 'unexpected_count', count: matches.count, expected }
  }
  if (matches.count > 1 && !replaceAll) {
    return { kind: 'ambiguous', count: matches.count, offsets: matches.offsets.map(offsetsIn(source)) }
  }
  return applyReplacement(source, exact, { matches, repaired: false })
}

interface Pair {
  readonly old: string
  readonly new: string
}

interface Matches {
  readonly count: number
  /** Of the first few. */
  readonly offsets: readonly number[]
}

/** A text, and the same with LF alone at the end of each line. */
interface Source {
  readonly text: string
  readonly plain: string
}

function sourceOf(text: string): Source {
  return { text, plain: withLf(text) }
}

function withLf(text: string): string {
  return text.replaceAll('\r\n', '\n')
}

/** The offsets in the text of offsets in the plain one, which ascend. */
function offsetsIn({ text, plain }: Source): (offset: number) => number {
  if (text.length === plain.length) return (offset) => offset
  let [at, before] = [0, 0]
  return (offset) => {
    for (let next = text.indexOf('\r\n', at + before); next !== -1 && next < offset + before; before++) {
      at = next - before
      next = text.indexOf('\r\n', next + 2)
    }
    return offset + before
  }
}

/** Models sometimes escape text unnecessarily. Escapes are decoded only if this leads to exactly one match. */
function replaceRepaired(source: Source, { oldText, newText, expected }: Omit<Replacement, 'replaceAll'>): Replaced {
  const decoded = decodeEscapes(oldText)
  if (decoded === undefined || decoded === oldText) return { kind: 'not_found' }
  const pair = { old: withLf(decoded), new: withLf(decodeEscapes(newText) ?? newText) }
  if (pair.old === pair.new) return { kind: 'equal' }
  const matches = textMatches(source.plain, pair.old)
  if (matches.count !== 1) return { kind: 'not_found' }
  if (expected !== undefined && expected !== 1) return { kind: 'unexpected_count', count: 1, expected }
  return applyReplacement(source, pair, { matches, repaired: true })
}

function applyReplacement(
  source: Source,
  pair: Pair,
  { matches, repaired }: { readonly matches: Matches; readonly repaired: boolean },
): Replaced {
  const { text, plain } = source
  if (text.length + matches.count * (pair.new.length * 2 - pair.old.length) > MAX_TEXT_CHARS)
    return { kind: 'too_large' }
  const [head, tail] = commonEnds(pair.old, pair.new)
  const offsetOf = offsetsIn(source)
  const changes: Change[] = []
  const pieces: string[] = []
  let [length, from] = [0, 0]
  for (let at = plain.indexOf(pair.old); at !== -1; at = plain.indexOf(pair.old, at + pair.old.length)) {
    const [start, keptTo] = [offsetOf(at), offsetOf(at + head)]
    const [keptFrom, end] = [offsetOf(at + pair.old.length - tail), offsetOf(at + pair.old.length)]
    const middle = pair.new.slice(head, pair.new.length - tail)
    const added = middle.includes('\n') ? middle.replaceAll('\n', lineEndAt(text, keptTo)) : middle
    const newAt = length + start - from
    pieces.push(text.slice(from, keptTo), added)
    length += keptTo - from + added.length
    if (changes.length < FIRST_MATCHES)
      changes.push({
        oldAt: start,
        newAt,
        oldLength: end - start,
        newLength: keptTo - start + added.length + end - keptFrom,
      })
    from = keptFrom
  }
  pieces.push(text.slice(from))
  return { kind: 'replaced', text: pieces.join(''), count: matches.count, changes, repaired }
}

/** The end of the line before a place; within a line, its own. */
function lineEndAt(text: string, at: number): string {
  const before = text.lastIndexOf('\n', at - 1)
  const own = at === 0 || before === at - 1 ? -1 : text.indexOf('\n', at)
  const end = own === -1 ? (before === -1 || at === 0 ? text.indexOf('\n') : before) : own
  return end > 0 && text[end - 1] === '\r' ? '\r\n' : '\n'
}

function textMatches(text: string, wanted: string): Matches {
  const offsets: number[] = []
  let count = 0
  if (wanted === '') return { count, offsets }
  for (let at = text.indexOf(wanted); at !== -1; at = text.indexOf(wanted, at + wanted.length)) {
    if (count < FIRST_MATCHES) offsets.push(at)
    count++
  }
  return { count, offsets }
}

/** The text decoded as the content of a JSON string; `undefined` if it is not one. */
function decodeEscapes(text: string): string | undefined {
  if (!text.includes('\\')) return undefined
  try {
    const decoded: unknown = JSON.parse(`"${text}"`)
    return typeof decoded === 'string' && !hasLoneSurrogate(decoded) ? decoded : undefined
  } catch {
    return undefined
  }
}

const SHOWN_CHANGES = 3
const SHOWN_LINES = 6
const SHOWN_LINE_CHARS = 120
const NEAREST = 3
const SEARCHED_LINES = 50_000
const COMPARED_CHARS = 300
const NEAR_ENOUGH = 0.6

/** The line numbers, from 1, of offsets in ascending order. */
export function lineNumbers(text: string, offsets: readonly number[]): number[] {
  const numbers: number[] = []
  const ends = /\n/g
  let line = 1
  let end = endAfter(ends, text)
  for (const offset of offsets) {
    while (end <= offset) {
      line++
      end = endAfter(ends, text)
    }
    numbers.push(line)
  }
  return numbers
}

/** First and last line of each change, in the changed text. */
export function changedLines(text: string, changes: readonly Change[]): (readonly [number, number])[] {
  const ends = changes.map(({ newAt, newLength }) => newAt + Math.max(0, newLength - 1))
  const first = lineNumbers(
    text,
    changes.map(({ newAt }) => newAt),
  )
  const last = lineNumbers(text, ends)
  return first.map((line, index) => [line, last[index] ?? line])
}

/** The first few changes as lines with `-` and `+`, each cut. */
export function smallDiff(before: string, after: string, changes: readonly Change[]): string {
  const parts: string[] = []
  let shownTo = -1
  for (const { oldAt, newAt, oldLength, newLength } of changes.slice(0, SHOWN_CHANGES)) {
    // Several changes in one line are shown as one.
    if (oldAt < shownTo) continue
    const old = wholeLines(before, oldAt, oldAt + oldLength)
    const now = wholeLines(after, newAt, newAt + newLength)
    shownTo = old.end
    const [removed, added, same] = withoutCommon(splitLines(old.text), splitLines(now.text))
    const line = (lineNumbers(after, [now.start])[0] ?? 1) + same
    parts.push([`@@ line ${line} @@`, ...shownLines('-', removed), ...shownLines('+', added)].join('\n'))
  }
  return parts.join('\n')
}

/** Up to three lines of `text` that are most similar to the first line of `wanted`, in their order. */
export function nearestLines(text: string, wanted: string): { readonly line: number; readonly text: string }[] {
  const model = comparableLine(splitLines(wanted).find((line) => line.trim() !== '') ?? '')
  if (model === '') return []
  return splitLines(text)
    .slice(0, SEARCHED_LINES)
    .map((line, index) => ({ line: index + 1, text: line.trim(), likeness: lineLikeness(model, comparableLine(line)) }))
    .filter(({ likeness }) => likeness >= NEAR_ENOUGH)
    .sort((left, right) => right.likeness - left.likeness)
    .slice(0, NEAREST)
    .sort((left, right) => left.line - right.line)
    .map((each) => ({ line: each.line, text: cutText(each.text, SHOWN_LINE_CHARS) }))
}

function endAfter(ends: RegExp, text: string): number {
  return ends.exec(text) === null ? Infinity : ends.lastIndex
}

interface Lines {
  readonly start: number
  readonly end: number
  readonly text: string
}

/** The whole lines around a range, including one that begins at its end, without the last line end. */
function wholeLines(text: string, from: number, to: number): Lines {
  let start = from
  while (start > 0 && !isLineEnd(text, start - 1)) start--
  let end = to
  while (end < text.length && !isLineEnd(text, end)) end++
  return { start, end, text: text.slice(start, end).replace(/\r$/, '') }
}

function isLineEnd(text: string, at: number): boolean {
  return text[at] === '\n'
}

/** Without the common lines at both ends; and the number of common lines at the beginning. */
function withoutCommon(
  before: readonly string[],
  after: readonly string[],
): [readonly string[], readonly string[], number] {
  const [head, tail] = commonEnds(before, after)
  return [before.slice(head, before.length - tail), after.slice(head, after.length - tail), head]
}

function shownLines(mark: string, lines: readonly string[]): string[] {
  const shown = lines.slice(0, SHOWN_LINES).map((line) => mark + cutText(line, SHOWN_LINE_CHARS))
  return lines.length > SHOWN_LINES ? [...shown, `${mark}… ${lines.length - SHOWN_LINES} more line(s)`] : shown
}

function comparableLine(line: string): string {
  return line.trim().slice(0, COMPARED_CHARS)
}

/** The share of two lines that is equal at their beginning and their end, from 0 to 1. */
function lineLikeness(left: string, right: string): number {
  const [head, tail] = commonEnds(left, right)
  return (head + tail) / Math.max(left.length, right.length)
}

/** The numbers of equal items at the beginning and at the end. */
function commonEnds(left: string | readonly string[], right: string | readonly string[]): [number, number] {
  const most = Math.min(left.length, right.length)
  let head = 0
  while (head < most && left[head] === right[head]) head++
  let tail = 0
  while (tail < most - head && left.at(-1 - tail) === right.at(-1 - tail)) tail++
  return [head, tail]
}
