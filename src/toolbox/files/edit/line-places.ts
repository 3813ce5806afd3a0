import { firstCharacters } from '../../../util/characters.js'
import { splitLines } from '../../workspace/lines.js'
import type { Change } from './replace-text.js'

const SHOWN_CHANGES = 3
const SHOWN_LINES = 6
const SHOWN_LINE_CHARS = 120
const NEAREST = 3
const SEARCHED_LINES = 50_000
const COMPARED_CHARS = 300
const NEAR_ENOUGH = 0.6

/** The numbers, from 1, of the lines that offsets in rising order lie in. */
export function lineNumbers(text: string, offsets: readonly number[]): number[] {
  const numbers: number[] = []
  const ends = /\r\n|\n|\r/g
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

/** First and last line of each change, in the text after it. */
export function changedLines(text: string, changes: readonly Change[]): (readonly [number, number])[] {
  const ends = changes.map(({ newAt, newLength }) => newAt + Math.max(0, newLength - 1))
  const first = lineNumbers(
    text,
    changes.map(({ newAt }) => newAt),
  )
  const last = lineNumbers(text, ends)
  return first.map((line, index) => [line, last[index] ?? line])
}

/** What changed, as lines with `-` and `+`: the first few places, each cut. */
export function smallDiff(before: string, after: string, changes: readonly Change[]): string {
  const parts: string[] = []
  let shownTo = -1
  for (const { oldAt, newAt, oldLength, newLength } of changes.slice(0, SHOWN_CHANGES)) {
    // Several changes of one line are one change of that line.
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

/** Up to three lines of `text` that are most like the first line of `wanted`, in their order. */
export function nearestLines(text: string, wanted: string): { readonly line: number; readonly text: string }[] {
  const model = comparable(splitLines(wanted).find((line) => line.trim() !== '') ?? '')
  if (model === '') return []
  return splitLines(text)
    .slice(0, SEARCHED_LINES)
    .map((line, index) => ({ line: index + 1, text: line.trim(), likeness: likeness(model, comparable(line)) }))
    .filter(({ likeness }) => likeness >= NEAR_ENOUGH)
    .sort((left, right) => right.likeness - left.likeness)
    .slice(0, NEAREST)
    .sort((left, right) => left.line - right.line)
    .map((each) => ({ line: each.line, text: cut(each.text, SHOWN_LINE_CHARS) }))
}

function endAfter(ends: RegExp, text: string): number {
  return ends.exec(text) === null ? Infinity : ends.lastIndex
}

interface Lines {
  readonly start: number
  readonly end: number
  readonly text: string
}

/** The whole lines around a range, with the one that begins where the range ends, without the last one's ending. */
function wholeLines(text: string, from: number, to: number): Lines {
  let start = from
  while (start > 0 && !isLineEnd(text, start - 1)) start--
  let end = to
  while (end < text.length && !isLineEnd(text, end)) end++
  return { start, end, text: text.slice(start, end) }
}

function isLineEnd(text: string, at: number): boolean {
  return text[at] === '\n' || text[at] === '\r'
}

/** Without the lines that both begin or end with, and how many they begin with. */
function withoutCommon(
  before: readonly string[],
  after: readonly string[],
): [readonly string[], readonly string[], number] {
  const most = Math.min(before.length, after.length)
  let head = 0
  while (head < most && before[head] === after[head]) head++
  let tail = 0
  while (tail < most - head && before.at(-1 - tail) === after.at(-1 - tail)) tail++
  return [before.slice(head, before.length - tail), after.slice(head, after.length - tail), head]
}

function shownLines(mark: string, lines: readonly string[]): string[] {
  const shown = lines.slice(0, SHOWN_LINES).map((line) => mark + cut(line, SHOWN_LINE_CHARS))
  return lines.length > SHOWN_LINES ? [...shown, `${mark}… ${lines.length - SHOWN_LINES} more line(s)`] : shown
}

function cut(text: string, chars: number): string {
  return text.length > chars ? `${firstCharacters(text, chars)}…` : text
}

function comparable(line: string): string {
  return line.trim().slice(0, COMPARED_CHARS)
}

/** The share of two lines that is the same at their beginning and their end, from 0 to 1. */
function likeness(left: string, right: string): number {
  const most = Math.min(left.length, right.length)
  if (most === 0) return 0
  let head = 0
  while (head < most && left[head] === right[head]) head++
  let tail = 0
  while (tail < most - head && left.at(-1 - tail) === right.at(-1 - tail)) tail++
  return (head + tail) / Math.max(left.length, right.length)
}
