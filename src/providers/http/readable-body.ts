import { pipeline } from 'node:stream'
import type { Readable, Transform } from 'node:stream'
import { joinedBytes } from '#util/bytes.js'
import { connectionError, providerError } from './provider-errors.js'
import type { HttpResponse } from './exchange.js'
import type { RequestGuard } from './request-guard.js'

/** The body of a Node stream, decompressed and read as it arrives. Its events cost less than its async iterator. */
export async function readableBody(
  stream: Readable,
  origin: { readonly host: string; readonly encoding: string | undefined },
  guard: RequestGuard,
): Promise<Pick<HttpResponse, 'read'>> {
  const { host, encoding } = origin
  const source = encoding === undefined || isIdentity(encoding) ? stream : await decompressedStream(stream, encoding)
  const body = new ReadableBody(source, host)
  return { read: () => body.next() ?? guard.wait('idleMs', () => body.wait()) }
}

/** Unread bytes before the sender is paused. */
const MOST_WAITING = 1024 * 1024

class ReadableBody {
  readonly #source: Readable
  #waiting: Uint8Array[] = []
  #length = 0
  #ended = false
  #failure: Error | null = null
  #wake: (() => void) | null = null

  constructor(source: Readable, host: string) {
    this.#source = source
    const fail = (error: Error): void => {
      this.#failure ??= connectionError(error, host, true)
      this.#wakeReader()
    }
    source.on('data', (bytes: Uint8Array) => {
      this.#waiting.push(bytes)
      this.#length += bytes.length
      if (this.#length > MOST_WAITING) source.pause()
      this.#wakeReader()
    })
    source.on('end', () => {
      this.#ended = true
      this.#wakeReader()
    })
    source.on('error', fail)
    source.on('close', () => {
      if (!this.#ended) fail(new Error('the answer was cut short'))
    })
  }

  /** All bytes that have arrived, in one piece; undefined if there are none yet. */
  next(): Promise<Uint8Array | null> | undefined {
    if (this.#waiting.length > 0) {
      const bytes = joinedBytes(this.#waiting)
      this.#waiting = []
      this.#length = 0
      if (this.#source.isPaused()) this.#source.resume()
      return Promise.resolve(bytes)
    }
    if (this.#ended) return Promise.resolve(null)
    return this.#failure === null ? undefined : Promise.reject(this.#failure)
  }

  async wait(): Promise<Uint8Array | null> {
    for (;;) {
      await new Promise<void>((resolve) => (this.#wake = resolve))
      const next = this.next()
      if (next !== undefined) return next
    }
  }

  /** Once: many pieces may arrive before the reader runs. */
  #wakeReader(): void {
    const wake = this.#wake
    this.#wake = null
    wake?.()
  }
}

function isIdentity(encoding: string): boolean {
  return /^\s*(identity)?\s*$/i.test(encoding)
}

async function decompressedStream(stream: Readable, encoding: string): Promise<Readable> {
  // An error while the library loads has no other listener.
  stream.on('error', () => undefined)
  const decompressor = await decompressorFor(encoding.trim().toLowerCase())
  return pipeline(stream, decompressor, () => undefined)
}

async function decompressorFor(encoding: string): Promise<Transform> {
  const zlib = await import('node:zlib')
  switch (encoding) {
    case 'gzip':
    case 'x-gzip':
      return zlib.createGunzip()
    case 'br':
      return zlib.createBrotliDecompress()
    case 'deflate':
      return zlib.createInflate()
    default:
      throw providerError(`The provider's answer is compressed in an unknown way, \`${encoding.slice(0, 50)}\`.`, {
        failure: 'server',
      })
  }
}
