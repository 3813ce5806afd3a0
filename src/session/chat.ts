import { HarnessError } from '../index.js'
import type { JsonObject, LogStore, ModelRef, PendingItem, Prompt } from '../index.js'
import { Actions, jsonOf } from './actions.js'
import type { AnswerStatus, CancelQueue, PostedFields, SentItem, SentStatus, ThreadChange } from './actions.js'
import { ChatQueue } from './chat-queue.js'
import type { ContentLimits } from './content.js'
import type { ChatPhase, Conversation } from './conversation.js'
import type { MessageEnd } from './message-ends.js'
import { checkMode, sentItem } from './sent.js'
import type { SendOptions, Sent } from './sent.js'
import { BEGINNING, parseCursor } from './thread/cursor.js'
import type { ChatEvent } from './thread/cursor.js'
import { SessionError } from './errors.js'
import type { EventsOptions } from './feed.js'
import { Follower } from './follower.js'
import type { ChatAnswer } from './grants.js'
import type { ChatMeans, Modes, OutputOf, TagChanges } from './options.js'
import { PostOffice } from './post-office.js'
import type { PostedAction } from './post-office.js'
import type { ChatSnapshot } from './thread/reduce-chat.js'
import type { Grant, QueueItem } from './thread/thread-events.js'

export interface ChatSetup {
  readonly log: LogStore
  readonly conversation: Conversation
  readonly modes: Modes
  readonly limits: ContentLimits
  readonly maxQueued: number
  /** The settings after a change. Throws a `SessionError` for invalid ones. */
  readonly checkSettings: (settings: JsonObject) => Promise<JsonObject>
}

/** A conversation: send, steer, cancel, answer, and follow. The same object for everyone in this process who opens it. */
export class Chat<M extends Modes = Modes> {
  /** The messages that wait for their turn. */
  readonly queue: ChatQueue
  readonly #setup: ChatSetup
  readonly #talk: Conversation
  readonly #actions: Actions
  readonly #follower: Follower
  readonly #posts: PostOffice
  #cancelling: Promise<readonly QueueItem[]> | null = null

  constructor(setup: ChatSetup) {
    this.#setup = setup
    this.#talk = setup.conversation
    this.#actions = new Actions(setup.conversation, setup.maxQueued)
    this.#follower = new Follower(setup.log, setup.conversation, (isOrphaned) => this.#onCheck(isOrphaned))
    this.#posts = new PostOffice(setup.log, setup.conversation, (action) => this.#doPosted(action))
    setup.conversation.onOwnership((isOwner) => this.#onOwnership(isOwner))
    this.queue = new ChatQueue({
      items: () => this.snapshot.queue,
      isHeld: () => this.#talk.state.held,
      remove: (ids) => this.#remove(ids),
      release: () =>
        this.#owned(
          () => this.#actions.release(),
          () => ({ action: 'release' }),
        ).then(() => undefined),
    })
  }

  get threadId(): string {
    return this.#talk.threadId
  }

  get phase(): ChatPhase {
    return this.#talk.phase
  }

  /** The conversation as pages show it: the fold of its events. */
  get snapshot(): ChatSnapshot {
    const { snapshot } = this.#talk.feed
    if (snapshot === undefined) throw new SessionError('thread_not_found', `There is no thread \`${this.threadId}\`.`)
    return snapshot
  }

  /** Items that people have to answer. */
  get pending(): readonly PendingItem[] {
    return this.#talk.pending
  }

  /** The owner as last seen: `self`, the name of another process, or null if nobody owns the thread. */
  get owner(): string | null {
    return this.#talk.isOwner ? 'self' : this.#talk.followsOwner ? this.#follower.lastOwner : null
  }

  get isClosed(): boolean {
    return this.#talk.isClosed
  }

  /** Somebody in this process reads the events. */
  get isFollowed(): boolean {
    return this.#talk.feed.hasReaders
  }

  /** Gives the runs that begin or continue in this process from now on a workspace, servers and extensions, in place of earlier ones. */
  provide(means: ChatMeans): void {
    this.#talk.starter.provide(means)
  }

