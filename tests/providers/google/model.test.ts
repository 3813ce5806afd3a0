import { afterEach, describe, expect, test, vi } from 'vitest'
import { defineTool, Harness } from 'thinharness'
import type { HarnessError, Model } from 'thinharness'
import { fallback } from 'thinharness/models'
import { gemini, inferModel } from 'thinharness/providers'
import type { GeminiOptions } from 'thinharness/providers'
import { priceOf } from '#run/money/find-price.js'
import { errorOf } from '../support.js'
import { event, user } from './support.js'

const CONSTANTS = { instructions: 'Be brief.', tools: [], structuredOutput: null, settings: {} }

interface Sent {
  readonly url: string
  readonly headers: Headers
  readonly body: unknown
}

/** A `fetch` that notes requests and gives one answer. */
function answering(answer: () => Response): { fetch: typeof globalThis.fetch; sent: Sent[] } {
  const sent: Sent[] = []
  const fetch: typeof globalThis.fetch = async (input, init) => {
    const request = new Request(input, init)
    sent.push({ url: request.url, headers: request.headers, body: await request.json() })
    return answer()
  }
  return { fetch, sent }
}

const hello = (): Response => Response.json(event([{ text: 'Hello.' }], 'STOP'))
const options = { generation: 0, signal: new AbortController().signal }

function ask(model: Model, onDelta?: () => void): ReturnType<ReturnType<Model['openSession']>['turn']> {
  return model.openSession().turn([user('Hi')], CONSTANTS, { ...options, ...(onDelta && { onDelta }) })
}

afterEach(() => {
  vi.unstubAllEnvs()
})

describe('addresses', () => {
  test('a whole reply and a stream have paths of their own, and the key is in a header', async () => {
    const { fetch, sent } = answering(hello)
    await ask(gemini('gemini-2.5-flash-lite', { apiKey: 'key-1', fetch }))
    const stream = answering(() => new Response(`data: ${JSON.stringify(event([{ text: 'Hello.' }], 'STOP'))}\r\n\r\n`))
    await ask(gemini('gemini-3-pro', { apiKey: 'key-1', fetch: stream.fetch }), () => undefined)
    const base = 'https://generativelanguage.googleapis.com/v1beta/models'
    expect(sent[0]?.url).toBe(`${base}/gemini-2.5-flash-lite:generateContent`)
    expect(stream.sent[0]?.url).toBe(`${base}/gemini-3-pro:streamGenerateContent?alt=sse`)
    expect(sent[0]?.headers.get('x-goog-api-key')).toBe('key-1')
  })

  test('a model that thinks is streamed although nobody reads the stream', async () => {
    const { fetch, sent } = answering(hello)
    await ask(gemini('gemini-3-pro', { apiKey: 'k', fetch }))
    expect(sent[0]?.url).toContain(':streamGenerateContent')
  })

  test('`google:` reads the environment; ids of other collections are kept', async () => {
    vi.stubEnv('GEMINI_API_KEY', 'key-2')
    vi.stubEnv('GEMINI_BASE_URL', 'https://gateway.example/v1beta?tenant=a')
    const { fetch, sent } = answering(hello)
    await ask(gemini('tunedModels/mine', { fetch, reasoningEffort: 'low' }), () => undefined)
    expect(sent[0]?.url).toBe('https://gateway.example/v1beta/tunedModels/mine:streamGenerateContent?tenant=a&alt=sse')
    expect(sent[0]?.headers.get('x-goog-api-key')).toBe('key-2')
    const model = await inferModel('google:gemini-3-pro')
    expect(model).toMatchObject({ provider: 'google', id: 'gemini-3-pro' })
    expect(fallback(['google:gemini-3-pro', 'openai:gpt-5.5']).candidates).toMatchObject([{ provider: 'google' }, {}])
  })

  test('without a key nothing is sent', async () => {
    vi.stubEnv('GEMINI_API_KEY', '')
    const error = await errorOf(ask(gemini('gemini-3-pro', { fetch: answering(hello).fetch })))
    expect(error).toMatchObject({ code: 'missing_key' })
    expect(error.message).toContain('`GEMINI_API_KEY`')
  })

  test('an official client is refused', () => {
    const given: object = { client: {} }
    expect(() => gemini('gemini-3-pro', given as GeminiOptions)).toThrow(/without `client`/)
  })

  test("what Google signed stays with Google: another host's parts are left out", async () => {
    const signed = { text: 'Hello.', thoughtSignature: 's' }
    const { fetch } = answering(() => Response.json(event([signed], 'STOP')))
    const model = gemini('gemini-2.0-flash', { apiKey: 'k', fetch, baseUrl: 'https://gateway.example/v1beta' })
    const { entry } = await ask(model)
    expect(entry.parts[0]?.native?.provider).toBe('google@gateway.example')
    const second = answering(hello)
    const stamped = { ...entry, id: 'e2', at: '2026-01-01T00:00:00.000Z' }
    const session = gemini('gemini-2.0-flash', { apiKey: 'k', fetch: second.fetch }).openSession()
    await session.turn([user('Hi'), stamped, user('And?')], CONSTANTS, options)
    expect(second.sent[0]?.body).toMatchObject({ contents: [{}, { parts: [{ text: 'Hello.' }] }, {}] })
    expect(JSON.stringify(second.sent[0]?.body)).not.toContain('thoughtSignature')
  })
})

