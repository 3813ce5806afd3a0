import { isObject, parseJson } from '../../../util/json.js'
import { BINARY_BYTES } from '../hits.js'

/** A record of ripgrep's, as far as it is of use here. */
export type RipgrepRecord =
  | { readonly kind: 'begin'; readonly path: string }
  | {
      readonly kind: 'match'
      readonly path: string
      readonly line: number
      /** Where the line begins in the file, in bytes. */
      readonly offset: number | undefined
      readonly bytes: Buffer
    }
  /** A file is done. `isBinary`: there is a NUL in its beginning. */
  | { readonly kind: 'end'; readonly path: string; readonly isBinary: boolean }

const MATCH = '{"type":"match"'
/** Where the records of the kinds that there are differ first. */
const KIND = MATCH.indexOf('m')
const [M, A, B, E] = ['m', 'a', 'b', 'e'].map((letter) => letter.charCodeAt(0))

/** Whether the record that begins at `start` and has so many bytes is that of a match, as ripgrep writes it. */
export function isMatchRecord(bytes: Buffer, start: number, length: number): boolean {
  return length > MATCH.length && bytes[start + KIND] === M && bytes[start + KIND + 1] === A
}

const BEGIN = '{"type":"begin","data":{"path":{"text":'
const END = '{"type":"end","data":{"path":{"text":'
const BEGIN_CLOSED = '}}}'.length
/** Of a file that is not binary. No name can hold it: in JSON its quotes would have a backslash. */
const BEHIND_NAME = Buffer.from('},"binary_offset":null,')

/** A record of the output; `undefined` for those of other kinds, and for paths that are not UTF-8. */
export function parseRecord(bytes: Buffer): RipgrepRecord | undefined {
  return borderOf(bytes) ?? recordIn(bytes.toString())
}

/** The first or last record of a file, without the statistics in it: of many files there is nothing else to read. */
function borderOf(bytes: Buffer): RipgrepRecord | undefined {
  if (bytes[KIND] === B && bytes.toString('latin1', 0, BEGIN.length) === BEGIN) {
    const path = stringIn(bytes.toString('utf8', BEGIN.length, bytes.length - BEGIN_CLOSED))
    return path === undefined ? undefined : { kind: 'begin', path }
  }
  if (bytes[KIND] !== E || bytes.toString('latin1', 0, END.length) !== END) return undefined
  const end = bytes.indexOf(BEHIND_NAME)
  const path = end === -1 ? undefined : stringIn(bytes.toString('utf8', END.length, end))
  return path === undefined ? undefined : { kind: 'end', path, isBinary: false }
}

function stringIn(json: string): string | undefined {
  if (!json.includes('\\') && json.length > 1 && json.startsWith('"') && json.endsWith('"')) return json.slice(1, -1)
  const parsed = parseJson(json)
  return parsed.ok && typeof parsed.value === 'string' ? parsed.value : undefined
}

function recordIn(text: string): RipgrepRecord | undefined {
  const parsed = parseJson(text)
  if (!parsed.ok || !isObject(parsed.value) || !isObject(parsed.value['data'])) return undefined
  const { type, data } = parsed.value
  if (!isObject(data) || !isObject(data['path'])) return undefined
  const path = data['path']['text']
  if (typeof path !== 'string') return undefined
  if (type === 'begin') return { kind: 'begin', path }
  const nul = data['binary_offset']
  if (type === 'end') return { kind: 'end', path, isBinary: typeof nul === 'number' && nul < BINARY_BYTES }
  const line = data['line_number']
  const bytes = bytesOf(data['lines'])
  if (type !== 'match' || typeof line !== 'number' || bytes === undefined) return undefined
  const offset = data['absolute_offset']
  return { kind: 'match', path, line, offset: typeof offset === 'number' ? offset : undefined, bytes }
}

/** ripgrep gives text that is no UTF-8 as base64. */
function bytesOf(data: unknown): Buffer | undefined {
  if (!isObject(data)) return undefined
  const { text, bytes } = data
  if (typeof text === 'string') return Buffer.from(text)
  return typeof bytes === 'string' ? Buffer.from(bytes, 'base64') : undefined
}

/** Cuts bytes that come in chunks into lines, at LF only. */
export class LineCutter {
  readonly #maxBytes: number
  #pieces: Buffer[] = []
  #held = 0

  /** @param maxBytes Longest line that is held. */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** The current line is too long, and the rest of it is skipped. */
  get isSkipping(): boolean {
    return this.#held > this.#maxBytes
  }

  /**
   * The lines that a chunk completes, without their line feed; `undefined` in place of one that is too long. Those that
   * `isDone` takes as they lie in the chunk are left out.
   */
  *push(
    chunk: Buffer,
    isDone: (chunk: Buffer, start: number, length: number) => boolean,
  ): Generator<Buffer | undefined, void, undefined> {
    let start = 0
    for (let end = chunk.indexOf(LF); end !== -1; end = chunk.indexOf(LF, start)) {
      if (this.#held > 0 || !isDone(chunk, start, end - start)) yield this.#finish(chunk.subarray(start, end))
      start = end + 1
    }
    this.#hold(chunk.subarray(start))
  }

  /** The last line, when it has no line feed. */
  *end(): Generator<Buffer | undefined, void, undefined> {
    if (this.#held > 0) yield this.#finish(Buffer.alloc(0))
  }

  #finish(piece: Buffer): Buffer | undefined {
    if (this.#held === 0 && piece.length <= this.#maxBytes) return piece
    this.#hold(piece)
    const line = this.#held > this.#maxBytes ? undefined : Buffer.concat(this.#pieces)
    this.#pieces = []
    this.#held = 0
    return line
  }

  #hold(piece: Buffer): void {
    this.#held += piece.length
    if (this.#held <= this.#maxBytes) this.#pieces.push(piece)
    else this.#pieces = []
  }
}

const LF = 0x0a
