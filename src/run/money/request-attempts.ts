import { NO_TOKENS, TOKEN_FIELDS, UNREPORTED_USAGE } from '#contracts/entry.js'
import type { TokenUsage } from '#contracts/entry.js'
import { HarnessError } from '#contracts/errors.js'
import type { Attempt, AttemptEnd, Candidate, RequestAttempt } from '#contracts/attempt.js'
import type { Model } from '#core/model-session.js'
import { inDollars } from '#core/money-port.js'
import type { AnsweredTurn, PricedRequest, RequestPayer, RunMoney } from '#core/money-port.js'
import type { Reservation, Spending } from './spending.js'
import { listenToAbort } from '#util/abort.js'
import { isObject } from '#util/json.js'

interface RequestMoney extends Pick<RunMoney, 'price'> {
  readonly model: Model
  /** Null: nothing is limited. */
  readonly spending: Spending | null
  /** The request is beside the conversation of the run, to this model. */
  readonly isAside?: boolean
}

interface Made extends Pick<Candidate, 'provider' | 'model'>, Pick<Reservation, 'settle'> {
  batch: true | undefined
  begun: number
  failure: RequestAttempt['failure']
  status: number | null
  withdrawn: boolean
  ms: number
  /** In micro-dollars. Null: it is not settled. */
  cost: Promise<number | null> | null
}

/**
 * The attempts at one request of a run: each is reserved and settled by itself. A model that makes none of its own has made one,
 * the request as a whole.
 */
export class RequestAttempts implements RequestPayer {
  readonly #model: Model
  readonly #spending: Spending | null
  readonly #price: RunMoney['price']
  readonly #isAside: boolean
  readonly #made: Made[] = []
  /** Of a run without a limit: nothing is reserved, and the cost of a reply is its price. */
  readonly #unlimited: Reservation = {
    maxOutputTokens: null,
    settle: (answered) => {
      if (answered === null || this.#price === null) return UNKNOWN_COST
      return this.#price.then((costOf) => costOf?.(answered) ?? null)
    },
  }
  #request: PricedRequest | null = null
  /** Reserved for a model that makes no attempts of its own. */
  #whole: Reservation | null = null
  /** Why nothing could be reserved for the request as a whole. */
  #shortage: Error | null = null
  #begun = 0

  constructor({ model, spending, price, isAside = false }: RequestMoney) {
    this.#model = model
    this.#spending = spending
    this.#isAside = isAside
    this.#price = price
  }

  /** The provider that was asked last. */
  get provider(): string {
    return this.#made.at(-1)?.provider ?? this.#model.provider
  }

