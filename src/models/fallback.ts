import type { ModelRun } from '#contracts/attempt.js'
import type { TranscriptEntry } from '#contracts/entry.js'
import { HarnessError } from '#contracts/errors.js'
import type { ProviderFailure } from '#contracts/provider-failure.js'
import type { Model, ModelSession, ModelTurn, RequestConstants, TurnOptions } from '#core/model-session.js'
import { sleep } from '#util/timeout.js'
import { CandidateModel, CandidateSessions } from './candidate-model.js'
import type { CandidateOption } from './candidate-model.js'
import { ComposedModel } from './composed-model.js'
import { ConversationNeeds } from './conversation-needs.js'
import { checkFallback } from './options.js'
import type { AfterFailure, FallbackOptions } from './options.js'

/**
 * A model that asks the next of its candidates when one fails, also in the middle of a conversation and of a batch. Text that was
 * shown already is withdrawn. Its provider and id are those of the first; each entry names who answered.
 * @throws HarnessError `invalid_options` for no candidate, and for an option that it does not know.
 * @example
 * const model = fallback([anthropic('claude-sonnet-5'), { model: openai('gpt-5.5'), settings: { reasoningEffort: 'low' } }])
 * const harness = new Harness({ model })
 * const { text } = await harness.run('Go.')
 */
export function fallback(candidates: readonly CandidateOption[], options: FallbackOptions = {}): Model {
  checkFallback(candidates, options)
  return new FallbackModel(
    candidates.map((each) => new CandidateModel(each, options.breaker ?? {})),
    options,
  )
}

class FallbackModel extends ComposedModel {
  readonly #candidates: readonly CandidateModel[]
  readonly #options: FallbackOptions

  constructor(candidates: readonly CandidateModel[], options: FallbackOptions) {
    super(
      candidates.map(({ model }) => model),
      options.window,
    )
    this.#candidates = candidates
    this.#options = options
  }

  asks(constants: RequestConstants): ReturnType<ComposedModel['asks']> {
    return this.#candidates.map((each) => ({ model: each.model, constants: each.constants(constants) }))
  }

  openSession(run?: ModelRun): ModelSession {
    return new FallbackSession(this.#candidates, this.#options, run)
  }
}

/** A request of the conversation. */
interface Asked {
  readonly view: readonly TranscriptEntry[]
  readonly constants: RequestConstants
  readonly options: TurnOptions
}

/** Why a candidate did not answer. */
interface Failed {
  readonly error: unknown
  readonly failure: ProviderFailure
  readonly after: AfterFailure
}

class FallbackSession implements ModelSession {
  readonly #candidates: readonly CandidateModel[]
  readonly #options: FallbackOptions
  readonly #sessions: CandidateSessions
  readonly #needs = new ConversationNeeds()
  /** Who answered last: its cache has the conversation. */
  #current = 0

  constructor(candidates: readonly CandidateModel[], options: FallbackOptions, run: ModelRun | undefined) {
    this.#candidates = candidates
    this.#options = options
    this.#sessions = new CandidateSessions(run)
  }

  async turn(view: readonly TranscriptEntry[], constants: RequestConstants, options: TurnOptions): Promise<ModelTurn> {
    const asked = { view, constants, options }
    this.#needs.note(view, options.generation)
    let last: Failed | null = null
    let windowAbove = -1
    for (const candidate of this.#order(constants.tools)) {
      if (candidate.breaker.waitMs > 0) continue
      const { contextTokens = Infinity } = candidate.model.capabilities
      if (contextTokens <= windowAbove) continue
      const outcome = await this.#askOne(candidate, asked)
      if (!('error' in outcome)) {
        this.#current = this.#candidates.indexOf(candidate)
        this.#needs.measure(outcome.entry.usage)
        return outcome
      }
      last = outcome
      if (outcome.after === 'fail') break
      if (outcome.failure === 'context') windowAbove = contextTokens
    }
    throw last === null ? this.#allOpen() : last.error
  }

  close(): void {
    this.#sessions.close()
  }

