import type { ModelRun } from '#contracts/attempt.js'
import type { ModelRef } from '#contracts/model-reference.js'
import type { Model, ModelTurn, TurnOptions } from '#core/model-session.js'
import type { RequestPayer } from '#core/money-port.js'
import { abortable } from '#util/abort.js'
import { FREE, Prepaid } from '../prepaid.js'
import { factsOf } from './facts.js'
import { readReply } from './kept-reply.js'
import type { KeptQuestion, KeptReply } from './kept-reply.js'
import type { ReplyStore } from './reply-store.js'

/** The vectors of texts, in their order, all of one length. `model` names where they come from: others are not compared. */
export type CacheEmbedder = ((
  texts: readonly string[],
  options: { readonly signal?: AbortSignal | undefined },
) => Promise<readonly (readonly number[] | Float32Array)[]>) & { readonly model?: string | undefined }

export interface SemanticOptions {
  /** Makes vectors, such as `embedding('openai:text-embedding-3-small')`. */
  readonly embed: CacheEmbedder
  /** The least cosine of two questions that may be the same. Default 0.97. */
  readonly threshold?: number | undefined
  /** Confirms that one answer is right for both questions: vectors alone cannot tell that. A small model is enough. */
  readonly confirm: ModelRef | Model
}

/** Of a number of a vector that is kept. */
const DIGITS = 7

/** The newest questions of a group that are compared. */
const MOST_COMPARED = 500

const QUESTION =
  'Do both texts ask for exactly the same, so that one answer is right for both? Numbers, names, dates, units and negations must be the same.'

/** Finds replies to questions that mean the same, for one request. */
export class Resemblance {
  readonly #options: SemanticOptions
  readonly #confirm: Model
  readonly #text: string
  readonly #facts: string
  #vector: readonly number[] | null = null

  constructor(options: SemanticOptions, confirm: Model, text: string) {
    this.#options = options
    this.#confirm = confirm
    this.#text = text
    this.#facts = factsOf(text)
  }

  /** The nearest one that has the same facts and is near enough, once the model has confirmed it; null: there is none. */
  async find(
    group: string,
    store: ReplyStore,
    { options, run }: { readonly options: TurnOptions; readonly run: ModelRun | undefined },
  ): Promise<KeptReply | null> {
    const texts = (await store.group?.(group, MOST_COMPARED)) ?? []
    const alike = texts.map(readReply).filter(({ question }) => question?.facts === this.#facts)
    if (alike.length === 0) return null
    const own = await this.#own(options.signal)
    const { threshold = 0.97 } = this.#options
    let best: { readonly reply: KeptReply; readonly near: number } | null = null
    for (const reply of alike) {
      const near = cosine(own, reply.question?.vector ?? [])
      if (near >= threshold && near > (best?.near ?? -1)) best = { reply, near }
    }
    const isSame = best !== null && (await this.#isConfirmed(best.reply.question?.text ?? '', options, run))
    return isSame ? (best?.reply ?? null) : null
  }

  /** What is kept of the question. */
  async question(signal: AbortSignal): Promise<KeptQuestion> {
    const vector = (await this.#own(signal)).map((each) => Number(each.toPrecision(DIGITS)))
    return { text: this.#text, facts: this.#facts, vector }
  }

  async #own(signal: AbortSignal): Promise<readonly number[]> {
    if (this.#vector !== null) return this.#vector
    const [given] = await abortable(this.#options.embed([this.#text], { signal }), signal)
    const vector = Array.from(given ?? [])
    if (vector.length === 0 || !vector.every(Number.isFinite))
      throw new TypeError('`embed` has returned no vector of numbers')
    this.#vector = vector
    return vector
  }

  async #isConfirmed(earlier: string, options: TurnOptions, run: ModelRun | undefined): Promise<boolean> {
    const { runId = '', agentName = null, metadata = {}, labels = {} } = run ?? {}
    const { choose } = await import('#run/decide-in-run.js')
    const { choice } = await choose(
      { question: QUESTION, choices: ['yes', 'no'], context: { one: earlier, other: this.#text } },
      {
        model: this.#confirm,
        run: { runId, agentName, metadata, labels, purpose: 'decide' },
        payer: payerOf(this.#confirm, options.attempt),
        at: new Date().toISOString(),
        signal: options.signal,
      },
    )
    return choice === 'yes'
  }
}

/** Pays as an attempt of the request that asks. */
function payerOf({ provider, id }: Model, attempt: TurnOptions['attempt']): RequestPayer {
  let prepaid: Prepaid | null = null
  return {
    provider,
    attempt: async (candidate) => (await prepaid?.take(candidate)) ?? FREE,
    paid: async (_request, ask) => {
      prepaid = await Prepaid.begin({ provider, model: id }, attempt)
      try {
        const turn = await ask(prepaid.maxOutputTokens)
        prepaid.end(turn as unknown as ModelTurn)
        return turn
      } finally {
        prepaid.end(null)
      }
    },
    end: () => undefined,
    all: () => Promise.resolve([]),
    cost: () => Promise.resolve(null),
  }
}

function cosine(one: readonly number[], other: readonly number[]): number {
  if (one.length !== other.length) return -1
  let [dot, ones, others] = [0, 0, 0]
  for (let index = 0; index < one.length; index++) {
    const [a = 0, b = 0] = [one[index], other[index]]
    dot += a * b
    ones += a * a
    others += b * b
  }
  return dot / Math.sqrt(ones * others)
}
