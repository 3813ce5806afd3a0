import type { RunBudget } from '#core/money-port.js'
import { parse } from '#contracts/parse.js'
import { dollars, leaf, object, optional } from '#util/validate.js'
import { inDollars } from '#core/money-port.js'
import { inMicroDollars } from './token-cost.js'
import { ReservedMoney } from './reserved-money.js'

export interface BudgetSettings {
  /** The most that all runs together may cost, in US dollars. */
  readonly costUsd: number
  /** Spent from it before, in US dollars, such as by an earlier process. Default 0. */
  readonly spentUsd?: number | undefined
}

const SETTINGS = object<BudgetSettings>({ costUsd: dollars, spentUsd: optional(dollars) })

const ofBudgets = new WeakMap<RunBudget, ReservedMoney>()

/** The money of a budget. */
export function moneyOf(budget: RunBudget): ReservedMoney {
  const money = ofBudgets.get(budget)
  if (money === undefined) throw new TypeError('Expected a `Budget`.')
  return money
}

/** A budget that spends from the money of a run. */
export function budgetOf(money: ReservedMoney): Budget {
  const budget = new Budget({ costUsd: 0 })
  ofBudgets.set(budget, money)
  return budget
}

/**
 * Money that any number of runs of one process share, their child runs included: the option `budget` of a harness, a run or
 * `map`. Like for `limits.costUsd`, the maximum cost of a request is reserved before it is sent, so concurrent runs never
 * exceed the budget together. A request that does not fit ends its run with `limit_reached`. A model without a known price is
 * rejected with `invalid_options`. Counts requests of this process only; pass what was spent before as `spentUsd`.
 *
 * @example
 * const budget = new Budget({ costUsd: 5 })
 * await Promise.all(prompts.map((prompt) => harness.run(prompt, { budget })))
 * console.log(budget.spent, budget.left)
 */
export class Budget implements RunBudget {
  /** Throws `invalid_options` for amounts that are not numbers from 0 up. */
  constructor(settings: BudgetSettings) {
    const { costUsd, spentUsd = 0 } = parse(SETTINGS, settings, '`Budget`')
    ofBudgets.set(this, new ReservedMoney(inMicroDollars(costUsd), { spent: inMicroDollars(spentUsd), isBudget: true }))
  }

  /** The limit, in US dollars. */
  get costUsd(): number {
    return inDollars(moneyOf(this).limit)
  }

  /** Spent so far, `spentUsd` included, in US dollars. Reserved amounts are not spent yet. */
  get spent(): number {
    return inDollars(moneyOf(this).spent)
  }

  /** `costUsd` without `spent`, at least 0, in US dollars. */
  get left(): number {
    const { limit, spent } = moneyOf(this)
    return inDollars(Math.max(0, limit - spent))
  }
}

export const budget = leaf<Budget>('a `Budget`', (given) => given instanceof Budget)
