import { fileFailureOf } from '../workspace/failure.js'
import { openFile } from '../workspace/safe-open.js'
import type { Workspace } from '../workspace/workspace.js'
import { blocksOf } from './blocks.js'
import type { Block } from './blocks.js'
import type { Line } from './hits.js'
import { lineText } from './line-text.js'
import type { ShownFile } from './shelf.js'
import type { CallTime } from '../workspace/call-time.js'

interface ContextOptions {
  /** Lines before and after each match. */
  readonly around: number
  readonly maxLineChars: number
  readonly time: CallTime
}

const LF = 0x0a
/** Most characters of one file. */
const MAX_CHARS = 2_000_000

/**
 * The lines around the matches of a file, matches included, ascending. The file is read once more, so that context is the
 * same whatever engine found the matches. `undefined` when it can no longer be read.
 */
export async function contextLines(
  workspace: Workspace,
  file: ShownFile,
  options: ContextOptions,
): Promise<readonly Line[] | undefined> {
  try {
    const { handle, stats } = await openFile(workspace, file.path, file.shown)
    try {
      const windows = windowsAround(file.lines, options.around)
      return await linesIn(blocksOf(handle, { size: Number(stats.size) }), windows, options)
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

/** Line numbers to show; windows that touch or overlap are one. */
function windowsAround(lines: readonly Line[], around: number): readonly Window[] {
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
  blocks: AsyncIterable<Block>,
  windows: readonly Window[],
  { maxLineChars, time }: ContextOptions,
): Promise<readonly Line[]> {
  const lines: Line[] = []
  const open = [...windows]
  let number = 1
  let chars = 0
  for await (const block of blocks) {
    await time.breathe()
    if (block.kind === 'overlong') {
      number++
      continue
    }
    for (let start = 0; start < block.bytes.length; number++) {
      const [window] = open
      if (window === undefined || chars > MAX_CHARS) return lines
      const lineFeed = block.bytes.indexOf(LF, start)
      const end = lineFeed === -1 ? block.bytes.length : lineFeed
      if (number >= window.first) {
        const text = lineText(block.bytes.subarray(start, end), maxLineChars)
        chars += text.length
        lines.push({ number, text })
      }
      if (number >= window.last) open.shift()
      start = end + 1
    }
  }
  return lines
}
