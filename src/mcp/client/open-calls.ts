import type { SourceAnswer } from '../../tools/source.js'
import type { ToolContext } from '../../tools/spec.js'
import { isObject } from '../../util/json.js'
import type { JsonObject, JsonSchema, JsonValue } from '../../util/json.js'

/** A question of a server to a person. The same payload is the same question. */
export interface PersonQuestion {
  /** Shown to the person. */
  readonly payload: JsonObject
  /** Schema of the content of an accepting answer; null for none. */
  readonly content: JsonSchema | null
}

/**
 * The open calls of a server, and its questions during them. The protocol does not say to which call a question belongs: it
 * belongs to the only open call; with several it waits until all others have ended or ask as well.
 *
 * A question ends the call at the server and suspends it here. Once the answer arrives, the call is made again from the
 * start, and receives the answer when the server asks the same question.
 */
export class OpenCalls {
  readonly #open = new Set<OpenCall>()
  readonly #waiting: (() => void)[] = []
  /** Number of waiting questions. */
  #asking = 0
  /** Questions and answers of suspended calls, by idempotency key. */
  readonly #history = new Map<string, Exchange[]>()

  /** The only open call; null if there is none, or several. */
  get only(): ToolContext | null {
    const [first, ...others] = this.#open
    return first !== undefined && others.length === 0 ? first.context : null
  }

  /** The call to which a request of the server belongs; null if several calls ask. */
  async whose(signal: AbortSignal): Promise<ToolContext | null> {
    await this.#othersEnded(signal)
    return this.only
  }

  /**
   * Performs the work of a call, which does not reject. If a person must be asked first, its result is discarded and
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
      this.#notifyChange()
    }
  }

  /** A person's answer to a question of the server. */
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
    // A new process does not know the question: the answer is given to the first one.
    if (exchanges === undefined || last === undefined) return [{ question: null, answer }]
    exchanges[exchanges.length - 1] = { ...last, answer }
    return [...exchanges]
  }

  /** The same question always gets the same answer: a suspended call may still be running at the server. */
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

  /** The call that asks; it is taken from then on and cannot ask again. */
  async #askingCall(signal: AbortSignal): Promise<OpenCall | undefined> {
    await this.#othersEnded(signal)
    const [call] = signal.aborted ? [] : this.#free()
    if (call !== undefined) call.taken = true
    return call
  }

  /** Resolves once all open calls ask, or `signal` is aborted. */
  async #othersEnded(signal: AbortSignal): Promise<void> {
    this.#asking += 1
    this.#notifyChange()
    while (this.#free().length > this.#asking && !signal.aborted) await this.#change(signal)
    this.#asking -= 1
  }

  #free(): readonly OpenCall[] {
    return [...this.#open].filter((call) => !call.taken)
  }

  /** Resolves when a call ends or another one asks. */
  #change(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve)
      signal.addEventListener('abort', () => resolve(), { once: true })
    })
  }

  #notifyChange(): void {
    for (const notify of this.#waiting.splice(0)) notify()
  }

  #remember(key: string, exchange: Exchange): void {
    const exchanges = this.#history.get(key) ?? []
    this.#history.delete(key)
    this.#history.set(key, [...exchanges, exchange])
    const [oldest] = this.#history.keys()
    if (this.#history.size > MOST_REMEMBERED && oldest !== undefined) this.#history.delete(oldest)
  }
}

/** Most suspended calls whose questions are remembered; the answer to a forgotten one goes to the first question. */
const MOST_REMEMBERED = 1_000

interface OpenCall {
  readonly context: ToolContext
  /** Answers from earlier suspensions. */
  readonly answers: Exchange[]
  readonly suspension: AbortController
  taken: boolean
}

interface Exchange {
  /** Null: unknown. */
  readonly question: string | null
  /** Null: not answered yet. */
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
