import { fileLog, Harness } from 'thinharness'
import type { LogStore } from 'thinharness'
import { Sessions } from 'thinharness/session'
import { postgresLog } from 'thinharness/store/postgres'

/** A database in production, files on the machine of a developer. */
const connectionString = process.env['DATABASE_URL']
export const log: LogStore = connectionString === undefined ? fileLog('runs') : postgresLog({ connectionString })

export const harness = new Harness({ model: 'anthropic:claude-sonnet-5', log })
export const sessions = new Sessions({ harness, log })

/** From a timer, once a day: removes runs that ended more than 30 days ago. */
export async function removeOldRuns(): Promise<void> {
  await log.prune({ olderThanMs: 30 * 86_400_000 })
}
