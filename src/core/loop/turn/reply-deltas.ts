import { UNREPORTED_USAGE } from '#contracts/entry.js'
import type { AssistantEntry, TokenUsage, Unstamped } from '#contracts/entry.js'
import type { Model, ModelDelta } from '../../model-session.js'
import { FINAL_RESULT } from '../../state/output-format.js'
import type { OutputFormat, PartialAnswer } from '../../state/output-format.js'
import { GrowingText } from '#util/growing-text.js'
import type { Readers } from '../../extension/readers.js'
import type { RunContext } from '../run-context.js'

/** What readers see of a reply. */
interface Shown {
  /** Null: all of it, as it arrives. */
  readonly reply: ReturnType<Readers['reply']> | null
  failure: { readonly error: unknown } | null
}

/** Emits the deltas of one reply as they arrive, and after them the partial answer. */
export class ReplyDeltas {
  readonly #context: RunContext
  readonly #output: OutputFormat | null
  /** The source of the partial answer: the first text of a reply, or its first call of `final_result`. */
  #followed: { readonly callId: string | null; readonly answer: PartialAnswer | null } | null = null

  /** Kind and number of the part that arrives: text after anything else is another part. */
  #part = { kind: '', number: 0 }

  /** The text of the reply so far, by part. */
  readonly #texts: { readonly number: number; readonly text: GrowingText }[] = []
  #usage: TokenUsage = UNREPORTED_USAGE

  readonly #readers: Readers | null
  #shown: Shown

  constructor(context: RunContext, output: OutputFormat | null) {
    this.#context = context
    this.#output = output
    this.#readers = context.extensions.readers
    this.#shown = { reply: this.#readers?.reply() ?? null, failure: null }
  }

  readonly emit = (delta: ModelDelta): void => {
    const { kind, text, callId } = delta
    if (kind !== this.#part.kind) {
      if (this.#readers?.holdReplies !== true) this.end()
      this.#part = { kind, number: this.#part.number + 1 }
    }
    if (kind === 'text_delta') this.#keep(text)
    const partId = `${this.#context.state.seq}.${this.#part.number}`
    const { reply } = this.#shown
    if (reply === null) return this.#show(delta, partId)
    this.#pass(() => reply.push(delta, kind === 'tool_input_delta' ? (callId ?? '') : partId))
  }

  /** The parts that have arrived are complete: emits what the filters have withheld of them. */
  end(): void {
    if (this.#shown.reply === null) return
    this.#pass(() => this.#shown.reply?.end() ?? [])
  }

  /** What a filter has thrown. */
  get failure(): Shown['failure'] {
    return this.#shown.failure
  }

  /** Emits what the filters let pass. If one fails, or blocks the reply, nothing of it is shown. */
  #pass(read: () => readonly (readonly [string, ModelDelta])[]): void {
    if (this.failure !== null) return
    try {
      for (const [partId, delta] of read()) this.#show(delta, partId)
    } catch (error) {
      this.#shown.failure = { error }
      this.#context.emitLive('deltas_withdrawn', { attempt: 0 })
    }
  }

  #show(delta: ModelDelta, partId: string): void {
    const { kind, text, callId, toolName } = delta
    if (kind === 'tool_input_delta')
      this.#context.emitLive(kind, { text, callId: callId ?? '', ...(toolName !== undefined && { toolName }) })
    else this.#context.emitLive(kind, { text, partId })
    if (this.#output === null || this.#readers?.holdReplies === true || !isOfAnswer(delta, this.#output)) return
    this.#followed ??= { callId: callId ?? null, answer: this.#output.follow() }
    if (this.#followed.callId !== (callId ?? null)) return
    const output = this.#followed.answer?.push(text)
    if (output !== undefined) this.#context.emitLive('output_delta', { output })
  }

  readonly count = (usage: TokenUsage): void => {
    this.#usage = usage
  }

  /**
   * The reply as far as it has arrived, for a run that was aborted: its text, without calls; null if there is none. `usage`
   * is that of the reply if it has ended.
   */
  cutOff(
    { provider, id: model }: Pick<Model, 'provider' | 'id'>,
    usage: TokenUsage = this.#usage,
  ): Unstamped<AssistantEntry> | null {
    // A provider takes no empty text. The last character may be half of a pair.
    const parts = this.#texts.flatMap(({ text }) => {
      const whole = text.whole.replace(/[\uD800-\uDBFF]$/, '')
      return whole.trim() === '' ? [] : [{ type: 'text' as const, text: whole }]
    })
    if (parts.length === 0) return null
    return { role: 'assistant', parts, provider, model, finishReason: 'cancelled', usage }
  }

  #keep(text: string): void {
    const { number } = this.#part
    if (this.#texts.at(-1)?.number !== number) this.#texts.push({ number, text: new GrowingText() })
    this.#texts.at(-1)?.text.add(text)
  }

  /** The emitted deltas do not count: the reply begins again. */
  withdraw(): void {
    this.#followed = null
    this.#shown = { reply: this.#readers?.reply() ?? null, failure: null }
    this.#texts.length = 0
    this.#part = { kind: '', number: this.#part.number }
  }
}

function isOfAnswer({ kind, toolName }: ModelDelta, { mode }: OutputFormat): boolean {
  return mode === 'tool' ? kind === 'tool_input_delta' && toolName === FINAL_RESULT : kind === 'text_delta'
}
