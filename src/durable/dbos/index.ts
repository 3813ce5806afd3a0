import { setTimeout as sleep } from 'node:timers/promises'
import { HarnessError } from '../../index.js'
import { newOwner } from '../../run/owner.js'
import type { DbosEngine } from './engine.js'
import { checkRunsOptions } from './options.js'
import type { DbosLaunch, DbosRunsOptions } from './options.js'
import { HarnessRuns } from './runs.js'
import type { DbosRuns } from './runs.js'

export type { FollowOptions } from '../index.js'
export type { DbosEngine } from './engine.js'
export type { DbosLaunch, DbosRunsOptions, RunIdentity, RunQueue, StartOptions } from './options.js'
export type { DbosRun, DbosRuns } from './runs.js'

/**
 * Runs on the durable engine DBOS: queued, limited and spread over processes by it, exact in their effects by the log.
 * Call it in each process that is to carry out runs, before `DBOS.launch()`: afterwards DBOS takes no workflows any more.
 * Throws `invalid_options`, and `missing_dependency` where DBOS is neither given nor installed.
 */
export async function dbosRuns<Output = string>(options: DbosRunsOptions<Output>): Promise<DbosRuns<Output>> {
  checkRunsOptions(options)
  const { dbos = await loadDbos(), launch, name = 'thinharness' } = options
  if (dbos.isInitialized()) {
    throw new HarnessError('invalid_options', 'DBOS has been launched already: call `dbosRuns` before `DBOS.launch()`.')
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

async function launchDbos(dbos: DbosEngine, name: string, launch: DbosLaunch): Promise<void> {
  const { databaseUrl, applicationVersion = `${name}-1` } = launch
  // An id of its own, since DBOS takes what is in hand under the id of a process that is launched for left over by that
  // one; and one by which others see whether the process is still there.
  const executorID = newOwner()
  const identity = { name, executorID, applicationVersion, listenQueues: [name] }
  for (let attempt = 1; ; attempt++) {
    dbos.setConfig({ ...identity, systemDatabaseUrl: databaseUrl, logLevel: 'error' })
    try {
      await dbos.launch()
      return
    } catch (cause) {
      const why = cause instanceof Error ? cause.message : String(cause)
      if (attempt === LAUNCHES || !CLASH.test(why)) {
        throw new HarnessError('store_failure', `DBOS could not be launched: ${why}`, { cause })
      }
      await dbos.shutdown({}).catch(() => undefined)
      await sleep(100 * attempt + Math.random() * 200)
    }
  }
}

/** Processes that make the engine's tables in a new database at the same moment get into each other's way; one wins. */
const CLASH = /dbos_migrations|deadlock detected|already exists|concurrently updated|tuple concurrently/
const LAUNCHES = 8
