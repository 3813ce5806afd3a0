import type { CallTime } from '../../workspace/call-time.js'
import type { Pattern } from './pattern.js'

const LF = 0x0a
const CR = 0x0d
/** Work between two checks of the time: see `Pattern.weight`. */
const WORK_BETWEEN_BREATHS = 500_000
/** Cost of a line in addition to its bytes. */
const LINE_BYTES = 32

/** A line of a block that matches. */
export interface MatchingLine {
  readonly start: number
  /** Before its line feed. */
  readonly end: number
  /** Lines of the block before it. */
  readonly before: number
}

export interface LineSearch {
  readonly pattern: Pattern
  readonly time: CallTime
  /** Returns `false` to end the search. */
  readonly onLine: (line: MatchingLine) => boolean
  /** Called for a line that is too long to be searched completely. */
  readonly onCut: () => unknown
}

/** Finds the matching lines of a block. LF ends a line, and a CR before it is not part of it. True if `onLine` ended the search. */
export async function eachMatchingLine(bytes: Buffer, { pattern, time, onLine, onCut }: LineSearch): Promise<boolean> {
  const { literal, weight, reach } = pattern
  let before = 0
  let counted = 0
  let work = 0
  for (let at = 0; at < bytes.length;) {
    const place = literal === undefined ? at : bytes.indexOf(literal, at)
    if (place === -1) return false
    const start = place === at ? at : Math.max(at, bytes.lastIndexOf(LF, place) + 1)
    const lineFeed = bytes.indexOf(LF, place)
    const end = lineFeed === -1 ? bytes.length : lineFeed
    const text = bytes.subarray(start, end > start && bytes[end - 1] === CR ? end - 1 : end)
    if (text.length > reach) onCut()
    if (pattern.test(text)) {
      before += lineFeeds(bytes, counted, start)
      counted = start
      if (!onLine({ start, end, before })) return true
    }
    work += weight * (LINE_BYTES + text.length)
    if (work > WORK_BETWEEN_BREATHS) {
      work = 0
      await time.breathe()
    }
    at = end + 1
  }
  return false
}

/** The number of line feeds from `from` to `to`. */
export function lineFeeds(bytes: Buffer, from: number, to: number): number {
  let count = 0
  for (let at = bytes.indexOf(LF, from); at !== -1 && at < to; at = bytes.indexOf(LF, at + 1)) count++
  return count
}
