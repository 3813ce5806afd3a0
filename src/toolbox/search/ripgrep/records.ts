import { isObject, parseJson } from '../../../util/json.js'
import { BINARY_BYTES } from '../hits.js'

/** A record of ripgrep, reduced to the fields that are used here. */
export type RipgrepRecord =
  | { readonly kind: 'begin'; readonly path: string }
  | {
      readonly kind: 'match'
      readonly path: string
      readonly line: number
      /** Start of the line in the file, in bytes. */
      readonly offset: number | undefined
      readonly bytes: Buffer
    }
  /** The end of a file. `isBinary`: there is a NUL at its beginning. */
  | { readonly kind: 'end'; readonly path: string; readonly isBinary: boolean }

const MATCH = '{"type":"match"'
/** The first position at which the kinds of records differ. */
const KIND = MATCH.indexOf('m')
const [M, A, B, E] = ['m', 'a', 'b', 'e'].map((letter) => letter.charCodeAt(0))

/** True if a record, as ripgrep writes it, is a match. */
export function isMatchRecord(bytes: Buffer, start: number, length: number): boolean {
  return length > MATCH.length && bytes[start + KIND] === M && bytes[start + KIND + 1] === A
}

const BEGIN = '{"type":"begin","data":{"path":{"text":'
const END = '{"type":"end","data":{"path":{"text":'
const BEGIN_CLOSED = '}}}'.length
/** In the record of a file that is not binary. No name can contain it: in JSON, its quotes would have a backslash. */
const AFTER_NAME = '},"binary_offset":null,'

/** A record of the output; `undefined` for other kinds, and for paths that are not UTF-8. */
export function parseRecord(bytes: Buffer): RipgrepRecord | undefined {
  return borderOf(bytes) ?? recordIn(bytes.toString())
}

/** The first or last record of a file, without its statistics: most files have no other records. */
function borderOf(bytes: Buffer): RipgrepRecord | undefined {
  if (bytes[KIND] === B && bytes.toString('latin1', 0, BEGIN.length) === BEGIN) {
    const path = stringIn(bytes.toString('utf8', BEGIN.length, bytes.length - BEGIN_CLOSED))
    return path === undefined ? undefined : { kind: 'begin', path }
  }
  if (bytes[KIND] !== E || bytes.toString('latin1', 0, END.length) !== END) return undefined
  const end = bytes.indexOf(AFTER_NAME)
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

/** ripgrep reports text that is not UTF-8 as base64. */
function bytesOf(data: unknown): Buffer | undefined {
  if (!isObject(data)) return undefined
  const { text, bytes } = data
  if (typeof text === 'string') return Buffer.from(text)
  return typeof bytes === 'string' ? Buffer.from(bytes, 'base64') : undefined
}

/** Cuts bytes that arrive in chunks into lines, at LF only. */
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
   * The lines that a chunk completes, without their line feed; `undefined` in place of one that is too long. Lines for which
   * `isDone` returns true are omitted.
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

  /** The last line, if it has no line feed. */
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
