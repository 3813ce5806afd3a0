import { checkSpawnOptions, ownMetadata, ownPrompt } from './config.js'
import type { Config } from './config.js'
import { HarnessError } from '../contracts/errors.js'
import type { ReplayOptions, RunOptions } from './options.js'
import { Parts } from './loader.js'
import { childPlanOf, planOf, toolsOfChild } from './plan.js'
import { RunAbort } from '../util/abort.js'
import type { ChildStart } from '../run/core/child-run.js'
import { askBeforeChild, toldAfterChild } from '../run/children/child-hooks.js'
import { forkHistory } from '../run/children/fork-history.js'
import { conduct } from '../run/loop/conduct.js'
import type { ConfigPolicy } from '../run/machine/config-digest.js'
import type { GoOnOpening, Opening, RunPlan } from '../run/core/plan.js'
import { RunContext } from '../run/core/context.js'
import type { RunSurroundings } from '../run/core/context.js'
import type { ForkEffects } from '../run/replay/fork.js'
import type { Frozen } from '../run/core/frozen.js'
import type { RunLog } from '../run/log/log.js'
import type { RunEvent } from '../run/machine/events.js'
import { cancelStored } from '../run/resume/cancel.js'
import { inputPort } from '../run/stream/input.js'
import { SeamSet } from '../run/extension/seam-set.js'
import { inline } from '../run/resume/history.js'
import { loadChild } from '../run/core/load.js'
import { EventQueue } from '../run/stream/queue.js'
import type { ReplayedStretch, Stretch } from '../run/replay/replay.js'
import type { StartedChild } from '../run/core/started-child.js'
import type { StreamedRun } from '../run/stream/stream.js'
import type { ToolSpec } from '../tools/spec.js'
import { systemClock } from '../util/clock.js'
import type { JsonObject } from '../util/json.js'

/** A run to be begun or gone on with. */
export interface Launch {
  readonly runId: string
  readonly options: RunOptions
  readonly opening: Opening
  readonly metadata: JsonObject
  /** What its tools do, in a fork. */
  readonly effects?: ForkEffects
  /** Somebody reads its events: with deltas, unless the options say otherwise. */
  readonly streamed: boolean
}

/** Starts runs, at the top and under calls, and knows those under way. */
export class Launcher<Output> {
  readonly clock = systemClock()
  readonly #config: Config<Output>
  readonly parts: Parts
  readonly #running = new Map<RunContext, Promise<unknown>>()
  /** Who follows a run, by run id. */
  readonly #followers = new Map<string, Set<(event: RunEvent) => void>>()

  constructor(config: Config<Output>) {
    this.#config = config
    this.parts = new Parts(config, this.warn)
  }

  launch(
    { runId, options: given, opening, metadata, effects, streamed }: Launch,
    tools: readonly ToolSpec[],
  ): StreamedRun<Output> {
    const ownInput = inputPort()
    const input = given.input ?? ownInput
    const options = streamed ? { ...given, input, deltas: given.deltas ?? true } : given
    const model = options.model ?? this.#config.model
    if (model === null) throw missingModel()
    const depsFor = given.deps === undefined ? this.#config.deps : () => given.deps
    if (depsFor === null && this.#config.needsDeps) throw missingDeps()
    const seams = this.#config.seams.with(options.use)
    const plan = planOf(this.#means(tools), {
      ...{ opening, options, model, effects: effects ?? null, asksServers: true },
      extensionTools: { given: seams.seams.tools, ofRun: () => context.seams.tools },
      warn: (message) => context.tell('warning', { message }),
    })
    const queue = new EventQueue(this.#publish)
    const abort = new RunAbort(options.signal)
    abort.onAbort(() => queue.stopWaiting())
    const log = options.log ?? this.#config.log
    const childQueue = options.includeSubagents === false ? unheard(this.#publish) : queue
    const context = this.#context({
      ...{ runId, parent: null, metadata, log, queue, childQueue, abort, opening, seams },
      ...(depsFor !== null && { depsFor }),
    })
    const outcome = conduct<Output>(context, plan).finally(() => {
      queue.close()
      ownInput.close()
      this.#running.delete(context)
    })
    this.#running.set(context, outcome)
    return { runId, queue, abort, input, outcome }
  }

