import { describe, expect, test } from 'vitest'
import { Harness, memoryLog, priceRun } from 'thinharness'
import type { DurableEvent, HarnessOptions, Limits, Model, Prices } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { eventsOf, failureOf, harnessOf, ofKind, tool } from '../../harness/support.js'

/** $1 a million tokens of input, $10 of output: a micro-dollar and ten of them a token. */
const PRICES: Prices = {
  models: { 'scripted-1': { inputPerMillion: 1, outputPerMillion: 10, cacheReadPerMillion: 0.1 } },
}
const SETTINGS = { maxOutputTokens: 3000 }

function pricedOf(options: HarnessOptions): Harness {
  return harnessOf({ prices: PRICES, settings: SETTINGS, ...options })
}

describe('the cost of a run', () => {
  test('is in its usage, by model, with cached and reasoning tokens, and in each reply', async () => {
    using model = new ScriptedModel()
      .calls('a', {}, { usage: { inputTokens: 1000, outputTokens: 20, cacheReadTokens: 900, reasoningTokens: 5 } })
      .says('Done.', { usage: { inputTokens: 2000, outputTokens: 3 } })
    const stream = pricedOf({ model, tools: [tool('a')] }).stream('Go.')
    const events = await eventsOf(stream)
    const { usage } = await stream.result
    const sums = {
      inputTokens: 3000,
      outputTokens: 23,
      cacheReadTokens: 900,
      cacheWriteTokens: 0,
      reasoningTokens: 5,
      costUsd: 0.00242,
    }
    expect(usage).toMatchObject({ ...sums, byModel: { 'scripted:scripted-1': { ...sums, modelRequests: 2 } } })
    expect(ofKind(events, 'model_message').map(({ cost }) => cost)).toEqual([390, 2030])
  })

  test('is null without prices, for an unknown price, and for a reply without token counts', async () => {
    using model = new ScriptedModel().says('One.').says('Two.').says('Three.', { usage: null })
    expect((await harnessOf({ model }).run('Go.')).usage.costUsd).toBeNull()
    expect((await harnessOf({ model, prices: {} }).run('Go.')).usage.costUsd).toBeNull()
    expect((await pricedOf({ model }).run('Go.')).usage.costUsd).toBeNull()
  })

  test('includes the cost of its children, by their models', async () => {
    using helper = new ScriptedModel({ id: 'helper' }).says('Found.', { usage: { inputTokens: 50, outputTokens: 0 } })
    using model = new ScriptedModel().calls('ask', {}, { usage: { inputTokens: 10, outputTokens: 0 } }).says('Done.', {
      usage: { inputTokens: 20, outputTokens: 0 },
    })
    const ask = tool('ask', async (_args, ctx) => (await ctx.spawn({ prompt: 'Look.', model: helper }).result).text)
    const prices = { ...PRICES, unknown: { inputPerMillion: 2, outputPerMillion: 2 } }
    const { usage } = await pricedOf({ model, tools: [ask], prices }).run('Go.')
    expect(usage).toMatchObject({
      costUsd: 0.00013,
      byModel: {
        'scripted:scripted-1': { costUsd: 0.00003 },
        'scripted:helper': { costUsd: 0.0001, modelRequests: 1 },
      },
    })
  })
})

