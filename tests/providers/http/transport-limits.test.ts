import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { describe, expect, test, vi } from 'vitest'
import { gate } from '../../harness/support.js'
import { loopback } from '../../support/loopback.js'
import { errorOf, EXCHANGES, readStream, requestOf, transportTo } from '../support.js'

function events(response: ServerResponse, text = 'data: {"n":1}\n\ndata: {"n":2}\n\n'): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.write(text)
}

describe.each(EXCHANGES)('over the %s exchange', (kind) => {
  describe('time limits', () => {
    test('no first byte', async () => {
      await using server = await loopback(() => undefined)
      const transport = transportTo(kind, server.url, { firstByteMs: 60 })
      const wanted = {
        code: 'provider_error',
        message: 'No answer from the provider within 60 ms (`timeouts.firstByteMs`).',
        retryable: true,
      }
      expect(await errorOf(transport.send(requestOf()))).toMatchObject(wanted)
      expect((await readStream(transport.stream(requestOf()))).error).toMatchObject(wanted)
    })

    test('a stream that falls silent', async () => {
      await using server = await loopback((response) => events(response))
      const { events: seen, error } = await readStream(
        transportTo(kind, server.url, { idleMs: 700 }).stream(requestOf()),
      )
      expect(seen).toHaveLength(2)
      expect(error).toMatchObject({
        code: 'provider_error',
        message: 'The provider sent nothing for 700 ms (`timeouts.idleMs`) in the middle of its answer.',
        retryable: true,
      })
    })

    test('a whole reply that falls silent', async () => {
      await using server = await loopback((response) => void response.writeHead(200).write('{"n":'))
      const error = await errorOf(transportTo(kind, server.url, { idleMs: 60 }).send(requestOf()))
      expect(error.message).toContain('timeouts.idleMs')
    })

    test('a slow stream stays alive until the limit of the whole attempt', async () => {
      await using server = await loopback((response) => {
        events(response)
        const drip = setInterval(() => response.write(': drip\n\n'), 20)
        response.on('close', () => clearInterval(drip))
      })
      const from = performance.now()
      const transport = transportTo(kind, server.url, { idleMs: 1_500, totalMs: 2_000 })
      const { error } = await readStream(transport.stream(requestOf()))
      expect(performance.now() - from).toBeGreaterThanOrEqual(1_999)
      expect(error).toMatchObject({
        message: 'The request was not done within 2000 ms (`timeouts.totalMs`).',
        retryable: true,
      })
    })

    test('the connection is closed when a limit is reached', async () => {
      let closed: Promise<unknown> = Promise.resolve()
      await using server = await loopback((response) => {
        closed = once(response, 'close')
        events(response)
      })
      await readStream(transportTo(kind, server.url, { idleMs: 30 }).stream(requestOf()))
      await closed
    })

    test('a slow reader does not count as silence of the provider', async () => {
      await using server = await loopback((response) => {
        events(response, 'data: 1\n\n')
        setTimeout(() => response.end('data: 2\n\n'), 10)
      })
      const seen: unknown[] = []
      for await (const chunks of transportTo(kind, server.url, { idleMs: 1_000 }).stream(requestOf())) {
        seen.push(...chunks.map((chunk) => chunk.data))
        await new Promise((resolve) => setTimeout(resolve, 1_500))
      }
      expect(seen).toEqual([1, 2])
    })
  })

  describe('abort', () => {
    const reason = new Error('Enough.')

    test('before the request: nothing is sent', async () => {
      await using server = await loopback((response) => response.end('{}'))
      const transport = transportTo(kind, server.url)
      await expect(transport.send(requestOf(AbortSignal.abort(reason)))).rejects.toBe(reason)
      expect((await readStream(transport.stream(requestOf(AbortSignal.abort(reason))))).error).toBe(reason)
      expect(server.connections.size).toBe(0)
    })

    test('while waiting for the answer', async () => {
      const abort = new AbortController()
      let closed: Promise<unknown> = Promise.resolve()
      await using server = await loopback((response) => {
        closed = once(response, 'close')
        abort.abort(reason)
      })
      await expect(transportTo(kind, server.url).send(requestOf(abort.signal))).rejects.toBe(reason)
      await closed
    })

    test('in the middle of a stream', async () => {
      const abort = new AbortController()
      let closed: Promise<unknown> = Promise.resolve()
      await using server = await loopback((response) => {
        closed = once(response, 'close')
        events(response)
      })
      const seen: unknown[] = []
      const reading = (async () => {
        for await (const chunks of transportTo(kind, server.url).stream(requestOf(abort.signal))) {
          seen.push(...chunks)
          abort.abort(reason)
        }
      })()
      await expect(reading).rejects.toBe(reason)
      expect(seen).toHaveLength(2)
      await closed
    })

    test('in the middle of a stream with unread data', async () => {
      const abort = new AbortController()
      const more = gate()
      const sent = gate()
      await using server = await loopback((response) => {
        events(response)
        void more.opened.then(() => response.end('data: {"n":3}\n\n', () => sent.open()))
      })
      let seen = 0
      const reading = (async () => {
        for await (const chunks of transportTo(kind, server.url).stream(requestOf(abort.signal))) {
          seen += chunks.length
          more.open()
          await sent.opened
          abort.abort(reason)
        }
      })()
      await expect(reading).rejects.toBe(reason)
      expect(seen).toBe(2)
    })

    test('in the middle of an error body', async () => {
      const abort = new AbortController()
      await using server = await loopback((response) => {
        response.writeHead(500).write('Oh', () => setTimeout(() => abort.abort(reason), 20))
      })
      await expect(transportTo(kind, server.url).send(requestOf(abort.signal))).rejects.toBe(reason)
    })

    test('no listener is left on the signal', async () => {
      await using server = await loopback((response, { headers }) => {
        if (headers.accept === 'text/event-stream') events(response)
        response.end(headers.accept === 'text/event-stream' ? '' : '{}')
      })
      const { signal } = new AbortController()
      const added = vi.spyOn(signal, 'addEventListener')
      const removed = vi.spyOn(signal, 'removeEventListener')
      const transport = transportTo(kind, server.url)
      await transport.send(requestOf(signal))
      await readStream(transport.stream(requestOf(signal)))
      expect(added).toHaveBeenCalledTimes(2)
      expect(removed.mock.calls.map(([, listener]) => listener)).toEqual(
        added.mock.calls.map(([, listener]) => listener),
      )
    })
  })
})
