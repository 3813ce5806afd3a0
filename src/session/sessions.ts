import type { RunEvent } from '#core/state/events.js'
import type { HarnessDescription } from '#harness/launch/describe.js'
import type { JsonObject } from '#util/json.js'
import type { LogStore } from '#core/log/log.js'
import type { LogSummaries } from '#core/log/run-summary.js'
import type { ModelCapabilities } from '#core/model-session.js'
import type { ModelRef } from '#contracts/model-reference.js'
import type { TranscriptEntry } from '#contracts/entry.js'
import { deepFreeze, frozenCopy, isObject } from '#util/json.js'
import { Chat } from './conversation/chat.js'
import { ThreadConversation } from './conversation/conversation.js'
import { codedError, isDamage, SessionError, sessionsClosed, storedError, threadNotFound } from './errors.js'
import type { StoredError } from './errors.js'
import { toJson, newId } from './conversation/message.js'
import { inboxItems } from './people/inbox.js'
import { expireItems } from './people/expire-items.js'
import type { InboxItem, InboxOptions } from './people/inbox.js'
import type { ExpiredItem, ExpireOptions } from './people/expire-items.js'
import { Responding } from './people/responder.js'
import { giveTitle } from './people/titles.js'
import { resolveOptions } from './options.js'
import type { SessionsConfig, SessionsOptions } from './options.js'
import { Redaction } from './conversation/redaction.js'
import { resolvedModel } from './conversation/modes.js'
import type { ModeHarness, Modes } from './conversation/modes.js'
import { ThreadWriter } from './thread/thread-writer.js'
import { forkPoint, threadTranscript } from './thread/transcript.js'
import type { ThreadEvent, ThreadPayloads } from './thread/thread-events.js'

/** Thread logs of this library that are no conversations: their ids begin so. */
const OF_FEATURES = /^(?:memory|prompts|keys|spending|feedback):/

/** How long `open` waits for a thread that another process is creating, and how often it looks, in ms. */
const PATIENCE_MS = 10_000
const LOOK_MS = 20
/** How often `delete` tries to have the thread; each attempt reads the list of runs. */
const DELETE_MS = 100

export interface CreateOptions {
  /** Default: none. */
  readonly title?: string | undefined
  readonly tags?: readonly string[] | undefined
  readonly metadata?: object | undefined
  /** Default: `thread_` and 32 hex digits. */
  readonly threadId?: string | undefined
}

export interface ListThreadsOptions {
  /** Only threads with this tag. */
  readonly tag?: string | undefined
  /** Only threads in this phase. */
  readonly phase?: ThreadItem['phase'] | undefined
  /** At most so many. Default: all. */
  readonly limit?: number | undefined
  /** Only threads that come after this item of the list. */
  readonly before?: ThreadItem | string | undefined
}

/** A thread in a list. */
export interface ThreadItem {
  readonly threadId: string
  readonly title: string
  /** The start of the first message; empty before it. */
  readonly firstMessage: string
  readonly tags: readonly string[]
  readonly resourceId: string | null
  /** As given to `create`. */
  readonly metadata: JsonObject
  /** ISO 8601 in UTC. */
  readonly createdAt: string
  readonly updatedAt: string
  /** Of its latest run, as the log shows it. `interrupted` also for a queue whose process has ended before it began the next message. */
  readonly phase: 'idle' | 'running' | 'waiting' | 'interrupted'
  /** Why the latest run could not continue, when it was last tried; absent: it was not, or has gone on. */
  readonly error?: StoredError | undefined
  /** Its place in the list. */
  readonly cursor: string
}

/**
 * The conversations that are open in this process, each one object for everyone who opens it. One that nobody uses leaves the
 * memory: what runs, waits for an end, or is read is held by its timers.
 */
