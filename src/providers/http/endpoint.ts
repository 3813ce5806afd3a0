/** Where requests go, and what goes with each. */
export class Endpoint {
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  readonly #base: URL
  readonly #secrets: readonly string[]
  readonly #urls = new Map<string, URL>()

  /** `baseUrl` must be a URL; what a query of it says is kept behind the path of a request. */
  constructor(baseUrl: string, headers: Readonly<Record<string, string>>) {
    this.#base = new URL(baseUrl)
    this.headers = headers
    this.#secrets = Object.entries(headers)
      .filter(([name]) => /auth|key|token|secret|cookie/.test(name))
      .map(([, value]) => value.replace(/^(Bearer|Basic)\s+/i, ''))
      .filter((secret) => secret.length >= SHORTEST_SECRET)
  }

  urlOf(path: string): URL {
    let url = this.#urls.get(path)
    if (url === undefined) {
      url = new URL(this.#base)
      url.pathname = this.#base.pathname.replace(/\/+$/, '') + path
      this.#urls.set(path, url)
    }
    return url
  }

  /** What a provider says, without the secrets that it was sent. */
  withoutSecrets(text: string): string {
    return this.#secrets.reduce((clean, secret) => clean.replaceAll(secret, '***'), text)
  }
}

/** A shorter one, such as the `x` that a local server is given, protects nothing and is found in any word. */
const SHORTEST_SECRET = 6
