import {
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
import { Launcher } from './runs.js'
import type { ForkOptions, HarnessOptions, ReplayOptions, ResumeOptions, RunOptions } from './options.js'
import { RunOffers } from './toolset.js'
import type { HarnessResult, ResumeState } from '../contracts/result.js'
import { readAnswers } from '../run/resume/answer-check.js'
import type { Answer, ApprovalAnswer } from '../run/machine/answers.js'
import type { GoOnOpening } from '../run/core/plan.js'
import type { DurableEvent, RunEvent } from '../run/machine/events.js'
import { forkOpening } from '../run/replay/fork.js'
import type { ForkPoint } from '../run/replay/fork.js'
import type { Offer } from '../run/core/frozen.js'
import { loadRun, loadStored } from '../run/core/load.js'
import { pendingOf, readHistory, readPaused } from '../run/resume/stored-state.js'
import { openStream } from '../run/stream/stream.js'
import type { HarnessStream, StreamedRun } from '../run/stream/stream.js'
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
  new <const Type extends JsonSchema | readonly Schema[], Output extends InferOutput<Type>>(
    options: HarnessOptions<NoInfer<InferOutput<Type>>> & { readonly outputType: Type },
  ): Harness<Output>
  /** Throws `invalid_options` for what is wrong in `options`. Does no I/O and loads nothing. */
  new <Output = string>(options?: HarnessOptions<Output>): Harness<Output>
}

class OpenHarness<Output = string> implements AsyncDisposable {
  readonly #config: Config<Output>
  readonly #launcher: Launcher<Output>
  #tools: readonly ToolSpec[]
  #closing: Promise<void> | null = null

  constructor(options: HarnessOptions<Output> = {}) {
    this.#config = resolveConfig(options)
    this.#tools = this.#config.tools
    this.#launcher = new Launcher(this.#config)
  }

  /** Absolute path of the workspace. */
  get root(): string {
    return this.#config.root
  }

  /** Runs to the end, or to a pause. Rejects with a `HarnessError` that carries what the run had done (`error.run`). */
  async run(prompt: Prompt, options: RunOptions = {}): Promise<HarnessResult<Output>> {
    const { queue, outcome } = this.#begin(prompt, options)
    queue.drop()
    return outcome
  }

