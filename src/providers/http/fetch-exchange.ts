import { connectionError } from './connection-error.js'
import type { Exchange } from './exchange.js'

/**
 * An exchange over a handed-in `fetch`. It hides its connections: connecting is part of the time to the first byte. A
 * `fetch` or a body that does not heed its signal is left behind when a limit is reached.
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
        failing(() => fetch(url.href, init), url.host, false),
      )
      const reader = (response.body as ReadableStream<Uint8Array> | null)?.getReader()
      guard.onStop(() => {
        controller.abort()
        reader?.cancel().catch(() => undefined)
      })
      return {
        // What a `fetch` hides of a redirect is told as one.
        status: response.type === 'opaqueredirect' ? 302 : response.status,
        headers: Object.fromEntries(response.headers),
        async read() {
          if (reader === undefined) return null
          const { value } = await guard.wait(
            'idleMs',
            failing(() => reader.read(), url.host, true),
          )
          return value ?? null
        },
      }
    },
    close: async () => undefined,
  }
}

async function failing<T>(work: () => Promise<T>, host: string, midway: boolean): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw connectionError(error, host, midway)
  }
}
