import { isIP } from 'node:net'
import type * as http from '@modelcontextprotocol/client'
import { messageOf } from '#contracts/errors.js'
import { isPublicAddress } from '#toolbox/web/addresses.js'
import { plainHost } from '#toolbox/web/host-list.js'
import { jsonObjectIn } from '#util/json.js'
import type { McpAuthProvider } from './connection.js'

type Sdk = Pick<
  typeof http,
  'auth' | 'computeScopeUnion' | 'extractWWWAuthenticateParams' | 'isStrictScopeSuperset' | 'UnauthorizedError'
>

/** For this long after a person was sent to a page, nobody is sent there again, in ms. */
const SENT_MS = 60_000

/** A token could not be renewed now. The SDK passes on a `TypeError` of a request. */
class AuthorizationUnavailable extends TypeError {
  readonly code = 'temporarily_unavailable'
}

interface Tokens {
  readonly access_token?: string
  readonly refresh_token?: string
  readonly scope?: string
}

/** What all servers with one provider share: one authorization at a time, for all who wait. */
interface Shared {
  running: Promise<void> | null
  /** How many have ended. */
  ended: number
}

/** What a server wants, by its refusal. */
interface Challenge {
  readonly resourceMetadataUrl?: URL
  readonly scope?: string
  /** A wider scope than the tokens have: a refresh would not help. */
  readonly forceReauthorization?: boolean
}

const sharedBy = new WeakMap<McpAuthProvider, Shared>()

/** The authorization of the requests to one server. */
export class Authorization {
  readonly #sdk: Sdk
  readonly #provider: McpAuthProvider
  readonly #url: URL
  readonly #base: typeof fetch
  readonly #shared: Shared
  #challenge: Challenge = {}
  /** Nobody is sent to a page before, by `Date.now()`. */
  #sentUntil = 0
  #isPrivate: Promise<boolean> | null = null

  constructor(
    sdk: Sdk,
    provider: McpAuthProvider,
    { url, fetch }: { readonly url: URL; readonly fetch: typeof globalThis.fetch },
  ) {
    this.#sdk = sdk
    this.#provider = provider
    this.#url = url
    this.#base = fetch
    const shared = sharedBy.get(provider) ?? { running: null, ended: 0 }
    sharedBy.set(provider, shared)
    this.#shared = shared
  }

