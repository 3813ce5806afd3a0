import { HarnessError } from '../index.js'
import type { Answer, HarnessDescription, HarnessStream, PendingItem, RunEvent, StreamEvent } from '../index.js'
import type { PolicyExtension } from '../policy/index.js'
import { storedEvents } from './thread/cursor.js'
import { SessionError } from './errors.js'
import { Feed } from './feed.js'
import { Grants } from './grants.js'
import { playRun, runIdOf, textOfRun } from './play-run.js'
import type { RunOutcome } from './play-run.js'
import { RunStarter } from './run-starter.js'
import type { RunMeans, RunStarterSetup } from './run-starter.js'
import { SteeringPort } from './steering-port.js'
import type { PlanOutcome } from './tools/submit-plan.js'
import { MessageEnds } from './message-ends.js'
import type { MessageOutcome } from './message-ends.js'
import type { NewThreadEvent, QueueItem, ThreadEvent } from './thread/thread-events.js'
import type { ThreadRun, ThreadState } from './thread/thread-state.js'
import { threadNotFound, ThreadWriter } from './thread/thread-writer.js'
import { readBy } from './thread/reduce-chat.js'
import type { ChatRun } from './thread/reduce-chat.js'

export type ChatPhase = 'idle' | 'running' | 'waiting' | 'cancelling' | 'interrupted'

export interface ConversationSetup extends RunStarterSetup {
  readonly threadId: string
  readonly policy: PolicyExtension | null
}

/** A run in progress in this process. */
interface OpenRun {
  readonly run: ThreadRun
  readonly port: SteeringPort
  readonly abort: AbortController
  /** Resolves when its first event is stored, or it has ended. */
  readonly started: Promise<void>
  /** Resolves when the thread has dealt with its end; never rejects. */
  readonly over: Promise<void>
  /** The queue continues although the run was cancelled. */
  continues: boolean
  /** The answer to a plan stopped it. */
  plan: PlanOutcome | null
}

/** Time without work after which the claim on an idle thread is released, in ms. */
const IDLE_MS = 5_000

/**
 * A conversation in this process: its thread, and the run in progress. All changes come one after the other. Reading claims
 * nothing; the first change claims the thread.
 */
export class Conversation {
  readonly feed = new Feed()
  /** The ends of the messages, for their senders. */
  readonly ends = new MessageEnds()
  /** The permissions that people gave. */
  readonly grants: Grants
  readonly #setup: ConversationSetup
  readonly #starter: RunStarter
  readonly #writer: ThreadWriter
  readonly #ids = new Set<string>()
  /** Posts of other processes that have been dealt with. */
  readonly #taken = new Set<string>()
  #open: OpenRun | null = null
  #followsOwner = false
  #isCancelling = false
  #isClosed = false
  #work: Promise<unknown> = Promise.resolve()
  #idleTimer: NodeJS.Timeout | undefined

  constructor(setup: ConversationSetup) {
    this.#setup = setup
    this.grants = new Grants(setup.policy, () => this.state.grants)
    this.#starter = new RunStarter(setup, this.grants)
    this.#writer = new ThreadWriter(setup.log, setup.threadId, () => this.#lost())
  }

  get threadId(): string {
    return this.#setup.threadId
  }

  get state(): ThreadState {
    const { snapshot } = this.feed
    if (snapshot === undefined) throw threadNotFound(this.threadId)
    return snapshot.thread
  }

  get isOwner(): boolean {
    return this.#writer.isOwner
  }

  /** Another process owns the thread, and its events are followed. */
  get followsOwner(): boolean {
    return this.#followsOwner
  }

  /** The events of the thread's owner, another process, are followed from now on, or no more. */
  markFollowing(followsOwner: boolean): void {
    this.#followsOwner = followsOwner
  }

  get openRun(): OpenRun | null {
    return this.#open
  }

  get phase(): ChatPhase {
    if (this.#isCancelling) return 'cancelling'
    const phase = this.feed.snapshot?.phase ?? 'idle'
    if (phase !== 'running') return this.#open === null ? phase : 'running'
    return this.#open === null && !this.#followsOwner ? 'interrupted' : 'running'
  }

  get pending(): readonly PendingItem[] {
    return this.feed.snapshot?.pending ?? []
  }

  get lastRun(): ChatRun | undefined {
    return this.feed.snapshot?.runs.at(-1)
  }

  /** Reads everything that is stored. False if the thread does not exist. */
  async load(): Promise<boolean> {
    const { log, threadId } = this.#setup
    for await (const event of storedEvents(log, threadId, this.feed.place)) this.pass(event)
    return this.feed.snapshot !== undefined
  }

  isKnown(messageId: string): boolean {
    return this.#ids.has(messageId)
  }

  isTaken(postId: string): boolean {
    return this.#taken.has(postId)
  }

  /** Does `work` when everything before it is done. Rejects with `closed` after `close`. */
  exclusive<T>(work: () => Promise<T>): Promise<T> {
    return this.#queued(() => {
      if (this.#isClosed) throw new SessionError('closed', 'The sessions are closed.')
      return work()
    })
  }

