import { parsePrompt, parseSpawnOptions } from '../option-shapes.js'
import type { Parsed } from '../option-shapes.js'
import { NO_EXTENSIONS } from '../config.js'
import type { Config } from '../config.js'
import { HarnessError } from '#contracts/errors.js'
import type { BudgetOptions } from '#contracts/limits.js'
import type { Decide, Model } from '#core/model-session.js'
import type { ModelRef } from '#contracts/model-reference.js'
import type { HarnessResult } from '#contracts/result.js'
import { budgetsOf } from '../default-limits.js'
import type { OpenRun, OpenRuns } from '../open-runs.js'
import type { ForkOptions, ReplayOptions, ResumeOptions, RunOptions } from '../options.js'
import { missingRoot } from './harness-resources.js'
import type { HarnessResources } from './harness-resources.js'
import { withHostedPolicy } from '#providers/hosted/hosted-policy.js'
import { createChildPlan, createPlan, toolsOfChild } from './plan.js'
import type { PlanDependencies } from './plan.js'
import { chosenModel, depsOf } from './run-checks.js'
import type { Resumed } from './run-checks.js'
import { Toolset } from './toolset.js'
import type { LaunchedEffects } from './toolset.js'
import { describeHarness } from './describe.js'
import type { HarnessDescription } from './describe.js'
import { RunAbort, inGrace } from '#util/abort.js'
import { askBeforeChild, afterChild } from '#run/children/child-hooks.js'
import { historyOfChild, promptOfChild } from '#run/children/fork-history.js'
import { conduct } from '#core/loop/run/conduct.js'
import type { ConfigPolicy } from '#core/state/config-digest.js'
import type { ChildStart, Forgotten, StartedChild } from '#core/loop/child-run.js'
import type { FreshOpening, GoOnOpening, Offer, Opening, PreparedRun, RunHost, RunSetup } from '#core/loop/run-plan.js'
import { RunContext } from '#core/loop/run-context.js'
import type { RunSurroundings } from '#core/loop/run-context.js'
import { forkOpening } from '#run/replay/fork.js'
import { ChildDocuments } from '#run/resume/child-documents.js'
import { childRuns } from '#run/children/background-runs.js'
import { Programs } from '#run/children/programs.js'
import { RecordedEffects } from '#run/replay/recorded-effects.js'
import type { Effects } from '#core/loop/effects.js'
import type { Recording } from '#core/loop/recording.js'
import { cancelChildren, cancelStored, endForgotten, endRun } from '#run/resume/cancel-stored.js'
import type { CancelMeans } from '#run/resume/cancel-stored.js'
import type { RunExtensions } from '#core/extension/run-extensions.js'
import { matchAnswers } from '#run/resume/match-answers.js'
import type { GivenHistory } from '#run/resume/parse-history.js'
import { findHistory, inline } from '#run/resume/find-history.js'
import { resolveHistory } from '#run/resume/read-log.js'
import type { ResolveHistory } from '#run/resume/read-log.js'
import { pendingOf } from '#core/loop/decide.js'
import { checkPaused } from '#run/resume/stored-state.js'
import type { RunEvent } from '#core/state/events.js'
import type { RunState } from '#core/state/state.js'
import type { InputMessage } from '#core/stream/input.js'
import { stallDetection } from '#run/stall/stall.js'
import { moneyOf } from '#run/money/budget.js'
import { loadChild, loadPaused, loadRetried, loadRun, loadStored } from '#run/resume/load-run.js'
import type { LoadedRun } from '#core/loop/run-plan.js'
import { EventQueue } from '#core/stream/queue.js'
import type { RunLog } from '#core/log/log.js'
import { recordedEvents, replayRun } from '#run/replay/replay.js'
import type { ReplayedStretch, Stretch } from '#run/replay/replay.js'
import type { SpawnOptions, ToolSpec } from '#core/tools/tool-spec.js'
import type { Clock } from '#util/clock.js'
import type { JsonObject } from '#util/json.js'

