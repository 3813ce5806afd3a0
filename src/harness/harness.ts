import { resolveConfig } from './config.js'
import { checkToolNames } from './tool-names.js'
import {
  checkRunId,
  checkTool,
  parseCloseOptions,
  parseCancelOptions,
  parseFollowOptions,
  parseForkOptions,
  parseForkPoint,
  parseMapOptions,
  parsePrompt,
  parseQueueOptions,
  parseReplayOptions,
  parseResumeOptions,
  parseRunOptions,
} from './option-shapes.js'
import type { Config } from './config.js'
import type { HarnessDescription } from './launch/describe.js'
import { HarnessError, messageOf } from '#contracts/errors.js'
import { followRun, OpenRuns } from './open-runs.js'
import { admittedInput } from '#contracts/input.js'
import type { InputAbout } from '#contracts/input.js'
import { NO_FILTERS } from '#core/extension/readers.js'
import type { FollowOptions, RunLog } from '#core/log/log.js'
import { HarnessResources } from './launch/harness-resources.js'
import type * as Runs from './launch/launcher.js'
import { checkRecorded, checkRun, chosenModel, parseResumed, parseResumedRun } from './launch/run-checks.js'
import type { Resumed } from './launch/run-checks.js'
import type { Launch, RunLauncher } from './launch/launcher.js'
import type { MapOptions, MappedRow, RowMapper } from './map-rows.js'
import type {
  AnswerOf,
  CloseOptions,
  DepsOption,
  ForkOptions,
  HarnessOptions,
  Prompt,
  QueueOptions,
  ReplayOptions,
  ResumeOptions,
  RunOptions,
  TypedOptions,
} from './options.js'
import type { Model, ModelCapabilities } from '#core/model-session.js'
import type { HarnessResult, ResumeState } from '#contracts/result.js'
import type { Answer } from '#core/state/answers.js'
import type { RunEvent, StreamEvent } from '#core/state/events.js'
import type { ForkPoint } from '#run/replay/fork.js'
import { parseHistory } from '#run/resume/parse-history.js'
import type { InputMessage } from '#core/stream/input.js'
import { openStream } from '#core/stream/stream.js'
import type { HarnessStream, StreamedRun } from '#core/stream/stream.js'
import { flushTracing } from '#core/extension/run-tracer.js'
import type { ToolSpec } from '#core/tools/tool-spec.js'
import { defineExtension } from '#core/extension/extension.js'
import type { Extension } from '#core/extension/extension.js'
import type { Schema } from '#schema/schema.js'
import { defineTool } from '#core/tools/define-tool.js'
import type { ToolOptions } from '#core/tools/tool-options.js'
import type { OutputType } from '#core/tools/output-type.js'
import { systemClock } from '#util/clock.js'
import { late } from '#util/late.js'

/** Everything that runs need, loaded in one step by the first run of a process. */
interface Loaded<Output> {
  readonly runs: typeof Runs
  readonly launcher: RunLauncher<Output>
}

/** A run to open; `launch` is called when everything is loaded. */
interface Opening {
  readonly runId: string
  readonly streamed: boolean
  readonly launch: (runs: typeof Runs, log: RunLog) => Launch
}

/**
 * A model, tools and settings that work together. Holds no state of a run and serves any number of concurrent runs.
 *
 * ```ts
 * await using harness = new Harness({ model: 'anthropic:claude-sonnet-5', root: './workspace' })
 * const result = await harness.run('What is in here?')
 * ```
 */
class HarnessClass<Output = string, Deps = unknown> implements AsyncDisposable {
  readonly #config: Config<Output>
  readonly #runs = new OpenRuns()
  readonly #resources: HarnessResources
  readonly #clock = CLOCK
  /** Loaded by the first run. */
  #loading: Promise<Loaded<Output>> | null = null
  #tools: readonly ToolSpec[]
  #closing: Promise<void> | null = null

  /** With `needsDeps`, a run without dependencies is refused. */
  constructor(options: HarnessOptions<Output, Deps> = {}, { needsDeps = false } = {}) {
    this.#config = resolveConfig(options as HarnessOptions<Output>, needsDeps)
    this.#tools = this.#config.tools
    this.#resources = new HarnessResources(this.#config, this.#runs.warn)
  }

  /** Absolute path of the workspace. */
  get root(): string {
    return this.#config.root
  }

