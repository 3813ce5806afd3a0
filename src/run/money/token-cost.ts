import type { TokenUsage } from '#contracts/entry.js'

/** Price of a million tokens, in US dollars. */
export interface Rates {
  readonly inputPerMillion: number
  readonly outputPerMillion: number
  /** Input that comes from the provider's cache. Default: as other input. */
  readonly cacheReadPerMillion?: number | undefined
  /** Input that is written to the cache. Default: as other input. */
  readonly cacheWritePerMillion?: number | undefined
  /** Input that is written to the cache to be kept for an hour. Default: as other input that is written to it. */
  readonly longCacheWritePerMillion?: number | undefined
  /** Thoughts. Default: as other output. */
  readonly reasoningPerMillion?: number | undefined
}

/** The price of a model. A tier holds for the whole of a request with more input tokens than it names. */
export interface Price extends Rates {
  /** US dollars of a call that the provider executes, by tool: `{ web_search: 0.01 }`. Default: the list price of the provider. */
  readonly hostedPerCall?: Readonly<Record<string, number>> | undefined
  /** In a batch. Default: half of each. */
  readonly batch?: Rates | undefined
  readonly tiers?: readonly PriceTier[] | undefined
}

export interface PriceTier extends Rates {
  readonly aboveInputTokens: number
}

/** A model in the table of prices. */
export interface Listed {
  /** Null if the table has no price for text. */
  readonly price: Price | null
  /** In tokens; undefined if the table has none. */
  readonly window?: number
}

/** Micro-dollars in a dollar: amounts are whole micro-dollars, so that sums are exact. */
const MICRO = 1_000_000

/** Rounded down: a limit is never passed by rounding. */
export function inMicroDollars(dollars: number): number {
  // A multiple of a micro-dollar that no float is, such as 0.29, is not taken for less.
  return Math.floor(Number((dollars * MICRO).toPrecision(15)))
}

/** The price of the same model in a batch. */
export function batchPrice({ batch, tiers = [], ...price }: Price): Price {
  return batch ?? { ...halved(price), tiers: tiers.map(halved) }
}

function halved<R extends Rates>(rates: R): R {
  const halves = Object.entries(rates).map(([name, rate]: [string, unknown]) => {
    return [name, name.endsWith('PerMillion') && typeof rate === 'number' ? rate / 2 : rate]
  })
  return Object.fromEntries(halves) as R
}

/**
 * Cost of a reply, in whole micro-dollars, rounded up; null if the provider did not report its tokens. Dollars per million
 * tokens are micro-dollars per token: as whole pico-dollars, products with tokens are exact.
 */
export function costOf(listed: Price, usage: TokenUsage, batch = false): number | null {
  const price = batch ? batchPrice(listed) : listed
  const { inputTokens, outputTokens } = usage
  if (inputTokens === null || outputTokens === null) return null
  // The tier with the highest threshold that the request is above.
  let rates: Rates = price
  let threshold = -1
  for (const tier of price.tiers ?? []) {
    if (inputTokens <= tier.aboveInputTokens || tier.aboveInputTokens <= threshold) continue
    rates = tier
    threshold = tier.aboveInputTokens
  }
  const read = Math.min(usage.cacheReadTokens ?? 0, inputTokens)
  const written = Math.min(usage.cacheWriteTokens ?? 0, inputTokens - read)
  const long = Math.min(usage.longCacheWriteTokens ?? 0, written)
  const thought = Math.min(usage.reasoningTokens ?? 0, outputTokens)
  const { inputPerMillion: input, outputPerMillion: output } = rates
  const write = rates.cacheWritePerMillion ?? input
  return Math.ceil(
    ((inputTokens - read - written) * Math.round(input * MICRO) +
      read * Math.round((rates.cacheReadPerMillion ?? input) * MICRO) +
      (written - long) * Math.round(write * MICRO) +
      long * Math.round((rates.longCacheWritePerMillion ?? write) * MICRO) +
      (outputTokens - thought) * Math.round(output * MICRO) +
      thought * Math.round((rates.reasoningPerMillion ?? output) * MICRO)) /
      MICRO,
  )
}

/** The most that a request can cost, in micro-dollars: nothing comes from a cache, and the reply is as long as it may be. */
export function costBound(price: Price, inputTokens: number, outputTokens: number): number {
  const { input, output } = highestRates(price, inputTokens)
  return wholeMicros(inputTokens * input + outputTokens * output)
}

/** The same price without caching for an hour. */
export function withoutLongCaching({ longCacheWritePerMillion: _, ...price }: Price): Price {
  const tiers = price.tiers?.map(({ longCacheWritePerMillion: _, ...tier }) => tier)
  return tiers === undefined ? price : { ...price, tiers }
}

/** How many tokens of output `microDollars` pay for at least, after that much input. */
export function affordableOutput(price: Price, inputTokens: number, microDollars: number): number {
  const { input, output } = highestRates(price, inputTokens)
  const left = microDollars * MICRO - inputTokens * input
  if (left < 0) return 0
  return output === 0 ? Number.MAX_SAFE_INTEGER : Math.floor(left / output)
}

/** The highest rates that up to so much input can be charged at, in pico-dollars a token. */
function highestRates(price: Price, inputTokens: number): { readonly input: number; readonly output: number } {
  const tiers = (price.tiers ?? []).filter(({ aboveInputTokens }) => inputTokens > aboveInputTokens)
  const all: readonly Rates[] = [price, ...tiers]
  const inputs = all.flatMap((rates) => [
    rates.inputPerMillion,
    rates.cacheReadPerMillion ?? 0,
    rates.cacheWritePerMillion ?? 0,
    rates.longCacheWritePerMillion ?? 0,
  ])
  const outputs = all.flatMap((rates) => [rates.outputPerMillion, rates.reasoningPerMillion ?? 0])
  return { input: pico(Math.max(...inputs)), output: pico(Math.max(...outputs)) }
}

/** Dollars per million tokens as whole pico-dollars per token. */
function pico(perMillion: number): number {
  return Math.round(perMillion * MICRO)
}

function wholeMicros(picoDollars: number): number {
  return Math.ceil(picoDollars / MICRO)
}
