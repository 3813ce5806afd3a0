import type { McpAuthProvider } from '#adapters/mcp/index.js'

/** Keeps the data of an authorization in memory, and opens the page at once, like a person who agrees. */
export class Person implements McpAuthProvider {
  readonly redirectUrl = 'http://localhost:3000/callback'
  readonly clientMetadataUrl = 'https://conformance-test.local/client-metadata.json'
  readonly clientMetadata = {
    client_name: 'thinharness',
    redirect_uris: [this.redirectUrl],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    application_type: 'native',
  }
  #client: unknown
  #tokens: unknown
  #verifier = ''
  #callback: URLSearchParams | null = null

  constructor({ client_id, client_secret }: { readonly client_id?: string; readonly client_secret?: string }) {
    if (client_id !== undefined) this.#client = { client_id, client_secret }
  }

  get wasSent(): boolean {
    return this.#callback !== null
  }

  /** The parameters of the address that the page led back to. */
  comesBack(): URLSearchParams {
    const callback = this.#callback ?? new URLSearchParams()
    this.#callback = null
    return callback
  }

  async redirectToAuthorization(page: URL): Promise<void> {
    const { headers } = await fetch(page, { redirect: 'manual' })
    this.#callback = new URL(headers.get('location') ?? '').searchParams
  }

  clientInformation = (): unknown => this.#client
  saveClientInformation = (client: unknown): void => void (this.#client = client)
  tokens = (): unknown => this.#tokens
  saveTokens = (tokens: unknown): void => void (this.#tokens = tokens)
  codeVerifier = (): string => this.#verifier
  saveCodeVerifier = (verifier: string): void => void (this.#verifier = verifier)

  invalidateCredentials(scope: string): void {
    if (scope === 'all' || scope === 'client') this.#client = undefined
    if (scope === 'all' || scope === 'tokens') this.#tokens = undefined
  }
}
