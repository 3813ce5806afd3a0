import type { TranscriptEntry } from '#contracts/entry.js'
import type { ModelRef } from '#contracts/model-reference.js'
import { invalidOptions, parse } from '#contracts/parse.js'
import type { Model, ModelSession, ModelTurn, RequestConstants, TurnOptions } from '#core/model-session.js'
import type { Transport } from '#providers/http/wire-format.js'
import { SessionModel } from '#providers/wire/wire-session.js'
import { integer, partial } from '#util/validate.js'
import { LONGEST_TIMER_MS } from '#util/timeout.js'
import { modelOf } from '../candidate-model.js'
import { PassingModel } from '../passing-model.js'
import { batchApiFor } from './batch-api.js'
import { BatchTransport, Gatherer } from './gatherer.js'
import type { BatchedOptions } from './gatherer.js'

const OPTIONS = partial<BatchedOptions>({ maxWaitMs: integer(0, LONGEST_TIMER_MS), maxRequests: integer(1) })

/**
 * A model whose requests are gathered over all runs and sent to its provider's batch API, at half the price, within a day: OpenAI
 * (Responses and chat completions, also of servers like it) and Anthropic. The id is stored with the run, so that a process may end, and
 * another one get the answer. An abort takes the request back, and cancels a batch that nobody waits for.
 * @throws HarnessError `invalid_options` for a model without a batch API, and for an option that it does not know.
 * @example
 * const model = batched(openai('gpt-5.5'), { maxWaitMs: 10_000, maxRequests: 500 })
 * const harness = new Harness({ model, log: sqliteLog('runs.db') })
 * await harness.map(prompts, { concurrency: 500 })
 */
export function batched(model: ModelRef | Model, options: BatchedOptions = {}): Model {
  return new BatchedModel(modelOf(model), parse(OPTIONS, options, '`batched`'))
}

class BatchedModel extends PassingModel {
  readonly #openOver: SessionModel['openOver']
  readonly #connect: (own: Transport) => Transport

  constructor(inner: Model, options: BatchedOptions) {
    super(inner)
    const name = `\`${inner.provider}:${inner.id}\``
    const hasNone = (why: string): Error =>
      invalidOptions(`\`batched\`: ${name} has no batch API that is known: ${why}.`)
    if (!(inner instanceof SessionModel))
      throw hasNone('expected a model of `openai`, `openaiChat` or `anthropic` itself')
    let gatherer: Gatherer | null = null
    // Opens no connection.
    inner.openOver((own, path) => {
      const api = batchApiFor(path)
      if (api === null) throw hasNone(`its requests go to \`${path}\``)
      if (own.call === undefined) throw hasNone('a `client` is used for its replies only')
      gatherer = new Gatherer(api, options)
      return own
    })
    const gathers = gatherer as Gatherer | null
    if (gathers === null) throw hasNone('it has no connection')
    this.#openOver = inner.openOver.bind(inner)
    this.#connect = (own) => new BatchTransport(own, gathers)
  }

  openSession(): ModelSession {
    return new BatchedSession(this.#openOver(this.#connect))
  }
}

class BatchedSession implements ModelSession {
  readonly #inner: ModelSession

  constructor(inner: ModelSession) {
    this.#inner = inner
  }

  turn(view: readonly TranscriptEntry[], constants: RequestConstants, options: TurnOptions): Promise<ModelTurn> {
    const { attempt } = options
    return this.#inner.turn(view, constants, {
      ...options,
      ...(attempt !== undefined && { attempt: (candidate) => attempt({ ...candidate, batch: true }) }),
    })
  }
}
