import { TextDecoder } from 'node:util'
import type { ReadableFile } from '../workspace/safe-open.js'

export interface BlockOptions {
  /** Size of the file, in bytes: a small file is read in one piece. */
  readonly size: number
  /** Longest line that is held, in bytes, without its line feed. Default 64 MiB. */
  readonly maxLineBytes?: number
}

const BLOCK_BYTES = 1 << 20
const MAX_LINE_BYTES = 64 << 20
const LF = 0x0a

/**
 * The lines of a file as UTF-8, in blocks of about 1 MiB; `null` for one line that is too long to be held. Only the last line
 * of a file may lack its line feed; only LF ends a line. The bytes of a block are overwritten by the next one.
 */
export async function* textBlocks(
  file: ReadableFile,
  options: BlockOptions,
): AsyncGenerator<Buffer | null, void, undefined> {
  const { size, maxLineBytes = MAX_LINE_BYTES } = options
  const source = utf8File(file, size)
  let position = 0
  const capacity = maxLineBytes + 1
  let buffer = Buffer.allocUnsafe(Math.min(size + 1, BLOCK_BYTES, capacity))
  let filled = 0
  let isSkipping = false
  for (;;) {
    if (filled === buffer.length && filled < capacity) buffer = enlargedBuffer(buffer, capacity)
    if (filled === buffer.length) {
      isSkipping = true
      filled = 0
    }
    const room = Math.min(buffer.length - filled, BLOCK_BYTES)
    const { bytesRead } = await source.read(buffer.subarray(filled, filled + room), { position })
    position += bytesRead
    // A regular file returns fewer bytes than requested only at its end: that saves another read.
    const isLast = bytesRead < room
    const end = filled + bytesRead
    let start = 0
    if (isSkipping) {
      const lineEnd = buffer.subarray(0, end).indexOf(LF)
      if (lineEnd !== -1 || isLast) yield null
      isSkipping = lineEnd === -1 && !isLast
      start = lineEnd === -1 ? end : lineEnd + 1
    }
    const cut = isLast ? end : start + buffer.subarray(start, end).lastIndexOf(LF) + 1
    if (cut > start) yield buffer.subarray(start, cut)
    if (isLast) return
    buffer.copyWithin(0, cut, end)
    filled = end - cut
  }
}

function enlargedBuffer(buffer: Buffer, capacity: number): Buffer<ArrayBuffer> {
  const larger = Buffer.allocUnsafe(Math.min(Math.max(buffer.length * 2, BLOCK_BYTES), capacity))
  buffer.copy(larger)
  return larger
}

/** A larger file in UTF-16 is not converted, and counts as binary. In bytes. */
const MAX_CONVERTED_BYTES = 64 << 20
const BYTE_ORDER_MARKS = [
  ['utf-8', Uint8Array.of(0xef, 0xbb, 0xbf)],
  ['utf-16le', Uint8Array.of(0xff, 0xfe)],
  ['utf-16be', Uint8Array.of(0xfe, 0xff)],
] as const
const MARK_BYTES = 3

/**
 * A file as UTF-8, as ripgrep reads it: without a byte order mark, and converted from UTF-16.
 * @param size Size of the file, in bytes.
 */
export function utf8File(file: ReadableFile, size: number): ReadableFile {
  let source: ReadableFile | undefined
  return {
    async read(into, place) {
      if (source !== undefined) return source.read(into, place)
      const isStart = place.position === 0
      const head = isStart ? into : Buffer.alloc(MARK_BYTES)
      const first = await file.read(head, { position: 0 })
      source = await decodedFile(file, size, head.subarray(0, first.bytesRead))
      return isStart && source === file ? first : source.read(into, place)
    },
  }
}

async function decodedFile(file: ReadableFile, size: number, head: Buffer): Promise<ReadableFile> {
  const [encoding, mark] = BYTE_ORDER_MARKS.find(([, bytes]) => head.subarray(0, bytes.length).equals(bytes)) ?? []
  if (encoding === 'utf-8') {
    return { read: (into, { position }) => file.read(into, { position: position + mark.length }) }
  }
  if (encoding === undefined || size > MAX_CONVERTED_BYTES) return file
  const raw = Buffer.alloc(size)
  const { bytesRead } = await file.read(raw, { position: 0 })
  const text = Buffer.from(new TextDecoder(encoding).decode(raw.subarray(0, bytesRead)))
  return { read: (into, { position }) => Promise.resolve({ bytesRead: text.subarray(position).copy(into) }) }
}
