import { expect, test } from 'vitest'
import { anthropic } from 'thinharness/providers'
import type { AnthropicOptions } from 'thinharness/providers'
import { openSpending } from '#run/money/open-spending.js'
import type { Price } from '#run/money/token-cost.js'
import type { ModelSettings } from '#core/model-session.js'

const PRICE: Price = { inputPerMillion: 1, outputPerMillion: 0, longCacheWritePerMillion: 100 }

/** What is held for one request, in micro-dollars a token of its input. */
async function heldPerToken(options: AnthropicOptions, settings: ModelSettings): Promise<number> {
  const model = anthropic('claude-sonnet-5', { apiKey: 'k', ...options })
  const spending = await openSpending({
    ...{ model, prices: { unknown: PRICE, models: { [model.id]: PRICE } }, limitUsd: 1, spentUsd: 0, outer: null },
    stop: ({ needed }) => new Error(`${needed}`),
  })
  const constants = { instructions: 'x'.repeat(1_000_000 - 1024 - 9), tools: [], structuredOutput: null, settings }
  const request = { transcript: [], constants, signal: new AbortController().signal }
  const outcome = await spending.reserve(request, null).then(
    () => 'asked',
    (error: unknown) => (error as Error).message,
  )
  return outcome === 'asked' ? 1 : Number(outcome)
}

test.each<[string, AnthropicOptions, ModelSettings, number]>([
  ['by no one', {}, {}, 1],
  ['by the model', { promptCache: { ttl: '1h' } }, {}, 100],
  ['by its fields', { extraBody: { cache_control: { type: 'ephemeral', ttl: '1h' } } }, {}, 100],
  ['by the settings', {}, { providerOptions: { anthropic: { cache_control: { ttl: '1h' } } } }, 100],
  ['perhaps by a model that does not say', { capabilities: { longCacheWrites: true } }, {}, 100],
])('the rate for a one-hour cache is reserved if it is requested: %s', async (_who, options, settings, held) => {
  expect(await heldPerToken(options, settings)).toBeCloseTo(held, 2)
})
