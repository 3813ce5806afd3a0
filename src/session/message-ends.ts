import type { HarnessResult } from '../index.js'

/** How the run of a message ended. Never a rejection. */
export interface MessageEnd<Output = unknown> {
  readonly messageId: string
  /** `left`: the session was closed during the run, which can be recovered. */
  readonly status: 'completed' | 'paused' | 'failed' | 'cancelled' | 'removed' | 'left'
  /** The run that read the message; null if none did. */
  readonly runId: string | null
  /** The text of the last reply. */
  readonly text: string
  /** Of a run that completed or paused in this process. */
  readonly result?: HarnessResult<Output>
  /** Of a run that failed. */
  readonly error?: Error
}

export type MessageOutcome = Omit<MessageEnd, 'messageId'>

interface Waiting {
  readonly promise: Promise<MessageEnd>
  readonly resolve: (end: MessageEnd) => void
}

/** The ends of messages that their senders wait for. */
export class MessageEnds {
  readonly #waiting = new Map<string, Waiting>()

  /** Resolves when the message is settled. */
  of(messageId: string): Promise<MessageEnd> {
    const known = this.#waiting.get(messageId)
    if (known !== undefined) return known.promise
    let resolve: Waiting['resolve'] = () => undefined
    const promise = new Promise<MessageEnd>((settle) => (resolve = settle))
    this.#waiting.set(messageId, { promise, resolve })
    return promise
  }

  settle(messageId: string, outcome: MessageOutcome): void {
    this.#waiting.get(messageId)?.resolve({ messageId, ...outcome })
    this.#waiting.delete(messageId)
  }

  /** Nobody waits: the message was refused. */
  forget(messageId: string): void {
    this.#waiting.delete(messageId)
  }

  settleRest(outcome: MessageOutcome): void {
    for (const messageId of [...this.#waiting.keys()]) this.settle(messageId, outcome)
  }
}
