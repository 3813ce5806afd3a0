import type { Limits, StallOptions } from '../contracts/limits.js'
import type { Price, PriceTier, Rates } from '../money/price.js'
import type { Prices } from '../money/prices.js'
import {
  boolean,
  either,
  integer,
  leaf,
  list,
  nullable,
  object,
  optional,
  partial,
  record,
  string,
} from '../util/shape.js'
import type { Fields } from '../util/shape.js'
import { LONGEST_TIMER_MS } from '../util/timeout.js'

const dollars = leaf<number>('US dollars from 0 up', (value) => Number.isFinite(value) && Number(value) >= 0)
const count = nullable(integer(0))
const step = nullable(integer(1))

export const limits = partial<Limits>({
  modelRequests: count,
  toolCalls: count,
  inputTokens: count,
  outputTokens: count,
  timeMs: nullable(integer(0, LONGEST_TIMER_MS)),
  costUsd: nullable(dollars),
})

export const stall = either(
  boolean,
  partial<StallOptions>({
    noticeAfter: step,
    answerAfter: step,
    stopAfter: step,
    ignore: list(string, 'a list of names'),
  }),
)

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

export const prices = partial<Prices>({ models: record(price), unknown: price })
