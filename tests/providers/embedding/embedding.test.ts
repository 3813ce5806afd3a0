import { afterEach, describe, expect, test, vi } from 'vitest'
import { createMemory } from 'thinharness/memory'
import { memoryLog } from 'thinharness'
import { embedding } from 'thinharness/providers'
import type { EmbeddingOptions } from 'thinharness/providers'
import { errorOf } from '../support.js'

interface Sent {
  readonly url: string
  readonly key: string | null
  readonly body: Record<string, unknown>
}

/** A server of both APIs: the vector of a text is its length and a number. */
function server(answers: readonly (Response | null)[] = []): { fetch: typeof globalThis.fetch; sent: Sent[] } {
  const sent: Sent[] = []
  const fetch: typeof globalThis.fetch = async (input, init) => {
    const request = new Request(input, init)
    const body = (await request.json()) as Sent['body']
    const key = request.headers.get('authorization') ?? request.headers.get('x-goog-api-key')
    sent.push({ url: request.url, key, body })
    const scripted = answers[sent.length - 1]
    if (scripted !== undefined && scripted !== null) return scripted
    if (!request.url.includes('batchEmbedContents')) {
      const data = (body['input'] as string[]).map((text, index) => ({ index, embedding: [text.length, 1] }))
      return Response.json({ data: data.reverse(), usage: { prompt_tokens: 7 } })
    }
    const texts = (body['requests'] as { content: { parts: { text: string }[] } }[]).map(
      ({ content }) => content.parts[0]!.text,
    )
    return Response.json({ embeddings: texts.map((text) => ({ values: [text.length * 3, text.length * 4] })) })
  }
  return { fetch, sent }
}

const KEY = { apiKey: 'key-12345', maxRetries: 0 }

afterEach(() => {
  vi.unstubAllEnvs()
})

describe('an embedder', () => {
  test('of OpenAI gives vectors in the order of the texts, and says what it is and has used', async () => {
    const { fetch, sent } = server()
    const embed = embedding('openai:text-embedding-3-small', { ...KEY, fetch, dimensions: 2 })
    expect(await embed(['a', 'bcd', ''])).toEqual([
      [1, 1],
      [3, 1],
      [1, 1],
    ])
    expect(sent).toEqual([
      {
        url: 'https://api.openai.com/v1/embeddings',
        key: 'Bearer key-12345',
        body: { model: 'text-embedding-3-small', input: ['a', 'bcd', ' '], encoding_format: 'float', dimensions: 2 },
      },
    ])
    expect([embed.model, embed.dimensions]).toEqual(['openai:text-embedding-3-small', 2])
    expect(embed.usage).toEqual({ requests: 1, texts: 3, inputTokens: 7 })
  })

  test('of Gemini gives vectors of length 1', async () => {
    const { fetch, sent } = server()
    const embed = embedding('google:gemini-embedding-001', { ...KEY, fetch, dimensions: 2 })
    expect(await embed(['a', 'bc'])).toEqual([
      [0.6, 0.8],
      [0.6, 0.8],
    ])
    expect(sent[0]).toMatchObject({
      url: 'https://generativelanguage.googleapis.com/v1beta/models/gemini-embedding-001:batchEmbedContents',
      key: 'key-12345',
      body: {
        requests: [
          { model: 'models/gemini-embedding-001', content: { parts: [{ text: 'a' }] }, outputDimensionality: 2 },
          {},
        ],
      },
    })
  })

  test('learns the length of its vectors from the first answer', async () => {
    const embed = embedding('openai:text-embedding-3-small', { ...KEY, fetch: server().fetch })
    expect(embed.dimensions).toBeUndefined()
    await embed(['a'])
    expect(embed.dimensions).toBe(2)
  })

  test.each([
    ['google:gemini-embedding-001', 250, [100, 100, 50]],
    ['openai:text-embedding-3-small', 1025, [512, 512, 1]],
  ])('of %s sends %i texts in as many requests as the API needs', async (ref, count, wanted) => {
    const { fetch, sent } = server()
    const vectors = await embedding(ref, { ...KEY, fetch })(Array.from({ length: count }, () => 'abc'))
    expect(vectors).toHaveLength(count)
    expect(sent.map(({ body }) => ((body['input'] ?? body['requests']) as unknown[]).length)).toEqual(wanted)
  })

  test('puts long texts into requests of their own, and sends nothing for no texts', async () => {
    const { fetch, sent } = server()
    const embed = embedding('openai:text-embedding-3-small', { ...KEY, fetch })
    await embed(['a'.repeat(200_000), 'b'.repeat(200_000)])
    expect(sent).toHaveLength(2)
    expect(await embed([])).toEqual([])
    expect(sent).toHaveLength(2)
  })

  test("of a server of one's own needs no key", async () => {
    const { fetch, sent } = server()
    vi.stubEnv('THINHARNESS_LOCAL_URL', 'http://127.0.0.1:8/v1')
    await embedding('local:nomic@http://127.0.0.1:9/v1', { fetch })(['a'])
    await embedding('local:nomic', { fetch })(['a'])
    expect(sent.map(({ url }) => url)).toEqual([9, 8].map((port) => `http://127.0.0.1:${port}/v1/embeddings`))
    expect(sent[0]?.key).toBeNull()
  })
})

