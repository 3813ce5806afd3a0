import { followLog } from '../follow-log.js'
import { performStretch, endingOf } from '../perform-stretch.js'
import { openedHistory } from '#contracts/trusted.js'
import type { StretchEnding, StretchWork } from '../perform-stretch.js'
import { isIdInUse, isUnderWay, runAttributes, listStretches, stretchWorkflowId, workflowStretch } from './engine.js'
import type { DbosEngine, DbosWorkflow, EngineStretch } from './engine.js'
import { parseStartOptions, queueOptions } from './options.js'
import type { DbosRunsOptions, RunQueue, StartOptions } from './options.js'
import { HarnessError, messageOf } from '#contracts/errors.js'
import type { HarnessResult, PendingItem } from '#contracts/result.js'
import type { RunStatus } from '#core/log/run-summary.js'
import type { FollowOptions, LogStore } from '#core/log/log.js'
import { hasEnded } from '#util/platform/owner.js'
import type { Answer } from '#core/state/answers.js'
import type { DurableEvent } from '#core/state/events.js'
import type { Prompt } from '#harness/options.js'
import type { Harness } from '#harness/harness.js'
import type { JsonObject } from '#util/json.js'
import { isObject } from '#util/json.js'
import { shownValue } from '#util/mismatch.js'
import { AsyncResource } from 'node:async_hooks'
import { setTimeout as delay } from 'node:timers/promises'

/** A run of the engine, in any process. */
export interface DbosRun<Output = string> {
  readonly runId: string
  /**
   * Waits for the run's end, or its next pause, and resolves to the same as `harness.run`, from the log. Rejects with the
   * `HarnessError` with which the run ended.
   */
  result(): Promise<HarnessResult<Output>>
}

/** Runs on DBOS: started in any process, executed by one that has capacity, taken over by another if that one dies. */
export interface DbosRuns<Output = string> extends AsyncDisposable {
  /** Puts a run into the queue. Rejects with `run_exists` if there is a run with its id. */
  start(prompt: Prompt, options?: StartOptions): Promise<DbosRun<Output>>
  /**
   * Puts answers to pending items into the queue; items without an answer keep the run waiting. Rejects with
   * `invalid_answer` for an answer to no pending item, and with `invalid_state` if the run does not wait, or if other answers
   * to the same pause are in progress. `result` rejects for answers that the harness rejects.
   */
  answer(runId: string, answers: readonly Answer[]): Promise<DbosRun<Output>>
  /** A run that was started in any process. Rejects with `run_not_found`. */
  get(runId: string): Promise<DbosRun<Output>>
  /** The items that people have to answer before the run continues. Rejects with `run_not_found`. */
  pending(runId: string): Promise<readonly PendingItem[]>
  /** Cancels a run that is queued or in progress, in any process, within about a second; false if there is none. */
  cancel(runId: string): Promise<boolean>
  /** The run's durable events as they are stored, by any process; ends after the run's end, and after a pause. */
  events(runId: string, options?: FollowOptions): AsyncIterable<DurableEvent>
  /** Puts runs whose process has ended back into the queue; resolves to their ids. */
  takeOver(): Promise<readonly string[]>
  /**
   * Stops looking for work, and shuts DBOS down if `dbosRuns` has launched it, after waiting `waitMs` for runs in progress.
   * Runs that have not ended by then are taken over by other processes once this one has ended.
   */
  close(options?: { readonly waitMs?: number }): Promise<void>
}

/** How a stretch is put into the queue. */
interface QueuedWork {
  /** Number of the event after which it begins. */
  readonly after: number
  readonly metadata: JsonObject
  readonly priority?: number | undefined
}

