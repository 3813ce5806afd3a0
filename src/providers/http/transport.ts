import { ClientTransport } from './client-transport.js'
import type { ClientCall } from './client-transport.js'
import { defaultExchange } from './default-exchange.js'
import { dispatcherExchange } from './dispatcher-exchange.js'
import type { Dispatcher } from './dispatcher-exchange.js'
import type { Endpoint } from './endpoint.js'
import { fetchExchange } from './fetch-exchange.js'
import { HttpTransport } from './http-transport.js'
import type { Timeouts } from './options.js'
import { limitsOf } from './request-guard.js'
import type { Transport } from './wire.js'

interface TransportSettings {
  readonly timeouts?: Timeouts
  readonly over: Connection
}

/** What requests are sent over. `endpoint` is asked for each request and may throw, such as `missing_key`. */
export type Connection =
  | { readonly kind: 'default'; readonly endpoint: () => Endpoint }
  | { readonly kind: 'fetch'; readonly endpoint: () => Endpoint; readonly fetch: typeof globalThis.fetch }
  | { readonly kind: 'dispatcher'; readonly endpoint: () => Endpoint; readonly dispatcher: Dispatcher }
  | { readonly kind: 'client'; readonly call: ClientCall; readonly headers: Readonly<Record<string, string>> }

/** The transport that fits what a model was made with. Does no I/O, loads nothing and connects to nobody yet. */
export function openTransport({ over, timeouts }: TransportSettings): Transport {
  const limits = limitsOf(timeouts)
  switch (over.kind) {
    case 'default':
      return new HttpTransport(defaultExchange(), over.endpoint, limits)
    case 'fetch':
      return new HttpTransport(fetchExchange(over.fetch), over.endpoint, limits)
    case 'dispatcher':
      return new HttpTransport(
        dispatcherExchange(async () => over.dispatcher),
        over.endpoint,
        limits,
      )
    case 'client':
      return new ClientTransport(over.call, over.headers, limits)
  }
}
