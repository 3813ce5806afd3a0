import { HarnessError } from '#contracts/errors.js'
import type { Model } from '#core/model-session.js'
import { inDollars } from '#core/money-port.js'
import { costOfAnswer } from './answer-cost.js'
import { batchPrice, inMicroDollars } from './token-cost.js'
import type { Price } from './token-cost.js'
import { priceOf } from './find-price.js'
import type { Prices } from './find-price.js'
import { ReservedMoney } from './reserved-money.js'
import type { Shortage } from './reserved-money.js'
import { Spending } from './spending.js'
import type { PricedCandidate } from './spending.js'

export interface SpendingSetup {
  readonly model: Model
  readonly prices: Prices
  /** US dollars; null: no limit of its own. */
  readonly limitUsd: number | null
  /** Spent by the run before, in US dollars. */
  readonly spentUsd: number
  /** The money of the run above, or the budget of the run. */
  readonly outer: ReservedMoney | null
  /** The error of a request that could exceed a limit; amounts are in US dollars. */
  readonly stop: (shortage: Shortage) => Error
}

/** The money of a run with a limit. Throws `invalid_options` for a limit that cannot be kept, since the model has no known price. */
export async function openSpending(setup: SpendingSetup): Promise<Spending> {
  const { model, prices, limitUsd, spentUsd, outer, stop } = setup
  const priced = async ({ provider, id, capabilities = {} }: Leaf): Promise<PricedCandidate> => {
    const price = model.computed === true ? FREE : await priceOf({ provider, id }, prices)
    if (price === null) throw unknownPrice({ provider, id }, limitUsd === null ? 'the budget' : '`limits.costUsd`')
    const { longCacheWrites, maxOutputTokens: modelCap } = capabilities
    return { provider, model: id, price, cachesLong: longCacheWrites !== false, modelCap }
  }
  const leaves: readonly Leaf[] = model.candidates ?? [model]
  const candidates = await Promise.all(leaves.map(priced))
  const price = candidates[0]?.price ?? null
  const limit = limitUsd === null ? null : inMicroDollars(limitUsd)
  const money = new ReservedMoney(limit, { outer, spent: inMicroDollars(spentUsd) })
  return new Spending(money, {
    candidates,
    find: async (asked) => {
      const found =
        candidates.find((each) => each.provider === asked.provider && each.model === asked.model) ??
        (await priced({ provider: asked.provider, id: asked.model }))
      return asked.batch === true ? { ...found, price: batchPrice(found.price) } : found
    },
    costOfTurn: (turn) => costOfAnswer(turn, { model: leaves[0] ?? model, price, prices }),
    stop: (short) => stop({ ...short, limit: inDollars(short.limit), needed: inDollars(short.needed) }),
  })
}

/** The turns of a program are no requests; those of the runs that it starts are. */
const FREE: Price = { inputPerMillion: 0, outputPerMillion: 0 }

/** A model that may answer. */
type Leaf = Pick<Model, 'provider' | 'id'> & Partial<Pick<Model, 'capabilities'>>

function unknownPrice({ provider, id }: Leaf, limit: string): HarnessError {
  const name = `${provider}:${id}`
  return new HarnessError(
    'invalid_options',
    `${limit} cannot be kept: no price is known for \`${name}\`. Give one as \`prices: { models: { '${name}': { inputPerMillion, outputPerMillion } } }\`, or a highest price for all such models as \`prices: { unknown: { … } }\`.`,
  )
}
