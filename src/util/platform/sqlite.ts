import { importInstalled } from './node.js'

/** The methods of a database of `node:sqlite` that are used here. */
export interface Database {
  exec(sql: string): void
  prepare(sql: string): Statement
  close(): void
  enableLoadExtension(allow: boolean): void
  loadExtension(path: string): void
}

export interface Statement {
  run(...values: Value[]): { readonly changes: number | bigint }
  get(...values: Value[]): unknown
  all(...values: Value[]): unknown[]
}

export type Value = string | number | null | Uint8Array

interface Driver {
  readonly DatabaseSync: new (path: string, options?: { readonly allowExtension?: boolean }) => Database
}

/** How long a statement waits for another process, in ms. */
const BUSY_MS = 5000

/** For messages about a missing SQLite. */
export const SQLITE_NEEDED =
  'SQLite: Node 22.13 or newer, or the package `@photostructure/sqlite` (npm install @photostructure/sqlite).'

/** The SQLite of Node, or that of the package `@photostructure/sqlite`. Rejects if there is neither. */
async function loadDriver(): Promise<Driver> {
  // Not imported by name: bundlers remove `node:`.
  const builtin: unknown = process.getBuiltinModule('node:sqlite')
  if (builtin !== undefined) return builtin as Driver
  return (await importInstalled('@photostructure/sqlite')) as Driver
}

interface OpenSqliteOptions {
  /** Makes the error if there is no SQLite. */
  readonly missing: (cause: unknown) => Error
  /** Called before anything is written to the file; throws if it is not one of its own. */
  readonly check?: (database: Database) => void
  /** Libraries can be loaded with `loadExtension`, once it has been enabled. */
  readonly allowExtension?: boolean
}

/** Opens a file of SQLite for several processes, which it creates. */
export async function openSqlite(
  path: string,
  { missing, check, allowExtension = false }: OpenSqliteOptions,
): Promise<Database> {
  const { DatabaseSync } = await loadDriver().catch((cause: unknown) => {
    throw missing(cause)
  })
  const database = allowExtension ? new DatabaseSync(path, { allowExtension }) : new DatabaseSync(path)
  try {
    database.exec(`pragma busy_timeout = ${BUSY_MS}`)
    check?.(database)
    await untilFree(() => database.exec('pragma journal_mode = wal'))
    return database
  } catch (error) {
    database.close()
    throw error
  }
}

/** Runs `work` in one transaction that has the write lock from its beginning. Rolls back if it throws. */
export function transaction<T>(database: Database, work: () => T): T {
  database.exec('begin immediate')
  try {
    const result = work()
    database.exec('commit')
    return result
  } catch (error) {
    rollBack(database)
    throw error
  }
}

/**
 * Writes the files of a database anew: nothing of removed rows stays in them. False if another process is reading them, whose pages
 * must stay.
 */
export function rewriteFiles(database: Database): boolean {
  database.exec('vacuum')
  return emptyWal(database)
}

/** Moves what is in the write-ahead log into the file, without waiting, unless another process is reading it. */
export function emptyWalIfFree(database: Database): void {
  withoutWaiting(database, () => emptyWal(database))
}

/** Moves what is in the write-ahead log into the file, and does without that log, unless another process has opened the file. */
export function leaveWalIfFree(database: Database): void {
  withoutWaiting(database, () => {
    try {
      database.exec('pragma journal_mode = delete')
    } catch {
      // Another process has opened it.
    }
  })
}

function withoutWaiting(database: Database, work: () => void): void {
  database.exec('pragma busy_timeout = 0')
  try {
    work()
  } finally {
    database.exec(`pragma busy_timeout = ${BUSY_MS}`)
  }
}

/** False if another process is reading it. */
function emptyWal(database: Database): boolean {
  const { busy } = database.prepare('pragma wal_checkpoint(truncate)').get() as { readonly busy: number }
  return busy === 0
}

function rollBack(database: Database): void {
  try {
    database.exec('rollback')
  } catch {
    // It may have been rolled back already, such as by a full disk.
  }
}

/** Changing the journal mode does not wait for other processes by itself. */
async function untilFree(work: () => void): Promise<void> {
  for (const end = Date.now() + BUSY_MS; ;) {
    try {
      work()
      return
    } catch (error) {
      if (!/locked|busy/i.test(String(error)) || Date.now() > end) throw error
      await new Promise((resolve) => setTimeout(resolve, 5 + Math.random() * 20))
    }
  }
}
