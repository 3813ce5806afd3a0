import { runsBeforeFork } from '../hub/runs-before-fork.js'
import type { StoredRun } from '../hub/runs-before-fork.js'
import type { FollowRunOptions, LiveRun } from '../hub/follow-stretch.js'
import type { Hub } from '../hub/hub.js'
import { storedEvents } from '../hub/child-runs.js'
import type { AnyRunEvent } from '../projection.js'
import type { Access } from './authorization.js'
import { RequestError } from './http.js'
import type { ContentPart } from '#contracts/entry.js'
import type { PendingItem } from '#contracts/result.js'
import type { RunStatus, RunSummary } from '#core/log/run-summary.js'
import type { LogStore } from '#core/log/log.js'
import type { RunEvent } from '#core/state/events.js'
import type { Answer } from '#core/state/answers.js'
import type { InputMessage } from '#core/stream/input.js'
import type { HarnessDescription } from '#harness/launch/describe.js'
import type { Chat } from '#session/conversation/chat.js'
import type { EventsOptions } from '#session/conversation/feed.js'
import type { MessageEnd } from '#session/conversation/message.js'
import type { CreateOptions, ListThreadsOptions, ThreadItem } from '#session/sessions.js'
import type { ChatEvent } from '#session/thread/chat-cursor.js'
import type { ChatRun } from '#session/thread/reduce-chat.js'

/** A conversation of sessions, whatever their modes. */
export type ServedChat = Pick<Chat, keyof Chat>

/** The part of sessions that handlers call. */
export interface ServedSessions {
  readonly log: LogStore
  describe?(): Promise<HarnessDescription>
  /** A stored event as readers get it. Absent: unchanged. */
  redact?(event: RunEvent): RunEvent
  for(owner: { readonly resourceId: string }): {
    open(threadId: string): Promise<ServedChat>
    fork(threadId: string, options: CreateOptions & { readonly after?: string }): Promise<ServedChat>
    list(options: ListThreadsOptions): AsyncIterable<ThreadItem>
  }
}

/** A run of a conversation. */
export interface RunInfo {
  readonly runId: string
  readonly status: RunStatus
  /** Items that people have to answer. */
  readonly pending: readonly PendingItem[]
  /** Number of its last event. */
  readonly seq: number
}

/** A person's message. */
export interface NewMessage {
  readonly messageId: string
  readonly content: readonly ContentPart[]
  readonly metadata?: object | undefined
  /** What becomes of it while a run is in progress or waits. */
  readonly whenBusy?: 'queue' | 'steer' | 'decline' | 'reject' | undefined
  /** The mode of this message alone. */
  readonly mode?: string | undefined
}

/** A change of a conversation that begins nothing. */
export interface ThreadChange {
  readonly title?: string
  readonly mode?: string
  /** Messages that leave the queue. */
  readonly remove?: readonly string[]
  /** A held queue continues. */
  readonly release?: true
}

/** What became of a message, or of answers. */
export interface MessageDelivery {
  readonly status: 'started' | 'queued' | 'steered' | 'posted' | 'attached'
  /** The run that reads the message, and where its stream begins; null if none does. A queued message waits for it. */
  readonly run: Promise<{ readonly runId: string; readonly beyond?: number } | null>
}

/** Runs that a request may read. */
export interface RequestedRuns {
  /** Oldest first. */
  readonly runs: readonly RunInfo[]
  /** The events of a run, up to its next pause or its end. */
  follow(runId: string, options: FollowRunOptions): AsyncIterable<readonly AnyRunEvent[]>
  /** The stored events of a run, with those of its child runs. */
  stored(runId: string): AsyncIterable<AnyRunEvent>
}

/** A run that no conversation has, such as one that the host has begun by itself: it can only be read. */
export class LoneRun implements RequestedRuns {
  readonly runs: readonly RunInfo[]
  readonly #reading: RunReading

  constructor({ runId, status, pending, lastSeq: seq }: RunSummary, reading: RunReading) {
    this.runs = [{ runId, status, pending, seq }]
    this.#reading = reading
  }

  follow(runId: string, options: FollowRunOptions): AsyncIterable<readonly AnyRunEvent[]> {
    return this.#reading.batches(runId, options)
  }

