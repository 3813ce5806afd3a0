import { HarnessError } from '#contracts/errors.js'
import type { Answer } from '#core/state/answers.js'
import type { LogStore, Post } from '#core/log/log.js'
import type { LogSummaries } from '#core/log/run-summary.js'
import type { PendingItem } from '#contracts/result.js'
import type { RunEvent } from '#core/state/events.js'
import { codedError, sessionsClosed, storedError, tellProcess, threadNotFound } from '../errors.js'
import { Feed } from './feed.js'
import { Grants } from '../thread/grants.js'
import { MessageEnds } from './message.js'
import { Refusals } from './refusals.js'
import type { MessageOutcome, StopListener } from './message.js'
import { ActiveRun, isElsewhere, threadRunId, RunStarter } from './run-starter.js'
import type { ConversationDeps, RunOutcome, RunStart } from './run-starter.js'
import { SeenEvents } from './seen-events.js'
import { doNothing, Mutex } from './mutex.js'
import { eventsAfterEnd, eventsAfterRun, eventsOfRefusal, eventsWithoutRun } from '../thread/next-events.js'
import { readBy, textOfRun } from '../thread/reduce-chat.js'
import type { ChatRun, ChatSnapshot } from '../thread/reduce-chat.js'
import type { ThreadMessage, NewThreadEvent, ReplacedRuns, ThreadEvent } from '../thread/thread-events.js'
import { isHeld, nextMessage } from '../thread/queue.js'
import type { ThreadRun, ThreadState } from '../thread/thread-state.js'
import { existing, ThreadWriter, withoutOtherOwner } from '../thread/thread-writer.js'
import type { PlanOutcome } from '../tools/ask-people.js'

export type ChatPhase = 'idle' | 'running' | 'waiting' | 'cancelling' | 'interrupted'

/** Time without work until an idle thread is released; between attempts to continue a run that another process has; in ms. */
const IDLE_MS = 5_000
const RECOVER_MS = 1_000

/**
 * A conversation as this process knows it: its events, and the messages whose senders wait here. All changes come one after the
 * other, by the owner that `exclusive` gives. Reading claims nothing; the first change claims the thread.
 */
