import type { Attempt, Candidate } from '#contracts/attempt.js'
import { NO_TOKENS } from '#contracts/entry.js'
import type { Model, ModelTurn, TurnOptions } from '#core/model-session.js'

/** An attempt of a request that nobody pays for. */
export const FREE: Attempt = { maxOutputTokens: null, settle: () => undefined }

/** An attempt that is begun for a model which may begin none itself: either way it is reserved and counted once. */
export class Prepaid {
  readonly #attempt: TurnOptions['attempt']
  readonly #candidate: Candidate
  #first: Attempt | null

  private constructor(attempt: TurnOptions['attempt'], candidate: Candidate, first: Attempt) {
    this.#attempt = attempt
    this.#candidate = candidate
    this.#first = first
  }

  /** Rejects with `limit_reached` if it could pass a limit. */
  static async begin(candidate: Candidate, attempt: TurnOptions['attempt']): Promise<Prepaid> {
    return new Prepaid(attempt, candidate, (await attempt?.(candidate)) ?? FREE)
  }

  /** The most tokens of the reply; null: as many as the turn allows. */
  get maxOutputTokens(): number | null {
    return this.#first?.maxOutputTokens ?? null
  }

  /** As in `TurnOptions`: the first one is the one that was begun. */
  readonly take = async (asked: Candidate): Promise<Attempt> => {
    const first = this.#first
    this.#first = null
    if (first !== null && asked.provider === this.#candidate.provider && asked.model === this.#candidate.model)
      return first
    first?.settle(NO_TOKENS)
    return (await this.#attempt?.(asked)) ?? FREE
  }

  /** The request is over: null, it has failed. */
  end(turn: Pick<ModelTurn, 'entry'> | null): void {
    this.#first?.settle(turn?.entry.usage ?? null, turn === null ? { failure: 'unknown' } : { status: 200 })
    this.#first = null
  }
}

/**
 * Asks a model that may begin no attempt itself, such as one of a user's: what it costs is reserved before. One that is made of others
 * has them begin their own.
 */
export async function askPrepaid(
  { provider, id, candidates }: Pick<Model, 'provider' | 'id' | 'candidates'>,
  options: TurnOptions,
  ask: (options: TurnOptions) => Promise<ModelTurn>,
): Promise<ModelTurn> {
  if (options.attempt === undefined || candidates !== undefined) return ask(options)
  const prepaid = await Prepaid.begin({ provider, model: id }, options.attempt)
  const maxOutputTokens = prepaid.maxOutputTokens ?? options.maxOutputTokens
  try {
    const limit = maxOutputTokens !== undefined && { maxOutputTokens }
    const turn = await ask({ ...options, attempt: prepaid.take, ...limit })
    prepaid.end(turn)
    return turn
  } finally {
    prepaid.end(null)
  }
}