  /** Brings the conversation up to date; follows the owner if another process has the thread. */
  async attach(): Promise<void> {
    await this.#follower.attach()
    if (!this.#talk.isOwner) await this.#talk.load()
  }

  /** Sends a message. Resolves when it is stored. Rejects with a `SessionError`, and stores nothing, if it is refused. */
  async send<Mode extends keyof M & string = keyof M & string>(
    prompt: Prompt,
    options: SendOptions<Mode> = {},
  ): Promise<Sent<OutputOf<M[Mode]>>> {
    const { whenBusy = 'queue', signal } = options
    const item = sentItem(prompt, options, this.#setup)
    return this.#send(item, {
      signal,
      work: () => this.#actions.send(item, whenBusy),
      action: { action: 'send', whenBusy },
    })
  }

  /** Gives a message to the run in progress, at its next turn. `interrupt`: cancels that run and begins one with the message. */
  async steer(
    prompt: Prompt,
    { interrupt = false, ...options }: Omit<SendOptions, 'whenBusy'> & { readonly interrupt?: boolean } = {},
  ): Promise<Sent<OutputOf<M[keyof M]>>> {
    const item = sentItem(prompt, options, this.#setup)
    const { signal } = options
    if (!interrupt)
      return this.#send(item, { signal, work: () => this.#actions.steer(item), action: { action: 'steer' } })
    await this.#actions.checkKinds(item)
    return this.#send(item, {
      ...{ signal, stops: true, action: { action: 'interrupt' } },
      work: () => this.#actions.interruptWith(item),
    })
  }

  /**
   * Answers a message again, by a new run under the present mode and settings. The run that it began and all later ones leave the
   * conversation, and stay in the log; one that waits or was interrupted ends. `id`: of the message, or of a run. Default: the latest
   * run. Rejects with `busy` while a run is in progress, with `message_not_found`, and with `thread_owned` if the thread's owner,
   * another process, does not do it in time.
   */
  async regenerate(id?: string): Promise<Sent<OutputOf<M[keyof M]>>> {
    const { runId = null } = this.#talk.lastRun ?? {}
    const outcome = await this.#owned(
      () => this.#actions.regenerate(id ?? null),
      () => ({ action: 'regenerate', id: id ?? null, runId }),
    )
    if (outcome === null)
      throw new SessionError('thread_owned', `The owner of thread \`${this.threadId}\` does not answer.`)
    const { messageId, status } = outcome as Pick<Sent, 'messageId'> & { readonly status: SentStatus }
    const done = this.#talk.ends.of(messageId) as Promise<MessageEnd<OutputOf<M[keyof M]>>>
    this.#talk.settleStored()
    return { messageId, status, done }
  }

  /** Cancels the run in progress, or ends one that waits or was interrupted; no tool runs. Gives the dropped messages. */
  async cancel({ queue = 'hold' }: { readonly queue?: CancelQueue } = {}): Promise<readonly QueueItem[]> {
    this.#cancelling ??= this.#cancel(queue).finally(() => (this.#cancelling = null))
    return this.#cancelling
  }

  /** Continues an interrupted run; so does a message. False if no run is interrupted, or another process owns the thread. */
  recover(): Promise<boolean> {
    return this.#talk.exclusive(async () => {
      if (!(await this.#talk.own()) || this.#talk.phase !== 'interrupted') return false
      this.#talk.recover()
      return true
    })
  }

  /** Gives the claim of an idle thread back now, not after some seconds. */
  release(): Promise<void> {
    return this.#talk.exclusive(() => this.#talk.rest())
  }

  /** Answers pending items. Resolves when the answers are stored; rejects, and changes nothing, if one is invalid. */
  async answer(
    answers: readonly ChatAnswer[],
    { by }: { readonly by?: string | undefined } = {},
  ): Promise<readonly AnswerStatus[]> {
    const signed = answers.map((answer) => (by === undefined ? answer : { by, ...answer }))
    // Answers that come while the others are dealt with are for the next pause.
    if (this.#talk.openRun !== null && this.#talk.phase === 'running') await this.#talk.openRun.over
    const { runId = null } = this.#talk.lastRun ?? {}
    const outcome = await this.#owned(
      async () => ({ statuses: await this.#actions.answer(signed) }),
      () => ({ action: 'answer', runId, answers: signed.map(jsonOf) }),
    )
    return (outcome?.statuses as readonly AnswerStatus[] | undefined) ?? []
  }

  /**
   * The events of the thread and of its runs, in one order: stored ones, then live ones with deltas, until the signal; with
   * `live: false` the stored ones alone.
   */
  events({ after, ...options }: EventsOptions = {}): AsyncIterable<ChatEvent> {
    const from = after === undefined ? BEGINNING : parseCursor(after)
    const { log, conversation } = this.#setup
    void this.#follower.attach(true).catch(() => undefined)
    return conversation.feed.read(from, { ...options, log, threadId: this.threadId })
  }

  /** The mode of the messages from now on. */
  async setMode(mode: keyof M & string): Promise<void> {
    checkMode(this.#setup.modes, mode)
    if (this.#talk.state.mode !== mode) await this.#change({ kind: 'setting_changed', mode })
  }

  /** The model of a mode from now on; null: that of its harness. */
  async setModel(model: ModelRef | null, { mode }: { readonly mode?: keyof M & string } = {}): Promise<void> {
    const chosen = mode ?? this.#talk.state.mode
    checkMode(this.#setup.modes, chosen)
    await this.#change({ kind: 'setting_changed', model: { mode: chosen, model } })
  }

  /** Changes settings; the whole must fit the schema of the sessions. */
  async set(settings: object): Promise<void> {
    const changes = jsonOf(settings)
    await this.#setup.checkSettings({ ...this.#talk.state.settings, ...changes })
    await this.#change({ kind: 'setting_changed', settings: changes })
  }

  /** Permissions that people gave by answers with `remember`. */
  get grants(): readonly Grant[] {
    return this.#talk.state.grants
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
    const kept = this.#talk.state.tags.filter((tag) => !remove.includes(tag))
    await this.#change({ kind: 'tags_changed', tags: [...new Set([...kept, ...add])] })
  }

  /** Resolves when no run is in progress and the queue is empty, held, or waits for people. */
  whenIdle(): Promise<void> {
    return this.#talk.whenIdle()
  }

  /** For `sessions.delete`. False if a run is in progress, or another process has the thread. */
  remove(): Promise<boolean> {
    return this.#talk.exclusive(async () => (await this.#talk.own()) && this.#actions.deleteThread())
  }

  async close(): Promise<void> {
    this.#follower.stop()
    this.#posts.stop()
    await this.#talk.close()
  }

  async #send<Output>(
    item: SentItem,
    {
      signal,
      work,
      action,
      stops = false,
    }: {
      readonly signal: AbortSignal | undefined
      /** The run in progress is cancelled first. */
      readonly stops?: boolean
      readonly work: () => Promise<SentStatus>
      readonly action: PostedAction
    },
  ): Promise<Sent<Output>> {
    const { messageId } = item
    signal?.throwIfAborted()
    const done = this.#talk.ends.of(messageId) as Promise<MessageEnd<Output>>
    const runId = this.#talk.lastRun?.runId ?? null
    const isKnown = this.#talk.isKnown(messageId)
    const sending = this.#owned(
      async () => ({ status: await work() }),
      () => ({ ...action, item: jsonOf(item), runId }),
      stops,
    )
    const outcome = await sending.catch((error: unknown) => {
      if (!isKnown) this.#talk.ends.forget(messageId)
      throw error
    })
    if (isKnown) this.#talk.settleStored()
    signal?.addEventListener('abort', () => void this.#withdraw(messageId).catch(() => undefined), { once: true })
    return { messageId, status: (outcome?.status as SentStatus | undefined) ?? 'posted', done }
  }

  /** The sender's signal: removes a message that waits, cancels the run that reads it. */
  async #withdraw(messageId: string): Promise<void> {
    const removed = await this.#remove([messageId])
    if (removed.length === 0 && this.#talk.state.run?.messageIds.includes(messageId) === true) await this.cancel()
  }

  async #cancel(queue: CancelQueue): Promise<readonly QueueItem[]> {
    const talk = this.#talk
    if (!talk.isOwner) await this.attach()
    if (talk.phase === 'idle' && queue === 'hold') return []
    const inProgress = talk.openRun !== null
    if (inProgress) await talk.cancelOpen(queue === 'continue')
    const runId = talk.lastRun?.runId ?? null
    const outcome = await this.#owned(
      async () => {
        if (!inProgress) await talk.cancelStored()
        const all = queue === 'drop' ? talk.state.queue.map(({ messageId }) => messageId) : []
        const dropped = await this.#actions.remove(all)
        if (queue === 'continue') await this.#actions.release()
        return { dropped }
      },
      () => ({ action: 'cancel', queue, runId }),
    )
    return (outcome?.dropped as readonly QueueItem[] | undefined) ?? []
  }

  async #remove(messageIds: readonly string[]): Promise<readonly QueueItem[]> {
    const work = async (): Promise<{ removed: readonly QueueItem[] }> => ({
      removed: await this.#actions.remove(messageIds),
    })
    const outcome = await this.#owned(work, () => ({ action: 'remove', messageIds: [...messageIds] }))
    return (outcome?.removed as readonly QueueItem[] | undefined) ?? []
  }

  #change(event: ThreadChange): Promise<unknown> {
    return this.#owned(
      () => this.#actions.change(event),
      () => ({ action: 'change', event: jsonOf(event) }),
    )
  }

  /** Does `work` as the owner of the thread; posts `action` if another process is. Null if that has not taken it in time. */
  async #owned<T>(work: () => Promise<T>, action: () => PostedAction, stops = false): Promise<T | JsonObject | null> {
    const owned = async (): Promise<{ readonly value: T } | null> =>
      (await this.#talk.own()) ? { value: await work() } : null
    const done = await (stops ? this.#talk.withoutRun(owned) : this.#talk.exclusive(owned))
    if (done !== null) return done.value
    return this.#posts.post(action(), () => this.attach())
  }

  /** Posts of this process may wait for an owner. */
  async #onCheck(isOrphaned: boolean): Promise<void> {
    if (this.#talk.posted.size > 0 && isOrphaned) await this.#talk.exclusive(() => this.#talk.own())
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

  /** An action that another process posted. One that names an earlier run is stale. */
  async #doPosted(posted: PostedAction): Promise<JsonObject> {
    const { action, item, whenBusy, answers, queue, messageIds, event, runId, id } = posted as unknown as PostedFields
    const isCurrent = runId === undefined || runId === (this.#talk.lastRun?.runId ?? null)
    switch (action) {
      case 'send':
        return this.#ownOutcome(async () => ({ status: await this.#actions.send(item, whenBusy) }))
      case 'steer':
        return this.#ownOutcome(async () => ({ status: await this.#actions.steer(item) }))
      case 'interrupt':
        if (!isCurrent) return this.#ownOutcome(async () => ({ status: await this.#actions.send(item, 'queue') }))
        return this.#ownOutcome(async () => ({ status: await this.#actions.interruptWith(item) }), true)
      case 'regenerate':
        if (!isCurrent) throw new SessionError('message_not_found', 'The conversation has continued.')
        return this.#ownOutcome(async () => ({ ...(await this.#actions.regenerate(id)) }))
      case 'answer':
        return { statuses: (await this.answer(answers)).map(jsonOf) }
      case 'cancel':
        return { dropped: isCurrent ? (await this.cancel({ queue })).map(jsonOf) : [] }
      case 'remove':
        return { removed: (await this.#remove(messageIds)).map(jsonOf) }
      case 'release':
        await this.queue.release()
        return {}
      case 'change':
        await this.#change(event)
        return {}
      default:
        throw new SessionError('invalid_options', `Unknown action \`${action}\`.`)
    }
  }

  #ownOutcome(work: () => Promise<JsonObject>, stops = false): Promise<JsonObject> {
    const owned = async (): Promise<JsonObject> => {
      if (!(await this.#talk.own())) throw new HarnessError('run_owned', 'The thread has another owner.')
      return work()
    }
    return stops ? this.#talk.withoutRun(owned) : this.#talk.exclusive(owned)
  }
}
