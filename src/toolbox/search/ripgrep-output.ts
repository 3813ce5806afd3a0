import { isObject, parseJson } from '../../util/json.js'

/** A record of ripgrep's, as far as it is of use here. */
export type RipgrepRecord =
  | { readonly kind: 'begin'; readonly path: string }
  | { readonly kind: 'match'; readonly path: string; readonly line: number; readonly bytes: Buffer }
  /** A file is done. `isBinary`: a NUL was met in it. */
  | { readonly kind: 'end'; readonly path: string; readonly isBinary: boolean }

/** A record of the output; `undefined` for those of other kinds, and for paths that are not UTF-8. */
export function parseRecord(text: string): RipgrepRecord | undefined {
  const parsed = parseJson(text)
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
  return { kind: 'match', path, line, bytes }
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

  /** The lines that a chunk completes; `undefined` in place of one that is too long. */
  *push(chunk: Buffer): Generator<string | undefined, void, undefined> {
    let start = 0
    for (let end = chunk.indexOf(LF); end !== -1; end = chunk.indexOf(LF, start)) {
      yield this.#finish(chunk.subarray(start, end))
      start = end + 1
    }
    this.#hold(chunk.subarray(start))
  }

  /** The last line, when it has no line feed. */
  *end(): Generator<string | undefined, void, undefined> {
    if (this.#held > 0) yield this.#finish(Buffer.alloc(0))
  }

  #finish(piece: Buffer): string | undefined {
    this.#hold(piece)
    const line = this.#held > this.#maxBytes ? undefined : Buffer.concat(this.#pieces).toString()
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
