import { HarnessError } from '../index.js'
import type { JsonObject, LogStore, Post } from '../index.js'
import type { Conversation } from './conversation.js'
import { isObject } from '../util/json.js'
import { SessionError } from './errors.js'
import type { SessionErrorCode } from './errors.js'
import { newId } from './play-run.js'

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
  /** Posts of others that this process has taken, as the owner, and not dealt with. */
  #taken: Post[] = []
  #isLooking = false

  constructor(log: LogStore, conversation: Conversation, doPosted: DoPosted) {
    this.#log = log
    this.#conversation = conversation
    this.#doPosted = doPosted
  }

  /** Looks for posts for as long as this process owns the thread. */
  watch(): void {
    if (this.#timer !== undefined) return
    this.#timer = setInterval(() => void this.#look().catch(() => undefined), LOOK_MS).unref()
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
    // The next owner takes them.
    this.#taken = []
  }

  /**
   * Posts an action, and waits for its outcome; null if the owner has not taken it in time. Rejects as the owner refused. `attach`
   * follows the thread.
   */
  async post(action: PostedAction, attach: () => Promise<void>): Promise<JsonObject | null> {
    const { posted } = this.#conversation
    const id = newId('post')
    // Noted first: the thread is followed until the post is dealt with, also if its owner gives it back meanwhile.
    posted.add(id)
    try {
      await attach()
      return await this.#posted(id, action)
    } catch (error) {
      posted.delete(id)
      throw error
    }
  }

  async #posted(id: string, action: PostedAction): Promise<JsonObject | null> {
    const { feed, threadId } = this.#conversation
    let stop = (): void => undefined
    const outcome = new Promise<JsonObject | null>((resolve) => {
      const timer = setTimeout(() => resolve(null), WAIT_MS)
      const stopListening = feed.listen((event) => {
        if (event.kind === 'message_taken' && event.postId === id) resolve(event.outcome)
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
    if (this.#isLooking) return
    this.#isLooking = true
    try {
      const posts = await talk.takePosts()
      this.#taken.push(...posts.filter(({ id }) => !this.#taken.some((taken) => taken.id === id)))
      let isDropped = false
      for (let post = this.#taken[0]; post !== undefined; post = this.#taken[0]) {
        // An outcome that could not be stored, as it seemed, may be in the log.
        await talk.exclusive(() => talk.own())
        if (talk.outcomeOf(post.id) === undefined) await this.#deal(post)
        this.#taken.shift()
        isDropped = isDrop(post.body as PostedAction)
      }
      // The sender of the last may be about to delete the thread.
      if (isDropped) await talk.exclusive(() => talk.rest())
    } finally {
      this.#isLooking = false
    }
  }

  /** Rejects if the store failed, or the thread has another owner: then the post is dealt with later, or by that owner. */
  async #deal({ id, body }: Post): Promise<void> {
    const talk = this.#conversation
    const outcome = await this.#doPosted(body as PostedAction).catch(refusal)
    await talk.exclusive(async () => {
      if (!talk.isOwner || !(await talk.own())) throw new HarnessError('run_owned', 'The thread has another owner.')
      // An append that failed may have been stored.
      if (talk.outcomeOf(id) !== undefined) return
      await talk.append({ kind: 'message_taken', postId: id, messageId: messageIn(body as PostedAction), outcome })
    })
  }
}

/** Nothing is left to do in the thread. */
function isDrop({ action, queue }: PostedAction): boolean {
  return action === 'cancel' && queue === 'drop'
}

/** The id of the message that an action brings. */
function messageIn({ item }: PostedAction): string | null {
  return isObject(item) && typeof item['messageId'] === 'string' ? item['messageId'] : null
}

/** The caller's mistakes, for the sender. Other errors are thrown. */
function refusal(error: unknown): JsonObject {
  if (error instanceof SessionError && error.code !== 'closed') return { error: error.code, message: error.message }
  if (error instanceof HarnessError && error.code === 'invalid_answer')
    return { error: error.code, message: error.message }
  throw error
}
