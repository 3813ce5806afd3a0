import type { ExtensionContext } from '../extension/context.js'
import type { ExtensionRun } from '../extension/extension.js'
import { admittedInput } from '#contracts/input.js'
import type { InputAbout } from '#contracts/input.js'
import type { FoldAnswer, HookContexts, HookEvent } from '../extension/hooks.js'
import type { RunExtensions } from '../extension/run-extensions.js'
import { RunTracer } from '../extension/run-tracer.js'
import { digestOf } from '../log/run-summary.js'
import type { RunDigest } from '../log/run-summary.js'
import { storeFailure } from '../log/log.js'
import type { RunLog } from '../log/log.js'
import { RunWriter } from '../log/run-writer.js'
import type { Decide } from '../model-session.js'
import type { OuterMoney, RequestPayer } from '../money-port.js'
import type { ConfigPolicy } from '../state/config-digest.js'
import type {
  DurableEvent,
  DurablePayloads,
  EphemeralEvent,
  EphemeralPayloads,
  EventBase,
  StreamEvent,
  StreamExtras,
} from '../state/events.js'
import type { Conversation } from '../state/history.js'
import type { Labels } from '../state/labels.js'
import { openState } from '../state/state.js'
import type { RunParent, RunState } from '../state/state.js'
import type { InputMessage } from '../stream/input.js'
import type { EventQueue } from '../stream/queue.js'
import { apply, copyOfState, fold } from './apply.js'
import type { Recording } from './recording.js'
import { toHarnessError } from './run-failure.js'
import { reportOf } from './run-result.js'
import type { ChildStates, DocumentMeans } from './run-result.js'
import type { SigningKey } from './signature.js'
import type { RequestAttempt } from '#contracts/attempt.js'
import { textOf, toolCallsOf } from '#contracts/entry.js'
import { HarnessError, messageOf } from '#contracts/errors.js'
import { NO_USAGE, withAttempts } from '#contracts/run-usage.js'
import type { HarnessResult, RunReport, StopReason } from '#contracts/result.js'
import { untilStopped } from '#util/abort.js'
import type { RunAbort } from '#util/abort.js'
import { atOnce } from '#util/wrapped.js'
import type { Clock } from '#util/clock.js'
import { deepFreeze, readOnly } from '#util/json.js'
import type { JsonInput, JsonObject, JsonValue } from '#util/json.js'
import { plainJson } from '#util/plain-json.js'
import { isDelta } from '#util/queue/deltas.js'

/** Creates the dependencies of a run. */
type CreateDeps = (run: { readonly runId: string; readonly metadata: JsonObject }) => unknown

/** Everything that a run gets at its start, live or replayed. */
export interface RunSurroundings {
  readonly runId: string
  readonly parent: RunParent | null
  /** The number of its ancestors. Default 0: it is at the top. */
  readonly depth?: number
  readonly metadata: JsonObject
  /** Labels of a run that begins; of a recorded one, those it had. Default: none. */
  readonly labels?: Labels
  /** Name of the subagent for extensions. Default: as in `parent`. A program has that of the run above it. */
  readonly agentName?: string | null
  /** The money of the parent run, if its costs are counted. */
  readonly outerMoney?: OuterMoney | null
  readonly log: RunLog
  readonly children: ChildStates
  readonly clock: Clock
  readonly extensions: RunExtensions
  readonly queue: EventQueue
  /** The queue for events of child runs. Default: `queue`. */
  readonly childQueue?: EventQueue
  readonly abort: RunAbort
  /** Creates the dependencies of tools, hooks and policies. Default: none. */
  readonly depsFor?: CreateDeps | null
  /** The key that signs stored states. */
  readonly signingKey: SigningKey | null
  /** The configurations that the run and its child runs may continue with. */
  readonly configPolicy: ConfigPolicy
  /** The recording that the run replays: it must emit the same events. */
  readonly recording?: Recording
}

