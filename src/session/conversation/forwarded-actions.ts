import { HarnessError } from '#contracts/errors.js'
import type { Post } from '#core/log/log.js'
import type { JsonObject } from '#util/json.js'
import { parseAs } from '#util/validate.js'
import { errorOf, SessionError } from '../errors.js'
import type { StoredError } from '../errors.js'
import { ACTION, OUTCOME } from './actions.js'
import type { ActionOutcome, ChatAction } from './actions.js'
import type { ThreadConversation } from './conversation.js'
import { newId, toJson } from './message.js'

/** How often the owner looks for posts, and how long their sender waits for it, in ms. */
const LOOK_MS = 200
const WAIT_MS = 10_000
/** How long a post gives messages back, in ms: their sender still waits when it reads of them. */
const GIVES_BACK_MS = 8_000

/** What it needs of the chat whose thread it serves. */
interface ForwardedActionsDeps {
  readonly conversation: ThreadConversation
  /** Follows the thread. */
  readonly attach: () => Promise<void>
  /** Performs an action that another process has posted. */
  readonly performPosted: (action: ChatAction, postId: string) => Promise<ActionOutcome>
}

/** The inbox of a thread: its owner takes the actions of other processes from it. */
export class ForwardedActions {
  readonly #deps: ForwardedActionsDeps
  #timer: NodeJS.Timeout | undefined
  /** Posts of others that this process has taken, as the owner, and not dealt with. */
  #taken: Post[] = []
  #isLooking = false

  constructor(deps: ForwardedActionsDeps) {
    this.#deps = deps
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
   * Posts an action; resolves when it is posted, with its outcome: null if the owner has not taken it in time. Rejects, or its
   * outcome does, as the owner refused. `check` may throw before it is posted.
   */
  async post(
    action: ChatAction,
    check: (() => void) | undefined,
  ): Promise<{ readonly outcome: Promise<ActionOutcome | null> }> {
    const { conversation, attach } = this.#deps
    const { log, threadId } = conversation
    const { posted } = conversation.seen
    const id = newId('post')
    // Noted first: the thread is followed until the post is dealt with, also if its owner gives it back meanwhile.
    posted.add(id)
    const { taken, stop } = this.#takenOf(id)
    try {
      await attach()
      check?.()
      const until = action.kind === 'remove' || action.kind === 'cancel' ? { until: Date.now() + GIVES_BACK_MS } : {}
      await log.post({ kind: 'thread', id: threadId }, { id, body: toJson({ ...action, ...until }) })
    } catch (error) {
      posted.delete(id)
      stop()
      throw error
    }
    const outcome = taken.then(postedOutcome)
    outcome.catch(() => posted.delete(id))
    return { outcome }
  }

  /** What the owner says about a post; null if it has not taken it in time. */
  #takenOf(id: string): { readonly taken: Promise<JsonObject | null>; readonly stop: () => void } {
    const { conversation } = this.#deps
    let stop = (): void => undefined
    const taken = new Promise<JsonObject | null>((resolve) => {
      // The owner may have taken it a moment ago.
      const timer = setTimeout(() => {
        const resolveStored = (): void => resolve(conversation.seen.outcomeOf(id) ?? null)
        void conversation.load().then(resolveStored, resolveStored)
      }, WAIT_MS)
      const stopListening = conversation.feed.listen((event) => {
        if (event.kind === 'message_taken' && event.postId === id) resolve(event.outcome)
      })
      stop = () => {
        clearTimeout(timer)
        stopListening()
      }
    })
    void taken.then(stop)
    return { taken, stop }
  }

  async #look(): Promise<void> {
    const { conversation } = this.#deps
    if (!conversation.isOwner) {
      this.stop()
      return
    }
    if (this.#isLooking) return
    this.#isLooking = true
    try {
      const posts = await conversation.takePosts()
      this.#taken.push(...posts.filter(({ id }) => !this.#taken.some((taken) => taken.id === id)))
      let isDropped = false
      while (this.#taken[0] !== undefined) {
        isDropped = await this.#deal(this.#taken[0])
        this.#taken.shift()
      }
      // The sender of the last may be about to delete the thread.
      if (isDropped) await conversation.rest()
    } finally {
      this.#isLooking = false
    }
  }

  /**
   * True if nothing is left to do in the thread. Rejects if the store failed, or the thread has another owner: then the post is dealt
   * with later, or by that owner.
   */
  async #deal({ id, body }: Post): Promise<boolean> {
    const { conversation, performPosted } = this.#deps
    const action = parseAs(ACTION, body, 'the posted action')
    const value = action.ok ? action.value : null
    // An outcome that could not be stored, as it seemed, may be in the log.
    await conversation.exclusive(() => Promise.resolve())
    if (conversation.seen.outcomeOf(id) === undefined) {
      const work = action.ok ? performPosted(action.value, id) : Promise.reject(invalidAction(action.problem))
      const outcome = await work.then(toJson, refusedPost)
      const messageId = value !== null && 'item' in value ? value.item.messageId : null
      const stored = await conversation.exclusive(async (owner) => {
        // An append that failed may have been stored.
        if (conversation.seen.outcomeOf(id) === undefined)
          await owner.append({ kind: 'message_taken', postId: id, messageId, outcome })
        return true
      })
      if (stored === null) throw new HarnessError('run_owned', 'The thread has another owner.')
    }
    return value?.kind === 'cancel' && value.queue === 'drop'
  }
}

/** The outcome of a post, for its sender. Throws what the owner refused. */
function postedOutcome(taken: JsonObject | null): ActionOutcome | null {
  if (taken === null) return null
  const { error, message } = taken
  if (typeof error === 'string' && typeof message === 'string')
    throw errorOf({ code: error as StoredError['code'], message })
  const outcome = parseAs(OUTCOME, taken, 'the outcome of the post')
  if (!outcome.ok) throw invalidAction(outcome.problem)
  return outcome.value
}

/** Errors after which the post is dealt with later, or by another owner. */
const TO_REPEAT: ReadonlySet<string> = new Set(['closed', 'interrupted', 'run_exists', 'run_owned', 'store_failure'])

/** Why the post was refused, for its sender. Other errors are thrown. */
function refusedPost(error: unknown): JsonObject {
  const isCoded = error instanceof SessionError || error instanceof HarnessError
  if (!isCoded || TO_REPEAT.has(error.code)) throw error
  return { error: error.code, message: error.message }
}

function invalidAction(problem: string): SessionError {
  return new SessionError('invalid_options', problem)
}
