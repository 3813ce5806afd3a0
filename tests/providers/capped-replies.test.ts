import { createOpenAI } from '@ai-sdk/openai'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { Harness } from 'thinharness'
import type { JsonObject, Model, ModelSettings } from 'thinharness'
import { anthropic, fromAiSdk, openai, openaiCompatible, openrouter } from 'thinharness/providers'
import type { ProviderOptions } from 'thinharness/providers'
import { scriptedProvider } from 'thinharness/testing'
import type { ScriptedProvider } from 'thinharness/testing'

let provider: ScriptedProvider
beforeEach(async () => {
  provider = await scriptedProvider()
})
afterEach(() => provider[Symbol.asyncDispose]())

type Make = (url: ScriptedProvider['url'], options?: ProviderOptions) => Model

const MODELS = {
  openai: ({ responses }, options) => openai('gpt-5.5', { apiKey: 'any', baseUrl: responses, ...options }),
  anthropic: ({ messages }, options) => anthropic('claude-opus-4-5', { apiKey: 'any', baseUrl: messages, ...options }),
  openrouter: ({ openrouter: url }, options) =>
    openrouter('openai/gpt-5.5', { apiKey: 'any', baseUrl: url, ...options }),
  local: ({ chat }, options) => openaiCompatible('qwen3', { apiKey: 'any', ...options, baseUrl: chat }),
  'AI SDK': ({ responses }, { maxOutputTokens } = {}) =>
    fromAiSdk(createOpenAI({ apiKey: 'any', baseURL: responses })('gpt-5.5'), {
      ...(maxOutputTokens !== undefined && { maxOutputTokens }),
    }),
} satisfies Record<string, Make>

/** The requests of a run with this limit, for a model at 1 dollar per million input tokens and 10 per million output tokens. */
async function asked(
  make: Make,
  costUsd: number,
  options: ProviderOptions = {},
  settings: ModelSettings = {},
): Promise<JsonObject> {
  let sent: JsonObject = {}
  provider.replies(({ body }) => {
    sent = body as JsonObject
    return 'Done.'
  })
  const model = make(provider.url, options)
  const price = { inputPerMillion: 1, outputPerMillion: 10 }
  await using harness = new Harness({
    model,
    builtinTools: [],
    settings,
    limits: { costUsd },
    prices: { models: { [model.id]: price } },
  })
  await harness.run('Go.')
  await model.close?.()
  return sent
}

function capOf(body: JsonObject): unknown {
  return body['max_output_tokens'] ?? body['max_completion_tokens'] ?? body['max_tokens']
}

describe('a reply under a cost limit is capped', () => {
  test.each(Object.keys(MODELS) as (keyof typeof MODELS)[])(
    '%s: at the remaining budget, its own limit, or the settings',
    async (name) => {
      const make = MODELS[name]
      // 50,000 micro-dollars, and some 1,100 of them for the input.
      const left = Number(capOf(await asked(make, 0.05)))
      expect(left).toBeGreaterThan(4800)
      expect(left).toBeLessThan(4900)
      expect(capOf(await asked(make, 1, { maxOutputTokens: 3000 }))).toBe(3000)
      expect(capOf(await asked(make, 1, { maxOutputTokens: 3000 }, { maxOutputTokens: 2500 }))).toBe(2500)
      expect(capOf(await asked(make, 1))).toBe(16_384)
    },
  )

  test('anthropic: thoughts that are a number of tokens stay below the cap', async () => {
    const body = await asked(MODELS.anthropic, 0.05, { reasoningEffort: 'high' })
    const { budget_tokens: thought } = body['thinking'] as { budget_tokens: number }
    expect(thought).toBeLessThan(Number(capOf(body)))
    expect(thought).toBeGreaterThan(3000)
  })
})