  /** From the preferred one that is well, over the others, without those that cannot take the conversation or have not its hosted tools, if some can. */
  #order(tools: RequestConstants['tools']): readonly CandidateModel[] {
    const { recoverMs = 60_000 } = this.#options
    const all = this.#candidates
    const well = all.findIndex(({ breaker }, index) => index >= this.#current || breaker.wellMs >= recoverMs)
    const [before, from] = [all.slice(0, well), all.slice(well)]
    const order = [...from, ...before]
    const able = order.filter(({ model }) => this.#needs.fit(model.capabilities, tools))
    return able.length > 0 ? able : order
  }

  /** Asks one candidate, again if that may help. Rejects with the caller's abort, and with a limit of money. */
  async #askOne(candidate: CandidateModel, asked: Asked): Promise<ModelTurn | Failed> {
    const { retries = 1, maxWaitMs = 2_000 } = this.#options
    const { signal, onRetry } = asked.options
    for (let failed = 1; ; failed++) {
      const shown = { any: false }
      try {
        return await this.#attempt(candidate, asked, shown)
      } catch (error) {
        signal.throwIfAborted()
        const failure = failureOf(error)
        if (failure === null) throw error
        const { model } = candidate
        const after = this.#options.on?.(failure, { provider: model.provider, model: model.id }) ?? AFTER[failure]
        const known = error instanceof HarnessError ? error : null
        const waitMs = known?.retryAfterMs ?? Math.min(FIRST_WAIT_MS * 2 ** (failed - 1), maxWaitMs)
        const isAgain = after === 'retry' && failed <= retries && waitMs <= maxWaitMs && candidate.breaker.waitMs === 0
        const delayMs = isAgain ? Math.round(waitMs) : 0
        // Without text that was shown, readers need not know of another candidate.
        if (shown.any || isAgain) {
          const reason = known?.message ?? 'The candidate failed.'
          onRetry?.({ attempt: failed, delayMs, reason, status: known?.status ?? null, withdrawn: shown.any })
        }
        if (!isAgain) return { error, failure, after }
        await sleep(delayMs, signal)
      }
    }
  }

  async #attempt(
    candidate: CandidateModel,
    { view, constants, options }: Asked,
    shown: { any: boolean },
  ): Promise<ModelTurn> {
    const { model, breaker } = candidate
    const { onDelta, attempt: reserve, ...given } = options
    // One that is made of others reserves for each of them.
    const isOne = model.candidates === undefined
    const paid = isOne ? await reserve?.({ provider: model.provider, model: model.id }) : undefined
    const most = least(paid?.maxOutputTokens ?? options.maxOutputTokens, model.capabilities.maxOutputTokens)
    const asked: TurnOptions = {
      ...given,
      ...(!isOne && reserve !== undefined && { attempt: reserve }),
      ...{ retries: 0, idleMs: this.#options.attemptMs ?? 60_000 },
      ...(most !== undefined && { maxOutputTokens: most }),
      ...(onDelta !== undefined && {
        onDelta: (delta) => {
          shown.any = true
          onDelta(delta)
        },
      }),
    }
    breaker.begin()
    try {
      const turn = await this.#sessions.turn(candidate, view, constants, asked)
      breaker.succeeded()
      paid?.settle(turn.entry.usage, { status: 200, responseModel: turn.responseModel ?? null })
      return turn
    } catch (error) {
      const failure = options.signal.aborted ? null : failureOf(error)
      if (failure === null || OF_REQUEST.has(failure)) breaker.endedOtherwise()
      else breaker.failed()
      const status = error instanceof HarnessError ? error.status : undefined
      paid?.settle(null, { failure: failure ?? 'unknown', status, withdrawn: shown.any })
      throw error
    }
  }

  /** Nobody may be asked now. */
  #allOpen(): HarnessError {
    const retryAfterMs = Math.min(...this.#candidates.map(({ breaker }) => breaker.waitMs))
    const names = this.#candidates.map(({ name }) => `\`${name}\``).join(', ')
    const message = `None of ${names} is asked at present, since each has failed several times in a row.`
    return new HarnessError('provider_error', message, { failure: 'overloaded', retryable: true, retryAfterMs })
  }
}

/** The first wait before the same candidate is asked again, in ms, if it names none. */
const FIRST_WAIT_MS = 500

const AFTER: Readonly<Record<ProviderFailure, AfterFailure>> = {
  rate_limit: 'retry',
  overloaded: 'retry',
  timeout: 'retry',
  connection: 'retry',
  server: 'retry',
  auth: 'next',
  not_found: 'next',
  quota: 'next',
  context: 'next',
  unknown: 'next',
  invalid: 'fail',
  content: 'fail',
}

/** Failures of the request, which say nothing of the candidate. */
const OF_REQUEST: ReadonlySet<ProviderFailure> = new Set(['invalid', 'content', 'context'])

/** Why the candidate did not answer; null for an error that is none of its own, such as a limit of the run. */
function failureOf(error: unknown): ProviderFailure | null {
  if (!(error instanceof HarnessError)) return 'unknown'
  return error.failure ?? (error.code === 'provider_error' ? 'unknown' : null)
}

function least(...numbers: readonly (number | undefined)[]): number | undefined {
  const known = numbers.filter((each) => each !== undefined)
  return known.length === 0 ? undefined : Math.min(...known)
}
