import type { Readable } from 'node:stream'
import { HarnessError } from '#contracts/errors.js'
import { connectionError } from './connection-error.js'
import { flatHeaders } from './exchange.js'
import type { Exchange } from './exchange.js'
import { readableBody } from './readable-body.js'

/** The part of an undici dispatcher that is used, of any version: an `Agent`, a `ProxyAgent`, one with HTTP/2. */
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
 * An exchange over an undici dispatcher. The dispatcher's owner owns the connections and limits the time to connect:
 * here it is part of the time to the first byte.
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
        // The guard has the limits.
        headersTimeout: 0,
        bodyTimeout: 0,
      }
      const answer = await guard.wait(
        'firstByteMs',
        async () => await (await dispatcher()).request(request),
        (error) => (error instanceof HarnessError ? error : connectionError(error, url.host, false)),
      )
      const flat = flatHeaders(answer.headers)
      const origin = { host: url.host, encoding: flat['content-encoding'] }
      return { status: answer.statusCode, headers: flat, ...(await readableBody(answer.body, origin, guard)) }
    },
    close: async () => undefined,
  }
}