  /** Begins a run and tells it as it happens. Throws for options that are wrong, and on a closed harness. */
  stream(prompt: Prompt, options: RunOptions = {}): HarnessStream<Output> {
    return openStream(this.#begin(prompt, options))
  }

  /**
   * Goes on with a run that waits for people, with their answers; those that are missing leave it waiting. Rejects with
   * `invalid_state` or `invalid_answer`, before anything has run, for what does not fit.
   */
  async resume(
    state: ResumeState,
    answers: readonly Answer[],
    options: ResumeOptions = {},
  ): Promise<HarnessResult<Output>> {
    const { queue, outcome } = this.#beginResumed(state, answers, options)
    queue.drop()
    return outcome
  }

  /** `resume`, told as it happens. Throws for options, a state and answers that are wrong, and on a closed harness. */
  streamResume(state: ResumeState, answers: readonly Answer[], options: ResumeOptions = {}): HarnessStream<Output> {
    return openStream(this.#beginResumed(state, answers, options))
  }

  /** `resume` with approvals alone. */
  resumeApprovals(
    state: ResumeState,
    decisions: readonly ApprovalAnswer[],
    options: ResumeOptions = {},
  ): Promise<HarnessResult<Output>> {
    return this.resume(state, decisions, options)
  }

  /** `streamResume` with approvals alone. */
  streamApprovals(
    state: ResumeState,
    decisions: readonly ApprovalAnswer[],
    options: ResumeOptions = {},
  ): HarnessStream<Output> {
    return this.streamResume(state, decisions, options)
  }

  /**
   * Goes on with a run that was interrupted, from what its log has of it, and tells what is new. Calls that were under
   * way are settled by their tools' `reconcile` and `onUnknownOutcome`. A run that has ended, or waits for people, gives
   * its stored ending. Fails with `run_not_found`, and with `run_owned` while the run is under way elsewhere.
   */
  recover(runId: string, options: ResumeOptions = {}): HarnessStream<Output> {
    this.#assertOpen()
    checkResumeOptions(options)
    checkRunId(runId)
    const log = options.log ?? this.#config.log
    return openStream(this.#goOn(runId, options, { begun: 'recovered', answers: [], load: () => loadRun(log, runId) }))
  }

  /**
   * Runs a recorded run again by its log, with no request to a model and no tool run, and comes to the same result or
   * error. Rejects with `replay_mismatch`, which names the first difference, where this harness would do something else.
   * What was given to the run alone, such as `tools`, is to be given again.
   */
  async replay(
    log: Iterable<RunEvent> | AsyncIterable<RunEvent>,
    options: ReplayOptions = {},
  ): Promise<HarnessResult<Output>> {
    this.#assertOpen()
    checkReplayOptions(options)
    const { recordedEvents, replayRun } = await import('../run/replay/replay.js')
    const events = await recordedEvents(log)
    return replayRun<Output>(events, (stretch) => this.#launcher.replay(stretch, options, this.#tools))
  }

  /**
   * Begins a new run that goes on from a recorded one behind its reply number `afterTurn`: with another prompt, or without
   * one as that run did. What its tools do is said by `effects` and `mocks`.
   */
  fork(
    log: Iterable<RunEvent> | AsyncIterable<RunEvent>,
    point: ForkPoint,
    options: ForkOptions = {},
  ): HarnessStream<Output> {
    this.#assertOpen()
    checkForkOptions(point, options)
    const { effects, mocks, ...runOptions } = options
    const runId = options.runId ?? this.#newRunId()
    const metadata = options.metadata === undefined ? null : ownMetadata(options.metadata)
    const prompt = point.prompt === undefined ? null : ownPrompt(point.prompt)
    const opening = { ...forkOpening(recordedIn(log), { afterTurn: point.afterTurn, prompt, runId }), metadata }
    const launch = { runId, options: runOptions, opening, metadata: metadata ?? {} }
    const told = { ...(effects !== undefined && { effects }), ...(mocks !== undefined && { mocks }) }
    return openStream(this.#launcher.launch({ ...launch, effects: told }, this.#tools))
  }

  /** Offers one tool more, to runs that begin from now on. Throws when its name is taken. */
  addTool(tool: ToolSpec): void {
    const { packaged, outputType } = this.#config
    checkToolNames([...packaged, ...this.#tools.map(({ name }) => name), tool.name], outputType)
    this.#tools = [...this.#tools, tool]
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
    const means = { config: this.#config, parts, own: this.#tools, effects: null, asksServers: true, warn }
    return new RunOffers(means).load(new AbortController().signal)
  }

  #begin(prompt: Prompt, options: RunOptions): StreamedRun<Output> {
    this.#assertOpen()
    checkRunOptions(options)
    const { resumeFrom = null } = options
    const history = resumeFrom === null ? [] : readHistory(resumeFrom, this.#config.signingKey)
    const opening = { kind: 'fresh', prompt: ownPrompt(prompt), history } as const
    const runId = options.runId ?? this.#newRunId()
    return this.#launcher.launch({ runId, options, opening, metadata: ownMetadata(options.metadata) }, this.#tools)
  }

  #beginResumed(state: ResumeState, answers: readonly Answer[], options: ResumeOptions): StreamedRun<Output> {
    this.#assertOpen()
    checkResumeOptions(options)
    const stored = readPaused(state, this.#config.signingKey)
    const log = options.log ?? this.#config.log
    return this.#goOn(stored.state.runId, options, {
      begun: 'resumed',
      answers: readAnswers(answers, pendingOf(stored.state)),
      load: () => loadStored(log, stored),
    })
  }

  #goOn(
    runId: string,
    options: ResumeOptions,
    found: Pick<GoOnOpening, 'begun' | 'answers' | 'load'>,
  ): StreamedRun<Output> {
    const { configPolicy = 'compatible', ...runOptions } = options
    const metadata = options.metadata === undefined ? null : ownMetadata(options.metadata)
    const opening = { kind: 'go_on', ...found, configPolicy, metadata, otherwise: null } as const
    return this.#launcher.launch({ runId, options: runOptions, opening, metadata: metadata ?? {} }, this.#tools)
  }

  #newRunId(): string {
    return `run_${this.#launcher.clock.id()}`
  }

  async #close(): Promise<void> {
    await this.#launcher.cancelAll(new HarnessError('closed', 'The harness was closed.'))
    await flushTracing(this.#config.tracing)
    await this.#launcher.parts.close()
  }

  #assertOpen(): void {
    if (this.#closing !== null) throw new HarnessError('closed', 'The harness is closed: make a new one to run again.')
  }
}

async function recordedIn(log: Iterable<RunEvent> | AsyncIterable<RunEvent>): Promise<readonly DurableEvent[]> {
  const { recordedEvents } = await import('../run/replay/replay.js')
  return recordedEvents(log)
}

export type Harness<Output = string> = OpenHarness<Output>

/**
 * A model, tools and settings that work together: set-up, without the state of any run. Serves any number of runs at once.
 *
 * ```ts
 * await using harness = new Harness({ model: 'anthropic:claude-sonnet-5', root: './workspace' })
 * const result = await harness.run('What is in here?')
 * ```
 */
export const Harness: HarnessConstructor = OpenHarness
