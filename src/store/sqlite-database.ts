import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { HarnessError } from '../contracts/errors.js'
import { openSqlite, SQLITE_NEEDED, transaction } from '../util/platform/sqlite.js'
import type { Database } from '../util/platform/sqlite.js'

const SCHEMA_VERSION = 3

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

/** Content that events have in common, and how many do. The SHA-256 of its JSON finds it. */
const FROM_2_TO_3 = `
create table contents (
  number integer primary key,
  sha256 blob not null unique,
  body text not null,
  uses integer not null
);`

/** Opens the file, which it creates with its folder and tables. Throws `missing_dependency` if Node has no SQLite. */
export async function openDatabase(path: string, synchronous: 'normal' | 'full'): Promise<Database> {
  if (path !== ':memory:') mkdirSync(dirname(path), { recursive: true })
  const database = await openSqlite(path, { missing })
  try {
    database.exec(`pragma synchronous = ${synchronous}; pragma secure_delete = on`)
    transaction(database, () => createTables(database, path))
    return database
  } catch (error) {
    database.close()
    throw error
  }
}

function missing(cause: unknown): HarnessError {
  return new HarnessError('missing_dependency', `\`sqliteLog\` needs ${SQLITE_NEEDED}`, { cause })
}

/** Creates the tables, or adds the ones that earlier versions did not have. */
function createTables(database: Database, path: string): void {
  const { user_version: version } = database.prepare('pragma user_version').get() as { user_version: number }
  if (version === SCHEMA_VERSION) return
  if (![0, 1, 2].includes(version)) {
    const message = `The tables in \`${path}\` are of version ${version}: this version of thinharness reads up to ${SCHEMA_VERSION}.`
    throw new HarnessError('store_failure', message)
  }
  if (version === 0) database.exec(SCHEMA_1)
  if (version < 2) database.exec(FROM_1_TO_2)
  database.exec(FROM_2_TO_3)
  database.exec(`pragma user_version = ${SCHEMA_VERSION}`)
}
