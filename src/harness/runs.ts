import { parsePrompt, parseSpawnOptions } from './option-shapes.js'
import type { Config } from './config.js'
import { HarnessError } from '../contracts/errors.js'
import type { HarnessResult } from '../contracts/result.js'
import { reportLaunch } from './launch-observer.js'
import type { OpenRun, OpenRuns } from './open-runs.js'
import type { ReplayOptions } from './options.js'
import type { Parts } from './loader.js'
import { childPlanOf, planOf, toolsOfChild } from './plan.js'
import { chosenModel, depsOf } from './run-checks.js'
import { RunAbort, inGrace } from '../util/abort.js'
import { askBeforeChild, afterChild } from '../run/children/child-hooks.js'
import { historyOfChild, promptOfChild } from '../run/children/fork-history.js'
import { conduct } from '../run/loop/conduct.js'
import type { ConfigPolicy } from '../run/machine/config-digest.js'
import type { GoOnOpening, Opening, RunPlan } from '../run/core/plan.js'
import { RunContext } from '../run/core/context.js'
import type { RunSurroundings } from '../run/core/context.js'
import type { ForkEffects } from '../run/replay/fork.js'
import { cancelChildren, cancelStored, endForgotten, endRun } from '../run/resume/cancel.js'
import type { CancelMeans } from '../run/resume/cancel.js'
import { RunExtensions } from '../run/extension/run-extensions.js'
import { inline } from '../run/resume/history.js'
import { purseOf } from '../money/budget.js'
import { loadChild } from '../run/core/load.js'
import { EventQueue } from '../run/stream/queue.js'
import type { RunLog } from '../run/log/log.js'
import type { ReplayedStretch, Stretch } from '../run/replay/replay.js'
import type { ToolSpec } from '../tools/spec.js'
import type { Clock } from '../util/clock.js'
import type { JsonObject } from '../util/json.js'

/** A run to begin or to continue. */
export interface Launch {
  readonly opening: Opening
  readonly metadata: JsonObject
  /** How its tools are run, in a fork. */
  readonly effects?: ForkEffects
}

/** The harness that runs belong to. */
export interface LauncherSetup<Output> {
  readonly config: Config<Output>
  readonly parts: Parts
  readonly runs: OpenRuns
  readonly clock: Clock
}

/** Starts runs, at the top and under calls. */
export class Launcher<Output> {
  readonly #clock: Clock
  readonly #config: Config<Output>
  readonly #parts: Parts
  readonly #runs: OpenRuns

  constructor({ config, parts, runs, clock }: LauncherSetup<Output>) {
    this.#config = config
    this.#parts = parts
    this.#runs = runs
    this.#clock = clock
  }