/** One run: its state, log, clock, ids and abort signal. The only one that emits. */
export class RunContext {
  readonly runId: string
  readonly parent: RunParent | null
  readonly depth: number
  /** Name of the subagent; null for the run at the top. */
  readonly agentName: string | null
  readonly outerMoney: OuterMoney | null
  readonly log: RunLog
  readonly queue: EventQueue
  readonly childQueue: EventQueue
  readonly clock: Clock
  readonly abort: RunAbort
  readonly signal: AbortSignal
  readonly signingKey: SigningKey | null
  readonly recording: Recording | null
  /** Null if the run is not traced. */
  readonly tracer: RunTracer | null
  readonly configPolicy: ConfigPolicy
  readonly children: ChildStates
  /** The provider's raw replies. They are not in the state, since no event contains them. */
  readonly responses: unknown[] = []
  #decide: Decide = () => Promise.reject(new HarnessError('invalid_state', 'A run without a model cannot decide.'))
  /** The attempts at the request that has no answer yet. */
  #attempts: RequestPayer | null = null
  readonly #writer: RunWriter
  readonly #depsFor: CreateDeps | null
  readonly #origin: Pick<EventBase, 'parentRunId' | 'parentToolCallId' | 'agentName'>
  #deps: { readonly value: unknown } | null = null
  #metadata: JsonObject
  #labels: Labels
  #history: Conversation = { entries: [] }
  readonly #givenExtensions: RunExtensions
  #extensions: RunExtensions
  #state: RunState | null = null
  #lastSeq = 0
  readonly #ahead = new StateAhead()
  /** Events that are appended together, and the promise of that append. */
  #gathering: { readonly events: DurableEvent[]; readonly kept: Promise<void> } | null = null
  #lastAppend: Promise<void> = Promise.resolve()
  /** Nothing more is stored, for this reason. */
  #refusal: Error | null = null
  /** The last event of the run has been emitted: later reports of an abandoned model or tool are ignored. */
  #isOver = false
  #hadEnded = false
  /** The result of the run, for readers of its stream. */
  #result: HarnessResult<unknown> | null = null

  constructor(surroundings: RunSurroundings) {
    this.runId = surroundings.runId
    this.parent = surroundings.parent
    const { runId: parentRunId = null, callId: parentToolCallId = null, agentName = null } = surroundings.parent ?? {}
    this.#origin = { parentRunId, parentToolCallId, agentName }
    this.agentName = surroundings.agentName === undefined ? agentName : surroundings.agentName
    this.depth = surroundings.depth ?? 0
    this.#metadata = surroundings.metadata
    this.#labels = surroundings.labels ?? {}
    this.outerMoney = surroundings.outerMoney ?? null
    this.log = surroundings.log
    this.queue = surroundings.queue
    this.childQueue = surroundings.childQueue ?? surroundings.queue
    this.clock = surroundings.clock
    this.#givenExtensions = surroundings.extensions
    this.#extensions = surroundings.extensions
    this.abort = surroundings.abort
    this.signal = surroundings.abort.signal
    this.#writer = new RunWriter(surroundings.log, surroundings.runId, surroundings.abort)
    this.#depsFor = surroundings.depsFor ?? null
    this.signingKey = surroundings.signingKey
    this.recording = surroundings.recording ?? null
    const { tracings } = surroundings.extensions
    this.tracer = tracings.length === 0 ? null : new RunTracer(tracings)
    this.configPolicy = surroundings.configPolicy
    this.children = surroundings.children
  }

  /** Claims the run for this process, if its log has owners. Rejects if another process owns it. */
  async claim(begins: boolean): Promise<void> {
    this.abort.onAbort(() => {
      if (this.abort.isLeft) this.#refusal = this.signal.reason as Error
    })
    await this.#writer.claim({ begins, waits: this.parent !== null })
  }

  release(): Promise<void> {
    return this.#writer.release()
  }

  /** The answer of the log. A log that does not answer is abandoned soon after the run was aborted. */
  fromLog<T>(answer: Promise<T>): Promise<T> {
    return this.#writer.answer(answer)
  }

  /** The conversation before a new run. */
  inherit(history: Conversation): void {
    for (const entry of history.entries) deepFreeze(entry)
    this.#history = history
  }

  /** The data of a run that was queued, which begins now. */
  begins(metadata: JsonObject): void {
    this.#metadata = metadata
  }

