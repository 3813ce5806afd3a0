import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { HarnessError, textOf } from 'thinharness'
import type { Model } from 'thinharness'
import { openaiChat, openaiCompatible, openrouter } from '#providers/chat/index.js'
import type { OpenAiCompatibleOptions } from '#providers/chat/index.js'
import { answerOf, atRandom, expectAnswer, fetchOf, providerCases } from '../../support/provider-cases.js'
import { constants, replyOf, user } from './wire.js'

const VARIABLES = ['OPENAI', 'OPENROUTER', 'OPENAI_COMPATIBLE'].flatMap((name) => [
  `${name}_API_KEY`,
  `${name}_BASE_URL`,
])
const OTHERS = ['OPENAI_ORG_ID', 'OPENAI_PROJECT_ID', 'OPENROUTER_APP_URL', 'OPENROUTER_APP_TITLE']

beforeEach(() => {
  for (const name of [...VARIABLES, ...OTHERS]) vi.stubEnv(name, undefined)
})
afterEach(() => {
  vi.unstubAllEnvs()
})

interface Sent {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: unknown
}

/** A `fetch` that answers with a short text, and what it was asked for. */
function listening(): { readonly fetch: typeof globalThis.fetch; readonly sent: Sent[] } {
  const sent: Sent[] = []
  const fetch = async (input: string | URL | Request, init: RequestInit = {}): Promise<Response> => {
    const request = new Request(input, { ...init, ...(init.body !== undefined && { duplex: 'half' }) })
    sent.push({ url: request.url, headers: Object.fromEntries(request.headers), body: await request.json() })
    return Response.json(replyOf({ content: 'Hi' }))
  }
  return { fetch, sent }
}

function ask(model: Model): Promise<unknown> {
  return model.openSession().turn([user('Hello')], constants(), { generation: 0, signal: new AbortController().signal })
}

describe('the address and the key of requests', () => {
  test.each<
    [string, (fetch: typeof globalThis.fetch) => Model, Readonly<Record<string, string>>, string, string | undefined]
  >([
    [
      'a compatible server without a key',
      (fetch) => openaiCompatible('m', { baseUrl: 'http://127.0.0.1:8080/v1/', fetch }),
      { OPENAI_API_KEY: 'sk-not-for-strangers', OPENAI_BASE_URL: 'http://127.0.0.1:9/v1' },
      'http://127.0.0.1:8080/v1/chat/completions',
      undefined,
    ],
    [
      'a compatible server with its own key',
      (fetch) => openaiCompatible('m', { baseUrl: 'http://127.0.0.1:8080/v1', fetch }),
      { OPENAI_COMPATIBLE_API_KEY: 'key-1' },
      'http://127.0.0.1:8080/v1/chat/completions',
      'Bearer key-1',
    ],
    [
      'OpenRouter',
      (fetch) => openrouter('m', { fetch }),
      { OPENROUTER_API_KEY: 'key-2' },
      'https://openrouter.ai/api/v1/chat/completions',
      'Bearer key-2',
    ],
    [
      'OpenRouter elsewhere',
      (fetch) => openrouter('m', { fetch, apiKey: 'key-3' }),
      { OPENROUTER_BASE_URL: 'http://127.0.0.1:8080/api', OPENROUTER_API_KEY: 'key-2' },
      'http://127.0.0.1:8080/api/chat/completions',
      'Bearer key-3',
    ],
    [
      'OpenAI',
      (fetch) => openaiChat('m', { fetch }),
      { OPENAI_API_KEY: 'key-4' },
      'https://api.openai.com/v1/chat/completions',
      'Bearer key-4',
    ],
  ])(
    'PR-13 a request goes to the configured server with its key: %s',
    async (_name, model, variables, url, authorization) => {
      for (const [name, value] of Object.entries(variables)) vi.stubEnv(name, value)
      const { fetch, sent } = listening()
      await ask(model(fetch))
      expect(sent).toMatchObject([{ url }])
      expect(sent[0]?.headers['authorization']).toBe(authorization)
    },
  )

  test('OpenRouter receives the app and OpenAI the account, if they are named', async () => {
    vi.stubEnv('OPENROUTER_APP_URL', 'https://example.com')
    vi.stubEnv('OPENROUTER_APP_TITLE', 'Example')
    vi.stubEnv('OPENAI_ORG_ID', 'org-1')
    const { fetch, sent } = listening()
    await ask(openrouter('m', { fetch, apiKey: 'key-1' }))
    await ask(openaiChat('m', { fetch, apiKey: 'key-1' }))
    expect(sent[0]?.headers).toMatchObject({ 'http-referer': 'https://example.com', 'x-title': 'Example' })
    expect(sent[1]?.headers).toMatchObject({ 'openai-organization': 'org-1' })
    expect(sent[1]?.headers).not.toHaveProperty('openai-project')
  })

  test.each([
    ['OPENROUTER_API_KEY', openrouter],
    ['OPENAI_API_KEY', openaiChat],
  ])('a missing key is reported with the name `%s`', async (variable, factory) => {
    const { fetch, sent } = listening()
    const failure = await ask(factory('m', { fetch })).catch((error: unknown) => error)
    expect(failure).toMatchObject({ code: 'missing_key', message: expect.stringContaining(variable) as string })
    expect(sent).toEqual([])
  })
})

