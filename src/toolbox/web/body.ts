import type { IncomingMessage } from 'node:http'
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib'
import { fetchFailure } from './failure.js'
import { codeOf } from './request.js'

export interface Body {
  readonly bytes: Buffer
  /** The body is longer than `maxBytes`. */
  readonly cut: boolean
}

/**
 * A body, decompressed, or its first `maxBytes`: not more than that is held in memory.
 * @throws FileFailure `FetchFailed`; the signal's reason.
 */
export async function readBody(response: IncomingMessage, maxBytes: number, signal: AbortSignal): Promise<Body> {
  const chunks: Buffer[] = []
  let size = 0
  try {
    for await (const chunk of decompressed(response)) {
      const bytes = chunk as Buffer
      chunks.push(bytes)
      size += bytes.length
      if (size > maxBytes) break
    }
  } catch (error) {
    signal.throwIfAborted()
    throw fetchFailure('FetchFailed', `The response was interrupted (${codeOf(error)}).`)
  } finally {
    response.destroy()
  }
  signal.throwIfAborted()
  return { bytes: Buffer.concat(chunks).subarray(0, maxBytes), cut: size > maxBytes }
}

function decompressed(response: IncomingMessage): AsyncIterable<unknown> {
  const decompressor = decompressorOf(response.headers['content-encoding'])
  if (decompressor === undefined) return response
  response.once('error', (error) => decompressor.destroy(error))
  return response.pipe(decompressor)
}

function decompressorOf(encoding = 'identity') {
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
        `The response has an encoding that was not requested: \`${encoding.slice(0, 50)}\`.`,
      )
  }
}
