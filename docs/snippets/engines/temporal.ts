import type { Harness, LogStore } from 'thinharness'
import { performStretch } from 'thinharness/durable'
import type { StretchEnding, StretchWork } from 'thinharness/durable'

/** The part of `Context.current()` of `@temporalio/activity` that is used here. */
interface TemporalContext {
  readonly cancellationSignal: AbortSignal
  heartbeat(): void
}

const HEARTBEAT_MS = 10_000

/** Activities for the worker. The workflow proxies them with a `heartbeatTimeout` of one minute, and retries. */
export function runActivities(harness: Harness, log: LogStore, current: () => TemporalContext) {
  return {
    async carryOut(work: StretchWork): Promise<StretchEnding> {
      const context = current()
      const beat = setInterval(() => context.heartbeat(), HEARTBEAT_MS)
      try {
        return await performStretch(work, { harness, log, signal: context.cancellationSignal })
      } finally {
        clearInterval(beat)
      }
    },
  }
}
