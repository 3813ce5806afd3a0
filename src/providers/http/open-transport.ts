import { ClientTransport } from './client-transport.js'
import type { ClientMethod } from './client-transport.js'
import { connectionError } from './provider-errors.js'
import type { Exchange } from './exchange.js'
import { httpExchange } from './node-exchange.js'
import { HttpTransport } from './http-transport.js'
import type { Endpoint } from './endpoint.js'
import type { Timeouts } from './options.js'
import { dispatcherExchange, hasProxy, proxyDispatcher } from './proxy.js'
import type { Dispatcher } from './proxy.js'
import { timeLimitsOf } from './options.js'
import type { Transport } from './wire-format.js'
import { joinedBytes, textualBytes } from '#util/bytes.js'
import { hostProcess } from '#util/platform/node.js'

interface TransportSettings {
  readonly timeouts?: Timeouts
  readonly over: Connection
}

/** The connection for requests. `endpoint` is called for each request and may throw, such as `missing_key`. */
export type Connection =
  | { readonly kind: 'default'; readonly endpoint: () => Endpoint }
  | { readonly kind: 'fetch'; readonly endpoint: () => Endpoint; readonly fetch: typeof globalThis.fetch }
  | { readonly kind: 'dispatcher'; readonly endpoint: () => Endpoint; readonly dispatcher: Dispatcher }
  | { readonly kind: 'client'; readonly call: ClientMethod; readonly headers: Readonly<Record<string, string>> }

/** The transport for a model's options. It does no I/O, loads nothing and opens no connection yet. */
export function openTransport({ over, timeouts }: TransportSettings): Transport {
  const limits = timeLimitsOf(timeouts)
  if (over.kind === 'client') return new ClientTransport(over.call, over.headers, limits)
  return new HttpTransport(exchangeOver(over), over.endpoint, limits)
}

function exchangeOver(over: Exclude<Connection, { readonly kind: 'client' }>): Exchange {
  switch (over.kind) {
    case 'default':
      return defaultExchange()
    case 'fetch':
      return fetchExchange(over.fetch)
    case 'dispatcher':
      return dispatcherExchange(async () => over.dispatcher)
  }
}

/**
 * `node:http(s)`, or undici if the environment names a proxy for the server (`HTTPS_PROXY`, `HTTP_PROXY`, `NO_PROXY`,
 * in upper or lower case). The local machine is never reached through a proxy. Undici is loaded only then.
 */
function defaultExchange(): Exchange {
  // Browsers and workers have `fetch` alone.
  if (hostProcess().getBuiltinModule === undefined) return fetchExchange((...given) => globalThis.fetch(...given))
  const direct = httpExchange()
  const proxied = dispatcherExchange(proxyDispatcher)
  return {
    post: (request, guard) => (hasProxy(request.url) ? proxied : direct).post(request, guard),
    connect: async (url, guard) => (hasProxy(url) ? undefined : direct.connect?.(url, guard)),
    close: () => direct.close(),
  }
}

/**
 * An exchange over the caller's `fetch`. It hides its connections, so connecting is part of the time to the first byte.
 * A `fetch` or a body that ignores its signal is abandoned when a limit is reached.
 */
export function fetchExchange(fetch: typeof globalThis.fetch): Exchange {
  return {
    async post({ url, method = 'POST', headers, body }, guard) {
      const controller = new AbortController()
      guard.onStop(() => controller.abort())
      const init: RequestInit = {
        method,
        headers: { ...headers },
        // A `fetch` of the caller's may read it by `String` or `JSON.parse`, as it reads the bodies of other clients.
        ...(method === 'POST' && { body: textualBytes(joinedBytes(body)) }),
        redirect: 'manual',
        signal: controller.signal,
      }
      const response = await guard.wait(
        'firstByteMs',
        () => fetch(url.href, init),
        (error) => connectionError(error, url.host, false),
      )
      const reader = (response.body as ReadableStream<Uint8Array> | null)?.getReader()
      guard.onStop(() => {
        controller.abort()
        reader?.cancel().catch(() => undefined)
      })
      return {
        // A `fetch` may hide the details of a redirect.
        status: response.type === 'opaqueredirect' ? 302 : response.status,
        headers: Object.fromEntries(response.headers),
        async read() {
          if (reader === undefined) return null
          const { value } = await guard.wait(
            'idleMs',
            () => reader.read(),
            (error) => connectionError(error, url.host, true),
          )
          return value ?? null
        },
      }
    },
    close: async () => undefined,
  }
}
