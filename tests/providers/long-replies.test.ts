import { describe, expect, test, vi } from 'vitest'
import { Harness } from 'thinharness'
import type { Model, ModelSettings, RunEvent } from 'thinharness'
import { anthropic, openai, openaiChat, openaiCompatible } from 'thinharness/providers'
import type { ProviderOptions } from 'thinharness/providers'
import { scriptedProvider } from 'thinharness/testing'
import type { ProviderApi } from 'thinharness/testing'

type Options = Pick<ProviderOptions, 'maxOutputTokens' | 'reasoningEffort' | 'extraBody'>

const MODELS: readonly [ProviderApi, (baseUrl: string, options: Options) => Model][] = [
  ['responses', (baseUrl, options) => openai('gpt-5.5', { ...options, apiKey: 'k', baseUrl })],
  ['chat', (baseUrl, options) => openaiChat('gpt-5.5', { ...options, apiKey: 'k', baseUrl })],
  ['messages', (baseUrl, options) => anthropic('claude-sonnet-5', { ...options, apiKey: 'k', baseUrl })],
]
const FIELDS: Readonly<Record<string, Options['extraBody']>> = {
  responses: { reasoning: { effort: 'high' } },
  chat: { reasoning_effort: 'high' },
  messages: { thinking: { type: 'adaptive' } },
}

describe.each(MODELS)('PR-36 a request to %s whose reply may take long', (api, make) => {
  test.each<[string, Options, ModelSettings, boolean]>([
    ['a reasoning effort', {}, { reasoningEffort: 'high' }, true],
    ['a reasoning effort of the model', { reasoningEffort: 'high' }, {}, true],
    ['a reasoning effort in the words of the API', { extraBody: FIELDS[api] }, {}, true],
    ['a high limit of output', {}, { maxOutputTokens: 32_000 }, true],
    ['a high limit of the model', { maxOutputTokens: 32_000 }, {}, true],
    ['a low limit', {}, { maxOutputTokens: 4096, reasoningEffort: 'high' }, false],
    ['neither', {}, {}, false],
  ])('is streamed although nobody listens, with the same result: %s', async (_why, options, settings, isStreamed) => {
    await using provider = await scriptedProvider()
    const streamed: boolean[] = []
    provider
      .replies(({ body }) => {
        streamed.push(body['stream'] === true)
        return { text: 'I look.', calls: [{ name: 'none', arguments: {} }] }
      })
      .says('Done.')
    const harness = new Harness({ model: make(provider.url[api], options), builtinTools: [], settings })
    const kinds: RunEvent['kind'][] = []
    const stream = harness.stream('Go.', { deltas: false })
    for await (const { kind } of stream) kinds.push(kind)
    const { text, usage, transcript } = await stream.result
    expect([text, usage.modelRequests]).toEqual(['Done.', 2])
    expect(streamed).toEqual([isStreamed])
    expect(transcript.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'assistant'])
    expect(kinds.filter((kind) => kind.endsWith('_delta'))).toEqual([])
  })
})

const WHOLE = { choices: [{ message: { role: 'assistant', content: 'Done.' }, finish_reason: 'stop' }] }

/** A server that refuses streams, with this status and message; and the `stream` of each request that it got. */
function unstreamed(status: number, message: string) {
  const asked: unknown[] = []
  const fetch = vi.fn<typeof globalThis.fetch>(async (url, init) => {
    const { stream } = (await new Request(url, init).json()) as { readonly stream?: boolean }
    asked.push(stream)
    return stream === true ? Response.json({ error: { message } }, { status }) : Response.json(WHOLE)
  })
  return { asked, model: openaiCompatible('m', { baseUrl: 'http://server.test/v1', fetch, reasoningEffort: 'high' }) }
}

describe('PR-37 a server that refuses to stream', () => {
  test.each([
    [400, 'Unsupported parameter: stream'],
    [400, 'Your organization must be verified to stream this model.'],
    [422, 'stream_options: extra fields not permitted'],
    [501, 'Streaming is not implemented'],
  ])('gets the request again as a whole, and the run no further stream: %s %s', async (status, message) => {
    const { asked, model } = unstreamed(status, message)
    const harness = new Harness({ model, builtinTools: [] })
    const retries: RunEvent[] = []
    const stream = harness.stream('Go.')
    const text: string[] = []
    for await (const event of stream) {
      if (event.kind === 'transport_retry') retries.push(event)
      if (event.kind === 'text_delta') text.push(event.text)
    }
    expect((await stream.result).text).toBe('Done.')
    expect(retries).toMatchObject([{ status, withdrawn: false, reason: expect.stringContaining(message) as unknown }])
    expect(text.join('')).toBe('Done.')
    expect((await harness.run('Again.')).text).toBe('Done.')
    expect(asked).toEqual([true, undefined, true, undefined])
  })

  test('does not hide another error: the request fails at once', async () => {
    const { asked, model } = unstreamed(400, 'Unknown model `m`.')
    await expect(new Harness({ model, builtinTools: [] }).run('Go.')).rejects.toThrow('Unknown model')
    expect(asked).toEqual([true])
  })
})
