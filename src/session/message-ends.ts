import { HarnessError } from '../index.js'
import type { HarnessResult } from '../index.js'
import { readBy, textOfRun } from './thread/reduce-chat.js'
import type { ChatSnapshot } from './thread/reduce-chat.js'

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

/** May give a promise of whether the run continues: until then, the senders of its messages wait. Must not reject. */
export type StopListener = (end: MessageOutcome) => Promise<boolean> | null

interface Waiting {
  readonly promise: Promise<MessageEnd>
  readonly resolve: (end: MessageEnd) => void
  /** Senders of the message. */
  senders: number
}

/** The ends of messages that their senders wait for. */
export class MessageEnds {
  readonly #waiting = new Map<string, Waiting>()

  get areAwaited(): boolean {
    return this.#waiting.size > 0
  }

  /** Resolves when the message is settled. */
  of(messageId: string): Promise<MessageEnd> {
    const known = this.#waiting.get(messageId)
    if (known !== undefined) {
      known.senders += 1
      return known.promise
    }
    let resolve: Waiting['resolve'] = () => undefined
    const promise = new Promise<MessageEnd>((settle) => (resolve = settle))
    this.#waiting.set(messageId, { promise, resolve, senders: 1 })
    return promise
  }

  settle(messageId: string, outcome: MessageOutcome): void {
    this.#waiting.get(messageId)?.resolve({ messageId, ...outcome })
    this.#waiting.delete(messageId)
  }

  /** Settles the messages that the stored events have settled. `isKnown`: the thread has the message. */
  settleStored(snapshot: ChatSnapshot, isKnown: (messageId: string) => boolean): void {
    for (const messageId of [...this.#waiting.keys()]) {
      const end = isKnown(messageId) ? endIn(snapshot, messageId) : null
      if (end !== null) this.settle(messageId, end)
    }
  }

  /** A sender waits no more: its message was refused. */
  forget(messageId: string): void {
    const waiting = this.#waiting.get(messageId)
    if (waiting === undefined) return
    waiting.senders -= 1
    if (waiting.senders === 0) this.#waiting.delete(messageId)
  }

  settleRest(outcome: MessageOutcome): void {
    for (const messageId of [...this.#waiting.keys()]) this.settle(messageId, outcome)
  }
}

/** The end of a message that the thread has, according to its events; null if it has none yet. */
function endIn({ runs, queue, thread }: ChatSnapshot, messageId: string): MessageOutcome | null {
  const run = runs.findLast((each) => each.messageIds.includes(messageId) || readBy(each).has(messageId))
  if (run === undefined) {
    const waits = [...queue, ...thread.steering].some((item) => item.messageId === messageId)
    return waits ? null : { status: 'removed', runId: null, text: '' }
  }
  const { status, runId, error } = run
  if (status === 'begun' || status === 'running') return null
  const failure = error === null ? {} : { error: new HarnessError(error.code, error.message) }
  return { status, runId, text: textOfRun(run), ...failure }
}
