import { expect, test } from 'vitest'
import { defineExtension, memoryLog } from 'thinharness'
import { anthropic, openai } from 'thinharness/providers'
import { ScriptedModel, scriptedProvider } from 'thinharness/testing'
import { eventsIn } from './resume/pause-support.js'
import { eventsOf, failureOf, harnessOf, kinds, ofKind, tool } from '../harness/support.js'

const PRICE = { inputPerMillion: 1, outputPerMillion: 2 }

test('a tool has a model decide: its choice is typed, counted as the run’s, and stored; a replay asks nobody', async () => {
  const log = memoryLog()
  const chosen: unknown[] = []
  const judge = new ScriptedModel({ id: 'small' }).says('No')
  const look = tool('look', async (_args, { decide }) => {
    const { choice, usage, costUsd } = await decide({
      question: 'Is it late?',
      choices: ['yes', 'no'],
      context: { hour: 9 },
      model: judge,
    })
    chosen.push(choice, usage.inputTokens, costUsd)
    return choice
  })
  const model = new ScriptedModel().calls('look').says('Done.')
  const prices = { models: { 'scripted-1': PRICE, small: { inputPerMillion: 100, outputPerMillion: 200 } } }
  const harness = harnessOf({ model, tools: [look], log, prices, limits: { costUsd: 5 } })
  const { runId, usage } = await harness.run('Go.')
  expect(chosen).toEqual(['no', 10, 0.002])
  expect([usage.modelRequests, usage.inputTokens, usage.costUsd]).toEqual([2, 30, 0.00204])
  const stored = await eventsIn(log, runId)
  expect(ofKind(stored, 'aside')).toMatchObject([{ purpose: 'decide', costUsd: 0.002, choice: 'no' }])
  expect((await harness.replay(stored)).usage.costUsd).toBe(0.00204)
  expect(judge.requests[0]?.constants.tools).toMatchObject([{ name: 'final_result' }])
})

test('hooks, policies and notices decide with the model of the run', async () => {
  const asked: string[] = []
  const model = new ScriptedModel().always(({ constants }) => {
    if (constants.instructions.startsWith('Answer the question')) return { text: '{"choice":"yes"}' }
    return asked.includes('policy') ? { text: 'Done.' } : { calls: [{ name: 'look' }] }
  })
  const question = { question: 'May it?', choices: ['yes', 'no'] } as const
  const extension = defineExtension({
    name: 'asks',
    policy: async (_call, _spec, { decide }) => {
      asked.push('policy')
      return (await decide(question)).choice === 'yes' ? 'allow' : 'deny'
    },
    notices: async ({ decide }) => [{ name: 'may', text: (await decide(question)).choice }],
    hooks: [
      {
        event: 'user_prompt_submit',
        handler: async ({ decide }) => ({ context: `It is ${(await decide(question)).choice}.` }),
      },
    ],
  })
  const stream = harnessOf({ model, tools: [tool('look')], use: [extension] }).stream('Go.')
  const events = await eventsOf(stream)
  expect(ofKind(events, 'aside').map(({ choice }) => choice)).toEqual(['yes', 'yes', 'yes', 'yes'])
  expect(kinds(events)).toMatch(/run_completed$/)
})

test.each(['responses', 'messages'] as const)('a decision is a closed schema of the provider (%s)', async (api) => {
  await using provider = await scriptedProvider()
  provider.calls('look').answers({ choice: 'b' }).says('Done.')
  const options = { apiKey: 'any', baseUrl: provider.url[api] }
  const model = api === 'responses' ? openai('gpt-5.5', options) : anthropic('claude-sonnet-5', options)
  let choice = ''
  const look = tool('look', async (_args, { decide }) => {
    choice = (await decide({ question: 'Which?', choices: ['a', 'b'] })).choice
    return 'ok'
  })
  await harnessOf({ model, tools: [look] }).run('Go.')
  expect(choice).toBe('b')
  expect(JSON.stringify(provider.requests[1]?.body)).toContain('"enum":["a","b"]')
})

test('a decision that could pass the limit of money is not asked; one that fits what is left is paid for, within it', async () => {
  const judge = new ScriptedModel({ id: 'small' }).always(() => ({
    text: 'yes',
    usage: { inputTokens: 900, outputTokens: 1000 },
  }))
  const prices = { models: { 'scripted-1': PRICE, small: { inputPerMillion: 100, outputPerMillion: 200 } } }
  const limited = async (costUsd: number): Promise<{ codes: unknown[]; spent: number | null; asides: number }> => {
    const codes: unknown[] = []
    const look = tool('look', async (_args, { decide }) => {
      const asking = decide({ question: 'Is it late?', choices: ['yes', 'no'], model: judge })
      codes.push(
        await asking.then(
          ({ choice }) => choice,
          (error: unknown) => (error as { code?: unknown }).code,
        ),
      )
      return 'ok'
    })
    const model = new ScriptedModel().calls('look').calls('look').says('Done.')
    const log = memoryLog()
    const { runId, usage } = await harnessOf({ model, tools: [look], log, prices, limits: { costUsd } }).run('Go.')
    return { codes, spent: usage.costUsd, asides: ofKind(await eventsIn(log, runId), 'aside').length }
  }

  expect(await limited(0.1)).toMatchObject({ codes: ['limit_reached', 'limit_reached'], asides: 0 })
  expect(judge.requests).toHaveLength(0)
  // The reservation is for the whole of a reply: after the first decision there is too little left for a second one.
  const { codes, spent, asides } = await limited(0.5)
  expect([codes, asides, judge.requests.length]).toEqual([['yes', 'limit_reached'], 1, 1])
  expect(spent).toBeGreaterThan(0.29)
  expect(spent).toBeLessThanOrEqual(0.5)
})

test('an answer that is no choice is a failure of who asked', async () => {
  const failures: unknown[] = []
  const look = tool('look', async (_args, { decide }) => {
    const asking = decide({ question: 'Which?', choices: ['a', 'b'] })
    failures.push(
      await failureOf(asking.catch((error: unknown) => Promise.reject(Object.assign(error as Error, { run: {} })))),
    )
    return 'ok'
  })
  const model = new ScriptedModel().calls('look').says('perhaps').says('Done.')
  await harnessOf({ model, tools: [look] }).run('Go.')
  expect(failures).toMatchObject([{ code: 'unexpected_model_behavior' }])
})
