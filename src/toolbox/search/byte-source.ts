import { TextDecoder } from 'node:util'
import type { ReadableFile } from '../workspace/safe-open.js'

interface BytesRead {
  readonly bytes: number
  /** Nothing follows. */
  readonly isLast: boolean
}

const RAW_BYTES = 1 << 16

/** A file's text as UTF-8, from its beginning: UTF-16 is converted, a byte order mark is left out, as ripgrep does it. */
export class ByteSource {
  readonly #file: ReadableFile
  #position = 0
  #decoder: TextDecoder | undefined
  #decoded = Buffer.alloc(0)
  #isRead = false

  constructor(file: ReadableFile) {
    this.#file = file
  }

  /** Reads at most `room` bytes to `at`. */
  async read(into: Buffer, at: number, room: number): Promise<BytesRead> {
    if (this.#decoder !== undefined) return this.#readDecoded(this.#decoder, into, at, room)
    const isFirst = this.#position === 0
    const bytes = await this.#readRaw(into, at, room)
    if (!isFirst) return { bytes, isLast: this.#isRead }

    const mark = into.subarray(at, at + bytes)
    if (mark[0] === 0xef && mark[1] === 0xbb && mark[2] === 0xbf) {
      into.copyWithin(at, at + 3, at + bytes)
      return { bytes: bytes - 3, isLast: this.#isRead }
    }
    const encoding = mark[0] === 0xff && mark[1] === 0xfe ? 'utf-16le' : 'utf-16be'
    if (encoding === 'utf-16be' && !(mark[0] === 0xfe && mark[1] === 0xff)) return { bytes, isLast: this.#isRead }
    this.#decoder = new TextDecoder(encoding)
    this.#decoded = Buffer.from(this.#decoder.decode(mark, { stream: !this.#isRead }))
    return this.#readDecoded(this.#decoder, into, at, room)
  }

  async #readRaw(into: Buffer, at: number, room: number): Promise<number> {
    const { bytesRead } = await this.#file.read(into, at, room, this.#position)
    this.#position += bytesRead
    // A regular file gives less than was asked for at its end only: that saves asking again.
    this.#isRead = bytesRead < room
    return bytesRead
  }

  async #readDecoded(decoder: TextDecoder, into: Buffer, at: number, room: number): Promise<BytesRead> {
    const raw = Buffer.allocUnsafe(RAW_BYTES)
    while (this.#decoded.length === 0 && !this.#isRead) {
      const bytes = await this.#readRaw(raw, 0, raw.length)
      this.#decoded = Buffer.from(decoder.decode(raw.subarray(0, bytes), { stream: !this.#isRead }))
    }
    const bytes = this.#decoded.copy(into, at, 0, room)
    this.#decoded = this.#decoded.subarray(bytes)
    return { bytes, isLast: this.#isRead && this.#decoded.length === 0 }
  }
}
