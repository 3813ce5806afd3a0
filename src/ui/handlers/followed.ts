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
