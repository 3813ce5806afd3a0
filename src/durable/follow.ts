import { setTimeout as delay } from 'node:timers/promises'
import type { DurableEvent, RunLog } from '../index.js'

export interface FollowOptions {
  /** Number of the first event. Default 1. */
  readonly from?: number
  /** Stops waiting. */
  readonly signal?: AbortSignal
}

/** How long is waited before the next look, in ms: the shorter after an event, the longer when long nothing has come. */
const SHORT_WAIT_MS = 200
const LONG_WAIT_MS = 2000

/**
 * The durable events of a run as they come into its log, whoever runs it. Ends behind the run's end; and behind a pause,
 * or where there is nothing, once `isIdle` says that nobody is going to take the run on.
 */
export async function* followRun(
  log: RunLog,
  runId: string,
  { from = 1, signal, isIdle }: FollowOptions & { readonly isIdle: () => Promise<boolean> },
): AsyncGenerator<DurableEvent, void, undefined> {
  let next = from
  let waitMs = SHORT_WAIT_MS
  while (signal?.aborted !== true) {
    // Asked before reading: what comes into the log until the run is idle is then read.
    const idle = waitMs > SHORT_WAIT_MS && (await isIdle())
    let last: DurableEvent | undefined
    for await (const event of log.read(runId, next)) {
      yield event
      next = event.seq + 1
      last = event
    }
    if (last !== undefined && isEnd(last)) return
    if (last === undefined && idle) return
    waitMs = last === undefined ? Math.min(waitMs * 1.5, LONG_WAIT_MS) : SHORT_WAIT_MS
    await delay(waitMs, undefined, signal === undefined ? {} : { signal }).catch(() => undefined)
  }
}

/** That nothing follows this event. */
function isEnd(event: DurableEvent): boolean {
  return event.kind === 'run_failed' || (event.kind === 'run_completed' && event.pending.length === 0)
}
