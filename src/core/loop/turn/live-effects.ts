import type { JsonValue } from '#util/json.js'
import { entryId } from '#contracts/entry.js'
import type { SubmittedRequest } from '#contracts/attempt.js'
import type { ModelTurn } from '../../model-session.js'
import type { RequestPayer } from '../../money-port.js'
import type { OutputContext } from '../../tools/output-type.js'
import { resolveTurn } from '../../state/resolve-turn.js'
import type { Resolution, Resolved } from '../../state/resolve-turn.js'
import { untilStopped } from '#util/abort.js'
import type { CheckedArguments } from '../../tools/boundary/check-arguments.js'
import type { ConfigDigest } from '../../state/config-digest.js'
import { refusedContent } from '../limit-notices.js'
import type { Readers } from '../../extension/readers.js'
import type { RunContext } from '../run-context.js'
import type { Effects, HostNotices, Reply, Until } from '../effects.js'
import type { RequestKind } from '../../state/events.js'
import type { RunSetup } from '../run-plan.js'
import { changeView } from './change-view.js'
import { canBeRepeated, isTooMuch, tooMuchError } from './context-overflow.js'
import { HarnessError, isOversized, messageOf, ModelRetry } from '#contracts/errors.js'
import { hostNotices } from './host-notices.js'
import { CallIds, readTurn } from './read-turn.js'
import type { ReadTurn } from './read-turn.js'
import { viewOf } from '../../state/view.js'
import { sizeOf } from '../../state/limit-checks.js'
import type { BatchCall } from '../../state/batch-call.js'
import { isLastReply } from '../decide.js'
import { ToolBatchExecutor } from '../calls/tool-batch-executor.js'
import type { Work } from '#util/wrapped.js'
import type { BackgroundRuns } from '../child-run.js'
import { askingOf } from './send-request.js'
import type { Request } from './send-request.js'
import type { ReplyDeltas } from './reply-deltas.js'

/** A reply as the model gave it and as it is recorded, and its meaning. */
interface Answered extends ReadTurn, Resolved {
  readonly reply: ModelTurn
  readonly cost: number | null
}

/** Asks the model and runs the tools. */
export class LiveEffects implements Effects {
  readonly #context: RunContext
  readonly #setup: RunSetup
  readonly #batches: ToolBatchExecutor
  readonly #ids: CallIds
  readonly #ask: Work<Request, ModelTurn>
  readonly #others: BackgroundRuns
  readonly #hasViews: boolean
  readonly #outputContext: Omit<OutputContext, 'transcript'>
  /** Of the reply that is arriving, if it is streamed. */
  #reader: ReplyDeltas | null = null
  /** At the request that is made. */
  #attempts: RequestPayer
  /** The request that an earlier process has submitted. */
  #submitted: SubmittedRequest | null
  /** The checked arguments of the calls in the last reply, by call id. */
  #checked: ReadonlyMap<string, CheckedArguments> = new Map()

  constructor(context: RunContext, setup: RunSetup) {
    this.#context = context
    this.#setup = setup
    this.#attempts = setup.money.request()
    const { phase } = context.state
    this.#submitted = (phase.at === 'asking' && phase.submitted) || null
    this.#ask = askingOf(context, setup, (reader) => (this.#reader = reader))
    this.#others = setup.plan.host.children.inBackground(context, setup)
    this.#batches = new ToolBatchExecutor(context, setup, (callId, left) => this.#others.begin(callId, left))
    this.#ids = new CallIds(context.state.transcript)
    this.#hasViews = context.extensions.views.length > 0 && setup.model.computed !== true
    const { runId, metadata, signal } = context
    this.#outputContext = { runId, metadata, signal, root: setup.root }
  }

  async configure(): Promise<ConfigDigest> {
    const setup = this.#setup
    if (setup.plan.offers.canChange) await setup.refresh(this.#context.signal)
    return setup.config
  }

  hostNotices(): Promise<HostNotices | null> {
    return hostNotices(this.#context)
  }

  async ask(requestKind: RequestKind): Promise<Reply> {
    const { abort, state, clock, responses } = this.#context
    this.#reader = null
    this.#attempts = this.#setup.money.request()
    this.#context.noteAttempts(this.#attempts)
    if (this.#hasViews) await changeView(this.#context, this.#setup, 0)
    if (abort.isAborted) throw abort.signal.reason
    // A model or a schema that ignores its signal is abandoned when the run is aborted.
    const answering = this.#hasViews ? this.#fitting(requestKind) : this.#answered(requestKind)
    const { value: answered } = await untilStopped(answering, abort).catch((error: unknown) => {
      if (!abort.isAborted) throw isTooMuch(error) ? tooMuchError(error, viewOf(state).entries) : error
      return { value: undefined }
    })
    const reader = this.#reader as ReplyDeltas | null
    reader?.end()
    const isCut = abort.signal.aborted || answered === undefined
    if (!isCut) responses.push(answered.reply.raw)
    this.#checked = isCut ? new Map() : answered.checked
    const { turn, resolution, value, cost } = isCut ? await this.#cutOff(answered) : answered
    const attempts = await this.#attempts.all(true)
    this.#context.noteAttempts(null)
    const message = {
      finalizedOutputMode: resolution.kind === 'final' ? resolution.mode : null,
      entry: Object.assign({}, turn.entry, { id: entryId(state.transcript.length), at: clock.iso() }),
      resolution,
      nativeFinishReason: turn.nativeFinishReason ?? null,
      responseId: turn.responseId ?? null,
      responseModel: turn.responseModel ?? null,
      ...(cost !== null && { cost }),
      ...(!isCut && answered.resolved.length > 0 && { resolvedCalls: answered.resolved }),
      ...(attempts.length > 1 && { attempts }),
      ...(turn.cached === true && { cached: true as const }),
    }
    const { readers } = this.#context.extensions
    return readers?.filterReplies ? this.#filtered({ message, value }, readers) : { message, value }
  }

  /** A reply that a filter blocks is stored with its usage, and what the filter says. */
  async #filtered(reply: Reply, readers: Readers): Promise<Reply> {
    const { message } = reply
    const { resolution } = message
    try {
      const failure = this.#reader?.failure ?? null
      if (failure !== null) throw failure.error
      const output = readers.check(message)
      if (resolution.kind !== 'final' || JSON.stringify(output) === JSON.stringify(resolution.output)) return reply
      await this.#setup.plan.answer.read(output as JsonValue).catch((cause: unknown) => {
        throw new HarnessError('guard_blocked', `The answer as readers see it does not fit: ${messageOf(cause)}`)
      })
      return reply
    } catch (error) {
      const blocked = messageOf(error)
      const code = error instanceof HarnessError && error.code === 'guard_blocked' ? error.code : 'hook_failed'
      const means: Resolution =
        error instanceof ModelRetry
          ? { kind: 'retry_user_message', message: blocked }
          : { kind: 'blocked', code, message: blocked }
      return { value: undefined, message: { ...message, finalizedOutputMode: null, resolution: means, blocked } }
    }
  }

