import { setTimeout as delay } from 'node:timers/promises'
import type { DurableEvent, RunLog } from '../index.js'

export interface FollowOptions {
  /** Number of the last event that the reader has seen. Default 0: all events. */
  readonly after?: number | undefined
  /** Stops waiting. */
  readonly signal?: AbortSignal | undefined
}

/** How long is waited before the next look, in ms: the shorter after an event, the longer when long nothing has come. */
const SHORT_WAIT_MS = 200
const LONG_WAIT_MS = 2000

/**
 * The durable events of a run as they are stored, in whatever process it runs. Ends after the run's end; and after a
 * pause, or if there are no events, once `isIdle` says that no process is going to continue the run.
 */
export async function* followRun(
  log: RunLog,
  runId: string,
  { after = 0, signal, isIdle }: FollowOptions & { readonly isIdle: () => Promise<boolean> },
): AsyncGenerator<DurableEvent, void, undefined> {
  let seen = after
  let waitMs = SHORT_WAIT_MS
  while (signal?.aborted !== true) {
    // Asked before reading: events that are stored until the run is idle are read.
    const idle = waitMs > SHORT_WAIT_MS && (await isIdle())
    let last: DurableEvent | undefined
    for await (const event of log.read({ kind: 'run', id: runId }, { after: seen })) {
      yield event
      seen = event.seq
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