  /** The reply to a request, paid for. Rejects before anything is asked when it could pass a limit. */
  async paid<Turn extends AnsweredTurn>(
    request: PricedRequest,
    ask: (maxOutputTokens: number | null) => Promise<Turn>,
  ): Promise<Turn> {
    this.#request = request
    const isReserved = this.#spending !== null && this.#model.reserves !== true
    this.#whole = isReserved ? await this.#reserveWhole() : this.#spending === null ? this.#unlimited : null
    this.#begun = performance.now()
    const before = this.#made.length
    const { signal } = request
    // A model that ignores its signal is abandoned: nobody waits for its reservation.
    const stop = this.#spending === null ? null : listenToAbort(signal, () => this.end(null, signal.reason))
    try {
      const turn = await ask(this.#whole?.maxOutputTokens ?? null)
      // What is no reply is refused by whoever reads it.
      if (!isObject(turn) || !isObject(turn.entry)) {
        this.end(null)
        return turn
      }
      if (turn.cached === true) this.#whole ??= FREE
      else if (this.#shortage !== null && this.#made.length === before) throw this.#shortage
      this.end(turn)
      if (!this.#isAside && turn.cached !== true && isObject(turn.entry.usage))
        this.#spending?.measure(request, turn.entry)
      return turn
    } catch (error) {
      this.end(null, error)
      throw error
    } finally {
      stop?.()
    }
  }

  /** What the request as a whole may cost; null: nothing could be reserved for it, but one of several models may cost less. */
  async #reserveWhole(): Promise<Reservation | null> {
    this.#shortage = null
    try {
      return await this.#reserve(null)
    } catch (error) {
      if (this.#model.candidates === undefined) throw error
      this.#shortage = error instanceof Error ? error : new Error(String(error))
      return null
    }
  }

  /** As in `TurnOptions`. */
  readonly attempt = async (candidate: Candidate): Promise<Attempt> => {
    const whole = this.#whole
    const { provider, id, candidates } = this.#model
    const isSame = candidates === undefined && candidate.provider === provider && candidate.model === id
    this.#whole = null
    if (!isSame) void whole?.settle({ entry: { usage: NO_TOKENS } })
    const isWhole = isSame && whole !== null
    const reserved = isWhole ? whole : await this.#reserve(candidate)
    const made = this.#add(candidate, reserved, isWhole ? this.#begun : performance.now())
    const { maxOutputTokens } = reserved
    return { maxOutputTokens, settle: (usage, ended = {}) => settle(made, usage, ended) }
  }

  /** The request is over, with this reply or error: an attempt that was not settled keeps its reservation. */
  end(turn: AnsweredTurn | null, error?: unknown): void {
    const whole = this.#whole
    this.#whole = null
    this.#request = null
    if (whole !== null) {
      const { provider = this.#model.provider, model = this.#model.id } = turn?.entry ?? {}
      const made = this.#add({ provider, model }, whole, this.#begun)
      made.ms = Math.round(performance.now() - this.#begun)
      if (turn === null) settle(made, isOverflow(error) ? NO_TOKENS : null, endOf(error))
      else made.cost = whole.settle(turn)
    }
    for (const made of this.#made) {
      if (made.cost !== null) continue
      Object.assign(made, turn === null ? endOf(error) : {}, { ms: Math.round(performance.now() - made.begun) })
      made.cost = made.settle(null)
    }
  }

  /** All of them, in order. `isAnswered`: the last one is the answer, as far as it came. */
  all(isAnswered: boolean): Promise<readonly RequestAttempt[]> {
    if (isAnswered && this.#made.length === 1) return ONE_ANSWER
    return Promise.all(
      this.#made.map(async ({ provider, model, failure, status, ms, cost, withdrawn }, index) => {
        const amount = await cost
        const costUsd = amount === null ? null : inDollars(amount)
        const isAnswer = isAnswered && index === this.#made.length - 1
        return { provider, model, failure: isAnswer ? null : failure, status, ms, costUsd, withdrawn }
      }),
    )
  }

  /** Of all of them, in micro-dollars; null if that of the answer is unknown. */
  cost(): Promise<number | null> {
    const [first] = this.#made
    return this.#made.length === 1 && first !== undefined ? (first.cost ?? UNKNOWN_COST) : this.#sum()
  }

  async #sum(): Promise<number | null> {
    const costs = await Promise.all(this.#made.map(async ({ cost }) => cost))
    return (costs.at(-1) ?? null) === null ? null : costs.reduce<number>((sum, cost) => sum + (cost ?? 0), 0)
  }

  #add(candidate: Candidate, { settle: pay }: Reservation, begun: number): Made {
    const { provider, model, batch } = candidate
    const made: Made = { provider, model, batch, begun, settle: pay, ...UNSETTLED }
    this.#made.push(made)
    return made
  }

  async #reserve(candidate: Candidate | null): Promise<Reservation> {
    if (this.#request === null)
      throw new HarnessError('invalid_state', 'The request is over: no attempt at it can begin any more.')
    if (this.#spending === null) return this.#unlimited
    // One that holds something waits for nobody.
    const isFirst = this.#made.every(({ cost }) => cost !== null)
    const { provider, id } = this.#model
    const asked = candidate ?? (this.#isAside ? { provider, model: id } : null)
    return this.#spending.reserve(this.#request, asked, isFirst)
  }
}

const UNSETTLED = { failure: null, status: null, withdrawn: false, ms: 0, cost: null }

/** Of a reply from a cache. */
const FREE: Reservation = { maxOutputTokens: null, settle: () => Promise.resolve(0) }

/** Settles an attempt once. */
function settle(made: Made, given: TokenUsage | null, ended: AttemptEnd): void {
  if (made.cost !== null) return
  const { failure = null, status = null, withdrawn = false, responseModel = null } = ended
  made.failure = failure
  made.status = status
  made.withdrawn = withdrawn
  made.ms = Math.round(performance.now() - made.begun)
  const isRefused = status !== null && status >= 400 && !withdrawn
  const usage = readUsage(given) ?? (isRefused ? NO_TOKENS : null)
  const { provider, model, batch } = made
  made.cost = made.settle(usage === null ? null : { entry: { provider, model, usage }, responseModel, batch })
}

/** Null for one of another shape: its cost would be no number. */
function readUsage(given: unknown): TokenUsage | null {
  if (!isObject(given)) return null
  const usage = Object.assign({}, UNREPORTED_USAGE, given)
  for (const field of TOKEN_FIELDS) {
    const count: unknown = usage[field]
    if (count !== null && (!Number.isSafeInteger(count) || Number(count) < 0)) return null
  }
  return usage
}

const UNKNOWN_COST: Promise<number | null> = Promise.resolve(null)
/** A list of one attempt says nothing that its reply does not say. */
const ONE_ANSWER: Promise<readonly RequestAttempt[]> = Promise.resolve([])

/** Refused before it was worked on, whatever the status. */
function isOverflow(error: unknown): boolean {
  return error instanceof HarnessError && error.code === 'context_overflow'
}

function endOf(error: unknown): Pick<Made, 'failure' | 'status'> {
  const { failure = 'unknown', status = null } = error instanceof HarnessError ? error : {}
  return { failure, status }
}
