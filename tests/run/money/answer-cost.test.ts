import { describe, expect, test } from 'vitest'
import { Budget, Harness } from 'thinharness'
import type { HarnessOptions, Model } from 'thinharness'
import { openaiCompatible } from 'thinharness/providers'
import { UNREPORTED_USAGE } from '#contracts/entry.js'

interface Answer {
  readonly provider?: string
  readonly model?: string
  readonly responseModel?: string
}

/** A model of the host, a million tokens of input for each reply, that names who has answered. */
function modelOf({ provider = 'mine', model = 'cheap', responseModel }: Answer): Model {
  return {
    provider: 'mine',
    id: 'cheap',
    capabilities: { maxOutputTokens: 100 },
    openSession: () => ({
      turn: async () => ({
        entry: {
          role: 'assistant',
          parts: [{ type: 'text', text: 'Done.' }],
          ...{ provider, model, finishReason: 'stop' },
          usage: { ...UNREPORTED_USAGE, inputTokens: 1_000_000, outputTokens: 0 },
        },
        ...(responseModel !== undefined && { responseModel }),
      }),
    }),
  }
}

const rate = (inputPerMillion: number) => ({ inputPerMillion, outputPerMillion: 0 })
const MODELS = { cheap: rate(1), dear: rate(10), 'other:cheap': rate(7) }

async function costOf(answer: Answer, options: HarnessOptions = {}): Promise<number | null> {
  const harness = new Harness({ model: modelOf(answer), builtinTools: [], prices: { models: MODELS }, ...options })
  return (await harness.run('Go.')).usage.costUsd
}

describe('a reply is billed at the price of the model that answered', () => {
  test.each<[string, Answer, number | null]>([
    ['no other name', {}, 1],
    ['another model in its entry', { model: 'dear' }, 10],
    ['another provider in its entry', { provider: 'other' }, 7],
    ['another model as its own name', { responseModel: 'dear' }, 10],
    ['a version of the model', { responseModel: 'cheap-20260101' }, 1],
    ['another model whose name begins alike', { responseModel: 'cheap-pro' }, 1],
    ['a model that nobody knows', { model: 'nobody' }, null],
  ])('if it names %s', async (_what, answer, cost) => {
    expect(await costOf(answer)).toBe(cost)
  })

  test('also one that costs more than the name it was asked under', async () => {
    const models = { ...MODELS, 'cheap-pro': rate(30) }
    expect(await costOf({ responseModel: 'cheap-pro' }, { prices: { models } })).toBe(30)
  })

  test('within a budget, which has nothing left then', async () => {
    const budget = new Budget({ costUsd: 2 })
    const harness = new Harness({
      model: modelOf({ model: 'dear' }),
      builtinTools: [],
      prices: { models: MODELS },
      budget,
    })
    await harness.run('Go.')
    expect([budget.spent, budget.left]).toEqual([10, 0])
    await expect(harness.run('Go.')).rejects.toMatchObject({ code: 'limit_reached' })
  })

  test('within a limit at what was reserved, if the price of who answered is unknown', async () => {
    const harness = new Harness({
      ...{ model: modelOf({ model: 'nobody' }), builtinTools: [] },
      ...{ prices: { models: { cheap: { inputPerMillion: 1, outputPerMillion: 1000 } } }, limits: { costUsd: 5 } },
    })
    const { usage } = await harness.run('Go.')
    expect(usage.costUsd).toBeGreaterThan(0.1)
  })
})

describe('the tokens of a reply', () => {
  const usageOf = async (usage: object) => {
    const body = { choices: [{ index: 0, message: { content: 'Done.' }, finish_reason: 'stop' }], usage }
    const model = openaiCompatible('m', { baseUrl: 'http://any.invalid/v1', fetch: async () => Response.json(body) })
    return (await new Harness({ model, builtinTools: [], limits: {} }).run('Go.')).usage
  }
  const details = { completion_tokens_details: { reasoning_tokens: 2809 } }

  test('are those of the thoughts too, if the server counts them beside the output', async () => {
    const given = { prompt_tokens: 10_120, completion_tokens: 1499, ...details }
    expect(await usageOf({ ...given, total_tokens: 14_428 })).toMatchObject({
      outputTokens: 4308,
      reasoningTokens: 2809,
    })
    expect(await usageOf(given)).toMatchObject({ outputTokens: 4308 })
  })

  test('include the thoughts already, if the total says so', async () => {
    const given = { prompt_tokens: 10_120, completion_tokens: 4308, ...details, total_tokens: 14_428 }
    expect(await usageOf(given)).toMatchObject({ outputTokens: 4308, reasoningTokens: 2809 })
  })

  test('are written to a cache, whatever the field is called', async () => {
    const given = { prompt_tokens: 1000, completion_tokens: 10, cache_creation_input_tokens: 700 }
    expect(await usageOf({ ...given, cache_read_input_tokens: 200 })).toMatchObject({
      ...{ inputTokens: 1000, cacheWriteTokens: 700, cacheReadTokens: 200 },
    })
    const beside = { ...given, prompt_tokens: 100 }
    expect(await usageOf(beside)).toMatchObject({ inputTokens: 800, cacheWriteTokens: 700 })
  })
})
