import type { TranscriptEntry } from '#contracts/entry.js'
import type { Candidate, Model, ModelTurn, RequestConstants } from './model-session.js'
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

/** The content of a request that is to be paid for. */
export interface PricedRequest {
  readonly transcript: readonly TranscriptEntry[]
  readonly constants: RequestConstants
  readonly signal: AbortSignal
}

/** A reply as far as its price depends on it. */
export interface AnsweredTurn {
  readonly entry: Pick<ModelTurn['entry'], 'usage'> & Partial<Pick<ModelTurn['entry'], 'provider' | 'model'>>
  readonly responseModel?: string | null | undefined
}

/** Money that is reserved for an attempt at a request. */
export interface Reservation {
  /** Tokens of the reply that it pays for; null: as many as the settings allow. */
  readonly maxOutputTokens: number | null
  /** Counts the cost of the reply instead, and gives it; of null, what was reserved. Null: it is unknown. */
  settle(answered: AnsweredTurn | null): Promise<number | null>
}

/** Pays for the requests of one run with a limit. */
export interface RequestPayer {
  readonly budget: RunBudget
  readonly purse: OuterPurse
  /**
   * Reserves what an attempt of a model may cost; null: of the dearest that may answer. Rejects when it could pass a limit. `waits`
   * false: it does not wait for what others have reserved. Default true.
   */
  reserve(request: PricedRequest, candidate: Candidate | null, waits?: boolean): Promise<Reservation>
  /** Learns from the reply how long the conversation is. */
  measure(request: PricedRequest, entry: ModelTurn['entry']): void
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
