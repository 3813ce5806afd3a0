import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { describe, expect, test } from 'vitest'
import { clientCall } from '#providers/http/client-transport.js'
import type { ClientMethod } from '#providers/http/client-transport.js'
import type { Timeouts } from '#providers/http/options.js'
import { openTransport } from '#providers/http/open-transport.js'
import { WHOLE_REPLY } from '#providers/http/wire-format.js'
import type { Transport, TransportRequest } from '#providers/http/wire-format.js'
import type { JsonObject } from '#util/json.js'
import { loopback, rawLoopback } from '../../support/loopback.js'
import { errorOf, readStream } from '../support.js'

interface ClientKind {
  readonly open: (url: string) => object
  readonly method: string
  readonly path: string
}

const CLIENTS: readonly (readonly [string, ClientKind])[] = [
  [
    'OpenAI, responses',
    {
      open: (url) => new OpenAI({ apiKey: 'key', baseURL: url }),
      method: 'responses.create',
      path: '/responses',
    },
  ],
  [
    'OpenAI, chat',
    {
      open: (url) => new OpenAI({ apiKey: 'key', baseURL: url }),
      method: 'chat.completions.create',
      path: '/chat/completions',
    },
  ],
  [
    'Anthropic',
    {
      open: (url) => new Anthropic({ apiKey: 'key', baseURL: url }),
      method: 'messages.create',
      path: '/v1/messages',
    },
  ],
]

function transportOver(call: ClientMethod, timeouts: Timeouts = {}): Transport {
  return openTransport({ over: { kind: 'client', call, headers: { 'x-user': 'me' } }, timeouts })
}

function requestOf(body: JsonObject, signal = new AbortController().signal): TransportRequest {
  return { path: '/ignored', headers: { 'x-own': 'yes' }, body: { model: 'm', max_tokens: 5, ...body }, signal }
}

