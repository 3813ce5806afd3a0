import type { PendingItem } from '../../index.js'
import type { FollowRunOptions } from '../hub/follow.js'
import type { AnyRunEvent } from '../projection.js'
import type { Taken, ThreadPort } from './back-end.js'

/** The events of the run that a request has begun, or waits for; none if its message was removed. */
export async function* runBatches(
  thread: ThreadPort,
  run: Taken['run'],
  options: FollowRunOptions,
): AsyncGenerator<readonly AnyRunEvent[], void, undefined> {
  const found = await run
  if (found === null || options.signal?.aborted === true) return
  yield* thread.follow(found.runId, { ...options, beyond: found.beyond })
}

/** The items that a run has asked people about. */
export async function askedIn(thread: ThreadPort, runId: string): Promise<readonly PendingItem[]> {
  const items: PendingItem[] = []
  for await (const event of thread.stored(runId))
    if (event.kind === 'approval_requested' && event.runId === runId) items.push(...event.items)
  return items
}
