import { afterEach, describe, expect, test, vi } from 'vitest'
import { Harness } from 'thinharness'
import type { Model } from 'thinharness'
import type { ProviderOptions } from 'thinharness/providers'
import { anthropic, openai, openaiChat, openaiCompatible, openrouter } from 'thinharness/providers'
import { scriptedProvider } from 'thinharness/testing'

afterEach(() => {
  vi.unstubAllEnvs()
})

const MAKE: Readonly<Record<string, (options: ProviderOptions) => Model>> = {
  Messages: (options) => anthropic('claude-sonnet-5', options),
  Responses: (options) => openai('gpt-5.5', options),
  'chat completions': (options) => openaiChat('gpt-4.1', options),
}

describe.each(Object.entries(MAKE))('a gateway for %s', (_api, make) => {
  test('that streams whatever is asked for is read, and asked once', async () => {
    await using provider = await scriptedProvider()
    provider.calls('look', { n: 1 }, { text: 'I look.' }).says('Done.')
    let asked = 0
    const fetch: typeof globalThis.fetch = async (url, init) => {
      asked += 1
      const body = JSON.parse(Buffer.from(init?.body as Uint8Array).toString()) as object
      return globalThis.fetch(url, { ...init, body: JSON.stringify({ ...body, stream: true }) })
    }
    const { url } = provider
    const baseUrl = make === MAKE['Messages'] ? url.messages : make === MAKE['Responses'] ? url.responses : url.chat
    const harness = new Harness({ model: make({ apiKey: 'any', baseUrl, fetch }), builtinTools: [] })
    const { text, transcript } = await harness.run('Go.')
    expect([text, asked]).toEqual(['Done.', 2])
    expect(JSON.stringify(transcript)).toContain('I look.')
  })
})

describe('connect()', () => {
  test.each<[string, () => Model | string]>([
    ['OPENAI_API_KEY', () => 'openai:gpt-5.5'],
    ['ANTHROPIC_API_KEY', () => 'anthropic:claude-sonnet-5'],
    ['OPENROUTER_API_KEY', () => 'openrouter:x/y'],
    ['OPENAI_API_KEY', () => openaiChat('gpt-4.1')],
    ['OPENROUTER_API_KEY', () => openrouter('x/y')],
  ])('rejects without the key of the model, which is in %s', async (variable, make) => {
    vi.stubEnv(variable, '')
    await using harness = new Harness({ model: make(), builtinTools: [] })
    await expect(harness.connect()).rejects.toMatchObject({ code: 'missing_key' })
    vi.stubEnv(variable, 'a-key-for-a-test')
    await harness.connect()
  })

  test('needs no key for a server that needs none', async () => {
    await using harness = new Harness({ model: 'local:m@http://127.0.0.1:9/v1', builtinTools: [] })
    await harness.connect()
  })
})

test('what one server sends in its own form does not go to another one', async () => {
  const reply = {
    reasoning_details: [{ type: 'reasoning.encrypted', data: 'sealed' }],
    annotations: [{ type: 'note', text: 'noted' }],
  }
  const sent: string[] = []
  const serverAt = (baseUrl: string, provider?: string): Model =>
    openaiCompatible('m', {
      baseUrl,
      ...(provider !== undefined && { provider }),
      fetch: async (_url, init) => {
        sent.push(Buffer.from(init?.body as Uint8Array).toString())
        const message = sent.length === 1 ? reply : { content: 'Done.' }
        const call = { id: 'c', function: { name: 'look', arguments: '{}' } }
        const calls = sent.length === 1 ? { tool_calls: [call] } : {}
        return Response.json({ choices: [{ index: 0, message: { ...message, ...calls }, finish_reason: 'stop' }] })
      },
    })
  const first = serverAt('http://one.invalid/v1')
  const { transcript } = await new Harness({ model: first, builtinTools: [] }).run('Go.')
  expect(sent[1]).toMatch(/sealed/)
  expect(first.provider).toBe('openai-compatible')
  for (const [model, getsIt] of [
    [serverAt('http://two.invalid/v1'), false],
    [serverAt('http://one.invalid:8080/v1'), false],
    [serverAt('http://one.invalid/other/v1'), true],
  ] as const) {
    await new Harness({ model, builtinTools: [] }).run('On.', { history: transcript })
    for (const own of ['sealed', 'noted']) expect([own, sent.at(-1)?.includes(own)]).toEqual([own, getsIt])
  }
})
