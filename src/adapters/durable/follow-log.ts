import type { DurableEvent } from '#core/state/events.js'
import type { FollowOptions, LogStore, RunLog } from '#core/log/log.js'
import { isAborted } from '#util/abort.js'
import { pollEvents } from '#util/queue/polled.js'
import { untilOver } from '#util/queue/tail.js'

/** The time before a log without `follow` is read again, in ms: shorter after an event, longer while nothing happens. */
const SHORTEST_WAIT_MS = 200
const LONGEST_WAIT_MS = 2000

/**
 * The durable events of a run as they are stored, in whatever process it runs. Ends after the run's end; and after a
 * pause, or if there are no events, once `isIdle` resolves to true: no process is going to continue the run.
 */
export async function* followLog(
  log: RunLog | LogStore,
  runId: string,
  { after = 0, signal, isIdle }: FollowOptions & { readonly isIdle: () => Promise<boolean> },
): AsyncGenerator<DurableEvent, void, undefined> {
  const ref = { kind: 'run', id: runId } as const
  const readEvents = (last: number): AsyncIterable<DurableEvent> => log.read(ref, { after: last })
  const followEvents = (over: AbortSignal): AsyncIterable<DurableEvent> =>
    (log as Partial<LogStore>).follow?.(ref, { after, signal: over }) ??
    pollEvents(readEvents, { after, signal: over, shortestMs: SHORTEST_WAIT_MS, longestMs: LONGEST_WAIT_MS })
  let last = after
  for await (const event of untilOver(followEvents, isIdle, signal)) {
    yield event
    last = event.seq
    if (isEnd(event)) return
  }
  // Events that were stored just before the run became idle.
  if (!isAborted(signal)) yield* readEvents(last)
}

/** True if no event follows this one. */
function isEnd(event: DurableEvent): boolean {
  return event.kind === 'run_failed' || (event.kind === 'run_completed' && event.pending.length === 0)
}
