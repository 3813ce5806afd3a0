import { SessionError } from '../errors.js'
import { parseCursor } from '../thread/chat-cursor.js'
import type { ChatEvent } from '../thread/chat-cursor.js'
import type { ChatAnswer } from '../thread/grants.js'
import type { ChatSnapshot } from '../thread/reduce-chat.js'
import type { Grant, ThreadMessage, QueueItem, ThreadEvent } from '../thread/thread-events.js'
import { checkKinds, performAction, PostOffice } from './actions.js'
import type { ActionOutcome, AnswerStatus, CancelQueue, ChatAction, ChatChange } from './actions.js'
import type { ChatPhase, ThreadConversation } from './conversation.js'
import type { EventsOptions } from './feed.js'
import { toJson, threadMessage } from './message.js'
import type { ContentLimits, MessageEnd, SendOptions, Sent } from './message.js'
import type { ChatResources, Modes, OutputOf } from './run-starter.js'
import { HarnessError } from '#contracts/errors.js'
import type { ModelRef } from '#contracts/model-reference.js'
import type { PendingItem } from '#contracts/result.js'
import type { LogStore } from '#core/log/log.js'
import type { LogRef } from '#core/log/ref.js'
import type { RunEvent } from '#core/state/events.js'
import type { Prompt } from '#harness/options.js'
import { isAborted, onAbort } from '#util/abort.js'
import type { JsonObject } from '#util/json.js'
import { Mailbox } from '#util/queue/tail.js'
import { pump } from '#util/queue/tail.js'

export interface ChatDeps {
  readonly conversation: ThreadConversation
  readonly modes: Modes
  readonly limits: ContentLimits
  /** The settings after a change. Throws a `SessionError` for invalid ones. */
  readonly checkSettings: (settings: JsonObject) => Promise<JsonObject>
}

/** Tags to be added to a thread, and to be removed from it. */
interface TagChanges {
  readonly add?: readonly string[]
  readonly remove?: readonly string[]
}

/** A conversation: send, steer, cancel, answer, and follow. The same object for everyone in this process who opens it. */
export class Chat<M extends Modes = Modes> {
  /** The messages that wait for their turn. */
  readonly queue: ChatQueue
  readonly #deps: ChatDeps
  readonly #conversation: ThreadConversation
  readonly #follower: Follower
  readonly #posts: PostOffice
  #cancelling: Promise<readonly QueueItem[]> | null = null

