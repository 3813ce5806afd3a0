import {
  checkResumeOptions,
  checkRunId,
  checkRunOptions,
  checkSpawnOptions,
  checkToolNames,
  ownMetadata,
  ownPrompt,
  resolveConfig,
  rulesOf,
} from './config.js'
import type { Config, HarnessOptions, ResumeOptions, RunOptions } from './config.js'
import { HarnessError } from './errors.js'
import type { Model, StructuredOutputMode } from './model/contracts.js'
import type { ModelRef } from './model/reference.js'
import type { OutputFormat } from './output/format.js'
import { outputFormat } from './output/schema.js'
import type { HarnessResult, ResumeState } from './report.js'
import { RunAbort } from './run/abort.js'
import { readAnswers } from './run/answer-check.js'
import type { Answer, ApprovalAnswer } from './run/answers.js'
import type { ChildStart, StartedChild } from './run/child-run.js'
import { conduct } from './run/conduct.js'
import type { GoOnOpening, Opening, RunPlan } from './run/conduct.js'
import { RunContext } from './run/context.js'
import type { RunSurroundings } from './run/context.js'
import type { Frozen } from './run/frozen.js'
import { loadChild, loadRun, loadStored } from './run/load.js'
import { EventQueue } from './run/queue.js'
import { pendingOf, readHistory, readPaused } from './run/stored-state.js'
import { openStream } from './run/stream.js'
import { flushTracing } from './run/tracing.js'
import type { HarnessStream, StreamedRun } from './run/stream.js'
import { parseWith } from './tools/schema.js'
import type { Schema } from './tools/schema.js'
import type { SpawnOptions, ToolSpec } from './tools/spec.js'
import type { ContentPart } from './transcript/entry.js'
import { systemClock } from './util/clock.js'
import type { JsonObject } from './util/json.js'

/** A run to be begun or gone on with. */
interface Launch {
  readonly runId: string
  readonly options: RunOptions
  readonly opening: Opening
  readonly metadata: JsonObject
}

/** What a run is asked: text, or parts with images and files among them. */
export type Prompt = string | readonly ContentPart[]

/**
 * A model, tools and settings that work together: set-up, without the state of any run. Serves any number of runs at once.
 *
 * ```ts
 * await using harness = new Harness({ model: 'anthropic:claude-sonnet-5', root: './workspace' })
 * const result = await harness.run('What is in here?')
 * ```
 */
export class Harness<Output = string> implements AsyncDisposable {
  readonly #config: Config<Output>
  readonly #clock = systemClock()
  #tools: readonly ToolSpec[]
  /** One set for all runs, so that they share what they know of the workspace. */
  #builtinTools: Promise<readonly ToolSpec[]> | null = null
  /** Models made from references, by reference: ours to close. */
  readonly #models = new Map<ModelRef, Promise<Model>>()
  readonly #running = new Map<RunAbort, Promise<unknown>>()
  #closing: Promise<void> | null = null

