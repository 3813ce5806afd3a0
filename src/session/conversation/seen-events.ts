import type { RunEvent } from '#core/state/events.js'
import type { JsonObject } from '#util/json.js'
import type { ThreadEvent } from '../thread/thread-events.js'

/** The messages, runs and posts of a thread, as far as its events name them. */
export class SeenEvents {
  /** Posts of this process that nobody is known to have dealt with. */
  readonly posted = new Set<string>()
  /** All runs that the thread has begun, whatever has become of them. */
  readonly runIds = new Set<string>()
  readonly #messageIds = new Set<string>()
  /** By the ids of the posts. */
  readonly #outcomes = new Map<string, JsonObject>()

  /** Gives the id of a message that the owner has refused. It is back with its sender, who may know only that it was posted. */
  note(event: ThreadEvent | RunEvent): string | null {
    if (event.kind === 'message_queued') this.#messageIds.add(event.messageId)
    if (event.kind === 'run_begun') this.runIds.add(event.runId)
    if (event.kind !== 'message_taken') return null
    const { postId, messageId, outcome } = event
    this.#outcomes.set(postId, outcome)
    this.posted.delete(postId)
    return messageId !== null && 'error' in outcome && !this.hasMessage(messageId) ? messageId : null
  }

  /** The message is stored. */
  hasMessage(messageId: string): boolean {
    return this.#messageIds.has(messageId)
  }

  /** What the owner has said about a post; undefined if it has not been dealt with. */
  outcomeOf(postId: string): JsonObject | undefined {
    return this.#outcomes.get(postId)
  }
}
