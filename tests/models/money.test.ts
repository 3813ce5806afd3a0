import { NO_TOKENS } from '#contracts/entry.js'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Budget, Harness, HarnessError } from 'thinharness'
import type { AssistantPart, Model, ModelSession, TokenUsage, TurnOptions } from 'thinharness'
import { cached, fallback, limited, memoryCache, route } from 'thinharness/models'
import { webSearch } from 'thinharness/providers'
import { costOfReply } from '#run/money/hosted-cost.js'
import type { Price } from '#run/money/token-cost.js'
import { told, tool } from '../harness/support.js'
import { rounds } from '../support/length.js'

const PRICES = {
  cheap: { inputPerMillion: 0.1, outputPerMillion: 0.4, hostedPerCall: { web_search: 0.004 } },
  thinks: { inputPerMillion: 1, outputPerMillion: 5, reasoningPerMillion: 9 },
  caches: { inputPerMillion: 3, outputPerMillion: 15, cacheReadPerMillion: 0.3, cacheWritePerMillion: 3.75 },
  dear: {
    inputPerMillion: 15,
    outputPerMillion: 75,
    longCacheWritePerMillion: 30,
    hostedPerCall: { web_search: 0.02 },
  },
} as const satisfies Readonly<Record<string, Price>>
type Name = keyof typeof PRICES
const NAMES = Object.keys(PRICES) as readonly Name[]
const CAP = 1000

/** How one attempt at a request goes. Shares are of what it may use. */
interface Outcome {
  readonly ends: 'answered' | 'calls' | 'refused' | 'broken_off' | 'at_fault'
  readonly output: number
  readonly thought: number
  readonly written: number
  readonly read: number
  /** Searches of the provider within the reply, each of up to 4,000 tokens. */
  readonly searched: number
}

// Doubles of fast-check are nearly always tiny.
const share = fc.integer({ min: 0, max: 100 }).map((percent) => percent / 100)
const outcome: fc.Arbitrary<Outcome> = fc.record({
  ends: fc.constantFrom('answered', 'answered', 'calls', 'refused', 'broken_off', 'at_fault'),
  ...{ output: share, thought: share, written: share, read: share, searched: share },
})

/** The providers of a simulation: they charge for what they are asked, in micro-dollars. */
class Providers {
  charged = 0
  searches = 0
  readonly #outcomes: Outcome[]
  #calls = 0

  constructor(outcomes: readonly Outcome[]) {
    this.#outcomes = [...outcomes]
  }

  /** `paysItself` false: it makes no attempts of its own, as models of users do. */
  model(id: Name, paysItself: boolean): Model {
    const turn: ModelSession['turn'] = async (transcript, constants, options) => {
      const bytes = Buffer.byteLength(JSON.stringify(transcript) + constants.instructions)
      return this.#ask(
        { id, promptTokens: Math.floor(bytes / 4), isQuestion: constants.tools.length > 1 },
        options,
        paysItself,
      )
    }
    return {
      provider: 'sim',
      id,
      capabilities: { maxOutputTokens: CAP, hostedTools: ['web_search'] },
      openSession: () => ({ turn }),
    }
  }

  async #ask(
    {
      id,
      promptTokens,
      isQuestion,
    }: { readonly id: Name; readonly promptTokens: number; readonly isQuestion: boolean },
    { attempt, maxOutputTokens }: TurnOptions,
    paysItself: boolean,
  ): ReturnType<ModelSession['turn']> {
    const paid = paysItself ? await attempt?.({ provider: 'sim', model: id }) : undefined
    const { ends, output, thought, written, read, searched } = this.#outcomes.shift() ?? END
    const searches = isQuestion ? Math.floor(searched * (MOST_SEARCHES + 0.99)) : 0
    const inputTokens = promptTokens + Math.floor(searches * searched * 4000)
    const most = Math.min(paid?.maxOutputTokens ?? CAP, maxOutputTokens ?? CAP)
    const outputTokens = Math.floor(most * output)
    const cacheReadTokens = Math.floor(inputTokens * read * 0.5)
    const cacheWriteTokens = Math.floor((inputTokens - cacheReadTokens) * written)
    const usage: TokenUsage = {
      ...NO_TOKENS,
      ...{ inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens, longCacheWriteTokens: cacheWriteTokens },
      reasoningTokens: Math.floor(outputTokens * thought),
      ...(searches > 0 && { hostedCalls: { web_search: searches } }),
    }
    if (ends !== 'refused' && ends !== 'at_fault') {
      this.charged += costOfReply({ price: PRICES[id], provider: 'sim' }, usage) ?? Infinity
      this.searches += searches
    }
    if (ends === 'answered' || ends === 'calls') {
      paid?.settle(usage, { status: 200 })
      const callId = `c${(this.#calls += 1)}`
      const isCall = ends === 'calls' && isQuestion
      const part: AssistantPart = isCall
        ? { type: 'tool_call', callId, name: 'look', arguments: '{}' }
        : { type: 'text', text: output > 0.5 ? 'yes' : 'no' }
      const finishReason = isCall ? 'tool_calls' : 'stop'
      return { entry: { role: 'assistant', parts: [part], provider: 'sim', model: id, finishReason, usage } }
    }
    const failure = ends === 'at_fault' ? 'invalid' : ends === 'refused' ? 'overloaded' : 'connection'
    const status = ends === 'broken_off' ? {} : { status: ends === 'refused' ? 529 : 400 }
    paid?.settle(null, { failure, ...status })
    throw new HarnessError('provider_error', 'It failed.', { failure, ...status })
  }
}