  constructor(deps: ChatDeps) {
    const { conversation } = deps
    this.#deps = deps
    this.#conversation = conversation
    this.#follower = new Follower(conversation.log, conversation, (isOrphaned) => this.#onCheck(isOrphaned))
    this.#posts = new PostOffice({
      conversation,
      attach: () => this.attach(),
      performPosted: (action) => this.#performPosted(action),
    })
    this.queue = new ChatQueue(conversation, (action) => this.#act(action))
    conversation.onOwnership = (isOwner) => this.#onOwnership(isOwner)
  }

  get threadId(): string {
    return this.#conversation.threadId
  }

  get phase(): ChatPhase {
    return this.#conversation.phase
  }

  /** The conversation as pages show it: the fold of its events. */
  get snapshot(): ChatSnapshot {
    return this.#conversation.snapshot
  }

  /** Items that people have to answer. */
  get pending(): readonly PendingItem[] {
    return this.#conversation.pending
  }

  /** The owner as last seen: `self`, the name of another process, or null if nobody owns the thread. */
  get owner(): string | null {
    return this.#conversation.isOwner ? 'self' : this.#conversation.followsOwner ? this.#follower.lastOwner : null
  }

  get isClosed(): boolean {
    return this.#conversation.isClosed
  }

  /** Somebody in this process reads the events. */
  get isFollowed(): boolean {
    return this.#conversation.feed.hasReaders
  }

  /** Gives the runs that begin or continue in this process from now on a workspace, servers and extensions, in place of earlier ones. */
  provide(resources: ChatResources): void {
    this.#conversation.starter.provide(resources)
  }

  /** Brings the conversation up to date; follows the owner if another process has the thread. */
  async attach(): Promise<void> {
    await this.#follower.attach()
    if (!this.#conversation.isOwner) await this.#conversation.load()
  }

  /** Sends a message. Resolves when it is stored. Rejects with a `SessionError`, and stores nothing, if it is refused. */
  async send<Mode extends keyof M & string = keyof M & string>(
    prompt: Prompt,
    options: SendOptions<Mode> = {},
  ): Promise<Sent<OutputOf<M[Mode]>>> {
    const { whenBusy = 'queue', signal } = options
    const item = this.#message(prompt, options)
    return this.#deliver({ kind: 'send', item, whenBusy }, signal)
  }

  /** Gives a message to the run in progress, at its next turn. `interrupt`: cancels that run and begins one with the message. */
  async steer(
    prompt: Prompt,
    { interrupt = false, ...options }: Omit<SendOptions, 'whenBusy'> & { readonly interrupt?: boolean } = {},
  ): Promise<Sent<OutputOf<M[keyof M]>>> {
    const item = this.#message(prompt, options)
    if (!interrupt) return this.#deliver({ kind: 'steer', item }, options.signal)
    await checkKinds(this.#conversation, item)
    return this.#deliver({ kind: 'interrupt', item, runId: this.#latestRunId }, options.signal)
  }

  /**
   * Answers a message again, by a new run under the present mode and settings. The run that it began and all later ones leave the
   * conversation, and stay in the log; one that waits or was interrupted ends. `id`: of the message, or of a run. Default: the latest
   * run. Rejects with `busy` while a run is in progress, with `message_not_found`, and with `thread_owned` if the thread's owner,
   * another process, does not do it in time.
   */
  async regenerate(id?: string): Promise<Sent<OutputOf<M[keyof M]>>> {
    const outcome = await this.#act({ kind: 'regenerate', id: id ?? null, runId: this.#latestRunId })
    const { messageId, status } = outcome ?? {}
    if (messageId === undefined || status === undefined)
      throw new SessionError('thread_owned', `The owner of thread \`${this.threadId}\` does not answer.`)
    const done = this.#conversation.ends.of(messageId) as Promise<MessageEnd<OutputOf<M[keyof M]>>>
    this.#conversation.settleStored()
    return { messageId, status, done }
  }

  /** Cancels the run in progress, or ends one that waits or was interrupted; no tool runs. Gives the dropped messages. */
  async cancel({ queue = 'hold' }: { readonly queue?: CancelQueue } = {}): Promise<readonly QueueItem[]> {
    this.#cancelling ??= this.#cancel(queue).finally(() => (this.#cancelling = null))
    return this.#cancelling
  }

  /** Continues an interrupted run; so does a message. False if no run is interrupted, or another process owns the thread. */
  async recover(): Promise<boolean> {
    const isRecovered = await this.#conversation.exclusive((owner) => {
      const isInterrupted = this.phase === 'interrupted'
      if (isInterrupted) owner.recover()
      return Promise.resolve(isInterrupted)
    })
    return isRecovered === true
  }

  /** Gives the claim of an idle thread back now, not after some seconds. */
  release(): Promise<void> {
    return this.#conversation.rest()
  }

  /** Answers pending items. Resolves when the answers are stored; rejects, and changes nothing, if one is invalid. */
  async answer(
    answers: readonly ChatAnswer[],
    { by }: { readonly by?: string | undefined } = {},
  ): Promise<readonly AnswerStatus[]> {
    const signed = answers.map((answer) => (by === undefined ? answer : { by, ...answer }))
    const outcome = await this.#act({ kind: 'answer', answers: signed })
    return outcome?.answers ?? []
  }

  /**
   * The events of the thread and of its runs, in one order: stored ones, then live ones with deltas, until the signal; with
   * `live: false` the stored ones alone. Throws a `SessionError` for a cursor that is not of this conversation.
   */
  events(options: EventsOptions = {}): AsyncIterable<ChatEvent> {
    if (options.after !== undefined) parseCursor(options.after)
    void this.#follower.attach(true).catch(() => undefined)
    return this.#conversation.events(options)
  }

  /** Rejects with a `SessionError` for a cursor that is not of this conversation. */
  async checkCursor(cursor: string): Promise<void> {
    await this.#conversation.placeOf(cursor)
  }

  /** The mode of the messages from now on. */
  async setMode(mode: keyof M & string): Promise<void> {
    checkMode(this.#deps.modes, mode)
    if (this.#conversation.state.mode !== mode) await this.#change({ kind: 'setting_changed', mode })
  }

  /** The model of a mode from now on; null: that of its harness. */
  async setModel(model: ModelRef | null, { mode }: { readonly mode?: keyof M & string } = {}): Promise<void> {
    const chosen = mode ?? this.#conversation.state.mode
    checkMode(this.#deps.modes, chosen)
    await this.#change({ kind: 'setting_changed', model: { mode: chosen, model } })
  }

  /** Changes settings; the whole must fit the schema of the sessions. */
  async set(settings: object): Promise<void> {
    const changes = toJson(settings)
    await this.#deps.checkSettings({ ...this.#conversation.state.settings, ...changes })
    await this.#change({ kind: 'setting_changed', settings: changes })
  }

  /** Permissions that people gave by answers with `remember`. */
  get grants(): readonly Grant[] {
    return this.#conversation.state.grants
  }

  /** Takes a permission back, from the next call on. */
  async revoke(grantId: string, { by }: { readonly by?: string } = {}): Promise<void> {
    await this.#change({ kind: 'grant_removed', grantId, by: by ?? null })
  }

  /** `auto`: a title that is made for the conversation, and does nothing if a person has named it. */
  async rename(title: string, { auto = false }: { readonly auto?: boolean } = {}): Promise<void> {
    await this.#change({ kind: 'title_changed', title, ...(auto && { auto }) })
  }

  async tag({ add = [], remove = [] }: TagChanges): Promise<void> {
    const kept = this.#conversation.state.tags.filter((tag) => !remove.includes(tag))
    await this.#change({ kind: 'tags_changed', tags: [...new Set([...kept, ...add])] })
  }

  /** Resolves when no run is in progress and the queue is empty, held, or waits for people. */
  whenIdle(): Promise<void> {
    return this.#conversation.whenIdle()
  }

  /** For `sessions.delete`. False if a run is in progress, or another process has the thread. */
  async remove(): Promise<boolean> {
    return (await this.#conversation.exclusive((owner) => owner.delete())) === true
  }

  async close(): Promise<void> {
    this.#follower.stop()
    this.#posts.stop()
    await this.#conversation.close()
  }

  get #latestRunId(): string | null {
    return this.#conversation.lastRun?.runId ?? null
  }

  #message(prompt: Prompt, options: SendOptions): ThreadMessage {
    if (options.mode !== undefined) checkMode(this.#deps.modes, options.mode)
    return threadMessage(prompt, options, this.#deps.limits)
  }

  async #deliver<Output>(action: ChatAction & { item: ThreadMessage }, signal?: AbortSignal): Promise<Sent<Output>> {
    const { messageId } = action.item
    const talk = this.#conversation
    signal?.throwIfAborted()
    const done = talk.ends.of(messageId) as Promise<MessageEnd<Output>>
    const isKnown = talk.isKnown(messageId)
    let outcome: ActionOutcome | null
    try {
      outcome = await talk.exclusive((owner) => performAction(owner, action), action.kind === 'interrupt')
      outcome ??= await this.#posts.post(action)
    } catch (error) {
      if (!isKnown) talk.ends.forget(messageId)
      throw error
    }
    if (isKnown) talk.settleStored()
    signal?.addEventListener('abort', () => void this.#withdraw(messageId).catch(() => undefined), { once: true })
    return { messageId, status: outcome?.status ?? 'posted', done }
  }

  /** The sender's signal: removes a message that waits, cancels the run that reads it. */
  async #withdraw(messageId: string): Promise<void> {
    const removed = await this.queue.remove(messageId)
    if (removed === undefined && this.#conversation.state.run?.messageIds.includes(messageId) === true)
      await this.cancel()
  }

  async #cancel(queue: CancelQueue): Promise<readonly QueueItem[]> {
    if (!this.#conversation.isOwner) await this.attach()
    if (this.phase === 'idle' && queue === 'hold') return []
    const outcome = await this.#act({ kind: 'cancel', queue, runId: this.#latestRunId })
    return outcome?.removed ?? []
  }

  async #change(event: ChatChange): Promise<void> {
    await this.#act({ kind: 'change', event })
  }

  /** Performs an action as the owner of the thread; posts it if another process is. Null if that has not taken it in time. */
  async #act(action: ChatAction): Promise<ActionOutcome | null> {
    return (await this.#perform(action)) ?? this.#posts.post(action)
  }

  /** Performs an action as the owner of the thread; null if another process is. */
  async #perform(action: ChatAction): Promise<ActionOutcome | null> {
    const talk = this.#conversation
    const { openRun } = talk
    // Answers that come while the others are dealt with are for the next pause.
    if (action.kind === 'answer' && talk.phase === 'running') await openRun?.over
    if (action.kind !== 'cancel' || openRun === null)
      return talk.exclusive((owner) => performAction(owner, action), action.kind === 'interrupt')
    await talk.cancelOpen(action.queue === 'continue')
    return talk.exclusive((owner) => performAction(owner, { ...action, runId: null }))
  }

  /** An action that another process posted. One that names an earlier run is stale. */
  async #performPosted(action: ChatAction): Promise<ActionOutcome> {
    const isStale = 'runId' in action && action.runId !== this.#latestRunId
    if (isStale && action.kind === 'cancel') return { removed: [] }
    if (isStale && action.kind === 'regenerate')
      throw new SessionError('message_not_found', 'The conversation has continued.')
    const isLate = isStale && action.kind === 'interrupt'
    const outcome = await this.#perform(isLate ? { kind: 'send', item: action.item, whenBusy: 'queue' } : action)
    if (outcome === null) throw new HarnessError('run_owned', 'The thread has another owner.')
    return outcome
  }

  /** Posts of this process may wait for an owner. */
  async #onCheck(isOrphaned: boolean): Promise<void> {
    if (this.#conversation.posted.size > 0 && isOrphaned) await this.#conversation.exclusive(() => Promise.resolve())
  }

  #onOwnership(isOwner: boolean): void {
    if (isOwner) {
      this.#follower.stop()
      this.#posts.watch()
    } else {
      this.#posts.stop()
      void this.#follower.attach().catch(() => undefined)
    }
  }
}

