import type { ModelTurn, TurnOptions } from '../../contracts/model.js'
import type { PaidReply } from '../../money/spending.js'
import type { OutputContext } from '../../tools/output-type.js'
import { resolveTurn } from '../../output/resolve.js'
import type { Resolved } from '../../output/resolve.js'
import { settle } from '../../util/abort.js'
import type { CheckedArguments } from '../../tools/boundary/arguments.js'
import type { BackgroundWork, Until } from '../core/background-work.js'
import type { ConfigDigest } from '../machine/config-digest.js'
import { refusedContent } from '../machine/limit-notices.js'
import type { RunContext } from '../core/context.js'
import type { Effects, Reply } from '../core/effects.js'
import type { RequestKind } from '../machine/events.js'
import type { Frozen } from '../core/frozen.js'
import { CallIds, normalizeTurn } from './normalize.js'
import { entryId } from '../machine/state.js'
import { viewOf } from '../machine/view.js'
import type { BatchCall } from '../machine/batch-call.js'
import { ReplyDeltas } from './reply-deltas.js'
import { ToolBatchExecutor } from '../calls/batch.js'
import { completeUnrun } from '../calls/call.js'

/** Asks the model and runs the tools. */
export class LiveEffects implements Effects {
  readonly #context: RunContext
  readonly #frozen: Frozen
  readonly #batches: ToolBatchExecutor
  readonly #ids: CallIds
  /** The checked arguments of the calls in the last reply, by call id. */
  #checked: ReadonlyMap<string, CheckedArguments> = new Map()
  /** Null while no call has left a run behind here. */
  #background: Promise<BackgroundWork> | null = null

  constructor(context: RunContext, frozen: Frozen) {
    this.#context = context
    this.#frozen = frozen
    this.#batches = new ToolBatchExecutor(context, frozen, () => this.#backgroundRuns())
    this.#ids = new CallIds(context.state.transcript)
  }

  async configure(): Promise<ConfigDigest> {
    await this.#frozen.refresh?.(this.#context.signal)
    return this.#frozen.config
  }

  async ask(requestKind: RequestKind): Promise<Reply> {
    const { state, clock, responses, tracer } = this.#context
    const { tools } = this.#frozen
    const ask = (maxOutputTokens: number | null): Promise<ModelTurn> => {
      const asked = (): Promise<ModelTurn> => this.#turn(requestKind, maxOutputTokens)
      return tracer === null ? asked() : tracer.within({ kind: 'turn', requestKind }, asked)
    }
    const { reply, cost, turn, checked, resolution, value } = await this.#untilAborted(async () => {
      const answered = await this.#paid(ask)
      requireReply(answered.turn)
      const normalized = await normalizeTurn(answered.turn, tools, this.#ids)
      const resolved = await this.#resolve(normalized.turn, requestKind)
      return { reply: answered.turn, cost: answered.cost, ...normalized, ...resolved }
    })
    responses.push(reply.raw)
    this.#checked = checked
    return {
      value,
      message: {
        finalizedOutputMode: resolution.kind === 'final' ? resolution.mode : null,
        entry: { ...turn.entry, id: entryId(state.transcript.length), at: clock.iso() },
        resolution,
        nativeFinishReason: turn.nativeFinishReason,
        responseId: turn.responseId,
        responseModel: turn.responseModel,
        ...(cost !== null && { cost }),
      },
    }
  }

  /** By way of the middleware, where there is any. */
  async #turn(requestKind: RequestKind, maxOutputTokens: number | null): Promise<ModelTurn> {
    const { state, hooks, runId, parent, metadata, signal } = this.#context
    const { session, constants } = this.#frozen
    const { entries, generation } = viewOf(state)
    const options = { ...this.#turnOptions(maxOutputTokens), generation }
    if (hooks.wraps.model.length === 0) return session.turn(entries, constants, options)
    const about = { runId, agentName: parent?.agentName ?? null, metadata, requestKind, signal }
    const { wrappedTurn } = await import('../hooks/wraps.js')
    return wrappedTurn(hooks.wraps, { ...about, transcript: entries, constants }, (call) =>
      session.turn(call.transcript, call.constants, { ...options, signal: call.signal }),
    )
  }

  /** Paid for, where somebody asks what the run costs. */
  async #paid(ask: (maxOutputTokens: number | null) => Promise<ModelTurn>): Promise<PaidReply<ModelTurn>> {
    const { state, signal } = this.#context
    const { spending } = this.#frozen
    if (spending === null) return { turn: await ask(null), cost: null }
    return spending.pay({ transcript: viewOf(state).entries, constants: this.#frozen.constants, signal, ask })
  }

  runTools(calls: readonly BatchCall[]): Promise<void> {
    return this.#batches.perform(calls, this.#checked)
  }

  async refuseCalls(calls: readonly BatchCall[]): Promise<void> {
    const { rules, usage, phase } = this.#context.state
    const batch = phase.at === 'batch' ? phase.calls : calls
    const content = refusedContent(rules, batch.length, usage.toolCalls)
    const refusal = { kind: 'failed', errorType: 'LimitReached', content, retry: false } as const
    for (const call of calls) await completeUnrun(this.#context, call, batch.indexOf(call), refusal)
  }

  settleUnknown(calls: readonly BatchCall[]): Promise<void> {
    return this.#batches.settleUnknown(calls)
  }

  async tellBackground(until: Until): Promise<boolean> {
    if (this.#context.state.background === undefined) return false
    const background = await this.#backgroundRuns()
    return background.tell(until, this.#frozen.input)
  }

  async endBackground(): Promise<void> {
    await (await this.#backgroundRuns()).end()
  }

  async stop(): Promise<void> {
    await (await this.#background)?.end()
  }

  /** Few runs have any, so that the code for them is loaded by the first. */
  #backgroundRuns(): Promise<BackgroundWork> {
    this.#background ??= import('../children/background.js').then(
      ({ BackgroundRuns }) => new BackgroundRuns(this.#context, this.#frozen),
    )
    return this.#background
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
    const resolved = await resolveTurn(turn, this.#frozen.output, this.#outputContext())
    const { resolution } = resolved
    const emptyAgain = requestKind === 'empty_retry' && resolution.kind === 'ask_again' && resolution.reason === 'empty'
    return emptyAgain
      ? { resolution: { kind: 'unexpected', message: 'The model gave an empty reply twice.' } }
      : resolved
  }

  #outputContext(): OutputContext {
    const { runId, metadata, signal, state } = this.#context
    return { runId, metadata, signal, root: this.#frozen.root, transcript: state.transcript }
  }

  #turnOptions(maxOutputTokens: number | null): Omit<TurnOptions, 'generation'> {
    const context = this.#context
    const deltas = this.#frozen.deltas ? new ReplyDeltas(context, this.#frozen.output) : null
    const { closing, rules } = context.state
    // A forced call of `final_result` would be refused by models that think: there the notice must do.
    const withoutTools = closing !== null && !rules.answersByTool && this.#frozen.constants.tools.length > 0
    return {
      signal: context.signal,
      ...(withoutTools && { toolChoice: 'none' }),
      ...(maxOutputTokens !== null && { maxOutputTokens }),
      ...(deltas !== null && { onDelta: deltas.tell }),
      onRetry: (retry) => {
        context.tell('transport_retry', retry)
        if (!retry.withdrawn) return
        context.tell('deltas_withdrawn', { attempt: retry.attempt })
        deltas?.withdraw()
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

/** Models are written by anybody. */
function requireReply(turn: ModelTurn | undefined): void {
  if (turn === undefined) throw new RangeError('Expected a reply of the model, got nothing (ended).')
}
