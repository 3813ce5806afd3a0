import { DBOS } from '@dbos-inc/dbos-sdk'
import { Harness } from 'thinharness'
import { dbosRuns } from 'thinharness/durable/dbos'
import { postgresLog } from 'thinharness/store/postgres'

const databaseUrl = process.env['DATABASE_URL'] ?? ''

/** In every worker process, before `DBOS.launch()`. */
export const runs = await dbosRuns({
  dbos: DBOS,
  harness: new Harness({ model: 'anthropic:claude-sonnet-5', root: './workspace' }),
  log: postgresLog({ connectionString: databaseUrl }),
  queue: { concurrency: 50, workerConcurrency: 5, rateLimit: { limit: 100, periodMs: 60_000 } },
})

DBOS.setConfig({ name: 'office', systemDatabaseUrl: databaseUrl, applicationVersion: '1.4.0' })
await DBOS.launch()
