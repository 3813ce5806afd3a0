import { HarnessError } from '../../contracts/errors.js'
import { dispatcherExchange } from './dispatcher-exchange.js'
import type { Dispatcher } from './dispatcher-exchange.js'
import type { Exchange } from './exchange.js'
import { httpExchange } from './http-exchange.js'

/**
 * `node:http(s)`, and undici where the environment names a proxy for the server (`HTTPS_PROXY`, `HTTP_PROXY`, `NO_PROXY`,
 * in either case of letters). This machine itself is never asked through a proxy. Undici is loaded only then.
 */
export function defaultExchange(): Exchange {
  const direct = httpExchange()
  const proxied = dispatcherExchange(proxyDispatcher)
  return {
    post: (request, guard) => (hasProxy(request.url) ? proxied : direct).post(request, guard),
    close: () => direct.close(),
  }
}

/** Undici settles which of the two variables counts, and what `NO_PROXY` excepts. */
function hasProxy({ hostname }: URL): boolean {
  return !/^(localhost|.*\.localhost|127(\.\d+){3}|\[::1\])$/.test(hostname) && proxySettings() !== ''
}

function proxySettings(): string {
  const { env } = process
  return `${env['https_proxy'] ?? env['HTTPS_PROXY'] ?? ''} ${env['http_proxy'] ?? env['HTTP_PROXY'] ?? ''}`.trim()
}

/** One for each setting of the variables: all models share its connections. */
const dispatchers = new Map<string, Promise<Dispatcher>>()

function proxyDispatcher(): Promise<Dispatcher> {
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
    // What they hold may be a password: it is not repeated.
    const message = 'Expected `HTTPS_PROXY` and `HTTP_PROXY` to hold the URL of a proxy, such as `http://proxy:3128`.'
    throw new HarnessError('invalid_options', message)
  }
}
