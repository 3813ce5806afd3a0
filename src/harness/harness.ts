import {
  checkFollowOptions,
  checkForkOptions,
  checkReplayOptions,
  checkResumeOptions,
  checkRunId,
  checkRunOptions,
  checkToolNames,
  ownMetadata,
  ownPrompt,
  resolveConfig,
} from './config.js'
import type { Config } from './config.js'
import type { HarnessDescription } from './describe.js'
import { HarnessError } from '../contracts/errors.js'
import { followRun } from './follow.js'
import type { FollowOptions } from '../run/log/log.js'
import { Launcher } from './runs.js'
import type { Launch } from './runs.js'
import type { DepsOption, ForkOptions, HarnessOptions, ReplayOptions, ResumeOptions, RunOptions } from './options.js'
import { RunOffers } from './toolset.js'
import type { HarnessResult, ResumeState } from '../contracts/result.js'
import { matchAnswers, readAnswers } from '../run/resume/answer-check.js'
import type { Answer } from '../run/machine/answers.js'
import type { GoOnOpening } from '../run/core/plan.js'
import type { DurableEvent, RunEvent } from '../run/machine/events.js'
import { forkOpening } from '../run/replay/fork.js'
import type { ForkPoint } from '../run/replay/fork.js'
import type { Offer } from '../run/core/frozen.js'
import { loadPaused, loadRun, loadStored } from '../run/core/load.js'
import type { LoadedRun } from '../run/core/load.js'
import { readHistory } from '../run/resume/history.js'
import { resolveHistory } from '../run/resume/read-log.js'
import type { ResolveHistory } from '../run/resume/read-log.js'
import { checkPaused, pendingOf, readPaused } from '../run/resume/stored-state.js'
import { openStream } from '../run/stream/stream.js'
import type { HarnessStream, StreamedRun } from '../run/stream/stream.js'
import { redactedEvents } from '../run/extension/redact.js'
import { flushTracing } from '../run/extension/tracing.js'
import type { InferOutput } from '../tools/output-type.js'
import type { Schema } from '../schema/schema.js'
import type { ToolSpec } from '../tools/spec.js'
import type { ContentPart } from '../contracts/entry.js'
import type { JsonSchema } from '../util/json.js'

/** What a run is asked: text, or parts with images and files among them. */
export type Prompt = string | readonly ContentPart[]

/** Makes harnesses, typed by their `outputType`. */
export interface HarnessConstructor {
  // Of two parameters, so that `new Harness<Answer>(…)` means the one below.
  /** Of several output types, whose answers are a union, or of a JSON Schema document, whose answers are JSON. */
  new <const Type extends JsonSchema | readonly Schema[], Output extends InferOutput<Type>, Deps = unknown>(
    options: HarnessOptions<NoInfer<InferOutput<Type>>, Deps> & { readonly outputType: Type } & DepsOption<Deps>,
  ): Harness<Output, Deps>
  /** Throws `invalid_options` for what is wrong in `options`. Does no I/O and loads nothing. */
  new <Output = string, Deps = unknown>(options: HarnessOptions<Output, Deps> & DepsOption<Deps>): Harness<Output, Deps>
  new (): Harness
}

export class OpenHarness<Output = string, Deps = unknown> implements AsyncDisposable {
  readonly #config: Config<Output>
  readonly #launcher: Launcher<Output>
  #tools: readonly ToolSpec[]
  #closing: Promise<void> | null = null

  /** With `needsDeps`, a run without dependencies is refused. */
  constructor(options: HarnessOptions<Output, Deps> = {}, { needsDeps = false } = {}) {
    this.#config = { ...resolveConfig(options as HarnessOptions<Output>), needsDeps }
    this.#tools = this.#config.tools
    this.#launcher = new Launcher(this.#config)
  }

  /** Absolute path of the workspace. */
  get root(): string {
    return this.#config.root
  }