  /** A request to the server, again with a renewed token after a 401; or one of an authorization. */
  readonly fetch: typeof fetch = async (input, init) => {
    const headers = new Headers(init?.headers ?? (input instanceof Request ? input.headers : undefined))
    const given = headers.get('authorization')
    const address = input instanceof Request ? input.url : String(input)
    if (given === null && address !== this.#url.href) return this.#authFetch(input, init)
    const response = await this.#base(input, init)
    const sent = given === null ? null : /^Bearer (.+)$/i.exec(given)?.[1]
    const { error } = this.#sdk.extractWWWAuthenticateParams(response)
    const isRefused = response.status === 401 || (response.status === 403 && error === 'insufficient_scope')
    if (!isRefused || sent === undefined) return response
    await response.body?.cancel()
    headers.set('authorization', `Bearer ${await this.#renewed(sent, response)}`)
    const again = await this.#base(input, { ...init, headers })
    if (again.status === 401) throw new Error('It refuses the access token that it was just given.')
    return again
  }

  /** Trades the code of a callback for tokens. */
  async finish(code: string, iss: string | null): Promise<void> {
    this.#sentUntil = 0
    const result = await this.#authorize({ authorizationCode: code, ...(iss !== null && { iss }) })
    if (result !== 'AUTHORIZED') throw new this.#sdk.UnauthorizedError('Failed to authorize')
  }

  /** The stored token, if it is another than the one that was refused; else a new one. */
  async #renewed(sent: string | null, refusal: Response): Promise<string> {
    const shared = this.#shared
    for (let isLast = false; ;) {
      const { ended } = shared
      const stored = (await this.#tokens()).access_token
      if (stored !== undefined && stored !== sent) return stored
      if (isLast) throw new this.#sdk.UnauthorizedError()
      if (ended !== shared.ended) continue
      shared.running ??= this.#run(refusal).finally(() => {
        shared.running = null
        shared.ended += 1
      })
      await shared.running
      isLast = true
    }
  }

  async #run(refusal: Response): Promise<void> {
    if (Date.now() < this.#sentUntil) throw new this.#sdk.UnauthorizedError()
    const { resourceMetadataUrl, scope: wanted } = this.#sdk.extractWWWAuthenticateParams(refusal)
    const { scope: held } = await this.#tokens()
    const scope = refusal.status === 403 ? this.#sdk.computeScopeUnion(held, wanted) : wanted
    const forceReauthorization = refusal.status === 403 && this.#sdk.isStrictScopeSuperset(scope, held)
    this.#challenge = {
      ...this.#challenge,
      ...(resourceMetadataUrl && { resourceMetadataUrl }),
      ...(scope !== undefined && { scope }),
      forceReauthorization,
    }
    if ((await this.#authorize({})) === 'AUTHORIZED') return
    this.#sentUntil = Date.now() + SENT_MS
    throw new this.#sdk.UnauthorizedError()
  }

  #authorize(given: { readonly authorizationCode?: string; readonly iss?: string }): Promise<http.AuthResult> {
    return this.#sdk.auth(this.#provider as http.OAuthClientProvider, {
      serverUrl: this.#url,
      ...this.#challenge,
      fetchFn: this.#authFetch,
      ...given,
    })
  }

  async #tokens(): Promise<Tokens> {
    return (await this.#provider.tokens()) ?? {}
  }

  /** A request of an authorization. While there are tokens, a server that does not work sends nobody to a page. */
  readonly #authFetch: typeof fetch = async (input, init) => {
    const address = new URL(input instanceof Request ? input.url : input)
    await this.#checkAddress(address)
    const { body } = init ?? {}
    if (body instanceof URLSearchParams && body.get('grant_type') === 'refresh_token') {
      return this.#refresh(() => this.#base(input, init), body.get('refresh_token'))
    }
    const response = await this.#base(input, init)
    if (response.status < 500 || (await this.#tokens()).refresh_token === undefined) return response
    throw new AuthorizationUnavailable(`\`${address.origin}\` answered with status ${response.status}`)
  }

  /** A refusal counts only if nobody has stored other tokens since; anything but tokens and a refusal is a failure. */
  async #refresh(send: () => Promise<Response>, sent: string | null): Promise<Response> {
    const { ok, status, text } = await send()
      .then(async (response) => ({ ok: response.ok, status: response.status, text: await response.text() }))
      .catch((error: unknown) => ({ ok: false, status: 500, text: messageOf(error) }))
    const answer = jsonObjectIn(text)
    const { access_token, error } = answer
    if (ok && typeof access_token === 'string') return Response.json(answer)
    if (typeof error !== 'string' || status >= 500 || UNAVAILABLE.includes(error)) {
      return Response.json({ error: UNAVAILABLE[0], error_description: text.slice(0, 200) }, { status: 400 })
    }
    const now = await this.#tokens()
    if (error === 'invalid_grant' && now.access_token !== undefined && now.refresh_token !== sent) {
      return Response.json({ token_type: 'Bearer', ...now })
    }
    return new Response(text, { status: ok ? 400 : status })
  }

  /** A server on the internet must not lead the client into a private network, nor off `https`. */
  async #checkAddress(address: URL): Promise<void> {
    if (address.origin === this.#url.origin) return
    this.#isPrivate ??= hasPrivateAddress(this.#url)
    if (!(await this.#isPrivate) && (address.protocol !== 'https:' || (await hasPrivateAddress(address)))) {
      throw new Error(`It names \`${address.origin}\` for its authorization, which is no public \`https\` address.`)
    }
  }
}

/** Errors of OAuth that say nothing about a token. */
const UNAVAILABLE = ['temporarily_unavailable', 'server_error', 'slow_down']

/** True if a host has an address that is not public. A name that is unknown here has none: it may be known to a proxy. */
async function hasPrivateAddress({ hostname }: URL): Promise<boolean> {
  const host = plainHost(hostname)
  if (isIP(host) !== 0) return !isPublicAddress(host)
  const { lookup } = await import('node:dns/promises')
  const found = await lookup(host, { all: true }).catch(() => [])
  return found.some(({ address }) => !isPublicAddress(address))
}
