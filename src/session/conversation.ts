import { HarnessError } from '../index.js'
import type { Answer, HarnessStream, StreamEvent } from '../index.js'
import type { PolicyExtension } from '../policy/index.js'
import { Grants } from './grants.js'
import { KnownThread } from './known-thread.js'
import type { MessageOutcome, StopListener } from './message-ends.js'
import { isElsewhere, playRun, runIdOf } from './play-run.js'
import type { OpenRun, RunOutcome } from './play-run.js'
import { RunStarter } from './run-starter.js'
import type { RunMeans, RunStarterSetup } from './run-starter.js'
import { SteeringPort } from './steering-port.js'
import { eventsAfterCrash, eventsAfterEnd, eventsAfterRun } from './thread/queue-events.js'
import { readBy, textOfRun } from './thread/reduce-chat.js'
import type { NewThreadEvent, QueueItem, ReplacedRuns } from './thread/thread-events.js'
import type { ThreadRun } from './thread/thread-state.js'
import { ThreadWriter, withoutOtherOwner } from './thread/thread-writer.js'
import type { PlanOutcome } from './tools/submit-plan.js'

export type ChatPhase = 'idle' | 'running' | 'waiting' | 'cancelling' | 'interrupted'

export interface ConversationSetup extends RunStarterSetup {
  readonly threadId: string
  readonly policy: PolicyExtension | null
}

/** Time without work until an idle thread is released; between attempts to continue a run that another process has; in ms. */
const IDLE_MS = 5_000
const RECOVER_MS = 1_000

/**
 * A conversation in this process: its thread, and the run in progress. All changes come one after the other. Reading claims
 * nothing; the first change claims the thread.
 */
export class Conversation extends KnownThread {
  /** The permissions that people gave. */
  readonly grants: Grants
  /** Begins the runs, with their means. */
  readonly starter: RunStarter
  readonly #setup: ConversationSetup
  readonly #writer: ThreadWriter
  #open: OpenRun | null = null
  #followsOwner = false
  #isCancelling = false
  #work: Promise<unknown> = Promise.resolve()
  #idleTimer: NodeJS.Timeout | undefined
  #recoverTimer: NodeJS.Timeout | undefined
  #onOwnership: (isOwner: boolean) => void = () => undefined
  #onStop: StopListener = () => null
  /** Somebody else than a person is asked about the items of the run. */
  #asking: Promise<void> | null = null

  constructor(setup: ConversationSetup) {
    super(setup.log, setup.threadId)
    this.#setup = setup
    this.grants = new Grants(setup.policy, () => this.state.grants)
    this.starter = new RunStarter(setup, this.grants)
    this.#writer = new ThreadWriter(setup.log, setup.threadId, {
      onLost: () => this.#lost(),
      onKept: () => void this.exclusive(() => this.ifContinued(() => this.#recoverLater())).catch(() => undefined),
    })
  }

  get isOwner(): boolean {
    return this.#writer.isOwner
  }

  /** Another process owns the thread, and its events are followed. */
  get followsOwner(): boolean {
    return this.#followsOwner
  }

  /** Is called when this process owns the thread, and follows nobody, and when it does not own it any more. */
  onOwnership(listener: (isOwner: boolean) => void): void {
    this.#onOwnership = listener
  }

  /** Is called when a run has paused or ended here. */
  onStop(listener: StopListener): void {
    this.#onStop = listener
  }

  /** The events of the thread's owner, another process, are followed from now on, or no more. */
  markFollowing(followsOwner: boolean): void {
    this.#followsOwner = followsOwner
  }

  protected override get isExecuting(): boolean {
    return this.#open !== null
  }

  get openRun(): OpenRun | null {
    return this.#open
  }

