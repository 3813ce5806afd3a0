import { entryId } from '../../contracts/entry.js'
import type { ModelTurn, TurnOptions } from '../../contracts/model.js'
import type { OutputContext } from '../../tools/output-type.js'
import { resolveTurn } from '../../output/resolve.js'
import type { Resolved } from '../../output/resolve.js'
import { untilStopped } from '../../util/abort.js'
import type { CheckedArguments } from '../../tools/boundary/arguments.js'
import type { ConfigDigest } from '../machine/config-digest.js'
import { refusedContent } from '../machine/limit-notices.js'
import type { RunContext } from '../core/context.js'
import type { Effects, HostNotices, Reply, Until } from '../core/effects.js'
import type { RequestKind } from '../machine/events.js'
import type { Frozen } from '../core/frozen.js'
import { changeView } from './change-view.js'
import { checkTurn } from './check-turn.js'
import { hostNotices } from './host-notices.js'
import { CallIds, normalizeTurn } from './normalize.js'
import type { NormalizedTurn } from './normalize.js'
import { viewOf } from '../machine/view.js'
import type { BatchCall } from '../machine/batch-call.js'
import { ReplyDeltas } from './reply-deltas.js'
import { ToolBatchExecutor } from '../calls/batch.js'
import { BackgroundRuns } from '../children/background.js'
import type { Work } from '../../util/wrapped.js'
import type { PaidReply } from '../../money/spending.js'
import { askingOf } from './asking.js'
import type { Request } from './asking.js'

/** A reply, as it came and as it is recorded, and its meaning. */
interface Answered extends NormalizedTurn, Resolved {
  readonly reply: ModelTurn
  readonly cost: number | null
}

/** Asks the model and runs the tools. */
export class LiveEffects implements Effects {
  readonly #context: RunContext
  readonly #frozen: Frozen
  readonly #batches: ToolBatchExecutor
  readonly #ids: CallIds
  readonly #ask: Work<Request, PaidReply<ModelTurn>>
  readonly #background: BackgroundRuns
  /** The checked arguments of the calls in the last reply, by call id. */
  #checked: ReadonlyMap<string, CheckedArguments> = new Map()

  constructor(context: RunContext, frozen: Frozen) {
    this.#context = context
    this.#frozen = frozen
    this.#ask = askingOf(context, frozen, (request) => this.#turnOptions(request))
    this.#background = new BackgroundRuns(context, frozen)
    this.#batches = new ToolBatchExecutor(context, frozen, (callId, left) => this.#background.begin(callId, left))
    this.#ids = new CallIds(context.state.transcript)
  }

  async configure(): Promise<ConfigDigest> {
    await this.#frozen.refresh?.(this.#context.signal)
    return this.#frozen.config
  }

  hostNotices(): Promise<HostNotices | null> {
    return hostNotices(this.#context)
  }

  async ask(requestKind: RequestKind): Promise<Reply> {
    if (this.#context.seams.views.length > 0) await changeView(this.#context, this.#frozen.model)
    const { abort, state, clock, responses, signal } = this.#context
    signal.throwIfAborted()
    // A model or a schema that heeds no signal is left when the run is aborted.
    const { stopped, value: answered } = await untilStopped(this.#answered(requestKind), abort)
    signal.throwIfAborted()
    if (answered === undefined) throw noReply(stopped)
    const { reply, cost, turn, checked, resolution, value } = answered
    responses.push(reply.raw)
    this.#checked = checked
    return {
      value,
      message: {
        finalizedOutputMode: resolution.kind === 'final' ? resolution.mode : null,
        entry: { id: entryId(state.transcript.length), at: clock.iso(), ...turn.entry },
        resolution,
        nativeFinishReason: turn.nativeFinishReason ?? null,
        responseId: turn.responseId ?? null,
        responseModel: turn.responseModel ?? null,
        ...(cost !== null && { cost }),
      },
    }
  }

  runTools(calls: readonly BatchCall[]): Promise<void> {
    return this.#batches.perform(calls, this.#checked)
  }

  async refuseCalls(calls: readonly BatchCall[]): Promise<void> {
    const { rules, usage, phase } = this.#context.state
    const batch = phase.at === 'batch' ? phase.calls : calls
    const content = refusedContent(rules, batch.length, usage.toolCalls)
    await this.#batches.refuse(calls, { kind: 'failed', errorType: 'LimitReached', content, retry: false })
  }

  settleUnknown(calls: readonly BatchCall[]): Promise<void> {
    return this.#batches.settleUnknown(calls)
  }

  async tellBackground(until: Until): Promise<boolean> {
    if (this.#context.state.background === undefined) return false
    return this.#background.tell(until, this.#frozen.input)
  }

  endBackground(): Promise<void> {
    return this.#background.end()
  }

  stop(): Promise<void> {
    return this.#background.end()
  }

  /** The next reply, read. */
  async #answered(requestKind: RequestKind): Promise<Answered> {
    const { state, signal } = this.#context
    const { tools, constants } = this.#frozen
    const { entries: transcript, generation } = viewOf(state)
    const asked = { requestKind, transcript, generation, constants, signal, maxOutputTokens: null }
    const { turn: reply, cost } = await this.#ask(asked)
    requireReply(reply)
    checkTurn(reply, this.#frozen.model)
    const normalized = await normalizeTurn(reply, tools, this.#ids)
    const resolved = await this.#resolve(normalized, requestKind)
    return { reply, cost, ...normalized, ...resolved }
  }

  async #resolve(turn: NormalizedTurn, requestKind: RequestKind): Promise<Resolved> {
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

  #turnOptions({ signal, generation, maxOutputTokens }: Request): TurnOptions {
    const context = this.#context
    const deltas = this.#frozen.deltas ? new ReplyDeltas(context, this.#frozen.output) : null
    const { closing, rules } = context.state
    // A forced call of `final_result` would be refused by models that think: there the notice must do.
    const withoutTools = closing !== null && !rules.answersByTool && this.#frozen.constants.tools.length > 0
    return {
      signal,
      generation,
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
  if (turn === undefined) throw noReply(null)
}

function noReply(stopped: string | null): RangeError {
  return new RangeError(`Expected a reply of the model, got nothing (${stopped ?? 'ended'}).`)
}