  /** Runs to the end, or to a pause. Rejects with a `HarnessError` that carries the run so far (`error.run`). */
  async run(prompt: Prompt, options: RunOptions<Deps> = {}): Promise<HarnessResult<Output>> {
    return resultOf(this.#begin(prompt, options as RunOptions, false))
  }

  /** Begins a run and yields its events. Throws for invalid options, and on a closed harness. */
  stream(prompt: Prompt, options: RunOptions<Deps> = {}): HarnessStream<Output> {
    return openStream(this.#begin(prompt, options as RunOptions, true))
  }

  /**
   * Continues a paused run, by its id in the log or by its stored state, with people's answers; items without an answer keep
   * it waiting. Rejects with `invalid_state` or `invalid_answer`, before anything has run, for those that do not fit.
   */
  async resume(
    runIdOrState: string | ResumeState,
    answers: readonly Answer[],
    options: ResumeOptions<Deps> = {},
  ): Promise<HarnessResult<Output>> {
    return resultOf(this.#beginResumed(runIdOrState, answers, options as ResumeOptions, false))
  }

  /** `resume` as a stream. Throws for invalid options, a state and answers that do not fit it, and on a closed harness. */
  streamResume(
    runIdOrState: string | ResumeState,
    answers: readonly Answer[],
    options: ResumeOptions<Deps> = {},
  ): HarnessStream<Output> {
    return openStream(this.#beginResumed(runIdOrState, answers, options as ResumeOptions, true))
  }

  /**
   * Continues an interrupted run from its log. Calls that were in progress are resolved by their tools' `reconcile` and
   * `onUnknownOutcome`. A run that has ended, or waits for people, gives its stored ending. Rejects with `run_not_found`, and
   * with `run_owned` while another process executes the run.
   */
  async recover(runId: string, options: ResumeOptions<Deps> = {}): Promise<HarnessResult<Output>> {
    return resultOf(this.#beginStored(runId, options as ResumeOptions, { begun: 'recovered', streamed: false }))
  }

  /** `recover` as a stream of what is new. */
  streamRecover(runId: string, options: ResumeOptions<Deps> = {}): HarnessStream<Output> {
    return openStream(this.#beginStored(runId, options as ResumeOptions, { begun: 'recovered', streamed: true }))
  }

  /**
   * Continues a run that failed or was cancelled, in its own log: from where it stood, with new budgets for failures in a
   * row. Calls that had started are resolved as after a crash. Any other run is treated as by `recover`. Rejects with
   * `run_not_found`, and with `invalid_state` for a child run and for a run that another run of the log continues.
   */
  async retry(runId: string, options: ResumeOptions<Deps> = {}): Promise<HarnessResult<Output>> {
    return resultOf(this.#beginStored(runId, options as ResumeOptions, { begun: 'retried', streamed: false }))
  }

  /** `retry` as a stream of what is new. */
  streamRetry(runId: string, options: ResumeOptions<Deps> = {}): HarnessStream<Output> {
    return openStream(this.#beginStored(runId, options as ResumeOptions, { begun: 'retried', streamed: true }))
  }

  /**
   * Runs a recorded run again by its log, with no request to a model and no tool run, and gives the same result or error.
   * Rejects with `replay_mismatch`, which names the first difference, if this harness would do something else. Options of
   * that run alone, such as `tools`, have to be passed again.
   */
  async replay(
    log: Iterable<RunEvent> | AsyncIterable<RunEvent>,
    options: ReplayOptions<Deps> = {},
  ): Promise<HarnessResult<Output>> {
    this.#assertOpen()
    checkReplayOptions(options as ReplayOptions)
    const { recordedEvents, replayRun } = await import('../run/replay/replay.js')
    const events = await recordedEvents(log)
    return replayRun<Output>(
      events,
      (stretch) => this.#launcher.replay(stretch, options as ReplayOptions, this.#tools),
      (start) => resolveHistory(this.#config.log, start),
    )
  }

  /**
   * Begins a new run that continues a recorded one after its reply number `afterTurn`, with another prompt or without one.
   * `effects` and `mocks` decide whether its tools run.
   */
  async fork(
    log: Iterable<RunEvent> | AsyncIterable<RunEvent>,
    point: ForkPoint,
    options: ForkOptions<Deps> = {},
  ): Promise<HarnessResult<Output>> {
    return resultOf(this.#beginFork(log, point, options as ForkOptions, false))
  }

  /** `fork` as a stream. */
  streamFork(
    log: Iterable<RunEvent> | AsyncIterable<RunEvent>,
    point: ForkPoint,
    options: ForkOptions<Deps> = {},
  ): HarnessStream<Output> {
    return openStream(this.#beginFork(log, point, options as ForkOptions, true))
  }

  /**
   * Ends a run without running another tool: a run in progress in this harness, or one that the log has and that is paused or
   * was interrupted. True once it has ended as `cancelled`, false if it had ended before. Rejects with `run_not_found`, and
   * with `run_owned` while another process executes the run.
   */
  async cancel(runId: string): Promise<boolean> {
    this.#assertOpen()
    checkRunId(runId)
    return this.#launcher.cancel(runId)
  }

  /**
   * The events of a run, wherever it is executed: those in the log after the cursor `after`, then those that follow, across
   * pauses, until the run ends. Claims nothing. Throws for invalid arguments; an unknown run fails the iteration with
   * `run_not_found`.
   */
  follow(runId: string, options: FollowOptions = {}): AsyncIterable<RunEvent> {
    this.#assertOpen()
    checkRunId(runId)
    checkFollowOptions(options)
    const log = this.#launcher.logOf(runId)
    const events = followRun(runId, { log, listen: (listener) => this.#launcher.listen(runId, listener) }, options)
    const { redact } = this.#config.seams.seams
    return redact.length === 0 ? events : redactedEvents(redact, events)
  }

  /** Offers one tool more, to runs that begin from now on. Throws when its name is taken. */
  addTool(tool: ToolSpec<Deps>): void {
    const { packaged, outputType } = this.#config
    checkToolNames([...packaged, ...this.#tools.map(({ name }) => name), tool.name], outputType)
    this.#tools = [...this.#tools, tool as ToolSpec]
  }

  /**
   * Loads what the first run would load: the model's adapter, the built-in tools, skills, and the tools of servers. Sends
   * nothing to a model.
   */
  async connect(): Promise<void> {
    this.#assertOpen()
    const { model } = this.#config
    const { parts } = this.#launcher
    await Promise.all([this.#offer(parts.warn), model === null ? null : parts.model(model)])
  }

  /**
   * What runs can do that begin now: their tools with what each can touch, approvals, servers, budgets; as data, and with
   * `String(description)` for people. Loads what the first run would, but for the model.
   */
  async describe(): Promise<HarnessDescription> {
    this.#assertOpen()
    const warnings: string[] = []
    const offer = await this.#offer((message) => void warnings.push(message))
    const { describeHarness } = await import('./describe.js')
    const { sources } = this.#launcher.parts
    return describeHarness(this.#config, this.#tools, { offer, sources, warnings })
  }

  /** Cancels the runs under way, waits for them, and closes what the harness opened. May be called more than once. */
  async close(): Promise<void> {
    this.#closing ??= this.#close()
    await this.#closing
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  /** What a run would be offered that began now. */
  #offer(warn: (message: string) => void): Promise<Offer> {
    const { parts } = this.#launcher
    const own = (): readonly ToolSpec[] => [...this.#tools, ...this.#config.seams.seams.tools]
    const means = { config: this.#config, parts, own, effects: null, asksServers: true, warn }
    return new RunOffers(means).load(new AbortController().signal)
  }

  #begin(prompt: Prompt, options: RunOptions, streamed: boolean): StreamedRun<Output> {
    this.#assertOpen()
    checkRunOptions(options)
    const { signingKey } = this.#config
    const log = options.log ?? this.#config.log
    const find = readHistory(options.history ?? [], signingKey)
    const opening = { kind: 'fresh', prompt: ownPrompt(prompt), history: () => find(log) } as const
    const runId = options.runId ?? this.#newRunId()
    const metadata = ownMetadata(options.metadata)
    return this.#launcher.launch({ runId, options, opening, metadata, streamed }, this.#tools)
  }

  #beginResumed(
    runIdOrState: string | ResumeState,
    given: readonly Answer[],
    options: ResumeOptions,
    streamed: boolean,
  ): StreamedRun<Output> {
    this.#assertOpen()
    checkResumeOptions(options)
    const log = options.log ?? this.#config.log
    const answers = readAnswers(given)
    const begun = 'resumed'
    if (typeof runIdOrState === 'string') {
      const runId = runIdOrState
      checkRunId(runId)
      const load = (): Promise<LoadedRun | null> =>
        loadPaused(log, runId, (state) => {
          checkPaused(state)
          matchAnswers(answers, pendingOf(state))
        })
      return this.#continue(runId, options, { begun, answers, load, streamed })
    }
    const stored = readPaused(runIdOrState, this.#config.signingKey)
    matchAnswers(answers, pendingOf(stored.state))
    const load = (): Promise<LoadedRun> => loadStored(log, stored)
    return this.#continue(stored.state.runId, options, { begun, answers, load, streamed })
  }

  #beginStored(
    runId: string,
    options: ResumeOptions,
    how: { readonly begun: 'recovered' | 'retried'; readonly streamed: boolean },
  ): StreamedRun<Output> {
    this.#assertOpen()
    checkResumeOptions(options)
    checkRunId(runId)
    const log = options.log ?? this.#config.log
    const load = (): Promise<LoadedRun | null> => loadRun(log, runId)
    return this.#continue(runId, options, { ...how, answers: [], load })
  }

  #beginFork(
    log: Iterable<RunEvent> | AsyncIterable<RunEvent>,
    point: ForkPoint,
    options: ForkOptions,
    streamed: boolean,
  ): StreamedRun<Output> {
    this.#assertOpen()
    checkForkOptions(point, options)
    const { effects, mocks, ...runOptions } = options
    const runId = options.runId ?? this.#newRunId()
    const metadata = options.metadata === undefined ? null : ownMetadata(options.metadata)
    const prompt = point.prompt === undefined ? null : ownPrompt(point.prompt)
    const resolve: ResolveHistory = (start) => resolveHistory(options.log ?? this.#config.log, start)
    const fork = forkOpening(recordedIn(log), { afterTurn: point.afterTurn, prompt, runId, resolve })
    const launch = { runId, options: runOptions, opening: { ...fork, metadata }, metadata: metadata ?? {}, streamed }
    const changed = { ...(effects !== undefined && { effects }), ...(mocks !== undefined && { mocks }) }
    return this.#launcher.launch({ ...launch, effects: changed }, this.#tools)
  }

  #continue(
    runId: string,
    options: ResumeOptions,
    { streamed, ...found }: Pick<GoOnOpening, 'begun' | 'answers' | 'load'> & Pick<Launch, 'streamed'>,
  ): StreamedRun<Output> {
    const { configPolicy = 'compatible', ...runOptions } = options
    const metadata = options.metadata === undefined ? null : ownMetadata(options.metadata)
    const opening = { kind: 'go_on', ...found, configPolicy, metadata, otherwise: null } as const
    const launch = { runId, options: runOptions, opening, metadata: metadata ?? {}, streamed }
    return this.#launcher.launch(launch, this.#tools)
  }

  #newRunId(): string {
    return `run_${this.#launcher.clock.id()}`
  }

  async #close(): Promise<void> {
    await this.#launcher.cancelAll(new HarnessError('closed', 'The harness was closed.'))
    const { seams } = this.#config.seams
    await flushTracing(seams.tracing)
    await this.#launcher.parts.close()
    await seams.close()
  }

  #assertOpen(): void {
    if (this.#closing !== null) throw new HarnessError('closed', 'The harness is closed: make a new one to run again.')
  }
}

/** Nobody reads the events of a run whose result alone was asked for. */
function resultOf<Output>({ queue, outcome }: StreamedRun<Output>): Promise<HarnessResult<Output>> {
  queue.drop()
  return outcome
}

async function recordedIn(log: Iterable<RunEvent> | AsyncIterable<RunEvent>): Promise<readonly DurableEvent[]> {
  const { recordedEvents } = await import('../run/replay/replay.js')
  return recordedEvents(log)
}

export type Harness<Output = string, Deps = unknown> = OpenHarness<Output, Deps>

/**
 * A model, tools and settings that work together: set-up, without the state of any run. Serves any number of runs at once.
 *
 * ```ts
 * await using harness = new Harness({ model: 'anthropic:claude-sonnet-5', root: './workspace' })
 * const result = await harness.run('What is in here?')
 * ```
 */
export const Harness: HarnessConstructor = OpenHarness
