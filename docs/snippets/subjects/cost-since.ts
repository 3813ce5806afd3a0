import type { LogStore } from 'thinharness'

/** What the runs of a customer have cost since a day, in US dollars, child runs included. The newest runs come first. */
export async function costSince(log: LogStore, customer: string, day: Date): Promise<number> {
  let costUsd = 0
  for await (const { startedAt, usage } of log.list({ kind: 'run', labels: { customer }, parentRunId: null })) {
    if (Date.parse(startedAt) < day.getTime()) break
    costUsd += usage.costUsd ?? 0
  }
  return costUsd
}