  get phase(): ChatPhase {
    if (this.#isCancelling) return 'cancelling'
    const phase = this.feed.latest?.phase ?? 'idle'
    if (phase !== 'running') return this.#open === null ? phase : 'running'
    return this.#open === null && !this.#followsOwner ? 'interrupted' : 'running'
  }

  /** Does `work` when everything before it is done. Rejects with `closed` after `close`. */
  exclusive<T>(work: () => Promise<T>): Promise<T> {
    return this.#queued(() => {
      this.checkOpen()
      return work()
    })
  }

  /** Does `work` exclusively when no run is in progress here: cancels the ones that are. */
  async withoutRun<T>(work: () => Promise<T>): Promise<T> {
    for (;;) {
      await this.cancelOpen(false)
      const done = await this.exclusive(async () => (this.#open === null ? { value: await work() } : null))
      if (done !== null) return done.value
    }
  }

  /** Claims the thread, if it can be had, and brings it up to date: others may continue an interrupted run. Only within `exclusive`. */
  async own(): Promise<boolean> {
    clearTimeout(this.#idleTimer)
    if (this.#writer.isOwner && !this.isUncertain && this.phase !== 'interrupted') return true
    const isNew = !this.#writer.isOwner
    if (isNew && !(await this.#writer.claim())) return false
    try {
      // Another process may have deleted the thread.
      if (isNew) this.noteLog(await this.#setup.log.inspect(this.#writer.ref))
      this.checkOpen()
      await this.load()
      this.isUncertain = false
      const events = isNew ? eventsAfterCrash(this.latest) : this.#open === null ? eventsAfterEnd(this.latest) : []
      if (events.length > 0) await this.append(...events)
    } catch (error) {
      // Without the latest events nothing can be decided.
      this.isUncertain = true
      if (isNew) await this.#writer.release()
      // Whoever waits here follows again.
      if (isNew) this.#onOwnership(false)
      throw error
    }
    if (isNew) this.#onOwnership(true)
    return true
  }

  /** Stores events of the thread. Only within `exclusive`, by the owner. */
  async append(...events: readonly NewThreadEvent[]): Promise<void> {
    await this.feed.whileHeld(async () => {
      const { stored } = await this.#writer
        .append(this.feed.latest?.thread, events, this.feed.runPlace)
        .catch((error: unknown) => {
          // The events may have been stored.
          this.isUncertain = true
          throw error
        })
      for (const event of stored) this.pass(event)
    })
  }

  /** Begins a run with the first message of the queue, if the thread is idle and the queue is not held. */
  async beginNext(): Promise<void> {
    const { queue, held } = this.state
    const [item] = queue
    if (item === undefined || held || this.phase !== 'idle') return
    await this.begin(item, [])
  }

  /** Begins a run with a message of the queue, after storing further events with it: one of them may queue the message. */
  async begin(item: Omit<QueueItem, 'at'>, events: readonly NewThreadEvent[], replaces?: ReplacedRuns): Promise<void> {
    const { state } = this
    const mode = item.mode !== null && item.mode in this.#setup.modes ? item.mode : state.mode
    const model = item.model ?? state.models[mode] ?? null
    const runId = runIdOf(state, item.messageId, replaces)
    const begun = { kind: 'run_begun', runId, messageIds: [item.messageId], mode, model } as const
    await this.append(...events, replaces === undefined ? begun : { ...begun, replaces })
    void this.#launch((run, options) => this.starter.begin(run, this.state, options)).catch(() => undefined)
  }

  /** Continues an interrupted run; one that has stored nothing is begun again. */
  recover(): void {
    const isNew = this.lastRun?.seq === 0
    void this.#launch((run, options) =>
      isNew
        ? this.starter.begin(run, this.state, options)
        : this.starter.harnessOf(run).streamRecover(run.runId, options),
    ).catch(() => undefined)
  }

  /** Continues a paused run with answers. Rejects if they are refused; then the run stays paused. */
  async resume(answers: readonly Answer[]): Promise<void> {
    const ids = new Set(answers.map(({ callId }) => callId))
    const { stored, stop } = this.feed.answersOf(ids)
    const outcome = this.#launch((run, options) =>
      this.starter.harnessOf(run).streamResume(run.runId, answers, options),
    )
    const error = await Promise.race([stored, outcome]).finally(stop)
    // The stretch had begun when the store failed: the answers are not known to be stored.
    if (error !== undefined && ids.size > 0) throw error
  }

  /** Cancels the run in progress, if there is one. Not within `exclusive`. */
  async cancelOpen(continues: boolean): Promise<void> {
    const open = this.#open
    if (open === null) return
    open.continues ||= continues
    this.#isCancelling = true
    // Its prompt is in the transcript even if it has sent no request.
    await open.started
    open.abort.abort(new HarnessError('cancelled', 'The run was cancelled by the session.'))
    await open.over
    this.#isCancelling = false
  }

  /** Ends a run that is paused or interrupted, without running a tool. Only within `exclusive`, by the owner. */
  async cancelStored(): Promise<void> {
    const { run } = this.state
    if (run === null || this.#open !== null || this.phase === 'idle') return
    const end: MessageOutcome = { status: 'cancelled', runId: run.runId, text: textOfRun(this.lastRun) }
    // The message of a run that has stored nothing goes back to the queue.
    if (this.lastRun?.seq === 0) return this.#ended(run, { end, hasBegun: () => false })
    const harness = this.starter.harnessOf(run)
    const [done] = await Promise.allSettled([harness.cancel(run.runId, { log: this.#setup.log })])
    // Its end may have been stored although that failed.
    await this.load()
    if (done.status === 'rejected' && this.latest.phase !== 'idle') throw done.reason
    await this.#ended(run, { end, hasBegun: () => true })
  }

  /** Resolves when no run is in progress and no message of the queue begins one. */
  async whenIdle(): Promise<void> {
    for (;;) {
      await this.#work
      const { over } = this.#open ?? {}
      const asking = this.#asking
      if (over === undefined && asking === null) return
      await (over ?? asking)
      if (this.#asking === asking) this.#asking = null
    }
  }

  async close(): Promise<void> {
    if (this.wasClosed) return
    this.wasClosed = true
    clearTimeout(this.#idleTimer)
    clearTimeout(this.#recoverTimer)
    await this.#work
    const open = this.#open
    if (open !== null) {
      open.abort.abort(new HarnessError('interrupted', 'The sessions were closed.'))
      await open.over
    }
    this.ends.settleRest({ status: 'left', runId: null, text: '' })
    await this.#writer.release()
  }

  /** Rejects if the run could not begin or continue; then nothing of it is stored. Gives the error of a stretch that had begun. */
  #launch(start: (run: ThreadRun, options: RunMeans) => HarnessStream<unknown>): Promise<Error | undefined> {
    const { run, steering } = this.state
    if (run === null) throw new RangeError('Expected a thread with a run.')
    const port = new SteeringPort()
    const read = readBy(this.lastRun)
    for (const item of steering) if (!read.has(item.messageId)) port.push(item)
    const abort = new AbortController()
    const from = this.feed.place.run
    let markStarted = (): void => undefined
    const started = new Promise<void>((resolve) => (markStarted = resolve))
    const onEvent = (event: StreamEvent): void => {
      // An end that could not be stored: according to the log, the run is interrupted.
      if (event.kind === 'run_failed' && !event.durable) return
      this.pass(event)
      if (event.durable) markStarted()
    }
    const onPlan = (plan: PlanOutcome): void => {
      if (this.#open !== null) this.#open.plan = plan
    }
    const stretch = { run, port, abort, shown: this.lastRun, onPlan }
    const begin = async (): Promise<HarnessStream<unknown>> => start(run, await this.starter.means(stretch))
    const ending = playRun(begin, { onEvent, text: () => textOfRun(this.lastRun) })
    const over = ending.then(async ({ end, error }) => {
      markStarted()
      const hasBegun = (): boolean => this.feed.place.run > from
      const ended = { ...end, runId: run.runId }
      // Also after `close`: the end of a run that was left.
      await this.#queued(() =>
        this.#ended(run, { end: ended, hasBegun, error }).catch((cause: unknown) => this.#failed(run, ended, cause)),
      )
    })
    this.#open = { run, port, abort, started, over, continues: false, plan: null }
    return ending.then(({ error }) => {
      if (error !== undefined && this.feed.place.run === from) throw error
      return error
    })
  }

  #queued<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#work.then(work)
    this.#work = done.catch(() => undefined).then(() => this.#watchIdle())
    return done
  }

  /** Deals with the end of a stretch of a run. */
  async #ended(
    run: ThreadRun,
    { end, error, hasBegun }: RunOutcome & { readonly hasBegun: () => boolean },
  ): Promise<void> {
    const { continues: goesOn = false, plan = null } = this.#open ?? {}
    this.#open = null
    if (end.status === 'left') {
      if (plan !== null && !this.isClosed && this.#writer.isOwner) return this.#afterPlan(run, plan)
      this.settleAll(run, end)
      return this.isClosed ? undefined : this.rest() // Its harness was closed: another process may continue.
    }
    // The last events of the run may have been stored although that failed.
    if (error !== undefined) await this.load()
    // Answers were refused: the run is still paused, and their sender knows why.
    if (!hasBegun() && this.lastRun?.status === 'paused') return
    if (!this.#writer.isOwner || isElsewhere(error)) {
      if (this.#writer.isOwner) this.#recoverLater()
      else this.settleAll(run, end)
      return
    }
    const holds = (end.status === 'failed' || end.status === 'cancelled') && !goesOn
    if (!hasBegun() && this.lastRun?.seq === 0) await this.#takeBack(run, holds)
    const asking = this.#onStop(end)
    const settle = (): void => this.settleAll(run, error === undefined ? end : { ...end, error })
    this.#asking = asking?.then((continues) => (continues ? undefined : settle())) ?? null
    if (asking === null) settle()
    const events = eventsAfterRun(this.latest, { isNew: false, holds })
    if (events.length > 0) await this.append(...events)
    if (!this.isClosed) await this.beginNext()
  }

  /** A process that has lost the thread still has the run: nothing can be said of its messages before that has stopped. */
  #recoverLater(): void {
    // What the run has read is known when it has stopped.
    this.isUncertain = true
    clearTimeout(this.#recoverTimer)
    const recover = async (): Promise<void> => {
      if (!(await this.own()) || this.#open !== null) return
      if (this.phase !== 'interrupted') return this.beginNext()
      this.recover()
    }
    this.#recoverTimer = setTimeout(() => void this.exclusive(recover).catch(() => undefined), RECOVER_MS)
  }

  /** The message of a run that has stored nothing goes back to the queue, unless another process may be beginning the run. */
  #takeBack({ runId }: ThreadRun, holds: boolean): Promise<void> {
    return withoutOtherOwner(this.#setup.log, runId, async () => {
      await this.load()
      if (this.lastRun?.seq !== 0) throw new HarnessError('run_owned', `Run \`${runId}\` was begun elsewhere.`)
      await this.append(...eventsAfterRun(this.latest, { isNew: true, holds }))
    })
  }

  /** The same run continues in the mode of its plan, or ends. */
  async #afterPlan({ runId }: ThreadRun, { mode }: PlanOutcome): Promise<void> {
    if (mode === null || this.#isCancelling) return this.cancelStored()
    await this.append({ kind: 'mode_handed_over', runId, mode })
    this.recover()
  }

  /** The thread belongs to another process now: it ends the run. */
  #lost(): void {
    this.#open?.abort.abort(new HarnessError('run_owned', 'The thread was taken over by another process.'))
    this.#onOwnership(false)
  }

  /** A log that fails while an ending is stored: the thread is interrupted until it is written again. */
  async #failed(run: ThreadRun, end: MessageOutcome, cause: unknown): Promise<void> {
    this.#open = null
    const error = cause instanceof Error ? cause : new Error(String(cause))
    this.settleAll(run, { ...end, status: 'failed', error })
    await this.#writer.release()
    this.#onOwnership(false)
  }

  #watchIdle(): void {
    clearTimeout(this.#idleTimer)
    if (!this.#writer.isOwner || this.#open !== null || this.isClosed) return
    this.#idleTimer = setTimeout(() => void this.exclusive(() => this.rest()).catch(() => undefined), IDLE_MS).unref()
  }

  /** Releases the thread if nothing is to be done. Only within `exclusive`. */
  async rest(): Promise<void> {
    const { queue, held } = this.state
    const continues = queue.length > 0 && !held && this.phase !== 'interrupted'
    if (this.#open !== null || continues) return
    await this.#writer.release()
    this.#onOwnership(false)
  }

  /** Posts of other processes. Only within `exclusive`, by the owner. */
  readonly takePosts = (): ReturnType<ThreadWriter['takePosts']> => this.#writer.takePosts()

  /** Removes the thread, and these runs; false if another process has one. Only within `exclusive`, by the owner. */
  async removeLogs(runIds: readonly string[]): Promise<boolean> {
    const isGone = await this.#writer.remove(runIds)
    if (isGone) this.markGone()
    return isGone
  }
}
