import type { LogStore } from '#core/log/log.js'
import type { LogRef } from '#core/log/ref.js'
import type { RunEvent } from '#core/state/events.js'
import { isAborted, onAbort } from '#util/abort.js'
import { Mailbox, pump } from '#util/queue/tail.js'
import type { ThreadEvent } from '../thread/thread-events.js'
import type { ThreadConversation } from './conversation.js'

/** How often it is checked that the owner still exists, in ms. */
const CHECK_MS = 1_000

/**
 * Follows a thread that this process does not own, and its runs: for as long as it has an owner, or somebody here reads its
 * events, or waits for the end of a message or the outcome of a post.
 */
export class Follower {
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
    if ((await this.#hasReason()) || (isWatched && !this.#conversation.isOwner && !this.#conversation.isClosed))
      this.#start()
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
