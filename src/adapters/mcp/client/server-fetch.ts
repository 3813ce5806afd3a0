import { keepSecretsOf } from '#util/secrets.js'

/** Headers of every request to a server; as a function, asked for each, for tokens that change. */
export type McpHeaders =
  | Readonly<Record<string, string>>
  | (() => Readonly<Record<string, string>> | Promise<Readonly<Record<string, string>>>)

/**
 * A `fetch` for one server: adds its headers to requests to its origin and to no other, also after a redirect, and fails
 * a reply in which one message is larger than 10 MiB, or that ends without its answer.
 */
export function serverFetch(server: URL, headers: McpHeaders, base: typeof fetch = fetch): typeof fetch {
  return async (input, init) => {
    const { readReply } = await import('./replies.js')
    const url = new URL(input instanceof Request ? input.url : input)
    const own = url.origin !== server.origin ? {} : typeof headers === 'function' ? await headers() : headers
    keepSecretsOf(Object.entries(own), true)
    if (Object.keys(own).length === 0) return readReply(await base(input, init), init)
    const all = new Headers(init?.headers ?? (input instanceof Request ? input.headers : undefined))
    for (const [name, value] of Object.entries(own)) if (!all.has(name)) all.set(name, value)
    return readReply(await sentWithin(server.origin, base, { input, init: { ...init, headers: all } }), init)
  }
}

/**
 * Sends a request with the server's headers: the platform's `fetch` would send most of them to another host too. A redirect
 * that keeps the method is followed within the origin; any other is an error with instructions.
 */
async function sentWithin(
  origin: string,
  base: typeof fetch,
  { input, init }: { readonly input: string | URL | Request; readonly init: RequestInit },
): Promise<Response> {
  let target = input
  for (let hop = 0; hop <= MOST_REDIRECTS; hop++) {
    const response = await base(target, { ...init, redirect: 'manual' })
    const location = response.status >= 300 && response.status < 400 ? response.headers.get('location') : null
    if (location === null) return response
    await response.body?.cancel()
    const from = new URL(target instanceof Request ? target.url : target)
    const to = URL.canParse(location, from.href) ? new URL(location, from) : null
    const keepsMethod = [307, 308].includes(response.status) || (init.method ?? 'GET') === 'GET'
    if (to?.origin !== origin || !keepsMethod || target instanceof Request) {
      throw new Error(
        `It redirects to \`${to === null ? 'no address' : to.origin + to.pathname}\`: give that as its \`url\`.`,
      )
    }
    target = to
  }
  throw new Error(`It redirects more than ${MOST_REDIRECTS} times.`)
}

const MOST_REDIRECTS = 5
