import { createHash } from 'node:crypto'
import { HarnessError } from '#contracts/errors.js'
import type { SourceAnswer } from '#core/tools/tool-source.js'
import type { ToolContext } from '#core/tools/tool-spec.js'
import { isObject } from '#util/json.js'
import type { JsonObject, JsonSchema, JsonValue } from '#util/json.js'

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
 * A question ends the call at the server and suspends it here. Once there is an answer, the call is made again from its
 * beginning, and gets the answer when the server asks the same question: its payload is the key of the question.
 */
export class OpenToolCalls {
  readonly #open = new Set<OpenCall>()
  readonly #waiting: (() => void)[] = []
  /** Number of waiting questions. */
  #asking = 0

  /** The only open call; null if there is none, or several. */
  get only(): ToolContext | null {
    const [first, ...others] = this.#open
    return first !== undefined && others.length === 0 ? first.context : null
  }

  /** The call to which a request of the server belongs; null if several calls ask. */
  async callOf(signal: AbortSignal): Promise<ToolContext | null> {
    await this.#othersEnded(signal)
    return this.only
  }

  /**
   * Does the work of a call, which does not reject. When a person must be asked first, its result is void, and
   * `context.ask` rejects.
   */
  async during<T>(context: ToolContext, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const suspension = new AbortController()
    const call: OpenCall = { context, suspension, taken: false }
    this.#open.add(call)
    try {
      const result = await work(AbortSignal.any([context.signal, suspension.signal]))
      const reason: unknown = suspension.signal.reason
      if (reason instanceof Suspended) {
        await answerTo(reason.question, context)
        throw new HarnessError('error', 'A question that has its answer suspends no call.')
      }
      return result
    } finally {
      this.#open.delete(call)
      this.#notifyChange()
    }
  }

  /** A person's answer to a question of the server. */
  async ask(question: PersonQuestion, signal: AbortSignal): Promise<SourceAnswer> {
    for (const { context } of this.#open) {
      // The same question gets the same answer, however often it comes: the server may still work on an earlier call.
      const known = await answerTo(question, context).catch(() => null)
      if (known !== null) return known
    }
    const call = await this.#askingCall(signal)
    if (call === undefined) return { action: 'cancel' }
    call.suspension.abort(new Suspended(question))
    return { action: 'cancel' }
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
}

interface OpenCall {
  readonly context: ToolContext
  readonly suspension: AbortController
  taken: boolean
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

function sourceAnswer(answer: JsonValue): SourceAnswer {
  const { action, content } = isObject(answer) ? answer : {}
  if (action === 'accept') return { action, content: isObject(content) ? content : {} }
  return { action: action === 'decline' ? 'decline' : 'cancel' }
}

async function answerTo({ payload, content }: PersonQuestion, context: ToolContext): Promise<SourceAnswer> {
  const key = createHash('sha256').update(JSON.stringify(payload)).digest('hex').slice(0, 16)
  return sourceAnswer(await context.ask(payload, answerSchema(content), { key }))
}