export class ThreadConversation {
  readonly threadId: string
  readonly log: LogStore
  readonly feed = new Feed(() => void this.load().catch(doNothing))
  /** The ends of the messages, for their senders. */
  readonly ends = new MessageEnds()
  /** Why runs could not begin or continue here. */
  readonly refusals = new Refusals(this.ends)
  readonly seen = new SeenEvents()
  /** The permissions that people gave. */
  readonly grants: Grants
  /** Gives the runs their harness, model and extensions. */
  readonly starter: RunStarter
  /** Is called when this process owns the thread, and follows nobody, and when it does not own it any more. */
  onOwnership: (isOwner: boolean) => void = doNothing
  /** Is called when a run has paused or ended here. */
  onStop: StopListener = () => null
  /** The log may have events that are not known, because the store failed. */
  isUncertain = false
  readonly #owner: ThreadOwner
  #loading: Promise<unknown> = Promise.resolve()
  /** Its changes, one after the other. */
  readonly turns = new Mutex(() => this.#watchIdle())
  #idleTimer: NodeJS.Timeout | undefined
  #followsOwner = false
  #isCancelling = false
  #isGone = false
  #wasClosed = false

  constructor(deps: ConversationDeps) {
    this.threadId = deps.threadId
    this.log = deps.store
    this.grants = new Grants(deps.policy, () => this.state.grants)
    this.starter = new RunStarter(deps, this.grants)
    this.#owner = new ThreadOwner(this, deps)
  }

  get isOwner(): boolean {
    return this.#owner.isOwner
  }

  /** Another process owns the thread, and its events are followed. */
  get followsOwner(): boolean {
    return this.#followsOwner
  }

  /** The events of the thread's owner, another process, are followed from now on, or no more. */
  markFollowing(followsOwner: boolean): void {
    this.#followsOwner = followsOwner
  }

  /** The run that this process executes. */
  get openRun(): ActiveRun | null {
    return this.#owner.openRun
  }

  get phase(): ChatPhase {
    if (this.#isCancelling) return 'cancelling'
    const phase = this.feed.latest?.phase ?? 'idle'
    if (phase !== 'running') return this.openRun === null ? phase : 'running'
    return this.openRun === null && !this.#followsOwner ? 'interrupted' : 'running'
  }

  get state(): ThreadState {
    return this.latest.thread
  }

  get snapshot(): ChatSnapshot {
    return existing(this.feed.snapshot, this.threadId)
  }

  /** The snapshot with the latest run alone: enough for all decisions, and as cheap in a long conversation. */
  get latest(): ChatSnapshot {
    return existing(this.feed.latest, this.threadId)
  }

  get pending(): readonly PendingItem[] {
    return this.feed.latest?.pending ?? []
  }

  get lastRun(): ChatRun | undefined {
    return this.feed.latest?.runs[0]
  }

  /** Somebody here reads the events, or waits for the end of a message or the outcome of a post. */
  get isWatched(): boolean {
    return this.feed.hasReaders || this.ends.areAwaited || this.seen.posted.size > 0
  }

  /** It was closed, or the thread deleted. */
  get isClosed(): boolean {
    return this.#wasClosed || this.#isGone
  }

  checkOpen(): void {
    if (this.#isGone) throw threadNotFound(this.threadId)
    if (this.#wasClosed) throw sessionsClosed()
  }

  /**
   * Gives the owner of the thread to `work` when everything before it is done; claims the thread if nobody owns it. Null if another
   * process owns it. Rejects with `closed` after `close`. `cancels`: cancels the runs in progress first.
   */
  async exclusive<T>(work: (owner: ThreadOwner) => Promise<T>, cancels = false): Promise<T | null> {
    for (;;) {
      if (cancels) await this.cancelOpen(false)
      const end = await this.turns.take()
      try {
        this.checkOpen()
        if (cancels && this.openRun !== null) continue
        clearTimeout(this.#idleTimer)
        return (await this.#owner.claim()) ? await work(this.#owner) : null
      } finally {
        end()
      }
    }
  }

  /** Cancels the run in progress; gives its id, null if there is none. Never resolves within a turn. */
  async cancelOpen(continues: boolean): Promise<string | null> {
    const { openRun } = this
    if (openRun === null) return null
    openRun.continues ||= continues
    this.#isCancelling = true
    // Its prompt is in the transcript even if it has sent no request.
    await openRun.started
    openRun.abort.abort(new HarnessError('cancelled', 'The run was cancelled by the session.'))
    await openRun.over
    this.#isCancelling = false
    return openRun.run.runId
  }

  /** Resolves when no run is in progress and no message of the queue begins one. Rejects if a run here cannot continue. */
  async whenIdle(): Promise<void> {
    for (;;) {
      await this.turns.over
      const busy = this.openRun?.over ?? this.#owner.asking
      if (busy === null) break
      await busy
    }
    if (this.phase === 'interrupted') this.refusals.check()
  }

  /** Releases the thread if nothing is to be done. */
  async rest(): Promise<void> {
    const end = await this.turns.take()
    try {
      this.checkOpen()
      if (!this.isOwner || this.openRun !== null || this.#waits) return
      // Nothing has begun it: it must not look as if something would.
      if (this.phase === 'idle') await this.#owner.holdQueue()
      await this.#owner.release()
    } finally {
      end()
    }
  }

  /** For people, with messages that come after them: the queue continues here. */
  get #waits(): boolean {
    return this.phase === 'waiting' && this.state.queue.length > 0 && !isHeld(this.state)
  }

  #watchIdle(): void {
    clearTimeout(this.#idleTimer)
    if (!this.isOwner || this.openRun !== null || this.isClosed || this.#waits) return
    this.#idleTimer = setTimeout(() => void this.rest().catch(doNothing), IDLE_MS).unref()
  }

  async close(): Promise<void> {
    if (this.#wasClosed) return
    this.#wasClosed = true
    clearTimeout(this.#idleTimer)
    await this.turns.over
    await this.#owner.leaveRun()
    this.ends.settleRest({ status: 'left', runId: null, text: '' })
    await this.#owner.release()
    this.feed.end()
  }

  /** Notes that the thread is gone if its log is, or began anew. `summary`: of the log. */
  noteLog(summary: LogSummaries['thread'] | null): void {
    if (summary?.createdAt !== this.state.createdAt) this.markGone()
  }

  /** Nobody will deal with its messages and posts. */
  markGone(): void {
    this.#isGone = true
    this.seen.posted.clear()
    this.ends.settleRest({ status: 'removed', runId: null, text: '' })
    this.feed.end()
  }

  /** Reads everything that is stored. False if the thread does not exist. */
  load(): Promise<boolean> {
    const loading = this.#loading.then(async () => {
      const { threadId, feed } = this
      const damages: HarnessError[] = []
      const place = { threadId, from: feed.place }
      for await (const event of this.starter.redaction.stored(this.log, place, (error) => damages.push(error))) {
        if (event.kind === 'run_begun') damages.length = 0
        this.#note(event)
        this.feed.pushStored(event)
        this.refusals.tell(event, this)
      }
      for (const error of damages) feed.refuse(storedError(error))
      this.settleStored()
      return this.feed.latest !== undefined
    })
    this.#loading = loading.catch(() => void (this.isUncertain = true))
    return loading
  }

  /** Passes an event on to the readers. */
  pass(event: ThreadEvent | RunEvent): void {
    this.#note(event)
    this.feed.push(event)
    this.refusals.tell(event, this)
  }

  #note(event: ThreadEvent | RunEvent): void {
    const refused = this.seen.note(event)
    if (refused !== null) this.ends.settle(refused, { status: 'removed', runId: null, text: '' })
  }

  /** Posts of other processes that nobody has dealt with; none if this process does not own the thread. */
  takePosts(): Promise<readonly Post[]> {
    return this.#owner.takePosts()
  }

  /** Settles the messages whose end is stored, and is not being dealt with here. */
  settleStored(): void {
    if (this.openRun !== null || !this.ends.areAwaited) return
    const { snapshot } = this.feed
    if (snapshot !== undefined) this.ends.settleStored(snapshot, (messageId) => this.seen.hasMessage(messageId))
  }

  /** Settles the messages that a run has read. */
  settleAll(run: ThreadRun, end: MessageOutcome): void {
    for (const messageId of [...run.messageIds, ...readBy(this.lastRun)]) this.ends.settle(messageId, end)
  }
}

/**
 * The owner of a thread: writes its log, and executes its runs. `ThreadConversation.exclusive` gives it to one piece of work at a time, when
 * this process has claimed the thread and knows all of its events.
 */
export class ThreadOwner {
  readonly conversation: ThreadConversation
  readonly maxQueued: number
  /** The run that this process executes. */
  openRun: ActiveRun | null = null
  /** Somebody else than a person is asked about the items of the run. */
  asking: Promise<void> | null = null
  readonly #deps: ConversationDeps
  readonly #writer: ThreadWriter
  #hasFailed = false // The latest append.
  #recoverTimer: NodeJS.Timeout | undefined

  constructor(conversation: ThreadConversation, deps: ConversationDeps) {
    this.conversation = conversation
    this.maxQueued = deps.maxQueued
    this.#deps = deps
    this.#writer = new ThreadWriter(deps.store, deps.threadId, {
      onLost: () => this.#lost(),
      onKept: () => void this.#checkContinued().catch(doNothing),
    })
  }

  get isOwner(): boolean {
    return this.#writer.isOwner
  }

  /** Claims the thread, if it can be had, and brings it up to date: others may continue an interrupted run. */
  async claim(): Promise<boolean> {
    const { conversation } = this
    // The store that has failed may have lost the claim too.
    if (this.#hasFailed && this.openRun === null) await this.#writer.release()
    const isNew = !this.isOwner
    if (!isNew && !conversation.isUncertain && conversation.phase !== 'interrupted') return true
    if (isNew && !(await this.#writer.claim())) return false
    try {
      // Another process may have deleted the thread.
      if (isNew) conversation.noteLog(await this.#deps.store.inspect(this.#writer.ref))
      conversation.checkOpen()
      await conversation.load()
      conversation.isUncertain = false
      if (isNew) this.#hasFailed = false
      if (isNew) await this.append(...eventsAfterRun(conversation.latest, true))
      else if (this.openRun === null) await this.append(...eventsAfterEnd(conversation.latest))
    } catch (error) {
      conversation.isUncertain = true
      if (isNew) await this.release()
      throw error
    }
    if (isNew) conversation.onOwnership(true)
    return true
  }

  /** Gives the thread back: whoever waits here follows again. */
  async release(): Promise<void> {
    await this.#writer.release()
    this.conversation.onOwnership(false)
  }

  takePosts(): Promise<readonly Post[]> {
    return this.#writer.takePosts()
  }

  /** Holds the queue, unless it is empty or held. */
  holdQueue(): Promise<void> {
    const { state } = this.conversation
    return this.append(...(state.queue.length === 0 || isHeld(state) ? [] : [{ kind: 'queue_held' } as const]))
  }

  /** Stores events of the thread. */
  async append(...events: readonly NewThreadEvent[]): Promise<void> {
    if (events.length === 0) return
    const { conversation } = this
    const { feed } = conversation
    await feed.whileHeld(async () => {
      const stored = await this.#writer.append(feed.latest?.thread, events, feed.runPlace).catch((error: unknown) => {
        // The events may still be stored.
        this.#hasFailed = true
        conversation.isUncertain = true
        throw error
      })
      for (const event of stored) conversation.pass(event)
    })
  }

  /** Begins a run with the first message of the queue, if the thread is idle and the queue is not held. */
  async beginNext(): Promise<void> {
    const { state, phase, starter, refusals } = this.conversation
    const item = nextMessage(state)
    if (item === undefined || state.held || phase !== 'idle') return
    const error = refusals.of(() => starter.modeOf(item, state))
    if (error === null) return this.begin(item, [])
    await this.append({ kind: 'message_requeued', messageId: item.messageId, error }, { kind: 'queue_held', error })
  }

  /** Begins a run with a message of the queue, after storing further events with it: one of them may queue the message. */
  async begin(item: ThreadMessage, events: readonly NewThreadEvent[], replaces?: ReplacedRuns): Promise<void> {
    const { state, starter, threadId } = this.conversation
    const mode = starter.modeOf(item, state)
    const isGone = item.mode === null && mode !== state.mode
    const changes: readonly NewThreadEvent[] = isGone ? [{ kind: 'setting_changed', mode }] : []
    const model = item.model ?? state.models[mode] ?? null
    const runId = threadRunId(state, item.messageId, replaces)
    const begun = { kind: 'run_begun', runId, messageIds: [item.messageId], mode, model } as const
    await this.append(...changes, ...events, replaces === undefined ? begun : { ...begun, replaces })
    if (isGone)
      tellProcess(threadId, `its mode \`${state.mode}\` is not there any more, and it continues in \`${mode}\`.`)
    void this.#play(this.#newRun(), 'begin')
  }

  /** Continues an interrupted run; one that has stored nothing is begun again. */
  recover(): ActiveRun {
    const run = this.#newRun()
    void this.#play(run, this.conversation.lastRun?.seq === 0 ? 'begin' : 'recover')
    return run
  }

  /** Continues a paused run with answers. Rejects if they are refused; then the run stays paused. */
  async resume(answers: readonly Answer[]): Promise<void> {
    const ids = new Set(answers.map(({ callId }) => callId))
    const { stored, stop } = this.conversation.feed.answersOf(ids)
    const run = this.#newRun()
    run.isAwaited = true
    void this.#play(run, { answers })
    const error = await Promise.race([stored, run.ended]).finally(stop)
    // The stretch may have begun when the store failed: the answers are not known to be stored.
    if (error !== undefined && ids.size > 0) throw error
  }

  /** Ends a run that is paused or interrupted, without running a tool. */
  async cancelStored(): Promise<void> {
    const { conversation } = this
    const { run } = conversation.state
    if (run === null || this.openRun !== null || conversation.phase === 'idle') return
    const end: MessageOutcome = { status: 'cancelled', runId: run.runId, text: textOfRun(conversation.lastRun) }
    // The message of a run that has stored nothing goes back to the queue.
    if (conversation.lastRun?.seq !== 0) {
      const [done] = await Promise.allSettled([conversation.starter.cancel(run)])
      // Its end may have been stored although that failed.
      await conversation.load()
      if (done.status === 'rejected' && conversation.latest.phase !== 'idle') throw done.reason
    }
    await this.#ended(run, { end }, 0)
  }

  /** Deletes the thread with its runs. False if one is in progress, or another process has it still. */
  async delete(): Promise<boolean> {
    const { conversation } = this
    if (this.openRun !== null) return false
    const isGone = await this.#writer.remove([...conversation.seen.runIds])
    if (isGone) conversation.markGone()
    return isGone
  }

  /** Stops the run in progress, which can be recovered. */
  async leaveRun(): Promise<void> {
    this.openRun?.abort.abort(new HarnessError('interrupted', 'The sessions were closed.'))
    await this.openRun?.over
    clearTimeout(this.#recoverTimer)
  }

  /** The latest run, in progress here from now on, with the messages that it has not read. */
  #newRun(): ActiveRun {
    const { state, lastRun } = this.conversation
    if (state.run === null) throw new RangeError('Expected a thread with a run.')
    const run = new ActiveRun(state.run)
    const read = readBy(lastRun)
    for (const item of state.steering) if (!read.has(item.messageId)) run.port.push(item)
    this.openRun = run
    this.conversation.refusals.clear()
    return run
  }

  /** Reads a run to its pause or end, whatever its readers do; then the thread deals with that. Never rejects. */
  async #play(open: ActiveRun, start: RunStart): Promise<void> {
    const { conversation } = this
    const { run } = open
    const from = conversation.feed.place.run
    const outcome = await conversation.starter.play(open, start, conversation)
    open.markStarted(outcome.error)
    open.markEnded(outcome.error)
    // Also after `close`: the end of a run that was left.
    const end = await conversation.turns.take()
    const ended = this.#ended(run, outcome, from).catch((cause: unknown) => this.#failed(run, outcome.end, cause))
    await ended.catch(doNothing)
    open.markOver() // Before the next turn begins: whoever cancelled the run knows that it is over.
    end()
  }

  /** Deals with the end of a stretch of a run. `from`: the number of its last event before the stretch. */
  async #ended(run: ThreadRun, { end, error }: RunOutcome, from: number): Promise<void> {
    const { conversation, openRun } = this
    const { continues = false, plan = null } = openRun ?? {}
    if (end.status === 'left' && plan !== null && !conversation.isClosed && this.isOwner)
      return this.#afterPlan(run, plan)
    this.openRun = null
    if (end.status === 'left') {
      conversation.settleAll(run, end)
      conversation.refusals.leave(conversation.latest, end)
      if (!conversation.isClosed) void conversation.rest().catch(doNothing) // Another process may continue, after this turn.
      return
    }
    // The last events of the run may have been stored although that failed.
    if (error !== undefined) await conversation.load()
    const hasBegun = conversation.feed.place.run > from
    if (error !== undefined && !hasBegun && end.status === 'failed' && this.isOwner && !isElsewhere(error))
      return this.#refused(run, error, openRun)
    // It was another process that continued the run.
    if (!hasBegun && conversation.lastRun?.status === 'paused') return
    if (!this.isOwner || isElsewhere(error)) {
      if (this.isOwner) this.#recoverLater()
      else conversation.settleAll(run, end)
      return
    }
    // A run that was cancelled too late has its own end, and holds the queue all the same.
    const isStopped = end.status === 'failed' || end.status === 'cancelled' || conversation.phase === 'cancelling'
    const holds = isStopped && !continues
    const takeBack = (): Promise<void> => this.append(...eventsWithoutRun(conversation.latest, holds))
    if (!hasBegun && conversation.lastRun?.seq === 0) await this.#withoutRun(run, takeBack)
    const settleMessages = (): void => conversation.settleAll(run, error === undefined ? end : { ...end, error })
    const answered = conversation.onStop(end)
    if (answered === null) settleMessages()
    else this.#waitFor(answered, settleMessages)
    await this.append(...eventsAfterRun(conversation.latest, holds))
    if (!conversation.isClosed) await this.beginNext()
  }

  /** A run that could not begin or continue. Senders learn it by the stored events, whoever continued it from `ActiveRun`. */
  async #refused(run: ThreadRun, thrown: Error, open: ActiveRun | null): Promise<void> {
    const { conversation } = this
    const error = conversation.refusals.note(thrown)
    // Their sender knows, and can give others.
    if (error.code === 'invalid_answer' && conversation.lastRun?.status === 'paused') return
    const isTold = open?.isAwaited === true || conversation.ends.areAwaited
    const storeEvents = (): Promise<void> => this.append(...eventsOfRefusal(conversation.latest, storedError(error)))
    if (conversation.lastRun?.seq === 0) await this.#withoutRun(run, storeEvents)
    else await storeEvents()
    if (!isTold) tellProcess(conversation.threadId, error.message)
  }

  /** The senders of the messages wait until it is known whether the run continues. */
  #waitFor(answered: Promise<boolean>, settle: () => void): void {
    const asking = answered.then((continues) => {
      if (!continues) settle()
      if (this.asking === asking) this.asking = null
    })
    this.asking = asking
  }

  /** A process that did not know that it had lost the thread may have continued a run that waits here. */
  async #checkContinued(): Promise<void> {
    const { conversation } = this
    const isWaiting = (): boolean => conversation.phase === 'waiting'
    const end = await conversation.turns.take()
    try {
      if (conversation.isClosed || !isWaiting()) return
      await conversation.load()
      if (!isWaiting()) this.#recoverLater()
    } finally {
      end()
    }
  }

  /** A process that has lost the thread still has the run: nothing can be said of its messages before that has stopped. */
  #recoverLater(): void {
    const { conversation } = this
    // What the run has read is known when it has stopped.
    conversation.isUncertain = true
    clearTimeout(this.#recoverTimer)
    const recoverRun = async (): Promise<unknown> =>
      conversation.phase === 'interrupted' ? this.recover() : this.beginNext()
    this.#recoverTimer = setTimeout(() => void conversation.exclusive(recoverRun).catch(doNothing), RECOVER_MS)
  }

  /** Takes a run back that has stored nothing, unless another process may be beginning it. */
  #withoutRun({ runId }: ThreadRun, work: () => Promise<void>): Promise<void> {
    const { conversation } = this
    return withoutOtherOwner(this.#deps.store, runId, async () => {
      await conversation.load()
      if (conversation.lastRun?.seq !== 0) throw new HarnessError('run_owned', `Run \`${runId}\` was begun elsewhere.`)
      await work()
    })
  }

  /** The same run continues in the mode of its plan, or ends. */
  async #afterPlan({ runId }: ThreadRun, { mode }: PlanOutcome): Promise<void> {
    // Until then the run is in progress: it only changes hands.
    if (mode !== null && this.conversation.phase !== 'cancelling') {
      await this.append({ kind: 'mode_handed_over', runId, mode })
      this.recover()
      return
    }
    this.openRun = null
    await this.cancelStored()
  }

  /** The thread belongs to another process now: it ends the run. */
  #lost(): void {
    this.openRun?.abort.abort(new HarnessError('run_owned', 'The thread was taken over by another process.'))
    this.conversation.onOwnership(false)
  }

  /** A log that fails while an ending is stored: the thread is interrupted until it is written again. */
  async #failed(run: ThreadRun, end: MessageOutcome, cause: unknown): Promise<void> {
    this.openRun = null
    const failed = { ...end, status: 'failed', error: codedError(cause) } as const
    this.conversation.settleAll(run, failed)
    this.conversation.refusals.leave(this.conversation.latest, failed)
    await this.release()
  }
}
