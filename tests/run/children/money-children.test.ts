import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { HarnessError } from 'thinharness'
import type { JsonObject, ToolSpec } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import type { ModelRequest, Reply } from 'thinharness/testing'
import { parallelLlm, subagent } from 'thinharness/tools'
import { costOf } from '#run/money/token-cost.js'
import type { Price } from '#run/money/token-cost.js'
import { UNREPORTED_USAGE } from '#contracts/entry.js'
import { harnessOf, tool } from '../../harness/support.js'
import { rounds } from '../../support/length.js'

const CHILDREN = 64
const PRICE: Price = {
  ...{ inputPerMillion: 3, outputPerMillion: 15, cacheReadPerMillion: 0.3, cacheWritePerMillion: 3.75 },
  longCacheWritePerMillion: 6,
}

/** How 64 children behave that always spend the most they may. */
interface Spending {
  /** Micro-dollars. */
  readonly limit: number
  /** Requests of each of them. */
  readonly turns: readonly number[]
  /** How long each lets the others run before it is answered. */
  readonly waits: readonly number[]
  /** Which of them the provider refuses once, for being busy. */
  readonly refused: readonly boolean[]
  readonly maxOutputTokens: number
}

const each = <T>(value: fc.Arbitrary<T>): fc.Arbitrary<T[]> =>
  fc.array(value, { minLength: CHILDREN, maxLength: CHILDREN })
const spending: fc.Arbitrary<Spending> = fc.record({
  limit: fc.integer({ min: 60_000, max: 4_000_000 }),
  turns: each(fc.integer({ min: 1, max: 3 })),
  waits: each(fc.integer({ min: 0, max: 3 })),
  refused: each(fc.boolean()),
  maxOutputTokens: fc.integer({ min: 500, max: 20_000 }),
})

/** Charges a token for every byte that was said, all of it kept for an hour, and as long a reply as was allowed. */
function dearestUsage({ transcript, options, constants }: ModelRequest): NonNullable<Reply['usage']> {
  const said = transcript.flatMap((entry) => (entry.role === 'assistant' ? [] : [entry.content]))
  const inputTokens = Buffer.byteLength(JSON.stringify(said.flat()) + constants.instructions)
  const outputTokens = options.maxOutputTokens ?? Infinity
  return {
    inputTokens,
    outputTokens,
    cacheReadTokens: 0,
    cacheWriteTokens: inputTokens,
    longCacheWriteTokens: inputTokens,
  }
}

/** What such a run was charged by the provider, and what it says that it cost; in micro-dollars. */
async function spent(
  { limit, turns, waits, refused, maxOutputTokens }: Spending,
  by: { readonly tool: ToolSpec; readonly calls: readonly JsonObject[] },
): Promise<{ readonly charged: number; readonly told: number; readonly ended: string }> {
  let charged = 0
  const heard = new Set<number>()
  const charge = (request: ModelRequest): NonNullable<Reply['usage']> => {
    const usage = dearestUsage(request)
    charged += costOf(PRICE, { ...UNREPORTED_USAGE, ...usage }) ?? Infinity
    return usage
  }
  using model = new ScriptedModel().always(async (request) => {
    const { turn, messages } = request
    const prompt = JSON.stringify(messages.find(({ role }) => role === 'user'))
    const child = Number(/child (\d+)/.exec(prompt)?.[1] ?? -1)
    if (child === -1) {
      const calls = by.calls.map((args) => ({ name: by.tool.name, arguments: args }))
      return { ...(turn === 0 ? { calls } : { text: 'Done.' }), usage: { inputTokens: 0, outputTokens: 0 } }
    }
    for (let wait = waits[child] ?? 0; wait > 0; wait--) await new Promise((resolve) => setImmediate(resolve))
    if (refused[child] === true && !heard.has(child)) {
      heard.add(child)
      const error = new HarnessError('provider_error', 'Busy.', { status: 503, retryable: true, retryAfterMs: 0 })
      return { fault: 'error', error }
    }
    const isLast = turn + 1 >= (turns[child] ?? 1) || request.constants.tools.length === 0
    return { ...(isLast ? { text: 'Found.' } : { calls: [{ name: 'look' }] }), usage: charge(request) }
  })
  const run = harnessOf({
    model,
    tools: [by.tool, tool('look')],
    settings: { maxOutputTokens },
    limits: { costUsd: limit / 1e6, modelRequests: 8 },
    prices: { models: { [model.id]: PRICE } },
  }).run('Go.')
  const { usage, ended } = await run.then(
    (result) => ({ usage: result.usage, ended: 'end_turn' }),
    (error: unknown) => {
      if (!(error instanceof HarnessError) || error.run === undefined) throw error
      return { usage: error.run.usage, ended: error.code }
    },
  )
  return { charged, told: Math.round((usage.costUsd ?? 0) * 1e6), ended }
}

const prompts = Array.from({ length: CHILDREN }, (_, index) => `child ${index}`)
const byAgents = {
  tool: subagent({ maxConcurrent: CHILDREN }),
  calls: prompts.map((task): JsonObject => ({ task })),
}
const byBatch = {
  tool: parallelLlm({ maxAttempts: 2 }),
  calls: [{ source: { kind: 'inline', prompts }, max_concurrency: 32 } as JsonObject],
}

describe('a cost limit over 64 children that spend as much as they may', () => {
  test.each([
    ['agents', byAgents],
    ['prompts of a batch', byBatch],
  ])(
    'is not exceeded by %s, and the reported cost is the cost charged',
    async (_who, by) => {
      await fc.assert(
        fc.asyncProperty(spending, async (given) => {
          const { charged, told, ended } = await spent(given, by)
          expect(charged).toBeLessThanOrEqual(given.limit)
          expect(told).toBe(charged)
          expect(['end_turn', 'limit_reached']).toContain(ended)
        }),
        rounds(6, 300),
      )
    },
    3_600_000,
  )

  test('is used up: it admits as many requests as it can pay for', async () => {
    const given = {
      ...{ limit: 2_000_000, maxOutputTokens: 4000 },
      turns: prompts.map(() => 1),
      waits: prompts.map((_, index) => index % 4),
      refused: prompts.map(() => false),
    }
    for (const by of [byAgents, byBatch]) {
      const { charged } = await spent(given, by)
      // A reply of 4000 tokens costs 60,000 micro-dollars; the least that is asked for costs some 40,000.
      expect(charged).toBeGreaterThan(2_000_000 - 60_000)
    }
  })
})
