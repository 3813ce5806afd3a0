import type {
  Model,
  ModelDelta,
  ModelSession,
  ModelTurn,
  RequestConstants,
  TranscriptEntry,
  TranscriptRepair,
  TransportRetry,
} from '../../index.js'
import type { Generator, GivenReply } from './generate.js'
import { frozen } from './generate.js'
import type { Delivery, HeardRequest, Stage } from './stage.js'

/** What one turn came to. */
export type Outcome = { readonly deltas: readonly ModelDelta[]; readonly repairs: readonly TranscriptRepair[] } & (
  | { readonly kind: 'turn'; readonly turn: ModelTurn }
  /** `retry`: the adapter said that it was about to ask again, and was stopped. */
  | { readonly kind: 'failure'; readonly error: unknown; readonly retry: TransportRetry | null }
)

export interface AskOptions {
  readonly streamed: boolean
  /** Aborted by the law. */
  readonly abort?: AbortController
}

/** Talks with a model on a stage, one turn at a time, each within a time limit. */
export class Talk {
  readonly stage: Stage
  readonly generator: Generator
  readonly constants: RequestConstants
  readonly transcript: TranscriptEntry[] = []
  readonly #turnMs: number
  #session: ModelSession
  readonly #model: Model

  constructor(
    stage: Stage,
    model: Model,
    { generator, turnMs }: { readonly generator: Generator; readonly turnMs: number },
  ) {
    this.stage = stage
    this.generator = generator
    this.#turnMs = turnMs
    this.#model = model
    this.#session = model.openSession()
    this.constants = constantsOf(generator)
  }

  /** Goes on in a session that knows nothing of the conversation. */
  reopen(): void {
    this.#session = this.#model.openSession()
  }

  /** Asks for the next turn, which is answered so. */
  async ask(delivery: Delivery, { streamed, abort = new AbortController() }: AskOptions): Promise<Outcome> {
    const deltas: ModelDelta[] = []
    const repairs: TranscriptRepair[] = []
    let retry: TransportRetry | null = null
    this.stage.answers(delivery)
    try {
      const asked = this.#session.turn(frozen([...this.transcript]), this.constants, {
        generation: 0,
        signal: abort.signal,
        ...(streamed && { onDelta: (delta: ModelDelta) => void deltas.push(delta) }),
        onRepair: (repair) => void repairs.push(repair),
        onRetry: (told) => {
          retry = told
          abort.abort(new Error(`It was about to ask again: ${told.reason}`))
        },
      })
      return { kind: 'turn', turn: await within(this.#turnMs, asked), deltas, repairs }
    } catch (error) {
      if (error instanceof TooLong) throw error
      return { kind: 'failure', error, retry, deltas, repairs }
    }
  }

  /** The same where nothing may go wrong. The reply joins the transcript, and its calls are answered. */
  async hear(reply: GivenReply, options: AskOptions, delivery: Partial<Delivery & object> = {}): Promise<ModelTurn> {
    const outcome = await this.ask({ reply, ...delivery }, options)
    const turn = turnIn(outcome, this.stage)
    this.add(frozen({ ...turn.entry, ...this.generator.stamp() }))
    return turn
  }

  /** Adds a reply, and the results of its calls. */
  add(entry: TranscriptEntry & { role: 'assistant' }): void {
    this.transcript.push(frozen(entry))
    for (const part of entry.parts) {
      if (part.type === 'tool_call') this.transcript.push(frozen(this.generator.result(part.callId, part.name)))
    }
  }

  say(): void {
    this.transcript.push(frozen(this.generator.user()))
  }

  /** The last request that came. */
  get request(): HeardRequest {
    const heard = this.stage.heard.at(-1)
    if (heard === undefined) throw new Error('No request came.')
    return heard
  }
}

/** A talk of some turns, answered by this provider, or by others in between (`foreign`, a share of the replies). */
export async function talkAWhile(
  talk: Talk,
  { foreign, streamed }: { foreign: number; streamed: boolean },
): Promise<void> {
  const { generator } = talk
  talk.say()
  for (let turns = generator.chance.int(2, 4); turns > 0; turns--) {
    if (generator.chance.happens(foreign)) talk.add(generator.foreignReply())
    else await talk.hear(generator.reply(), { streamed })
    if (talk.transcript.at(-1)?.role === 'assistant' || generator.chance.happens(0.3)) talk.say()
  }
  await talk.hear(generator.reply(), { streamed })
}

/** The turn that an outcome is, where it must be one. */
export function turnIn(outcome: Outcome, stage: Stage): ModelTurn {
  if (outcome.kind === 'turn') return outcome.turn
  if (stage.refusal !== null) throw new Error(`The API refused the request: ${stage.refusal}`)
  const { error, retry } = outcome
  const what = retry === null ? `failed: ${messageOf(error)}` : `was to be repeated: ${retry.reason}`
  throw new Error(`A turn that the server answered well ${what}`, { cause: error })
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

class TooLong extends Error {}

/** `work`, which must not take longer than `ms`. */
async function within<T>(ms: number, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const limit = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new TooLong(`A turn did not end within ${ms} ms.`)), ms)
  })
  try {
    return await Promise.race([work, limit])
  } finally {
    clearTimeout(timer)
  }
}

function constantsOf(generator: Generator): RequestConstants {
  const parameters = { type: 'object', properties: { a0: { type: 'string' } } }
  const tools = ['read', 'look_up', 'send-mail'].map((name) => ({ name, description: generator.text(), parameters }))
  return frozen({ instructions: generator.text(), tools, structuredOutput: null, settings: {} })
}
