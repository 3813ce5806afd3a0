import { HarnessError } from 'thinharness'
import type { Harness, HarnessResult, RunStore } from 'thinharness'

/** When a service starts: goes on with all that the last process left. What another process has is left to it. */
export async function recoverAll(harness: Harness, log: RunStore): Promise<HarnessResult[]> {
  const results: HarnessResult[] = []
  for await (const { runId } of log.list({ status: 'interrupted', parentRunId: null })) {
    try {
      results.push(await harness.recover(runId).result)
    } catch (error) {
      if (!(error instanceof HarnessError && error.code === 'run_owned')) console.error(runId, error)
    }
  }
  return results
}
