import { HarnessError } from '#contracts/errors.js'
import type { ScriptRequest } from './script-request.js'
import type { JsonInput, JsonObject } from '#util/json.js'
import { isObject } from '#util/json.js'
import { resolveReply } from './reply.js'
import type { ScriptedReply, ScriptedCall } from './reply.js'

/** A line of a script: a reply, its text, or a failure (`Fault`). */
export type ScriptedAnswer<Fault> = string | ScriptedReply | Fault

/** Computes an answer from the request. An error that it throws fails the request. */
export type ScriptedRule<Request, Fault> = (request: Request) => ScriptedAnswer<Fault> | Promise<ScriptedAnswer<Fault>>

/** Distinguishes a fault from a reply. */
interface Faulty {
  readonly fault: string
}

interface Line<Request, Fault> {
  readonly answer: ScriptedReply | Fault | ScriptedRule<Request, Fault>
  readonly label: string
  readonly waits: readonly Promise<unknown>[]
}

type More<Left extends keyof ScriptedReply> = Omit<ScriptedReply, Left | 'parts'>

const MOST_PROBLEMS = 20
/** The tool by which a model gives a structured answer. */
const ANSWER_TOOL = 'final_result'

/**
 * The answers of a scripted model, in the order of the requests. It is strict: a request without a line fails, and
 * `assertDone` fails if a line had no request.
 */
export abstract class Script<Request extends ScriptRequest, Fault extends Faulty> {
  readonly #lines: Line<Request, Fault>[] = []
  readonly #problems: string[] = []
  #next = 0
  #requests = 0
  #last: Line<Request, Fault> | null = null
  #waits: Promise<unknown>[] = []

  /** Name of the model or provider, for messages. */
  protected abstract readonly title: string

  /** A reply of this text. */
  says(text: string, more: More<'text'> = {}): this {
    return this.#add(`says ${quoteShort(text)}`, { text, ...more })
  }

  /** A reply that calls one tool. `args` as a string is sent unchanged, and may be invalid JSON. */
  calls(name: string, args: JsonObject | string = {}, more: More<'calls'> & { callId?: string | null } = {}): this {
    const { callId, ...rest } = more
    const call = { name, arguments: args, ...(callId !== undefined && { callId }) }
    return this.#add(`calls \`${name}\``, { calls: [call], ...rest })
  }

  /** A reply that calls several tools. */
  callsAll(calls: readonly ScriptedCall[], more: More<'calls'> = {}): this {
    return this.#add(`calls ${calls.map(({ name }) => `\`${name}\``).join(', ')}`, { calls, ...more })
  }

  /** A reply that refuses, with this explanation. */
  refuses(refusal: string, more: More<'refusal'> = {}): this {
    return this.#add(`refuses ${quoteShort(refusal)}`, { refusal, ...more })
  }

  /**
   * A structured answer for the `outputType` of the run, in the form that the request asks for: a call of `final_result`, or
   * JSON as the text.
   */
  answers(value: JsonInput): this {
    const label = `answers ${quoteShort(JSON.stringify(value))}`
    return this.#add(label, ({ tools }) =>
      tools.includes(ANSWER_TOOL)
        ? { calls: [{ name: ANSWER_TOOL, arguments: JSON.stringify(value) }] }
        : { text: JSON.stringify(value) },
    )
  }

  /** Any reply, or a function that computes it from the request. */
  replies(answer: ScriptedAnswer<Fault> | ScriptedRule<Request, Fault>): this {
    return this.#add('replies', answer)
  }

  /** The answer to every further request; there may be none. Must be the last line. */
  always(answer: ScriptedAnswer<Fault> | ScriptedRule<Request, Fault>): this {
    this.#add('always', answer)
    this.#last = this.#lines.pop() ?? null
    return this
  }

  /** Delays the next line until `gate` has settled. */
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
    if (this.#waits.length > 0) problems.push('The last `waits` has no line after it.')
    if (problems.length > 0) throw new Error(`The script of ${this.title} was not followed. ${problems.join(' ')}`)
  }

  [Symbol.dispose](): void {
    this.assertDone()
  }

  /**
   * The answer to a request. The line is taken at once, so that requests get their lines in their order.
   * @internal
   */
  async answer(request: Request): Promise<ScriptedReply | Fault> {
    const line = this.#take(request)
    if (line.waits.length > 0) await Promise.allSettled(line.waits)
    if (typeof line.answer !== 'function') return line.answer
    return wholeAnswer(await line.answer(request))
  }

  /**
   * The answer of `always` if it is the same for every request.
   * @internal
   */
  get constant(): ScriptedReply | Fault | null {
    const line = this.#next < this.#lines.length ? null : this.#last
    return line === null || typeof line.answer === 'function' || line.waits.length > 0 ? null : line.answer
  }

  protected add(label: string, fault: Fault): this {
    return this.#add(label, fault)
  }

  /** True if the request asks for a structured answer. */
  protected wantsAnswer({ tools }: Request): boolean {
    return tools.includes(ANSWER_TOOL)
  }

  /** Adds a problem that `assertDone` reports. */
  protected note(problem: string): void {
    if (this.#problems.length < MOST_PROBLEMS) this.#problems.push(problem)
  }

  #add(label: string, answer: ScriptedAnswer<Fault> | ScriptedRule<Request, Fault>): this {
    if (this.#last !== null) {
      throw new HarnessError('invalid_options', `Expected no line after \`always\`, got \`${label}\`.`)
    }
    const made = typeof answer === 'function' ? answer : wholeAnswer(answer)
    if (!isRule(made) && !isFault(made)) resolveReply(made)
    this.#lines.push({ answer: made, label, waits: this.#waits })
    this.#waits = []
    return this
  }

  /** The line that is missing if the run has an `outputType`. */
  #hint(request: Request): string {
    if (!this.wantsAnswer(request)) return ''
    const before = request.heard.kind === 'correction' ? ' The last reply is not an answer of the `outputType`.' : ''
    return `${before} Expected an answer of the \`outputType\`: add \`.answers({ … })\`.`
  }

  #take(request: Request): Line<Request, Fault> {
    const { heard } = request
    this.#requests += 1
    const line = this.#lines[this.#next] ?? this.#last
    if (line === null) {
      const count = this.#lines.length
      const problem = `Request ${this.#requests} (\`${heard.kind}\`) has no scripted reply; the script has ${count}.${this.#hint(request)}`
      this.note(problem)
      throw new ScriptEnded(`The script of ${this.title} was not followed. ${problem}`)
    }
    if (this.#next < this.#lines.length) this.#next++
    return line
  }
}

/** A request without a line. */
export class ScriptEnded extends HarnessError {
  constructor(message: string) {
    super('provider_error', message)
  }
}

/** True if an answer is a fault. */
export function isFault<Fault extends Faulty>(answer: ScriptedAnswer<Fault>): answer is Fault {
  return isObject(answer) && 'fault' in answer
}

function isRule<Request, Fault>(
  answer: ScriptedReply | Fault | ScriptedRule<Request, Fault>,
): answer is ScriptedRule<Request, Fault> {
  return typeof answer === 'function'
}

function wholeAnswer<Fault>(answer: ScriptedAnswer<Fault>): ScriptedReply | Fault {
  return typeof answer === 'string' ? { text: answer } : answer
}

function quoteShort(text: string): string {
  return JSON.stringify(text.length > 40 ? `${text.slice(0, 40)}…` : text)
}