describe('tokens', () => {
  test('they are counted by the API, with instructions and tools', async () => {
    const { fetch, sent } = answering(() => Response.json({ totalTokens: 12 }))
    const model = gemini('gemini-3-pro', { apiKey: 'k', fetch })
    expect(await model.countTokens?.([user('Hi')], CONSTANTS, options)).toBe(12)
    expect(sent[0]?.url).toMatch(/models\/gemini-3-pro:countTokens$/)
    expect(sent[0]?.body).toMatchObject({
      generateContentRequest: {
        model: 'models/gemini-3-pro',
        systemInstruction: { parts: [{ text: 'Be brief.' }] },
        contents: [{ role: 'user', parts: [{ text: 'Hi' }] }],
      },
    })
  })

  test('they have prices', async () => {
    for (const id of ['gemini-2.5-pro', 'gemini-2.5-flash', 'gemini-3-pro-preview', 'gemini-3-flash-preview'])
      expect(await priceOf({ provider: 'google', id }), id).not.toBeNull()
  })
})

/** Errors in the form that Google's documentation of the API and reports of users show. */
const ERRORS: readonly (readonly [string, number, object, Partial<HarnessError>])[] = [
  [
    'a limit per minute',
    429,
    {
      message: 'You exceeded your current quota, please check your plan and billing details.',
      status: 'RESOURCE_EXHAUSTED',
      details: [
        {
          '@type': 'type.googleapis.com/google.rpc.QuotaFailure',
          violations: [{ quotaId: 'GenerateRequestsPerMinutePerProjectPerModel-FreeTier' }],
        },
        { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '34.4s' },
      ],
    },
    { failure: 'rate_limit', retryable: true, retryAfterMs: 34_400 },
  ],
  [
    'a limit per day',
    429,
    {
      message: 'You exceeded your current quota, please check your plan and billing details.',
      status: 'RESOURCE_EXHAUSTED',
      details: [
        {
          '@type': 'type.googleapis.com/google.rpc.QuotaFailure',
          violations: [{ quotaId: 'GenerateRequestsPerDayPerProjectPerModel-FreeTier' }],
        },
        { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '20s' },
      ],
    },
    { failure: 'quota', retryable: false },
  ],
  [
    'a wrong key',
    400,
    {
      message: 'API key not valid. Please pass a valid API key.',
      status: 'INVALID_ARGUMENT',
      details: [{ '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: 'API_KEY_INVALID' }],
    },
    { failure: 'auth', retryable: false },
  ],
  [
    'a model that is not there',
    404,
    { message: 'models/gemini-9 is not found for API version v1beta.', status: 'NOT_FOUND' },
    { failure: 'not_found', retryable: false },
  ],
  [
    'an overloaded model',
    503,
    { message: 'The model is overloaded. Please try again later.', status: 'UNAVAILABLE' },
    { failure: 'overloaded', retryable: true },
  ],
  [
    'a deadline',
    504,
    { message: 'Deadline expired before operation could complete.', status: 'DEADLINE_EXCEEDED' },
    { failure: 'timeout', retryable: true },
  ],
  [
    'a request that is too long',
    400,
    {
      message: 'The input token count (1200293) exceeds the maximum number of tokens allowed (1048576).',
      status: 'INVALID_ARGUMENT',
    },
    { code: 'context_overflow', failure: 'context', retryable: false },
  ],
  [
    'a wrong request',
    400,
    { message: 'Thinking level MINIMAL is not supported for this model.', status: 'INVALID_ARGUMENT' },
    { failure: 'invalid', retryable: false },
  ],
  [
    'a fault of the server',
    500,
    { message: 'An internal error has occurred.', status: 'INTERNAL' },
    { failure: 'server', retryable: true },
  ],
]

describe('errors', () => {
  test.each(ERRORS)('%s', async (_name, status, error, wanted) => {
    for (const body of [{ error: { code: status, ...error } }, [{ error: { code: status, ...error } }]]) {
      const { fetch } = answering(() => Response.json(body, { status }))
      const found = await errorOf(ask(gemini('gemini-3-pro', { apiKey: 'k', fetch, maxRetries: 0 })))
      expect(found).toMatchObject({ status, ...wanted })
    }
  })
})

test('a run with a tool: the call and its signature go back with the result', async () => {
  const replies = [
    event([{ functionCall: { name: 'look', args: {} }, thoughtSignature: 'c2ln' }], 'STOP'),
    event([{ text: 'It is there.' }], 'STOP', {
      usageMetadata: { promptTokenCount: 8, candidatesTokenCount: 4, totalTokenCount: 12 },
    }),
  ]
  const { fetch, sent } = answering(() => Response.json(replies[sent.length - 1]))
  const look = defineTool({
    ...{ name: 'look', description: 'Looks.', parameters: { type: 'object', properties: {} } },
    handler: () => 'Found.',
  })
  const harness = new Harness({
    model: gemini('gemini-3-pro', { apiKey: 'k', fetch }),
    builtinTools: [],
    tools: [look],
  })
  const { text } = await harness.run('Look.')
  expect(text).toBe('It is there.')
  expect(sent[1]?.body).toMatchObject({
    contents: [
      { role: 'user' },
      { role: 'model', parts: [{ functionCall: { name: 'look' }, thoughtSignature: 'c2ln' }] },
      { role: 'user', parts: [{ functionResponse: { name: 'look', response: { output: 'Found.' } } }] },
    ],
  })
})
