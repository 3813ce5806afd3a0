import { HarnessError } from '../index.js'
import type { ScriptRequest } from './conversation.js'
import type { JsonObject } from '../index.js'
import { isObject } from '../util/json.js'
import { resolveReply } from './reply.js'
import type { Reply, ScriptedCall } from './reply.js'

/** What a line of a script says: a reply, its text, or something that goes wrong (`Fault`). */
export type Answer<Fault> = string | Reply | Fault

/** An answer that is computed from what was heard. What it throws fails the request. */
export type Rule<Request, Fault> = (request: Request) => Answer<Fault> | Promise<Answer<Fault>>

/** Tells a fault from a reply. */
interface Faulty {
  readonly fault: string
}

interface Line<Request, Fault> {
  readonly answer: Reply | Fault | Rule<Request, Fault>
  readonly label: string
  readonly waits: readonly Promise<unknown>[]
}

type Beside<Left extends keyof Reply> = Omit<Reply, Left | 'parts'>

const MOST_PROBLEMS = 20

/**
 * What a scripted model answers, request by request, in the order in which the requests come. It is strict: a request
 * without a line fails, and `assertDone` fails when a line had no request.
 */
export abstract class Script<Request extends ScriptRequest, Fault extends Faulty> {
  readonly #lines: Line<Request, Fault>[] = []
  readonly #problems: string[] = []
  #next = 0
  #last: Line<Request, Fault> | null = null
  #waits: Promise<unknown>[] = []

  /** Who answers, for messages. */
  protected abstract readonly title: string

  /** A reply of this text. */
  says(text: string, beside: Beside<'text'> = {}): this {
    return this.#add(`says ${quoted(text)}`, { text, ...beside })
  }

  /** A reply that calls one tool. `args` as a string is sent as it is, so that it need not be JSON. */
  calls(name: string, args: JsonObject | string = {}, beside: Beside<'calls'> & { callId?: string | null } = {}): this {
    const { callId, ...rest } = beside
    const call = { name, arguments: args, ...(callId !== undefined && { callId }) }
    return this.#add(`calls \`${name}\``, { calls: [call], ...rest })
  }

  /** A reply that calls several tools. */
  callsAll(calls: readonly ScriptedCall[], beside: Beside<'calls'> = {}): this {
    return this.#add(`calls ${calls.map(({ name }) => `\`${name}\``).join(', ')}`, { calls, ...beside })
  }

  /** A reply that refuses with these words. */
  refuses(refusal: string, beside: Beside<'refusal'> = {}): this {
    return this.#add(`refuses ${quoted(refusal)}`, { refusal, ...beside })
  }

  /** Any reply, or a function that makes it from the request. */
  replies(answer: Answer<Fault> | Rule<Request, Fault>): this {
    return this.#add('replies', answer)
  }

  /** The answer to every request from here on, however many come, none included. Must be the last line. */
  always(answer: Answer<Fault> | Rule<Request, Fault>): this {
    this.#add('always', answer)
    this.#last = this.#lines.pop() ?? null
    return this
  }

  /** The next line is answered only after `gate` has settled: delays are the test's own. */
  waits(gate: Promise<unknown>): this {
    this.#waits.push(gate)
    return this
  }

  /**
   * Throws unless every line had its request and every request its line. A `using` block calls it at its end, also after
   * a failure inside: then a `SuppressedError` holds both.
   */
  assertDone(): void {
    const left = this.#lines.slice(this.#next).map((line) => line.label)
    const problems = [...this.#problems]
    if (left.length > 0) problems.push(`Nobody asked for: ${left.join('; ')}.`)
    if (this.#waits.length > 0) problems.push('The last `waits` has no line behind it.')
    if (problems.length > 0) throw new Error(`The script of ${this.title} was not followed. ${problems.join(' ')}`)
  }

  [Symbol.dispose](): void {
    this.assertDone()
  }

  /**
   * The answer to a request. The line is taken at once, so that requests get their lines in the order in which they came.
   * @internal
   */
  async answer(request: Request): Promise<Reply | Fault> {
    const line = this.#take(request)
    if (line.waits.length > 0) await Promise.allSettled(line.waits)
    if (typeof line.answer !== 'function') return line.answer
    return whole(await line.answer(request))
  }

  /**
   * The answer of `always` where it is one and the same for every request.
   * @internal
   */
  get constant(): Reply | Fault | null {
    const line = this.#next < this.#lines.length ? null : this.#last
    return line === null || typeof line.answer === 'function' || line.waits.length > 0 ? null : line.answer
  }

  protected add(label: string, fault: Fault): this {
    return this.#add(label, fault)
  }

  /** Notes something for `assertDone` to tell. */
  protected note(problem: string): void {
    if (this.#problems.length < MOST_PROBLEMS) this.#problems.push(problem)
  }

  #add(label: string, answer: Answer<Fault> | Rule<Request, Fault>): this {
    if (this.#last !== null) {
      throw new HarnessError('invalid_options', `Expected no line behind \`always\`, got \`${label}\`.`)
    }
    const made = typeof answer === 'function' ? answer : whole(answer)
    if (!isRule(made) && !isFault(made)) resolveReply(made)
    this.#lines.push({ answer: made, label, waits: this.#waits })
    this.#waits = []
    return this
  }

  #take({ heard, turn }: Request): Line<Request, Fault> {
    const line = this.#lines[this.#next] ?? this.#last
    if (line === null) {
      const count = this.#lines.length
      const problem = `Request ${turn + 1} (\`${heard.kind}\`) has no scripted reply; the script has ${count}.`
      this.note(problem)
      throw new ScriptEnded(`The script of ${this.title} was not followed. ${problem}`)
    }
    if (this.#next < this.#lines.length) this.#next++
    return line
  }
}

/** A request for which a script has no line. */
export class ScriptEnded extends HarnessError {
  constructor(message: string) {
    super('provider_error', message)
  }
}

/** Whether an answer is something that goes wrong. */
export function isFault<Fault extends Faulty>(answer: Answer<Fault>): answer is Fault {
  return isObject(answer) && 'fault' in answer
}

function isRule<Request, Fault>(answer: Reply | Fault | Rule<Request, Fault>): answer is Rule<Request, Fault> {
  return typeof answer === 'function'
}

function whole<Fault>(answer: Answer<Fault>): Reply | Fault {
  return typeof answer === 'string' ? { text: answer } : answer
}

function quoted(text: string): string {
  return JSON.stringify(text.length > 40 ? `${text.slice(0, 40)}…` : text)
}
