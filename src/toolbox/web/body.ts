import type { IncomingMessage } from 'node:http'
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib'
import { fetchFailure } from './failure.js'
import { codeOf } from './request.js'

export interface Body {
  readonly bytes: Buffer
  /** There was more than `maxBytes`. */
  readonly cut: boolean
}

/**
 * A body, unpacked, or its first `maxBytes`: neither what comes nor what it unpacks to is ever held whole beyond that.
 * @throws FileFailure `FetchFailed`; the signal's reason.
 */
export async function readBody(answer: IncomingMessage, maxBytes: number, signal: AbortSignal): Promise<Body> {
  const chunks: Buffer[] = []
  let size = 0
  try {
    for await (const chunk of unpacked(answer)) {
      const bytes = chunk as Buffer
      chunks.push(bytes)
      size += bytes.length
      if (size > maxBytes) break
    }
  } catch (error) {
    signal.throwIfAborted()
    throw fetchFailure('FetchFailed', `The answer broke off (${codeOf(error)}).`)
  } finally {
    answer.destroy()
  }
  signal.throwIfAborted()
  return { bytes: Buffer.concat(chunks).subarray(0, maxBytes), cut: size > maxBytes }
}

function unpacked(answer: IncomingMessage): AsyncIterable<unknown> {
  const unpack = unpackerOf(answer.headers['content-encoding'])
  if (unpack === undefined) return answer
  answer.once('error', (error) => unpack.destroy(error))
  return answer.pipe(unpack)
}

function unpackerOf(encoding = 'identity') {
  switch (encoding.trim().toLowerCase()) {
    case 'identity':
    case '':
      return undefined
    case 'gzip':
    case 'x-gzip':
      return createGunzip()
    case 'deflate':
      return createInflate()
    case 'br':
      return createBrotliDecompress()
    default:
      throw fetchFailure(
        'FetchFailed',
        `The answer is packed in a way that was not asked for: \`${encoding.slice(0, 50)}\`.`,
      )
  }
}