describe('what goes wrong', () => {
  test('a refusal that passes is repeated, and the classes of failures are those of models', async () => {
    const busy = Response.json({ error: { message: 'Busy.' } }, { status: 503, headers: { 'retry-after-ms': '1' } })
    const { fetch, sent } = server([busy])
    expect(await embedding('openai:text-embedding-3-small', { ...KEY, maxRetries: 1, fetch })(['a'])).toEqual([[1, 1]])
    expect(sent).toHaveLength(2)
    const wrong = Response.json(
      { error: { message: 'API key not valid.', status: 'INVALID_ARGUMENT' } },
      { status: 400 },
    )
    const error = await errorOf(
      embedding('google:gemini-embedding-001', { ...KEY, fetch: server([wrong]).fetch })(['a']),
    )
    expect(error).toMatchObject({ code: 'provider_error', failure: 'auth' })
  })

  test.each<[string, unknown]>([
    ['too few vectors', { data: [] }],
    ['vectors of another length', { data: [{ index: 0, embedding: [1, 2, 3] }] }],
    ['no numbers', { data: [{ index: 0, embedding: ['1', null] }] }],
  ])('%s are an error that names the model', async (_name, body) => {
    const { fetch } = server([Response.json(body)])
    const error = await errorOf(embedding('openai:small', { ...KEY, fetch, dimensions: 2 })(['a']))
    expect(error.message).toMatch(/Expected 1 vectors of 2 numbers from `openai:small`/)
  })

  test('an abort stops it', async () => {
    const abort = new AbortController()
    abort.abort(new Error('Enough.'))
    const { fetch, sent } = server()
    await expect(embedding('openai:small', { ...KEY, fetch })(['a'], { signal: abort.signal })).rejects.toThrow(
      'Enough.',
    )
    expect(sent).toHaveLength(0)
  })

  test('a provider without embeddings, a client and a missing key are refused', async () => {
    expect(() => embedding('anthropic:claude-sonnet-5')).toThrow(/provider with embeddings/)
    expect(() => embedding('openai:small', { client: {} } as EmbeddingOptions)).toThrow(/without `client`/)
    vi.stubEnv('OPENAI_API_KEY', '')
    expect(await errorOf(embedding('openai:small', { fetch: server().fetch })(['a']))).toMatchObject({
      code: 'missing_key',
    })
  })
})

test('a memory takes it as it is', async () => {
  const { fetch, sent } = server()
  const memory = createMemory({ log: memoryLog(), embed: embedding('openai:small', { ...KEY, fetch }) })
  await memory.reindex()
  expect(sent).toHaveLength(0)
})
