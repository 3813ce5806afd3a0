import { HarnessError } from '#contracts/errors.js'
import type { HarnessResult } from '#contracts/result.js'
import { deepFreeze, frozenCopy } from '#util/json.js'
import type { JsonObject } from '#util/json.js'
import type { ModelRef } from '#contracts/model-reference.js'
import type { Prompt } from '#harness/options.js'
import { abortSignal, leaf, oneOf, parseAs, partial, string } from '#util/validate.js'
import { errorOf, SessionError } from '../errors.js'
import { readBy, textOfRun } from '../thread/reduce-chat.js'
import type { ChatSnapshot } from '../thread/reduce-chat.js'
import type { QueueItem, ThreadMessage } from '../thread/thread-events.js'
import { messageContent } from './attachments.js'
import type { ContentLimits } from './attachments.js'

export type WhenBusy = 'queue' | 'steer' | 'decline' | 'reject'

export type SentStatus = 'started' | 'queued' | 'steered'

export interface SendOptions<Mode extends string = string> {
  /** The mode of this message alone. Default: the thread's. */
  readonly mode?: Mode | undefined
  /** The model of this message alone. Default: the thread's choice for the mode, else that of the mode's harness. */
  readonly model?: ModelRef | undefined
  /** If a run is in progress or waits. Default `queue`. */
  readonly whenBusy?: WhenBusy | undefined
  /** A message with an id that the thread has is not delivered again. Default: a new id. */
  readonly messageId?: string | undefined
  /** Becomes the metadata of its run. */
  readonly metadata?: object | undefined
  /** The author. */
  readonly by?: string | undefined
  /** Removes the message from the queue, or cancels its run. */
  readonly signal?: AbortSignal | undefined
}

/** A message that is stored. */
export interface Sent<Output = unknown> {
  readonly messageId: string
  /** `posted`: the thread's owner, another process, has not taken it yet. */
  readonly status: SentStatus | 'posted'
  /** Resolves when the run that reads the message pauses or ends. Never rejects. */
  readonly done: Promise<MessageEnd<Output>>
}

/** How the run of a message ended. Never a rejection. */
export interface MessageEnd<Output = unknown> {
  readonly messageId: string
  /**
   * `left`: the session was closed during the run, which can be recovered. `queued`: the message waits in the queue, which does not
   * continue by itself: a run before it could not begin or continue, for the reason `error`.
   */
  readonly status: 'completed' | 'paused' | 'failed' | 'cancelled' | 'removed' | 'left' | 'queued'
  /** The run that read the message; null if none did. */
  readonly runId: string | null
  /** The text of the last reply. */
  readonly text: string
  /** Of a run that completed or paused in this process. */
  readonly result?: HarnessResult<Output>
  /** Of a run that failed, or that could not begin or continue: then the message is in the queue. */
  readonly error?: Error
}

export type MessageOutcome = Omit<MessageEnd, 'messageId'>

/** May give a promise of whether the run continues: until then, the senders of its messages wait. Must not reject. */
export type StopListener = (end: MessageOutcome) => Promise<boolean> | null

export function newId(prefix: string): string {
  return `${prefix}_${globalThis.crypto.randomUUID().replaceAll('-', '')}`
}

/** A copy as a JSON object of plain data. */
export function toJson(value: object): JsonObject {
  return JSON.parse(JSON.stringify(value)) as JsonObject
}

const OPTIONS = partial<SendOptions>({
  mode: string,
  model: string,
  whenBusy: oneOf('queue', 'steer', 'decline', 'reject'),
  messageId: string,
  metadata: leaf<object>('an object', (value) => typeof value === 'object' && value !== null),
  by: string,
  signal: abortSignal,
})

/** A message as it is stored. Throws a `SessionError` for one that is refused. */
export function threadMessage(prompt: Prompt, options: SendOptions, limits: ContentLimits): ThreadMessage {
  const parsed = parseAs(OPTIONS, options, 'the options of a message')
  if (!parsed.ok) throw new SessionError('invalid_options', parsed.problem)
  const { mode, model, messageId, metadata, by } = options
  return {
    messageId: messageId ?? newId('msg'),
    content: frozenCopy(messageContent(prompt, limits)),
    by: by ?? null,
    mode: mode ?? null,
    model: model ?? null,
    metadata: deepFreeze(toJson(metadata ?? {})),
  }
}

interface Waiting {
  readonly promise: Promise<MessageEnd>
  readonly resolve: (end: MessageEnd) => void
  /** Senders of the message. */
  senders: number
}

/** The ends of messages that their senders wait for. */
export class MessageEnds {
  readonly #waiting = new Map<string, Waiting>()

  /** The ids of the messages. */
  get awaited(): readonly string[] {
    return [...this.#waiting.keys()]
  }

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
    let resolveNothing: Waiting['resolve'] = () => undefined
    const promise = new Promise<MessageEnd>((settle) => (resolveNothing = settle))
    this.#waiting.set(messageId, { promise, resolve: resolveNothing, senders: 1 })
    return promise
  }

  settle(messageId: string, outcome: MessageOutcome): void {
    this.#waiting.get(messageId)?.resolve(Object.freeze({ messageId, ...outcome }))
    this.#waiting.delete(messageId)
  }

  /** No run could read the message. */
  fail(messageId: string, error: Error): void {
    this.settle(messageId, { status: 'failed', runId: null, text: '', error })
  }

  /** The messages stay in the queue. */
  leaveQueued(queue: readonly QueueItem[], error: Error): void {
    for (const { messageId } of queue) this.settle(messageId, { status: 'queued', runId: null, text: '', error })
  }

  /** Settles the messages that the stored events have settled. `isKnown`: the thread has the message. */
  settleStored(snapshot: ChatSnapshot, isKnown: (messageId: string) => boolean): void {
    for (const messageId of [...this.#waiting.keys()]) {
      const end = isKnown(messageId) ? messageOutcome(snapshot, messageId) : null
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
function messageOutcome({ runs, queue, thread }: ChatSnapshot, messageId: string): MessageOutcome | null {
  const run = runs.findLast((each) => each.messageIds.includes(messageId) || readBy(each).has(messageId))
  if (run === undefined) {
    const waiting = [...queue, ...thread.steering].find((item) => item.messageId === messageId)
    if (waiting === undefined) return { status: 'removed', runId: null, text: '' }
    return waiting.error === undefined
      ? null
      : { status: 'failed', runId: null, text: '', error: errorOf(waiting.error) }
  }
  const { status, runId, error } = run
  if (status === 'begun' || status === 'running') return null
  const failure = error === null ? {} : { error: new HarnessError(error.code, error.message) }
  return { status, runId, text: textOfRun(run), ...failure }
}
