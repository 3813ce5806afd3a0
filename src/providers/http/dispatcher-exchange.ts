import type { Readable } from 'node:stream'
import { HarnessError } from '../../contracts/errors.js'
import { connectionError } from './connection-error.js'
import type { Answer, Exchange } from './exchange.js'
import { readableBody } from './readable-body.js'

/** What is used of an undici dispatcher, of whatever version: an `Agent`, a `ProxyAgent`, one with HTTP/2. */
export interface Dispatcher {
  request(options: DispatcherRequest): Promise<DispatcherAnswer>
}

interface DispatcherRequest {
  readonly origin: string
  readonly path: string
  readonly method: 'POST'
  readonly headers: Record<string, string>
  readonly body: Uint8Array
  readonly signal: AbortSignal
  readonly headersTimeout: number
  readonly bodyTimeout: number
}

interface DispatcherAnswer {
  readonly statusCode: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: Readable
}

/**
 * An exchange over an undici dispatcher. Its connections are its owner's, who also says how long connecting may take:
 * for us that is part of the time to the first byte.
 */
export function dispatcherExchange(dispatcher: () => Promise<Dispatcher>): Exchange {
  return {
    async post({ url, headers, body }, guard) {
      const controller = new AbortController()
      guard.onStop(() => controller.abort())
      const request: DispatcherRequest = {
        origin: url.origin,
        path: `${url.pathname}${url.search}`,
        method: 'POST',
        headers: { ...headers },
        body: Buffer.concat(body),
        signal: controller.signal,
        // The limits are the guard's.
        headersTimeout: 0,
        bodyTimeout: 0,
      }
      const answer = dispatcher().then((each) => each.request(request))
      const { statusCode, headers: given, body: stream } = await guard.wait('firstByteMs', failing(answer, url.host))
      const flat = headersOf(given)
      const origin = { host: url.host, encoding: flat['content-encoding'] }
      return { status: statusCode, headers: flat, ...(await readableBody(stream, origin, guard)) }
    },
    close: async () => undefined,
  }
}

async function failing(answer: Promise<DispatcherAnswer>, host: string): Promise<DispatcherAnswer> {
  try {
    return await answer
  } catch (error) {
    throw error instanceof HarnessError ? error : connectionError(error, host, false)
  }
}

function headersOf(given: DispatcherAnswer['headers']): Answer['headers'] {
  const flat: Record<string, string> = {}
  for (const [name, value] of Object.entries(given)) {
    if (value !== undefined) flat[name.toLowerCase()] = Array.isArray(value) ? value.join(', ') : value
  }
  return flat
}
