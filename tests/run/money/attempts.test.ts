import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Harness, HarnessError } from 'thinharness'
import type { AssistantPart, Model, ModelSession, StreamEvent, TokenUsage, TurnOptions } from 'thinharness'
import { anthropic, openai, openaiChat, openrouter } from 'thinharness/providers'
import type { ProviderOptions } from 'thinharness/providers'
import { scriptedProvider } from 'thinharness/testing'
import { NO_TOKENS } from '#contracts/entry.js'
import { costOf } from '#run/money/token-cost.js'
import type { Price } from '#run/money/token-cost.js'
import { failureOf, harnessOf, ofKind, told, tool } from '../../harness/support.js'
import { rounds } from '../../support/length.js'

const MODELS = ['cheap', 'middle', 'dear'] as const
type Name = (typeof MODELS)[number]
const PRICES: Readonly<Record<Name, Price>> = {
  cheap: { inputPerMillion: 0.1, outputPerMillion: 0.4 },
  middle: { inputPerMillion: 1, outputPerMillion: 5, cacheWritePerMillion: 1.25 },
  dear: { inputPerMillion: 15, outputPerMillion: 75 },
}
const CAP = 1000

/** How one attempt goes. */
interface Step {
  readonly model: Name
  readonly ends: 'refused' | 'broken_off' | 'never_settled' | 'answered'
  readonly status: number
  /** The share of what it may say. */
  readonly share: number
}

interface Answer {
  readonly steps: readonly Step[]
  /** The last attempt of the request ends like this. */
  readonly ends: 'says' | 'calls' | 'fails'
}

const step: fc.Arbitrary<Step> = fc.record({
  model: fc.constantFrom(...MODELS),
  ends: fc.constantFrom('refused', 'broken_off', 'never_settled', 'answered'),
  status: fc.constantFrom(400, 429, 500, 529),
  share: fc.double({ min: 0, max: 1, noNaN: true }),
})
const life = fc.record({
  limit: fc.integer({ min: 0, max: 400_000 }),
  answers: fc.array(
    fc.record({
      steps: fc.array(step, { minLength: 1, maxLength: 4 }),
      ends: fc.constantFrom('says', 'calls', 'calls', 'fails'),
    }),
    { minLength: 1, maxLength: 6 },
  ),
  listed: fc.boolean(),
})

interface Tried {
  readonly model: Name
  readonly usage: TokenUsage
}

/** A model made of three, which follows a script and counts what its providers have charged, in micro-dollars. */
class Composed implements Model {
  readonly provider = 'composed'
  readonly id = 'cheap'
  readonly capabilities = { maxOutputTokens: CAP }
  readonly candidates: Model['candidates']
  charged = 0
  readonly #answers: Answer[]

  constructor(answers: readonly Answer[], listed: boolean) {
    this.#answers = [...answers]
    const leaves = MODELS.map((id) => ({ provider: 'composed', id, capabilities: this.capabilities }))
    this.candidates = listed ? leaves : undefined
  }

  openSession(): ModelSession {
    return {
      turn: async (transcript, constants, options) => {
        const { steps, ends } = this.#answers.shift() ?? { steps: [], ends: 'fails' }
        const inputTokens = Buffer.byteLength(JSON.stringify(transcript) + constants.instructions) / 4
        let last: Tried | null = null
        for (const each of steps) last = await this.#try(each, Math.floor(inputTokens), options)
        if (last === null || ends === 'fails') throw new HarnessError('provider_error', 'All have failed.')
        const parts: AssistantPart[] = [
          ends === 'says'
            ? { type: 'text', text: 'Done.' }
            : { type: 'tool_call', callId: 'c', name: 'look', arguments: '{}' },
        ]
        const finishReason = ends === 'says' ? 'stop' : 'tool_calls'
        return { entry: { role: 'assistant', parts, provider: 'composed', finishReason, ...last } }
      },
    }
  }

  /** The provider charges as much as it may. Null: it gave no reply. */
  async #try(
    { model, ends, status, share }: Step,
    inputTokens: number,
    { attempt }: TurnOptions,
  ): Promise<Tried | null> {
    const { maxOutputTokens, settle } = (await attempt?.({ provider: 'composed', model })) ?? {
      settle: () => undefined,
    }
    const outputTokens = Math.floor((maxOutputTokens ?? CAP) * share)
    const usage = { ...NO_TOKENS, inputTokens, outputTokens }
    if (ends !== 'refused') this.charged += costOf(PRICES[model], usage) ?? Infinity
    if (ends === 'refused') settle(share > 0.5 ? NO_TOKENS : null, { failure: 'overloaded', status })
    if (ends === 'broken_off') settle(null, { failure: 'connection', withdrawn: share > 0.5 })
    if (ends === 'answered') settle(usage, { status: 200 })
    return ends === 'answered' ? { model, usage } : null
  }
}

/** The amounts of all attempts, in micro-dollars, by the events; a reply without a list has one. */
function attemptsIn(events: readonly StreamEvent[]): number {
  return events.reduce((sum, event) => {
    if (event.kind !== 'model_message' && event.kind !== 'run_failed') return sum
    const { attempts = [] } = event
    if (event.kind === 'model_message' && attempts.length === 0) return sum + (event.cost ?? NaN)
    return sum + attempts.reduce((all, { costUsd }) => all + Math.round((costUsd ?? NaN) * 1e6), 0)
  }, 0)
}

