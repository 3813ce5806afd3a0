import { AsyncResource } from 'node:async_hooks'
import { HarnessError } from '#contracts/errors.js'
import type { Answer } from '#core/state/answers.js'
import type { DurableEvent } from '#core/state/events.js'
import type { FollowOptions, LogStore } from '#core/log/log.js'
import type { Harness } from '#harness/harness.js'
import type { HarnessResult, PendingItem } from '#contracts/result.js'
import type { JsonObject } from '#util/json.js'
import type { Prompt } from '#harness/options.js'
import { followLog } from '../follow.js'
import { performStretch } from '../stretch.js'
import type { StretchEnding, StretchWork } from '../stretch.js'
import { isObject } from '#util/json.js'
import { shownValue } from '#util/mismatch.js'
import { isIdInUse } from './engine.js'
import type { DbosEngine } from './engine.js'
import { parseStartOptions, queueOptions } from './options.js'
import type { DbosRunsOptions, RunQueue, StartOptions } from './options.js'
import { outcomeOf } from './outcome.js'
import { attributesOf, stretchesOf, workflowIdOf } from './stretches.js'
import type { EngineStretch } from './stretches.js'
import { TakeOver } from './take-over.js'

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
    const { runId = `run_${globalThis.crypto.randomUUID().replaceAll('-', '')}`, priority, metadata, history } = parsed
    this.#assertLaunched()
    if ((await this.#log.inspect({ kind: 'run', id: runId })) !== null) throw runExists(runId)
    const stretch = await this.#enqueue(
      { kind: 'begin', runId, prompt, metadata, history },
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
    const harness = async (): Promise<Harness<Output>> =>
      this.#harnessOf(runId, (await this.#log.inspect({ kind: 'run', id: runId }))?.metadata ?? {})
    return { runId, result: () => outcomeOf(stretch, { dbos: this.#dbos, log: this.#log, harness }) }
  }

  /** Null if the same is in progress, or another process has just queued it. */
  async #enqueue(work: StretchWork, { after, metadata, priority }: QueuedWork): Promise<EngineStretch | null> {
    await this.#makeQueue()
    const { runId } = work
    const earlier = (await this.#stretches(runId)).filter((stretch) => stretch.after === after)
    if (earlier.some((stretch) => stretch.isUnderWay)) return null
    const workflowId = workflowIdOf(runId, after, earlier.length + 1)
    const options = {
      workflowName: this.#name,
      queueName: this.#name,
      workflowID: workflowId,
      workflowIDReusePolicy: 'reject',
      attributes: attributesOf(runId),
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
    return stretchesOf(this.#dbos, this.#name, runId)
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
