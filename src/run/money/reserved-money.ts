import type { OuterMoney } from '#core/money-port.js'
import { listenToAbort } from '#util/abort.js'

/** The reason that an amount cannot be held. All amounts are whole micro-dollars. */
export interface Shortage {
  readonly limit: number
  /** The least that would have been spent with it. */
  readonly needed: number
  /** The limit is that of a budget, not of a run. */
  readonly isBudget: boolean
}

/** Money that is reserved for a request. */
export interface Hold {
  readonly amount: number
  /** Returns it, and counts the actual cost of the request instead. Once. */
  settle(cost: number): void
}

interface Waiter {
  readonly money: ReservedMoney
  readonly most: number
  readonly least: number
  readonly waits: boolean
  readonly done: (answer: Hold | Shortage) => void
}

export interface ReservedMoneyOptions {
  /** The money of the run above, or the budget that the run shares with others. */
  readonly outer?: ReservedMoney | null
  /** Spent before; `outer` is charged with it separately. */
  readonly spent?: number
  /** It belongs to no run. */
  readonly isBudget?: boolean
}

/**
 * The money of a run and of all runs below it, which spend from it at the same time: the most that a request may cost is
 * held before it and settled after it, so that together they never exceed the limit. Amounts are whole micro-dollars.
 */
export class ReservedMoney implements OuterMoney {
  readonly #limit: number
  readonly #chain: readonly ReservedMoney[]
  /** Requests that wait for the holds of others, in order; shared by all of a tree. */
  readonly #waiters: Waiter[]
  readonly #isBudget: boolean
  #spent: number
  #held = 0
  #shortages = 0

  /** `limit` null: as much as `outer` has. */
  constructor(limit: number | null, { outer = null, spent = 0, isBudget = false }: ReservedMoneyOptions = {}) {
    this.#limit = limit ?? Infinity
    this.#isBudget = isBudget
    this.#spent = spent
    this.#chain = [this, ...(outer === null ? [] : outer.#chain)]
    this.#waiters = outer === null ? [] : outer.#waiters
  }

  get limit(): number {
    return this.#limit
  }

  get spent(): number {
    return this.#spent
  }

  /** How many requests were refused because it had too little. */
  get shortages(): number {
    return this.#shortages
  }

  /** Counts an amount that a run has spent before, by its log. A budget counts only what is spent from it in this process. */
  chargeEarlier(amount: number): void {
    for (const money of this.#chain) if (!money.#isBudget) money.#spent += amount
  }

  /**
   * Reserves `most`, or what the limit leaves, but at least `least`. While others reserve the remaining budget it waits for
   * them, in order, unless it holds something itself (`waits` is false): two that wait for each other would wait for ever.
   * Rejects with the reason of `signal`.
   */
  hold(
    { most, least, waits = true }: { readonly most: number; readonly least: number; readonly waits?: boolean },
    signal: AbortSignal,
  ): Promise<Hold | Shortage> {
    return new Promise((resolve, reject) => {
      signal.throwIfAborted()
      const stopListening = listenToAbort(signal, () => {
        stopListening()
        this.#waiters.splice(this.#waiters.indexOf(waiter), 1)
        reject(signal.reason as Error)
      })
      const done = (answer: Hold | Shortage): void => {
        stopListening()
        resolve(answer)
      }
      const waiter: Waiter = { money: this, most, least, waits, done }
      this.#waiters.push(waiter)
      this.#serve()
    })
  }

  #serve(): void {
    for (const waiter of [...this.#waiters]) {
      const answer = waiter.money.#answer(waiter)
      if (answer === null) continue
      this.#waiters.splice(this.#waiters.indexOf(waiter), 1)
      waiter.done(answer)
    }
  }

  /** Null: wait, others have reserved the rest. */
  #answer({ most, least, waits }: Waiter): Hold | Shortage | null {
    const short = this.#chain.filter((money) => money.#left < most)
    if (short.length === 0) return this.#take(most)
    if (waits && short.some((money) => money.#held > 0)) return null
    const tightest = short.reduce((one, other) => (other.#left < one.#left ? other : one))
    if (tightest.#left >= least) return this.#take(tightest.#left)
    tightest.#shortages += 1
    return { limit: tightest.#limit, needed: tightest.#spent + least, isBudget: tightest.#isBudget }
  }

  get #left(): number {
    return this.#limit - this.#spent - this.#held
  }

  #take(amount: number): Hold {
    for (const money of this.#chain) money.#held += amount
    let isSettled = false
    return {
      amount,
      settle: (cost) => {
        if (isSettled) return
        isSettled = true
        for (const money of this.#chain) {
          money.#held -= amount
          money.#spent += cost
        }
        this.#serve()
      },
    }
  }
}

/** What the core knows as the money outside of a run. */
export function asReservedMoney(outer: OuterMoney): ReservedMoney {
  if (outer instanceof ReservedMoney) return outer
  throw new TypeError('Expected the money of a run or a `Budget` of this package.')
}
