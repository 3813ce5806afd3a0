import { setTimeout as delay } from 'node:timers/promises'
import type { DurableEvent, RunLog } from '../index.js'

export interface FollowOptions {
  /** Number of the last event that the reader has seen. Default 0: all events. */
  readonly after?: number | undefined
  /** Stops waiting. */
  readonly signal?: AbortSignal | undefined
}

/** The time before the log is read again, in ms: shorter after an event, longer while nothing happens. */
const SHORT_WAIT_MS = 200
const LONG_WAIT_MS = 2000

/**
 * The durable events of a run as they are stored, in whatever process it runs. Ends after the run's end; and after a
 * pause, or if there are no events, once `isIdle` resolves to true: no process is going to continue the run.
 */
export async function* followRun(
  log: RunLog,
  runId: string,
  { after = 0, signal, isIdle }: FollowOptions & { readonly isIdle: () => Promise<boolean> },
): AsyncGenerator<DurableEvent, void, undefined> {
  let seen = after
  let waitMs = SHORT_WAIT_MS
  while (signal?.aborted !== true) {
    // Asked before reading, so that all events stored before the run became idle are read.
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

/** True if no event follows this one. */
function isEnd(event: DurableEvent): boolean {
  return event.kind === 'run_failed' || (event.kind === 'run_completed' && event.pending.length === 0)
}