/** The queue of a conversation. */
export class ChatQueue {
  readonly #conversation: ThreadConversation
  readonly #act: (action: ChatAction) => Promise<ActionOutcome | null>

  constructor(conversation: ThreadConversation, act: (action: ChatAction) => Promise<ActionOutcome | null>) {
    this.#conversation = conversation
    this.#act = act
  }

  /** True if no message of the queue begins a run until one is sent, or the queue is released. */
  get held(): boolean {
    return this.#conversation.state.held
  }

  list(): readonly QueueItem[] {
    return this.#conversation.snapshot.queue
  }

  /** Removes a message; gives it, or undefined if it is not in the queue. */
  async remove(messageId: string): Promise<QueueItem | undefined> {
    const [removed] = await this.#remove([messageId])
    return removed
  }

  /** Removes all messages; gives them. */
  clear(): Promise<readonly QueueItem[]> {
    return this.#remove(this.list().map(({ messageId }) => messageId))
  }

  /** Continues a held queue. */
  async release(): Promise<void> {
    await this.#act({ kind: 'release' })
  }

  async #remove(messageIds: readonly string[]): Promise<readonly QueueItem[]> {
    const outcome = await this.#act({ kind: 'remove', messageIds })
    return outcome?.removed ?? []
  }
}

/** Throws a `SessionError` for a mode that the sessions do not have. */
function checkMode(modes: Modes, mode: string): void {
  if (mode in modes) return
  const names = Object.keys(modes).map((name) => `\`${name}\``)
  throw new SessionError('unknown_mode', `There is no mode \`${mode}\`; there are ${names.join(', ')}.`)
}

