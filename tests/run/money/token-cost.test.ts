import { createRequire } from 'node:module'
import { join } from 'node:path'
import { calcPrice } from '@pydantic/genai-prices'
import fc from 'fast-check'
import { describe, expect, test, vi } from 'vitest'
import { affordableOutput, costBound, costOf, inMicroDollars, withoutLongCaching } from '#run/money/token-cost.js'
import type { Price } from '#run/money/token-cost.js'
import { knownPrices, VERSION } from '#run/money/known-prices.js'
import { priceOf } from '#run/money/find-price.js'
import { listed, lookUp } from '#run/money/price-table.js'
import type { TokenUsage } from '#contracts/entry.js'
import { rounds } from '../../support/length.js'
import { UNREPORTED_USAGE } from '#contracts/entry.js'

const NONE = { models: {} }

const PRICE: Price = {
  inputPerMillion: 3,
  outputPerMillion: 15,
  cacheReadPerMillion: 0.3,
  cacheWritePerMillion: 3.75,
  tiers: [{ aboveInputTokens: 1000, inputPerMillion: 6, outputPerMillion: 22.5 }],
}

const LONG: Price = { ...PRICE, longCacheWritePerMillion: 6 }

function usage(inputTokens: number | null, outputTokens: number | null, more: Partial<TokenUsage> = {}): TokenUsage {
  return { ...UNREPORTED_USAGE, inputTokens, outputTokens, ...more }
}

const count = fc.integer({ min: 0, max: 2_000_000 })
const rate = fc.integer({ min: 0, max: 100_000 }).map((thousandths) => thousandths / 1000)
const price: fc.Arbitrary<Price> = fc.record({
  inputPerMillion: rate,
  outputPerMillion: rate,
  cacheReadPerMillion: rate,
  cacheWritePerMillion: rate,
  longCacheWritePerMillion: rate,
  reasoningPerMillion: rate,
  tiers: fc.array(fc.record({ aboveInputTokens: count, inputPerMillion: rate, outputPerMillion: rate }), {
    maxLength: 3,
  }),
})

