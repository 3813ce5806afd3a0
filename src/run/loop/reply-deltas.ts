import type { ModelDelta } from '../../contracts/model.js'
import { FINAL_RESULT } from '../../output/format.js'
import type { OutputFormat, PartialAnswer } from '../../output/format.js'
import type { RunContext } from '../core/context.js'

/** Tells the pieces of one reply as they arrive, and behind them what there is of the answer. */
export class ReplyDeltas {
  readonly #context: RunContext
  readonly #output: OutputFormat | null
  /** What is followed is the first text of a reply, or its first call of `final_result`. */
  #followed: { readonly callId: string | null; readonly answer: PartialAnswer | null } | null = null

  constructor(context: RunContext, output: OutputFormat | null) {
    this.#context = context
    this.#output = output
  }

  readonly tell = (delta: ModelDelta): void => {
    const { kind, text, callId } = delta
    if (kind === 'tool_input_delta') this.#context.tell(kind, { text, callId: callId ?? '' })
    else this.#context.tell(kind, { text })
    if (this.#output === null || !isOfAnswer(delta, this.#output)) return
    this.#followed ??= { callId: callId ?? null, answer: this.#output.follow() }
    if (this.#followed.callId !== (callId ?? null)) return
    const output = this.#followed.answer?.push(text)
    if (output !== undefined) this.#context.tell('output_delta', { output })
  }

  /** What was told does not count: the reply begins anew. */
  withdraw(): void {
    this.#followed = null
  }
}

function isOfAnswer({ kind, toolName }: ModelDelta, { mode }: OutputFormat): boolean {
  if (mode === 'tool') return kind === 'tool_input_delta' && toolName === FINAL_RESULT
  return kind === 'text_delta'
}