  /** Runs to the end, or to a pause. Rejects with a `HarnessError` that carries the run so far (`error.run`). */
  async run(prompt: Prompt, options: RunOptions<Deps> = {}): Promise<HarnessResult<Output>> {
    return onlyResult(this.#begin(prompt, options as RunOptions, false))
  }

  /** Begins a run and yields its events. Throws for invalid arguments, and on a closed harness. */
  stream(prompt: Prompt, options: RunOptions<Deps> = {}): HarnessStream<Output> {
    return openStream(this.#begin(prompt, options as RunOptions, true))
  }

  /**
   * Stores a run that waits to be begun, and resolves when it is stored: in this or another process, `recover` begins it. The log
   * lists it as `queued`, and gives it to whoever asks for what waits. `cancel` ends it. Needs no model. Rejects with `run_exists`
   * if the log has a run of that id.
   */
  async queue(prompt: Prompt, options: QueueOptions = {}): Promise<{ readonly runId: string }> {
    this.#assertOpen()
    const parsed = parseQueueOptions(options)
    const { runId = this.#newRunId(), metadata = {}, labels = {}, agent = null, by = null } = parsed
    const { log = this.#config.log } = parsed
    const admitted = await this.input(parsePrompt(prompt), { kind: 'prompt' })
    const run = { runId, at: this.#clock.iso(), agent, prompt: admitted, metadata, labels, by }
    const { queueRun } = await import('#run/resume/queue-run.js')
    await queueRun(log, run)
    return { runId }
  }

  /**
   * Runs a prompt for each row and yields the outcomes in the order in which the runs end; a run that fails is an outcome. Rows are
   * taken as runs begin, and runs begin as outcomes are read: at most `concurrency` runs are in progress or unread.
   * Leaving the loop cancels the rest. A row with a `runId` whose run the log has continues that run (`ifExists`), so a batch that was
   * interrupted can be repeated. Once the budget is too small for a request, no further rows begin. Throws for invalid arguments; the iteration throws
   * what `rows` or `onProgress` throws, and `cancelled` after `signal`.
   *
   * @example
   * for await (const row of harness.map(tickets, ({ id, text }) => ({ prompt: text, runId: `ticket_${id}` }))) {
   *   console.log(row.item.id, row.status === 'completed' ? row.result.output : row.status)
   * }
   */
  map<Item>(
    rows: Iterable<Item> | AsyncIterable<Item>,
    toRun: RowMapper<Item, Deps>,
    options: MapOptions = {},
  ): AsyncIterable<MappedRow<Item, Output>> {
    this.#assertOpen()
    const { budget = this.#config.budget, ...parsed } = parseMapOptions(rows, toRun, options)
    const startRow = (prompt: Prompt, given: RunOptions<Deps>): Promise<HarnessResult<Output>> =>
      this.run(prompt, given)
    const newRunId = (): string => this.#newRunId()
    return {
      [Symbol.asyncIterator]: async function* () {
        const { mapRows } = await import('./map-rows.js')
        yield* mapRows({ rows, toRun, start: startRow, newRunId }, { ...parsed, ...(budget !== null && { budget }) })
      },
    }
  }

  /**
   * Continues a paused run, by its id in the log or by its stored state, with people's answers; items without an answer keep
   * it waiting. With a `signingKey` by its signed state only. Rejects with `invalid_state` or `invalid_answer`, before anything has run, for those that do not fit.
   */
  async resume(
    runIdOrState: string | ResumeState,
    answers: readonly Answer[],
    options: ResumeOptions<Deps> = {},
  ): Promise<HarnessResult<Output>> {
    return onlyResult(this.#beginResumed(this.#given(runIdOrState, answers), options as ResumeOptions, false))
  }

  /** `resume` as a stream. Throws for invalid arguments; checks that need the log reject through the result. */
  streamResume(
    runIdOrState: string | ResumeState,
    answers: readonly Answer[],
    options: ResumeOptions<Deps> = {},
  ): HarnessStream<Output> {
    return openStream(this.#beginResumed(this.#given(runIdOrState, answers), options as ResumeOptions, true))
  }

  /** `resume` by the id of a run, also with a `signingKey`: whoever sends the id must have been checked. */
  async resumeRun(
    runId: string,
    answers: readonly Answer[],
    options: ResumeOptions<Deps> = {},
  ): Promise<HarnessResult<Output>> {
    return onlyResult(this.#beginResumed(() => parseResumedRun(runId, answers), options as ResumeOptions, false))
  }

  /** `resumeRun` as a stream. */
  streamResumeRun(runId: string, answers: readonly Answer[], options: ResumeOptions<Deps> = {}): HarnessStream<Output> {
    return openStream(this.#beginResumed(() => parseResumedRun(runId, answers), options as ResumeOptions, true))
  }

  /**
   * Continues an interrupted run from its log, and begins one that was queued. Calls that were in progress are resolved by their tools' `reconcile` and
   * `onUnknownOutcome`. A run that has ended, or waits for people, gives its stored ending. Rejects with `run_not_found`, and
   * with `run_owned` while another process executes the run.
   */
  async recover(runId: string, options: ResumeOptions<Deps> = {}): Promise<HarnessResult<Output>> {
    return onlyResult(this.#beginStored(runId, options as ResumeOptions, { begun: 'recovered', streamed: false }))
  }

  /** `recover` as a stream of the new events. */
  streamRecover(runId: string, options: ResumeOptions<Deps> = {}): HarnessStream<Output> {
    return openStream(this.#beginStored(runId, options as ResumeOptions, { begun: 'recovered', streamed: true }))
  }

  /**
   * Continues a run that failed or was cancelled, in its own log, from its last position, with new budgets for consecutive
   * failures. Calls that had started are resolved as after a crash; child runs that were cancelled with it are continued when
   * their call is. Any other run is treated as by `recover`. Rejects with `run_not_found`, and with `invalid_state` for a
   * child run and for a run whose conversation another run of the log continues.
   */
  async retry(runId: string, options: ResumeOptions<Deps> = {}): Promise<HarnessResult<Output>> {
    return onlyResult(this.#beginStored(runId, options as ResumeOptions, { begun: 'retried', streamed: false }))
  }

  /** `retry` as a stream of the new events. */
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
    checkRecorded(log)
    const parsed = parseReplayOptions(options as ReplayOptions)
    const { launcher } = await this.#load()
    return launcher.replayRun(log, parsed, this.#tools)
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
    return onlyResult(this.#beginFork(log, point, { given: options as ForkOptions, streamed: false }))
  }

  /** `fork` as a stream. */
  streamFork(
    log: Iterable<RunEvent> | AsyncIterable<RunEvent>,
    point: ForkPoint,
    options: ForkOptions<Deps> = {},
  ): HarnessStream<Output> {
    return openStream(this.#beginFork(log, point, { given: options as ForkOptions, streamed: true }))
  }

  /**
   * Ends a run, and its child runs, without running another tool: a run in progress in this harness, or one that the log has
   * and that is queued, paused or was interrupted. True once it has ended as `cancelled`, false if it had ended before. Rejects with `run_not_found`, and
   * with `run_owned` while another process executes the run. `log`: that of the run. Default: the harness's.
   */
  async cancel(runId: string, options: Pick<RunOptions, 'log'> = {}): Promise<boolean> {
    this.#assertOpen()
    checkRunId(runId)
    const { log: given = this.#config.log } = parseCancelOptions(options)
    const reason = new HarnessError('cancelled', 'The run was cancelled by its id.')
    const log = this.#runs.logOf(runId)
    const isCancelled = await this.#runs.cancel(runId, reason)
    const { launcher } = await this.#load()
    if (!isCancelled || log === undefined) return launcher.cancelStored(runId, given)
    await launcher.cancelChildren(runId, log)
    return true
  }

  /**
   * The events of a run, wherever it is executed: those in the log after the cursor `after`, then those that follow, across
   * pauses, until the run ends. Claims nothing. Throws for invalid arguments; an unknown run fails the iteration with
   * `run_not_found`, and one of an unknown version with `invalid_log`.
   */
  follow(runId: string, options: FollowOptions = {}): AsyncIterable<RunEvent> {
    this.#assertOpen()
    checkRunId(runId)
    const parsed = parseFollowOptions(options)
    const openLog = this.#runs.logOf(runId)
    const { live } = this.#runs
    const readers = this.#config.extensions.readers ?? NO_FILTERS
    return followRun({ runId, log: openLog ?? this.#config.log, isOpen: openLog !== undefined, live, readers }, parsed)
  }

  /** The names of its extensions: those of one call have others. */
  get extensionNames(): readonly string[] {
    return this.#config.extensions.names
  }

  /**
   * What somebody says, as the extensions of the harness let it pass, for hosts that store it before a run has it.
   * @throws HarnessError `guard_blocked` if one refuses it.
   */
  input(content: InputMessage, about: InputAbout): Promise<InputMessage> {
    return admittedInput(this.#config.extensions.inputs, content, about)
  }

  /** A stored event as readers get it: as the extensions of the harness redact it. The same event if none does. */
  redact(event: RunEvent): RunEvent {
    return (this.#config.extensions.readers ?? NO_FILTERS).event(event as StreamEvent)
  }

  /** Adds a tool for runs that begin after the call. Throws if its name is taken. */
  addTool(tool: ToolSpec<Deps>): void {
    checkTool(tool)
    const names = [...this.#tools, tool].map(({ name }) => name)
    checkToolNames([...this.#config.packaged, ...names], this.#config.outputType)
    this.#tools = [...this.#tools, tool as ToolSpec]
  }

  /**
   * Loads everything that the first run would: the model's adapter, built-in tools, skills, the tools of servers. Asks no model, but
   * opens a connection to its server, so that the first answer waits for one round trip; if that fails, the next run has a warning.
   * Can be called again after a time without runs. Rejects with `missing_key` without the key of the model, and with `invalid_options` if file tools have a `root` that does not
   * exist.
   */
  async connect(): Promise<void> {
    this.#assertOpen()
    const { launcher } = await this.#load()
    launcher.checkRoot()
    const offer = launcher.offer(this.#tools, this.#resources.warn)
    const { model } = this.#config
    const connected = model === null ? null : this.#resources.model(model).then((known) => this.#connect(known))
    await Promise.all([offer, connected])
  }

  async #connect(model: Model): Promise<void> {
    model.check?.()
    await model.connect?.().catch((error: unknown) => {
      this.#resources.warn(
        `No connection to \`${model.provider}:${model.id}\` could be opened ahead: ${messageOf(error)}`,
      )
    })
  }

  /**
   * Describes the runs that begin now: their tools and the reach of each, approvals, servers, budgets; as data, and with
   * `String(description)` for people. Loads everything that the first run would, except the model.
   */
  async describe(): Promise<HarnessDescription> {
    this.#assertOpen()
    const { launcher } = await this.#load()
    return launcher.describe(this.#tools)
  }

  /** The capabilities of the model, or of another one. Loads its adapter. Rejects with `missing_model` if none was chosen. */
  async capabilities(model?: RunOptions['model']): Promise<ModelCapabilities> {
    this.#assertOpen()
    return (await this.#resources.model(chosenModel({ model }, this.#config))).capabilities
  }

  /**
   * Leaves or cancels the runs in progress, waits for them, and closes everything that the harness opened. Runs whose log
   * outlives the process are left by default: `recover` continues them. May be called repeatedly; the first call counts.
   */
  async close(options: CloseOptions = {}): Promise<void> {
    const parsed = parseCloseOptions(options)
    this.#closing ??= this.#close(parsed)
    await this.#closing
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  #load(): Promise<Loaded<Output>> {
    this.#loading ??= RUNS.load().then((runs) => {
      const setup = { config: this.#config, resources: this.#resources, runs: this.#runs, clock: this.#clock }
      return { runs, launcher: new runs.RunLauncher(setup) }
    })
    return this.#loading
  }

  #open(options: RunOptions, { launch, ...opened }: Opening): StreamedRun<Output> {
    const tools = this.#tools
    const { log = this.#config.log } = options
    checkRun(options, this.#config, tools)
    return this.#runs.open<Output>(options, { ...opened, log }, async (run) => {
      const { runs, launcher } = await this.#load()
      return launcher.launch(run, launch(runs, log), tools)
    })
  }

  #begin(prompt: Prompt, given: RunOptions, streamed: boolean): StreamedRun<Output> {
    this.#assertOpen()
    const options = parseRunOptions(given)
    const runId = options.runId ?? this.#newRunId()
    const history = parseHistory(options.history ?? [], this.#config.signingKey)
    const { ifExists = 'fail', metadata = null } = options
    const { configPolicy } = this.#config
    const prompted = { runId, prompt: parsePrompt(prompt), history, metadata, ifExists, configPolicy }
    return this.#open(options, { runId, streamed, launch: ({ promptedLaunch }, log) => promptedLaunch(prompted, log) })
  }

  #given(runIdOrState: string | ResumeState, answers: readonly Answer[]): () => Resumed {
    return () => parseResumed(runIdOrState, answers, this.#config.signingKey)
  }

  #beginResumed(read: () => Resumed, given: ResumeOptions, streamed: boolean): StreamedRun<Output> {
    this.#assertOpen()
    const options = this.#resumeOptions(given)
    const resumed = read()
    const launch: Opening['launch'] = ({ resumedLaunch }, log) => resumedLaunch(resumed, options, log)
    return this.#open(options, { runId: resumed.runId, streamed, launch })
  }

  #beginStored(
    runId: string,
    given: ResumeOptions,
    { begun, streamed }: { readonly begun: 'recovered' | 'retried'; readonly streamed: boolean },
  ): StreamedRun<Output> {
    this.#assertOpen()
    const options = this.#resumeOptions(given)
    checkRunId(runId)
    const launch: Opening['launch'] = ({ storedLaunch }, log) => storedLaunch(runId, { begun, options }, log)
    return this.#open(options, { runId, streamed, launch })
  }

  #resumeOptions(given: ResumeOptions): ReturnType<typeof parseResumeOptions> {
    const options = parseResumeOptions(given)
    return { ...options, configPolicy: options.configPolicy ?? this.#config.configPolicy }
  }

  #beginFork(
    events: Iterable<RunEvent> | AsyncIterable<RunEvent>,
    givenPoint: ForkPoint,
    { given, streamed }: { readonly given: ForkOptions; readonly streamed: boolean },
  ): StreamedRun<Output> {
    this.#assertOpen()
    checkRecorded(events)
    const point = parseForkPoint(givenPoint)
    const options = parseForkOptions(given)
    const runId = options.runId ?? this.#newRunId()
    const prompt = point.prompt === undefined ? null : parsePrompt(point.prompt)
    const from = { afterTurn: point.afterTurn, prompt, runId }
    const launch: Opening['launch'] = ({ forkLaunch }, log) => forkLaunch(events, from, { log, options })
    return this.#open(options, { runId, streamed, launch })
  }

  #newRunId(): string {
    return `run_${this.#clock.id()}`
  }

  async #close(options: CloseOptions): Promise<void> {
    await this.#runs.close(options)
    const { extensions } = this.#config
    await flushTracing(extensions.tracings)
    await this.#resources.close()
    await extensions.close()
  }

  #assertOpen(): void {
    if (this.#closing !== null)
      throw new HarnessError('closed', 'The harness is closed: create a new one to run again.')
  }
}

/** One for all: it only keeps the text of the latest millisecond. */
const CLOCK = systemClock()

const RUNS = late(() => import('./launch/launcher.js'))

/** The events of a run are dropped if only its result is used. */
function onlyResult<Output>({ queue, outcome }: StreamedRun<Output>): Promise<HarnessResult<Output>> {
  queue.drop()
  return outcome
}

/** Creates harnesses, typed by their `outputType`. */
export interface HarnessConstructor {
  /**
   * Throws `invalid_options` if the options are not valid. Does no I/O and loads nothing. One signature, so that the compiler says
   * of a mistake what it is, and not that no overload fits.
   */
  new <Output = string, Deps = unknown, const Type extends OutputType = never>(
    options: TypedOptions<Type, Output, Deps> & DepsOption<Deps>,
  ): Harness<AnswerOf<Type, Output>, Deps>
  new (): Harness
}

export type Harness<Output = string, Deps = unknown> = HarnessClass<Output, Deps>

/** The class `Harness`, which infers its output from `outputType`. */
export const Harness: HarnessConstructor = HarnessClass

/** The entry points of an app whose tools share dependencies. */
export interface AppEntryPoints<App> {
  /** `defineTool`, with `context.deps` of the app. */
  readonly defineTool: <S extends Schema>(tool: ToolOptions<S, App>) => ToolSpec<App>
  /** `defineExtension`, with `context.deps` of the app. */
  readonly defineExtension: (extension: Extension<App>) => Extension<App>
  /** Creates harnesses whose runs need `deps`, of the harness or of the call. */
  readonly Harness: AppHarnessConstructor<App>
}

/** Creates harnesses, typed by their `outputType`. */
export interface AppHarnessConstructor<App> {
  new <Output = string, const Type extends OutputType = never>(
    options?: TypedOptions<Type, Output, App>,
  ): Harness<AnswerOf<Type, Output>, App>
}

/**
 * The entry points of one app, typed by its dependencies. A run without `deps` of the harness or of the call is refused, with
 * `invalid_options`.
 *
 * @example
 * export const { defineTool, defineExtension, Harness } = withDeps<App>()
 */
export function withDeps<App>(): AppEntryPoints<App> {
  class AppHarness<Output = string> extends HarnessClass<Output, App> {
    constructor(options: HarnessOptions<Output, App> = {}) {
      super(options, { needsDeps: true })
    }
  }
  return { defineTool, defineExtension, Harness: AppHarness }
}
