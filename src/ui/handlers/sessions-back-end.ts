import type { Answer, HarnessDescription, InputMessage, LogStore } from '../../index.js'
import type { Chat, ChatEvent, ChatRun, EventsOptions, ListThreadsOptions, ThreadItem } from '../../session/index.js'
import { continuedRuns } from '../hub/continued-runs.js'
import type { StoredRun } from '../hub/continued-runs.js'
import type { FollowRunOptions } from '../hub/follow.js'
import type { Hub } from '../hub/hub.js'
import { storedEvents } from '../hub/stored.js'
import type { AnyRunEvent } from '../projection.js'
import { RequestError } from './back-end.js'
import type { Access, BackEnd, NewMessage, RunInfo, Taken, ThreadChange, ThreadPort } from './back-end.js'
import { ThreadFeed } from './thread-feed.js'

/** The part of a conversation that handlers call. */
export type ServedChat = Pick<
  Chat,
  | 'threadId'
  | 'snapshot'
  | 'phase'
  | 'pending'
  | 'send'
  | 'regenerate'
  | 'steer'
  | 'answer'
  | 'cancel'
  | 'events'
  | 'queue'
  | 'rename'
  | 'setMode'
>

/** The part of sessions that handlers call. */
export interface ServedSessions {
  readonly log: LogStore
  describe?(): Promise<HarnessDescription>
  for(owner: { readonly resourceId: string }): {
    open(threadId: string): Promise<ServedChat>
    list(options: ListThreadsOptions): AsyncIterable<ThreadItem>
  }
}

/** Conversations of sessions. */
export class SessionsBackEnd implements BackEnd {
  readonly #sessions: ServedSessions
  readonly #hub: Hub
  readonly #feeds = new WeakMap<ServedChat, ThreadFeed>()

  constructor(sessions: ServedSessions, hub: Hub) {
    this.#sessions = sessions
    this.#hub = hub
  }

  async thread(threadId: string, access: Access, { create = false } = {}): Promise<ThreadPort | null> {
    const threads = this.#sessions.for(access)
    const { log } = this.#sessions
    if (!create && (await log.inspect({ kind: 'thread', id: threadId })) === null) return null
    const chat = await threads.open(threadId).catch((error: unknown) => {
      if (codeOf(error) === 'thread_not_found') return null
      throw error
    })
    return chat === null ? null : new SessionThread(chat, { access, log, hub: this.#hub, feed: this.#feedOf(chat) })
  }

  async threadOf(runId: string): Promise<string | null> {
    const summary = await this.#sessions.log.inspect({ kind: 'run', id: runId })
    const threadId = summary?.metadata['conversation_id']
    if (typeof threadId === 'string') return threadId
    return summary?.parent === null || summary?.parent === undefined ? null : this.threadOf(summary.parent.runId)
  }

  list(access: Access, page: { readonly limit: number; readonly before?: string }): AsyncIterable<ThreadItem> {
    return this.#sessions.for(access).list(page)
  }

  #feedOf(chat: ServedChat): ThreadFeed {
    const feed = this.#feeds.get(chat) ?? new ThreadFeed(chat, this.#hub)
    this.#feeds.set(chat, feed)
    return feed
  }
}

interface Means {
  readonly access: Access
  readonly log: LogStore
  readonly hub: Hub
  readonly feed: ThreadFeed
}

class SessionThread implements ThreadPort {
  readonly #chat: ServedChat
  readonly #means: Means

  constructor(chat: ServedChat, means: Means) {
    this.#chat = chat
    this.#means = means
  }

  get threadId(): string {
    return this.#chat.threadId
  }

