import { isObject, parseJson } from '../../util/json.js'

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
  /** A file is done. `isBinary`: a NUL was met in it. */
  | { readonly kind: 'end'; readonly path: string; readonly isBinary: boolean }

const MATCH = Buffer.from('{"type":"match"')

/** Whether the text of a record is that of a match, as ripgrep writes it. */
export function isMatchRecord(text: Buffer): boolean {
  return text.length > MATCH.length && text.compare(MATCH, 0, MATCH.length, 0, MATCH.length) === 0
}

/** A record of the output; `undefined` for those of other kinds, and for paths that are not UTF-8. */
export function parseRecord(text: Buffer): RipgrepRecord | undefined {
  const parsed = parseJson(text.toString())
  if (!parsed.ok || !isObject(parsed.value) || !isObject(parsed.value['data'])) return undefined
  const { type, data } = parsed.value
  if (!isObject(data) || !isObject(data['path'])) return undefined
  const path = data['path']['text']
  if (typeof path !== 'string') return undefined
  if (type === 'begin') return { kind: 'begin', path }
  if (type === 'end') return { kind: 'end', path, isBinary: typeof data['binary_offset'] === 'number' }
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

/** Cuts bytes that come in chunks into lines, at LF only (spec H-14). */
export class LineCutter {
  readonly #maxBytes: number
  #pieces: Buffer[] = []
  #held = 0

  /** @param maxBytes Longest line that is held. */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** The lines that a chunk completes, without their line feed; `undefined` in place of one that is too long. */
  *push(chunk: Buffer): Generator<Buffer | undefined, void, undefined> {
    let start = 0
    for (let end = chunk.indexOf(LF); end !== -1; end = chunk.indexOf(LF, start)) {
      yield this.#finish(chunk.subarray(start, end))
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
