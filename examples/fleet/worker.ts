// A worker: takes runs that wait, one after the other, until it gets SIGTERM. Any number of them can share a database.
import { setTimeout as sleep } from 'node:timers/promises'
import { HarnessError } from 'thinharness'
import { postgresLog } from 'thinharness/store/postgres'
import { reporter } from './agent.js'
import { Deliveries } from './deliveries.js'

const databaseUrl = process.env['DATABASE_URL'] ?? ''
const stopping = new AbortController()
process.once('SIGTERM', () => stopping.abort())

await using log = postgresLog({ connectionString: databaseUrl, schema: 'fleet' })
await using deliveries = await Deliveries.open(databaseUrl)
await using harness = reporter({ log, deliveries, worker: process.env['WORKER'] ?? 'worker' })

while (!stopping.signal.aborted) {
  // Queued runs, and those whose worker has died: the oldest ones, at most five of each customer.
  const waiting = await log.waiting({ limit: 20, perTenant: 5 })
  // Not all workers try the same one.
  const next = waiting[Math.floor(Math.random() * waiting.length)]
  if (next === undefined) await sleep(100, undefined, { signal: stopping.signal }).catch(() => undefined)
  else await harness.recover(next.runId).catch(unlessTaken)
}

/** Another worker may be faster. A run that failed is in the log, with its error. */
function unlessTaken(error: unknown): void {
  if (!(error instanceof HarnessError)) throw error
}