test('a limit of money is never passed, and the attempts add up to the cost of the run, whatever fails, breaks off or is repeated', async () => {
  await fc.assert(
    fc.asyncProperty(life, async ({ limit, answers, listed }) => {
      const model = new Composed(answers, listed)
      const harness = new Harness({
        model,
        tools: [tool('look')],
        builtinTools: [],
        limits: { costUsd: limit / 1e6 },
        prices: { models: Object.fromEntries(MODELS.map((name) => [`composed:${name}`, PRICES[name]])) },
      })
      const { events, thrown } = await told(harness.stream('Go.'))
      const [completed] = ofKind(events, 'run_completed')
      const usage = completed?.usage ?? (thrown as HarnessError).run?.usage
      const said = Math.round((usage?.costUsd ?? 0) * 1e6)
      expect(model.charged).toBeLessThanOrEqual(limit)
      expect(said).toBeLessThanOrEqual(limit)
      expect(said).toBeGreaterThanOrEqual(model.charged)
      expect(attemptsIn(events)).toBe(said)
      const byModel = Object.values(usage?.byModel ?? {})
      expect(byModel.reduce((sum, { costUsd }) => sum + Math.round((costUsd ?? 0) * 1e6), 0)).toBe(said)
    }),
    rounds(150, 2000),
  )
})

const PRICE: Price = { inputPerMillion: 1, outputPerMillion: 2 }

const WIRES: Readonly<Record<string, (options: ProviderOptions, url: Urls) => Model>> = {
  responses: (options, url) => openai('gpt-5.5', { ...options, baseUrl: url.responses }),
  chat: (options, url) => openaiChat('gpt-4.1', { ...options, baseUrl: url.chat }),
  openrouter: (options, url) => openrouter('x/y', { ...options, baseUrl: url.openrouter }),
  messages: (options, url) => anthropic('claude-sonnet-5', { ...options, baseUrl: url.messages }),
}
type Urls = Awaited<ReturnType<typeof scriptedProvider>>['url']

test.each(Object.keys(WIRES))(
  'each repetition of a request is an attempt with its own cost: a refusal is free, a broken reply costs what was reserved (%s)',
  async (wire) => {
    await using provider = await scriptedProvider()
    provider
      .fails(429, { headers: { 'retry-after': '0' } })
      .breaks('truncate')
      .says('Done.')
    const model = WIRES[wire]?.({ apiKey: 'any', maxOutputTokens: CAP }, provider.url) as Model
    const { events } = await told(
      harnessOf({ model, limits: { costUsd: 1 }, prices: { unknown: PRICE, models: { [model.id]: PRICE } } }).stream(
        'Go.',
        {
          deltas: true,
        },
      ),
    )
    const [message] = ofKind(events, 'model_message')
    const named = { provider: model.provider, model: model.id }
    expect(message?.attempts).toMatchObject([
      { ...named, failure: 'rate_limit', status: 429, costUsd: 0, withdrawn: false },
      { ...named, status: null },
      { ...named, failure: null, status: 200, costUsd: (costOf(PRICE, message?.entry.usage ?? NO_TOKENS) ?? 0) / 1e6 },
    ])
    // The whole reply is reserved, and more than it can have of input.
    expect(message?.attempts?.[1]?.costUsd).toBeGreaterThan((2 * CAP) / 1e6)
    const [completed] = ofKind(events, 'run_completed')
    expect(attemptsIn(events)).toBe(Math.round((completed?.usage.costUsd ?? 0) * 1e6))
  },
)

test('a run that fails says which attempts it made, and what they cost', async () => {
  await using provider = await scriptedProvider()
  provider.fails(529, { headers: { 'retry-after': '0' } }).fails(401)
  const model = anthropic('claude-sonnet-5', { apiKey: 'any', baseUrl: provider.url.messages })
  const { events, thrown } = await told(harnessOf({ model }).stream('Go.'))
  const attempts = [
    { failure: 'overloaded', status: 529 },
    { failure: 'auth', status: 401 },
  ]
  expect(ofKind(events, 'run_failed')).toMatchObject([{ failure: 'auth', attempts }])
  expect(thrown).toMatchObject({ failure: 'auth' })
})

test('a limit needs the prices of all models that may answer', async () => {
  const [model, prices] = [new Composed([], true), { models: { cheap: PRICES.cheap, dear: PRICES.dear } }]
  const failure = await failureOf(harnessOf({ model, prices, limits: { costUsd: 1 } }).run('Go.'))
  expect(failure).toMatchObject({ code: 'invalid_options' })
  expect(failure.message).toContain('composed:middle')
})

test('an attempt that could pass the limit is refused as such, and a cheaper model may still be asked', async () => {
  const refused: unknown[] = []
  const capabilities = { maxOutputTokens: CAP }
  const leaves = (['dear', 'cheap'] as const).map((id) => ({ provider: 'composed', id, capabilities }))
  const usage = { ...NO_TOKENS, inputTokens: 10, outputTokens: 10 }
  const model: Model = {
    ...{ provider: 'composed', id: 'dear', capabilities, candidates: leaves },
    openSession: () => ({
      turn: async (_view, _constants, { attempt }) => {
        await attempt?.({ provider: 'composed', model: 'dear' }).catch((error: unknown) => refused.push(error))
        const paid = await attempt?.({ provider: 'composed', model: 'cheap' })
        paid?.settle(usage)
        const text = String(paid?.maxOutputTokens)
        const entry = { role: 'assistant', parts: [{ type: 'text', text }], finishReason: 'stop', usage } as const
        return { entry: { ...entry, provider: 'composed', model: 'cheap' } }
      },
    }),
  }
  const prices = { models: { dear: PRICES.dear, cheap: PRICES.cheap } }
  const { text, usage: used } = await harnessOf({ model, prices, limits: { costUsd: 0.01 } }).run('Go.')
  expect(refused).toMatchObject([{ code: 'limit_reached' }])
  expect([text, used.costUsd]).toEqual([String(CAP), 5e-6])
})
