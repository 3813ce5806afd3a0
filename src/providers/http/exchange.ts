import type { RequestGuard } from './request-guard.js'

/** One HTTP exchange over some connection: the minimum that a transport needs of HTTP. */
export interface Exchange {
  /**
   * Posts the request; resolves when the head of the answer has arrived. Rejects with `provider_error`, or with the
   * failure of `guard`: all waiting goes through the guard, which stops the exchange when it fails.
   */
  post(request: PostRequest, guard: RequestGuard): Promise<HttpResponse>
  /** Opens a connection that the next request to this server takes. Absent if that is not known to be possible. Rejects like `post`. */
  connect?(url: URL, guard: RequestGuard): Promise<void>
  /** Closes idle connections, unless other users of them remain. */
  close(): Promise<void>
}

export interface PostRequest {
  /** Default `POST`. A `GET` has no body. */
  readonly method?: 'GET' | 'POST'
  readonly url: URL
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: readonly Uint8Array[]
}

export interface HttpResponse {
  readonly status: number
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  /** The next bytes of the body, decompressed; null at its end. */
  read(): Promise<Uint8Array | null>
}

/** Headers with one value for each name, in lower case. */
export function flatHeaders(given: Readonly<Record<string, unknown>>): Readonly<Record<string, string>> {
  const flat: Record<string, string> = {}
  for (const [name, value] of Object.entries(given)) {
    if (typeof value === 'string') flat[name.toLowerCase()] = value
    else if (Array.isArray(value)) flat[name.toLowerCase()] = value.join(', ')
  }
  return flat
}