class OpenChats<M extends Modes> {
  readonly #chats = new Map<string, Promise<Chat<M> | null> | WeakRef<Chat<M>>>()
  #isClosed = false
  /** Those with something that is not stored. */
  readonly #kept = new Map<string, Chat<M>>()
  readonly #unused = new FinalizationRegistry<string>((threadId) => {
    // It may have been opened again.
    if (this.get(threadId) === undefined) this.#chats.delete(threadId)
  })

  get isClosed(): boolean {
    return this.#isClosed
  }

  get(threadId: string): Promise<Chat<M> | null> | Chat<M> | undefined {
    const known = this.#chats.get(threadId)
    if (!(known instanceof WeakRef)) return known
    const chat = known.deref()
    return chat?.isClosed === false ? chat : undefined
  }

  /** Notes one that is being opened; `opening` gives null if there is no such thread. */
  add(threadId: string, opening: Promise<Chat<M> | null>): Promise<Chat<M> | null> {
    this.#chats.set(threadId, opening)
    void settledOpening(opening).then((chat) => {
      if (this.#chats.get(threadId) !== opening) return
      if (!chat) return this.#delete(threadId)
      this.#chats.set(threadId, new WeakRef(chat))
      this.#unused.register(chat, threadId)
    })
    return opening
  }

  /** One that has something which is not stored stays. */
  keep(threadId: string, chat: Chat<M>): void {
    this.#kept.set(threadId, chat)
  }

  /** Closes one that is open, and forgets it. */
  async drop(threadId: string): Promise<void> {
    const chat = await settledOpening(this.get(threadId))
    await chat?.close()
    if (chat) this.forget(threadId, chat)
  }

  /** Forgets one that was closed, unless the thread has been opened again. */
  forget(threadId: string, chat: Chat<M>): void {
    const known = this.#chats.get(threadId)
    if (known instanceof WeakRef && known.deref() === chat) this.#delete(threadId)
  }

  #delete(threadId: string): void {
    this.#chats.delete(threadId)
    this.#kept.delete(threadId)
  }

  /** Closes all, and forgets them. */
  async close(): Promise<void> {
    this.#isClosed = true
    const all = [...this.#chats.keys()].map((threadId) => this.get(threadId))
    this.#chats.clear()
    this.#kept.clear()
    await Promise.all(all.map(async (each) => (await settledOpening(each))?.close()))
  }
}

/** Null for one that could not be opened. */
async function settledOpening<Each>(
  opening: Promise<Each | null> | Each | undefined,
): Promise<Each | null | undefined> {
  try {
    return await opening
  } catch {
    return null
  }
}

/** The threads of one owner, or of all. Every id is checked against the owner. */
export class Threads<M extends Modes = Modes> {
  readonly #config: SessionsConfig<M>
  readonly #chats: OpenChats<M>
  readonly #resourceId: string | null

  constructor(config: SessionsConfig<M>, chats: OpenChats<M>, resourceId: string | null) {
    this.#config = config
    this.#chats = chats
    this.#resourceId = resourceId
  }

  /** Opens a thread, which is created if there is none; without an id, a new one. Claims nothing. */
  async open(threadId?: string): Promise<Chat<M>> {
    if (threadId === undefined) return this.create()
    for (let waitedMs = 0; ; waitedMs += LOOK_MS) {
      const chat = await this.#load(threadId)
      if (chat !== null) return this.#checked(chat)
      try {
        return await this.create({ threadId })
      } catch (error) {
        // Somebody else is creating it.
        const isTaken = error instanceof SessionError && error.code === 'thread_exists'
        if (!isTaken || waitedMs >= PATIENCE_MS) throw error
        await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
      }
    }
  }

  async create({ title = '', tags = [], metadata = {}, threadId = newId('thread') }: CreateOptions = {}): Promise<
    Chat<M>
  > {
    const { defaultMode: mode } = this.#config
    return this.#begin(threadId, { resourceId: this.#resourceId, title, tags, metadata: toJson(metadata), mode })
  }

  /** The thread that was written last; null if there is none. */
  async latest(): Promise<Chat<M> | null> {
    for await (const { threadId } of this.list({ limit: 1 })) return this.open(threadId)
    return null
  }

  /** The threads, most recently written first. */
  async *list({ tag, phase, limit = Infinity, before }: ListThreadsOptions = {}): AsyncGenerator<
    ThreadItem,
    void,
    undefined
  > {
    let left = limit
    if (left <= 0) return
    const { store: log } = this.#config
    const place = before === undefined ? undefined : listingPlace(before)
    const resourceId = this.#resourceId ?? undefined
    for await (const summary of log.list({ kind: 'thread', resourceId, before: place })) {
      if (isOfFeature(summary.threadId) || summary.digest?.['mode'] === undefined) continue
      const item = await this.#itemOf(summary)
      if (tag !== undefined && !item.tags.includes(tag)) continue
      if (phase !== undefined && item.phase !== phase) continue
      yield item
      left -= 1
      if (left === 0) return
    }
  }

