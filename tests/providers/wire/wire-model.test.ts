import { HarnessError } from 'thinharness'
import type { TurnOptions } from 'thinharness'
import { Agent } from 'undici'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { wireModel } from '#providers/wire/wire-model.js'
import type { WireModelSpec } from '#providers/wire/wire-model.js'
import { parseModelOptions, PROVIDER_OPTIONS } from '#providers/wire/options.js'
import type { ProviderOptions } from '#providers/http/options.js'
import { partial } from '#util/validate.js'
import { loopback } from '../../support/loopback.js'
import { constants, echoFormat, user } from '../echo-format.js'
import { errorOf } from '../support.js'

beforeEach(() => {
  for (const name of ['ECHO_KEY', 'ECHO_BASE_URL']) vi.stubEnv(name, '')
})
afterEach(() => void vi.unstubAllEnvs())

const OPTIONS = partial<ProviderOptions>(PROVIDER_OPTIONS)

function specOf(options: ProviderOptions, more: Partial<WireModelSpec> = {}): WireModelSpec {
  return {
    provider: 'echo',
    id: 'm',
    options: parseModelOptions(OPTIONS, options, 'echo'),
    format: echoFormat,
    headers: { 'Echo-Version': '1' },
    defaultBaseUrl: 'http://127.0.0.1:1/v1',
    baseUrlVariable: 'ECHO_BASE_URL',
    apiKeyVariable: 'ECHO_KEY',
    auth: (key) => ({ 'X-Api-Key': key }),
    clientCall: 'echo.create',
    capabilities: { supportsTools: true },
    ...more,
  }
}

const turnOptions = (): TurnOptions => ({ generation: 0, signal: new AbortController().signal })

function ask(options: ProviderOptions, more?: Partial<WireModelSpec>): Promise<unknown> {
  return wireModel(specOf(options, more))
    .openSession()
    .turn([user('Hi')], constants(), turnOptions())
}

const ANSWER = JSON.stringify({ id: 'r', text: 'Hi.' })

describe('the key', () => {
  test('it is the option, then the variable', async () => {
    await using server = await loopback((response) => response.end(ANSWER))
    const baseUrl = server.url
    vi.stubEnv('ECHO_KEY', ' first\n')
    await ask({ baseUrl })
    await ask({ baseUrl, apiKey: 'given' })
    expect(server.received.map((request) => request.headers['x-api-key'])).toEqual(['first', 'given'])
  })

  test('it is looked up when a request is sent, not before', async () => {
    await using server = await loopback((response) => response.end(ANSWER))
    const session = wireModel(specOf({ baseUrl: server.url })).openSession()
    const error = await errorOf(session.turn([user('Hi')], constants(), turnOptions()))
    expect(error).toMatchObject({ code: 'missing_key', retryable: false })
    expect(error.message).toBe(
      'There is no API key for `echo`: set the environment variable `ECHO_KEY`, or give `apiKey`.',
    )
    vi.stubEnv('ECHO_KEY', 'now')
    await session.turn([user('Hi')], constants(), turnOptions())
    expect(server.received.map((request) => request.headers['x-api-key'])).toEqual(['now'])
  })

  test('it may change between two requests', async () => {
    await using server = await loopback((response) => response.end(ANSWER))
    const session = wireModel(specOf({ baseUrl: server.url })).openSession()
    for (const key of ['old', 'old', 'new']) {
      vi.stubEnv('ECHO_KEY', key)
      await session.turn([user('Hi')], constants(), turnOptions())
    }
    expect(server.received.map((request) => request.headers['x-api-key'])).toEqual(['old', 'old', 'new'])
  })

  test('it is invalid if it has a line break, and is not shown', async () => {
    vi.stubEnv('ECHO_KEY', 'two\nlines')
    expect((await errorOf(ask({}))).message).toBe('Expected `ECHO_KEY` to hold an API key, got something else.')
  })

  test('it may be absent if it is optional, or in a header of the user’s', async () => {
    await using server = await loopback((response) => response.end(ANSWER))
    await ask({ baseUrl: server.url }, { keyOptional: true })
    await ask({ baseUrl: server.url, headers: { Authorization: 'Bearer mine' } })
    expect(server.received.map(({ headers }) => [headers['x-api-key'], headers.authorization])).toEqual([
      [undefined, undefined],
      [undefined, 'Bearer mine'],
    ])
  })
})

