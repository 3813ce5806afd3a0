import { codedError, errorOf, storedError } from '../errors.js'
import type { HarnessError } from '#contracts/errors.js'
import type { RunEvent } from '#core/state/events.js'
import type { SessionError, StoredError } from '../errors.js'
import type { ThreadEvent } from '../thread/thread-events.js'
import type { ThreadState } from '../thread/thread-state.js'
import type { ChatSnapshot } from '../thread/reduce-chat.js'
import type { MessageEnds, MessageOutcome } from './message.js'

/** The one place where an error on the way to beginning or continuing a run of a conversation is noted, and reaches whoever asked. */
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

  /** A run was left, or its end could not be stored: what it has not read, and what is behind it, waits until somebody continues it. */
  leave({ thread }: ChatSnapshot, end: MessageOutcome): void {
    const { error = this.#last } = end
    const why = error === null ? {} : { error }
    for (const { messageId } of [...thread.steering, ...thread.queue])
      this.#ends.settle(messageId, { status: 'queued', runId: null, text: '', ...why })
  }

  /** Throws the error of the latest attempt. */
  check(): void {
    if (this.#last !== null) throw this.#last
  }

  /** What is thrown by `check`, as events have it; null if nothing is. */
  of(check: () => unknown): StoredError | null {
    try {
      check()
      return null
    } catch (thrown) {
      return storedError(this.note(thrown))
    }
  }

  /** Another attempt begins. */
  clear(): void {
    this.#last = null
  }

  /** Settles the messages that no run could read, and those of the queue, which wait because of that. */
  tell(event: ThreadEvent | RunEvent, chat: { readonly state: ThreadState }): void {
    if (event.kind !== 'message_requeued' && event.kind !== 'run_refused' && event.kind !== 'queue_held') return
    if (event.error === undefined) return
    const { code, message } = event.error
    const error = this.#last?.code === code && this.#last.message === message ? this.#last : errorOf(event.error)
    if (event.kind === 'message_requeued') this.#ends.fail(event.messageId, error)
    else this.#ends.leaveQueued(chat.state.queue, error)
  }
}
