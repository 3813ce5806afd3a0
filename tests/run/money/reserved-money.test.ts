import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { costBound, costOf } from '#run/money/token-cost.js'
import type { Price } from '#run/money/token-cost.js'
import { ReservedMoney } from '#run/money/reserved-money.js'
import type { Hold, Shortage } from '#run/money/reserved-money.js'
import { Spending } from '#run/money/spending.js'
import type { RequestConstants } from '#core/model-session.js'
import type { UserEntry } from '#contracts/entry.js'
import { rounds } from '../../support/length.js'
import { NO_TOKENS } from '#contracts/entry.js'

const NEVER = new AbortController().signal

function held(answer: Hold | Shortage): Hold {
  if ('needed' in answer) throw new Error(`Expected a hold, got ${JSON.stringify(answer)}.`)
  return answer
}

/** What has been answered by now; null while it waits. */
async function now<T>(promise: Promise<T>): Promise<T | null> {
  await Promise.resolve()
  return Promise.race([promise, Promise.resolve(null)])
}

describe('reserved money', () => {
  test('holds, settles and gives the rest back', async () => {
    const money = new ReservedMoney(100)
    const hold = held(await money.hold({ most: 60, least: 60 }, NEVER))
    hold.settle(10)
    hold.settle(10)
    expect(money.spent).toBe(10)
    expect(held(await money.hold({ most: 90, least: 90 }, NEVER)).amount).toBe(90)
  })

  test('returns the rest if it suffices, and reports the shortage if it does not', async () => {
    const money = new ReservedMoney(100, { spent: 70 })
    held(await money.hold({ most: 60, least: 20 }, NEVER)).settle(25)
    expect(await money.hold({ most: 60, least: 20 }, NEVER)).toEqual({ limit: 100, needed: 115, isBudget: false })
  })

  test('queues, in order, requests that need money others hold', async () => {
    const money = new ReservedMoney(100)
    const first = held(await money.hold({ most: 80, least: 80 }, NEVER))
    const second = money.hold({ most: 50, least: 50 }, NEVER)
    const third = money.hold({ most: 50, least: 50 }, NEVER)
    expect(await now(second)).toBeNull()
    first.settle(30)
    const got = held(await second)
    expect(await now(third)).toBeNull()
    got.settle(50)
    expect(await third).toEqual({ limit: 100, needed: 130, isBudget: false })
  })

  test('forgets one that is aborted while it waits', async () => {
    const money = new ReservedMoney(100)
    const first = held(await money.hold({ most: 100, least: 100 }, NEVER))
    const abort = new AbortController()
    const waiting = money.hold({ most: 50, least: 50 }, abort.signal)
    abort.abort(new Error('Enough.'))
    await expect(waiting).rejects.toThrow('Enough.')
    await expect(money.hold({ most: 1, least: 1 }, abort.signal)).rejects.toThrow('Enough.')
    first.settle(0)
    expect(held(await money.hold({ most: 100, least: 100 }, NEVER)).amount).toBe(100)
  })

  test("of a child takes from its parent's, and each keeps its own limit", async () => {
    const parent = new ReservedMoney(100)
    const [child, other] = [new ReservedMoney(40, { outer: parent }), new ReservedMoney(null, { outer: parent })]
    expect(await child.hold({ most: 50, least: 41 }, NEVER)).toEqual({ limit: 40, needed: 41, isBudget: false })
    held(await child.hold({ most: 40, least: 40 }, NEVER)).settle(40)
    expect(await other.hold({ most: 70, least: 61 }, NEVER)).toEqual({ limit: 100, needed: 101, isBudget: false })
    expect([parent.spent, child.spent, other.spent]).toEqual([40, 40, 0])
    expect(held(await other.hold({ most: 70, least: 10 }, NEVER)).amount).toBe(60)
  })
})

const CONSTANTS: RequestConstants = { instructions: '', tools: [], structuredOutput: null, settings: {} }
const PRICE: Price = { inputPerMillion: 3, outputPerMillion: 15, cacheReadPerMillion: 0.3, cacheWritePerMillion: 3.75 }
const STOPPED = new Error('stopped')

