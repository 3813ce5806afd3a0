import type { QueueItem, ThreadEventOf } from './thread-events.js'

/** The messages of a thread that no run has read yet. */
export interface MessageQueue {
  /** In the order in which they begin runs. */
  readonly queue: readonly QueueItem[]
  /** None of them begins a run until the queue is released. */
  readonly held: boolean
  /** Messages for the latest run; whether it read them is in its log. */
  readonly steering: readonly QueueItem[]
}

/** The message that the queue sends next; undefined if it is empty, or has none but those that no run could read. */
export function nextMessage({ queue }: Pick<MessageQueue, 'queue'>): QueueItem | undefined {
  return queue.find(({ error }) => error === undefined)
}

/** No message of the queue begins a run. */
export function isHeld({ held, queue }: Pick<MessageQueue, 'queue' | 'held'>): boolean {
  return held || (queue.length > 0 && queue.every(({ error }) => error))
}

/** The queue with a message at its end, or a message for the latest run more. */
export function withMessage(
  { queue, steering }: MessageQueue,
  { messageId, content, at, by, mode, model, metadata, steers }: ThreadEventOf<'message_queued'>,
): Partial<MessageQueue> {
  const item = { messageId, content, at, by, mode, model, metadata }
  return steers === undefined ? { queue: [...queue, item] } : { steering: [...steering, item] }
}

export function withoutMessage({ queue, steering }: MessageQueue, messageId: string): Partial<MessageQueue> {
  return { queue: queue.filter(isNot(messageId)), steering: steering.filter(isNot(messageId)) }
}

/** The latest run, as far as messages may come back from it. */
interface BegunRun {
  readonly messageIds: readonly string[]
  /** The item that it began with. */
  readonly items: readonly QueueItem[]
}

/**
 * A message goes back to the front. One of a run that never began takes that run back with it: the next run continues what it
 * would have continued.
 */
export function withRequeued(
  { queue, steering, run }: MessageQueue & { readonly run: BegunRun | null },
  { messageId, error }: ThreadEventOf<'message_requeued'>,
): Partial<MessageQueue> & { readonly run?: null } {
  const others = isNot(messageId)
  const item = [...steering, ...queue, ...(run?.items ?? [])].find((each) => !others(each))
  if (item === undefined) return {}
  const requeued = { queue: [{ ...item, error }, ...queue.filter(others)], steering: steering.filter(others) }
  return run?.messageIds.includes(messageId) ? { ...requeued, run: null } : requeued
}

function isNot(messageId: string): (item: QueueItem) => boolean {
  return (item) => item.messageId !== messageId
}