  /** Throws `invalid_options` for what is wrong in `options`. Does no I/O and loads nothing. */
  constructor(options: HarnessOptions<Output> = {}) {
    this.#config = resolveConfig(options)
    this.#tools = this.#config.tools
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
    return replayRun<Output>(await recordedEvents(log), ({ opening, started, recording, model }) => {
      const queue = new EventQueue()
      queue.drop()
      const { runId, metadata, rules } = started
      const own = { runId, parent: parentOf(started), metadata, log: noLog, queue, abort: new RunAbort(undefined) }
      const surroundings = { ...own, clock: this.#clock, hooks: NO_HOOKS, signingKey: this.#config.signingKey }
      const context = new RunContext({ ...surroundings, recording })
      const plan = { ...this.#plan(opening, options, model), rulesFor: () => rules, tracing: [] }
      return { context, outcome: conduct<Output>(context, { ...plan, input: recording }) }
    })
  }

  /**
   * Begins a new run that goes on from a recorded one behind its reply number `afterTurn`: with another prompt, or
   * without one as that run did. What its tools do then is said by `effects` and `mocks`.
   */
  fork(
    log: Iterable<RunEvent> | AsyncIterable<RunEvent>,
    { afterTurn, prompt }: ForkPoint,
    options: ForkOptions = {},
  ): HarnessStream<Output> {
    this.#assertOpen()
    const { effects, mocks, ...runOptions } = options
    checkRunOptions(runOptions)
    checkFork(afterTurn, options)
    const runId = options.runId ?? `run_${this.#clock.id()}`
    const metadata = options.metadata === undefined ? null : ownMetadata(options.metadata)
    const said = prompt === undefined ? null : ownPrompt(prompt)
    const fork = recordedEvents(log).then((events) => stateAfterTurn(events, afterTurn))
    const opening: GoOnOpening = {
      kind: 'go_on',
      begun: 'forked',
      load: async () =>
        said === null ? { state: forkedState(await fork, runId), responses: [], last: null, isLogged: false } : null,
      answers: [],
      configPolicy: 'any',
      metadata,
      otherwise: said === null ? null : { kind: 'fresh', prompt: said, history: [] },
    }
    return openStream(this.#launch({ runId, options: runOptions, opening, metadata: metadata ?? {}, effects: { effects, mocks } }))
  }

  /** Offers one tool more, to runs that begin from now on. Throws when its name is taken. */
  addTool(tool: ToolSpec): void {
    const { builtinTools, outputType } = this.#config
    checkToolNames([...builtinTools, ...this.#tools.map(({ name }) => name), tool.name], outputType)
    this.#tools = [...this.#tools, tool]
  }

  /** Loads what the first run would load: the model's adapter and the built-in tools. Sends nothing to a model. */
  async connect(): Promise<void> {
    this.#assertOpen()
    await Promise.all([
      this.#loadBuiltinTools(),
      this.#config.model === null ? null : this.#loadModel(this.#config.model),
    ])
  }

  /** Cancels the runs under way, waits for them, and closes what the harness opened. May be called more than once. */
  async close(): Promise<void> {
    this.#closing ??= this.#close()
    await this.#closing
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  #begin(prompt: Prompt, options: RunOptions): StreamedRun<Output> {
    this.#assertOpen()
    checkRunOptions(options)
    const { resumeFrom = null } = options
    const history = resumeFrom === null ? [] : readHistory(resumeFrom, this.#config.signingKey)
    const opening = { kind: 'fresh', prompt: ownPrompt(prompt), history } as const
    const runId = options.runId ?? `run_${this.#clock.id()}`
    return this.#launch({ runId, options, opening, metadata: ownMetadata(options.metadata) })
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
    const metadata = options.metadata === undefined ? null : ownMetadata(options.metadata)
    const configPolicy = options.configPolicy ?? 'compatible'
    const opening = { kind: 'go_on', ...found, configPolicy, metadata, otherwise: null } as const
    return this.#launch({ runId, options, opening, metadata: metadata ?? {} })
  }

  #launch({ runId, options, opening, metadata }: Launch): StreamedRun<Output> {
    const model = options.model ?? this.#config.model
    if (model === null) throw missingModel()
    const plan = this.#plan(opening, options, model)
    const queue = new EventQueue()
    const abort = new RunAbort(options.signal)
    abort.onAbort(() => queue.stopWaiting())
    const log = options.log ?? this.#config.log
    const context = this.#context({ runId, parent: null, metadata, log, queue, abort })
    const outcome = conduct<Output>(context, plan).finally(() => {
      queue.close()
      this.#running.delete(abort)
    })
    this.#running.set(abort, outcome)
    return { runId, queue, abort, outcome }
  }

  #context(own: Pick<RunSurroundings, 'runId' | 'parent' | 'metadata' | 'log' | 'queue' | 'abort'>): RunContext {
    const { hooks, signingKey } = this.#config
    const agentHooks = hooks.of(own.parent?.agentName ?? null)
    return new RunContext({ ...own, clock: this.#clock, hooks: agentHooks, signingKey })
  }

  #plan(opening: Opening, options: RunOptions, model: ModelRef | Model): RunPlan {
    const config = this.#config
    const { root, settings, steps, sequential, outputType, outputMode, builtinTools } = config
    const own = [...this.#tools, ...(options.tools ?? [])]
    checkToolNames([...builtinTools, ...own.map((tool) => tool.name)], outputType)
    // The run's own copy: what the caller does with the object afterwards is for the next run.
    const given = { limits: { ...options.limits } }
    return {
      opening,
      root,
      settings,
      steps,
      tracing: config.tracing,
      sequential,
      input: options.input ?? null,
      deltas: options.deltas ?? false,
      loadModel: () => this.#loadModel(model),
      loadTools: async () => [...(await this.#loadBuiltinTools()), ...own],
      instructionsFor: (tools) => instructionsOf(config, options.instructions ?? config.instructions, tools),
      rulesFor: (output) => rulesOf(config, given, own, output),
      ...answersAs(outputType, outputMode, model),
      startChild: (parent, frozen, callId, start) => this.#startChild(parent, frozen, callId, start),
    }
  }

  /** A run under a call of another: found again where its log or the call's state has it, else begun. */
  #startChild(parent: RunContext, frozen: Frozen, callId: string, start: ChildStart): StartedChild {
    this.#assertOpen()
    const { runId, options, stored, answers, signal } = start
    checkSpawnOptions(options)
    const { log, queue } = parent
    const agentName = options.agentName ?? 'default'
    const abort = new RunAbort(options.signal === undefined ? signal : AbortSignal.any([signal, options.signal]))
    const from = { runId: parent.runId, callId, agentName }
    const metadata = ownMetadata(options.metadata)
    const context = this.#context({ runId, parent: from, metadata, log, queue, abort })
    const opening: GoOnOpening = {
      kind: 'go_on',
      load: () => loadChild(log, runId, stored),
      begun: answers.length > 0 ? 'resumed' : 'recovered',
      answers,
      configPolicy: 'compatible',
      metadata: null,
      otherwise: { kind: 'fresh', prompt: ownPrompt(options.prompt), history: [] },
    }
    return { abort, outcome: conduct<unknown>(context, this.#childPlan(opening, frozen, options)) }
  }

  #childPlan(opening: Opening, parent: Frozen, options: SpawnOptions<unknown>): RunPlan {
    const { root, steps, sequential, deltas } = parent
    const { outputRetries = this.#config.outputRetries, toolRetries = this.#config.toolRetries } = options
    const model = options.model ?? parent.model
    const inherited = options.tools === 'inherit' ? [...parent.tools.values()] : (options.tools ?? [])
    checkToolNames(
      inherited.map(({ name }) => name),
      options.outputType ?? null,
    )
    const rules = { ...this.#config, outputRetries, toolRetries }
    return {
      opening,
      root,
      settings: options.settings ?? parent.constants.settings,
      steps,
      tracing: this.#config.tracing,
      sequential,
      input: null,
      deltas,
      loadModel: () => this.#loadModel(model),
      loadTools: () => Promise.resolve(inherited),
      instructionsFor: (tools) => withToolInstructions([options.instructions ?? ''], tools),
      rulesFor: (output) => rulesOf(rules, { limits: options.limits ?? {} }, inherited, output),
      ...answersAs(options.outputType ?? null, options.outputMode ?? 'auto', model),
      startChild: (context, frozen, callId, start) => this.#startChild(context, frozen, callId, start),
    }
  }

  #loadBuiltinTools(): Promise<readonly ToolSpec[]> {
    const names = this.#config.builtinTools
    if (names.length === 0) return Promise.resolve([])
    return (this.#builtinTools ??= import('./toolbox/builtin.js').then(({ builtinTools }) => builtinTools(names)))
  }

  #loadModel(model: ModelRef | Model): Promise<Model> {
    if (typeof model !== 'string') return Promise.resolve(model)
    let loading = this.#models.get(model)
    if (loading === undefined) {
      loading = import('./providers/infer.js').then(({ inferModel }) => inferModel(model))
      this.#models.set(model, loading)
      // What could not be loaded is tried again by the next run.
      loading.catch(() => this.#models.delete(model))
    }
    return loading
  }

  async #close(): Promise<void> {
    for (const abort of this.#running.keys()) abort.cancel(new HarnessError('closed', 'The harness was closed.'))
    await Promise.allSettled(this.#running.values())
    await flushTracing(this.#config.tracing)
    const closed = await Promise.allSettled([...this.#models.values()].map(closeLoaded))
    for (const result of closed) if (result.status === 'rejected') throw result.reason
  }

  #assertOpen(): void {
    if (this.#closing !== null) throw new HarnessError('closed', 'The harness is closed: make a new one to run again.')
  }
}

async function closeLoaded(loading: Promise<Model>): Promise<void> {
  const model = await loading.catch(() => undefined)
  await model?.close?.()
}

/** The system prompt: what was configured, the workspace, and what each tool has to say (spec §2.3). */
function instructionsOf(config: Config<unknown>, instructions: string, tools: readonly ToolSpec[]): string {
  const root = config.namesRoot ? `Workspace root: ${config.root}` : ''
  return withToolInstructions([instructions, root], tools)
}

function withToolInstructions(first: readonly string[], tools: readonly ToolSpec[]): string {
  const parts = [...first, ...tools.map((tool) => tool.instructions?.trim() ?? '')]
  return parts.filter((part) => part !== '').join('\n\n')
}

/** How a run's answer is asked for and read. */
function answersAs(
  outputType: Schema | null,
  outputMode: StructuredOutputMode | 'auto',
  model: ModelRef | Model,
): Pick<RunPlan, 'outputFor' | 'readAnswer'> {
  const outputFor = ({ capabilities }: Model): OutputFormat | null =>
    outputType === null ? null : outputFormat(outputType, outputMode, capabilities)
  // A model that cannot give such an answer is refused at once where it is known already.
  const format = typeof model === 'string' ? undefined : outputFor(model)
  return {
    outputFor: (loaded) => (format === undefined ? outputFor(loaded) : format),
    readAnswer: async (json) => {
      if (outputType === null) return json
      const parsed = await parseWith(outputType, json)
      if (parsed.ok) return parsed.value
      throw new HarnessError(
        'output_validation_failed',
        'The answer that was kept does not fit the `outputType` any more.',
      )
    },
  }
}

function missingModel(): HarnessError {
  return new HarnessError(
    'missing_model',
    'No model was chosen. Give `model` to the harness or to the run, such as `anthropic:claude-sonnet-5`, or set `THINHARNESS_MODEL`.',
  )
}
