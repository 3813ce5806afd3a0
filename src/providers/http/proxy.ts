import { connectionError } from './provider-errors.js'
import type { Exchange } from './exchange.js'
import { flatHeaders } from './exchange.js'
import { readableBody } from './readable-body.js'
import { HarnessError } from '#contracts/errors.js'
import { joinedBytes } from '#util/bytes.js'
import { environment } from '#util/platform/node.js'
import type { Readable } from 'node:stream'

/** The dispatcher that reaches a server outside HTTP's own transport: the caller's, or that of a proxy in the environment. */
export async function dispatcherFor(url: URL, given: object | undefined): Promise<Dispatcher | undefined> {
  return (given as Dispatcher | undefined) ?? (hasProxy(url) ? await proxyDispatcher() : undefined)
}

/** Undici decides which of the two variables applies, and the exceptions of `NO_PROXY`. */
export function hasProxy({ hostname }: URL): boolean {
  return !/^(localhost|.*\.localhost|127(\.\d+){3}|\[::1\])$/.test(hostname) && proxySettings() !== ''
}

function proxySettings(): string {
  const proxyOf = (name: string): string => environment(name) ?? environment(name.toUpperCase()) ?? ''
  return `${proxyOf('https_proxy')} ${proxyOf('http_proxy')}`.trim()
}

/** One for each value of the variables; all models share its connections. */
const dispatchers = new Map<string, Promise<Dispatcher>>()

export function proxyDispatcher(): Promise<Dispatcher> {
  const settings = proxySettings()
  let dispatcher = dispatchers.get(settings)
  if (dispatcher === undefined) {
    dispatcher = openProxy()
    dispatchers.set(settings, dispatcher)
  }
  return dispatcher
}

async function openProxy(): Promise<Dispatcher> {
  const { EnvHttpProxyAgent } = await import('undici')
  try {
    return new EnvHttpProxyAgent()
  } catch {
    // The values may contain a password and are not repeated.
    const message = 'Expected `HTTPS_PROXY` and `HTTP_PROXY` to hold the URL of a proxy, such as `http://proxy:3128`.'
    throw new HarnessError('invalid_options', message)
  }
}

/** The part of an undici dispatcher that is used, of any version: an `Agent`, a `ProxyAgent`, one with HTTP/2. */
export interface Dispatcher {
  request(options: DispatcherRequest): Promise<DispatcherAnswer>
}

interface DispatcherRequest {
  readonly origin: string
  readonly path: string
  readonly method: 'GET' | 'POST'
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
    async post({ url, method = 'POST', headers, body }, guard) {
      const controller = new AbortController()
      guard.onStop(() => controller.abort())
      const request: DispatcherRequest = {
        origin: url.origin,
        path: `${url.pathname}${url.search}`,
        method,
        headers: { ...headers },
        body: joinedBytes(body),
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
