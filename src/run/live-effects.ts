import type { ModelTurn, TurnOptions } from '../model/contracts.js'
import { resolveTurn } from '../output/resolve.js'
import type { Resolved } from '../output/resolve.js'
import { settle } from './abort.js'
import type { RunContext } from './context.js'
import type { Effects, Reply } from './effects.js'
import type { RequestKind } from './events.js'
import type { Frozen } from './frozen.js'
import { CallIds, normalizeTurn } from './normalize.js'
import { entryId } from './state.js'
import type { BatchCall } from './state.js'
import { performStep } from './steps.js'
import { ToolBatchExecutor } from './tool-batch.js'

/** Asks the model and runs the tools. */
export class LiveEffects implements Effects {
  readonly #context: RunContext
  readonly #frozen: Frozen
  readonly #batches: ToolBatchExecutor
  readonly #ids: CallIds

  constructor(context: RunContext, frozen: Frozen) {
    this.#context = context
    this.#frozen = frozen
    this.#batches = new ToolBatchExecutor(context, frozen)
    this.#ids = new CallIds(context.state.transcript)
  }

  async ask(requestKind: RequestKind): Promise<Reply> {
    const { state, clock, responses, trace } = this.#context
    const { session, constants, steps, tools } = this.#frozen
    const asked = (): Promise<ModelTurn> => session.turn(state.transcript, constants, this.#turnOptions())
    const ask = trace === null ? asked : () => trace.within({ kind: 'turn', requestKind }, asked)
    const { reply, turn, checked, resolution, value } = await this.#untilAborted(async () => {
      const answered = await performStep(steps, `turn:${state.usage.modelRequests + 1}`, ask)
      const normalized = await normalizeTurn(answered, tools, this.#ids)
      return { reply: answered, ...normalized, ...(await this.#resolve(normalized.turn, requestKind)) }
    })
    responses.push(reply.raw)
    this.#context.checked = checked
    return {
      value,
      message: {
        text: turn.text,
        toolCalls: turn.toolCalls.map(({ callId, name }) => ({ id: callId, name })),
        finalizedOutputMode: resolution.kind === 'final' ? resolution.mode : null,
        entry: { ...turn.entry, id: entryId(state.transcript.length), at: clock.iso() },
        resolution,
        nativeFinishReason: turn.nativeFinishReason,
        responseId: turn.responseId,
        responseModel: turn.responseModel,
      },
    }
  }

  runTools(calls: readonly BatchCall[]): Promise<void> {
    return this.#batches.perform(calls)
  }

  settleUnknown(calls: readonly BatchCall[]): Promise<void> {
    return this.#batches.settleUnknown(calls)
  }

  /** What heeds no signal, such as a model or a schema that asks somebody, is left behind when the run is aborted. */
  async #untilAborted<T>(work: () => Promise<T>): Promise<T> {
    this.#context.signal.throwIfAborted()
    const { stopped, value } = await settle(work, { abort: this.#context.abort, timeoutMs: undefined })
    this.#context.signal.throwIfAborted()
    if (value === undefined) throw new RangeError(`Expected a reply of the model, got nothing (${stopped ?? 'ended'}).`)
    return value
  }

  async #resolve(turn: ModelTurn, requestKind: RequestKind): Promise<Resolved> {
    const resolved = await resolveTurn(turn, this.#frozen.output)
    const { resolution } = resolved
    const emptyAgain = requestKind === 'empty_retry' && resolution.kind === 'ask_again' && resolution.reason === 'empty'
    return emptyAgain
      ? { resolution: { kind: 'unexpected', message: 'The model gave an empty reply twice.' } }
      : resolved
  }

  #turnOptions(): TurnOptions {
    const context = this.#context
    return {
      signal: context.signal,
      ...(this.#frozen.deltas && {
        onDelta: ({ kind, text, callId }) => {
          if (kind === 'tool_input_delta') context.tell(kind, { text, callId: callId ?? '' })
          else context.tell(kind, { text })
        },
      }),
      onRetry: (retry) => {
        context.tell('transport_retry', retry)
        if (retry.withdrawn) context.tell('deltas_withdrawn', { attempt: retry.attempt })
      },
      onCacheBust: (bust) => void context.emit('cache_bust', bust).catch(ignore),
      onRepair: (repair) => void context.emit('transcript_repaired', repair).catch(ignore),
    }
  }
}

/** An append that fails is told by the next event that the run waits for. */
function ignore(): void {
  return undefined
}
