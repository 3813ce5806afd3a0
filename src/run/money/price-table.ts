import { createRequire } from 'node:module'
import type { ModelPrice, TieredPrices } from '@pydantic/genai-prices'
import type { Answers } from './known-prices.js'
import type { Listed, Price, PriceTier, Rates } from './token-cost.js'

const NOT_LISTED: Listed = { price: null }

/**
 * The price of a model at `timestamp`, from `@pydantic/genai-prices`. Loading that takes 40 ms of CPU and 11 MB, so its answers
 * for the ids that it names itself, at prices that do not change with time, are kept in `known-prices.ts`, and what each id that it
 * knows contains: a name of one's own, such as that of a deployment, has no price there. They count as long as that version of the
 * package is installed.
 */
export async function listed(providerId: string, id: string, timestamp: Date): Promise<Listed> {
  const { knownPrices, VERSION } = await import('./known-prices.js')
  const known = knownPrices()[providerId]
  const answer = known === undefined ? undefined : keptAnswer(known, id)
  return answer !== undefined && isKept(VERSION) ? answer : lookUp(providerId, id, timestamp)
}

/** Undefined if the package has to be asked. */
function keptAnswer({ models, answers, words }: Answers, id: string): Listed | undefined {
  const place = Object.hasOwn(models, id) ? models[id] : undefined
  if (place !== undefined) return answers[place]
  const text = id.toLowerCase()
  return words.some((word) => text.includes(word)) ? undefined : NOT_LISTED
}

/** The answer of the package itself. */
export async function lookUp(providerId: string, id: string, timestamp: Date): Promise<Listed> {
  const { calcPrice } = await import('@pydantic/genai-prices')
  const found = calcPrice({ input_tokens: 1, output_tokens: 1 }, id, { providerId, timestamp })
  // The table also finds providers by a part of their name: a compatible server is not OpenAI.
  if (found?.provider.id !== providerId) return NOT_LISTED
  const { context_window: window } = found.model
  return { price: priceFrom(found.model_price), ...(window !== undefined && { window }) }
}

let keeps: boolean | undefined

/** False if another version of the package is installed, or if it was bundled and its version cannot be found. */
function isKept(version: string): boolean {
  keeps ??= installedVersion() === version
  return keeps
}

function installedVersion(): string | null {
  try {
    const require = createRequire(import.meta.url)
    const file = require.resolve('@pydantic/genai-prices').replace(/dist.index\.\w+$/, 'package.json')
    return (require(file) as { readonly version: string }).version
  } catch {
    return null
  }
}

const FIELDS = {
  inputPerMillion: 'input_mtok',
  outputPerMillion: 'output_mtok',
  cacheReadPerMillion: 'cache_read_mtok',
  cacheWritePerMillion: 'cache_write_mtok',
  longCacheWritePerMillion: 'cache_write_1h_mtok',
  reasoningPerMillion: 'output_reasoning_mtok',
} as const satisfies Record<keyof Rates, string>

/** A price of the table in our form; null if it has none for text. */
function priceFrom(table: ModelPrice): Price | null {
  const base = ratesIn(table, (price) => (typeof price === 'number' ? price : price.base))
  if (base === null) return null
  const starts = Object.values(FIELDS).flatMap((field) => {
    const price = table[field]
    return typeof price === 'object' ? price.tiers.map(({ start }) => start) : []
  })
  const tiers = [...new Set(starts)]
    .sort((a, b) => a - b)
    .flatMap((aboveInputTokens): PriceTier[] => {
      const rates = ratesIn(table, (price) => priceAbove(price, aboveInputTokens))
      return rates === null ? [] : [{ ...rates, aboveInputTokens }]
    })
  return tiers.length === 0 ? base : { ...base, tiers }
}

function ratesIn(table: ModelPrice, rateOf: (price: number | TieredPrices) => number): Rates | null {
  const rates = Object.entries(FIELDS).flatMap(([name, field]) => {
    const price = table[field]
    return price === undefined ? [] : [[name, rateOf(price)] as const]
  })
  const found = Object.fromEntries(rates) as Partial<Rates>
  const { inputPerMillion, outputPerMillion } = found
  if (inputPerMillion === undefined || outputPerMillion === undefined) return null
  return { ...found, inputPerMillion, outputPerMillion }
}

function priceAbove(price: number | TieredPrices, inputTokens: number): number {
  if (typeof price === 'number') return price
  const reached = price.tiers.filter(({ start }) => start <= inputTokens)
  return reached.reduce((highest, tier) => (tier.start > highest.start ? tier : highest), {
    start: -1,
    price: price.base,
  }).price
}
