import { codedError, SessionError, tellProcess } from '../errors.js'
import type { Settings } from './settings.js'
import { BEGINNING, notACursor, parseCursor } from '../thread/chat-cursor.js'
import type { ChatEvent, ChatPlace } from '../thread/chat-cursor.js'
import type { ChatAnswer } from '../thread/grants.js'
import type { ChatSnapshot } from '../thread/reduce-chat.js'
import { isHeld } from '../thread/queue.js'
import type { Grant, ThreadMessage, QueueItem } from '../thread/thread-events.js'
import { checkKinds, checkModel, performAction } from './actions.js'
import type { ActionOutcome, AnswerStatus, CancelQueue, ChatAction, ChatChange } from './actions.js'
import type { ChatPhase, ThreadConversation } from './conversation.js'
import type { EventsOptions } from './feed.js'
import { Follower } from './follower.js'
import { toJson, threadMessage } from './message.js'
import type { MessageEnd, SendOptions, Sent } from './message.js'
import { ForwardedActions } from './forwarded-actions.js'
import { checkMode } from './modes.js'
import type { Modes, OutputOf } from './modes.js'
import type { ActiveRun, ChatResources } from './run-starter.js'
import { contentOf } from '#contracts/entry.js'
import { HarnessError } from '#contracts/errors.js'
import { admittedAnswer } from '#contracts/input.js'
import type { InputAbout } from '#contracts/input.js'
import type { InputMessage } from '#core/stream/input.js'
import type { ModelRef } from '#contracts/model-reference.js'
import type { grant } from '#extensions/policy/rule.js'
import type { PendingItem } from '#contracts/result.js'
import type { Prompt } from '#harness/options.js'
import { onAbort } from '#util/abort.js'
import { deepFreeze, frozenCopy } from '#util/json.js'
import type { ContentLimits } from './attachments.js'

export interface ChatDeps {
  readonly conversation: ThreadConversation
  readonly modes: Modes
  readonly limits: ContentLimits
  /** Null: any JSON object. */
  readonly settings: Settings | null
}

/** What an action needs that is not part of it. */
interface ActionMeans {
  /** May throw before the action is performed or posted. */
  readonly check?: () => void
  /** Of the post that brought it. */
  readonly postId?: string
  /** The run that was cancelled for it. */
  readonly cancelled?: string | null
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
  readonly #posts: ForwardedActions
  /** Messages of this process on their way to the thread: whoever cancels comes after them. */
  readonly #coming = new Set<Promise<unknown>>()
  /** Extensions are asked about the latest message. */
  #admission: Promise<unknown> = Promise.resolve()

