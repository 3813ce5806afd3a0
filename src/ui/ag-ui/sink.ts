import { AgUiMessages, snapshotsOf } from './message-fold.js'
import type { HeldMessage } from './message-fold.js'
import type { AgUiEvent } from './event.js'
import type { AgUiMessage } from './message.js'

/** Where the events of a stream go: to the reader, and into the messages that the reader has after them. */
export class Sink {
  readonly #messages: AgUiMessages
  #events: AgUiEvent[] = []
  /** False until the stream has begun: the reader gets no events, but the messages count. */
  isOpen = false

  constructor(history: readonly AgUiMessage[]) {
    this.#messages = new AgUiMessages(history)
  }

  get messages(): readonly AgUiMessage[] {
    return this.#messages.all
  }

  tell(...events: readonly AgUiEvent[]): void {
    for (const event of events) {
      this.#messages.add(event)
      if (this.isOpen) this.#events.push(event)
    }
  }

  /** A message that the reader has, or gets with the next snapshot. */
  has(message: AgUiMessage): void {
    this.#messages.push(message)
  }

  /** Takes reasoning and replies back; of calls those with these ids. */
  withdraw(messageIds: readonly string[], callIds: readonly string[]): void {
    const held = this.#messages.all
    this.#messages.withdraw(new Set(messageIds), new Set(callIds))
    this.snapshot(held)
  }

  /** Makes the messages of a reader who has `held` equal to those here. Default: nothing has changed. */
  snapshot(held: readonly HeldMessage[] = this.#messages.all): void {
    this.tell(...snapshotsOf(this.#messages.all, held))
  }

  /** The events since the last time. */
  take(): readonly AgUiEvent[] {
    const events = this.#events
    this.#events = []
    return events
  }
}
