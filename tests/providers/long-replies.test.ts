import { describe, expect, test } from 'vitest'
import { Harness } from 'thinharness'
import type { Model, ModelSettings } from 'thinharness'
import { anthropic, openai, openaiChat } from 'thinharness/providers'
import type { AnthropicOptions } from 'thinharness/providers'
import { scriptedProvider } from 'thinharness/testing'
import type { ProviderApi } from 'thinharness/testing'

type Options = Pick<AnthropicOptions, 'maxOutputTokens' | 'reasoningEffort'>

const MODELS: readonly [ProviderApi, (baseUrl: string, options: Options) => Model][] = [
  ['responses', (baseUrl, options) => openai('gpt-5.5', { ...options, apiKey: 'k', baseUrl })],
  ['chat', (baseUrl, options) => openaiChat('gpt-5.5', { ...options, apiKey: 'k', baseUrl })],
  ['messages', (baseUrl, options) => anthropic('claude-sonnet-5', { ...options, apiKey: 'k', baseUrl })],
]

describe.each(MODELS)('a request to %s whose reply may take long', (api, make) => {
  test.each<[string, Options, ModelSettings, boolean]>([
    ['a reasoning effort', {}, { reasoningEffort: 'high' }, true],
    ['a reasoning effort of the model', { reasoningEffort: 'high' }, {}, true],
    ['a high limit of output', {}, { maxOutputTokens: 32_000 }, true],
    ['a high limit of the model', { maxOutputTokens: 32_000 }, {}, true],
    ['a low limit', {}, { maxOutputTokens: 1000 }, false],
  ])('is streamed although nobody listens, with the same result: %s', async (_why, options, settings, isStreamed) => {
    await using provider = await scriptedProvider()
    provider
      .replies(({ body }) => {
        expect(body['stream'] ?? false).toBe(isStreamed)
        return { text: 'I look.', calls: [{ name: 'none', arguments: {} }] }
      })
      .says('Done.')
    const harness = new Harness({ model: make(provider.url[api], options), builtinTools: [], settings })
    const { text, usage, transcript } = await harness.run('Go.')
    expect([text, usage.modelRequests]).toEqual(['Done.', 2])
    expect(transcript.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'assistant'])
  })
})
