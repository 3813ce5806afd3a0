import { StringDecoder } from 'node:string_decoder'
import { stripVTControlCharacters } from 'node:util'

const INTERVAL_MS = 50
/** A line that is longer is told in pieces. */
const MAX_LINE_CHARS = 65_536

/** Tells what a stream prints, whole lines at a time, at most every 50 ms and no more than `maxBytes` in all. */
export class LineFeed {
  readonly #tell: (lines: string) => void
  readonly #decoder = new StringDecoder('utf8')
  #left: number
  #pieces: Buffer[] = []
  #line = ''
  #timer: NodeJS.Timeout | undefined

  constructor(tell: (lines: string) => void, maxBytes: number) {
    this.#tell = tell
    this.#left = maxBytes
  }

  add(chunk: Buffer): void {
    const piece = chunk.subarray(0, this.#left)
    if (piece.length === 0) return
    this.#left -= piece.length
    this.#pieces.push(piece)
    this.#timer ??= setTimeout(() => this.#flush(), INTERVAL_MS)
  }

  /** Tells the rest, a last line without an ending included. */
  end(): void {
    this.#flush()
    this.#send(this.#line + this.#decoder.end())
    this.#line = ''
    this.#left = 0
  }

  #flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const text = this.#line + this.#decoder.write(Buffer.concat(this.#pieces))
    this.#pieces = []
    const whole = text.lastIndexOf('\n') + 1
    const end = text.length - whole > MAX_LINE_CHARS ? text.length : whole
    this.#line = text.slice(end)
    this.#send(text.slice(0, end))
  }

  #send(text: string): void {
    if (text !== '') this.#tell(stripVTControlCharacters(text))
  }
}