const sse = (event: object & { type: string }): string => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`
const FIRST = { type: 'message_start', n: 1 }
const SECOND = { type: 'message_stop', n: 2 }

function events(response: ServerResponse, text = sse(FIRST) + sse(SECOND)): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.write(text)
}

describe.each(CLIENTS)('over a handed-in client: %s', (_name, { open, method, path }) => {
  const over = (url: string, timeouts?: Timeouts): Transport => transportOver(clientCall(open(url), method), timeouts)

  test('a whole reply, with the headers of adapter and user', async () => {
    await using server = await loopback((response) => {
      response.writeHead(200, { 'content-type': 'application/json' }).end('{"id":"x","output":[]}')
    })
    expect(await over(server.url).send(requestOf({ a: 1 }))).toMatchObject({ id: 'x' })
    expect(server.received).toMatchObject([{ path, headers: { 'x-own': 'yes', 'x-user': 'me' } }])
    expect(JSON.parse(server.received[0]?.body ?? '')).toEqual({ model: 'm', max_tokens: 5, a: 1 })
  })

  test('a stream, event by event', async () => {
    await using server = await loopback((response) => {
      events(response)
      response.end()
    })
    expect(await readStream(over(server.url).stream(requestOf({ stream: true })))).toEqual({
      events: [
        { event: 'message_start', data: FIRST },
        { event: 'message_stop', data: SECOND },
      ],
      error: null,
    })
  })

  test.each([400, 401, 429, 500, 529])(
    'status %i is reported once, without a retry by the client itself',
    async (status) => {
      await using server = await loopback((response) => {
        response.writeHead(status, { 'content-type': 'application/json', 'retry-after-ms': '30' })
        response.end(JSON.stringify({ type: 'error', error: { type: 'x_error', message: 'Not now.' } }))
      })
      const wanted = {
        code: 'provider_error',
        message: 'Not now. (x_error)',
        status,
        retryable: status >= 429,
        retryAfterMs: 30,
      }
      expect(await errorOf(over(server.url).send(requestOf({})))).toMatchObject(wanted)
      expect((await readStream(over(server.url).stream(requestOf({ stream: true })))).error).toMatchObject(wanted)
      expect(server.received).toHaveLength(2)
    },
  )

  test('PR-24 an error page is an error of the provider with its status', async () => {
    await using server = await loopback((response) => {
      response.writeHead(502, { 'content-type': 'text/html' }).end('<html><title>502 Bad Gateway</title></html>')
    })
    expect(await errorOf(over(server.url).send(requestOf({})))).toMatchObject({
      message: '502 Bad Gateway',
      status: 502,
    })
  })

  test('an error event in the stream is an error of the provider, after the preceding events', async () => {
    const event = { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }
    await using server = await loopback((response) => {
      events(response, sse(FIRST) + sse(event))
      response.end()
    })
    const { events: seen, error } = await readStream(over(server.url).stream(requestOf({ stream: true })))
    expect(seen.map((chunk) => chunk.data)).toEqual([FIRST])
    expect(error).toMatchObject({
      code: 'provider_error',
      message: 'Overloaded (overloaded_error)',
      status: undefined,
      retryable: true,
    })
  })

  test('PR-25 malformed JSON in the stream is an error of the provider', async () => {
    await using server = await loopback((response) => {
      events(response, `${sse(FIRST)}event: message_delta\ndata: {"n": oops\n\n`)
      response.end()
    })
    const { events: seen, error } = await readStream(over(server.url).stream(requestOf({ stream: true })))
    expect(seen).toHaveLength(1)
    expect(error).toMatchObject({ code: 'provider_error', status: undefined, retryable: true })
    expect((error as Error).message).toContain('not JSON')
  })

  test('PR-23 an address without a server is an error of the provider', async () => {
    const server = await loopback((response) => response.end())
    await server[Symbol.asyncDispose]()
    expect(await errorOf(over(server.url).send(requestOf({})))).toMatchObject({
      code: 'provider_error',
      message: 'The connection to the provider failed: no server is listening there (ECONNREFUSED).',
      status: undefined,
      retryable: true,
    })
  })

  test('PR-23 a reset before the first byte is an error of the provider', async () => {
    await using server = await rawLoopback((socket) => socket.once('data', () => socket.resetAndDestroy()))
    expect(await errorOf(over(server.url).send(requestOf({})))).toMatchObject({
      code: 'provider_error',
      status: undefined,
      retryable: true,
    })
  })

  test('PR-23 a reset in the middle of the stream is an error of the provider', async () => {
    await using server = await loopback((response) => {
      events(response)
      setTimeout(() => response.socket?.resetAndDestroy(), 30)
    })
    const { events: seen, error } = await readStream(over(server.url).stream(requestOf({ stream: true })))
    expect(seen).toHaveLength(2)
    expect(error).toMatchObject({ code: 'provider_error', status: undefined, retryable: true })
  })

  test.each<[keyof Timeouts, (response: ServerResponse) => void]>([
    ['firstByteMs', () => undefined],
    ['idleMs', events],
    ['totalMs', events],
  ])('the limit `%s` is enforced by the harness, and stops the client', async (limit, answer) => {
    let closed: Promise<unknown> = Promise.resolve()
    await using server = await loopback((response) => {
      closed = once(response, 'close')
      answer(response)
    })
    const { error } = await readStream(over(server.url, { [limit]: 120 }).stream(requestOf({ stream: true })))
    expect(error).toMatchObject({ code: 'provider_error', retryable: true })
    expect((error as Error).message).toContain(`120 ms (\`timeouts.${limit}\`)`)
    await closed
  })

  test('an abort rejects with its reason, at any moment', async () => {
    const reason = new Error('Enough.')
    const abort = new AbortController()
    let closed: Promise<unknown> = Promise.resolve()
    await using server = await loopback((response) => {
      closed = once(response, 'close')
      events(response)
      setTimeout(() => abort.abort(reason), 30)
    })
    const { events: seen, error } = await readStream(over(server.url).stream(requestOf({ stream: true }, abort.signal)))
    expect([seen.length, error]).toEqual([2, reason])
    await closed
    await expect(over(server.url).send(requestOf({}, abort.signal))).rejects.toBe(reason)
    expect(server.received).toHaveLength(1)
  })
})

