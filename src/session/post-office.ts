import type { JsonObject, LogStore } from '../index.js'
import type { Conversation } from './conversation.js'
import { SessionError } from './errors.js'
import type { SessionErrorCode } from './errors.js'

/** How often the owner looks for posts, and how long their sender waits for it, in ms. */
const LOOK_MS = 200
const WAIT_MS = 10_000

/** An action of another process, as it is posted to the owner of a thread. */
export type PostedAction = JsonObject & { readonly action: string }

/** Does a posted action; gives what its sender is told. */
export type DoPosted = (action: PostedAction) => Promise<JsonObject>

/** The inbox of a thread: its owner takes the actions of other processes from it. */
export class PostOffice {
  readonly #log: LogStore
  readonly #conversation: Conversation
  readonly #doPosted: DoPosted
  #timer: NodeJS.Timeout | undefined

  constructor(log: LogStore, conversation: Conversation, doPosted: DoPosted) {
    this.#log = log
    this.#conversation = conversation
    this.#doPosted = doPosted
  }

  /** Looks for posts for as long as this process owns the thread. */
  watch(): void {
    if (this.#timer !== undefined) return
    this.#timer = setInterval(() => void this.#look(), LOOK_MS).unref()
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  /** Posts an action, and waits for its outcome; null if the owner has not taken it in time. Rejects as the owner refused. */
  async post(id: string, action: PostedAction): Promise<JsonObject | null> {
    const { feed, threadId } = this.#conversation
    let stop = (): void => undefined
    const outcome = new Promise<JsonObject | null>((resolve) => {
      const timer = setTimeout(() => resolve(null), WAIT_MS)
      const stopListening = feed.listen((event) => {
        if (event.kind === 'message_taken' && event.messageId === id) resolve(event.outcome)
      })
      stop = () => {
        clearTimeout(timer)
        stopListening()
      }
    })
    try {
      await this.#log.post({ kind: 'thread', id: threadId }, { id, body: action })
      const taken = await outcome
      const { error, message } = taken ?? {}
      if (typeof error === 'string' && typeof message === 'string')
        throw new SessionError(error as SessionErrorCode, message)
      return taken
    } finally {
      stop()
    }
  }

  async #look(): Promise<void> {
    const talk = this.#conversation
    if (!talk.isOwner) {
      this.stop()
      return
    }
    const posts = await talk.takePosts().catch(() => [])
    for (const { id, body } of posts) {
      if (talk.isTaken(id)) continue
      const outcome = await this.#doPosted(body as PostedAction).catch(refusal)
      await talk
        .exclusive(async () => {
          if (await talk.own()) await talk.append({ kind: 'message_taken', messageId: id, outcome })
        })
        .catch(() => undefined)
    }
  }
}

function refusal(error: unknown): JsonObject {
  const code = error instanceof SessionError ? error.code : 'invalid_answer'
  return { error: code, message: error instanceof Error ? error.message : String(error) }
}
