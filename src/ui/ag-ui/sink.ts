import { AgUiMessages, snapshotsOf } from './message-fold.js'
import type { HeldMessage } from './message-fold.js'
import type { AgUiEvent } from './event.js'
import type { AgUiMessage } from './message.js'

/** Parts of messages, by their ids. */
export interface Ids {
  readonly messageIds: readonly string[]
  readonly callIds: readonly string[]
}

/** The part of a reply that has arrived. */
export interface Arriving extends Ids {
  readonly events: readonly AgUiEvent[]
}

interface Reply {
  /** Ends what the reader has open of the reply that is arriving; null if none is. */
  interrupt(): Arriving | null
}

/** Where the events of a stream go: to the reader, and into the messages that the reader has after them. */
export class Sink {
  readonly #messages: AgUiMessages
  readonly #replies: Reply[] = []
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

  /** The replies of one more run. */
  reads(reply: Reply): void {
    this.#replies.push(reply)
  }

  /**
   * A snapshot in the middle of the stream, without reasoning, replies and calls that are taken back. Replies of other runs that are
   * arriving are not in it and are told again: a client appends to the messages of a snapshot.
   */
  withdraw(taken: Ids = NOTHING): void {
    const arriving = this.isOpen ? this.#replies.flatMap((reply) => reply.interrupt() ?? []) : []
    const held = this.#messages.all
    const all = [taken, ...arriving]
    this.#messages.withdraw(
      new Set(all.flatMap(({ messageIds }) => messageIds)),
      new Set(all.flatMap(({ callIds }) => callIds)),
    )
    this.snapshot(held)
    for (const { events } of arriving) this.tell(...events)
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

const NOTHING: Ids = { messageIds: [], callIds: [] }
