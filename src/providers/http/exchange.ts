import type { RequestGuard } from './request-guard.js'

/** One HTTP exchange over some connection: the least that a transport needs of HTTP. */
export interface Exchange {
  /**
   * Posts the request; resolves when the head of the answer is there. Rejects with `provider_error`, or with the failure
   * of `guard`, through which all waiting goes and which stops the exchange when it fails.
   */
  post(request: PostRequest, guard: RequestGuard): Promise<Answer>
  /** Gives back the connections that are not in use, once nobody else uses them. */
  close(): Promise<void>
}

export interface PostRequest {
  readonly url: URL
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: readonly Uint8Array[]
}

export interface Answer {
  readonly status: number
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  /** The next bytes of the body, decompressed; null at its end. */
  read(): Promise<Uint8Array | null>
}

export function lengthOf(pieces: readonly Uint8Array[]): number {
  return pieces.reduce((length, piece) => length + piece.length, 0)
}
