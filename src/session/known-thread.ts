import type { JsonObject, LogStore, LogSummaries, PendingItem, RunEvent } from '../index.js'
import { sessionsClosed } from './errors.js'
import { Feed } from './feed.js'
import { MessageEnds } from './message-ends.js'
import type { MessageOutcome } from './message-ends.js'
import { storedEvents } from './thread/cursor.js'
import { readBy } from './thread/reduce-chat.js'
import type { ChatRun, ChatSnapshot } from './thread/reduce-chat.js'
import type { QueueItem, ThreadEvent } from './thread/thread-events.js'
import type { ThreadHistory, ThreadRun, ThreadState } from './thread/thread-state.js'
import { threadNotFound } from './thread/thread-writer.js'

/** A thread as far as this process knows it: its events, and the messages whose senders wait here. */
export abstract class KnownThread {
  readonly threadId: string
  readonly feed = new Feed(() => void this.load().catch(() => undefined))
  /** The ends of the messages, for their senders. */
  readonly ends = new MessageEnds()
  /** Posts of this process that nobody is known to have dealt with. */
  readonly posted = new Set<string>()
  readonly #log: LogStore
  readonly #ids = new Set<string>()
  /** Posts of other processes that have been dealt with. */
  readonly #taken = new Map<string, JsonObject>()
  #loading: Promise<unknown> = Promise.resolve()
  #isGone = false
  protected wasClosed = false
  /** The log may have events that are not known, because the store failed. */
  protected isUncertain = false

  constructor(log: LogStore, threadId: string) {
    this.#log = log
    this.threadId = threadId
  }

  /** This process executes a run of the thread. */
  protected abstract get isExecuting(): boolean

  get state(): ThreadState {
    return this.latest.thread
  }

  get snapshot(): ChatSnapshot {
    return this.#existing(this.feed.snapshot)
  }

  /** The snapshot with the latest run alone: enough for all decisions, and as cheap in a long conversation. */
  get latest(): ChatSnapshot {
    return this.#existing(this.feed.latest)
  }

  #existing(snapshot: ChatSnapshot | undefined): ChatSnapshot {
    if (snapshot === undefined) throw threadNotFound(this.threadId)
    return snapshot
  }

  get pending(): readonly PendingItem[] {
    return this.feed.latest?.pending ?? []
  }

  get lastRun(): ChatRun | undefined {
    return this.feed.latest?.runs[0]
  }

  /** Somebody here reads the events, or waits for the end of a message or the outcome of a post. */
  get isWatched(): boolean {
    return this.feed.hasReaders || this.ends.areAwaited || this.posted.size > 0
  }

  /** It was closed, or the thread deleted. */
  get isClosed(): boolean {
    return this.wasClosed || this.#isGone
  }

  protected checkOpen(): void {
    if (this.#isGone) throw threadNotFound(this.threadId)
    if (this.wasClosed) throw sessionsClosed()
  }

  /** Notes that the thread is gone if its log is, or began anew. `summary`: of the log. */
  noteLog(summary: LogSummaries['thread'] | null): void {
    if (summary?.createdAt !== this.state.createdAt) this.markGone()
  }

  /** Nobody will deal with its messages and posts. */
  protected markGone(): void {
    this.#isGone = true
    this.posted.clear()
    this.ends.settleRest({ status: 'removed', runId: null, text: '' })
    this.feed.end()
  }

  /** Reads everything that is stored. False if the thread does not exist. */
  load(): Promise<boolean> {
    const loading = this.#loading.then(async () => {
      for await (const event of storedEvents(this.#log, this.threadId, this.feed.place)) {
        this.#note(event)
        this.feed.pushStored(event)
      }
      this.settleStored()
      return this.feed.latest !== undefined
    })
    this.#loading = loading.catch(() => void (this.isUncertain = true))
    return loading
  }

  /** Calls `goOn` if a run that waited does so no more: a process that did not know that it had lost the thread has continued it. */
  protected async ifContinued(goOn: () => void): Promise<void> {
    const waits = (): boolean => this.feed.latest?.phase === 'waiting'
    if (this.isExecuting || !waits()) return
    await this.load()
    if (!waits()) goOn()
  }

  isKnown(messageId: string): boolean {
    return this.#ids.has(messageId)
  }

  /** A stored message, and what the first run of the conversation continues; null if there is no such message. */
  async begunWith(
    messageId: string,
  ): Promise<{ readonly item: Omit<QueueItem, 'at'>; readonly origin: ThreadHistory | null } | null> {
    let item: Omit<QueueItem, 'at'> | null = null
    let origin: ThreadHistory | null = null
    for await (const event of this.#log.read<ThreadEvent>({ kind: 'thread', id: this.threadId })) {
      if (event.kind === 'thread_opened') origin = event.fork?.history ?? null
      if (event.kind === 'message_queued' && event.messageId === messageId) item = event
    }
    return item && { item, origin }
  }

  /** What the owner has said about a post; undefined if it has not been dealt with. */
  outcomeOf(postId: string): JsonObject | undefined {
    return this.#taken.get(postId)
  }

  /** Settles the messages whose end is stored, and is not being dealt with here. */
  settleStored(): void {
    if (this.isExecuting || !this.ends.areAwaited) return
    const { snapshot } = this.feed
    if (snapshot !== undefined) this.ends.settleStored(snapshot, (messageId) => this.#ids.has(messageId))
  }

  /** Settles the messages that a run has read. */
  settleAll(run: ThreadRun, end: MessageOutcome): void {
    for (const messageId of [...run.messageIds, ...readBy(this.lastRun)]) this.ends.settle(messageId, end)
  }

  /** A message that the owner refused is back with its sender, who may know only that it was posted. */
  #noteTaken({ postId, messageId, outcome }: ThreadEvent & { kind: 'message_taken' }): void {
    this.#taken.set(postId, outcome)
    this.posted.delete(postId)
    if (messageId !== null && 'error' in outcome && !this.#ids.has(messageId))
      this.ends.settle(messageId, { status: 'removed', runId: null, text: '' })
  }

  /** Passes an event on to the readers. */
  readonly pass = (event: ThreadEvent | RunEvent): void => {
    this.#note(event)
    this.feed.push(event)
  }

  #note(event: ThreadEvent | RunEvent): void {
    if (event.kind === 'message_queued') this.#ids.add(event.messageId)
    if (event.kind === 'message_taken') this.#noteTaken(event)
  }
}
