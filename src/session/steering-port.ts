import type { IdentifiedMessage, InputMessage, InputPort } from '../index.js'
import type { QueueItem } from './thread/thread-events.js'

/** The messages for a run in progress. Their entries carry the ids of the messages. */
export class SteeringPort implements InputPort {
  #waiting: QueueItem[] = []
  readonly #listeners = new Set<() => void>()

  push(item: QueueItem): void {
    this.#waiting.push(item)
    for (const listener of this.#listeners) listener()
  }

  get waiting(): number {
    return this.#waiting.length
  }

  take(): readonly IdentifiedMessage[] {
    const taken = this.#waiting
    this.#waiting = []
    return taken.map(({ messageId, content }) => ({ messageId, content }))
  }

  onSend(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  send(): never {
    throw new TypeError('A message to a run of a thread goes through `chat.steer`.')
  }

  close(): readonly InputMessage[] {
    return []
  }
}