  async launch(
    run: OpenRun,
    { opening, metadata, effects }: Launch,
    tools: readonly ToolSpec[],
  ): Promise<HarnessResult<Output>> {
    const { runId, options, log, queue, childQueue, abort } = run
    const depsFor = depsOf(options, this.#config)
    const { budget = this.#config.budget } = options
    const extensions = this.#config.extensions.with(options.use)
    const context = this.#context({
      ...{ runId, parent: null, metadata, log, queue, childQueue, abort, opening, extensions },
      ...(depsFor !== null && { depsFor }),
      outerPurse: budget === null ? null : purseOf(budget),
    })
    const warn = (message: string): void => context.emitLive('warning', { message })
    const model = chosenModel(options, this.#config)
    const extensionTools = { given: extensions.tools, ofRun: () => context.extensions.tools }
    const how = { opening, options, model, effects: effects ?? null, asksServers: true, warn, extensionTools }
    const plan = planOf(this.#means(tools), how)
    this.#runs.onWarning(run, warn)
    const outcome = conduct<Output>(context, plan)
    reportLaunch({
      ...{ run, context, outcome },
      listen: (listener) => this.#runs.listen(runId, listener),
      replay: (stretch, replayOptions) => this.replay(stretch, replayOptions, tools),
    })
    return outcome
  }

  /** Replays a stretch of a recorded run. */
  replay(
    { opening, started, recording, model, log, input }: Stretch,
    options: ReplayOptions,
    tools: readonly ToolSpec[],
  ): ReplayedStretch<Output> {
    const { runId, parentRunId, parentToolCallId, agentName, metadata, rules } = started
    const parent =
      parentRunId === null ? null : { runId: parentRunId, callId: parentToolCallId ?? '', agentName: agentName ?? '' }
    const queue = unread()
    const { signingKey } = this.#config
    const own = { runId, parent, metadata, log, queue, abort: new RunAbort(undefined), signingKey, recording }
    const extensions = this.#config.extensions.with(options.use).offered
    const given = { extensions, configPolicy: configPolicyOf(opening) }
    const context = new RunContext({ ...own, ...given, clock: this.#clock })
    const plan: RunPlan = {
      ...planOf(this.#means(tools), {
        opening,
        options,
        model,
        effects: null,
        asksServers: false,
        extensionTools: { given: extensions.tools, ofRun: () => context.extensions.tools },
        warn: () => undefined,
      }),
      rulesFor: () => rules,
      input,
    }
    return { context, outcome: conduct<Output>(context, plan) }
  }

  /** Cancels a run that the log has, and that is paused or was interrupted. False if it had ended. */
  cancelStored(runId: string, log: RunLog): Promise<boolean> {
    return cancelStored(this.#cancelMeans(log), runId)
  }

  /** Cancels the child runs of a run that was cancelled, if they are paused or were interrupted. */
  cancelChildren(runId: string, log: RunLog): Promise<void> {
    return cancelChildren(this.#cancelMeans(log), runId)
  }

  /** `queue` and `extensions`: for the readers of the events. Default: none. `signal`: gives up. */
  #cancelMeans(
    log: RunLog,
    own?: Pick<RunSurroundings, 'queue' | 'extensions'> & { readonly signal: AbortSignal },
  ): CancelMeans {
    const given = { metadata: {}, log, clock: this.#clock, configPolicy: 'any' } as const
    const contextOf: CancelMeans['contextOf'] = (run) => {
      const { queue, extensions } = own ?? { queue: this.#runs.unreadQueue(), extensions: NO_EXTENSIONS }
      const abort = new RunAbort(own?.signal)
      return new RunContext({ ...given, queue, extensions, abort, ...run, signingKey: this.#config.signingKey })
    }
    return { log, contextOf }
  }

  #means(tools: readonly ToolSpec[]): Parameters<typeof planOf>[0] {
    const { startChild, endChild, endForgotten } = this
    return { config: this.#config, parts: this.#parts, tools, startChild, endChild, endForgotten }
  }

  /**
   * Ends a child run that nobody will continue, and the runs below it, for the readers of its parent too. Nothing depends on it:
   * if the log does not answer, they stay open.
   */
  readonly endChild: RunPlan['endChild'] = (parent, runId) => this.#endBelow(parent, (means) => endRun(means, runId))

  /** The same for the child runs that a crash, or a pause, left behind. */
  readonly endForgotten: RunPlan['endForgotten'] = (parent, forgotten) =>
    this.#endBelow(parent, (means) => endForgotten(means, parent.state, forgotten))

  async #endBelow(parent: RunContext, end: (means: CancelMeans) => Promise<void>): Promise<void> {
    const { runId, log, childQueue: queue, childExtensions: extensions } = parent
    const over = new AbortController()
    const ending = end(this.#cancelMeans(log, { queue, extensions, signal: over.signal }))
    const late = (): Error =>
      new HarnessError('store_failure', `The log has not answered: runs below run \`${runId}\` stay open.`)
    await inGrace(ending, parent.abort, { graceMs: END_GRACE_MS, late }).catch((error: unknown) => over.abort(error))
  }

  /** A child run: continued if the log or the call's state has it, else begun. */
  readonly startChild: RunPlan['startChild'] = (parent, frozen, { callId, start }) => {
    const { runId, stored, answers, signal, within, isKnown = false } = start
    const options = parseSpawnOptions(start.options)
    const { log, childQueue: queue } = parent
    const agentName = options.agentName ?? 'default'
    const outer = options.signal === undefined ? signal : AbortSignal.any([signal, options.signal])
    const abort = new RunAbort(outer, parent.abort)
    const from = { runId: parent.runId, callId, agentName }
    const metadata = options.metadata ?? {}
    const depth = parent.depth + 1
    const outerPurse = frozen.spending?.purse ?? null
    const prompt = promptOfChild(parsePrompt(options.prompt), options.history, { state: parent.state, callId })
    const tools = toolsOfChild(options, frozen.tools).map(({ name }) => name)
    const about = { agent: agentName, prompt, childRunId: runId, callId, tools }
    const opening: GoOnOpening = {
      kind: 'go_on',
      load: () => loadChild(log, runId, stored),
      begun: answers.length > 0 ? 'resumed' : 'recovered',
      answers,
      configPolicy: parent.configPolicy,
      metadata: null,
      otherwise: isKnown
        ? null
        : async () => {
            await askBeforeChild(parent, about)
            const history = historyOfChild(options, parent.state, { callId, at: this.#clock.iso() })
            return { kind: 'fresh', prompt, history: () => Promise.resolve(inline(history)) }
          },
    }
    const depsFor = (): unknown => parent.deps
    const context = this.#context({
      ...{ runId, parent: from, depth, outerPurse, metadata, log, queue, abort, opening, depsFor },
      extensions: parent.childExtensions,
    })
    // The child has the policies of its own extensions.
    const policies = frozen.policies
      .filter((policy) => !parent.extensions.policies.includes(policy))
      .map((policy) => policy.forChild?.(parent.state.transcript) ?? policy)
    const plan = childPlanOf(this.#means([]), { opening, options, parent: frozen, policies })
    const conducted = (): ReturnType<typeof conduct<unknown>> => conduct<unknown>(context, plan)
    const outcome = within === undefined ? conducted() : within(abort.signal, conducted)
    return { abort, outcome: afterChild(parent, about, { child: context, outcome }) }
  }

  #context(
    own: Pick<
      RunSurroundings,
      | 'runId'
      | 'parent'
      | 'depth'
      | 'outerPurse'
      | 'metadata'
      | 'depsFor'
      | 'log'
      | 'queue'
      | 'childQueue'
      | 'abort'
      | 'extensions'
    > & { readonly opening: Opening },
  ): RunContext {
    const { signingKey } = this.#config
    const given = { clock: this.#clock, signingKey, configPolicy: configPolicyOf(own.opening) }
    return new RunContext({ ...own, ...given })
  }
}

function configPolicyOf(opening: Opening): ConfigPolicy {
  return opening.kind === 'go_on' ? opening.configPolicy : 'compatible'
}

/** How long a run that is aborted waits for the end of a child run that is open, in ms. */
const END_GRACE_MS = 2000

const NO_EXTENSIONS = new RunExtensions([])

/** A queue whose events are dropped. */
function unread(): EventQueue {
  const queue = new EventQueue()
  queue.drop()
  return queue
}
