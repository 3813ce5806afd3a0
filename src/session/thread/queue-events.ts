import { readBy } from './reduce-chat.js'
import type { ChatSnapshot } from './reduce-chat.js'
import type { NewThreadEvent } from './thread-events.js'

/** How the latest run has ended. */
interface RunEnd {
  /** Its log has no event: its message is a message of the queue again. */
  readonly isNew: boolean
  readonly holds: boolean
}

/**
 * The events after the end of a stretch: messages that were not read are in the queue again. Those of a run that waits, or whose
 * end is not stored, may still be read.
 */
export function eventsAfterRun(snapshot: ChatSnapshot, { isNew, holds }: RunEnd): readonly NewThreadEvent[] {
  const { run, queue, held } = snapshot.thread
  const events = isNew ? requeued([...(run?.messageIds ?? []), ...unreadIn(snapshot)]) : eventsAfterEnd(snapshot)
  const isHeld = holds && !held && queue.length + events.length > 0
  return isHeld ? [...events, { kind: 'queue_held' }] : events
}

/** After a crash: messages that the last run did not read are in the queue again, which is held. */
export function eventsAfterCrash(snapshot: ChatSnapshot): readonly NewThreadEvent[] {
  const { queue, held } = snapshot.thread
  const events = eventsAfterEnd(snapshot)
  return !held && queue.length + events.length > 0 ? [...events, { kind: 'queue_held' }] : events
}

/** After the end of a run: messages that it did not read are in the queue again. */
export function eventsAfterEnd(snapshot: ChatSnapshot): readonly NewThreadEvent[] {
  return snapshot.phase === 'idle' ? requeued(unreadIn(snapshot)) : []
}

/** The first of them becomes the head of the queue. */
function requeued(messageIds: readonly string[]): readonly NewThreadEvent[] {
  return messageIds.toReversed().map((messageId) => ({ kind: 'message_requeued', messageId }))
}

/** Ids of the steering messages that the latest run has not read. */
function unreadIn({ thread, runs }: ChatSnapshot): readonly string[] {
  const read = readBy(runs.at(-1))
  return thread.steering.map(({ messageId }) => messageId).filter((messageId) => !read.has(messageId))
}
