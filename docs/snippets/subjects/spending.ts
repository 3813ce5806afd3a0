import { Budget } from 'thinharness'
import type { LogStore } from 'thinharness'

/** What the runs of a user have cost on a day (UTC, today by default), in US dollars. The newest runs come first. */
export async function spentOn(log: LogStore, resourceId: string, day = today()): Promise<number> {
  let costUsd = 0
  for await (const { startedAt, usage } of log.list({ kind: 'run', resourceId, parentRunId: null })) {
    if (startedAt < day) break
    if (startedAt.startsWith(day)) costUsd += usage.costUsd ?? 0
  }
  return costUsd
}

/** By day and user. A process that runs for months removes those of earlier days. */
const budgets = new Map<string, Budget>()

/** One budget for each user and day: runs at the same time share it. */
export async function budgetOf(log: LogStore, resourceId: string, costUsd = 2): Promise<Budget> {
  const key = `${today()} ${resourceId}`
  const spentUsd = budgets.has(key) ? 0 : await spentOn(log, resourceId)
  const budget = budgets.get(key) ?? new Budget({ costUsd, spentUsd })
  budgets.set(key, budget)
  return budget
}

function today(): string {
  return new Date().toISOString().slice(0, 10)
}
