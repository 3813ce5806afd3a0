import type { Model } from '#core/model-session.js'
import type { MoneyPort, RunMoney, SpendingRun } from '#core/money-port.js'
import { RunStopped } from '#core/loop/run-failure.js'
import { openSpending } from './open-spending.js'
import { costOfAnswer } from './answer-cost.js'
import { knownWindow, priceOf } from './find-price.js'
import type { Prices } from './find-price.js'
import { asReservedMoney } from './reserved-money.js'
import { RequestAttempts } from './request-attempts.js'
import type { Spending } from './spending.js'

/** The money of runs, by the known prices and those of the harness. */
export class Money implements MoneyPort {
  readonly #prices: Prices | null

  /** `prices` null: costs are not counted, unless a limit needs them. */
  constructor(prices: Prices | null) {
    this.#prices = prices
  }

  async open({ model, rules, spentUsd, outerMoney, isRecorded }: SpendingRun): Promise<RunMoney> {
    const { costUsd: limitUsd } = rules.limits
    // The costs of recorded replies are in the recording.
    if (isRecorded) return moneyOf(model, null, null)
    if (limitUsd === null && outerMoney === null)
      return moneyOf(model, null, model.computed === true ? null : this.#priceOf(model))
    const spending = await openSpending({
      model,
      prices: this.#prices ?? {},
      limitUsd,
      spentUsd,
      outer: outerMoney === null ? null : asReservedMoney(outerMoney),
      stop: ({ limit, needed, isBudget }) =>
        new RunStopped({ kind: 'limit', breach: { kind: 'cost_usd', limit, count: needed }, isBudget }),
    })
    return moneyOf(model, spending, null)
  }

  knownWindow(model: Model): number | null {
    return knownWindow(model)
  }

  /** A price that cannot be looked up is unknown. */
  #priceOf(model: Model): RunMoney['price'] {
    if (this.#prices === null) return null
    const prices = this.#prices
    return priceOf(model, prices).then(
      (price) => (turn) => costOfAnswer(turn, { model, price, prices }).catch(() => null),
      () => null,
    )
  }
}

function moneyOf(model: Model, spending: Spending | null, price: RunMoney['price']): RunMoney {
  const request = (aside?: Model): RequestAttempts =>
    new RequestAttempts({ model: aside ?? model, spending, price, isAside: aside !== undefined })
  return { spending, price, request }
}