  stored(runId: string): AsyncIterable<AnyRunEvent> {
    return storedEvents(this.#reading.readerLog, runId)
  }
}

/** How runs are read for others: as the harness that serves them redacts them. */
export interface RunReading {
  readonly readerLog: LogStore
  readonly batches: Hub['batches']
}

export interface ThreadSetup extends RunReading {
  readonly access: Access
  readonly log: LogStore
  readonly feed: ThreadFeed
  /** A message for a run that waits for people refuses what waits. */
  readonly declines: boolean
}

/** One conversation, for the requests of one owner. */
export class Thread implements RequestedRuns {
  readonly #chat: ServedChat
  readonly #setup: ThreadSetup

  constructor(chat: ServedChat, setup: ThreadSetup) {
    this.#chat = chat
    this.#setup = setup
  }

  get threadId(): string {
    return this.#chat.threadId
  }

  get access(): Access {
    return this.#setup.access
  }

  get runs(): readonly RunInfo[] {
    const { runs } = this.#chat.snapshot
    return runs.map((run, index) => this.#infoOf(run, index === runs.length - 1))
  }

  get latest(): RunInfo | null {
    return this.runs.at(-1) ?? null
  }

  /** The runs of another conversation that it continues, oldest first. */
  async continued(): Promise<readonly StoredRun[]> {
    const { forkOf, threadId } = this.#chat.snapshot.thread
    return forkOf === null ? [] : runsBeforeFork(this.#setup.readerLog, threadId)
  }

  /** The ids of the messages with which a run began. */
  messageIds(runId: string): readonly string[] {
    return this.#chat.snapshot.runs.find((run) => run.runId === runId)?.messageIds ?? []
  }

  async *follow(runId: string, options: FollowRunOptions): AsyncGenerator<readonly AnyRunEvent[]> {
    const isOpen = this.#chat.snapshot.runs.at(-1)?.runId === runId && this.#chat.snapshot.phase !== 'idle'
    const release = isOpen ? this.#setup.feed.use(runId) : null
    try {
      yield* this.#setup.batches(runId, options)
    } finally {
      release?.()
    }
  }

  stored(runId: string): AsyncIterable<AnyRunEvent> {
    return storedEvents(this.#setup.readerLog, runId)
  }

  /** True if the conversation has begun a run, also one that was answered again since. */
  hasRun(runId: string): boolean {
    const { runs, thread } = this.#chat.snapshot
    return runs.some((run) => run.runId === runId) || thread.replaced.includes(runId)
  }

  /** Rejects with a `SessionError` for a cursor of anything else. */
  checkCursor(cursor: string): Promise<void> {
    return this.#chat.checkCursor(cursor)
  }

  /** The events of the thread and its runs in one order, from a cursor on. */
  events(options: EventsOptions): AsyncIterable<ChatEvent> {
    return this.#chat.events(options)
  }

  /** Gives a message to the thread. A message that it has is not delivered again. */
  async send({ messageId, content, metadata, whenBusy, mode }: NewMessage): Promise<MessageDelivery> {
    const { access, declines } = this.#setup
    const known = this.#runWith(messageId)
    this.#provideDeps()
    const sent = await this.#chat.send(content, {
      messageId,
      metadata: access.metadata === undefined ? metadata : { ...metadata, ...access.metadata },
      whenBusy: declines && this.#chat.phase === 'waiting' ? 'decline' : whenBusy,
      mode,
      by: access.by,
    })
    if (known !== null) return { status: 'attached', run: Promise.resolve({ runId: known.runId }) }
    const beyond = this.latest?.seq ?? 0
    const run = this.#readerOf(messageId, sent.done)
    // Nobody may wait for it.
    run.catch(() => undefined)
    if (sent.status !== 'steered') return { status: sent.status, run }
    const steered = run.then((reader) => reader && { ...reader, beyond })
    steered.catch(() => undefined)
    return { status: 'steered', run: steered }
  }

  /**
   * Answers a message again, by a new run: the run of that message, or of that id, and all later ones leave the conversation. Null: the
   * latest run.
   */
  async regenerate(id: string | null): Promise<MessageDelivery> {
    this.#provideDeps()
    const { messageId, status, done } = await this.#chat.regenerate(id ?? undefined)
    return { status, run: this.#readerOf(messageId, done) }
  }

  /** Answers items of a waiting run; an answer that was given before is not given again. */
  async answer(runId: string, answers: readonly Answer[]): Promise<MessageDelivery> {
    const run = this.runs.find((each) => each.runId === runId)
    if (run === undefined) throw new RequestError(404, 'not_found', { message: 'There is no such run.' })
    this.#provideDeps()
    const statuses = await this.#chat.answer(answers, { by: this.access.by })
    const stale = new Set(statuses.flatMap(({ callId, status }) => (status === 'stale' ? [callId] : [])))
    const repeated = answers.filter(({ callId }) => stale.has(callId))
    const before = await pauseBefore(this.#setup.log, runId, repeated)
    if (stale.size === answers.length) return { status: 'attached', run: Promise.resolve({ runId, beyond: before }) }
    return { status: 'started', run: Promise.resolve({ runId, beyond: run.seq }) }
  }

  async steer(runId: string, { messageId, content }: Pick<NewMessage, 'messageId' | 'content'>): Promise<void> {
    if (this.latest?.runId !== runId || this.#chat.phase !== 'running')
      throw new RequestError(409, 'invalid_state', { message: 'The run has ended, or waits for people.' })
    await this.#chat.steer(content, { messageId, by: this.access.by })
  }

  /** Cancels a run in progress; ends one that waits. Null: whatever runs, also for a message that is being sent. */
  async stop(runId: string | null): Promise<void> {
    if (runId === null || this.latest?.runId === runId) await this.#chat.cancel()
  }

  /** Continues an interrupted run; so does the next message. */
  async recover(runId: string): Promise<MessageDelivery> {
    this.#provideDeps()
    const isRecovered = this.latest?.runId === runId && (await this.#chat.recover())
    return { status: isRecovered ? 'started' : 'attached', run: Promise.resolve({ runId }) }
  }

  async change({ title, mode, remove, release }: ThreadChange): Promise<void> {
    if (title !== undefined) await this.#chat.rename(title)
    if (mode !== undefined) await this.#chat.setMode(mode)
    for (const messageId of remove ?? []) await this.#chat.queue.remove(messageId)
    if (release === true) await this.#chat.queue.release()
  }

  /** The messages that wait. What a run has not read is at the front. */
  get queued(): readonly InputMessage[] {
    return this.#chat.snapshot.queue.map(({ content }) => content)
  }

  /** The runs get the dependencies of the request that begins or continues them. */
  #provideDeps(): void {
    const { deps } = this.access
    if (deps !== undefined) this.#chat.provideDeps(deps)
  }

  #runWith(messageId: string): ChatRun | null {
    const { runs } = this.#chat.snapshot
    return (
      runs.find((run) => run.messageIds.includes(messageId)) ??
      runs.find((run) => run.entries.some((entry) => entry.role === 'user' && entry.messageId === messageId)) ??
      null
    )
  }

  /** The run that reads a message, once there is one; null if the message is removed. */
  async #readerOf(
    messageId: string,
    done: Promise<Pick<MessageEnd, 'runId' | 'error'>>,
  ): Promise<{ runId: string } | null> {
    const over = new AbortController()
    const ended = done.then(({ runId, error }) => {
      over.abort()
      if (runId === null && error !== undefined) throw error
      return runId
    })
    ended.catch(() => undefined)
    const { thread, runs } = this.#chat.snapshot
    const last = runs.at(-1)
    const after = last === undefined ? String(thread.seq) : `${thread.seq}.${last.runId}.${last.seq}`
    const events = this.#chat.events({ after, signal: over.signal })[Symbol.asyncIterator]()
    try {
      do {
        const run = this.#runWith(messageId) ?? (this.#isSteering(messageId) ? this.#chat.snapshot.runs.at(-1) : null)
        // A run that was begun is in its log after its first event.
        if (run !== null && run !== undefined && run.status !== 'begun') return { runId: run.runId }
      } while ((await events.next()).done !== true)
    } finally {
      over.abort()
    }
    const runId = await ended
    return runId === null ? null : { runId }
  }

  #isSteering(messageId: string): boolean {
    return this.#chat.snapshot.thread.steering.some((item) => item.messageId === messageId)
  }

  #infoOf({ runId, status, seq }: ChatRun, isLast: boolean): RunInfo {
    const pending = isLast ? this.#chat.pending : []
    const isInterrupted = isLast && this.#chat.phase === 'interrupted'
    return { runId, seq, pending, status: isInterrupted ? 'interrupted' : status === 'begun' ? 'running' : status }
  }
}

/** The number of the pause at which answers were given before; 0 for none. Throws for answers that differ from those. */
async function pauseBefore(log: LogStore, runId: string, answers: readonly Answer[]): Promise<number> {
  if (answers.length === 0) return 0
  let pause = 0
  let before = 0
  const earlier = new Map<string, Answer>()
  for await (const event of log.read({ kind: 'run', id: runId })) {
    if (event.kind === 'run_completed') pause = event.seq
    if (event.kind !== 'answer_received') continue
    earlier.set(event.callId, event.answer)
    if (answers.some(({ callId }) => callId === event.callId)) before = pause
  }
  for (const answer of answers) {
    const first = earlier.get(answer.callId)
    if (first === undefined || textOfAnswer(first) !== textOfAnswer(answer))
      throw new RequestError(409, 'stale_answer', {
        message: `Nothing waits for the answer to \`${answer.callId}\` any more.`,
      })
  }
  return before
}

/** An answer without its author, as text. */
function textOfAnswer({ by: _by, ...answer }: Answer): string {
  return JSON.stringify(
    Object.entries(answer)
      .filter(([, value]) => value !== undefined)
      .sort(),
  )
}

/** How often it is checked that the owner of a thread exists, in ms. */
const CHECK_MS = 1_000

type Fed = Pick<Chat, 'snapshot' | 'phase' | 'events'>

/** Passes the events of a thread's runs on to the hub, while anybody reads them: the thread is read once for all readers. */
export class ThreadFeed {
  readonly #chat: Fed
  readonly #hub: Hub
  #uses = 0
  #abort: AbortController | null = null
  #live: LiveRun | null = null

