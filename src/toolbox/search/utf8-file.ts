import { TextDecoder } from 'node:util'
import type { ReadableFile } from '../workspace/safe-open.js'

/** A larger file in UTF-16 is not converted, and counts as binary. In bytes. */
const MAX_CONVERTED_BYTES = 64 << 20
/** Byte order marks. */
const MARKS = [
  ['utf-8', Buffer.from([0xef, 0xbb, 0xbf])],
  ['utf-16le', Buffer.from([0xff, 0xfe])],
  ['utf-16be', Buffer.from([0xfe, 0xff])],
] as const
const MARK_BYTES = 3

/**
 * A file's text as UTF-8, as ripgrep reads it: a byte order mark is left out, and UTF-16 is converted.
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
      source = await sourceOf(file, size, head.subarray(0, first.bytesRead))
      return isStart && source === file ? first : source.read(into, place)
    },
  }
}

async function sourceOf(file: ReadableFile, size: number, head: Buffer): Promise<ReadableFile> {
  const [encoding, mark] = MARKS.find(([, bytes]) => head.subarray(0, bytes.length).equals(bytes)) ?? []
  if (encoding === 'utf-8') {
    return { read: (into, { position }) => file.read(into, { position: position + mark.length }) }
  }
  if (encoding === undefined || size > MAX_CONVERTED_BYTES) return file
  const raw = Buffer.alloc(size)
  const { bytesRead } = await file.read(raw, { position: 0 })
  const text = Buffer.from(new TextDecoder(encoding).decode(raw.subarray(0, bytesRead)))
  return { read: (into, { position }) => Promise.resolve({ bytesRead: text.subarray(position).copy(into) }) }
}
