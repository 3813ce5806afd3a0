import type { LogStore } from 'thinharness'

const HOUR_MS = 3_600_000

/** Dollars that the runs of the last hour have cost, and of an average hour of the day before it. From a timer. */
export async function costOfHours(log: LogStore): Promise<{ readonly now: number; readonly usual: number }> {
  let now = 0
  let before = 0
  for await (const { startedAt, usage } of log.list({ kind: 'run', parentRunId: null })) {
    const ageMs = Date.now() - Date.parse(startedAt)
    if (ageMs > 25 * HOUR_MS) break
    if (ageMs <= HOUR_MS) now += usage.costUsd ?? 0
    else before += usage.costUsd ?? 0
  }
  return { now, usual: before / 24 }
}