  /** The run was aborted during a reply: the text that has arrived is kept, without calls. Throws if there is none. */
  async #cutOff(answered: Answered | undefined): Promise<Resolved & Pick<Answered, 'turn' | 'cost'>> {
    const { model, money } = this.#setup
    const { abort } = this.#context
    this.#attempts.end(null, abort.signal.reason)
    const entry = abort.isLeft ? null : (this.#reader?.cutOff(model, answered?.reply.entry.usage) ?? null)
    if (entry === null) {
      abort.signal.throwIfAborted()
      throw new RangeError('Expected a reply of the model, got nothing.')
    }
    const rates = await money.price
    const cost = answered?.cost ?? (await this.#attempts.cost()) ?? (rates === null ? null : await rates({ entry }))
    return { turn: { entry }, cost, resolution: { kind: 'ask_again', reason: 'aborted' } }
  }

  readonly #takeSubmitted = (): SubmittedRequest | null => {
    const submitted = this.#submitted
    this.#submitted = null
    return submitted
  }

  runTools(calls: readonly BatchCall[]): Promise<void> {
    return this.#batches.perform(calls, this.#checked)
  }

  async refuseCalls(calls: readonly BatchCall[]): Promise<void> {
    const { rules, usage, phase } = this.#context.state
    const batch = phase.at === 'batch' ? phase.calls : calls
    const content = refusedContent(rules, sizeOf(rules, batch), usage.toolCalls)
    await this.#batches.refuse(calls, { kind: 'failed', errorType: 'LimitReached', content, retry: false })
  }

  settleUnknown(calls: readonly BatchCall[]): Promise<void> {
    return this.#batches.settleUnknown(calls)
  }

  takeReports(until: Until): Promise<boolean> {
    return this.#others.report(until, this.#setup.plan.input)
  }

  endOthers(): Promise<void> {
    return this.#others.end()
  }

  stop(): Promise<void> {
    return this.#others.end()
  }

  /** A request that is longer than the window, or larger than the provider takes, is repeated with a shorter view, as often as policies make it shorter. */
  async #fitting(requestKind: RequestKind): Promise<Answered> {
    for (let refusals = 1; ; refusals++) {
      try {
        return await this.#answered(requestKind)
      } catch (error) {
        if (!canBeRepeated(error, refusals)) throw error
        if (!(await changeView(this.#context, this.#setup, refusals, isOversized(error)))) throw error
        const { message: reason, status = null, failure = 'context' } = error
        const retry = { attempt: refusals, delayMs: 0, reason, status, failure, withdrawn: false }
        this.#context.emitLive('transport_retry', retry)
      }
    }
  }

  /** The next reply, and its meaning. */
  async #answered(requestKind: RequestKind): Promise<Answered> {
    const { state, signal } = this.#context
    const { tools, constants, model, output } = this.#setup
    const { entries: transcript, generation } = viewOf(state)
    const attempts = this.#attempts
    const whole = { maxOutputTokens: null, attempts, takeSubmitted: this.#takeSubmitted }
    const reply = await this.#ask({ requestKind, transcript, generation, constants, signal, ...whole })
    const read = await readTurn(reply, model, { tools, ids: this.#ids })
    const cost = await attempts.cost()
    const isLast = read.calls.length > 1 && output?.mode === 'tool' && isLastReply(state, reply.entry, cost)
    const context = { transcript: state.transcript, ...this.#outputContext }
    const resolved = await resolveTurn({ isLast, ...read }, output, context)
    const { resolution } = resolved
    const isEmptyAgain =
      requestKind === 'empty_retry' && resolution.kind === 'ask_again' && resolution.reason === 'empty'
    return Object.assign({ reply, cost }, read, isEmptyAgain ? { resolution: EMPTY_TWICE } : resolved)
  }
}

const EMPTY_TWICE: Resolution = { kind: 'unexpected', message: 'The model gave an empty reply twice.' }