  /** Continues the run from a state. `metadata` replaces that of the run; null keeps it. */
  adopt(state: RunState, responses: readonly unknown[], metadata: JsonObject | null): void {
    // Those of a log or a document are plain JSON.
    for (const entry of state.transcript) deepFreeze(entry)
    this.#state = state
    this.#lastSeq = state.seq
    this.#metadata = metadata ?? state.metadata
    this.responses.push(...responses)
  }

  /** Creates the dependencies before the run's first event: a run whose dependencies fail has no event. */
  prepareDeps(metadata: JsonObject): void {
    this.#deps ??= { value: atOnce('`deps`', this.#depsFor?.({ runId: this.runId, metadata })) }
  }

  /** The dependencies of tools, hooks and policies. They are never logged. */
  get deps(): unknown {
    return this.#deps?.value
  }

  /** Has a model decide, from now on: the run has its model. */
  decideWith(decide: Decide): void {
    this.#decide = decide
  }

  get decide(): Decide {
    return this.#decide
  }

  /** The attempts at the request in progress; null: it has its answer. */
  noteAttempts(attempts: RequestPayer | null): void {
    this.#attempts = attempts
  }

  /** Gives the extensions their state of this run. `state` is the state that the run continues from; null for a new run. */
  async openExtensions(state: RunState | null, how: Pick<ExtensionRun, 'begun' | 'metadata'>): Promise<void> {
    if (state !== null) this.#labels = state.labels ?? {}
    if (!this.#givenExtensions.hasRunMembers) return
    const opening = this.#givenExtensions.open((extension) => this.#runFor(extension, state, how))
    const { value } = await untilStopped(opening, this.abort)
    this.signal.throwIfAborted()
    this.#extensions = value ?? this.#extensions
    if (how.begun === 'fresh' && this.recording === null) this.#labels = this.#extensions.labels(this.#labels)
  }

  #runFor(
    extension: string,
    state: RunState | null,
    { begun, metadata }: Pick<ExtensionRun, 'begun' | 'metadata'>,
  ): ExtensionRun {
    const recorded = [...(state?.recorded?.[extension] ?? [])]
    const record = async (value: JsonInput): Promise<void> => {
      // A replay takes the recorded values.
      if (this.recording !== null) return
      const reason = 'it can be called from hooks, policies and the other members that `forRun` returns'
      if (!this.hasBegun)
        throw new HarnessError('invalid_state', `\`record\` was called before the run began: ${reason}.`)
      await this.emit('extension_recorded', { extension, value: plainJson(value) })
    }
    const { runId, agentName, labels, deps } = this
    return { runId, agentName, metadata: readOnly(metadata), labels, begun, deps, recorded, record }
  }

  get extensions(): RunExtensions {
    return this.#extensions
  }

  /** The extensions of the runs that calls of this one start. */
  get childExtensions(): RunExtensions {
    return this.#givenExtensions.ofChildren(this.#state?.transcript ?? [])
  }

  get metadata(): JsonObject {
    return this.#metadata
  }

  /** By which the run is found. */
  get labels(): Labels {
    return this.#labels
  }