describe('the dialect', () => {
  const bodyOf = async (model: (fetch: typeof globalThis.fetch) => Model): Promise<unknown> => {
    const { fetch, sent } = listening()
    await ask(model(fetch))
    return sent[0]?.body
  }
  const common = { apiKey: 'key-1', maxOutputTokens: 9, reasoningEffort: 'low', promptCache: false } as const
  const messages = [{ role: 'user', content: 'Hello' }]

  test.each<[string, string, object]>([
    ['unknown', 'http://127.0.0.1:8080/v1', { max_tokens: 9, reasoning_effort: 'low' }],
    ['Azure', 'https://mine.openai.azure.com/openai/v1', { max_completion_tokens: 9, reasoning_effort: 'low' }],
  ])('of a server that is %s', async (_name, baseUrl, fields) => {
    const body = await bodyOf((fetch) => openaiCompatible('m', { ...common, baseUrl, fetch }))
    expect(body).toEqual({ model: 'm', ...fields, messages })
  })

  test('of a server that the user describes', async () => {
    const dialect = { maxTokensField: 'max_completion_tokens', effortField: 'reasoning' } as const
    const body = await bodyOf((fetch) =>
      openaiCompatible('m', { ...common, baseUrl: 'http://127.0.0.1:8080/v1', dialect, fetch }),
    )
    expect(body).toEqual({ model: 'm', max_completion_tokens: 9, reasoning: { effort: 'low' }, messages })
  })

  test('of OpenRouter: Claude is asked to cache, other models do so by themselves', async () => {
    const caching = { ...common, promptCache: true }
    const claude = await bodyOf((fetch) => openrouter('anthropic/claude-sonnet-5', { ...caching, fetch }))
    expect(claude).toMatchObject({ reasoning: { effort: 'low' }, cache_control: { type: 'ephemeral' } })
    expect(await bodyOf((fetch) => openrouter('openai/gpt-5.5', { ...caching, fetch }))).toEqual({
      model: 'openai/gpt-5.5',
      max_tokens: 9,
      reasoning: { effort: 'low' },
      messages,
    })
  })
})