  runs(): Promise<readonly RunInfo[]> {
    const { runs } = this.#chat.snapshot
    return Promise.resolve(runs.map((run, index) => this.#infoOf(run, index === runs.length - 1)))
  }

  continued(): Promise<readonly StoredRun[]> {
    const { forkOf, threadId } = this.#chat.snapshot.thread
    return forkOf === null ? Promise.resolve([]) : continuedRuns(this.#means.log, threadId)
  }

  async latest(): Promise<RunInfo | null> {
    return (await this.runs()).at(-1) ?? null
  }

  messageIds(runId: string): Promise<readonly string[]> {
    return Promise.resolve(this.#chat.snapshot.runs.find((run) => run.runId === runId)?.messageIds ?? [])
  }

  async *follow(runId: string, options: FollowRunOptions): AsyncGenerator<readonly AnyRunEvent[]> {
    const isOpen = this.#chat.snapshot.runs.at(-1)?.runId === runId && this.#chat.snapshot.phase !== 'idle'
    const release = isOpen ? this.#means.feed.use(runId) : null
    try {
      yield* this.#means.hub.batches(runId, options)
    } finally {
      release?.()
    }
  }

  stored(runId: string): AsyncIterable<AnyRunEvent> {
    return storedEvents(this.#means.log, runId)
  }

  events(options: EventsOptions): AsyncIterable<ChatEvent> {
    return this.#chat.events(options)
  }

  async send({ messageId, content, metadata, whenBusy, mode }: NewMessage): Promise<Taken> {
    const { by } = this.#means.access
    const known = this.#runWith(messageId)
    const sent = await this.#chat.send(content, { messageId, metadata, whenBusy, mode, by })
    if (known !== null) return { status: 'attached', run: Promise.resolve({ runId: known.runId }) }
    const beyond = this.#chat.snapshot.runs.at(-1)?.seq ?? 0
    const run = this.#readerOf(messageId, sent.done)
    if (sent.status !== 'steered') return { status: sent.status, run }
    return { status: 'steered', run: run.then((found) => found && { ...found, beyond }) }
  }

  async regenerate(id: string): Promise<Taken> {
    const { messageId, status, done } = await this.#chat.regenerate(id)
    return { status, run: this.#readerOf(messageId, done) }
  }

  async answer(runId: string, answers: readonly Answer[]): Promise<Taken> {
    const run = this.#chat.snapshot.runs.find((each) => each.runId === runId)
    if (run === undefined) throw notFound()
    const statuses = await this.#chat.answer(answers, { by: this.#means.access.by })
    const stale = new Set(statuses.flatMap(({ callId, status }) => (status === 'stale' ? [callId] : [])))
    const repeated = answers.filter(({ callId }) => stale.has(callId))
    const given = await givenBefore(this.#means.log, runId, repeated)
    if (stale.size === answers.length) return { status: 'attached', run: Promise.resolve({ runId, beyond: given }) }
    return { status: 'started', run: Promise.resolve({ runId, beyond: run.seq }) }
  }

  async steer(runId: string, { messageId, content }: Pick<NewMessage, 'messageId' | 'content'>): Promise<void> {
    this.#checkOpen(runId, 'running')
    await this.#chat.steer(content, { messageId, by: this.#means.access.by })
  }

  async stop(runId: string): Promise<void> {
    if (this.#chat.snapshot.runs.at(-1)?.runId === runId) await this.#chat.cancel()
  }

  recover(): Promise<Taken> {
    // A thread recovers its run when somebody writes or answers.
    throw new RequestError(409, 'invalid_state', {
      message: 'The conversation continues with the next message or answer.',
    })
  }

  async change({ title, mode, remove, release }: ThreadChange): Promise<void> {
    if (title !== undefined) await this.#chat.rename(title)
    if (mode !== undefined) await this.#chat.setMode(mode)
    for (const messageId of remove ?? []) await this.#chat.queue.remove(messageId)
    if (release === true) await this.#chat.queue.release()
  }

  /** What a run has not read is at the front of the queue. */
  returned(): readonly InputMessage[] {
    return this.#chat.snapshot.queue.map(({ content }) => content)
  }

  #checkOpen(runId: string, phase: string): void {
    const last = this.#chat.snapshot.runs.at(-1)
    if (last?.runId === runId && this.#chat.phase === phase) return
    throw new RequestError(409, 'invalid_state', { message: 'The run has ended, or waits for people.' })
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
    done: Promise<{ readonly runId: string | null }>,
  ): Promise<{ runId: string } | null> {
    const over = new AbortController()
    const ended = done.then(({ runId }) => {
      over.abort()
      return runId
    })
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

/** The number of the event before the stretch in which answers were given; throws for answers that differ from those. */
export async function givenBefore(
  log: Pick<LogStore, 'read'>,
  runId: string,
  answers: readonly Answer[],
): Promise<number> {
  if (answers.length === 0) return 0
  let pause = 0
  let before = 0
  const given = new Map<string, Answer>()
  for await (const event of log.read({ kind: 'run', id: runId })) {
    if (event.kind === 'run_completed') pause = event.seq
    if (event.kind !== 'answer_received') continue
    given.set(event.callId, event.answer)
    if (answers.some(({ callId }) => callId === event.callId)) before = pause
  }
  for (const answer of answers) {
    const earlier = given.get(answer.callId)
    if (earlier === undefined || sameAnswer(earlier) !== sameAnswer(answer))
      throw new RequestError(409, 'stale_answer', {
        message: `Nothing waits for the answer to \`${answer.callId}\` any more.`,
      })
  }
  return before
}

/** An answer without its author, as text. */
function sameAnswer({ by: _by, ...answer }: Answer): string {
  return JSON.stringify(
    Object.entries(answer)
      .filter(([, value]) => value !== undefined)
      .sort(),
  )
}

export function codeOf(error: unknown): string | undefined {
  const { code } = (typeof error === 'object' && error !== null ? error : {}) as { readonly code?: unknown }
  return typeof code === 'string' ? code : undefined
}

export function notFound(): RequestError {
  return new RequestError(404, 'not_found', { message: 'There is no such conversation or run.' })
}