  constructor(chat: Fed, hub: Hub) {
    this.#chat = chat
    this.#hub = hub
  }

  /** Reads the thread, whose latest run is `runId`, until the returned function is called. */
  use(runId: string): () => void {
    this.#uses += 1
    if (this.#abort === null) this.#start()
    if (this.#live?.runId !== runId) this.#next(runId)
    let isReleased = false
    return () => {
      if (isReleased) return
      isReleased = true
      this.#uses -= 1
      if (this.#uses === 0) this.#stop()
    }
  }

  #start(): void {
    const abort = new AbortController()
    this.#abort = abort
    const { thread, runs } = this.#chat.snapshot
    const last = runs.at(-1)
    const after = last === undefined ? String(thread.seq) : `${thread.seq}.${last.runId}.${last.seq}`
    const check = setInterval(() => {
      // Its owner has died: its readers get what is stored, and that it was interrupted.
      if (this.#chat.phase === 'interrupted') this.#next(null)
    }, CHECK_MS)
    abort.signal.addEventListener('abort', () => clearInterval(check))
    const endFeed = (): void => {
      if (this.#abort === abort) this.#stop()
    }
    void this.#read(after, abort.signal).then(endFeed, endFeed)
  }

  async #read(after: string, signal: AbortSignal): Promise<void> {
    for await (const event of this.#chat.events({ after, signal, children: true })) {
      if ('threadId' in event) {
        if (event.kind === 'run_begun' && event.runId !== this.#live?.runId) this.#next(event.runId)
      } else if (event.parentRunId !== null || event.runId === this.#live?.runId) this.#live?.push(event)
    }
  }

  #next(runId: string | null): void {
    if (this.#live !== null) this.#hub.close(this.#live)
    this.#live = runId === null ? null : this.#hub.open(runId)
  }

  #stop(): void {
    this.#abort?.abort()
    this.#abort = null
    this.#next(null)
  }
}
