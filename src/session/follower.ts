import type { LogRef, LogStore, RunEvent } from '../index.js'
import type { Conversation } from './conversation.js'
import type { ThreadEvent } from './thread/thread-events.js'

/** How often it is checked that the owner still exists, in ms. */
const CHECK_MS = 1_000

/**
 * Follows a thread that this process does not own, and its runs: for as long as it has an owner, or somebody here reads its
 * events, or waits for the end of a message or the outcome of a post.
 */
export class Follower {
  readonly #log: LogStore
  readonly #conversation: Conversation
  readonly #onCheck: (isOrphaned: boolean) => Promise<void>
  #timer: NodeJS.Timeout | undefined
  /** Of the reading in progress. A store may fail: then the next check begins again. */
  #abort: AbortController | null = null
  #owner: string | null = null

  /** `onCheck` is called again and again while the thread is followed. `isOrphaned`: nobody owns it. */
  constructor(log: LogStore, conversation: Conversation, onCheck: (isOrphaned: boolean) => Promise<void>) {
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
    const ended = (): void => {
      abort.abort()
      if (this.#abort === abort) this.#abort = null
    }
    void this.#follow(abort.signal).then(ended, ended)
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
    const talk = this.#conversation
    const changes = new Changes(this.#log, signal)
    changes.watch({ kind: 'thread', id: talk.threadId }, talk.feed.place.thread)
    while (!isAborted(signal)) {
      const { runId, run } = talk.feed.place
      if (runId !== null) changes.watch({ kind: 'run', id: runId }, run)
      await changes.next()
      if (!isAborted(signal)) await talk.load()
    }
  }
}

/** Tells when a log has another event: of a thread, and of one of its runs at a time. */
class Changes {
  readonly #log: LogStore
  readonly #signal: AbortSignal
  readonly #watched = new Map<LogRef['kind'], { readonly id: string; readonly abort: AbortController }>()
  #hasChanged = false
  #wake = (): void => undefined
  #error: unknown = null

  constructor(log: LogStore, signal: AbortSignal) {
    this.#log = log
    this.#signal = signal
    signal.addEventListener('abort', () => this.#ring())
  }

  /** In place of the log of this kind that was watched before. */
  watch(ref: LogRef, after: number): void {
    const known = this.#watched.get(ref.kind)
    if (known?.id === ref.id) return
    known?.abort.abort()
    const abort = new AbortController()
    this.#watched.set(ref.kind, { id: ref.id, abort })
    void this.#read(ref, after, AbortSignal.any([this.#signal, abort.signal])).catch((error: unknown) => {
      this.#error ??= error
      this.#ring()
    })
  }

  /** Resolves after a change. Rejects if a log could not be read. */
  async next(): Promise<void> {
    if (!this.#hasChanged) await new Promise<void>((resolve) => (this.#wake = resolve))
    this.#hasChanged = false
    if (this.#error !== null) throw this.#error as Error
  }

  async #read(ref: LogRef, after: number, signal: AbortSignal): Promise<void> {
    const events = this.#log.follow?.<ThreadEvent | RunEvent>(ref, { after, signal })
    for await (const event of events ?? []) {
      if (event.seq > after) this.#ring()
    }
  }

  #ring(): void {
    this.#hasChanged = true
    this.#wake()
  }
}

function isAborted(signal: AbortSignal): boolean {
  return signal.aborted
}
