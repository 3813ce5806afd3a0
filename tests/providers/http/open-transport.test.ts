import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'
import { Harness, HarnessError } from 'thinharness'
import { openaiChat } from 'thinharness/providers'
import { describe, expect, test } from 'vitest'
import { WHOLE_REPLY } from '#providers/http/wire-format.js'
import { loopback, rawLoopback } from '../../support/loopback.js'
import { errorOf, EXCHANGES, readStream, requestOf, transportTo } from '../support.js'

const EVENTS = 'data: {"n":1}\n\ndata: {"n":2}\n\n'

function events(response: ServerResponse, text = EVENTS): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.write(text)
}

describe.each(EXCHANGES)('over the %s exchange', (kind) => {
  test('a body is sent in one piece, with the headers of the adapter and the endpoint', async () => {
    await using server = await loopback((response) => response.end('{"ok":true}'))
    const body = [Buffer.from('{"a":'), Buffer.from('[1,2]'), Buffer.from('}')]
    const reply = await transportTo(kind, `${server.url}/v1/?api-version=7`).send({ ...requestOf(), body })
    expect(reply).toEqual({ ok: true })
    expect(server.received).toMatchObject([
      {
        method: 'POST',
        path: '/v1/answer?api-version=7',
        body: '{"a":[1,2]}',
        headers: {
          'content-type': 'application/json',
          'content-length': '11',
          'x-own': 'yes',
          'user-agent': 'thinharness',
          authorization: 'Bearer secret-key-1',
        },
      },
    ])
  })

  test('a stream yields its events as they arrive', async () => {
    await using server = await loopback((response) => {
      events(response)
      response.end('data: [DONE]\n\n')
    })
    expect(await readStream(transportTo(kind, server.url).stream(requestOf()))).toEqual({
      events: [
        { event: null, data: { n: 1 } },
        { event: null, data: { n: 2 } },
        { event: null, data: null },
      ],
      error: null,
    })
    expect(server.received[0]?.headers.accept).toBe('text/event-stream')
  })

  test('a last event without its blank line is emitted too', async () => {
    await using server = await loopback((response) => {
      events(response)
      response.end('data: [DONE]')
    })
    expect((await readStream(transportTo(kind, server.url).stream(requestOf()))).events).toHaveLength(3)
  })

  test('the first events are emitted before the last ones are sent', async () => {
    let finish = (): void => undefined
    await using server = await loopback((response) => {
      events(response, 'data: 1\n\n')
      finish = () => void response.end('data: 2\n\n')
    })
    const seen: unknown[] = []
    for await (const chunks of transportTo(kind, server.url).stream(requestOf())) {
      seen.push(...chunks.map((chunk) => chunk.data))
      if (seen.length === 1) finish()
    }
    expect(seen).toEqual([1, 2])
  })

  test.each([400, 401, 402, 403, 404, 408, 413, 422, 429, 500, 502, 503, 529])(
    'PR-24 an error status is an error of the provider, streamed or not: %i',
    async (status) => {
      const body = JSON.stringify({ error: { message: 'Not now.' } })
      await using server = await loopback((response) => {
        response.writeHead(status, { 'content-type': 'application/json', 'retry-after': '7' }).end(body)
      })
      const transport = transportTo(kind, server.url)
      const retryable = status === 408 || status === 429 || status >= 500
      const wanted = { code: 'provider_error', message: 'Not now.', status, retryable, retryAfterMs: 7000 }
      expect(await errorOf(transport.send(requestOf()))).toMatchObject(wanted)
      expect(await readStream(transport.stream(requestOf()))).toMatchObject({ events: [], error: wanted })
    },
  )

  test('PR-24 an HTML error page is reported by its title', async () => {
    await using server = await loopback((response) => {
      response.writeHead(502, { 'content-type': 'text/html' }).end('<html><title>502 Bad Gateway</title></html>')
    })
    expect(await errorOf(transportTo(kind, server.url).send(requestOf()))).toMatchObject({
      message: '502 Bad Gateway',
      status: 502,
      retryable: true,
    })
  })

  test('PR-24 a key that the provider repeats is not shown', async () => {
    await using server = await loopback((response) => response.writeHead(401).end('Unknown key secret-key-1.'))
    expect((await errorOf(transportTo(kind, server.url).send(requestOf()))).message).toBe('Unknown key ***.')
  })

  test('PR-24 an error body without an end is not waited for', async () => {
    await using server = await loopback((response) => {
      response.writeHead(500)
      const pour = (): void => {
        while (!response.destroyed && response.write('x'.repeat(16_384)));
      }
      response.on('drain', pour)
      pour()
    })
    const error = await errorOf(transportTo(kind, server.url).send(requestOf()))
    expect(error).toMatchObject({ status: 500, message: `${'x'.repeat(999)}…` })
  })

  test('PR-24 an error body that stalls is reported as far as it arrived', async () => {
    await using server = await loopback((response) => void response.writeHead(503).write('Overlo'))
    const error = await errorOf(transportTo(kind, server.url, { idleMs: 50 }).send(requestOf()))
    expect(error).toMatchObject({ status: 503, message: 'Overlo', retryable: true })
  })

  test('a redirect is not followed', async () => {
    await using other = await loopback((response) => response.end('{}'))
    await using server = await loopback((response) => response.writeHead(308, { location: `${other.url}/x` }).end())
    expect(await errorOf(transportTo(kind, server.url).send(requestOf()))).toMatchObject({
      message: `The provider redirects (status 308) to ${other.url}/x. A request is not sent on: set \`baseUrl\` to the final address.`,
      status: 308,
      retryable: false,
    })
    expect(other.received).toEqual([])
  })

  test('PR-23 a header that cannot be sent is an error of the provider without a status', async () => {
    await using server = await loopback((response) => response.end('{}'))
    const error = await errorOf(transportTo(kind, server.url).send({ ...requestOf(), headers: { 'x-own': 'a\nb' } }))
    expect([error.code, server.received]).toEqual(['provider_error', []])
  })

  test('PR-23 an address without a server is an error of the provider without a status', async () => {
    const server = await loopback((response) => response.end())
    await server[Symbol.asyncDispose]()
    const error = await errorOf(transportTo(kind, server.url).send(requestOf()))
    expect(error).toMatchObject({ code: 'provider_error', status: undefined, retryable: true })
    expect(error.message).toBe(
      `The connection to ${new URL(server.url).host} failed: no server is listening there (ECONNREFUSED).`,
    )
  })

  test('PR-23 a reset before the first byte is an error of the provider without a status', async () => {
    await using server = await rawLoopback((socket) => socket.once('data', () => socket.resetAndDestroy()))
    const error = await errorOf(transportTo(kind, server.url).send(requestOf()))
    expect(error).toMatchObject({ code: 'provider_error', status: undefined, retryable: true, retryAfterMs: undefined })
    expect(error.message).toContain('the server closed it')
  })

  test('PR-23 a reset in the middle of a stream is an error, after the events that arrived before', async () => {
    await using server = await loopback((response) => {
      events(response)
      setImmediate(() => setTimeout(() => response.socket?.resetAndDestroy(), 20))
    })
    const { events: seen, error } = await readStream(transportTo(kind, server.url).stream(requestOf()))
    expect(seen.map((event) => event.data)).toEqual([{ n: 1 }, { n: 2 }])
    expect(error).toMatchObject({ code: 'provider_error', status: undefined, retryable: true })
    expect((error as Error).message).toContain('in the middle of the answer: the server closed it')
  })

  test('PR-23 an answer shorter than its declared length is an error of the provider', async () => {
    await using server = await loopback((response) => {
      response.writeHead(200, { 'content-length': '100' })
      response.write('{"n":', () => response.socket?.end())
    })
    const error = await errorOf(transportTo(kind, server.url).send(requestOf()))
    expect(error).toMatchObject({ code: 'provider_error', status: undefined, retryable: true })
  })

  test.each([
    [
      'malformed JSON',
      '{"n": oops}',
      true,
      'The provider\'s answer is not JSON (content type `application/json`): {"n": oops}',
    ],
    ['nothing', '', true, "The provider's answer is empty."],
    [
      'a page',
      '<html><title>Welcome</title></html>',
      false,
      "The provider's answer is not JSON (content type `application/json`): Welcome Is `baseUrl` right?",
    ],
  ])('PR-25 an answer that is not JSON is an error of the provider: %s', async (_name, body, retryable, message) => {
    await using server = await loopback((response) => {
      response.writeHead(200, { 'content-type': 'application/json' }).end(body)
    })
    const error = await errorOf(transportTo(kind, server.url).send(requestOf()))
    expect(error).toMatchObject({ code: 'provider_error', message, status: undefined, retryable })
  })

  test('PR-25 malformed JSON in a stream is an error after the preceding events', async () => {
    await using server = await loopback((response) => {
      events(response)
      response.end('data: {"n":\n\ndata: {"n":4}\n\n')
    })
    const { events: seen, error } = await readStream(transportTo(kind, server.url).stream(requestOf()))
    expect(seen.map((event) => event.data)).toEqual([{ n: 1 }, { n: 2 }])
    expect(error).toMatchObject({ code: 'provider_error', retryable: true })
  })

  test('a whole reply in place of a stream is returned as one', async () => {
    await using server = await loopback((response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).end(' {"id":"x"}')
    })
    expect(await readStream(transportTo(kind, server.url).stream(requestOf()))).toEqual({
      events: [{ event: WHOLE_REPLY, data: { id: 'x' } }],
      error: null,
    })
  })

  test.each([
    ['gzip', gzipSync],
    ['br', brotliCompressSync],
    ['deflate', deflateSync],
  ])('an answer with %s is read, streamed or not', async (encoding, compress) => {
    await using server = await loopback((response, { headers }) => {
      const isStream = headers.accept === 'text/event-stream'
      response.writeHead(200, { 'content-encoding': encoding }).end(compress(isStream ? EVENTS : '{"n":1}'))
    })
    const transport = transportTo(kind, server.url)
    expect(await transport.send(requestOf())).toEqual({ n: 1 })
    const { events: seen, error } = await readStream(transport.stream(requestOf()))
    expect([seen.length, error]).toEqual([2, null])
  })

  test('a truncated compressed answer is an error', async () => {
    await using server = await loopback((response) => {
      const bytes = gzipSync(JSON.stringify({ text: Array.from({ length: 1000 }, (_, n) => n) }))
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(bytes.subarray(0, bytes.length - 20))
    })
    const error = await errorOf(transportTo(kind, server.url).send(requestOf()))
    expect(error).toMatchObject({ code: 'provider_error', retryable: true })
  })

  test('a reader that stops early closes the connection', async () => {
    let closed: Promise<unknown> = Promise.resolve()
    await using server = await loopback((response) => {
      closed = once(response, 'close')
      events(response)
    })
    for await (const chunks of transportTo(kind, server.url).stream(requestOf())) {
      expect(chunks.length).toBeGreaterThan(0)
      break
    }
    await closed
  })

  test('a stream that stays open after [DONE] is complete', async () => {
    await using server = await loopback((response) => events(response, `${EVENTS}data: [DONE]\n\n`))
    const from = performance.now()
    const { events: seen, error } = await readStream(transportTo(kind, server.url).stream(requestOf()))
    expect([seen.length, error]).toEqual([3, null])
    expect(performance.now() - from).toBeLessThan(30_000)
  })

  test('a whole reply of more than 64 MiB is rejected', async () => {
    await using server = await loopback((response) => {
      const piece = Buffer.alloc(1024 * 1024, ' ')
      let left = 66
      const pour = (): void => {
        while (left > 0 && !response.destroyed) {
          left -= 1
          if (!response.write(piece)) return
        }
        response.end()
      }
      response.on('drain', pour)
      pour()
    })
    const error = await errorOf(transportTo(kind, server.url).send(requestOf()))
    expect(error.message).toBe("The provider's answer has more than 67108864 bytes.")
  })
})

test('an error of the endpoint is thrown as it is, before any request', async () => {
  const error = new HarnessError('missing_key', 'No key.')
  const { openTransport } = await import('#providers/http/open-transport.js')
  const transport = openTransport({
    over: {
      kind: 'default',
      endpoint() {
        throw error
      },
    },
  })
  await expect(transport.send(requestOf())).rejects.toBe(error)
})

test('a `fetch` of the caller reads the body of a request as its text', async () => {
  const bodies: unknown[] = []
  const fetch = async (_url: unknown, init?: RequestInit): Promise<Response> => {
    bodies.push(JSON.parse(init?.body as string))
    return Response.json({ choices: [{ message: { role: 'assistant', content: 'Ja.' }, finish_reason: 'stop' }] })
  }
  const model = openaiChat('gpt-4.1', { apiKey: 'any', fetch })
  expect((await new Harness({ model, builtinTools: [] }).run('Größer?')).text).toBe('Ja.')
  expect(bodies).toMatchObject([{ model: 'gpt-4.1', messages: [{ role: 'user', content: 'Größer?' }] }])
})
