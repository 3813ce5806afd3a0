import { fileFailureOf } from '../workspace/failure.js'
import { openListed } from '../workspace/safe-open.js'
import type { ListedFile } from '../workspace/safe-open.js'
import type { SearchRequest } from './engine.js'
import type { ToldLine } from './hits.js'
import { lineText } from './line-text.js'
import { searchFile } from './search-file.js'
import type { ShownFile } from './shelf.js'

const LF = 0x0a
/** A smaller file is searched once more; of a larger one the told lines are looked up. In bytes. */
const SMALL_BYTES = 1 << 18

/**
 * A file as it is shown: what a program told of it counts only when the file itself, opened where it lies inside the root,
 * says the same. A program opens files by name, and whoever swaps a folder for a link while it runs leads it outside.
 * `undefined` when the file cannot be read, or has no match.
 */
export async function confirmedFile(request: SearchRequest, file: ShownFile): Promise<ShownFile | undefined> {
  if (file.kind === 'read') return file
  const { path, shown } = file
  try {
    const opened = await openListed(request.workspace, path)
    try {
      if (opened.size > SMALL_BYTES && (await hasLines(opened, file.lines, request.maxLineChars))) return file
      const found = await searchFile(opened, request)
      return found.matches === 0 ? undefined : { kind: 'read', path, shown, ...found }
    } finally {
      await opened.close()
    }
  } catch (error) {
    if (fileFailureOf(error) === undefined) throw error
    return undefined
  }
}

async function hasLines(file: ListedFile, lines: readonly ToldLine[], maxLineChars: number): Promise<boolean> {
  const bytes = Buffer.allocUnsafe(maxLineChars * 4 + 8)
  for (const { offset, text } of lines) {
    if (offset === undefined || offset >= file.size) return false
    const from = Math.max(0, offset - 1)
    const { bytesRead } = await file.read(bytes, 0, bytes.length, from)
    const start = offset - from
    const lineFeed = bytes.subarray(0, bytesRead).indexOf(LF, start)
    const isStart = start === 0 || bytes[0] === LF
    if (!isStart || lineText(bytes, start, lineFeed === -1 ? bytesRead : lineFeed, maxLineChars) !== text) return false
  }
  return true
}
