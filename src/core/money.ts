import type { TranscriptEntry } from '#contracts/entry.js'
import type { Model, ModelTurn, RequestConstants } from './model-session.js'
import type { RunRules } from './state/rules.js'

/** What the core needs to know of money: the prices and purses are in `run/money`. Amounts are whole micro-dollars. */
export interface MoneyPort {
  /** The money of a new run, or of one that has spent `spentUsd` before. */
  open(run: SpendingRun): Promise<RunMoney>
  /** The window of a model, in tokens, if it became known with its price; otherwise null. */
  knownWindow(model: Model): number | null
}

/** A run whose requests are to be paid for. */
export interface SpendingRun {
  readonly model: Model
  readonly rules: RunRules
  readonly spentUsd: number
  readonly outerPurse: OuterPurse | null
  readonly isRecorded: boolean
}

/** The money of the run above, or of a budget that several runs share. */
export interface OuterPurse {
  /** Counts an amount that a run has spent before, by its log. */
  chargeEarlier(amount: number): void
}

/** Money that several runs share, in US dollars. */
export interface RunBudget {
  /** The limit. */
  readonly costUsd: number
  readonly spent: number
  readonly left: number
}

/** The content of a request, and how to send it. `maxOutputTokens` null: the model's settings apply. */
export interface PricedRequest<Turn> {
  readonly transcript: readonly TranscriptEntry[]
  readonly constants: RequestConstants
  readonly signal: AbortSignal
  readonly ask: (maxOutputTokens: number | null) => Promise<Turn>
  /** It is not a request of the conversation itself: its length says nothing about the next one. */
  readonly isAside?: boolean
}

/** A reply and its cost; null if it is unknown. */
export interface PaidReply<Turn> {
  readonly turn: Turn
  readonly cost: number | null
}

/** A reply as far as its price depends on it. */
export interface AnsweredTurn {
  readonly entry: Pick<ModelTurn['entry'], 'usage'> & Partial<Pick<ModelTurn['entry'], 'provider' | 'model'>>
  readonly responseModel?: string | null
}

/** Pays for the requests of one run with a limit. */
export interface RequestPayer {
  readonly budget: RunBudget
  readonly purse: OuterPurse
  /** The cost of the last request if its reply was cut off: what was reserved. Null if there was none. */
  readonly cutOff: number | null
  /** Rejects, before anything is asked, when the request could pass a limit. */
  pay<Turn extends AnsweredTurn>(request: PricedRequest<Turn>): Promise<PaidReply<Turn>>
}

/** The cost of a reply at the price of the model that answered; null if its usage or that price is unknown. */
export type CostOf = (turn: AnsweredTurn) => number | null | Promise<number | null>

/** The money of a run: limited, only counted, or neither. */
export interface RunMoney {
  /** Pays for the requests; null without a limit of money. */
  readonly spending: RequestPayer | null
  /**
   * The price of the model, looked up while the first request is in progress; null inside if it is unknown. Null if costs are
   * not counted, or are by `spending`.
   */
  readonly price: Promise<CostOf | null> | null
}

/** Micro-dollars in US dollars, exact to the micro-dollar. */
export function inDollars(microDollars: number): number {
  return microDollars / 1_000_000
}
