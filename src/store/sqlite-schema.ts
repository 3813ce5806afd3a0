import { realpathSync, statSync } from 'node:fs'
import { HarnessError } from '#contracts/errors.js'
import { openSqlite, SQLITE_NEEDED, transaction } from '#util/platform/sqlite.js'
import type { Database } from '#util/platform/sqlite.js'

/** The version of the tables. A file with tables of another version is rejected. */
const SCHEMA_VERSION = 5

/** The runs at the top that have not ended, as an index and its queries have to say it. */
export const WAITING =
  "parent_run_id is null and started_at is not null and (phase is null or phase in ('queued', 'open'))"

/** Threads have the tables and columns of runs. */
const SCHEMA = `
${logTables('runs', 'events', 'run_id')}
create index runs_by_start on runs (started_at desc, run_id desc);
create index runs_by_phase on runs (phase, started_at desc, run_id desc);
create index runs_by_parent on runs (parent_run_id, started_at desc, run_id desc);
create index runs_by_resource on runs (resource_id, started_at desc, run_id desc);
create index runs_waiting on runs (started_at, run_id) where ${WAITING};
create table run_labels (
  run_id text not null,
  name text not null,
  value text not null,
  started_at text not null,
  primary key (run_id, name)
) without rowid;
create index run_labels_by_value on run_labels (name, value, started_at desc, run_id desc);
${logTables('threads', 'thread_events', 'thread_id')}
create index threads_by_update on threads (updated_at desc, thread_id desc);
create index threads_by_resource on threads (resource_id, updated_at desc, thread_id desc);
create table appends (number integer not null);
insert into appends values (0);
create table log_references (
  from_kind text not null,
  from_id text not null,
  to_kind text not null,
  to_id text not null,
  primary key (from_kind, from_id, to_kind, to_id)
) without rowid;
create index log_references_by_target on log_references (to_kind, to_id);
create table posts (
  number integer primary key autoincrement,
  kind text not null,
  log_id text not null,
  post_id text not null,
  body text,
  unique (kind, log_id, post_id)
);`

function logTables(logs: string, events: string, id: string): string {
  return `
create table ${logs} (
  ${id} text primary key,
  last_seq integer not null default 0,
  phase text,
  started_at text,
  updated_at text,
  parent_run_id text,
  resource_id text,
  digest text,
  owner text,
  owned_until integer not null default 0,
  changed integer not null default 0
);
create index ${logs}_by_change on ${logs} (changed);
create table ${events} (
  ${id} text not null,
  seq integer not null,
  event text not null,
  primary key (${id}, seq)
);`
}

/** Opens the file, which it creates with its tables. Throws `missing_dependency` if Node has no SQLite. */
export async function openDatabase(path: string, synchronous: 'normal' | 'full'): Promise<Database> {
  const database = await openSqlite(path, { missing: missingSqliteError })
  try {
    database.exec(`pragma synchronous = ${synchronous}; pragma secure_delete = on`)
    transaction(database, () => createTables(database, path))
    return database
  } catch (error) {
    database.close()
    throw error
  }
}

/** The files of an open database, by what had their names when it was opened. */
export class DatabaseFiles {
  readonly #paths: readonly string[]
  readonly #opened: readonly string[]

  constructor(path: string) {
    const real = realpathSync(path)
    this.#paths = [path, `${real}-wal`, `${real}-shm`]
    this.#opened = this.#present()
  }

  /** One of them was removed, moved or replaced. */
  get haveMoved(): boolean {
    return this.#present().some((file, index) => file !== this.#opened[index])
  }

  /** The file itself was, not only its write-ahead log. */
  get isMoved(): boolean {
    return this.#present()[0] !== this.#opened[0]
  }

  #present(): readonly string[] {
    return this.#paths.map((path) => {
      const stats = statSync(path, { throwIfNoEntry: false })
      return stats === undefined ? '' : `${stats.dev}:${stats.ino}`
    })
  }
}

function missingSqliteError(cause: unknown): HarnessError {
  return new HarnessError('missing_dependency', `\`sqliteLog\` needs ${SQLITE_NEEDED}`, { cause })
}

function createTables(database: Database, path: string): void {
  const { user_version: version } = database.prepare('pragma user_version').get() as { user_version: number }
  if (version === SCHEMA_VERSION) return
  if (version !== 0) {
    const message = `The tables in \`${path}\` are of version ${version}: this version of thinharness reads version ${SCHEMA_VERSION}.`
    throw new HarnessError('store_failure', message)
  }
  database.exec(SCHEMA)
  database.exec(`pragma user_version = ${SCHEMA_VERSION}`)
}
