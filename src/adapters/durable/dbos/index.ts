import { invalidOptions } from '#contracts/parse.js'
import { HarnessError } from '#contracts/errors.js'
import type { DbosEngine } from './engine.js'
import { launchDbos } from './launch.js'
import { parseRunsOptions } from './options.js'
import type { DbosRunsOptions } from './options.js'
import { HarnessRuns } from './harness-runs.js'
import type { DbosRuns } from './harness-runs.js'

export type { DbosEngine } from './engine.js'
export type { DbosLaunch, DbosRunsOptions, RunIdentity, RunQueue, StartOptions } from './options.js'
export type { DbosRun, DbosRuns } from './harness-runs.js'

/**
 * Runs on the durable engine DBOS, which queues and limits them and distributes them over processes; the log ensures that
 * effects are not repeated. Call it in each process that executes runs, before `DBOS.launch()`: DBOS accepts no workflows
 * after that. Rejects with `invalid_options`, and with `missing_dependency` if DBOS is neither passed nor installed.
 */
export async function dbosRuns<Output = string>(given: DbosRunsOptions<Output>): Promise<DbosRuns<Output>> {
  const options = parseRunsOptions(given)
  const { dbos = await loadDbos(), launch, name = 'thinharness' } = options
  if (dbos.isInitialized()) {
    throw invalidOptions('DBOS has been launched already: call `dbosRuns` before `DBOS.launch()`.')
  }
  const runs = new HarnessRuns(dbos, options)
  runs.register()
  if (launch !== undefined) await launchDbos(dbos, name, launch)
  return runs
}

async function loadDbos(): Promise<DbosEngine> {
  try {
    return (await import('@dbos-inc/dbos-sdk')).DBOS
  } catch (cause) {
    const message = '`dbosRuns` needs the package `@dbos-inc/dbos-sdk` (npm install @dbos-inc/dbos-sdk).'
    throw new HarnessError('missing_dependency', message, { cause })
  }
}
