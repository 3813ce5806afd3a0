import type { ModelRun } from '#contracts/attempt.js'
import { estimateEntry, estimateText } from '#contracts/estimate.js'
import type { TranscriptEntry } from '#contracts/entry.js'
import type { ModelRef } from '#contracts/model-reference.js'
import type { Model, ModelSession, ModelTurn, RequestConstants, TurnOptions } from '#core/model-session.js'
import { modelOf } from './candidate-model.js'
import { Limiter } from './limiter.js'
import type { LimitedOptions, Waiter } from './limiter.js'
import { checkLimited } from './options.js'
import { PassingModel } from './passing-model.js'
import { askPrepaid, FREE } from './prepaid.js'

/**
 * A model whose requests wait until its limits allow them, and those that its provider tells in headers. Runs take turns. A wait is
 * the event `request_waiting`, and ends with an abort.
 * @throws HarnessError `invalid_options` for no model, and for an option that it does not know.
 * @example
 * const model = limited('openai:gpt-5.5', { concurrency: 8, requestsPerMinute: 60, tokensPerMinute: 200_000 })
 * const harness = new Harness({ model })
 * await harness.map(prompts)
 */
export function limited(model: ModelRef | Model, options: LimitedOptions = {}): Model {
  checkLimited(options)
  return new LimitedModel(modelOf(model), options)
}

class LimitedModel extends PassingModel {
  readonly #limiter: Limiter

  constructor(inner: Model, options: LimitedOptions) {
    super(inner)
    this.#limiter = new Limiter(`${inner.provider}:${inner.id}`, options)
  }

  openSession(run?: ModelRun): ModelSession {
    return new LimitedSession(this.inner, this.inner.openSession(run), this.#limiter)
  }
}

class LimitedSession implements ModelSession {
  readonly #asked: Model
  readonly #inner: ModelSession
  readonly #limiter: Limiter

  constructor(asked: Model, inner: ModelSession, limiter: Limiter) {
    this.#asked = asked
    this.#inner = inner
    this.#limiter = limiter
  }

  async turn(view: readonly TranscriptEntry[], constants: RequestConstants, options: TurnOptions): Promise<ModelTurn> {
    const { signal, waiting, warn, onHeaders, attempt } = options
    const waiter: Waiter = { run: this, tokens: tokensOf(view, constants), signal, waiting, warn }
    const admitted = await this.#limiter.enter(waiter)
    let attempts = 0
    try {
      const asking: TurnOptions = {
        ...options,
        // Each repetition is a request of its own.
        attempt: async (candidate) => {
          if ((attempts += 1) > 1) (await this.#limiter.enter(waiter, false)).end()
          return (await attempt?.(candidate)) ?? FREE
        },
        onHeaders: (headers) => {
          this.#limiter.learn(headers)
          onHeaders?.(headers)
        },
      }
      const turn = await askPrepaid(this.#asked, asking, (paid) => this.#inner.turn(view, constants, paid))
      const { inputTokens, outputTokens } = turn.entry.usage
      admitted.measure(inputTokens === null ? null : inputTokens + (outputTokens ?? 0))
      return turn
    } finally {
      admitted.end()
    }
  }

  close(): void {
    this.#inner.close?.()
  }
}

/** Tokens of a request and its reply: as many as the last one had, and an estimate of what is new. */
function tokensOf(view: readonly TranscriptEntry[], { instructions, tools }: RequestConstants): number {
  let tokens = 0
  for (let index = view.length - 1; index >= 0; index--) {
    const entry = view[index]
    if (entry?.role === 'assistant' && (entry.usage.inputTokens ?? 0) > 0)
      return tokens + (entry.usage.inputTokens ?? 0) + 2 * (entry.usage.outputTokens ?? 0)
    if (entry !== undefined) tokens += estimateEntry(entry)
  }
  return tokens + estimateText(instructions) + estimateText(JSON.stringify(tools)) + SHORT_REPLY
}

/** Of the first reply, in tokens. */
const SHORT_REPLY = 256