export class HarnessRuns<Output> implements DbosRuns<Output> {
  readonly #dbos: DbosEngine
  readonly #log: LogStore
  readonly #harness: DbosRunsOptions<Output>['harness']
  readonly #name: string
  readonly #queue: RunQueue
  readonly #hasLaunched: boolean
  readonly #here = new Set<string>()
  readonly #takeOver: TakeOver
  readonly #takeOverEveryMs: number | false
  /** Tools run outside of the engine's step, so that they can use the engine themselves. */
  readonly #outside = new AsyncResource('thinharness')
  #queueMade: Promise<unknown> | null = null
  #closing: Promise<void> | null = null

  constructor(dbos: DbosEngine, options: DbosRunsOptions<Output>) {
    const { harness, log, name = 'thinharness', queue = {}, launch, takeOverEveryMs = 15_000 } = options
    this.#dbos = dbos
    this.#log = log
    this.#harness = harness
    this.#name = name
    this.#queue = queue
    this.#hasLaunched = launch !== undefined
    this.#takeOver = new TakeOver(dbos, log, { name, here: this.#here })
    this.#takeOverEveryMs = takeOverEveryMs
  }

  /** Registers the workflow; work begins when the engine is launched. */
  register(): void {
    this.#dbos.registerWorkflow((work, metadata) => this.#carryOut(work, metadata), { name: this.#name })
    this.#dbos.registerLifecycleCallback({
      initialize: async () => {
        await this.#makeQueue()
        if (this.#takeOverEveryMs !== false) this.#takeOver.start(this.#takeOverEveryMs)
      },
      destroy: () => {
        this.#takeOver.stop()
        return Promise.resolve()
      },
    })
  }

  async start(prompt: Prompt, options: StartOptions = {}): Promise<DbosRun<Output>> {
    const parsed = parseStartOptions(options)
    const { runId = `run_${globalThis.crypto.randomUUID().replaceAll('-', '')}`, priority, metadata } = parsed
    const history = openedHistory<Extract<StretchWork, { kind: 'begin' }>['history']>(parsed.history)
    this.#assertLaunched()
    if ((await this.#log.inspect({ kind: 'run', id: runId })) !== null) throw runExists(runId)
    const stretch = await this.#enqueue(
      { kind: 'begin', runId, prompt, metadata, ...history },
      { after: 0, metadata: metadata ?? {}, priority },
    )
    if (stretch === null) throw runExists(runId)
    return this.#runOf(stretch)
  }

  async answer(runId: string, answers: readonly Answer[]): Promise<DbosRun<Output>> {
    this.#assertLaunched()
    const summary = await this.#log.inspect({ kind: 'run', id: runId })
    if (summary === null) throw runNotFound(runId)
    const { status, pending, lastSeq: after, metadata } = summary
    if (status !== 'paused')
      throw new HarnessError('invalid_state', `Run \`${runId}\` does not wait for answers: it is ${status}.`)
    checkCallIds(answers, pending)
    const stretch = await this.#enqueue({ kind: 'answer', runId, answers, after }, { after, metadata })
    if (stretch !== null) return this.#runOf(stretch)
    throw new HarnessError(
      'invalid_state',
      `Run \`${runId}\` is taking other answers now: read its pending items again.`,
    )
  }

  async get(runId: string): Promise<DbosRun<Output>> {
    const stretch = (await this.#stretches(runId)).at(-1)
    if (stretch === undefined) throw runNotFound(runId)
    return this.#runOf(stretch)
  }

  async pending(runId: string): Promise<readonly PendingItem[]> {
    const summary = await this.#log.inspect({ kind: 'run', id: runId })
    if (summary !== null) return summary.status === 'paused' ? summary.pending : []
    await this.get(runId)
    return []
  }

  async cancel(runId: string): Promise<boolean> {
    const underWay = (await this.#stretches(runId)).filter((stretch) => stretch.isUnderWay)
    for (const { workflowId } of underWay) await this.#dbos.cancelWorkflow(workflowId)
    return underWay.length > 0
  }

  events(runId: string, options: FollowOptions = {}): AsyncIterable<DurableEvent> {
    const isIdle = async (): Promise<boolean> => !(await this.#stretches(runId)).some((stretch) => stretch.isUnderWay)
    return followLog(this.#log, runId, { ...options, isIdle })
  }

  takeOver(): Promise<readonly string[]> {
    this.#assertLaunched()
    return this.#takeOver.once()
  }

  async close({ waitMs = 0 }: { readonly waitMs?: number } = {}): Promise<void> {
    this.#closing ??= this.#close(waitMs)
    await this.#closing
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  async #close(waitMs: number): Promise<void> {
    this.#takeOver.stop()
    if (!this.#hasLaunched || !this.#dbos.isInitialized()) return
    await this.#dbos.shutdown(waitMs > 0 ? { workflowCompletionTimeoutMS: waitMs } : {})
  }

  /** The workflow: one step. The engine may repeat it; completed work is in the log. */
  #carryOut(work: StretchWork, metadata: JsonObject): Promise<StretchEnding> {
    return this.#dbos.runStep(() => this.#perform(work, metadata), { name: 'stretch' })
  }

  async #perform(work: StretchWork, metadata: JsonObject): Promise<StretchEnding> {
    const { workflowID = '', stepStatus } = this.#dbos
    const signal = stepStatus?.cancelSignal
    this.#here.add(workflowID)
    try {
      return await this.#outside.runInAsyncScope(async () => {
        const harness = await this.#harnessOf(work.runId, metadata)
        return performStretch(work, { harness, log: this.#log, signal })
      })
    } finally {
      this.#here.delete(workflowID)
    }
  }

  #harnessOf(runId: string, metadata: JsonObject): Harness<Output> | Promise<Harness<Output>> {
    return typeof this.#harness === 'function' ? this.#harness({ runId, metadata }) : this.#harness
  }

  #runOf(stretch: EngineStretch): DbosRun<Output> {
    const { runId } = stretch
    const harnessOfRun = async (): Promise<Harness<Output>> =>
      this.#harnessOf(runId, (await this.#log.inspect({ kind: 'run', id: runId }))?.metadata ?? {})
    return { runId, result: () => runResult(stretch, { dbos: this.#dbos, log: this.#log, harness: harnessOfRun }) }
  }

  /** Null if the same is in progress, or another process has just queued it. */
  async #enqueue(work: StretchWork, { after, metadata, priority }: QueuedWork): Promise<EngineStretch | null> {
    await this.#makeQueue()
    const { runId } = work
    const earlier = (await this.#stretches(runId)).filter((stretch) => stretch.after === after)
    if (earlier.some((stretch) => stretch.isUnderWay)) return null
    const workflowId = stretchWorkflowId(runId, after, earlier.length + 1)
    const options = {
      workflowName: this.#name,
      queueName: this.#name,
      workflowID: workflowId,
      workflowIDReusePolicy: 'reject',
      attributes: runAttributes(runId),
      ...(priority !== undefined && { priority }),
    } as const
    try {
      await this.#dbos.enqueueWorkflowWithOptions(options, work, metadata)
    } catch (error) {
      if (isIdInUse(error)) return null
      throw error
    }
    return { workflowId, runId, after, isUnderWay: true }
  }

  #stretches(runId: string): Promise<readonly EngineStretch[]> {
    this.#assertLaunched()
    return listStretches(this.#dbos, this.#name, runId)
  }

  async #makeQueue(): Promise<void> {
    this.#queueMade ??= this.#dbos.registerQueue(this.#name, queueOptions(this.#queue))
    try {
      await this.#queueMade
    } catch (error) {
      this.#queueMade = null
      throw error
    }
  }

  #assertLaunched(): void {
    if (this.#closing !== null) throw new HarnessError('closed', 'These runs are closed.')
    if (this.#dbos.isInitialized()) return
    throw new HarnessError(
      'invalid_state',
      'DBOS is not launched: call `DBOS.launch()`, or pass `launch` to `dbosRuns`.',
    )
  }
}

/** Rejects answers to no pending item. */
function checkCallIds(answers: unknown, pending: readonly PendingItem[]): void {
  const waiting = pending.map(({ callId }) => callId)
  const known = `Waiting: ${waiting.map((callId) => `\`${callId}\``).join(', ')}.`
  if (!Array.isArray(answers) || answers.length === 0) {
    throw new HarnessError('invalid_answer', `Expected a list of answers. ${known}`)
  }
  const callIds = answers.map((answer: unknown) => (isObject(answer) ? answer['callId'] : undefined))
  const unknown = callIds.findIndex((callId) => !waiting.some((each) => each === callId))
  if (unknown === -1) return
  throw new HarnessError('invalid_answer', `Nothing waits for an answer to ${shownValue(callIds[unknown])}. ${known}`)
}

function runExists(runId: string): HarnessError {
  return new HarnessError('run_exists', `Run \`${runId}\` exists already.`)
}

function runNotFound(runId: string): HarnessError {
  return new HarnessError('run_not_found', `Neither the engine nor the log has a run \`${runId}\`.`)
}

/** How often the engine is asked for the end of a stretch, in ms. */
const POLL_MS = 500
/** How long to wait for a stretch that is moved to another version, in ms: it is cancelled for a moment. */
const MOVE_MS = 2000
/** How long to wait for the end of a cancelled run, in ms, before its result rejects without it. */
const CANCEL_MS = 15_000

interface OutcomeSource<Output> {
  readonly dbos: DbosEngine
  readonly log: LogStore
  readonly harness: () => Promise<Harness<Output>>
}

/** The outcome of a stretch that the engine has ended: the run's result or its error, from the log. */
async function runResult<Output>(
  stretch: EngineStretch,
  source: OutcomeSource<Output>,
): Promise<HarnessResult<Output>> {
  const { runId } = stretch
  const { log } = source
  const ending = await awaitEnding(stretch, source)
  if (ending?.kind === 'refused') throw new HarnessError(ending.code, ending.message)
  const seq = ending === null ? await endAfterCancel(stretch, log) : ending.seq
  return endingOf({ harness: await source.harness(), log }, runId, seq)
}

/** Null if the stretch was cancelled. */
async function awaitEnding<Output>(
  { workflowId, runId }: EngineStretch,
  { dbos, log }: OutcomeSource<Output>,
): Promise<StretchEnding | null> {
  for (let mayMove = true; ; mayMove = false) {
    try {
      return (await dbos.getResult(workflowId, { pollingIntervalMs: POLL_MS })) as StretchEnding
    } catch (cause) {
      const workflow = await dbos.getWorkflowStatus(workflowId)
      if (workflow !== null && isUnderWay(workflow)) continue
      if (workflow?.status !== 'CANCELLED') {
        throw new HarnessError('error', `DBOS could not carry out run \`${runId}\`: ${messageOf(cause)}`, { cause })
      }
      const status = (await log.inspect({ kind: 'run', id: runId }))?.status ?? 'interrupted'
      if (!mayMove || status !== 'interrupted') return null
      await delay(MOVE_MS)
    }
  }
}

/** The number of the event that ended a cancelled run. Rejects with `cancelled` if there is none. */
async function endAfterCancel({ runId, after }: EngineStretch, log: LogStore): Promise<number> {
  const until = Date.now() + CANCEL_MS
  for (;;) {
    const status = (await log.inspect({ kind: 'run', id: runId }))?.status
    const seq = status === 'running' ? null : await endAfter(log, runId, after)
    if (seq !== null) return seq
    if (status !== 'running' || Date.now() > until) throw cancelledError(runId, status === undefined)
    await delay(POLL_MS)
  }
}

async function endAfter(log: LogStore, runId: string, after: number): Promise<number | null> {
  for await (const { kind, seq } of log.read({ kind: 'run', id: runId }, { after }))
    if (kind === 'run_completed' || kind === 'run_failed') return seq
  return null
}

function cancelledError(runId: string, neverBegan: boolean): HarnessError {
  const when = neverBegan ? ' before it began' : ''
  return new HarnessError('cancelled', `Run \`${runId}\` was cancelled${when}.`)
}

/**
 * The time, in ms, after which a process counts as ended that was given a stretch and has not begun it, or has ended it
 * without reporting that to the engine. By the clocks of the database and of this machine.
 */
const BEGUN_OR_GONE_MS = 60_000

/** Puts runs whose process has ended back into the queue, by the claims in the log. */
export class TakeOver {
  readonly #dbos: DbosEngine
  readonly #log: LogStore
  readonly #name: string
  /** Workflows in progress in this process. */
  readonly #here: ReadonlySet<string>
  #timer: NodeJS.Timeout | undefined

  constructor(
    dbos: DbosEngine,
    log: LogStore,
    { name, here }: { readonly name: string; readonly here: ReadonlySet<string> },
  ) {
    this.#dbos = dbos
    this.#log = log
    this.#name = name
    this.#here = here
  }

  start(everyMs: number): void {
    let looking = false
    const lookForRuns = (): void => {
      if (looking) return
      looking = true
      // If the database cannot be reached, the next round tries again.
      this.once()
        .catch(() => undefined)
        .finally(() => (looking = false))
    }
    this.#timer = setInterval(lookForRuns, everyMs).unref()
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  /** The runs that were put back. */
  async once(): Promise<readonly string[]> {
    const runIds: string[] = []
    for (const workflow of await this.#candidates()) {
      const stretch = workflowStretch(workflow)
      if (stretch === null || this.#here.has(workflow.workflowID)) continue
      const status = (await this.#log.inspect({ kind: 'run', id: stretch.runId }))?.status ?? null
      if (!isGone(workflow, status)) continue
      await this.#giveBack(workflow)
      runIds.push(stretch.runId)
    }
    return runIds
  }

  /**
   * The workflows of this version; if it is the latest one, also those of earlier versions, which may have no other
   * process left.
   */
  async #candidates(): Promise<readonly DbosWorkflow[]> {
    const { applicationVersion } = this.#dbos
    const versions = (await this.#dbos.listApplicationVersions()).map(({ versionName }) => versionName)
    const base = { workflowName: this.#name, loadInput: false, loadOutput: false } as const
    if (versions[0] !== applicationVersion)
      return this.#dbos.listWorkflows({ ...base, status: ['PENDING'], applicationVersion: [applicationVersion] })
    const earlier = versions.slice(1, MOST_VERSIONS)
    const inHand = await this.#dbos.listWorkflows({ ...base, status: ['PENDING'] })
    if (earlier.length === 0) return inHand
    return [
      ...inHand,
      ...(await this.#dbos.listWorkflows({ ...base, status: ['ENQUEUED'], applicationVersion: earlier })),
    ]
  }

  async #giveBack({ workflowID, applicationVersion: version }: DbosWorkflow): Promise<void> {
    const { applicationVersion } = this.#dbos
    const queueName = this.#name
    if (version === undefined || version === applicationVersion) {
      await this.#dbos.resumeWorkflow(workflowID, { queueName })
      return
    }
    // A resumed workflow keeps its version; only one that has been ended can be moved to another.
    await this.#dbos.cancelWorkflow(workflowID)
    await this.#dbos.rewindWorkflow(workflowID, { queueName, applicationVersion })
  }
}

/** Earlier versions are ignored. */
const MOST_VERSIONS = 100

/**
 * A process that executes a run has claimed it, so the status `interrupted` is sufficient. The id of a process that
 * `dbosRuns` has launched shows if it has ended.
 */
function isGone(workflow: DbosWorkflow, status: RunStatus | null): boolean {
  const { status: engineStatus, executorId = '', dequeuedAt, updatedAt, createdAt } = workflow
  if (status === 'running') return false
  if (status === 'interrupted' || (engineStatus === 'PENDING' && hasEnded(executorId))) return true
  return Date.now() - (dequeuedAt ?? updatedAt ?? createdAt) > BEGUN_OR_GONE_MS
}
