import type { FileHandle } from 'node:fs/promises'

const CHUNK_BYTES = 262_144
const LF = 10
const CR = 13

/** The lines of a string: only LF, CRLF and a lone CR end a line. A line end at the end adds no line. */
export function splitLines(text: string): string[] {
  const lines = text.split(/\r\n|\n|\r/)
  if (lines.at(-1) === '') lines.pop()
  return lines
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
  let place: Place = { at: 0, line: 1, afterCr: false }
  for (;;) {
    signal.throwIfAborted()
    const { bytesRead } = await file.read(buffer, 0, CHUNK_BYTES, position)
    if (bytesRead === 0) return { bytes: Buffer.concat(pieces), end: 'file' }
    position += bytesRead
    const chunk = buffer.subarray(0, bytesRead)
    const first = lineBeginning(offset, chunk, { ...place, at: 0 })
    place = lineBeginning(offset + limit, chunk, first)
    if (first.line < offset) continue
    // An LF after a CR at the end of the last piece belongs to the range, unless the range begins after it.
    const start = size > 0 ? 0 : first.at
    // The buffer is reused.
    const piece = Buffer.from(chunk.subarray(start, place.at))
    pieces.push(piece)
    size += piece.length
    if (size > maxBytes) return { bytes: Buffer.concat(pieces).subarray(0, maxBytes), end: 'bytes' }
    if (place.line >= offset + limit) return { bytes: Buffer.concat(pieces), end: 'range' }
  }
}

/** A position in the chunk and its line; `afterCr`: a following LF belongs to the CR before. */
interface Place {
  readonly at: number
  readonly line: number
  readonly afterCr: boolean
}

/** The beginning of a line, or the end of the chunk if that comes first. */
function lineBeginning(wanted: number, chunk: Buffer, from: Place): Place {
  let { at, line, afterCr } = from
  if (afterCr && at < chunk.length) {
    if (chunk[at] === LF) at++
    afterCr = false
  }
  while (line < wanted && at < chunk.length) {
    const byte = chunk[at++]
    if (byte === LF) line++
    else if (byte === CR) {
      line++
      if (at === chunk.length) afterCr = true
      else if (chunk[at] === LF) at++
    }
  }
  return { at, line, afterCr }
}
