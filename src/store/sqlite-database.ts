import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { importInstalled } from '../util/platform/node.js'
import { HarnessError } from '../contracts/errors.js'

/** The methods of a database of `node:sqlite` that are used here. */
export interface Database {
  exec(sql: string): void
  prepare(sql: string): Statement
  close(): void
}

export interface Statement {
  run(...values: Value[]): { readonly changes: number | bigint }
  get(...values: Value[]): unknown
  all(...values: Value[]): unknown[]
}

export type Value = string | number | null

interface Driver {
  readonly DatabaseSync: new (path: string) => Database
}

/** How long a statement waits for another process, in ms. */
const BUSY_MS = 5000
const SCHEMA_VERSION = 2

const SCHEMA_1 = `
create table runs (
  run_id text primary key,
  last_seq integer not null default 0,
  phase text,
  started_at text,
  updated_at text,
  parent_run_id text,
  digest text,
  owner text,
  owned_until integer not null default 0
);
create index runs_by_start on runs (started_at desc, run_id desc);
create index runs_by_phase on runs (phase, started_at desc, run_id desc);
create index runs_by_parent on runs (parent_run_id, started_at desc, run_id desc);
create table events (
  run_id text not null,
  seq integer not null,
  event text not null,
  primary key (run_id, seq)
);`

/** Threads have the tables and columns of runs. */
const FROM_1_TO_2 = `
alter table runs add column resource_id text;
update runs set resource_id = json_extract(digest, '$.metadata.resourceId');
create index runs_by_resource on runs (resource_id, started_at desc, run_id desc);
create table threads (
  thread_id text primary key,
  last_seq integer not null default 0,
  phase text,
  started_at text,
  updated_at text,
  parent_run_id text,
  digest text,
  owner text,
  owned_until integer not null default 0,
  resource_id text
);
create index threads_by_update on threads (updated_at desc, thread_id desc);
create index threads_by_resource on threads (resource_id, updated_at desc, thread_id desc);
create table thread_events (
  thread_id text not null,
  seq integer not null,
  event text not null,
  primary key (thread_id, seq)
);
create table log_references (
  from_kind text not null,
  from_id text not null,
  to_kind text not null,
  to_id text not null,
  primary key (from_kind, from_id, to_kind, to_id)
);
create index log_references_by_target on log_references (to_kind, to_id);
create table posts (
  number integer primary key autoincrement,
  kind text not null,
  log_id text not null,
  post_id text not null,
  body text,
  unique (kind, log_id, post_id)
);`

/** Opens the file, which it creates with its folder and tables. Throws `missing_dependency` if Node has no SQLite. */
export async function openDatabase(path: string, synchronous: 'normal' | 'full'): Promise<Database> {
  const { DatabaseSync } = await loadDriver()
  if (path !== ':memory:') mkdirSync(dirname(path), { recursive: true })
  const database = new DatabaseSync(path)
  try {
    database.exec(`pragma busy_timeout = ${BUSY_MS}`)
    await untilFree(() => database.exec('pragma journal_mode = wal'))
    database.exec(`pragma synchronous = ${synchronous}`)
    transaction(database, () => createTables(database, path))
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

function rollBack(database: Database): void {
  try {
    database.exec('rollback')
  } catch {
    // It may have been rolled back already, such as by a full disk.
  }
}

async function loadDriver(): Promise<Driver> {
  // Not imported by name: bundlers remove `node:`.
  const builtin: unknown = process.getBuiltinModule('node:sqlite')
  if (builtin !== undefined) return builtin as Driver
  try {
    return (await importInstalled('@photostructure/sqlite')) as Driver
  } catch (cause) {
    const message =
      '`sqliteLog` needs SQLite: Node 22.13 or newer, or the package `@photostructure/sqlite` (npm install @photostructure/sqlite).'
    throw new HarnessError('missing_dependency', message, { cause })
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

/** Creates the tables, or adds the ones that earlier versions did not have. */
function createTables(database: Database, path: string): void {
  const { user_version: version } = database.prepare('pragma user_version').get() as { user_version: number }
  if (version === SCHEMA_VERSION) return
  if (version !== 0 && version !== 1) {
    const message = `The tables in \`${path}\` are of version ${version}: this version of thinharness reads up to ${SCHEMA_VERSION}.`
    throw new HarnessError('store_failure', message)
  }
  if (version === 0) database.exec(SCHEMA_1)
  database.exec(FROM_1_TO_2)
  database.exec(`pragma user_version = ${SCHEMA_VERSION}`)
}
