import { codedError, errorOf } from '../errors.js'
import type { HarnessError } from '#contracts/errors.js'
import type { RunEvent } from '#core/state/events.js'
import type { SessionError } from '../errors.js'
import type { QueueItem, ThreadEvent } from '../thread/thread-events.js'
import type { MessageEnds } from './message.js'

/** Why a run of a conversation could not begin or continue in this process, and how the senders of messages learn it. */
export class Refusals {
  #last: HarnessError | SessionError | null = null
  readonly #ends: MessageEnds

  constructor(ends: MessageEnds) {
    this.#ends = ends
  }

  /** Of the latest attempt; null if that succeeded. */
  get last(): Error | null {
    return this.#last
  }

  note(thrown: unknown): HarnessError | SessionError {
    this.#last = codedError(thrown)
    return this.#last
  }

  /** Throws the error of the latest attempt. */
  check(): void {
    if (this.#last !== null) throw this.#last
  }

  /** Another attempt begins. */
  clear(): void {
    this.#last = null
  }

  /** Settles the messages that no run could read, and those of the queue, which wait because of that. */
  tell(event: ThreadEvent | RunEvent, queue: readonly QueueItem[]): void {
    if (event.kind !== 'message_requeued' && event.kind !== 'run_refused' && event.kind !== 'queue_held') return
    if (event.error === undefined) return
    const { code, message } = event.error
    const error = this.#last?.code === code && this.#last.message === message ? this.#last : errorOf(event.error)
    if (event.kind === 'message_requeued') this.#ends.fail(event.messageId, error)
    else this.#ends.leaveQueued(queue, error)
  }
}
