import { TextDecoder } from 'node:util'
import type { ReadableFile } from '../workspace/safe-open.js'

/** A larger file in UTF-16 is not converted, and counts as binary. In bytes. */
const MAX_CONVERTED_BYTES = 64 << 20
/** Byte order marks. */
const MARKS: readonly (readonly [string, Buffer])[] = [
  ['utf-8', Buffer.from([0xef, 0xbb, 0xbf])],
  ['utf-16le', Buffer.from([0xff, 0xfe])],
  ['utf-16be', Buffer.from([0xfe, 0xff])],
]

/** A file's text as UTF-8, as ripgrep reads it: a byte order mark is left out, and UTF-16 is converted. */
export async function utf8File(file: ReadableFile, size: number): Promise<ReadableFile> {
  const head = Buffer.alloc(3)
  await file.read(head, 0, head.length, 0)
  const [encoding, mark = head] = MARKS.find(([, bytes]) => head.subarray(0, bytes.length).equals(bytes)) ?? []
  if (encoding === 'utf-8') {
    return { read: (into, at, room, position) => file.read(into, at, room, position + mark.length) }
  }
  if (encoding === undefined || size > MAX_CONVERTED_BYTES) return file
  const raw = Buffer.alloc(size)
  const { bytesRead } = await file.read(raw, 0, size, 0)
  const text = Buffer.from(new TextDecoder(encoding).decode(raw.subarray(0, bytesRead)))
  return {
    read: (into, at, room, position) =>
      Promise.resolve({ bytesRead: text.copy(into, at, position, Math.min(position + room, text.length)) }),
  }
}
