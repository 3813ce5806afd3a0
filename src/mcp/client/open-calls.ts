import type { SourceAnswer } from '../../tools/source.js'
import type { ToolContext } from '../../tools/spec.js'
import { isObject } from '../../util/json.js'
import type { JsonObject, JsonSchema, JsonValue } from '../../util/json.js'

/** What a person is to be asked for a server. The same payload is the same question. */
export interface PersonQuestion {
  /** What the person is shown. */
  readonly payload: JsonObject
  /** Shape of what comes with `accept`; null for nothing. */
  readonly content: JsonSchema | null
}

/**
 * The calls that a server is working on, and what it asks in the middle of them. The protocol does not say to which call
 * a question belongs. It is taken to be the only one that is open; with several it waits until all others have ended, or
 * ask as well.
 *
 * A question ends the call at the server and suspends it here. When the answer is there the call is made again from its
 * beginning, and gets the answer when the server asks the same thing.
 */
export class OpenCalls {
  readonly #open = new Set<OpenCall>()
  readonly #waiting: (() => void)[] = []
  /** Questions that wait. */
  #asking = 0
  /** By idempotency key: what calls that were suspended had asked, and what they were answered. */
  readonly #history = new Map<string, Exchange[]>()

  /** The call that is the only one to be open, if there is one. */
  get only(): ToolContext | null {
    const [first, ...others] = this.#open
    return first !== undefined && others.length === 0 ? first.context : null
  }

  /** The call on whose behalf the server asks, as far as that can be known: null when others go on that ask as well. */
  async whose(signal: AbortSignal): Promise<ToolContext | null> {
    await this.#othersEnded(signal)
    return this.only
  }

  /**
   * Does the work of a call, which does not reject. When a person must be asked first, what came of it is void:
   * `context.suspend` throws.
   */
  async during<T>(context: ToolContext, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const suspension = new AbortController()
    const call: OpenCall = { context, answers: this.#answersFor(context), suspension, taken: false }
    this.#open.add(call)
    try {
      const result = await work(AbortSignal.any([context.signal, suspension.signal]))
      const reason: unknown = suspension.signal.reason
      if (reason instanceof Suspended) {
        const { payload, content } = reason.question
        return context.suspend(payload, answerSchema(content))
      }
      this.#history.delete(context.idempotencyKey)
      return result
    } finally {
      this.#open.delete(call)
      this.#tellChange()
    }
  }

  /** What a person has answered to a question of the server. */
  async ask(question: PersonQuestion, signal: AbortSignal): Promise<SourceAnswer> {
    const known = this.#knownAnswer(question)
    if (known !== undefined) return known
    const call = await this.#askingCall(signal)
    if (call === undefined) return { action: 'cancel' }
    this.#remember(call.context.idempotencyKey, { question: keyOf(question), answer: null })
    call.suspension.abort(new Suspended(question))
    return { action: 'cancel' }
  }

  #answersFor(context: ToolContext): Exchange[] {
    const { answer, idempotencyKey: key } = context
    if (answer === undefined) return []
    const exchanges = this.#history.get(key)
    const last = exchanges?.at(-1)
    // In a new process nothing is known of the question: the answer is for the first that comes.
    if (exchanges === undefined || last === undefined) return [{ question: null, answer }]
    exchanges[exchanges.length - 1] = { ...last, answer }
    return [...exchanges]
  }

  /** The same question gets the same answer, however often it comes: a call that was suspended may still go on at the server. */
  #knownAnswer(question: PersonQuestion): SourceAnswer | undefined {
    const asked = keyOf(question)
    for (const { answers } of this.#open) {
      const index = answers.findIndex((exchange) => exchange.question === null || exchange.question === asked)
      const exchange = answers[index]
      if (exchange === undefined || exchange.answer === null) continue
      answers[index] = { question: asked, answer: exchange.answer }
      return answerOf(exchange.answer)
    }
    return undefined
  }

  /** The call that asks, as far as that can be known; it is taken then, and asks no more. */
  async #askingCall(signal: AbortSignal): Promise<OpenCall | undefined> {
    await this.#othersEnded(signal)
    const [call] = signal.aborted ? [] : this.#free()
    if (call !== undefined) call.taken = true
    return call
  }

  /** Resolves when all open calls ask, or `signal` is aborted. */
  async #othersEnded(signal: AbortSignal): Promise<void> {
    this.#asking += 1
    this.#tellChange()
    while (this.#free().length > this.#asking && !signal.aborted) await this.#change(signal)
    this.#asking -= 1
  }

  #free(): readonly OpenCall[] {
    return [...this.#open].filter((call) => !call.taken)
  }

  /** Resolves when a call has ended or one more asks. */
  #change(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve)
      signal.addEventListener('abort', () => resolve(), { once: true })
    })
  }

  #tellChange(): void {
    for (const tell of this.#waiting.splice(0)) tell()
  }

  #remember(key: string, exchange: Exchange): void {
    const exchanges = this.#history.get(key) ?? []
    this.#history.delete(key)
    this.#history.set(key, [...exchanges, exchange])
    const [oldest] = this.#history.keys()
    if (this.#history.size > MOST_REMEMBERED && oldest !== undefined) this.#history.delete(oldest)
  }
}

/** Suspended calls whose questions are remembered; the answer to one that was forgotten goes to the first question. */
const MOST_REMEMBERED = 1_000

interface OpenCall {
  readonly context: ToolContext
  /** What was answered when it was suspended before. */
  readonly answers: Exchange[]
  readonly suspension: AbortController
  taken: boolean
}

interface Exchange {
  /** Null: unknown. */
  readonly question: string | null
  /** Null: not yet there. */
  readonly answer: JsonValue
}

class Suspended {
  readonly question: PersonQuestion

  constructor(question: PersonQuestion) {
    this.question = question
  }
}

function answerSchema(content: PersonQuestion['content']): JsonObject {
  const properties = { action: { enum: ['accept', 'decline', 'cancel'] }, ...(content !== null && { content }) }
  return { type: 'object', properties, required: ['action'] }
}

function answerOf(answer: JsonValue): SourceAnswer {
  const { action, content } = isObject(answer) ? answer : {}
  if (action === 'accept') return { action, content: isObject(content) ? content : {} }
  return { action: action === 'decline' ? 'decline' : 'cancel' }
}

function keyOf({ payload }: PersonQuestion): string {
  return JSON.stringify(payload)
}
