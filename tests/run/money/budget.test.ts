import { describe, expect, test } from 'vitest'
import { Budget, Harness, memoryLog } from 'thinharness'
import type { Prices } from 'thinharness'
import type { BatchProgress } from '#harness/map-rows.js'
import { ScriptedModel } from 'thinharness/testing'
import { failureOf, harnessOf, tool } from '../../harness/support.js'

/** A dollar for each token of a reply; input is free. */
const PRICES: Prices = { unknown: { inputPerMillion: 0, outputPerMillion: 1_000_000 } }
const settings = { maxOutputTokens: 10 }

const reply = (outputTokens: number) => ({ usage: { inputTokens: 1, outputTokens } })

describe('a budget', () => {
  test('is shared by any number of runs, which never exceed it together', async () => {
    const budget = new Budget({ costUsd: 25, spentUsd: 1 })
    let most = 0
    const model = new ScriptedModel().always(async () => {
      await Promise.resolve()
      most = Math.max(most, budget.spent)
      return { text: 'Done.', ...reply(6) }
    })
    const harness = harnessOf({ model, prices: PRICES, settings })
    const other = harnessOf({ model, prices: PRICES, settings, budget })
    const runs = [0, 1, 2, 3, 4, 5].map((index) =>
      index % 2 === 0 ? harness.run('Go.', { budget }) : other.run('Go.', {}),
    )
    const ended = await Promise.allSettled(runs)
    expect(ended.filter(({ status }) => status === 'fulfilled')).toHaveLength(3)
    expect([budget.costUsd, budget.spent, budget.left]).toEqual([25, 19, 6])
    expect(most).toBeLessThanOrEqual(25)
    const error = await failureOf(other.run('Go.'))
    expect([error.code, error.message]).toEqual([
      'limit_reached',
      'The budget of $25 is used up: with the next request, $29 would be needed.',
    ])
  })

  test('counts child runs', async () => {
    const budget = new Budget({ costUsd: 100 })
    using helper = new ScriptedModel({ id: 'helper' }).says('Found.', reply(4))
    using model = new ScriptedModel().calls('ask', {}, reply(2)).says('Done.', reply(3))
    const ask = tool('ask', async (_args, ctx) => (await ctx.spawn({ prompt: 'Look.', model: helper }).result).text)
    await harnessOf({ model, tools: [ask], prices: PRICES, settings }).run('Go.', { budget })
    expect(budget.spent).toBe(9)
  })

  test('counts a run that pauses and continues once', async () => {
    const budget = new Budget({ costUsd: 100 })
    using model = new ScriptedModel().calls('pay', {}, reply(2)).says('Done.', reply(3))
    const pay = tool('pay', () => 'ok', { requiresApproval: true })
    const harness = harnessOf({ model, tools: [pay], prices: PRICES, settings, budget })
    const { runId, pending } = await harness.run('Go.')
    expect(budget.spent).toBe(2)
    await harness.resume(runId, [{ callId: pending[0]?.callId ?? '', approved: true }])
    expect(budget.spent).toBe(5)
  })

  test('needs a known price, also with `prices: false`', async () => {
    const budget = new Budget({ costUsd: 1 })
    for (const options of [{}, { prices: false as const }]) {
      const error = await failureOf(harnessOf({ model: new ScriptedModel(), ...options }).run('Go.', { budget }))
      expect(error.code).toBe('invalid_options')
      expect(error.message).toContain('the budget cannot be kept: no price is known for `scripted:scripted-1`.')
    }
  })

  test.each([[{}], [{ costUsd: -1 }], [{ costUsd: 1, spentUsd: Number.NaN }], [{ costUsd: 1, spend: 1 }], [5]])(
    'is refused for %j',
    (settings) => {
      // @ts-expect-error not the settings of a budget
      expect(() => new Budget(settings)).toThrow(expect.objectContaining({ code: 'invalid_options' }))
    },
  )

  test('must be a `Budget`', () => {
    // @ts-expect-error not a budget
    expect(() => new Harness({ budget: { costUsd: 1 } })).toThrow('Expected `budget` of `Harness` to be a `Budget`')
  })
})

describe('a batch with a budget', () => {
  test('stops beginning rows once it is used up, keeps completed work and says so', async () => {
    const log = memoryLog()
    const model = new ScriptedModel().always(() => ({ text: 'Done.', ...reply(6) }))
    const harness = harnessOf({ model, prices: PRICES, settings, log })
    const rows = Array.from({ length: 100 }, (_, index) => index)
    const toRun = (item: number) => ({ prompt: 'Go.', runId: `row_${item}` })
    const budget = new Budget({ costUsd: 60 })
    let last: BatchProgress | undefined
    const options = { concurrency: 3, budget, onProgress: (now: BatchProgress) => void (last = now) }
    const ended: string[] = []
    for await (const row of harness.map(rows, toRun, options))
      ended.push(row.status === 'failed' ? row.error.message : row.status)
    expect(ended.slice(0, 9)).toEqual(Array.from({ length: 9 }, () => 'completed'))
    expect(ended.slice(9)).toEqual(
      ended.slice(9).map(() => 'The budget of $60 is used up: with the next request, $64 would be needed.'),
    )
    expect(ended.length).toBeLessThanOrEqual(12)
    expect(last).toMatchObject({ done: ended.length, failed: ended.length - 9, costUsd: 54, stopped: 'budget' })
    const rest = new Budget({ costUsd: 100, spentUsd: budget.spent })
    for await (const { status } of harness.map(rows, toRun, { budget: rest, ifExists: 'retry' })) ended.push(status)
    expect(rest.spent).toBe(96)
    expect(ended.filter((status) => status === 'completed')).toHaveLength(9 + 16)
  })
})

describe('costs', () => {
  test('are reported by default if the price is known, in the result and in each reply', async () => {
    const model = new ScriptedModel({ provider: 'anthropic', id: 'claude-sonnet-4-5' }).always({
      text: 'Done.',
      usage: { inputTokens: 1_000_000, outputTokens: 100 },
    })
    const harness = harnessOf({ model })
    const { usage } = await harness.run('Go.')
    expect(usage.costUsd).toBeGreaterThan(1)
    expect(usage.byModel['anthropic:claude-sonnet-4-5']?.costUsd).toBe(usage.costUsd)
    expect((await harnessOf({ model, prices: false }).run('Go.')).usage.costUsd).toBeNull()
  })
})