const END: Outcome = { ends: 'answered', output: 0.1, thought: 0, written: 0, read: 0, searched: 0 }
const MOST_SEARCHES = 3

const simulation = fc.record({
  outcomes: fc.array(outcome, { minLength: 1, maxLength: 30 }),
  budget: fc.oneof(fc.integer({ min: 0, max: 600_000 }), fc.integer({ min: 0, max: 4_000_000 })),
  prompts: fc.array(fc.constantFrom('What is it?', 'what is it', 'Please, what is it?', 'Other.'), {
    minLength: 3,
    maxLength: 8,
  }),
  order: fc.shuffledSubarray([...NAMES], { minLength: 2 }),
  selfPaying: fc.boolean(),
  shape: fc.constantFrom('cached(fallback)', 'fallback(cached)', 'route(cached)', 'limited(cached)'),
  together: fc.boolean(),
})

let [hits, searches] = [0, 0]

test('a budget is never passed with fallbacks, caches, confirmations, searches of providers, thoughts and cache writes, and all that providers charge is counted', async () => {
  const free = { retries: 1, maxWaitMs: 0 }
  const embed = Object.assign((texts: readonly string[]) => Promise.resolve(texts.map(() => [1, 1])), { model: 'one' })
  await fc.assert(
    fc.asyncProperty(simulation, async ({ outcomes, budget: micro, prompts, order, selfPaying, shape, together }) => {
      const providers = new Providers(outcomes)
      const [first, ...others] = order.map((name) => providers.model(name, selfPaying))
      if (first === undefined) return
      const semantic = { embed, threshold: 0.5, confirm: providers.model('cheap', selfPaying) }
      const keep = (inner: Model): Model =>
        cached(inner, { store: memoryCache(), toolCalls: true, normalise: true, semantic })
      const model = {
        'cached(fallback)': () => keep(fallback([first, ...others], free)),
        'fallback(cached)': () => fallback([keep(first), ...others], free),
        'route(cached)': () =>
          route({ main: keep(first), other: fallback(others, free) }, ({ turn }) => (turn > 1 ? 'other' : 'main')),
        'limited(cached)': () => limited(keep(first), { concurrency: 2 }),
      }[shape]()
      const budget = new Budget({ costUsd: micro / 1e6 })
      const prices = { models: Object.fromEntries(NAMES.map((name) => [`sim:${name}`, PRICES[name]])) }
      const beside = {
        tools: [tool('look'), tool('see'), webSearch({ maxUses: MOST_SEARCHES })],
        builtinTools: [],
        limits: { modelRequests: 4 },
      }
      const harness = new Harness({ model, budget, prices, ...beside })
      const play = async (prompt: string): Promise<void> => {
        const { events } = await told(harness.stream(prompt))
        for (const event of events) if (event.kind === 'model_message' && event.cached === true) hits += 1
      }
      if (together) await Promise.all(prompts.map(play))
      else for (const prompt of prompts) await play(prompt)
      searches += providers.searches
      expect(providers.charged).toBeLessThanOrEqual(micro)
      const spent = Math.round(budget.spent * 1e6)
      expect(spent).toBeLessThanOrEqual(micro)
      expect(spent).toBeGreaterThanOrEqual(providers.charged)
    }),
    rounds(120, 500),
  )
  expect(hits).toBeGreaterThan(50)
  expect(searches).toBeGreaterThan(50)
}, 60_000)
