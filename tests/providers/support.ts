import { Agent } from 'undici'
import { HarnessError } from 'thinharness'
import { Endpoint } from '#providers/http/endpoint.js'
import type { Timeouts } from '#providers/http/options.js'
import { openTransport } from '#providers/http/open-transport.js'
import type { Transport, WireChunk, TransportRequest } from '#providers/http/wire-format.js'

export const EXCHANGES = ['default', 'fetch', 'dispatcher'] as const

/** A transport of each kind that speaks HTTP itself. */
export function transportTo(kind: (typeof EXCHANGES)[number], url: string, timeouts: Timeouts = {}): Transport {
  const made = new Endpoint(url, { authorization: 'Bearer secret-key-1' })
  const endpoint = (): Endpoint => made
  switch (kind) {
    case 'default':
      return openTransport({ over: { kind, endpoint }, timeouts })
    case 'fetch':
      return openTransport({ over: { kind, endpoint, fetch: globalThis.fetch }, timeouts })
    case 'dispatcher':
      return openTransport({ over: { kind, endpoint, dispatcher: new Agent() }, timeouts })
  }
}

export function requestOf(signal = new AbortController().signal, body = '{"n":1}'): TransportRequest {
  return { path: '/answer', headers: { 'x-own': 'yes' }, body: [Buffer.from(body)], signal }
}

/** All events of a stream, and the error that it ended in. */
export async function readStream(
  stream: AsyncIterable<readonly WireChunk[]>,
): Promise<{ events: WireChunk[]; error: unknown }> {
  const events: WireChunk[] = []
  try {
    for await (const chunks of stream) events.push(...chunks)
    return { events, error: null }
  } catch (error) {
    return { events, error }
  }
}

/** The rejection of `work`, which must be a `HarnessError`. */
export async function errorOf(work: Promise<unknown>): Promise<HarnessError> {
  const error = await work.then(
    () => new Error('It did not fail.'),
    (reason: unknown) => reason,
  )
  if (error instanceof HarnessError) return error
  throw error as Error
}
