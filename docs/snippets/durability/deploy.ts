import { HarnessError } from 'thinharness'
import type { Harness, HarnessResult, LogStore } from 'thinharness'

/** Ends the process at `SIGTERM`: running tool calls may end, and the next process continues the runs. */
export function closeOnSignal(harness: Harness, stopAccepting: () => Promise<void>): void {
  process.once('SIGTERM', () => {
    void stopAccepting()
      .then(() => harness.close({ timeoutMs: 20_000 }))
      .then(() => process.exit(0))
  })
}

/** When the next process starts, and for jobs that are delivered again: begins a run, or continues it. */
export async function runOnce(harness: Harness, log: LogStore, runId: string, prompt: string): Promise<HarnessResult> {
  const known = await log.inspect({ kind: 'run', id: runId })
  return known === null ? harness.run(prompt, { runId }) : harness.recover(runId)
}

/** True if a run was left and should be continued by another process. */
export function wasLeft(error: unknown): boolean {
  return error instanceof HarnessError && error.code === 'interrupted'
}