  constructor(deps: ChatDeps) {
    const { conversation } = deps
    this.#deps = deps
    this.#conversation = conversation
    this.#follower = new Follower(conversation.log, conversation, (isOrphaned) => this.#onCheck(isOrphaned))
    this.#posts = new ForwardedActions({
      conversation,
      attach: () => this.attach(),
      performPosted: (action, postId) => this.#performPosted(action, postId),
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

  /** The conversation as pages show it: the fold of its events. Frozen, as is everything else that a conversation gives out. */
  get snapshot(): ChatSnapshot {
    return deepFreeze(this.#conversation.snapshot)
  }

  /** Items that people have to answer. */
  get pending(): readonly PendingItem[] {
    return deepFreeze(this.#conversation.pending)
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

  /** Gives them dependencies, in place of earlier ones and of those of the harness; other resources stay. */
  provideDeps(deps: unknown): void {
    this.#conversation.starter.provideDeps(deps)
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
    if (messageId === undefined || status === undefined) throw ownerSilent(this.threadId)
    const done = this.#conversation.ends.of(messageId) as Promise<MessageEnd<OutputOf<M[keyof M]>>>
    this.#conversation.settleStored()
    return { messageId, status, done }
  }

  /**
   * Cancels the run in progress, or ends one that waits or was interrupted; no tool runs. So it stops messages that are being sent. Gives
   * the dropped messages: they stay in the queue, held, if the thread's owner, another process, does not give them in time.
   */
  async cancel({ queue = 'hold' }: { readonly queue?: CancelQueue } = {}): Promise<readonly QueueItem[]> {
    const talk = this.#conversation
    const coming = [...this.#coming]
    const cancelled = await talk.cancelOpen(queue === 'continue')
    await Promise.allSettled(coming)
    if (!talk.isOwner) await this.attach()
    if (queue === 'hold' && (await isAtRest(talk))) return []
    const action = { kind: 'cancel', queue, runId: this.#latestRunId, messageIds: talk.ends.awaited } as const
    const { outcome } = await this.#begin(action, { cancelled })
    return (await outcome)?.removed ?? []
  }

  /**
   * Continues an interrupted run; so does a message. Also true for a queue that its process has left: it is held. False if there is
   * neither, or another process owns the thread. Rejects if the run cannot continue: it stays interrupted, until it can or is cancelled.
   */
  async recover(): Promise<boolean> {
    const talk = this.#conversation
    if (!talk.isOwner) await this.attach()
    const isLeft = isStranded(talk)
    const recovered = await talk.exclusive(async (owner) => {
      if (isLeft) await owner.holdQueue()
      const run = this.phase === 'interrupted' ? owner.recover() : null
      if (run !== null) run.isAwaited = true
      return { run }
    })
    if (recovered === null) return false
    const { run } = recovered
    if (run === null) return isLeft
    if (!(await hasContinued(talk, run))) talk.refusals.check()
    return true
  }

  /** Gives the claim of an idle thread back now, not after some seconds. */
  release(): Promise<void> {
    return this.#conversation.rest()
  }

  /**
   * Answers pending items. Resolves when the answers are stored, or posted to an owner that does not take them in time; rejects, and
   * changes nothing, if one is invalid.
   */
  async answer(
    answers: readonly ChatAnswer[],
    { by }: { readonly by?: string | undefined } = {},
  ): Promise<readonly AnswerStatus[]> {
    const admit = (text: string): Promise<InputMessage> => this.#admit(text, 'answer', null)
    const admitted = await Promise.all(answers.map((answer) => admittedAnswer(answer, admit)))
    const signed = frozenCopy(admitted.map((answer) => (by === undefined ? answer : { by, ...answer })))
    const outcome = await this.#act({ kind: 'answer', answers: signed })
    return outcome?.answers ?? signed.map(({ callId }) => ({ callId, status: 'posted' }))
  }

  /**
   * The events of the thread and of its runs, in one order: stored ones, then live ones with deltas, until the signal; with
   * `live: false` the stored ones alone. Throws a `SessionError` for a cursor that is not of this conversation.
   */
  events(options: EventsOptions = {}): AsyncIterable<ChatEvent> {
    if (options.after !== undefined && options.after !== END) parseCursor(options.after)
    void this.#follower.attach(true).catch(() => undefined)
    return eventsAfter(this.#conversation, options)
  }

  /** Rejects with a `SessionError` for a cursor that is not of this conversation. */
  async checkCursor(cursor: string): Promise<void> {
    await placeOf(this.#conversation, cursor)
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
    await this.#conversation.starter.checkModel(model, chosen)
    await this.#change({ kind: 'setting_changed', model: { mode: chosen, model } })
  }

  /** Changes settings; the whole must fit the schema of the sessions. */
  async set(settings: object): Promise<void> {
    const changes = toJson(settings)
    const { state } = this.#conversation
    const changed = (await this.#deps.settings?.change(state.settings, changes)) ?? changes
    await this.#change({ kind: 'setting_changed', settings: changed })
  }

  /** For `sessions.open`: gives settings that no longer fit their schema their defaults, unless another process has the thread. */
  async repairSettings(): Promise<void> {
    const { state, threadId } = this.#conversation
    const repair = (await this.#deps.settings?.repair(state.settings)) ?? null
    if (repair === null || this.#conversation.followsOwner) return
    const { settings, misfits } = repair
    const event = { kind: 'setting_changed', settings, replaces: true } as const
    const isRepaired = await this.#conversation.exclusive((owner) => owner.append(event).then(() => true))
    if (isRepaired === null) return
    await this.#conversation.rest()
    const names = misfits.map((name) => `\`${name}\``).join(', ')
    if (names !== '')
      tellProcess(threadId, `the settings ${names} do not fit their schema any more: they have their defaults.`)
  }

  /** Permissions that people gave by answers with `remember`. */
  get grants(): readonly Grant[] {
    return deepFreeze(this.#conversation.state.grants)
  }

  /**
   * Allows what a rule allows, from the next call on, as an answer with `remember` does: `chat.grant({ tool: 'search' })`. Items that
   * wait are not answered. Resolves with the grant; its `id` is for `revoke`. Rejects with `invalid_options` for a rule without
   * conditions.
   */
  async grant(rule: Parameters<typeof grant>[0], { by }: { readonly by?: string } = {}): Promise<Grant> {
    const { grant: made } = await import('#extensions/policy/index.js')
    const given = { ...made(rule), id: rule.id ?? `grant_${globalThis.crypto.randomUUID()}` }
    await this.#change({ kind: 'grant_added', grant: given, by: by ?? null })
    return given
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
    const isKnown = talk.seen.hasMessage(messageId)
    let stopListening = (): void => undefined
    try {
      const { outcome } = await this.#handOver(action, signal)
      stopListening = onAbort(signal, () => void this.#act({ kind: 'withdraw', messageId }).catch(() => undefined))
      const sent = (await outcome)?.status ?? 'posted'
      // A run that could not continue for the message has not got it.
      const { openRun } = talk
      const isLate = openRun?.continuedFor === messageId && !(await hasContinued(talk, openRun))
      const status = isLate ? 'queued' : sent
      if (isKnown) talk.settleStored()
      void done.then(stopListening)
      return { messageId, status, done }
    } catch (error) {
      stopListening()
      if (!isKnown) talk.ends.forget(messageId)
      throw error
    }
  }

  /** Resolves when the message is stored, or posted to the thread's owner. A signal before that rejects it. */
  #handOver(action: ChatAction & { item: ThreadMessage }, signal?: AbortSignal): ReturnType<ForwardedActions['post']> {
    const handOver = async (): ReturnType<ForwardedActions['post']> => {
      const isKnown = this.#conversation.seen.hasMessage(action.item.messageId)
      const item = isKnown ? action.item : await this.#admitted(action)
      await checkModel(this.#conversation, item)
      if (action.kind === 'interrupt') await checkKinds(this.#conversation, item)
      return this.#begin({ ...action, item } as ChatAction, { check: () => signal?.throwIfAborted() })
    }
    const coming = handOver()
    this.#coming.add(coming)
    const forget = (): void => void this.#coming.delete(coming)
    coming.then(forget, forget)
    return coming
  }

  /** A message as the extensions let it pass. One that they refuse is not stored: the thread knows that, and its sender the reason. */
  async #admitted({ kind, item }: ChatAction & { item: ThreadMessage }): Promise<ThreadMessage> {
    const { messageId, content, mode, by } = item
    const before = this.#admission
    const admitting = before.then(() => this.#admit(content, kind === 'steer' ? 'steering' : 'prompt', mode))
    // They keep their order.
    this.#admission = admitting.catch(() => undefined)
    try {
      const admitted = await admitting
      return admitted === content ? item : { ...item, content: frozenCopy(contentOf(admitted)) }
    } catch (error) {
      const { code, message: reason } = codedError(error)
      if (code === 'guard_blocked') await this.#change({ kind: 'message_refused', messageId, reason, by })
      throw error
    }
  }

  /** Asked here, wherever the owner of the thread is: what is posted is stored too. `mode`: that of the message; null: the thread's. */
  #admit(content: InputMessage, kind: InputAbout['kind'], mode: string | null): Promise<InputMessage> {
    const { starter, state } = this.#conversation
    const chosen = kind === 'answer' ? (state.run?.mode ?? state.mode) : starter.modeOf({ mode }, state)
    return starter.admit(content, { kind }, chosen)
  }

  async #change(event: ChatChange): Promise<void> {
    await this.#act({ kind: 'change', event })
  }

  /** Performs an action as the owner of the thread; posts it if another process is. Null if that has not taken it in time. */
  async #act(action: ChatAction): Promise<ActionOutcome | null> {
    return (await this.#begin(action)).outcome
  }

  /** Resolves when the action has been performed, or posted to the thread's owner. */
  async #begin(action: ChatAction, means: ActionMeans = {}): ReturnType<ForwardedActions['post']> {
    const outcome = await this.#perform(action, means)
    return outcome === null ? this.#posts.post(action, means.check) : { outcome: Promise.resolve(outcome) }
  }

  /** Performs an action as the owner of the thread; null if another process is. */
  async #perform(action: ChatAction, means: ActionMeans): Promise<ActionOutcome | null> {
    const talk = this.#conversation
    const { check, postId, cancelled } = means
    // Answers that come while the others are dealt with are for the next pause.
    if (action.kind === 'answer' && talk.phase === 'running') await talk.openRun?.over
    const justCancelled = action.kind === 'cancel' ? await talk.cancelOpen(action.queue === 'continue') : null
    const cancels = action.kind === 'interrupt' || (action.kind === 'cancel' && action.queue !== 'continue')
    const outcome = await talk.exclusive(async (owner) => {
      check?.()
      // Other answers were refused, and that has not been dealt with: the items wait still, unless they are being cancelled.
      if (action.kind === 'answer' && talk.phase === 'running' && talk.latest.phase === 'waiting') return 'later'
      if (action.kind !== 'cancel') return performAction(owner, action, postId)
      const runId = this.#latestRunId
      // One that was cancelled ends itself, unless it has paused first.
      const hasEnded = (runId === cancelled || runId === justCancelled) && talk.phase !== 'waiting'
      return performAction(owner, { ...action, runId: hasEnded ? null : runId }, postId)
    }, cancels)
    return outcome === 'later' ? this.#perform(action, means) : outcome
  }

  /** An action that another process posted. One that names an earlier run is stale. */
  async #performPosted(action: ChatAction, postId: string): Promise<ActionOutcome> {
    const isStale = 'runId' in action && action.runId !== this.#latestRunId
    if (isStale && action.kind === 'cancel' && !this.#hasBegunWith(action.messageIds ?? [])) return { removed: [] }
    if (isStale && action.kind === 'regenerate')
      throw new SessionError('message_not_found', 'The conversation has continued.')
    const isLate = isStale && action.kind === 'interrupt'
    const performed = isLate ? ({ kind: 'send', item: action.item, whenBusy: 'queue' } as const) : action
    const outcome = await this.#perform(performed, { postId })
    if (outcome === null) throw new HarnessError('run_owned', 'The thread has another owner.')
    return outcome
  }

  /** The latest run has begun with one of these messages. */
  #hasBegunWith(messageIds: readonly string[]): boolean {
    return this.#conversation.lastRun?.messageIds.some((messageId) => messageIds.includes(messageId)) === true
  }

  /** Posts of this process may wait for an owner. */
  async #onCheck(isOrphaned: boolean): Promise<void> {
    if (this.#conversation.seen.posted.size > 0 && isOrphaned)
      await this.#conversation.exclusive(() => Promise.resolve())
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

  /**
   * True if no message of the queue begins a run until one is sent, or the queue is released; also if nobody works on it any more, because
   * its process has ended.
   */
  get held(): boolean {
    return isHeld(this.#conversation.state) || isStranded(this.#conversation)
  }

  list(): readonly QueueItem[] {
    return deepFreeze(this.#conversation.latest.queue)
  }

  /**
   * Removes a message; gives it, or undefined if it is not in the queue. Rejects with `thread_owned`, and removes nothing, if the thread's
   * owner, another process, does not answer in time; so does `clear`.
   */
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
    if (outcome === null) throw ownerSilent(this.#conversation.threadId)
    return outcome.removed ?? []
  }
}

function ownerSilent(threadId: string): SessionError {
  return new SessionError('thread_owned', `The owner of thread \`${threadId}\`, another process, does not answer.`)
}

/** False if the run could not continue; then that has been dealt with. */
async function hasContinued({ refusals }: ThreadConversation, run: ActiveRun): Promise<boolean> {
  if ((await run.started) === undefined) return true
  await run.over
  return refusals.last === null
}

/** A queue that is not held by an event, and that nobody works on: its owner has ended, or could not store what was to come. */
function isStranded({ state, isOwner, followsOwner, openRun, phase, turns }: ThreadConversation): boolean {
  if (isHeld(state) || state.queue.length === 0) return false
  return isOwner ? openRun === null && phase !== 'waiting' && !turns.areTaken : !followsOwner
}

/** Nothing is in progress, and no message would begin a run, once everything so far is done. */
async function isAtRest(conversation: ThreadConversation): Promise<boolean> {
  await conversation.turns.over
  const { phase, state, ends } = conversation
  if (phase !== 'idle' || (state.queue.length > 0 && !isHeld(state))) return false
  return ends.awaited.every((messageId) => conversation.seen.hasMessage(messageId))
}

/** The place of a cursor. Rejects with a `SessionError` for one in a run that the thread has not begun: it may be anybody's. */
/** In place of a cursor: the last event so far. */
const END = 'end'

async function placeOf(conversation: ThreadConversation, cursor: string | undefined): Promise<ChatPlace> {
  if (cursor === undefined) return BEGINNING
  const place = parseCursor(cursor)
  const { runId } = place
  if (runId === null || conversation.seen.runIds.has(runId)) return place
  // Another process may have begun it.
  await conversation.load()
  if (!conversation.seen.runIds.has(runId)) throw notACursor(cursor)
  return place
}

/** The events after a cursor. */
function eventsAfter(
  conversation: ThreadConversation,
  { after, ...options }: EventsOptions,
): AsyncGenerator<ChatEvent, void, undefined> {
  const end = conversation.feed.place
  return conversation.feed.read({
    ...options,
    from: () => (after === END ? Promise.resolve(end) : placeOf(conversation, after)),
    stored: (place) =>
      conversation.starter.redaction.stored(conversation.log, { threadId: conversation.threadId, from: place }),
    shown: (event) => conversation.starter.redaction.thread(event),
  })
}
