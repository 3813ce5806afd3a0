import { keepSecretsIn, keepSecretsOf } from '#util/secrets.js'
import type { PostRequest } from './exchange.js'

/** The server's address and the headers of every request. */
export class Endpoint {
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  /** True for a server on this machine or in a private network, which charges nothing. */
  readonly isLocal: boolean
  readonly #base: URL
  readonly #urls = new Map<string, URL>()

  /** `baseUrl` must be a URL; its query follows the path of each request, whose own query is added. */
  constructor(baseUrl: string, headers: Readonly<Record<string, string>>) {
    this.#base = new URL(baseUrl)
    this.headers = headers
    this.isLocal = LOCAL_HOST.test(this.#base.hostname)
    keepSecretsOf(Object.entries(headers), true)
    keepSecretsIn(baseUrl)
  }

  urlOf(path: string): URL {
    let url = this.#urls.get(path)
    if (url === undefined) {
      url = new URL(this.#base)
      const [pathname = '', query] = path.split('?')
      url.pathname = this.#base.pathname.replace(/\/+$/, '') + pathname
      for (const [name, value] of new URLSearchParams(query)) url.searchParams.set(name, value)
      this.#urls.set(path, url)
    }
    return url
  }
}

/** Loopback and private addresses, names of the local network, and names without a dot, such as those of containers. */
const LOCAL_HOST =
  /^(?:(?:127|10)\.\d+\.\d+\.\d+|192\.168\.\d+\.\d+|172\.(?:1[6-9]|2\d|3[01])\.\d+\.\d+|\[(?:::1|f[cd].*)\]|[^.:[\]]+)$|\.(?:localhost|local|internal)$/

export type Headers = PostRequest['headers']

/** Headers with those of the caller, which win. Lists of beta features are joined: a request needs its own too. */
export function withCallers(own: Headers, callers: Headers): Headers {
  const all: Record<string, string> = { ...own, ...callers }
  for (const name of Object.keys(own)) {
    const [needed, chosen] = [own[name], callers[name]]
    if (name.endsWith('-beta') && needed !== undefined && chosen !== undefined) all[name] = `${chosen},${needed}`
  }
  return all
}