describe('the description of a model', () => {
  test.each<[Model, object]>([
    [openrouter('m'), { provider: 'openrouter', id: 'm', capabilities: { permissiveNativeOverride: true } }],
    [
      openaiChat('m', { capabilities: { reasoningEfforts: [] } }),
      {
        provider: 'openai-chat',
        id: 'm',
        capabilities: { supportsJsonSchemaOutput: true, defaultStructuredOutputMode: 'native', reasoningEfforts: [] },
      },
    ],
    [
      openaiCompatible('m', { baseUrl: 'http://127.0.0.1:1/v1' }),
      { provider: 'openai-compatible', id: 'm', capabilities: { permissiveNativeOverride: true } },
    ],
    [openaiCompatible('m', { baseUrl: 'http://127.0.0.1:1/v1', provider: 'ollama' }), { provider: 'ollama' }],
  ])('$provider', (model, expected) => {
    expect(model).toMatchObject(expected)
  })

  test.each<[string, unknown, RegExp]>([
    ['no server', {}, /Expected `baseUrl` to be given/],
    ['nothing', undefined, /Expected the options of `openaiCompatible` to be an object, got nothing/],
    ['an unknown option', { baseUrl: 'http://127.0.0.1:1/v1', dialekt: {} }, /`dialekt`.*Did you mean `dialect`/],
    [
      'an unknown field',
      { baseUrl: 'http://127.0.0.1:1/v1', dialect: { callId: 'any' } },
      /`dialect.callId`.*Did you mean `callIds`/,
    ],
    [
      'a word that is none',
      { baseUrl: 'http://127.0.0.1:1/v1', dialect: { callIds: 'some' } },
      /Expected `dialect.callIds` of `openaiCompatible` to be one of `any`, `up_to_40`, `nine_alphanumeric`, got `some`/,
    ],
    [
      'no list',
      { baseUrl: 'http://127.0.0.1:1/v1', dialect: { fileTypes: [1] } },
      /`dialect.fileTypes\[0\]` of `openaiCompatible` to be a string, got `1`/,
    ],
    [
      'no object',
      { baseUrl: 'http://127.0.0.1:1/v1', dialect: 'mistral' },
      /Expected `dialect` of `openaiCompatible` to be an object, got `mistral`/,
    ],
    [
      'no name',
      { baseUrl: 'http://127.0.0.1:1/v1', provider: ' ' },
      /Expected `provider` of `openaiCompatible` to be a string that is not empty/,
    ],
  ])('%s is rejected', (_name, options, message) => {
    expect(() => openaiCompatible('m', options as OpenAiCompatibleOptions)).toThrow(
      expect.objectContaining({ code: 'invalid_options', message: expect.stringMatching(message) as string }),
    )
  })
})

describe('an official client', () => {
  /** As much of a client as is used. */
  function clientOf(reply: unknown): { client: object; calls: unknown[] } {
    const calls: unknown[] = []
    const create = (body: unknown): Promise<unknown> => {
      calls.push(body)
      return Promise.resolve(reply)
    }
    return { client: { baseURL: 'https://api.mistral.ai/v1', chat: { completions: { create } } }, calls }
  }

  test('is called as `chat.completions.create`, and identifies its server', async () => {
    const { client, calls } = clientOf(replyOf({ content: 'Hi' }))
    const turn = await openaiCompatible('m', { client })
      .openSession()
      .turn([user('Hello')], constants(), {
        generation: 0,
        signal: new AbortController().signal,
      })
    expect(textOf(turn.entry.parts)).toBe('Hi')
    expect(calls).toEqual([{ model: 'm', messages: [{ role: 'user', content: 'Hello' }] }])
  })

  test('streams', async () => {
    async function* chunks(): AsyncGenerator {
      yield { choices: [{ index: 0, delta: { content: 'H' }, finish_reason: null }] }
      yield await Promise.resolve({ choices: [{ index: 0, delta: { content: 'i' }, finish_reason: 'stop' }] })
    }
    const { client, calls } = clientOf(chunks())
    const deltas: string[] = []
    const options = {
      generation: 0,
      signal: new AbortController().signal,
      onDelta: ({ text }: { text: string }) => void deltas.push(text),
    }
    const turn = await openaiChat('m', { client, promptCache: false })
      .openSession()
      .turn([user('Hello')], constants(), options)
    expect([textOf(turn.entry.parts), deltas]).toEqual(['Hi', ['H', 'i']])
    expect(calls).toMatchObject([{ stream: true, stream_options: { include_usage: true } }])
  })

  test('another object is rejected', () => {
    expect(() => openaiChat('m', { client: {} })).toThrow(HarnessError)
  })
})

describe('PR-24 recorded replies and errors pass through the whole model unchanged', () => {
  const models = {
    'openai-chat': (fetch: typeof globalThis.fetch) => openaiChat('m', { fetch, apiKey: 'key-1', maxRetries: 0 }),
    'openrouter-chat': (fetch: typeof globalThis.fetch) => openrouter('m', { fetch, apiKey: 'key-1', maxRetries: 0 }),
    'compat-chat': (fetch: typeof globalThis.fetch) =>
      openaiCompatible('m', { fetch, baseUrl: 'http://127.0.0.1:1/v1', maxRetries: 0 }),
  }
  const cases = Object.entries(models).flatMap(([api, model]) =>
    providerCases(api).map((each) => [each.file, each, model] as const),
  )

  test.each(cases)('%s', async (_file, each, model) => {
    expectAnswer(each, await answerOf(model(fetchOf(each, atRandom(5))), each))
  })
})
