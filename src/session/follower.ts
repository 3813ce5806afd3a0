import { HarnessError } from '../index.js'
import type { LogStore, RunEvent } from '../index.js'
import type { Conversation } from './conversation.js'
import { textOfRun } from './play-run.js'
import type { ThreadEvent } from './thread/thread-events.js'

/** How often it is checked that the owner still exists, in ms. */
const CHECK_MS = 1_000

/** Follows a thread that another process writes, and its runs. */
export class Follower {
  readonly #log: LogStore
  readonly #conversation: Conversation
  #abort: AbortController | null = null

  constructor(log: LogStore, conversation: Conversation) {
    this.#log = log
    this.#conversation = conversation
  }

  start(): void {
    if (this.#abort !== null) return
    const abort = new AbortController()
    this.#abort = abort
    this.#conversation.markFollowing(true)
    const check = setInterval(() => void this.#check(), CHECK_MS).unref()
    abort.signal.addEventListener('abort', () => clearInterval(check))
    void this.#followThread(abort.signal).catch(() => this.stop())
  }

  stop(): void {
    this.#abort?.abort()
    this.#abort = null
    this.#conversation.markFollowing(false)
  }

  /** The id of the thread's owner; null if nobody owns it. */
  async owner(): Promise<string | null> {
    const summary = await this.#log.inspect({ kind: 'thread', id: this.#conversation.threadId })
    return summary?.owner ?? null
  }

  async #check(): Promise<void> {
    if (this.#conversation.isOwner || (await this.owner().catch(() => '')) === null) this.stop()
  }

  async #followThread(signal: AbortSignal): Promise<void> {
    const talk = this.#conversation
    const { thread, runId } = talk.feed.place
    let run = runId === null ? null : this.#followRun(runId, signal)
    const ref = { kind: 'thread', id: talk.threadId } as const
    for await (const next of this.#log.follow?.<ThreadEvent>(ref, { after: thread, signal }) ?? []) {
      // Events of the run that come first are passed on first.
      if (next.after !== null && talk.feed.place.runId === next.after.runId) await run?.reach(next.after.seq)
      follow(talk, next)
      if (next.kind !== 'run_begun') continue
      run?.stop()
      run = this.#followRun(next.runId, signal)
    }
  }

  #followRun(runId: string, signal: AbortSignal): RunFollower {
    return new RunFollower(this.#log, this.#conversation, { runId, signal })
  }
}

/** Passes an event of the owner on, and settles the messages that it ends. */
function follow(talk: Conversation, event: ThreadEvent | RunEvent): void {
  talk.pass(event)
  if (event.kind === 'message_removed') talk.ends.settle(event.messageId, { status: 'removed', runId: null, text: '' })
  if (event.kind !== 'run_completed' && event.kind !== 'run_failed') return
  const { run } = talk.state
  if (run === null || run.runId !== event.runId) return
  const { runId } = run
  const text = textOfRun(talk.lastRun)
  if (event.kind === 'run_completed') {
    talk.settleAll(run, { status: event.pending.length > 0 ? 'paused' : 'completed', runId, text })
    return
  }
  const { code, message, stopReason } = event
  const status = stopReason === 'cancelled' ? 'cancelled' : 'failed'
  talk.settleAll(run, { status, runId, text, error: new HarnessError(code, message) })
}

/** Passes the events of one run on. */
class RunFollower {
  readonly #abort = new AbortController()
  readonly #waiting = new Set<{ readonly seq: number; readonly resolve: () => void }>()
  #seq: number

  constructor(
    log: LogStore,
    conversation: Conversation,
    { runId, signal }: { readonly runId: string; readonly signal: AbortSignal },
  ) {
    const { place } = conversation.feed
    this.#seq = place.runId === runId ? place.run : 0
    const either = AbortSignal.any([signal, this.#abort.signal])
    void this.#run(log, conversation, { runId, signal: either })
  }

  stop(): void {
    this.#abort.abort()
    this.#reached(Infinity)
  }

  /** Resolves when event `seq` has been passed on. */
  reach(seq: number): Promise<void> {
    if (this.#seq >= seq) return Promise.resolve()
    return new Promise((resolve) => this.#waiting.add({ seq, resolve }))
  }

  async #run(
    log: LogStore,
    conversation: Conversation,
    { runId, signal }: { readonly runId: string; readonly signal: AbortSignal },
  ): Promise<void> {
    try {
      const events = log.follow?.({ kind: 'run', id: runId }, { after: this.#seq, signal }) ?? []
      for await (const event of events) {
        follow(conversation, event)
        this.#reached(event.seq)
      }
    } finally {
      this.#reached(Infinity)
    }
  }

  #reached(seq: number): void {
    this.#seq = seq
    for (const each of this.#waiting) {
      if (each.seq > seq) continue
      this.#waiting.delete(each)
      each.resolve()
    }
  }
}