  /** Claims the thread, if it can be had, and brings it up to date. Only within `exclusive`. */
  async own(): Promise<boolean> {
    clearTimeout(this.#idleTimer)
    if (this.#writer.isOwner) return true
    if (!(await this.#writer.claim())) return false
    this.#followsOwner = false
    await this.load()
    if (this.feed.snapshot !== undefined) await this.#tidy()
    return true
  }

  /** Stores events of the thread. Only within `exclusive`, by the owner. */
  async append(...events: readonly NewThreadEvent[]): Promise<void> {
    await this.feed.whileHeld(async () => {
      const { stored } = await this.#writer.append(this.feed.snapshot?.thread, events, this.feed.runPlace)
      for (const event of stored) this.pass(event)
    })
  }

  /** Begins a run with the first message of the queue, if the thread is idle and the queue is not held. */
  async beginNext(): Promise<void> {
    const { queue, held } = this.state
    const [item] = queue
    if (item === undefined || held || this.phase !== 'idle') return
    await this.begin(item)
  }

  /** Begins a run with a message of the queue, after storing further events with it. */
  async begin(item: QueueItem, ...events: readonly NewThreadEvent[]): Promise<void> {
    const { state, threadId } = this
    const mode = item.mode !== null && item.mode in this.#setup.modes ? item.mode : state.mode
    const model = item.model ?? state.models[mode] ?? null
    const runId = runIdOf(threadId, item.messageId)
    await this.append(...events, { kind: 'run_begun', runId, messageIds: [item.messageId], mode, model })
    void this.#launch((run, options) => this.#starter.begin(run, this.state, options)).catch(() => undefined)
  }

  /** Continues an interrupted run; one that has stored nothing is begun again. */
  recover(): void {
    const isNew = this.lastRun?.seq === 0
    void this.#launch((run, options) =>
      isNew
        ? this.#starter.begin(run, this.state, options)
        : this.#starter.harnessOf(run).streamRecover(run.runId, options),
    ).catch(() => undefined)
  }

  /** The tools of the latest run. */
  async tools(): Promise<HarnessDescription['tools']> {
    const { run } = this.state
    return run === null ? [] : (await this.#starter.harnessOf(run).describe()).tools
  }

  /** Continues a paused run with answers. Rejects if they are refused; then the run stays paused. */
  async resume(answers: readonly Answer[]): Promise<void> {
    const ids = new Set(answers.map(({ callId }) => callId))
    let stop = (): void => undefined
    const stored = new Promise<void>((resolve) => {
      stop = this.feed.listen((event) => {
        if (event.kind === 'answer_received') ids.delete(event.callId)
        if (ids.size === 0) resolve()
      })
    })
    const outcome = this.#launch((run, options) =>
      this.#starter.harnessOf(run).streamResume(run.runId, answers, options),
    )
    await Promise.race([stored, outcome]).finally(stop)
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
    // The message of a run that has stored nothing goes back to the queue.
    const hasBegun = this.lastRun?.seq !== 0
    if (hasBegun) await this.#starter.harnessOf(run).cancel(run.runId, { log: this.#setup.log })
    await this.load()
    await this.#ended(run, { end: { status: 'cancelled', runId: run.runId, text: textOfRun(this.lastRun) }, hasBegun })
  }

  /** Resolves when no run is in progress and no message of the queue begins one. */
  async whenIdle(): Promise<void> {
    for (;;) {
      await this.#work
      const open = this.#open
      if (open === null) return
      await open.over
    }
  }

  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    clearTimeout(this.#idleTimer)
    await this.#work
    const open = this.#open
    if (open !== null) {
      open.abort.abort(new HarnessError('interrupted', 'The sessions were closed.'))
      await open.over
    }
    this.ends.settleRest({ status: 'left', runId: null, text: '' })
    await this.#writer.release()
  }

  /** Rejects if the run could not begin or continue; then nothing of it is stored. */
  #launch(start: (run: ThreadRun, options: RunMeans) => HarnessStream<unknown>): Promise<void> {
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
      this.pass(event)
      if (event.durable) markStarted()
    }
    const onPlan = (plan: PlanOutcome): void => {
      if (this.#open !== null) this.#open.plan = plan
    }
    const stretch = { run, port, abort, shown: this.lastRun, onPlan }
    const begin = async (): Promise<HarnessStream<unknown>> => start(run, await this.#starter.means(stretch))
    const ending = playRun(begin, { onEvent, text: () => textOfRun(this.lastRun) })
    const over = ending.then(async ({ end, error }) => {
      markStarted()
      const hasBegun = this.feed.place.run > from
      await this.#exclusiveEnd(() => this.#ended(run, { end: { ...end, runId: run.runId }, hasBegun, error }))
    })
    this.#open = { run, port, abort, started, over, continues: false, plan: null }
    return ending.then(({ error }) => {
      if (error !== undefined && this.feed.place.run === from) throw error
    })
  }

  /** Also after `close`: the end of a run that was left. */
  #exclusiveEnd(work: () => Promise<void>): Promise<void> {
    return this.#queued(work).catch((error: unknown) => this.#failed(error))
  }

  #queued<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#work.then(work)
    this.#work = done.catch(() => undefined).then(() => this.#watchIdle())
    return done
  }

  /** Deals with the end of a stretch of a run. */
  async #ended(
    run: ThreadRun,
    { end, error, hasBegun = true }: RunOutcome & { readonly hasBegun?: boolean },
  ): Promise<void> {
    const { continues: goesOn = false, plan = null } = this.#open ?? {}
    this.#open = null
    if (end.status === 'left') {
      if (plan !== null && !this.#isClosed && this.#writer.isOwner) return this.#afterPlan(run, plan)
      this.settleAll(run, end)
      return
    }
    // Answers were refused: the run is still paused, and their sender knows why.
    if (!hasBegun && this.lastRun?.status === 'paused') return
    if (!this.#writer.isOwner) {
      this.settleAll(run, end)
      return
    }
    const isNew = !hasBegun && this.lastRun?.seq === 0
    const back = end.status === 'paused' ? [] : this.#unread()
    const events: NewThreadEvent[] = [...back, ...(isNew ? run.messageIds : [])]
      .toReversed()
      .map((messageId) => ({ kind: 'message_requeued', messageId }))
    const waits = this.state.queue.length + events.length > 0
    const isHeld = (end.status === 'failed' || end.status === 'cancelled') && !goesOn
    if (isHeld && waits && !this.state.held) events.push({ kind: 'queue_held' })
    this.settleAll(run, error === undefined ? end : { ...end, error })
    if (events.length > 0) await this.append(...events)
    if (!this.#isClosed) await this.beginNext()
  }

  /** The same run continues in the mode of its plan, or ends. */
  async #afterPlan({ runId }: ThreadRun, { mode }: PlanOutcome): Promise<void> {
    if (mode === null || this.#isCancelling) return this.cancelStored()
    await this.append({ kind: 'mode_handed_over', runId, mode })
    this.recover()
  }

  /** Ids of the steering messages that the latest run has not read. */
  #unread(): readonly string[] {
    const read = readBy(this.lastRun)
    return this.state.steering.map(({ messageId }) => messageId).filter((messageId) => !read.has(messageId))
  }

  /** Settles the messages that a run has read. */
  settleAll(run: ThreadRun, end: MessageOutcome): void {
    for (const messageId of [...run.messageIds, ...readBy(this.lastRun)]) this.ends.settle(messageId, end)
  }

  /** After a crash: messages that the last run did not read are in the queue again, which is held. */
  async #tidy(): Promise<void> {
    const events: NewThreadEvent[] =
      this.feed.snapshot?.phase === 'idle'
        ? this.#unread()
            .toReversed()
            .map((messageId) => ({ kind: 'message_requeued', messageId }))
        : []
    const { queue, held } = this.state
    if (!held && queue.length + events.length > 0) events.push({ kind: 'queue_held' })
    if (events.length > 0) await this.append(...events)
  }

