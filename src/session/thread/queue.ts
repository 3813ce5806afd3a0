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

/** A message goes back to the front, from wherever it is: `begun` are those of the latest run. Null: there is none of that id. */
export function withRequeued(
  { queue, steering }: MessageQueue,
  { messageId, error }: ThreadEventOf<'message_requeued'>,
  begun: readonly QueueItem[],
): Partial<MessageQueue> | null {
  const others = isNot(messageId)
  const item = [...steering, ...queue, ...begun].find((each) => !others(each))
  if (item === undefined) return null
  return { queue: [{ ...item, error }, ...queue.filter(others)], steering: steering.filter(others) }
}

/** A run begins with these messages: its items, and the queue without them. */
export function takenFrom(
  { queue }: MessageQueue,
  messageIds: readonly string[],
): Pick<MessageQueue, 'queue' | 'steering'> & { readonly items: readonly QueueItem[] } {
  const isTaken = ({ messageId }: QueueItem): boolean => messageIds.includes(messageId)
  return {
    items: queue.filter(isTaken),
    queue: queue.filter((item) => !isTaken(item)),
    // The earlier run read the rest: otherwise they would be in the queue again.
    steering: [],
  }
}

function isNot(messageId: string): (item: QueueItem) => boolean {
  return (item) => item.messageId !== messageId
}
