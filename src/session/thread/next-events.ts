import type { StoredError } from '../errors.js'
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
  return withHold(snapshot.thread, requeueEvents(messagesWithoutRun(snapshot)), holds)
}

/**
 * The events after a run that could not begin or continue. Its messages are kept, with the error, and the queue is held; a run that
 * has begun, or waits, stays as it is.
 */
export function eventsOfRefusal(snapshot: ChatSnapshot, error: StoredError): readonly NewThreadEvent[] {
  const { thread, runs } = snapshot
  const run = runs.at(-1)
  if (run === undefined || thread.run === null) return []
  const { refused: last } = thread
  const isKnown = last?.code === error.code && last.message === error.message && last.seq === run.seq
  const refused = { kind: 'run_refused', runId: run.runId, error } as const
  if (run.status === 'paused') return isKnown ? [] : [refused]
  const [begun, messageIds] = run.seq === 0 ? [[], messagesWithoutRun(snapshot)] : [[refused], unreadSteering(snapshot)]
  if (isKnown && messageIds.length === 0) return []
  const failed = messageIds.map((messageId) => ({ kind: 'message_requeued', messageId, error }) as const)
  return [...begun, ...failed.toReversed(), { kind: 'queue_held', error }]
}

/** The events that let the queue begin runs again, also with the messages that no run could read. */
export function eventsOfRelease({ thread: { queue, held } }: ChatSnapshot): readonly NewThreadEvent[] {
  // In the order in which they were sent.
  const failed = queue.filter(({ error }) => error !== undefined).toSorted((a, b) => (a.at < b.at ? -1 : 1))
  const released: readonly NewThreadEvent[] = held ? [{ kind: 'queue_released' }] : []
  return [...requeueEvents(failed.map(({ messageId }) => messageId)), ...released]
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

function messagesWithoutRun(snapshot: ChatSnapshot): readonly string[] {
  return [...(snapshot.thread.run?.messageIds ?? []), ...unreadSteering(snapshot)]
}

/** Ids of the steering messages that the latest run has not read. */
function unreadSteering({ thread, runs }: ChatSnapshot): readonly string[] {
  const read = readBy(runs.at(-1))
  return thread.steering.map(({ messageId }) => messageId).filter((messageId) => !read.has(messageId))
}
