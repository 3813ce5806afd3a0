import { connectionError } from './connection-error.js'
import type { Exchange } from './exchange.js'

/**
 * An exchange over the caller's `fetch`. It hides its connections, so connecting is part of the time to the first byte.
 * A `fetch` or a body that ignores its signal is abandoned when a limit is reached.
 */
export function fetchExchange(fetch: typeof globalThis.fetch): Exchange {
  return {
    async post({ url, headers, body }, guard) {
      const controller = new AbortController()
      guard.onStop(() => controller.abort())
      const init: RequestInit = {
        method: 'POST',
        headers: { ...headers },
        body: Buffer.concat(body),
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
