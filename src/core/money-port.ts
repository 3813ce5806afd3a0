import type { TranscriptEntry } from '#contracts/entry.js'
import type { Model, ModelTurn, RequestConstants, TurnOptions } from './model-session.js'
import type { RequestAttempt } from '#contracts/attempt.js'
import type { RunRules } from './state/run-rules.js'

/** What the core needs to know of money: the prices and reservations are in `run/money`. Amounts are whole micro-dollars. */
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
  readonly outerMoney: OuterMoney | null
  readonly isRecorded: boolean
}

/** The money of the run above, or of a budget that several runs share. */
export interface OuterMoney {
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
  readonly cached?: boolean | undefined
  /** It was asked in a batch. */
  readonly batch?: true | undefined
}

/** Pays for one request of a run, each attempt at it by itself. */
export interface RequestPayer {
  /** As in `TurnOptions`. */
  readonly attempt: NonNullable<TurnOptions['attempt']>
  /** The provider that was asked last. */
  readonly provider: string
  /** The reply to a request. Rejects before anything is asked when it could pass a limit. */
  paid<Turn extends AnsweredTurn>(
    request: PricedRequest,
    ask: (maxOutputTokens: number | null) => Promise<Turn>,
  ): Promise<Turn>
  /** The request is over, with this reply or error: an attempt that was not settled keeps its reservation. */
  end(turn: AnsweredTurn | null, error?: unknown): void
  /** The attempts so far, in order. `isAnswered`: the last one is the answer, as far as it came; none if it is the only one. */
  all(isAnswered: boolean): Promise<readonly RequestAttempt[]>
  /** Of all of them, in micro-dollars; null if that of the answer is unknown. */
  cost(): Promise<number | null>
}

/** The cost of a reply at the price of the model that answered; null if its usage or that price is unknown. */
export type CostOf = (turn: AnsweredTurn) => number | null | Promise<number | null>

/** The money of a run: limited, only counted, or neither. */
export interface RunMoney {
  /** What its requests and the runs below it spend from; null without a limit of money. */
  readonly spending: { readonly budget: RunBudget; readonly money: OuterMoney } | null
  /**
   * The price of the model, looked up while the first request is in progress; null inside if it is unknown. Null if costs are
   * not counted, or are by `spending`.
   */
  readonly price: Promise<CostOf | null> | null
  /** Pays for a request; `aside`: one to this model beside the conversation. */
  request(aside?: Model): RequestPayer
}

/** Micro-dollars in US dollars, exact to the micro-dollar. */
export function inDollars(microDollars: number): number {
  return microDollars / 1_000_000
}
