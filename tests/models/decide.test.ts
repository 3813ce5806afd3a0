import { describe, expect, test } from 'vitest'
import { Budget } from 'thinharness'
import { decide } from 'thinharness/models'
import { openai } from 'thinharness/providers'
import { ScriptedModel, scriptedProvider } from 'thinharness/testing'
import { failureOf } from '../harness/support.js'

const PRICES = { models: { small: { inputPerMillion: 100, outputPerMillion: 200 } } }
const asked = { question: 'Is it late?', choices: ['yes', 'no'], context: { hour: 9 } } as const
const small = (): ScriptedModel => new ScriptedModel({ id: 'small' })

describe('a decision outside of runs', () => {
  test('is one of the choices by its type, with its usage and its cost', async () => {
    const { choice, usage, costUsd } = await decide(small().says('No'), { ...asked, prices: PRICES })
    const typed: 'yes' | 'no' = choice
    expect([typed, usage.inputTokens, costUsd]).toEqual(['no', 10, 0.002])
  })

  test('is paid from a budget, and not asked for once that has not enough left', async () => {
    const [model, budget] = [small().says('yes'), new Budget({ costUsd: 0.6 })]
    await decide(model, { ...asked, budget, prices: PRICES })
    expect(budget.spent).toBe(0.002)
    const few = new Budget({ costUsd: 0.01 })
    const error = await failureOf(decide(model, { ...asked, budget: few, prices: PRICES }))
    expect([error.code, few.spent, model.requests.length]).toEqual(['limit_reached', 0, 1])
    expect(error.message).toContain('The budget of $0.01 has not enough left for `decide`')
  })

  test('is a closed schema of the provider, and the answer of a real adapter is read', async () => {
    await using provider = await scriptedProvider()
    provider.answers({ choice: 'b' })
    const model = openai('gpt-5.5', { apiKey: 'any', baseUrl: provider.url.responses })
    expect((await decide(model, { question: 'Which?', choices: ['a', 'b'] })).choice).toBe('b')
    expect(JSON.stringify(provider.requests[0]?.body)).toContain('"enum":["a","b"]')
  })

  test.each<[string, () => Promise<unknown>, string, RegExp]>([
    ['another answer', () => decide(small().says('Perhaps'), asked), 'unexpected_model_behavior', /one of `yes`, `no`/],
    ['one choice', () => decide(small(), { ...asked, choices: ['yes'] }), 'invalid_options', /at least two texts/],
    ['an unknown option', () => decide(small(), { ...asked, buget: 1 } as never), 'invalid_options', /`budget`/],
    ['no model', () => decide(7 as never, asked), 'invalid_options', /Expected a candidate to be a model/],
  ])('%s rejects', async (_, call, code, message) => {
    const error = await failureOf(call())
    expect(error.code).toBe(code)
    expect(error.message).toMatch(message)
  })

  test('an abort ends it', async () => {
    const reason = new Error('Enough.')
    const signal = AbortSignal.abort(reason)
    await expect(decide(small(), { ...asked, signal })).rejects.toBe(reason)
  })
})
