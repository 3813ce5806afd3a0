import { HarnessError } from 'thinharness'
import type { Harness, LogStore } from 'thinharness'
import { setTimeout as delay } from 'node:timers/promises'

/** Begins runs that wait, and recovers those that were left, one after the other. Any number of workers may do so. */
export async function work(harness: Harness, log: LogStore, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    // Fair between customers: the two oldest of each.
    const waiting = await log.waiting({ limit: 20, perTenant: 2 })
    for (const { runId } of waiting) {
      await harness.recover(runId).catch((error: unknown) => {
        // Another worker was faster.
        if (!(error instanceof HarnessError && error.code === 'run_owned')) console.error(runId, error)
      })
    }
    if (waiting.length === 0) await delay(1000, undefined, { signal }).catch(() => undefined)
  }
}