  /** A stretch of a recorded run, run again by what was recorded. */
  replay(
    { opening, started, recording, model, log, input }: Stretch,
    options: ReplayOptions,
    tools: readonly ToolSpec[],
  ): ReplayedStretch<Output> {
    const { runId, parentRunId, parentToolCallId, agentName, metadata, rules } = started
    const parent =
      parentRunId === null ? null : { runId: parentRunId, callId: parentToolCallId ?? '', agentName: agentName ?? '' }
    const queue = unheard()
    const { signingKey } = this.#config
    const own = { runId, parent, metadata, log, queue, abort: new RunAbort(undefined), signingKey, recording }
    const seams = this.#config.seams.with(options.use).offered
    const given = { seams, configPolicy: configPolicyOf(opening) }
    const context = new RunContext({ ...own, ...given, clock: this.clock })
    const plan: RunPlan = {
      ...planOf(this.#means(tools), {
        opening,
        options,
        model,
        effects: null,
        asksServers: false,
        extensionTools: { given: seams.seams.tools, ofRun: () => context.seams.tools },
        warn: () => undefined,
      }),
      rulesFor: () => rules,
      input,
    }
    return { context, outcome: conduct<Output>(context, plan) }
  }

  /** Tells the listeners of all runs under way; false where there are none. */
  readonly warn = (message: string): boolean => {
    for (const context of this.#running.keys()) context.tell('warning', { message })
    return this.#running.size > 0
  }

  /**
   * Cancels a run of this process, or one that the log has: that is paused or was interrupted. False when it has ended
   * already.
   */
  async cancel(runId: string): Promise<boolean> {
    const reason = new HarnessError('cancelled', 'The run was cancelled by its id.')
    for (const [context, outcome] of this.#running) {
      if (context.runId !== runId) continue
      context.abort.cancel(reason)
      const [{ status }] = await Promise.allSettled([outcome])
      if (status === 'rejected' && context.abort.byCaller) return true
    }
    const { log, signingKey } = this.#config
    const queue = unheard(this.#publish)
    const own = { runId, parent: null, metadata: {}, log, queue, abort: new RunAbort(undefined), signingKey }
    const given = { clock: this.clock, seams: NO_SEAMS, configPolicy: 'any' } as const
    return cancelStored(new RunContext({ ...own, ...given }))
  }

  /** Calls `listener` with each event of a run in this process; returns how to stop. */
  listen(runId: string, listener: (event: RunEvent) => void): () => void {
    const listeners = this.#followers.get(runId) ?? new Set()
    this.#followers.set(runId, listeners.add(listener))
    return () => {
      if (listeners.delete(listener) && listeners.size === 0) this.#followers.delete(runId)
    }
  }

  readonly #publish = (event: RunEvent): void => {
    if (this.#followers.size === 0) return
    for (const listener of this.#followers.get(event.runId) ?? []) listener(event)
  }

  /** The log of a run: that of this process if the run is in progress here, else the harness's. */
  logOf(runId: string): RunLog {
    const context = [...this.#running.keys()].find((each) => each.runId === runId)
    return context?.log ?? this.#config.log
  }

  /** Cancels the runs under way and waits for them. */
  async cancelAll(reason: HarnessError): Promise<void> {
    for (const { abort } of this.#running.keys()) abort.cancel(reason)
    await Promise.allSettled(this.#running.values())
  }

  #means(tools: readonly ToolSpec[]): Parameters<typeof planOf>[0] {
    const { startChild } = this
    return { config: this.#config, parts: this.parts, tools, startChild }
  }

  /** A run under a call of another: found again where its log or the call's state has it, else begun. */
  readonly startChild = (parent: RunContext, frozen: Frozen, callId: string, start: ChildStart): StartedChild => {
    const { runId, options, stored, answers, signal, within, isKnown = false } = start
    checkSpawnOptions(options)
    const { log, childQueue: queue } = parent
    const agentName = options.agentName ?? 'default'
    const abort = new RunAbort(options.signal === undefined ? signal : AbortSignal.any([signal, options.signal]))
    const from = { runId: parent.runId, callId, agentName }
    const metadata = ownMetadata(options.metadata)
    const depth = parent.depth + 1
    const outerPurse = frozen.spending?.purse ?? null
    const prompt = ownPrompt(options.prompt)
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
            if (options.fork !== true)
              return { kind: 'fresh', prompt, history: () => Promise.resolve(inline({ entries: [] })) }
            const { view } = parent.state
            const entries = forkHistory(parent.state, callId, this.clock.iso())
            return { kind: 'fresh', prompt, history: () => Promise.resolve(inline({ entries, ...(view && { view }) })) }
          },
    }
    const depsFor = (): unknown => parent.deps
    const context = this.#context({
      ...{ runId, parent: from, depth, outerPurse, metadata, log, queue, abort, opening, depsFor },
      seams: parent.childSeams,
    })
    // The child has the policies of its own extensions.
    const policies = frozen.policies
      .filter((policy) => !parent.seams.policies.includes(policy))
      .map((policy) => policy.forChild?.(parent.state.transcript) ?? policy)
    const plan = childPlanOf(this.#means([]), { opening, options, parent: frozen, policies })
    const conducted = (): ReturnType<typeof conduct<unknown>> => conduct<unknown>(context, plan)
    const outcome = within === undefined ? conducted() : within(abort.signal, conducted)
    return { abort, outcome: toldAfterChild(parent, about, context, outcome) }
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
      | 'seams'
    > & { readonly opening: Opening },
  ): RunContext {
    const { signingKey } = this.#config
    const given = { clock: this.clock, signingKey, configPolicy: configPolicyOf(own.opening) }
    return new RunContext({ ...own, ...given })
  }
}

function configPolicyOf(opening: Opening): ConfigPolicy {
  return opening.kind === 'go_on' ? opening.configPolicy : 'compatible'
}

const NO_SEAMS = new SeamSet([])

function missingDeps(): HarnessError {
  return new HarnessError(
    'invalid_options',
    'This harness was created by `withDeps`: pass `deps` to it, or to the run.',
  )
}

function missingModel(): HarnessError {
  return new HarnessError(
    'missing_model',
    'No model was chosen. Give `model` to the harness or to the run, such as `anthropic:claude-sonnet-5`, or set `THINHARNESS_MODEL`.',
  )
}

/** A queue for events that nobody listens to. */
function unheard(onPush?: (event: RunEvent) => void): EventQueue {
  const queue = new EventQueue(onPush)
  queue.drop()
  return queue
}
