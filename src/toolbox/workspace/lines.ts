import type { FileHandle } from 'node:fs/promises'

const CHUNK_BYTES = 262_144
const LF = 10

/** The lines of a string: LF and CRLF end a line, nothing else. A line end at the end adds no line. */
export function splitLines(text: string): string[] {
  const lines = text.split(/\r?\n/)
  if (lines.at(-1) === '') lines.pop()
  return lines
}

/** Text for an existing file: with its byte order mark and its line ends, those of most of its lines. */
export function inFormOf(before: string, text: string): string {
  const crlf = before.split('\r\n').length - 1
  const lf = before.split('\n').length - 1 - crlf
  const mark = before.startsWith('\uFEFF') && !text.startsWith('\uFEFF') ? '\uFEFF' : ''
  return mark + (crlf + lf === 0 ? text : text.replace(/\r?\n/g, crlf > lf ? '\r\n' : '\n'))
}

export interface LineRange {
  /** First line, from 1. */
  readonly offset: number
  /** Most lines. */
  readonly limit: number
  /** Most bytes of the range; a line beyond it is cut. */
  readonly maxBytes: number
  readonly signal: AbortSignal
}

export interface LinesRead {
  readonly bytes: Buffer
  /** Why reading stopped: the end of the file, of the range, or `maxBytes`. */
  readonly end: 'file' | 'range' | 'bytes'
}

/** The bytes of a range of lines, read in pieces: memory is bounded by `maxBytes`. */
export async function readLineRange(
  file: FileHandle,
  { offset, limit, maxBytes, signal }: LineRange,
): Promise<LinesRead> {
  const buffer = Buffer.allocUnsafe(CHUNK_BYTES)
  const pieces: Buffer[] = []
  let size = 0
  let position = 0
  let place: Place = { at: 0, line: 1 }
  for (;;) {
    signal.throwIfAborted()
    const { bytesRead } = await file.read(buffer, 0, CHUNK_BYTES, position)
    if (bytesRead === 0) return { bytes: Buffer.concat(pieces), end: 'file' }
    position += bytesRead
    const chunk = buffer.subarray(0, bytesRead)
    const first = lineBeginning(offset, chunk, { ...place, at: 0 })
    place = lineBeginning(offset + limit, chunk, first)
    if (first.line < offset) continue
    const start = size > 0 ? 0 : first.at
    // The buffer is reused.
    const piece = Buffer.from(chunk.subarray(start, place.at))
    pieces.push(piece)
    size += piece.length
    if (size > maxBytes) return { bytes: Buffer.concat(pieces).subarray(0, maxBytes), end: 'bytes' }
    if (place.line >= offset + limit) return { bytes: Buffer.concat(pieces), end: 'range' }
  }
}

/** A position in the chunk and its line. */
interface Place {
  readonly at: number
  readonly line: number
}

/** The beginning of a line, or the end of the chunk if that comes first. */
function lineBeginning(wanted: number, chunk: Buffer, { at, line }: Place): Place {
  while (line < wanted) {
    const end = chunk.indexOf(LF, at)
    if (end === -1) return { at: chunk.length, line }
    at = end + 1
    line++
  }
  return { at, line }
}
