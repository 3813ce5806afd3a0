import type { ReadableFile } from '../workspace/safe-open.js'
import { utf8File } from './utf8-file.js'

/** A piece of a file. Its bytes are overwritten when the next one is asked for. */
export type Block =
  /** Whole lines; only the last of a file may lack its line feed. */
  | { readonly kind: 'lines'; readonly bytes: Buffer; readonly isLast: boolean }
  /** One line that is longer than may be held, and is passed over. */
  | { readonly kind: 'overlong' }

export interface BlockOptions {
  /** Size of the file, in bytes: a small one is read at once. */
  readonly size: number
  /** Longest line that is held, in bytes, its line feed not counted. Default 64 MiB. */
  readonly maxLineBytes?: number
}

const BLOCK_BYTES = 1 << 20
const MAX_LINE_BYTES = 64 << 20
const LF = 0x0a

/**
 * The lines of a file as UTF-8, in blocks of about 1 MiB. Only LF ends a line. Memory is bounded by the
 * longest line that is held.
 */
export async function* blocksOf(file: ReadableFile, options: BlockOptions): AsyncGenerator<Block, void, undefined> {
  const { size, maxLineBytes = MAX_LINE_BYTES } = options
  const source = utf8File(file, size)
  let position = 0
  const capacity = maxLineBytes + 1
  let buffer = Buffer.allocUnsafe(Math.min(size + 1, BLOCK_BYTES, capacity))
  let filled = 0
  let isSkipping = false
  for (;;) {
    if (filled === buffer.length && filled < capacity) buffer = grown(buffer, capacity)
    if (filled === buffer.length) {
      isSkipping = true
      filled = 0
    }
    const room = Math.min(buffer.length - filled, BLOCK_BYTES)
    const { bytesRead } = await source.read(buffer.subarray(filled, filled + room), { position })
    position += bytesRead
    // A regular file gives less than was asked for at its end only: that saves asking again.
    const isLast = bytesRead < room
    const end = filled + bytesRead
    let start = 0
    if (isSkipping) {
      const lineEnd = buffer.subarray(0, end).indexOf(LF)
      if (lineEnd !== -1 || isLast) yield { kind: 'overlong' }
      isSkipping = lineEnd === -1 && !isLast
      start = lineEnd === -1 ? end : lineEnd + 1
    }
    const cut = isLast ? end : start + buffer.subarray(start, end).lastIndexOf(LF) + 1
    if (cut > start) yield { kind: 'lines', bytes: buffer.subarray(start, cut), isLast }
    if (isLast) return
    buffer.copyWithin(0, cut, end)
    filled = end - cut
  }
}

function grown(buffer: Buffer, capacity: number): Buffer<ArrayBuffer> {
  const larger = Buffer.allocUnsafe(Math.min(Math.max(buffer.length * 2, BLOCK_BYTES), capacity))
  buffer.copy(larger)
  return larger
}