describe('the base URL', () => {
  test.each(['/v1', '/v1/', '/v1///'])('it has its trailing slashes stripped: %s', async (path) => {
    await using server = await loopback((response) => response.end(ANSWER))
    await ask({ baseUrl: server.url + path, apiKey: 'k' })
    expect(server.received[0]?.path).toBe('/v1/echo')
  })

  test('it is the option, then the variable, then the default', async () => {
    await using server = await loopback((response) => response.end(ANSWER))
    vi.stubEnv('ECHO_BASE_URL', 'http://127.0.0.1:1/nowhere')
    await ask({ baseUrl: `${server.url}/option`, apiKey: 'k' })
    vi.stubEnv('ECHO_BASE_URL', `${server.url}/variable/`)
    await ask({ apiKey: 'k' })
    vi.stubEnv('ECHO_BASE_URL', '')
    await ask({ apiKey: 'k' }, { defaultBaseUrl: `${server.url}/default` })
    expect(server.received.map((request) => request.path)).toEqual(['/option/echo', '/variable/echo', '/default/echo'])
  })

  test('one from the environment is checked when it is used', async () => {
    vi.stubEnv('ECHO_BASE_URL', 'api.example.com')
    expect(await errorOf(ask({ apiKey: 'k' }))).toMatchObject({
      code: 'invalid_options',
      message: 'Expected `ECHO_BASE_URL` to be a URL with `http:` or `https:`, got `api.example.com`.',
    })
  })

  test('it is required if there is no default', () => {
    const { defaultBaseUrl, baseUrlVariable, ...spec } = specOf({})
    expect([defaultBaseUrl, baseUrlVariable]).toEqual(['http://127.0.0.1:1/v1', 'ECHO_BASE_URL'])
    expect(() => wireModel({ ...spec, defaultBaseUrl: null })).toThrow(
      'Expected `baseUrl` to be given: `echo` has no default.',
    )
  })
})

test('headers of the user win over the adapter’s and the key’s, whatever their case', async () => {
  await using server = await loopback((response) => response.end(ANSWER))
  await ask({ baseUrl: server.url, apiKey: 'k', headers: { 'ECHO-version': '2', 'x-api-KEY': 'mine', 'X-New': 'n' } })
  expect(server.received[0]?.headers).toMatchObject({ 'echo-version': '2', 'x-api-key': 'mine', 'x-new': 'n' })
})

describe('transports', () => {
  test('a supplied fetch', async () => {
    const asked: unknown[] = []
    let signal: AbortSignal | null | undefined
    const fetch: typeof globalThis.fetch = async (url, init) => {
      asked.push(url)
      signal = init?.signal
      return new Response(ANSWER)
    }
    expect(await ask({ fetch, apiKey: 'k', baseUrl: 'https://echo.test/v1' })).toMatchObject({
      entry: { parts: [{ text: 'Hi.' }] },
    })
    expect(asked).toEqual(['https://echo.test/v1/echo'])
    // A request that has ended is not aborted.
    expect(signal?.aborted).toBe(false)
  })

  test('a supplied fetch whose body stalls is aborted by its signal', async () => {
    let signal: AbortSignal | null | undefined
    const fetch: typeof globalThis.fetch = async (_url, init) => {
      signal = init?.signal
      return new Response(new ReadableStream())
    }
    const options = { fetch, apiKey: 'k', timeouts: { idleMs: 20 }, maxRetries: 0 }
    expect((await errorOf(ask(options))).message).toContain('timeouts.idleMs')
    expect(signal?.aborted).toBe(true)
  })

  test('a supplied dispatcher', async () => {
    await using server = await loopback((response) => response.end(ANSWER))
    const dispatcher = new Agent()
    const dispatched = vi.spyOn(dispatcher, 'dispatch')
    expect(await ask({ dispatcher, apiKey: 'k', baseUrl: server.url })).toMatchObject({
      entry: { parts: [{ text: 'Hi.' }] },
    })
    expect(dispatched).toHaveBeenCalledOnce()
    await dispatcher.close()
  })

  test('a supplied client, which has its own key', async () => {
    let headers: unknown
    const client = {
      echo: {
        async create(_body: unknown, options: { headers: unknown }) {
          headers = options.headers
          return { id: 'r', text: 'Hi.' }
        },
      },
    }
    expect(await ask({ client, headers: { 'X-New': 'n' } })).toMatchObject({
      entry: { parts: [{ text: 'Hi.' }] },
      responseId: 'r',
    })
    expect(headers).toEqual({ 'echo-version': '1', 'x-new': 'n' })
  })
})