  /** Passes an event on to the readers. */
  readonly pass = (event: ThreadEvent | RunEvent): void => {
    if (event.kind === 'message_queued') this.#ids.add(event.messageId)
    if (event.kind === 'message_taken') this.#taken.add(event.messageId)
    this.feed.push(event)
  }

  /** The thread belongs to another process now: it ends the run. */
  #lost(): void {
    this.#open?.abort.abort(new HarnessError('run_owned', 'The thread was taken over by another process.'))
  }

  /** A log that fails while an ending is stored: the thread is interrupted until it is written again. */
  async #failed(error: unknown): Promise<void> {
    this.#open = null
    const why = error instanceof Error ? error : new Error(String(error))
    this.ends.settleRest({ status: 'failed', runId: null, text: '', error: why })
    await this.#writer.release()
  }

  #watchIdle(): void {
    clearTimeout(this.#idleTimer)
    if (!this.#writer.isOwner || this.#open !== null || this.#isClosed) return
    this.#idleTimer = setTimeout(() => void this.exclusive(() => this.#rest()).catch(() => undefined), IDLE_MS).unref()
  }

  async #rest(): Promise<void> {
    const { queue, held } = this.state
    if (this.#open === null && (queue.length === 0 || held)) await this.#writer.release()
  }

  /** Posts of other processes. Only within `exclusive`, by the owner. */
  takePosts(): ReturnType<ThreadWriter['takePosts']> {
    return this.#writer.takePosts()
  }
}
