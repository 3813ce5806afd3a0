import { describe, expect, test } from 'vitest'
import { parseModelRef } from '#contracts/model-reference.js'

describe('a model reference', () => {
  test.each<[string, ReturnType<typeof parseModelRef>]>([
    ['openai:gpt-5.5', { provider: 'openai', id: 'gpt-5.5', baseUrl: null }],
    ['openrouter:x/y:free', { provider: 'openrouter', id: 'x/y:free', baseUrl: null }],
    ['anthropic:a@https', { provider: 'anthropic', id: 'a@https', baseUrl: null }],
    ['google:gemini-3-pro', { provider: 'google', id: 'gemini-3-pro', baseUrl: null }],
    ['local:llama3', { provider: 'local', id: 'llama3', baseUrl: null }],
    ['local:a:b@http://127.0.0.1:1/v1', { provider: 'local', id: 'a:b', baseUrl: 'http://127.0.0.1:1/v1' }],
    ['local:@http://127.0.0.1:1/v1', { provider: 'local', id: '@http://127.0.0.1:1/v1', baseUrl: null }],
  ])('PR-01 a reference is split at the first colon: %s', (ref, parsed) => {
    expect(parseModelRef(ref)).toEqual(parsed)
  })

  test.each<[string, string]>([
    ['gpt-5.5', 'Expected a model as `provider:model`'],
    ['', 'Expected a model as `provider:model`'],
    [':gpt-5.5', 'Expected a model as `provider:model`'],
    ['openai:', 'Expected a model as `provider:model`'],
    ['gemini:gemini-3-pro', 'Unknown provider `gemini` in the model `gemini:gemini-3-pro`. Use `google:…`.'],
    ['OpenAI:gpt-5.5', 'Unknown provider `OpenAI` in the model `OpenAI:gpt-5.5`. Did you mean `openai`?'],
    [
      'azure:x',
      'Unknown provider `azure` in the model `azure:x`. Use `openrouter:…`, `fromAiSdk(model)` with its AI SDK package',
    ],
  ])('PR-01 a reference without a provider prefix is rejected: %j', (ref, message) => {
    expect(() => parseModelRef(ref)).toThrow(
      expect.objectContaining({ code: 'invalid_options', message: expect.stringContaining(message) as string }),
    )
  })
})