  get state(): RunState {
    if (this.#state === null) throw new RangeError(`Expected run \`${this.runId}\` to have begun.`)
    return this.#state
  }

  get hasBegun(): boolean {
    return this.#state !== null
  }

  /**
   * Stores an event, then changes the state by it, then emits it. Resolves when all three are done and the reader has
   * room; events that are emitted during an append are stored together. Rejects with `store_failure` if the log cannot
   * store it, and from then on for every event.
   */
  emit<Kind extends keyof DurablePayloads>(kind: Kind, payload: DurablePayloads[Kind]): Promise<void> {
    if (this.#refusal !== null) return Promise.reject(this.#refusal)
    if (this.#isOver) return Promise.reject(new RangeError(`Run \`${this.runId}\` is over: it emits nothing more.`))
    this.#lastSeq += 1
    const event = frozenEvent(Object.assign(this.#base(kind, this.#lastSeq, true), payload) as unknown as DurableEvent)
    if (this.recording !== null) return this.#replayMatching(event, this.recording)
    this.#isOver = kind === 'run_completed' || kind === 'run_failed'
    if (this.#gathering === null) {
      const events: DurableEvent[] = []
      this.#gathering = { events, kept: this.#keep(events) }
      // The next append waits for this one, however it ends.
      this.#lastAppend = this.#gathering.kept.catch(() => undefined)
    }
    this.#gathering.events.push(event)
    return this.#gathering.kept
  }

  /** Applies and publishes a recorded event. */
  replay(event: DurableEvent): void {
    this.#lastSeq = event.seq
    void this.#applyAll([event])
  }

  /** Replays the next events that came from others. */
  replayGiven(): void {
    for (let event = this.recording?.takeGiven(); event !== undefined; event = this.recording?.takeGiven())
      this.replay(event)
  }

  async #replayMatching(emitted: DurableEvent, recording: Recording): Promise<void> {
    this.replayGiven()
    this.replay(recording.matching(emitted))
    this.#isOver = emitted.kind === 'run_completed' || emitted.kind === 'run_failed'
  }

  /** The run had ended before, and its stored end has been emitted. */
  get hadEnded(): boolean {
    return this.#hadEnded
  }

  /** Resolves when the state contains every event that was emitted so far. */
  async #settled(): Promise<void> {
    if (this.recording !== null) return
    while (this.#refusal === null && this.#state !== null && this.#state.seq < this.#lastSeq) await this.#lastAppend
  }

  /** Emits the end of a run that failed, even if the log cannot store it: a stream always has an end. */
  async emitFailure(error: HarnessError, stopReason: StopReason): Promise<void> {
    await this.#settled()
    const { code, name: errorType, message, status, retryable, failure } = error
    const asked = {
      ...(status !== undefined && { status }),
      ...(retryable && { retryable: true as const }),
      ...(failure !== undefined && { failure }),
    }
    const attempts = await this.#attemptsOfEnd()
    const usage = withAttempts(this.#state?.usage ?? NO_USAGE, attempts)
    const made = attempts.length > 0 && { attempts }
    const payload = { stopReason, code, errorType, message, ...asked, ...made, usage }
    try {
      if (!this.hasBegun) throw error
      await this.emit('run_failed', payload)
    } catch {
      this.emitLive('run_failed', payload)
    }
  }

  /** The attempts at the request that a failed run has had no answer to. */
  async #attemptsOfEnd(): Promise<readonly RequestAttempt[]> {
    const next = this.recording?.next
    if (next !== undefined) return (next.kind === 'run_failed' && next.attempts) || []
    return (await this.#attempts?.all(false)) ?? []
  }

  /**
   * Emits the end or the pause of a run, with its result for those who read the stream. `renewed`: the result after events
   * that were still being stored.
   */
  async emitResult<Result extends HarnessResult<unknown>>(seen: Result, renewed: () => Result): Promise<Result> {
    if (this.state.seq < this.#lastSeq) await this.#settled()
    const result = this.state.usage === seen.usage ? seen : renewed()
    this.#result = this.extensions.readers?.result(result) ?? result
    const { stopReason, usage, pending } = result
    await this.emit('run_completed', { stopReason, usage, pending: pending.map(({ callId }) => callId) })
    return this.forCaller(result)
  }

  /** Emits the end of a run that had ended before: it is in the log already. */
  emitStored(ending: DurableEvent, result: HarnessResult<unknown> | null): void {
    this.#hadEnded = true
    this.#isOver = true
    void this.#publish(streamed(ending, result && (this.extensions.readers?.result(result) ?? result)), false)
  }

  /** Emits that the run was left, once all events so far have been stored. Nothing is stored after that. */
  async emitLeft({ code, message }: HarnessError): Promise<void> {
    await this.#lastAppend
    const usage = this.#state?.usage ?? NO_USAGE
    this.emitLive('run_left', { usage })
    this.#isOver = true
    const failure = { code, message, stopReason: 'interrupted', errorType: 'Interrupted' } as const
    this.tracer?.event({ ...this.#base('run_failed', this.#lastSeq, false), durable: false, ...failure, usage })
  }

  /** Emits an event that is never stored. */
  emitLive<Kind extends keyof EphemeralPayloads>(kind: Kind, payload: EphemeralPayloads[Kind]): void {
    if (this.#isOver && kind !== 'run_failed') return
    const event = Object.assign(this.#base(kind, this.#state?.seq ?? 0, false), payload) as unknown as EphemeralEvent
    void this.#publish(event, kind === 'transport_retry' || kind === 'run_failed')
  }

  /** Gives an event to its readers, as the extensions redact it. An event that cannot be redacted ends the run. */
  #publish(event: StreamEvent, isTraced: boolean): Promise<void> | undefined {
    let shown = event
    try {
      shown = this.#extensions.readers?.event(event, true) ?? event
    } catch (error) {
      this.abort.abort(error)
      if (event.kind !== 'run_failed') return undefined
      shown = { ...event, message: UNREADABLE }
    }
    if (shown !== event && shown.kind === 'model_message') shown = streamed(shown, null)
    if (isTraced && !isDelta(shown)) this.tracer?.event(shown)
    return this.queue.push(shown)
  }

  /** A result as the caller of the run gets it. A run that started this one reads what the model said. */
  forCaller<Result extends HarnessResult<unknown>>(result: Result): Result {
    return this.parent === null ? (this.extensions.readers?.result(result) ?? result) : result
  }

  /** What somebody says, as the extensions let it pass. `isAsked`: all but those of this run were asked before. */
  async admit(content: InputMessage, kind: InputAbout['kind'], isAsked = false): Promise<InputMessage> {
    const inputs = isAsked ? this.#extensions.inputsOfRun : this.#extensions.inputs
    // A recording has what they let pass.
    if (inputs.length === 0 || this.recording !== null) return content
    const { value } = await untilStopped(admittedInput(inputs, content, { kind }), this.abort)
    this.signal.throwIfAborted()
    return value ?? content
  }

  /** The error of the run as its caller gets it. */
  errorForCaller(error: HarnessError): HarnessError {
    const { readers } = this.extensions
    if (this.parent !== null || readers === null) return error
    try {
      return toHarnessError(error, error.run && readers.result(error.run), readers.text(error.message))
    } catch (failure) {
      return new HarnessError(error.code, messageOf(failure))
    }
  }

  /** Reports a hook that failed and was skipped. */
  readonly hookFailed = (hookEvent: string, message: string, extension?: string): Promise<void> =>
    this.emit('hook_failed', { hookEvent, message, ...(extension !== undefined && { extension }) })

  /** True if some hook of the event is asked by this run; of an event of tools, about calls of that tool. */
  hasHook(event: HookEvent, toolName?: string): boolean {
    return this.#extensions.hooks.has(event, this.agentName, toolName)
  }

  /** Asks the hooks of an event, in order. Default of `fold`: their answers do not count. */
  askHooks<Event extends HookEvent>(
    event: Event,
    about: HookContexts[Event],
    fold: FoldAnswer<Event> = (same) => same,
  ): Promise<void> {
    const { runId, metadata, deps, decide } = this
    return this.#extensions.hooks.ask({ event, runId, metadata, deps, decide, ...about }, this, fold)
  }

  /** The parts of a stored state that are not in the state. `responses` are those of the run so far. */
  documentMeans(responses: readonly unknown[]): DocumentMeans {
    return { responses, signingKey: this.signingKey, childOf: this.children.of }
  }

  /** The report of a run that failed; undefined if it had not begun. */
  report(stopReason: StopReason): RunReport | undefined {
    return this.#state === null ? undefined : reportOf(this.#state, stopReason, this.documentMeans(this.responses))
  }

  #base<Kind>(kind: Kind, seq: number, durable: boolean): EventBase & { kind: Kind } {
    const { parentRunId, parentToolCallId, agentName } = this.#origin
    return { kind, runId: this.runId, seq, at: this.clock.iso(), durable, parentRunId, parentToolCallId, agentName }
  }

  async #keep(events: readonly DurableEvent[]): Promise<void> {
    await this.#lastAppend
    this.#gathering = null
    if (this.#refusal !== null) throw this.#refusal
    try {
      this.#ahead.fold(this.#state, events, this.#history)
      await this.#writer.append(events, () => this.#ahead.digest)
    } catch (cause) {
      this.#refusal = storeFailure(`store an event of run \`${this.runId}\``, cause)
      // Stops the work in progress; nothing more begins.
      this.abort.abort(this.#refusal)
      throw this.#refusal
    }
    const room = this.#applyAll(events)
    if (room !== undefined) await room
  }

  /** Changes the state by stored events and emits them. Resolves when the reader has room. */
  #applyAll(events: readonly DurableEvent[]): Promise<void> | undefined {
    let room: Promise<void> | undefined
    for (const event of events) {
      if (this.#state !== null) apply(this.#state, event)
      else if (event.kind === 'run_started') this.#state = openState(event, this.#history)
      room = this.#publish(streamed(event, this.#result), true) ?? room
    }
    return room
  }
}

/** Freezes an event. The value of a tool is left as it is: only readers get it, and it can be large. */
export function frozenEvent(event: DurableEvent): DurableEvent {
  if (event.kind !== 'tool_call_completed' || event.value === undefined) return deepFreeze(event)
  for (const [name, member] of Object.entries(event)) if (name !== 'value') deepFreeze(member)
  return Object.freeze(event)
}

/** The value of a tool is frozen when it is first read. */
function withFrozenValue(event: DurableEvent & { kind: 'tool_call_completed' }, value: JsonValue): StreamEvent {
  const copy = { ...event }
  Object.defineProperty(copy, 'value', { get: () => deepFreeze(value), enumerable: true })
  return Object.freeze(copy)
}

/** A durable event as a stream yields it. Its additional members are not enumerable, and so not in its JSON. */
export function streamed(event: DurableEvent, result: HarnessResult<unknown> | null): StreamEvent {
  if (event.kind === 'model_message') return Object.freeze(Object.assign(Object.create(REPLY), event)) as StreamEvent
  if (event.kind === 'tool_call_completed' && event.value !== undefined) return withFrozenValue(event, event.value)
  if (event.kind !== 'run_completed') return event
  // Nobody listens to a run that is replayed.
  if (result === null) return event as StreamEvent
  return Object.freeze(
    Object.defineProperty({ ...event }, 'result', { value: result, enumerable: false }),
  ) as unknown as StreamEvent
}

type Reply = DurableEvent & { kind: 'model_message' }

const UNREADABLE = 'The run failed, and so did the redaction of its error.'

/** The members of a reply that are computed when they are read. */
const REPLY = {
  get text(): string {
    return textOf((this as unknown as Reply).entry.parts)
  },
  get toolCalls(): StreamExtras['model_message']['toolCalls'] {
    return toolCallsOf((this as unknown as Reply).entry.parts).map(({ callId: id, name }) => ({ id, name }))
  },
}

/**
 * The state of a run with the events that are stored next. Nothing is stored that it refuses: no reader could fold it. It
 * folds each event once, so that the work per append does not grow with the transcript.
 */
export class StateAhead {
  #state: RunState | null = null

  /** Throws for events that cannot follow `state`; null: they begin the run. */
  fold(state: RunState | null, events: readonly DurableEvent[], history: Conversation): void {
    let ahead = this.#state?.seq === state?.seq ? this.#state : state && copyOfState(state)
    // What is refused may have been applied in part.
    this.#state = null
    for (const event of events) ahead = ahead === null ? (fold([event], history) ?? null) : apply(ahead, event)
    this.#state = ahead
  }

  /** The summary of the run with these events. */
  get digest(): RunDigest {
    if (this.#state === null) throw new RangeError('Expected a run that has begun, or its first event.')
    return digestOf(this.#state)
  }
}

/** The run as extensions see it. */
export function extensionContext({
  runId,
  agentName,
  metadata,
  deps,
  state,
  signal,
  decide,
}: RunContext): ExtensionContext {
  const { transcript, usage } = state
  const shown = readOnly({ metadata, transcript, usage })
  return { runId, agentName, deps, signal, decide, ...shown }
}