  /** The transcript of a thread, tool results and what a fork continues included; `last`: only so many of its entries. */
  async messages(
    threadId: string,
    { last = Infinity }: { readonly last?: number } = {},
  ): Promise<readonly TranscriptEntry[]> {
    const chat = await this.#existing(threadId)
    const entries = await threadTranscript(this.#config.store, chat.snapshot)
    return deepFreeze(last === Infinity ? entries : entries.slice(Math.max(0, entries.length - last)))
  }

  /** A new thread that begins with the conversation of another, up to the end of the step of the entry `after`. */
  async fork(
    threadId: string,
    { after, ...options }: CreateOptions & { readonly after?: string } = {},
  ): Promise<Chat<M>> {
    const source = await this.#existing(threadId)
    const { thread, runs } = source.snapshot
    const history = runs.length === 0 && after === undefined ? thread.history : forkPoint(runs, after)
    if (history === undefined)
      throw new SessionError('message_not_found', `Thread \`${threadId}\` has no entry \`${after}\`.`)
    return this.#begin(options.threadId ?? newId('thread'), {
      resourceId: thread.resourceId,
      title: options.title ?? thread.title,
      tags: options.tags ?? thread.tags,
      metadata: options.metadata === undefined ? thread.metadata : toJson(options.metadata),
      mode: thread.mode,
      fork: { threadId, history },
    })
  }

  /**
   * Deletes a thread and its runs, except those that other threads continue. A run in progress is cancelled, also in another process.
   * A run whose log cannot be read is deleted like any other. Rejects with `thread_owned`, and deletes nothing, if the thread's owner does
   * not give it up within 10 s; with `invalid_log` if the log of the thread itself cannot be read.
   */
  async delete(threadId: string): Promise<void> {
    try {
      const chat = await this.#existing(threadId)
      const removeNow = async (): Promise<boolean> => {
        await chat.cancel({ queue: 'drop' })
        return chat.remove()
      }
      await untilRemoved(threadId, removeNow)
      await chat.close()
      this.#chats.forget(threadId, chat)
    } catch (thrown) {
      if (!isDamage(thrown)) throw thrown
      await this.#deleteUnread(threadId)
    }
  }

  /** Deletes a thread with a run that cannot be read: the log of the thread names its runs. Rejects with `invalid_log` if that is damaged. */
  async #deleteUnread(threadId: string): Promise<void> {
    await this.#chats.drop(threadId)
    const { store } = this.#config
    const runIds: string[] = []
    for await (const event of store.read<ThreadEvent>({ kind: 'thread', id: threadId })) {
      const isOther =
        event.kind === 'thread_opened' && this.#resourceId !== null && event.resourceId !== this.#resourceId
      if (isOther) throw threadNotFound(threadId)
      if (event.kind === 'run_begun') runIds.push(event.runId)
    }
    const writer = new ThreadWriter(store, threadId)
    const removeNow = async (): Promise<boolean> => (await writer.claim()) && (await writer.remove(runIds))
    await untilRemoved(threadId, removeNow).finally(() => writer.release())
  }

  /** Everything that waits for people, across all threads; with `answered`, what they answered. Claims nothing. */
  inbox(options?: InboxOptions): AsyncGenerator<InboxItem, void, undefined> {
    return inboxItems(this.#config.store, this.#resourceId, options)
  }

  /**
   * Answers the items that have waited for too long, with `by: 'expiry'`; for a timer of the host. Resolves when the answers are
   * stored; the runs then continue. Claims only threads in which it answers.
   */
  expire(options: ExpireOptions): Promise<readonly ExpiredItem[]> {
    return expireItems(this.inbox(), options, (threadId) => this.#existing(threadId))
  }

  async #begin(
    threadId: string,
    opened: Omit<ThreadPayloads['thread_opened'], 'version' | 'settings'>,
  ): Promise<Chat<M>> {
    this.#checkOpen()
    if (isOfFeature(threadId))
      throw new SessionError('invalid_options', `Expected a thread id that does not begin as \`${threadId}\` does.`)
    const { store: log } = this.#config
    const { first = {} } = this.#config.settings ?? {}
    const settings = Object.keys(first).length === 0 ? {} : { settings: first }
    const given = frozenCopy({ ...opened, ...settings })
    const writer = new ThreadWriter(log, threadId)
    const threadExists = (): SessionError =>
      new SessionError('thread_exists', `There is a thread \`${threadId}\` already.`)
    if (!(await writer.claim())) throw threadExists()
    try {
      if ((await log.inspect({ kind: 'thread', id: threadId })) !== null) throw threadExists()
      await writer.append(undefined, [{ kind: 'thread_opened', version: 1, ...given }], null)
    } finally {
      await writer.release()
    }
    return this.open(threadId)
  }

  #checkOpen(): void {
    if (this.#chats.isClosed) throw sessionsClosed()
  }

  /** The conversation of this process; null if the thread does not exist. */
  async #load(threadId: string): Promise<Chat<M> | null> {
    this.#checkOpen()
    if (isOfFeature(threadId)) return null
    const known = this.#chats.get(threadId)
    if (known === undefined) return this.#chats.add(threadId, this.#open(threadId))
    const chat = await known
    await chat?.attach()
    if (chat?.isClosed !== true) return chat
    // Another process has deleted it.
    this.#chats.forget(threadId, chat)
    return this.#load(threadId)
  }

  async #open(threadId: string): Promise<Chat<M> | null> {
    const { modes, content, settings, responder, title } = this.#config
    const onProvided = (): void => this.#chats.keep(threadId, chat)
    const conversation = new ThreadConversation({ ...this.#config, threadId, onProvided })
    if (!(await conversation.load())) return null
    const chat = new Chat<M>({ conversation, modes, limits: content, settings })
    const responding = responder === null ? null : new Responding(responder, chat)
    conversation.onStop = ({ status }) => {
      if (title !== null) void giveTitle(chat, title)
      return status === 'paused' ? (responding?.respond() ?? null) : null
    }
    await chat.attach()
    await chat.repairSettings()
    return chat
  }

  async #existing(threadId: string): Promise<Chat<M>> {
    const chat = await this.#load(threadId)
    if (chat === null) throw threadNotFound(threadId)
    return this.#checked(chat)
  }

  /** A thread of another owner is like one that does not exist. */
  #checked(chat: Chat<M>): Chat<M> {
    if (this.#resourceId !== null && chat.snapshot.thread.resourceId !== this.#resourceId)
      throw threadNotFound(chat.threadId)
    return chat
  }

  async #itemOf({ threadId, createdAt, updatedAt, owner, digest }: LogSummaries['thread']): Promise<ThreadItem> {
    const { title, firstMessage, tags, resourceId, metadata, runId, continues, refused } = digest ?? {}
    // A run that cannot be read does not hide its thread.
    const inspected = typeof runId === 'string' ? inspectedRun(this.#config.store, runId) : undefined
    const { run, problem = null } = (await inspected) ?? {}
    const error = isObject(refused) && refused['seq'] === run?.lastSeq ? storedIn(refused) : problem
    const phase = phaseOf(run)
    // A queue that goes on belongs to somebody, unless that process has ended.
    const isStranded = phase === 'idle' && continues === true && owner === null
    return {
      threadId,
      createdAt,
      updatedAt,
      title: typeof title === 'string' ? title : '',
      firstMessage: typeof firstMessage === 'string' ? firstMessage : '',
      tags: Array.isArray(tags) ? tags.map(String) : [],
      resourceId: typeof resourceId === 'string' ? resourceId : null,
      metadata: isObject(metadata) ? metadata : {},
      phase: isStranded ? 'interrupted' : phase,
      ...(error !== null && { error }),
      cursor: `${updatedAt}/${threadId}`,
    }
  }
}

