import { setTimeout as sleep } from 'node:timers/promises'
import { HarnessError } from 'thinharness'
import type { Answer, Harness, HarnessResult, LogStore, PendingItem } from 'thinharness'
import { dbosRuns } from 'thinharness/durable/dbos'

interface EngineRun<Output> {
  readonly harness: Harness<Output>
  readonly log: LogStore
  readonly url: string
  readonly runId: string
  readonly answersTo: (pending: readonly PendingItem[]) => readonly Answer[]
}

/**
 * Executes a run to its end on DBOS, whose processes take it over from each other. Each run has a queue of its own, so that
 * no process gets the work of another scenario.
 */
export async function completeOnEngine<Output>(run: EngineRun<Output>): Promise<HarnessResult<Output>> {
  const { harness, log, url, runId, answersTo } = run
  const launch = { databaseUrl: url }
  const runs = await dbosRuns({ harness, log, name: runId, launch, queue: { pollMs: 20 }, takeOverEveryMs: 20 })
  const started = await runs.get(runId).catch(() => runs.start('top', { runId }))
  let result = await started.result()
  while (result.status === 'paused') {
    await runs.answer(runId, answersTo(result.pending)).catch(ignoreAnswered)
    result = await (await runs.get(runId)).result()
  }
  await runs.close()
  return result
}

/** The previous process has answered and was killed: its answers are being processed. */
async function ignoreAnswered(error: unknown): Promise<void> {
  const isExpected =
    error instanceof HarnessError && (error.code === 'invalid_state' || error.code === 'invalid_answer')
  if (!isExpected) throw error
  await sleep(20)
}