/** How children behave that ask for as long as they are let. */
interface Children {
  readonly limit: number
  readonly settings: RequestConstants['settings']
  /** Requests of each of the 64. */
  readonly requests: readonly number[]
  /** Length of what they say. */
  readonly lengths: readonly number[]
  readonly ownLimit: number | null
}

const MODEL = { provider: 'p', model: 'm', price: PRICE, modelCap: undefined, cachesLong: true }

const children: fc.Arbitrary<Children> = fc.record({
  limit: fc.integer({ min: 0, max: 3_000_000 }),
  settings: fc.oneof(fc.constant({}), fc.record({ maxOutputTokens: fc.integer({ min: 1, max: 40_000 }) })),
  requests: fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 64, maxLength: 64 }),
  lengths: fc.array(fc.integer({ min: 0, max: 4000 }), { minLength: 4, maxLength: 8 }),
  ownLimit: fc.oneof(fc.constant(null), fc.integer({ min: 0, max: 500_000 })),
})

/** Runs 64 children at once that spend the most they may; gives what the provider charged, and their money. */
async function spendAll({ limit, settings, requests, lengths, ownLimit }: Children): Promise<[number, ReservedMoney]> {
  const parent = new ReservedMoney(limit)
  const constants = { ...CONSTANTS, settings }
  let charged = 0
  const child = async (count: number, index: number): Promise<void> => {
    const money = new ReservedMoney(ownLimit, { outer: parent })
    const spending = new Spending(money, {
      candidates: [MODEL],
      find: async () => MODEL,
      costOfTurn: async ({ entry }) => costOf(PRICE, entry.usage),
      stop: () => STOPPED,
    })
    const text = 'x'.repeat(lengths[index % lengths.length] ?? 0)
    const transcript: UserEntry[] = [{ role: 'user', id: 'e1', at: '', content: [{ type: 'text', text }] }]
    for (let turn = 0; turn < count; turn++) {
      const request = { transcript, constants, signal: NEVER }
      const { maxOutputTokens: cap, settle } = await spending.reserve(request, turn % 2 === 0 ? null : MODEL)
      for (let wait = (index * 7 + turn) % 5; wait > 0; wait--) await Promise.resolve()
      // A token a byte, all of it written to the cache, and as long an answer as is allowed.
      const inputTokens = transcript.length * text.length + 1024 + 30 * transcript.length
      const usage = { ...NO_TOKENS, inputTokens, outputTokens: cap, cacheWriteTokens: inputTokens }
      charged += costOf(PRICE, usage) ?? 0
      expect(charged).toBeLessThanOrEqual(limit)
      const entry = { role: 'assistant', parts: [], finishReason: 'stop', ...MODEL, usage } as const
      expect(await settle({ entry })).toBe(costOf(PRICE, usage))
      spending.measure(request, entry)
    }
  }
  const ended = await Promise.allSettled(requests.map(child))
  for (const end of ended) if (end.status === 'rejected' && end.reason !== STOPPED) throw end.reason
  return [charged, parent]
}

describe('the money of 64 children that spend the most they may', () => {
  test('is never passed, and settled to the micro-dollar', async () => {
    await fc.assert(
      fc.asyncProperty(children, async (run) => {
        const [charged, money] = await spendAll(run)
        expect(charged).toBeLessThanOrEqual(run.limit)
        expect(money.spent).toBe(charged)
      }),
      rounds(60, 10_000),
    )
  }, 3_600_000)

  test('is spent: the rest is too little for one more request', async () => {
    const all = { settings: {}, lengths: [10], ownLimit: null, requests: Array.from({ length: 64 }, () => 4) }
    const [charged, money] = await spendAll({ ...all, limit: 2_000_000 })
    const least = costBound(PRICE, 1024 + 1024 + 10 + 64, 2048)
    expect(2_000_000 - charged).toBeLessThan(least)
    expect(money.spent).toBe(charged)
  })
})
