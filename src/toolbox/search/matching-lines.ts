import type { CallTime } from '../workspace/call-time.js'
import { NOT_FOUND } from './pattern/matcher.js'
import type { Pattern } from './pattern/pattern.js'

const LF = 0x0a
/** Lines between two looks at the clock. */
const LINES_BETWEEN_BREATHS = 128

/**
 * Calls `onLine` with the start and end of each line of a block that matches, and with the number of lines before it, until
 * it gives `false`. The end is that of the text, before its line feed.
 */
export async function eachMatchingLine(
  bytes: Buffer,
  pattern: Pattern,
  time: CallTime,
  onLine: (start: number, end: number, linesBefore: number) => boolean,
): Promise<void> {
  const end = bytes.at(-1) === LF ? bytes.length - 1 : bytes.length
  let before = 0
  let counted = 0
  let found = 0
  for (let at = 0; at <= end && bytes.length > 0;) {
    const place = await find(bytes, pattern, time, at, end)
    if (place === NOT_FOUND) return
    const start = place === 0 ? 0 : bytes.lastIndexOf(LF, place - 1) + 1
    const next = bytes.indexOf(LF, place)
    const lineEnd = next === -1 ? bytes.length : next
    before += lineFeeds(bytes, counted, start)
    counted = start
    if (!onLine(start, lineEnd, before)) return
    if (++found % LINES_BETWEEN_BREATHS === 0) await time.breathe()
    at = lineEnd + 1
  }
}

/** Line feeds from `from` to `to`. */
export function lineFeeds(bytes: Buffer, from: number, to: number): number {
  let count = 0
  for (let at = bytes.indexOf(LF, from); at !== -1 && at < to; at = bytes.indexOf(LF, at + 1)) count++
  return count
}

async function find(bytes: Buffer, pattern: Pattern, time: CallTime, from: number, to: number): Promise<number> {
  let found = pattern.find(bytes, from, to)
  while (typeof found !== 'number') {
    await time.breathe()
    found = pattern.find(bytes, from, to, found)
  }
  return found
}