describe('retries', () => {
  test.each<[ProviderOptions, number]>([
    [{}, 3],
    [{ maxRetries: 0 }, 1],
    [{ maxRetries: 4 }, 5],
  ])('with %j a request is sent %i times at most', async (options, times) => {
    await using server = await loopback((response) => response.writeHead(503, { 'retry-after-ms': '1' }).end('Down.'))
    const error = await errorOf(ask({ ...options, baseUrl: server.url, apiKey: 'k' }))
    expect([error.message, error.status, server.received.length]).toEqual(['Down.', 503, times])
  })

  test('a retried request has the same bytes', async () => {
    let count = 0
    await using server = await loopback((response) => {
      count += 1
      if (count === 1) response.writeHead(429, { 'retry-after-ms': '1' }).end()
      else response.end(ANSWER)
    })
    await ask({ baseUrl: server.url, apiKey: 'k' })
    expect(server.received).toHaveLength(2)
    expect(server.received[1]?.body).toBe(server.received[0]?.body)
  })
})

test('capabilities are the known ones, overridden by the user’s', () => {
  const known = { supportsTools: true, reasoningEfforts: ['low'] } as const
  const model = wireModel(specOf({ capabilities: { reasoningEfforts: [] } }, { capabilities: known }))
  expect(model).toMatchObject({ provider: 'echo', id: 'm' })
  expect(model.capabilities).toEqual({ supportsTools: true, reasoningEfforts: [] })
})

test('a closed model opens no session', async () => {
  const model = wireModel(specOf({}))
  await model.close?.()
  expect(() => model.openSession()).toThrow(HarnessError)
  expect(() => model.openSession()).toThrow('The model `m` is closed.')
})

