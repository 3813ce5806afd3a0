import type { Chat } from '#session/chat.js'
import type { LiveRun } from '../hub/follow.js'
import type { Hub } from '../hub/hub.js'

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
