import { HarnessError } from 'thinharness'
import type { Harness, HarnessResult, LogStore } from 'thinharness'

/** At startup: recovers every interrupted run. Runs that another process owns are skipped. */
export async function recoverAll(harness: Harness, log: LogStore): Promise<HarnessResult[]> {
  const results: HarnessResult[] = []
  for await (const { runId } of log.list({ kind: 'run', status: 'interrupted', parentRunId: null })) {
    try {
      results.push(await harness.recover(runId))
    } catch (error) {
      if (!(error instanceof HarnessError && error.code === 'run_owned')) console.error(runId, error)
    }
  }
  return results
}