describe('invalid options', () => {
  const client = { echo: { create: () => undefined } }

  test.each<[string, unknown, string]>([
    ['no object', 7, 'Expected the options of `echo` to be an object, got `7`.'],
    ['an unknown key', { temprature: 1 }, 'Unknown option of `echo`: `temprature`. Did you mean `temperature`?'],
    ['an empty key', { apiKey: '' }, 'Expected `apiKey` of `echo` to be a key, got an empty string.'],
    ['a key in two lines', { apiKey: 'a\nb' }, 'Expected `apiKey` of `echo` to be a key, got something else.'],
    ['a key of another type', { apiKey: 7 }, 'Expected `apiKey` of `echo` to be a key, got something else.'],
    [
      'no URL',
      { baseUrl: 'localhost:80/v1' },
      'Expected `baseUrl` of `echo` to be a URL with `http:` or `https:`, got `localhost:80/v1`.',
    ],
    [
      'a URL of a file',
      { baseUrl: 'file:///x' },
      'Expected `baseUrl` of `echo` to be a URL with `http:` or `https:`, got `file:///x`.',
    ],
    [
      'a URL with a password',
      { baseUrl: 'http://me:secret@host/' },
      'Expected `baseUrl` of `echo` to be a URL without a password, got something else.',
    ],
    [
      'a header that is no text',
      { headers: { a: 1 } },
      'Expected `headers.a` of `echo` to be the value of a header, got something else.',
    ],
    [
      'a header in two lines',
      { headers: { a: 'x\r\ny: z' } },
      'Expected `headers.a` of `echo` to be the value of a header, got something else.',
    ],
    [
      'a header without a name',
      { headers: { 'a b': '' } },
      'Expected `headers` of `echo` to be an object with names of headers as keys, got `a b`.',
    ],
    ['no fetch', { fetch: {} }, 'Expected `fetch` of `echo` to be a function, got an object.'],
    ['no dispatcher', { dispatcher: {} }, 'Expected `dispatcher` of `echo` to be an undici dispatcher, got an object.'],
    ['no client', { client: 'OpenAI' }, 'Expected `client` of `echo` to be a client, got `OpenAI`.'],
    [
      'another client',
      { client: {} },
      'Expected `client` to be a client with a method `echo.create`, got one without it.',
    ],
    ['a client and a key', { client, apiKey: 'k' }, 'Expected `client` without `apiKey`: the client decides that.'],
    ['a client and a fetch', { client, fetch }, 'Expected `client` without `fetch`: the client decides that.'],
    [
      'a time of none',
      { timeouts: { idleMs: 0 } },
      'Expected `timeouts.idleMs` of `echo` to be a number from 1 to 2147483647 or `null`, got `0`.',
    ],
    ['an unknown time', { timeouts: { idle: 5 } }, 'Unknown option of `echo`: `timeouts.idle`. Did you mean `idleMs`?'],
    ['half a retry', { maxRetries: 0.5 }, 'Expected `maxRetries` of `echo` to be a whole number from 0 up, got `0.5`.'],
    [
      'no tokens',
      { maxOutputTokens: 0 },
      'Expected `maxOutputTokens` of `echo` to be a whole number from 1 up, got `0`.',
    ],
    [
      'a temperature that is none',
      { temperature: NaN },
      'Expected `temperature` of `echo` to be a number from 0 up, got `NaN`.',
    ],
    [
      'an unknown effort',
      { reasoningEffort: 'huge' },
      'Expected `reasoningEffort` of `echo` to be one of `none`, `minimal`, `low`, `medium`, `high`, `xhigh`, `max`, got `huge`. Did you mean `high`?',
    ],
    [
      'a cache of words',
      { promptCache: 'yes' },
      'Expected `promptCache` of `echo` to be a boolean or an object, got `yes`.',
    ],
    [
      'a cache for a day',
      { promptCache: { ttl: '1d' } },
      'Expected `promptCache.ttl` of `echo` to be one of `5m`, `1h`, got `1d`. Did you mean `1h`?',
    ],
    ['an unknown capability', { capabilities: { tools: true } }, 'Unknown option of `echo`: `capabilities.tools`.'],
    [
      'inputs of another kind',
      { capabilities: { inputs: ['video'] } },
      'Expected `capabilities.inputs[0]` of `echo` to be one of `image`, `file`, `audio`, got `video`.',
    ],
    ['a body that is a list', { extraBody: [] }, 'Expected `extraBody` of `echo` to be an object, got an empty list.'],
  ])('they are rejected at once: %s', (_name, options, message) => {
    expect(() => wireModel(specOf(options as ProviderOptions))).toThrow(
      expect.objectContaining({ code: 'invalid_options', message }) as Error,
    )
  })

  test('an invalid id', () => {
    expect(() => wireModel(specOf({}, { id: ' ' }))).toThrow(
      'Expected the id of a model, such as `gpt-5.5`, got an empty one.',
    )
  })

  test('an effort that the model does not take', () => {
    const make = (reasoningEfforts: readonly ['low'] | readonly []) => () =>
      wireModel(specOf({ reasoningEffort: 'high' }, { capabilities: { reasoningEfforts } }))
    expect(make(['low'])).toThrow('Expected `reasoningEffort` of `m` to be one of `low`, got `high`.')
    expect(make([])).toThrow('Expected no `reasoningEffort` for `m`, which is not a reasoning model, got `high`.')
  })

  test('a value of undefined counts as absent', () => {
    const options = { apiKey: undefined, fetch: undefined, timeouts: { idleMs: undefined }, maxRetries: undefined }
    expect(() => wireModel(specOf(options as unknown as ProviderOptions))).not.toThrow()
  })

  test('CO-06 valid options are accepted, with the window of the model', () => {
    const options = {
      maxRetries: 0,
      promptCache: { ttl: '1h', key: 'k' },
      timeouts: { totalMs: null, idleMs: 5 },
      capabilities: { inputs: ['image'], reasoningEfforts: [], contextTokens: 5 },
      extraBody: { a: 1 },
      temperature: 0,
    } as const
    expect(() => wireModel(specOf(options as ProviderOptions))).not.toThrow()
  })
})