describe('a client of any make', () => {
  test('it receives our signal and headers, and may not retry', async () => {
    let given: unknown
    const client = {
      api: {
        secret: 'kept',
        async create(this: { secret: string }, body: unknown, options: unknown) {
          given = [this.secret, body, options]
          return { ok: true }
        },
      },
    }
    const reply = await transportOver(clientCall(client, 'api.create')).send(requestOf({}))
    expect(reply).toEqual({ ok: true })
    expect(given).toEqual([
      'kept',
      { model: 'm', max_tokens: 5 },
      { signal: expect.any(AbortSignal) as AbortSignal, maxRetries: 0, headers: { 'x-own': 'yes', 'x-user': 'me' } },
    ])
    const [, , options] = given as [unknown, unknown, { signal: AbortSignal }]
    expect(options.signal.aborted, 'a request that has ended is not aborted').toBe(false)
  })

  test('it is not called when the run has been aborted', async () => {
    let asked = 0
    const transport = transportOver(async () => ++asked)
    await expect(transport.send(requestOf({}, AbortSignal.abort(new Error('Enough.'))))).rejects.toThrow('Enough.')
    expect(asked).toBe(0)
  })

  test('one without the method is rejected when the model is created', () => {
    expect(() => clientCall({ responses: {} }, 'responses.create')).toThrow(
      'Expected `client` to be a client with a method `responses.create`, got one without it.',
    )
  })

  test('it may ignore a signal: the run does not wait for it', async () => {
    const never = transportOver(() => new Promise(() => undefined), { firstByteMs: 30 })
    expect((await errorOf(never.send(requestOf({})))).message).toContain('timeouts.firstByteMs')
    const silent = transportOver(
      async () => ({ [Symbol.asyncIterator]: () => ({ next: () => new Promise(() => undefined) }) }),
      { idleMs: 30 },
    )
    expect((await readStream(silent.stream(requestOf({})))).error).toMatchObject({ retryable: true })
  })

  test('it may end an aborted stream as if it were complete', async () => {
    const abort = new AbortController()
    const transport = transportOver(async () => {
      async function* stream(): AsyncGenerator {
        yield { type: 'a' }
        abort.abort(new Error('Enough.'))
      }
      return stream()
    })
    const { events: seen, error } = await readStream(transport.stream(requestOf({}, abort.signal)))
    expect([seen.length, (error as Error).message]).toEqual([1, 'Enough.'])
  })

  test('it may return a whole reply in place of a stream', async () => {
    const transport = transportOver(async () => ({ id: 'x' }))
    expect((await readStream(transport.stream(requestOf({})))).events).toEqual([
      { event: WHOLE_REPLY, data: { id: 'x' } },
    ])
  })

  test.each<[string, unknown, object]>([
    [
      'an error of its own',
      new Error('Streaming is required.'),
      { message: 'Streaming is required.', retryable: false },
    ],
    [
      'a dropped body',
      new TypeError('terminated'),
      { message: 'The connection to the provider failed: terminated.', retryable: true },
    ],
    [
      'a mistake of a program',
      new TypeError('x is not a function'),
      { message: 'x is not a function', retryable: false },
    ],
    ['no error at all', 'oops', { message: 'oops', retryable: false }],
    [
      'a status with headers as an object',
      Object.assign(new Error('429 slow'), { status: 429, headers: { 'Retry-After': '2' }, error: undefined }),
      { message: 'slow', status: 429, retryAfterMs: 2000, retryable: true },
    ],
  ])('it may throw %s', async (_name, thrown, wanted) => {
    const transport = transportOver(() => {
      throw thrown
    })
    expect(await errorOf(transport.send(requestOf({})))).toMatchObject({ code: 'provider_error', ...wanted })
  })
})
