import { messageOf } from '#contracts/errors.js'
import type { AttemptEnd } from '#contracts/attempt.js'
import type {
  Model,
  ModelDelta,
  ModelSession,
  ModelTurn,
  RequestConstants,
  TransportRetry,
} from '#core/model-session.js'
import type { TokenUsage, TranscriptEntry } from '#contracts/entry.js'
import type { TranscriptRepair } from '#contracts/mend.js'
import { deepFreeze } from '#util/json.js'
import { withTimeout } from '#util/timeout.js'
import type { Chance, Generator, GivenReply } from './generate.js'
import type { StagedDelivery, ReadWireRequest, Stage } from './stage.js'

/** A law of adapters. */
export interface LawText {
  /** The law in a sentence. */
  readonly says: string
  /** Share of the requested cases to try, but at least one. Default 1; 0 if nothing in it is random. */
  readonly share?: number
  /** Rejects with the problem. */
  readonly holds: (given: Case) => Promise<void>
}

/** One case of a law. */
export interface Case {
  readonly stage: Stage
  readonly chance: Chance
  /** A new talk with the model under test. `name` makes its marks differ from those of other talks. */
  readonly talk: (name?: string) => Talk
}

/** An attempt that a model has begun, and how it was settled; null: it was not. */
export interface BegunAttempt {
  settled: { readonly usage: TokenUsage | null; readonly ended: AttemptEnd } | null
}

interface Observed {
  readonly deltas: readonly ModelDelta[]
  readonly repairs: readonly TranscriptRepair[]
  readonly attempts: readonly BegunAttempt[]
}

/** The outcome of one turn. */
export type TurnOutcome = Observed &
  (
    | { readonly kind: 'turn'; readonly turn: ModelTurn }
    /** `retry`: the adapter reported that it would retry, and was stopped. */
    | { readonly kind: 'failure'; readonly error: unknown; readonly retry: TransportRetry | null }
  )

export interface AskOptions {
  readonly streamed: boolean
  /** Aborted by the law. */
  readonly abort?: AbortController
  /** As in `TurnOptions`. */
  readonly retries?: number
}

const WHOLE: AskOptions = { streamed: false }

interface TalkMeans {
  readonly stage: Stage
  readonly model: Model
  readonly generator: Generator
  readonly turnMs: number
}

/** Talks with a model on a stage, one turn at a time, each within a time limit. */
export class Talk {
  readonly stage: Stage
  readonly generator: Generator
  readonly constants: RequestConstants
  readonly transcript: TranscriptEntry[] = []
  readonly #turnMs: number
  readonly #model: Model
  #session: ModelSession

  constructor({ stage, model, generator, turnMs }: TalkMeans) {
    this.stage = stage
    this.generator = generator
    this.#turnMs = turnMs
    this.#model = model
    this.#session = model.openSession()
    this.constants = generateConstants(generator)
  }

  /** Asks for the next turn; the server replies with `delivery`. */
  ask(
    delivery: StagedDelivery,
    { streamed, abort = new AbortController(), retries }: AskOptions = WHOLE,
  ): Promise<TurnOutcome> {
    const deltas: ModelDelta[] = []
    const repairs: TranscriptRepair[] = []
    const attempts: BegunAttempt[] = []
    let retry: TransportRetry | null = null
    this.stage.answers(delivery)
    const takeTurn = async (): Promise<ModelTurn> =>
      this.#session.turn(deepFreeze([...this.transcript]), this.constants, {
        generation: 0,
        signal: abort.signal,
        attempt: async () => {
          const begun: BegunAttempt = { settled: null }
          attempts.push(begun)
          return { maxOutputTokens: null, settle: (usage, ended = {}) => (begun.settled ??= { usage, ended }) }
        },
        ...(retries !== undefined && { retries }),
        ...(streamed && { onDelta: (delta: ModelDelta) => void deltas.push(delta) }),
        onRepair: (repair) => void repairs.push(repair),
        onRetry: (reported) => {
          retry = reported
          abort.abort(new Error(`It was about to ask again: ${reported.reason}`))
        },
      })
    const outcome = takeTurn().then(
      (value): TurnOutcome => ({ kind: 'turn', turn: value, deltas, repairs, attempts }),
      (error: unknown): TurnOutcome => ({ kind: 'failure', error, retry, deltas, repairs, attempts }),
    )
    return withTimeout(outcome, this.#turnMs)
  }

  /** The same in a new session, which has seen nothing of the conversation. */
  askAgain(delivery: StagedDelivery, options?: AskOptions): Promise<TurnOutcome> {
    this.#session = this.#model.openSession()
    return this.ask(delivery, options)
  }

  /** The turn of a reply, by default one without calls. Rejects with any failure. */
  async turn(reply = this.generator.reply({ calls: 0 }), options?: AskOptions): Promise<ModelTurn> {
    return expectTurn(await this.ask({ reply }, options), this.stage)
  }

  /** The same; the reply joins the transcript, and its calls get results. */
  async hear(reply: GivenReply, options?: AskOptions): Promise<ModelTurn> {
    const turn = await this.turn(reply, options)
    this.add({ ...turn.entry, ...this.generator.stamp() })
    return turn
  }

  /** Adds a reply, and the results of its calls. */
  add(entry: TranscriptEntry & { role: 'assistant' }): void {
    this.transcript.push(deepFreeze(entry))
    for (const part of entry.parts) {
      if (part.type === 'tool_call') this.transcript.push(deepFreeze(this.generator.result(part.callId, part.name)))
    }
  }

  /** Adds a message of a person. */
  say(): this {
    this.transcript.push(deepFreeze(this.generator.user()))
    return this
  }

  /** The last request to the server. */
  get request(): ReadWireRequest {
    const heard = this.stage.heard.at(-1)
    if (heard === undefined) throw new Error('No request was sent.')
    return heard
  }
}

/** A talk of some turns, answered by this provider, or by others in between (`foreign`, a share of the replies). */
export async function talkAWhile(
  talk: Talk,
  { foreign, streamed }: { foreign: number; streamed: boolean },
): Promise<void> {
  const { generator } = talk.say()
  for (let turns = generator.chance.int(2, 4); turns > 0; turns--) {
    if (generator.chance.happens(foreign)) talk.add(generator.foreignReply())
    else await talk.hear(generator.reply(), { streamed })
    if (talk.transcript.at(-1)?.role === 'assistant' || generator.chance.happens(0.3)) talk.say()
  }
  await talk.hear(generator.reply(), { streamed })
}

/** The turn of an outcome. Throws any failure. */
export function expectTurn(outcome: TurnOutcome, stage: Stage): ModelTurn {
  if (outcome.kind === 'turn') return outcome.turn
  if (stage.refusal !== null) throw new Error(`The API refused the request: ${stage.refusal}`)
  const { error, retry } = outcome
  const problem = retry === null ? `failed: ${messageOf(error)}` : `was to be repeated: ${retry.reason}`
  throw new Error(`A turn with a valid answer ${problem}`, { cause: error })
}

function generateConstants(generator: Generator): RequestConstants {
  const parameters = { type: 'object', properties: { a0: { type: 'string' } } }
  const tools = ['read', 'look_up', 'send-mail'].map((name) => ({ name, description: generator.text(), parameters }))
  return deepFreeze({ instructions: generator.text(), tools, structuredOutput: null, settings: {} })
}
