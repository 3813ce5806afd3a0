import type { Price, PriceTier, Rates } from '../money/price.js'
import type { Prices } from '../money/prices.js'
import { dollars, either, integer, list, object, oneOf, optional, partial, record } from '../util/shape.js'
import type { Fields } from '../util/shape.js'

const RATES: Fields<Rates> = {
  inputPerMillion: dollars,
  outputPerMillion: dollars,
  cacheReadPerMillion: optional(dollars),
  cacheWritePerMillion: optional(dollars),
  longCacheWritePerMillion: optional(dollars),
  reasoningPerMillion: optional(dollars),
}

const price = object<Price>({
  ...RATES,
  tiers: optional(list(object<PriceTier>({ ...RATES, aboveInputTokens: integer(0) }))),
})

export const prices = either(oneOf(false), partial<Prices>({ models: record(price), unknown: price }))