/** A run to begin or to continue. */
export interface Launch {
  readonly opening: Opening
  readonly metadata: JsonObject
  /** How its tools are run, in a fork. */
  readonly effects?: LaunchedEffects
}

/** The harness that runs belong to. */
export interface LauncherSetup<Output> {
  readonly config: Config<Output>
  readonly resources: HarnessResources
  readonly runs: OpenRuns
  readonly clock: Clock
}

/** Starts runs, at the top and under calls. */
export class RunLauncher<Output> implements RunHost {
  readonly children = childRuns
  readonly #clock: Clock
  readonly #config: Config<Output>
  readonly #resources: HarnessResources
  readonly #runs: OpenRuns
  readonly #dependencies: PlanDependencies
  readonly #programs = new Programs()

  constructor({ config, resources, runs, clock }: LauncherSetup<Output>) {
    this.#config = config
    this.#resources = resources
    this.#runs = runs
    this.#clock = clock
    this.#dependencies = { config, resources, host: this }
  }

  async launch(
    run: OpenRun,
    { opening, metadata, effects }: Launch,
    tools: readonly ToolSpec[],
  ): Promise<HarnessResult<Output>> {
    const { runId, options, log, queue, childQueue, abort } = run
    const { signingKey } = this.#config
    const { budget = this.#config.budget } = options
    const context = new RunContext({
      runId,
      parent: null,
      metadata,
      labels: options.labels ?? {},
      outerMoney: budget === null ? null : moneyOf(budget),
      log,
      children: new ChildDocuments(log),
      clock: this.#clock,
      extensions: this.#detectingStall(surrounding(this.#config.extensions.with(options.use), effects), options),
      queue,
      childQueue,
      abort,
      depsFor: depsOf(options, this.#config),
      signingKey,
      configPolicy: configPolicyOf(opening),
    })
    const model = chosenModel(options, this.#config)
    const planned = { opening, options, model, tools, effects: effects ?? null, context }
    const plan = withHostedPolicy(createPlan(this.#dependencies, planned), context)
    this.#runs.onWarning(run, (message) => context.emitLive('warning', { message }))
    return conduct<Output>(context, plan)
  }

  /** Runs a recorded run again. */
  async replayRun(
    log: Iterable<RunEvent> | AsyncIterable<RunEvent>,
    options: ReplayOptions,
    tools: readonly ToolSpec[],
  ): Promise<HarnessResult<Output>> {
    const { allow = [], onDifference = () => undefined } = options
    return replayRun<Output>(await recordedEvents(log), (stretch) => this.replay(stretch, options, tools), {
      resolve: (start) => resolveHistory(this.#config.log, start),
      allowed: { parts: allow, report: onDifference },
    })
  }

  /** The offer of a run that begins now. */
  async offer(tools: readonly ToolSpec[], warn: (message: string) => void): Promise<Offer> {
    const ownTools = (): readonly ToolSpec[] => [...tools, ...this.#config.extensions.tools]
    const { config, resources } = this.#dependencies
    const toolset = new Toolset({ config, resources, own: ownTools, effects: null, asksServers: true, warn })
    return toolset.describe(new AbortController().signal)
  }

  /** Throws `invalid_options` if the workspace of the built-in tools does not exist. */
  checkRoot(): void {
    const missing = missingRoot(this.#config)
    if (missing !== null) throw new HarnessError('invalid_options', missing)
  }

  /** Describes the runs that begin now. */
  async describe(tools: readonly ToolSpec[]): Promise<HarnessDescription> {
    const warnings: string[] = []
    const offer = await this.offer(tools, (message) => void warnings.push(message))
    const { sources } = this.#resources
    const sandbox = await this.#resources.sandbox(offer.tools)
    return describeHarness(this.#config, tools, { offer, sources, warnings, sandbox })
  }

  /** Replays a stretch of a recorded run. */
  replay(
    { opening, started, recording, model, log, input }: Stretch,
    options: ReplayOptions,
    tools: readonly ToolSpec[],
  ): ReplayedStretch<Output> {
    const { runId, parentRunId, parentToolCallId, agentName, metadata, labels = {}, rules } = started
    const parent =
      parentRunId === null ? null : { runId: parentRunId, callId: parentToolCallId ?? '', agentName: agentName ?? '' }
    const context = new RunContext({
      runId,
      parent,
      metadata,
      labels,
      log,
      children: new ChildDocuments(log),
      clock: this.#clock,
      extensions: this.#config.extensions.with(options.use).offered,
      queue: unreadQueue(),
      abort: new RunAbort(undefined),
      signingKey: this.#config.signingKey,
      configPolicy: configPolicyOf(opening),
      recording,
    })
    const plan = createPlan(this.#dependencies, { opening, options, model, tools, effects: null, context })
    return { context, outcome: conduct<Output>(context, { ...plan, recordedRules: rules, input }) }
  }

  /** Cancels a run that the log has, and that is paused or was interrupted. False if it had ended. */
  cancelStored(runId: string, log: RunLog): Promise<boolean> {
    return cancelStored(this.#cancelMeans(log), runId)
  }

  /** Cancels the child runs of a run that was cancelled, if they are paused or were interrupted. */
  cancelChildren(runId: string, log: RunLog): Promise<void> {
    return cancelChildren(this.#cancelMeans(log), runId)
  }

  loadModel(model: ModelRef | Model): Promise<Model> {
    return this.#resources.model(model)
  }

  /** Nothing depends on it: if the log does not answer, the runs stay open. */
  endChild(parent: RunContext, runId: string): Promise<void> {
    return this.#endBelow(parent, (means) => endRun(means, runId))
  }

  /** Nothing depends on it: if the log does not answer, the runs stay open. */
  decider(context: RunContext, prepared: Pick<PreparedRun, 'model' | 'money'>): Decide {
    const loadModel = (model: ModelRef | Model): Promise<Model> => this.loadModel(model)
    return async (question) => {
      const { decideInRun } = await import('#run/decide-in-run.js')
      return decideInRun(question, { context, loadModel, ...prepared, signal: context.signal })
    }
  }

  recordedEffects(context: RunContext, setup: RunSetup, recording: Recording): Effects {
    return new RecordedEffects(context, setup, recording)
  }

  endForgotten(parent: RunContext, forgotten: Forgotten): Promise<void> {
    return this.#endBelow(parent, (means) => endForgotten(means, parent.state, forgotten))
  }

  /** The events of the runs that end are for the readers of their parent too. */
  async #endBelow(parent: RunContext, end: (means: CancelMeans) => Promise<void>): Promise<void> {
    const { runId, log, childQueue, childExtensions } = parent
    const over = new AbortController()
    const ending = end(this.#cancelMeans(log, { queue: childQueue, extensions: childExtensions, signal: over.signal }))
    const late = (): Error =>
      new HarnessError('store_failure', `The log has not answered: runs below run \`${runId}\` stay open.`)
    await inGrace(ending, parent.abort, { graceMs: END_GRACE_MS, late }).catch((error: unknown) => over.abort(error))
  }

  #cancelMeans(log: RunLog, readers?: CancelReaders): CancelMeans {
    const contextOf: CancelMeans['contextOf'] = ({ runId, parent }) =>
      new RunContext({
        runId,
        parent,
        metadata: {},
        log,
        children: new ChildDocuments(log),
        clock: this.#clock,
        extensions: readers?.extensions ?? NO_EXTENSIONS,
        queue: readers?.queue ?? this.#runs.unreadQueue(),
        abort: new RunAbort(readers?.signal),
        signingKey: this.#config.signingKey,
        configPolicy: 'any',
      })
    return { log, contextOf }
  }

  /** A child run: continued if the log or the call's state has it, else begun. */
  startChild(parent: RunContext, setup: RunSetup, start: ChildStart): StartedChild {
    const { runId, callId, stored, answers, signal, within, isKnown = false } = start
    const options = parseSpawnOptions(start.options)
    const { log, childQueue } = parent
    const agentName = options.agentName ?? options.as ?? 'default'
    const outer = options.signal === undefined ? signal : AbortSignal.any([signal, options.signal])
    const abort = new RunAbort(outer, parent.abort)
    const prompt = promptOfChild(parsePrompt(options.prompt), options.history, { state: parent.state, callId })
    const tools = toolsOfChild(options, setup.tools).map(({ name }) => name)
    const about = { agent: agentName, prompt, childRunId: runId, callId, tools }
    const isProgram = options.as === 'self'
    const beginChild: GoOnOpening['otherwise'] = async () => {
      // A program is no other agent: its run starts nobody.
      if (!isProgram) await askBeforeChild(parent, about)
      const history = historyOfChild(options.history, parent.state, { callId, at: this.#clock.iso() })
      return { kind: 'fresh', prompt, history: () => Promise.resolve(inline(history)) }
    }
    const opening: GoOnOpening = {
      kind: 'go_on',
      load: () => loadChild(log, runId, stored),
      begun: answers.length > 0 ? 'resumed' : 'recovered',
      answers,
      configPolicy: parent.configPolicy,
      metadata: null,
      otherwise: isKnown ? null : beginChild,
    }
    const context = new RunContext({
      runId,
      parent: { runId: parent.runId, callId, agentName },
      outerMoney: setup.money.spending?.money ?? null,
      log,
      children: new ChildDocuments(log),
      clock: this.#clock,
      queue: childQueue,
      abort,
      depsFor: () => parent.deps,
      signingKey: this.#config.signingKey,
      configPolicy: parent.configPolicy,
      ...(isProgram ? partsOfProgram(parent) : this.#partsOfChild(parent, options)),
    })
    const child = createChildPlan(this.#dependencies, { opening, options, parent: setup, above: parent.state })
    const plan = withHostedPolicy(child, context)
    const conducted = (): Promise<HarnessResult<unknown>> => conduct(context, plan)
    const outcome = isProgram
      ? this.#programs.within(parent, context, (rules) =>
          conduct(context, { ...plan, rules: { ...plan.rules, ...rules } }),
        )
      : within === undefined
        ? conducted()
        : within(abort.signal, conducted)
    this.#runs.openBelow(runId, { abort, outcome, log })
    return { abort, outcome: isProgram ? outcome : afterChild(parent, about, { child: context, outcome }) }
  }

  #partsOfChild(
    parent: RunContext,
    options: Parsed<SpawnOptions<unknown>>,
  ): Pick<RunSurroundings, 'depth' | 'metadata' | 'extensions'> {
    const extensions = this.#detectingStall(parent.childExtensions, options)
    return { depth: parent.depth + 1, metadata: options.metadata ?? {}, extensions }
  }

  #detectingStall(extensions: RunExtensions, options: BudgetOptions): RunExtensions {
    return budgetsOf(options, this.#config).stall === null ? extensions : extensions.and(stallDetection)
  }
}

/** The readers of a run that is cancelled; `signal` gives up. */
interface CancelReaders {
  readonly queue: EventQueue
  readonly extensions: RunExtensions
  readonly signal: AbortSignal
}

function configPolicyOf(opening: Opening): ConfigPolicy {
  return opening.kind === 'go_on' ? opening.configPolicy : 'compatible'
}

/** How long a run that is aborted waits for the end of a child run that is open, in ms. */
const END_GRACE_MS = 2000

/** With what recorded effects need to know of calls. */
function surrounding(extensions: RunExtensions, effects?: LaunchedEffects): RunExtensions {
  if (effects?.recorded === undefined) return extensions
  const { outermost, innermost } = effects.recorded
  return extensions.with([outermost]).and(innermost)
}

/** A program is the run that starts it, for its tools and for whatever surrounds their calls. */
function partsOfProgram({
  depth,
  metadata,
  agentName,
  extensions,
  state,
}: RunContext): Pick<RunSurroundings, 'depth' | 'metadata' | 'agentName' | 'extensions'> {
  return { depth, metadata, agentName, extensions: extensions.ofProgram(state.transcript) }
}

/** A queue whose events are dropped. */
function unreadQueue(): EventQueue {
  const queue = new EventQueue()
  queue.drop()
  return queue
}

/** A run with a prompt. */
export interface PromptedRun {
  readonly runId: string
  readonly prompt: InputMessage
  readonly history: GivenHistory
  readonly metadata: JsonObject | null
  readonly configPolicy: ConfigPolicy
  /** What to do if the log has the run. */
  readonly ifExists: NonNullable<RunOptions['ifExists']>
}

/** A new run, or the one that the log has. */
export function promptedLaunch(
  { runId, prompt, history, ifExists, configPolicy, ...given }: PromptedRun,
  log: RunLog,
): Launch {
  const fresh: FreshOpening = { kind: 'fresh', prompt, history: () => findHistory(history, log) }
  const metadata = given.metadata ?? {}
  if (ifExists === 'fail') return { opening: fresh, metadata }
  const begun = ifExists === 'retry' ? 'retried' : 'recovered'
  const otherwise = (): Promise<FreshOpening> => Promise.resolve(fresh)
  const stored = { begun, answers: [], load: loadStoredRun(log, runId, begun) } as const
  return {
    opening: { kind: 'go_on', ...stored, configPolicy, metadata: given.metadata, otherwise },
    metadata,
  }
}

/** A paused run with people's answers. */
export function resumedLaunch(
  { runId, stored, answers }: Resumed,
  options: Parsed<ResumeOptions>,
  log: RunLog,
): Launch {
  const checkAnswersFit = (state: RunState): void => {
    checkPaused(state)
    matchAnswers(answers, pendingOf(state))
  }
  const load = (): Promise<LoadedRun | null> =>
    stored === null ? loadPaused(log, runId, checkAnswersFit) : loadStored(log, stored)
  return continuedLaunch({ begun: 'resumed', answers, load }, options)
}

/** A run that the log has. */
export function storedLaunch(
  runId: string,
  { begun, options }: { readonly begun: 'recovered' | 'retried'; readonly options: Parsed<ResumeOptions> },
  log: RunLog,
): Launch {
  return continuedLaunch({ begun, answers: [], load: loadStoredRun(log, runId, begun) }, options)
}

function loadStoredRun(log: RunLog, runId: string, begun: 'recovered' | 'retried'): GoOnOpening['load'] {
  return () => (begun === 'retried' ? loadRetried(log, runId) : loadRun(log, runId))
}

/** A new run that continues a recorded one. */
export function forkLaunch(
  events: Iterable<RunEvent> | AsyncIterable<RunEvent>,
  point: { readonly afterTurn: number; readonly prompt: InputMessage | null; readonly runId: string },
  { log, options }: { readonly log: RunLog; readonly options: Parsed<ForkOptions> },
): Launch {
  const { effects, mocks, labels = {} } = options
  const metadata = options.metadata ?? null
  const resolve: ResolveHistory = (start) => resolveHistory(log, start)
  const { opening, calls } = forkOpening(recordedEvents(events), { ...point, labels, resolve })
  const recorded = effects === 'recorded' && { recorded: calls() }
  const changed = { ...(effects !== undefined && { effects }), ...(mocks !== undefined && { mocks }), ...recorded }
  return { opening: { ...opening, metadata }, metadata: metadata ?? {}, effects: changed }
}

function continuedLaunch(
  found: Pick<GoOnOpening, 'begun' | 'answers' | 'load'>,
  { configPolicy = 'compatible', metadata: given }: Parsed<ResumeOptions>,
): Launch {
  const metadata = given ?? null
  const opening = { kind: 'go_on', ...found, configPolicy, metadata, otherwise: null } as const
  return { opening, metadata: metadata ?? {} }
}
