import { readBy } from './reduce-chat.js'
import type { ChatSnapshot } from './reduce-chat.js'
import type { NewThreadEvent } from './thread-events.js'

/**
 * The events after the end of a stretch, or a crash: messages that were not read are in the queue again. Those of a run that waits, or
 * whose end is not stored, may still be read. `holds`: the queue is held, unless it is empty.
 */
export function eventsAfterRun(snapshot: ChatSnapshot, holds: boolean): readonly NewThreadEvent[] {
  return withHold(snapshot.thread, eventsAfterEnd(snapshot), holds)
}

/** The events after a run whose log has no event: its message is a message of the queue again. */
export function eventsWithoutRun(snapshot: ChatSnapshot, holds: boolean): readonly NewThreadEvent[] {
  const messageIds = [...(snapshot.thread.run?.messageIds ?? []), ...unreadSteering(snapshot)]
  return withHold(snapshot.thread, requeueEvents(messageIds), holds)
}

/** After the end of a run: messages that it did not read are in the queue again. */
export function eventsAfterEnd(snapshot: ChatSnapshot): readonly NewThreadEvent[] {
  return snapshot.phase === 'idle' ? requeueEvents(unreadSteering(snapshot)) : []
}

function withHold(
  { queue, held }: ChatSnapshot['thread'],
  events: readonly NewThreadEvent[],
  holds: boolean,
): readonly NewThreadEvent[] {
  return holds && !held && queue.length + events.length > 0 ? [...events, { kind: 'queue_held' }] : events
}

/** The first of them becomes the head of the queue. */
function requeueEvents(messageIds: readonly string[]): readonly NewThreadEvent[] {
  return messageIds.toReversed().map((messageId) => ({ kind: 'message_requeued', messageId }))
}

/** Ids of the steering messages that the latest run has not read. */
function unreadSteering({ thread, runs }: ChatSnapshot): readonly string[] {
  const read = readBy(runs.at(-1))
  return thread.steering.map(({ messageId }) => messageId).filter((messageId) => !read.has(messageId))
}
