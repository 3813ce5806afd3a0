import type { QueueItem } from './thread/thread-events.js'

interface QueueMeans {
  readonly items: () => readonly QueueItem[]
  readonly isHeld: () => boolean
  readonly remove: (messageIds: readonly string[]) => Promise<readonly QueueItem[]>
  readonly release: () => Promise<void>
}

/** The queue of a conversation. */
export class ChatQueue {
  readonly #means: QueueMeans

  constructor(means: QueueMeans) {
    this.#means = means
  }

  /** True if no message of the queue begins a run until one is sent, or the queue is released. */
  get held(): boolean {
    return this.#means.isHeld()
  }

  list(): readonly QueueItem[] {
    return this.#means.items()
  }

  /** Removes a message; gives it, or undefined if it is not in the queue. */
  async remove(messageId: string): Promise<QueueItem | undefined> {
    const [removed] = await this.#means.remove([messageId])
    return removed
  }

  /** Removes all messages; gives them. */
  clear(): Promise<readonly QueueItem[]> {
    return this.#means.remove(this.list().map(({ messageId }) => messageId))
  }

  /** Continues a held queue. */
  release(): Promise<void> {
    return this.#means.release()
  }
}
