import { fileFailureOf } from '../../workspace/failure.js'
import { openListed } from '../../workspace/safe-open.js'
import type { ReadableFile } from '../../workspace/safe-open.js'
import type { SearchRequest } from '../engine.js'
import { utf8File } from '../blocks.js'
import { lineText } from '../hits.js'
import type { Line } from '../hits.js'
import type { ShownFile } from '../shelf.js'

const LF = 0x0a
const NUL = 0

/**
 * True if a file may be shown: lines that a program reported count only if the file itself, opened at its place inside the
 * root, has them at their offsets. A program opens files by name: if a folder is replaced by a link while it runs, it reads
 * files outside.
 */
export async function isConfirmed(request: SearchRequest, file: ShownFile): Promise<boolean> {
  if (!file.isReported) return true
  try {
    const opened = await openListed(request.workspace, file.path)
    try {
      return await hasLines(utf8File(opened, opened.size), file.lines, request.maxLineChars)
    } finally {
      await opened.close()
    }
  } catch (error) {
    if (fileFailureOf(error) === undefined) throw error
    return false
  }
}

async function hasLines(file: ReadableFile, lines: readonly Line[], maxLineChars: number): Promise<boolean> {
  const bytes = Buffer.allocUnsafe(maxLineChars * 4 + 8)
  for (const { offset, text } of lines) {
    if (offset === undefined) return false
    const from = Math.max(0, offset - 1)
    const { bytesRead } = await file.read(bytes, { position: from })
    const read = bytes.subarray(0, bytesRead)
    const start = offset - from
    const end = read.findIndex((byte, index) => index >= start && endsLine(byte))
    const isStart = start <= bytesRead && (start === 0 || endsLine(bytes[0]))
    if (!isStart || lineText(read.subarray(start, end === -1 ? bytesRead : end), maxLineChars) !== text) return false
  }
  return true
}

/** A NUL ends a line of ripgrep too. */
function endsLine(byte: number | undefined): boolean {
  return byte === LF || byte === NUL
}
