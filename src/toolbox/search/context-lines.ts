import { fileFailureOf } from '../workspace/failure.js'
import { openFile } from '../workspace/safe-open.js'
import { blocksOf } from './blocks.js'
import type { SearchRequest } from './engine.js'
import { lineText } from './hits.js'
import type { Line } from './hits.js'
import type { ShownFile } from './shelf.js'

const LF = 0x0a
/** Most characters of one file. */
const MAX_CHARS = 2_000_000

/**
 * The matches of a file with the lines around them, ascending. The file is read again, so that context does not depend on the
 * engine. `undefined` if it can no longer be read.
 */
export async function contextLines(
  request: SearchRequest,
  file: ShownFile,
  around: number,
): Promise<readonly Line[] | undefined> {
  try {
    const { handle, stats } = await openFile(request.workspace, file.path, file.shown)
    try {
      const blocks = blocksOf(handle, { size: Number(stats.size) })
      return await linesIn(blocks, windowsAround(file.lines, around), request)
    } finally {
      await handle.close()
    }
  } catch (error) {
    if (fileFailureOf(error) === undefined) throw error
    return undefined
  }
}

interface Window {
  readonly first: number
  readonly last: number
}

/** Line numbers to show; adjacent and overlapping windows are joined. */
function windowsAround(lines: readonly Line[], around: number): Window[] {
  const windows: Window[] = []
  for (const { number } of lines) {
    const first = Math.max(1, number - around)
    const last = number + around
    const before = windows.at(-1)
    if (before !== undefined && first <= before.last + 1) windows[windows.length - 1] = { first: before.first, last }
    else windows.push({ first, last })
  }
  return windows
}

async function linesIn(
  blocks: AsyncIterable<Buffer | null>,
  windows: Window[],
  { maxLineChars, time }: SearchRequest,
): Promise<readonly Line[]> {
  const lines: Line[] = []
  let number = 1
  let chars = 0
  for await (const block of blocks) {
    await time.breathe()
    if (block === null) {
      number++
      continue
    }
    for (let start = 0; start < block.length; number++) {
      const [window] = windows
      if (window === undefined || chars > MAX_CHARS) return lines
      const lineFeed = block.indexOf(LF, start)
      const end = lineFeed === -1 ? block.length : lineFeed
      if (number >= window.first) {
        const text = lineText(block.subarray(start, end), maxLineChars)
        chars += text.length
        lines.push({ number, text })
      }
      if (number >= window.last) windows.shift()
      start = end + 1
    }
  }
  return lines
}
