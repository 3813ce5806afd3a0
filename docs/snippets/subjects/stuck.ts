import type { LogStore, RunSummary } from 'thinharness'

/** Runs that have not ended, and in which nothing has happened for so many minutes. */
export async function quietRuns(log: LogStore, minutes: number): Promise<readonly RunSummary[]> {
  const runs: RunSummary[] = []
  const status = ['running', 'interrupted', 'queued', 'paused'] as const
  for await (const run of log.list({ kind: 'run', status, parentRunId: null }))
    if (Date.parse(run.updatedAt) < Date.now() - minutes * 60_000) runs.push(run)
  return runs
}