/** How often it is checked that the owner still exists, in ms. */
const CHECK_MS = 1_000

/**
 * Follows a thread that this process does not own, and its runs: for as long as it has an owner, or somebody here reads its
 * events, or waits for the end of a message or the outcome of a post.
 */
class Follower {
  readonly #log: LogStore
  readonly #conversation: ThreadConversation
  readonly #onCheck: (isOrphaned: boolean) => Promise<void>
  #timer: NodeJS.Timeout | undefined
  /** Of the reading in progress. A store may fail: then the next check begins again. */
  #abort: AbortController | null = null
  #owner: string | null = null

  /** `onCheck` is called again and again while the thread is followed. `isOrphaned`: nobody owns it. */
  constructor(log: LogStore, conversation: ThreadConversation, onCheck: (isOrphaned: boolean) => Promise<void>) {
    this.#log = log
    this.#conversation = conversation
    this.#onCheck = onCheck
  }

  /** The owner as last seen. */
  get lastOwner(): string | null {
    return this.#owner
  }

  /** Follows if the thread has an owner, or `isWatched`: somebody is about to read. */
  async attach(isWatched = false): Promise<void> {
    if ((await this.#hasReason()) || (isWatched && !this.#conversation.isOwner)) this.#start()
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
    this.#abort?.abort()
    this.#abort = null
    this.#conversation.markFollowing(false)
  }

  #start(): void {
    this.#timer ??= setInterval(() => void this.#check(), CHECK_MS).unref()
    if (this.#abort !== null) return
    const abort = new AbortController()
    this.#abort = abort
    const endFollowing = (): void => {
      abort.abort()
      if (this.#abort === abort) this.#abort = null
    }
    void this.#follow(abort.signal).then(endFollowing, endFollowing)
  }

  async #check(): Promise<void> {
    if (!(await this.#hasReason())) {
      this.stop()
      return
    }
    this.#start()
    await this.#onCheck(!this.#conversation.followsOwner).catch(() => undefined)
  }

  /** True if the store fails: the next check finds out. */
  async #hasReason(): Promise<boolean> {
    const talk = this.#conversation
    const isOurs = (): boolean => talk.isOwner || talk.isClosed
    if (isOurs()) return false
    const summary = await this.#log.inspect({ kind: 'thread', id: talk.threadId }).catch(() => undefined)
    if (isOurs()) return false
    if (summary === undefined) return true
    talk.noteLog(summary)
    if (summary === null || talk.isClosed) return false
    this.#owner = summary.owner
    talk.markFollowing(this.#owner !== null)
    return this.#owner !== null || talk.isWatched
  }

  /** Reads again whenever the thread or its latest run has another event. Rejects if the store fails. */
  async #follow(signal: AbortSignal): Promise<void> {
    const { feed, threadId } = this.#conversation
    for (let isFollowed = true; isFollowed && !isAborted(signal);) {
      const { thread, runId, run } = feed.place
      const changes = new Mailbox<ThreadEvent | RunEvent>()
      const over = new AbortController()
      const stopListening = onAbort(signal, () => {
        over.abort()
        changes.close()
      })
      const watchLog = (ref: LogRef, after: number): void => {
        const events = this.#log.follow?.<ThreadEvent | RunEvent>(ref, { after, signal: over.signal })
        if (events !== undefined) pump(events, changes, over.signal)
      }
      watchLog({ kind: 'thread', id: threadId }, thread)
      if (runId !== null) watchLog({ kind: 'run', id: runId }, run)
      try {
        while (isFollowed && feed.place.runId === runId) {
          // A log that cannot be followed any more: the next check begins again.
          isFollowed = (await changes.take())?.length !== 0
          if (isFollowed) await this.#conversation.load()
        }
      } finally {
        over.abort()
        stopListening()
      }
    }
  }
}