describe('the cost of a reply', () => {
  test.each<[string, Price, TokenUsage, number | null]>([
    ['input and output', PRICE, usage(10, 5), 105],
    ['input from the cache', PRICE, usage(100, 0, { cacheReadTokens: 90 }), 57],
    ['input into the cache', PRICE, usage(100, 0, { cacheWriteTokens: 40 }), 330],
    [
      'input into the cache for an hour, at its own rate',
      LONG,
      usage(100, 0, { cacheWriteTokens: 40, longCacheWriteTokens: 30 }),
      398,
    ],
    ['the same where it has none', PRICE, usage(100, 0, { cacheWriteTokens: 40, longCacheWriteTokens: 30 }), 330],
    ['more for an hour than was written', LONG, usage(10, 0, { cacheWriteTokens: 5, longCacheWriteTokens: 50 }), 45],
    ['more cached than there is', PRICE, usage(10, 0, { cacheReadTokens: 100 }), 3],
    ['a fraction of a micro-dollar is a whole one', PRICE, usage(1, 0, { cacheReadTokens: 1 }), 1],
    ['no rounding where nothing is left over', { inputPerMillion: 1.1, outputPerMillion: 0 }, usage(10, 0), 11],
    ['up to a tier', PRICE, usage(1000, 1), 3015],
    ['above a tier, as a whole', PRICE, usage(1001, 2), 6051],
    ['thoughts at their own rate', { ...PRICE, reasoningPerMillion: 40 }, usage(0, 5, { reasoningTokens: 2 }), 125],
    ['thoughts as other output', PRICE, usage(0, 5, { reasoningTokens: 2 }), 75],
    ['nothing said of the input', PRICE, usage(null, 5), null],
    ['nothing said of the output', PRICE, usage(5, null), null],
  ])('%s', (_name, price, tokens, cost) => {
    expect(costOf(price, tokens)).toBe(cost)
  })

  test('is never more than the bound of its request, whatever was cached', () => {
    fc.assert(
      fc.property(
        price,
        count,
        count,
        fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 6 }),
        (of, input, output, shares) => {
          const part = (index: number, whole: number): number => Math.floor((shares[index] ?? 0) * whole)
          const [inputTokens, outputTokens] = [part(0, input), part(1, output)]
          const cacheReadTokens = part(2, inputTokens)
          const cacheWriteTokens = part(3, inputTokens - cacheReadTokens)
          const longCacheWriteTokens = part(5, cacheWriteTokens)
          const tokens = {
            ...UNREPORTED_USAGE,
            inputTokens,
            outputTokens,
            cacheReadTokens,
            cacheWriteTokens,
            longCacheWriteTokens,
            reasoningTokens: part(4, outputTokens),
          }
          expect(costOf(of, tokens)).toBeLessThanOrEqual(costBound(of, input, output))
        },
      ),
    )
  })

  test('without a one-hour cache, its rate does not count', () => {
    const tiered = { ...LONG, tiers: LONG.tiers!.map((tier) => ({ ...tier, longCacheWritePerMillion: 12 })) }
    expect([costBound(tiered, 100, 0), costBound(withoutLongCaching(tiered), 100, 0)]).toEqual([600, 375])
    expect([costBound(tiered, 2000, 0), costBound(withoutLongCaching(tiered), 2000, 0)]).toEqual([24_000, 12_000])
    expect(withoutLongCaching({ inputPerMillion: 1, outputPerMillion: 2 })).toEqual({
      inputPerMillion: 1,
      outputPerMillion: 2,
    })
  })

  test('an output that is affordable fits, and one token more does not', () => {
    fc.assert(
      fc.property(price, count, fc.integer({ min: 0, max: 50_000_000 }), (of, input, micros) => {
        const output = affordableOutput(of, input, micros)
        if (output === Number.MAX_SAFE_INTEGER) return
        if (costBound(of, input, 0) > micros) expect(output).toBe(0)
        else {
          expect(costBound(of, input, output)).toBeLessThanOrEqual(micros)
          expect(costBound(of, input, output + 1)).toBeGreaterThan(micros)
        }
      }),
    )
  })

  test.each([
    [0.29, 290_000],
    [1.1, 1_100_000],
    [0.0000019, 1],
    [0, 0],
    [123.456789, 123_456_789],
  ])('$%d is %d micro-dollars', (dollars, micros) => {
    expect(inMicroDollars(dollars)).toBe(micros)
  })
})

describe('the price of a model', () => {
  test.each([
    ['openai', 'gpt-5.5'],
    ['anthropic', 'claude-sonnet-5'],
    ['anthropic', 'claude-opus-4-5-20251101'],
    ['openrouter', 'anthropic/claude-sonnet-4.5'],
  ])('of %s:%s equals the value of the price table, to the micro-dollar', async (provider, id) => {
    const price = await priceOf({ provider, id })
    const small = fc.integer({ min: 0, max: 600_000 })
    fc.assert(
      fc.property(small, small, small, small, small, (inputTokens, outputTokens, cached, wrote, long) => {
        const cacheReadTokens = Math.min(cached, inputTokens)
        const cacheWriteTokens = Math.min(wrote, inputTokens - cacheReadTokens)
        const longCacheWriteTokens = Math.min(long, cacheWriteTokens)
        const cache = { cacheReadTokens, cacheWriteTokens, longCacheWriteTokens }
        const tokens = usage(inputTokens, outputTokens, cache)
        const table = calcPrice(
          {
            input_tokens: inputTokens,
            output_tokens: outputTokens,
            cache_read_tokens: cacheReadTokens,
            cache_write_tokens: cacheWriteTokens,
            cache_write_1h_tokens: longCacheWriteTokens,
          },
          id,
          { providerId: provider },
        )
        expect(costOf(price!, tokens)! - table!.total_price * 1e6).toBeGreaterThan(-0.001)
        expect(costOf(price!, tokens)! - table!.total_price * 1e6).toBeLessThan(1.001)
      }),
    )
  })

  const given = { inputPerMillion: 1, outputPerMillion: 2 }
  const SMALL = { inputPerMillion: 1.25, outputPerMillion: 10, cacheReadPerMillion: 0.125 }
  test.each([
    ['its own name before all', { models: { 'openai:gpt-5.5': given, 'gpt-5.5': PRICE } }, 'gpt-5.5', given],
    ['the name without a provider', { models: { 'gpt-5.5': given } }, 'gpt-5.5', given],
    ['the ceiling, where nothing is known', { unknown: given }, 'gpt-none', given],
    ['the table, where there is a ceiling', { unknown: PRICE }, 'gpt-5', SMALL],
    ['none', {}, 'gpt-none', null],
    ['no member of every object', { models: {} }, 'constructor', null],
  ])('is %s', async (_name, prices, id, expected) => {
    expect(await priceOf({ provider: 'openai', id }, prices)).toEqual(expected)
  })

  test.each(['openai-compatible', 'my-openai', 'local', ''])(
    'of the provider %j is none, whatever its models are called',
    async (provider) => {
      expect(await priceOf({ provider, id: 'gpt-5' })).toBeNull()
    },
  )

  test.each([
    ['ai-sdk:openai.responses', 'openai', 'gpt-5'],
    ['ai-sdk:anthropic.messages', 'anthropic', 'claude-sonnet-5'],
    ['openai-chat', 'openai', 'gpt-5'],
  ])('of %s is that of %s', async (provider, own, id) => {
    const price = await priceOf({ provider, id })
    expect(price).not.toBeNull()
    expect(price).toEqual(await priceOf({ provider: own, id }))
  })
})

