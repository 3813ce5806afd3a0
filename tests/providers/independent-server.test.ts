import { LLMock } from '@copilotkit/aimock'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { defineTool, Harness } from 'thinharness'
import type { HarnessResult, Model } from 'thinharness'
import { anthropic, openai, openaiChat, openrouter } from 'thinharness/providers'
import { errorOf } from './support.js'

/** Each API before a server that nobody here wrote. */
const APIS: Readonly<Record<string, (url: string, fetch?: typeof globalThis.fetch) => Model>> = {
  openai: (url, fetch) => openai('gpt-5.5', { ...KEY, baseUrl: `${url}/v1`, ...(fetch && { fetch }) }),
  openaiChat: (url, fetch) => openaiChat('gpt-4.1', { ...KEY, baseUrl: `${url}/v1`, ...(fetch && { fetch }) }),
  openrouter: (url, fetch) => openrouter('x/y', { ...KEY, baseUrl: `${url}/api/v1`, ...(fetch && { fetch }) }),
  anthropic: (url, fetch) => anthropic('claude-sonnet-5', { ...KEY, baseUrl: url, ...(fetch && { fetch }) }),
}
const KEY = { apiKey: 'any', maxRetries: 0 }

const look = defineTool({
  name: 'look',
  description: 'Looks.',
  parameters: { type: 'object', properties: { where: { type: 'string' } } },
  handler: async ({ where }) => `Nothing in ${typeof where === 'string' ? where : '?'}.`,
})

async function run(model: Model, streamed: boolean, prompt = 'Hello.'): Promise<HarnessResult> {
  const harness = new Harness({ model, tools: [look], builtinTools: [] })
  return await harness.stream(prompt, { deltas: streamed }).result
}

const server = new LLMock({ port: 0, chunkSize: 4 })
beforeAll(() => server.start())
afterAll(() => server.stop())
beforeEach(() => {
  server.reset()
})

const WAYS = Object.entries(APIS).flatMap(([api, make]) =>
  [undefined, globalThis.fetch].flatMap((fetch) =>
    [true, false].map((streamed) => ({
      api,
      over: fetch ? 'fetch' : 'default',
      streamed,
      model: () => make(server.url, fetch),
    })),
  ),
)

describe.each(WAYS)('$api over $over before an independent server, streamed: $streamed', ({ model, streamed }) => {
  test('PR-12 PR-13 a tool loop runs to its answer', async () => {
    server.on({ userMessage: 'Hello.', hasToolResult: true }, { content: 'There is nothing there.' })
    const calls = ['the shed', 'the garden'].map((where) => ({ name: 'look', arguments: JSON.stringify({ where }) }))
    server.onMessage('Hello.', { toolCalls: calls })
    const { text, toolCallRecords } = await run(model(), streamed)
    expect(text).toBe('There is nothing there.')
    const outputs = toolCallRecords.map(({ output }) => (JSON.parse(output) as { readonly content: string }).content)
    expect(outputs).toEqual(['Nothing in the shed.', 'Nothing in the garden.'])
  })

  test('reasoning is not text', async () => {
    server.onMessage('Hello.', { content: 'Hi.', reasoning: 'They greet me.' })
    const { text, transcript } = await run(model(), streamed)
    expect(text).toBe('Hi.')
    const parts = transcript.flatMap((entry) => (entry.role === 'assistant' ? entry.parts : []))
    const thoughts = parts.map((part) => (part.type === 'reasoning' ? part.text : '')).join('')
    expect(thoughts).toBe('They greet me.')
  })

  test.each([
    [400, false],
    [401, false],
    [402, false],
    [404, false],
    [408, true],
    [413, false],
    [429, true],
    [500, true],
    [502, true],
    [503, true],
    [529, true],
  ])('PR-24 an error status is an error of the provider: %i', async (status, retryable) => {
    server.nextRequestError(status, { message: `Words of ${status}.` })
    const error = await errorOf(run(model(), streamed))
    expect(error).toMatchObject({ code: 'provider_error', status, retryable, run: { stopReason: 'provider_error' } })
    expect(error.message).toContain(`Words of ${status}.`)
  })

  test.each([
    ['dropped', { dropRate: 1 }, { status: 500, retryable: true }],
    ['rate limited', { rateLimitRate: 1 }, { status: 429, retryable: true, retryAfterMs: 1000 }],
    ['malformed', { malformedRate: 1 }, { code: 'provider_error' }],
    ['disconnected', { disconnectRate: 1 }, { status: undefined, retryable: true }],
  ])('PR-23 PR-25 a broken answer is an error of the provider: %s', async (_how, chaos, wanted) => {
    server.onMessage('Hello.', { content: 'Hi.' }, { chaos })
    const error = await errorOf(run(model(), streamed))
    expect(error).toMatchObject({ code: 'provider_error', ...wanted, run: { stopReason: 'provider_error' } })
  })

  if (!streamed) return
  test('a truncated stream is not an answer', async () => {
    server.onMessage('Hello.', { content: 'Hello to you and to everybody else.' }, { truncateAfterChunks: 3 })
    expect(await errorOf(run(model(), streamed))).toMatchObject({ code: 'provider_error', retryable: true })
  })
})