/** The latest run as its log shows it; null if it has stored nothing, or cannot be read, with the problem. */
async function inspectedRun(
  store: LogStore,
  runId: string,
): Promise<{ readonly run: LogSummaries['run'] | null; readonly problem: StoredError | null }> {
  try {
    return { run: await store.inspect({ kind: 'run', id: runId }), problem: null }
  } catch (thrown) {
    return { run: null, problem: storedError(codedError(thrown)) }
  }
}

/** Tries again and again, while another process has the thread. */
async function untilRemoved(threadId: string, removeNow: () => Promise<boolean>): Promise<void> {
  for (const deadline = Date.now() + PATIENCE_MS; !(await removeNow());) {
    if (Date.now() >= deadline)
      throw new SessionError('thread_owned', `Thread \`${threadId}\` is in use by another process.`)
    await new Promise((resolve) => setTimeout(resolve, DELETE_MS))
  }
}

function isOfFeature(threadId: string): boolean {
  return OF_FEATURES.test(threadId)
}

/** `run`: the latest run as its log shows it; null if it has stored nothing, or cannot be read. */
function phaseOf(run: LogSummaries['run'] | null | undefined): ThreadItem['phase'] {
  if (run === undefined) return 'idle'
  if (run === null || run.status === 'interrupted') return 'interrupted'
  if (run.status === 'paused') return 'waiting'
  return run.status === 'running' ? 'running' : 'idle'
}