describe('a cost limit', () => {
  test.each([[{}], [{ prices: { models: { other: { inputPerMillion: 1, outputPerMillion: 1 } } } }]])(
    'rejects a model without a known price, before the first request, with %j',
    async (options) => {
      using model = new ScriptedModel()
      const error = await failureOf(harnessOf({ model, limits: { costUsd: 1 }, ...options }).run('Go.'))
      expect(error.code).toBe('invalid_options')
      expect(error.message).toContain('`limits.costUsd` cannot be kept: no price is known for `scripted:scripted-1`.')
      expect(model.heard).toEqual([])
    },
  )

  test('uses the configured ceiling for an unknown price', async () => {
    using model = new ScriptedModel().says('Done.', { usage: { inputTokens: 10, outputTokens: 1 } })
    const unknown = { inputPerMillion: 5, outputPerMillion: 50 }
    const { usage } = await harnessOf({ model, limits: { costUsd: 1 }, prices: { unknown } }).run('Go.')
    expect(usage.costUsd).toBe(0.0001)
  })

  test('reserves the maximum cost of a request, caps the reply at the rest, and sends no request that could exceed it', async () => {
    const caps: (number | undefined)[] = []
    using model = new ScriptedModel()
      .replies(({ options }) => {
        caps.push(options.maxOutputTokens)
        return { calls: [{ name: 'a' }], usage: { inputTokens: 1000, outputTokens: 1000 } }
      })
      .replies(({ options }) => {
        caps.push(options.maxOutputTokens)
        return { calls: [{ name: 'a' }], usage: { inputTokens: 2000, outputTokens: options.maxOutputTokens ?? 0 } }
      })
    const breaches: unknown[] = []
    const harness = pricedOf({
      model,
      tools: [tool('a')],
      limits: { costUsd: 0.04 },
      hooks: [
        { event: 'limit_reached', handler: ({ limitKind, limitValue }) => void breaches.push([limitKind, limitValue]) },
      ],
    })
    const error = await failureOf(harness.run('Go.'))
    expect(error.code).toBe('limit_reached')
    expect(error.message).toMatch(/^The run reached its limit: cost_usd=0\.04 \(0\.0\d+ would be needed\)\.$/)
    expect(breaches).toEqual([['cost_usd', 0.04]])
    // 11,000 micro-dollars are spent; of the other 29,000 the input takes some 2,200.
    expect(caps[0]).toBe(3000)
    expect(caps[1]).toBeGreaterThan(2600)
    expect(caps[1]).toBeLessThan(2700)
    expect(error.run.usage.costUsd).toBeLessThanOrEqual(0.04)
  })

  test('charges the maximum for a reply without token counts', async () => {
    using model = new ScriptedModel().says('Done.', { usage: null })
    const { usage } = await pricedOf({ model, limits: { costUsd: 1 } }).run('Go.')
    expect(usage.costUsd).toBeGreaterThan(0.03)
    expect(usage.costUsd).toBeLessThan(0.04)
  })

  test('charges a reply that costs more than its reservation in full, and ends the run', async () => {
    using model = new ScriptedModel().calls('a', {}, { usage: { inputTokens: 0, outputTokens: 9000 } })
    const run = pricedOf({ model, tools: [tool('a')], limits: { costUsd: 0.05 } }).run('Go.')
    const error = await failureOf(run)
    expect([error.code, error.run.usage.costUsd]).toEqual(['limit_reached', 0.09])
  })

  test('is shared with concurrent children: 64 of them never exceed it', async () => {
    const limit = 0.5
    let spent = 0
    const model = ScriptedModel.each((first) => {
      const script = new ScriptedModel()
      if (first.heard.kind === 'start' && String(first.heard.prompt).startsWith('Go.')) {
        return script.calls('fan', {}, { usage: { inputTokens: 1, outputTokens: 1 } }).replies(() => 'Done.')
      }
      for (let turn = 0; turn < 3; turn++) {
        script.replies(async ({ options, transcript }) => {
          await new Promise((resolve) => setImmediate(resolve))
          const usage = { inputTokens: transcript.length, outputTokens: options.maxOutputTokens ?? 0 }
          spent += usage.inputTokens + 10 * usage.outputTokens
          expect(spent).toBeLessThanOrEqual(limit * 1e6)
          return { calls: [{ name: 'a' }], usage }
        })
      }
      return script
    })
    const fan = tool('fan', async (_args, ctx) => {
      const runs = Array.from({ length: 64 }, () => ctx.spawn({ prompt: 'Work.', tools: [tool('a')] }).result)
      const ended = await Promise.allSettled(runs)
      return ended.every(({ status }) => status === 'rejected') ? 'all stopped' : 'some ended'
    })
    const error = await failureOf(pricedOf({ model, tools: [fan], limits: { costUsd: limit } }).run('Go.'))
    expect(error.code).toBe('limit_reached')
    expect(error.run.usage.costUsd).toBe((spent + 11) / 1e6)
    expect(limit - Number(error.run.usage.costUsd)).toBeLessThan(0.03)
  })

  test('is rebuilt from the log: a resumed run has the remaining budget', async () => {
    const log = memoryLog()
    const asking = { ...tool('ask', () => 'ok'), requiresApproval: true }
    using model = new ScriptedModel()
      .calls('ask', {}, { usage: { inputTokens: 0, outputTokens: 2000 } })
      .replies(({ options }) => {
        expect(options.maxOutputTokens).toBeLessThan(2900)
        return { text: 'Done.', usage: { inputTokens: 0, outputTokens: 1 } }
      })
    const options = { model, tools: [asking], log, limits: { costUsd: 0.05 } }
    const paused = await pricedOf(options).run('Go.')
    const answers = [{ callId: paused.pending[0]!.callId, approved: true }]
    const result = await pricedOf(options).resume(paused.resumeState!, answers)
    expect(result.usage.costUsd).toBe(0.02001)
  })

  test('includes the spending of a child before a pause, when it continues in another process', async () => {
    const log = memoryLog()
    const asking = { ...tool('ask', () => 'ok'), requiresApproval: true }
    const helper = new ScriptedModel()
      .calls('ask', {}, { usage: { inputTokens: 0, outputTokens: 2500 } })
      .replies(({ options }) => {
        expect(options.maxOutputTokens).toBeLessThan(2500)
        return { text: 'Found.', usage: { inputTokens: 0, outputTokens: 1 } }
      })
    using model = new ScriptedModel()
      .calls('delegate', {}, { usage: { inputTokens: 0, outputTokens: 0 } })
      .says('Done.', { usage: { inputTokens: 0, outputTokens: 0 } })
    const delegate = tool(
      'delegate',
      async (_args, ctx) => (await ctx.spawn({ prompt: 'Look.', model: helper, tools: [asking] }).result).text,
      { onUnknownOutcome: 'retry' },
    )
    const prices = { unknown: { inputPerMillion: 1, outputPerMillion: 10 } }
    const options = { model, tools: [delegate], log, limits: { costUsd: 0.05 }, prices }
    const paused = await pricedOf(options).run('Go.')
    const answers = [{ callId: paused.pending[0]!.callId, approved: true }]
    const { usage } = await pricedOf(options).resume(paused.resumeState!, answers)
    expect(usage.costUsd).toBe(0.02501)
    helper.assertDone()
  })

  test('a child stopped under a model that ignores signals leaves nothing reserved', async () => {
    const turn = (): Promise<never> => new Promise(() => undefined)
    const deaf: Model = { provider: 'p', id: 'deaf', capabilities: {}, openSession: () => ({ turn }) }
    using model = new ScriptedModel().calls('delegate').says('Done.')
    const delegate = tool('delegate', async (_args, ctx) => {
      const child = ctx.spawn({ prompt: 'Look.', model: deaf, limits: { timeMs: 30 } })
      await child.result.catch(() => undefined)
      return 'It took too long.'
    })
    const prices = { unknown: { inputPerMillion: 1, outputPerMillion: 10 } }
    const harness = pricedOf({ model, tools: [delegate], limits: { costUsd: 0.08 }, prices })
    expect((await harness.run('Go.')).text).toBe('Done.')
  })

  test.each<[string, HarnessOptions, string]>([
    [
      'a negative limit',
      { limits: { costUsd: -1 } },
      'Expected `limits.costUsd` of `Harness` to be US dollars from 0 up or `null`, got `-1`.',
    ],
    [
      'a limit of text',
      { limits: { costUsd: '1' } as unknown as Limits },
      'Expected `limits.costUsd` of `Harness` to be US dollars from 0 up or `null`, got the string `1`.',
    ],
    [
      'an unknown member',
      { prices: { model: {} } as Prices },
      'Unknown option of `Harness`: `prices.model`. Did you mean `models`?',
    ],
    [
      'a price without a rate',
      { prices: { unknown: { inputPerMillion: 1 } } as Prices },
      'Expected `prices.unknown.outputPerMillion` of `Harness` to be US dollars from 0 up, got nothing.',
    ],
    [
      'a tier without its threshold',
      {
        prices: {
          models: {
            m: { inputPerMillion: 1, outputPerMillion: 1, tiers: [{ inputPerMillion: 1, outputPerMillion: 1 }] },
          },
        } as unknown as Prices,
      },
      'Expected `prices.models.m.tiers[0].aboveInputTokens` of `Harness` to be a whole number from 0 up, got nothing.',
    ],
  ])('rejects %s', (_name, options, message) => {
    expect(() => new Harness(options)).toThrow(expect.objectContaining({ code: 'invalid_options', message }) as Error)
  })
})

