import { setTimeout as sleep } from 'node:timers/promises'
import { HarnessError } from '#contracts/errors.js'
import { newOwner } from '#util/platform/owner.js'
import { isObject } from '#util/json.js'
import type { DbosEngine } from './engine.js'
import type { DbosLaunch } from './options.js'

/** How often a launch that collides with another one is tried, and the longest wait for others, in ms. */
const LAUNCHES = 8
const PATIENCE_MS = 60_000

/** Launches the engine under a unique id. Rejects with `store_failure`. */
export async function launchDbos(dbos: DbosEngine, name: string, launch: DbosLaunch): Promise<void> {
  const { databaseUrl, applicationVersion = `${name}-1` } = launch
  // A unique id: DBOS takes over the work of earlier processes with the same id. Others can tell from it if this process has
  // ended.
  const identity = { name, executorID: newOwner(), applicationVersion, listenQueues: [name] }
  for (let attempt = 1; ; attempt++) {
    try {
      await runAlone(databaseUrl, () => {
        dbos.setConfig({ ...identity, systemDatabaseUrl: databaseUrl, logLevel: 'error' })
        return dbos.launch()
      })
      return
    } catch (cause) {
      if (attempt === LAUNCHES || !isClash(cause)) {
        throw new HarnessError('store_failure', `DBOS could not be launched: ${errorText(cause)}`, { cause })
      }
      await dbos.shutdown({}).catch(() => undefined)
      await sleep(100 * attempt + Math.random() * 200)
    }
  }
}

/**
 * One process at a time creates or changes the engine's tables, which the engine does not ensure. The lock is polled, each time in a
 * transaction of its own, since the indexes that the engine builds (`create index concurrently`) wait for older transactions. If the
 * database does not exist yet, for example, the launch continues without a lock.
 */
async function runAlone(databaseUrl: string, work: () => Promise<void>): Promise<void> {
  const client = await connectClient(databaseUrl)
  if (client === null) return work()
  try {
    const deadline = Date.now() + PATIENCE_MS
    while (Date.now() < deadline && !(await takesLock(client))) await sleep(50)
    await work()
  } finally {
    await client.end().catch(() => undefined)
  }
}

async function connectClient(connectionString: string) {
  try {
    const { Client } = (await import('pg')).default
    const client = new Client({ connectionString, connectionTimeoutMillis: 10_000 })
    client.on('error', () => undefined)
    await client.connect()
    return client
  } catch {
    return null
  }
}

/** The transaction that has the lock stays open. */
async function takesLock(client: NonNullable<Awaited<ReturnType<typeof connectClient>>>): Promise<boolean> {
  const sql = `select pg_try_advisory_xact_lock(hashtext('thinharness'), hashtext('dbos')) as locked`
  await client.query('begin')
  const isLocked = (await client.query<{ locked: boolean }>(sql)).rows[0]?.locked === true
  if (!isLocked) await client.query('rollback')
  return isLocked
}

/** Hosts that launch DBOS themselves may create its tables at the same time: one of them wins, the others find them. */
function isClash(error: unknown): boolean {
  for (let cause = error; isObject(cause) || cause instanceof Error; cause = innerError(cause)) {
    const { code } = cause as { readonly code?: unknown }
    if (typeof code === 'string' && CLASHES.has(code)) return true
  }
  return /dbos_migrations|concurrently updated/.test(errorText(error))
}

function errorText(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** DBOS has the cause in `error`. */
function innerError(error: object): unknown {
  return (error as { readonly error?: unknown }).error ?? (error as { readonly cause?: unknown }).cause
}

/** SQLSTATE: deadlock, and existing objects (row, table, object, schema, column, function, database). */
const CLASHES: ReadonlySet<string> = new Set('40P01 23505 42P07 42710 42P06 42701 42723 42P04'.split(' '))