describe('prices that are kept', () => {
  const kept = Object.entries(knownPrices()).flatMap(([provider, { models } = NONE]) =>
    Object.keys(models).map((id) => ({ provider, id })),
  )
  const when = fc.date({ min: new Date('2020-01-01'), max: new Date('2040-01-01'), noInvalidDate: true })

  test('are the answers of the price package, at any time', async () => {
    expect(kept.length).toBeGreaterThan(500)
    const one = fc.constantFrom(...kept)
    const check = async ({ provider, id }: (typeof kept)[number], at: Date): Promise<void> => {
      expect(await listed(provider, id, at)).toEqual(await lookUp(provider, id, at))
    }
    await fc.assert(fc.asyncProperty(one, when, check), rounds(1000))
  })

  test('include that a name of one’s own has none, for which the package is not loaded', async () => {
    vi.doMock('@pydantic/genai-prices', () => {
      throw new Error('The package was loaded.')
    })
    try {
      expect(await listed('openai', 'bench-t0', new Date())).toEqual({ price: null })
      await expect(listed('openai', 'gpt-none', new Date())).rejects.toThrow()
    } finally {
      vi.doUnmock('@pydantic/genai-prices')
    }
  })

  test('say so of no name that the package knows', async () => {
    const part = fc.string({ unit: 'grapheme-ascii', maxLength: 4 })
    const dated = fc.constantFrom('', '-20250807', '-2025-08-07', '-tts', '@latest')
    const known = fc.tuple(part, fc.constantFrom(...kept), dated).map(([before, { provider, id }, after]) => {
      return { provider, id: `${before}${id}${after}` }
    })
    const other = fc.record({ provider: fc.constantFrom(...kept.map(({ provider }) => provider)), id: fc.string() })
    const cut = fc.tuple(fc.constantFrom(...kept), fc.nat(8), fc.nat(8)).map(([{ provider, id }, from, to]) => {
      return { provider, id: id.slice(from, id.length - to).toUpperCase() }
    })
    const check = async ({ provider, id }: (typeof kept)[number], at: Date): Promise<void> => {
      expect(await listed(provider, id, at), `${provider}:${id}`).toEqual(await lookUp(provider, id, at))
    }
    await fc.assert(fc.asyncProperty(fc.oneof(known, other, cut), when, check), rounds(1000))
  })

  test('are of the installed version', () => {
    const require = createRequire(import.meta.url)
    const file = join(require.resolve('@pydantic/genai-prices'), '../../package.json')
    expect(require(file)).toMatchObject({ version: VERSION })
  })

  test.each([
    ['openai', 'gpt-5'],
    ['anthropic', 'claude-sonnet-4-5-20250929'],
    ['openrouter', 'openai/gpt-4o'],
  ])('include %s:%s', (provider, id) => {
    expect(kept).toContainEqual({ provider, id })
  })
})