function storedIn({ code, message }: JsonObject): StoredError | null {
  return typeof code === 'string' && typeof message === 'string' ? { code: code as StoredError['code'], message } : null
}

/** Conversations over harnesses. Threads of all owners; `for` gives those of one. */
export class Sessions<M extends Modes = Modes> extends Threads<M> implements AsyncDisposable {
  /** The log of the threads and their runs. */
  readonly log: LogStore
  readonly #config: SessionsConfig<M>
  readonly #chats: OpenChats<M>
  readonly #redaction: Redaction

  /** Throws a `SessionError` of code `invalid_options`. Does no I/O. */
  constructor(options: SessionsOptions<M>) {
    const config = resolveOptions(options)
    const chats = new OpenChats<M>()
    super(config, chats, null)
    this.log = config.log
    this.#config = config
    this.#chats = chats
    this.#redaction = new Redaction(config.use, config.modes)
  }

  /** The threads of one owner: another owner's thread is `thread_not_found`. */
  for({ resourceId }: { readonly resourceId: string }): Threads<M> {
    if (typeof resourceId !== 'string' || resourceId === '')
      throw new SessionError('invalid_options', 'Expected `resourceId` to be a string that is not empty.')
    return new Threads(this.#config, this.#chats, resourceId)
  }

  /** The names of the modes. */
  get modes(): readonly (keyof M & string)[] {
    return Object.keys(this.#config.modes)
  }

  /** The capabilities of the model of a mode, or of another model for it. Null if they are unknown. */
  async capabilities(
    mode: keyof M & string = this.#config.defaultMode,
    model: ModelRef | null = null,
  ): Promise<ModelCapabilities | null> {
    const resolved = await resolvedModel(this.#config, model)
    return (await this.#harnessOf(mode).capabilities?.(resolved ?? undefined)) ?? null
  }

  /** Describes the runs of a mode that begin now. Default: of the default mode. */
  describe(mode: keyof M & string = this.#config.defaultMode): Promise<HarnessDescription> {
    return this.#harnessOf(mode).describe()
  }

  /** A stored event of a run as readers get it: as the extensions of the sessions, and those of every mode, redact it. */
  redact(event: RunEvent): RunEvent {
    return this.#redaction.run(event)
  }

  #harnessOf(mode: string): ModeHarness {
    const harness = this.#config.modes[mode]
    if (harness === undefined) throw new SessionError('unknown_mode', `There is no mode \`${mode}\`.`)
    return harness
  }

  /** Leaves the runs in progress, which can be recovered, and releases the threads. Closes no harness. */
  close(): Promise<void> {
    return this.#chats.close()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }
}

function listingPlace(before: ThreadItem | string): { readonly updatedAt: string; readonly threadId: string } {
  const cursor = typeof before === 'string' ? before : before.cursor
  const slash = cursor.indexOf('/')
  if (slash === -1)
    throw new SessionError(
      'invalid_options',
      `Expected \`before\` to be an item of a list or its cursor, got "${cursor.slice(0, 80)}".`,
    )
  return { updatedAt: cursor.slice(0, slash), threadId: cursor.slice(slash + 1) }
}