describe('repricing a finished run', () => {
  const price = { inputPerMillion: 2, outputPerMillion: 4 }

  async function recorded(): Promise<{ all: DurableEvent[]; log: ReturnType<typeof memoryLog> }> {
    const log = memoryLog()
    const reply = { usage: { inputTokens: 10, outputTokens: 1 } }
    using model = new ScriptedModel().calls('ask', {}, reply).says('Found.', reply).says('Done.', { usage: null })
    const ask = tool('ask', async (_args, ctx) => (await ctx.spawn({ prompt: 'Look.' }).result).text)
    const events = await eventsOf(harnessOf({ model, tools: [ask], log }).stream('Go.', { runId: 'run_1' }))
    return { all: events.filter((event) => event.durable), log }
  }

  test('counts each reply once, children by their events or by the sums of their calls', async () => {
    const { all, log } = await recorded()
    const expected = { costUsd: 0.000048, modelRequests: 3, unreported: 1 }
    expect(await priceRun(all, 'other:big', { prices: { models: { 'other:big': price } } })).toEqual(expected)
    expect(await priceRun(log.read({ kind: 'run', id: 'run_1' }), 'other:big', { prices: { unknown: price } })).toEqual(
      expected,
    )
  })

  test('uses the known price of a model, and rejects one without', async () => {
    const { all } = await recorded()
    expect(await priceRun(all, 'openai:gpt-5')).toMatchObject({ costUsd: 0.000046 })
    const message = 'No price is known for `openai:none`: give it in `prices`.'
    await expect(priceRun(all, 'openai:none')).rejects.toMatchObject({ code: 'invalid_options', message })
  })
})
