import { HarnessError } from '#contracts/errors.js'
import { invalidOptions } from '#contracts/parse.js'
import { having, matching, secret, string } from '#util/validate.js'
import type { PartialFields } from '#util/validate.js'

export interface OwnPool extends PostgresPool {
  end(): Promise<void>
}

/** How long connecting and a statement may take, in ms: so that nothing waits for a server that does not respond. */
const CONNECT_MS = 10_000
const QUERY_MS = 30_000

/** The comment that marks tables of this version. */
const MARK = 'thinharness store 5'

/** The runs at the top that have not ended, as an index and its queries have to say it. */
export const WAITING =
  "parent_run_id is null and started_at is not null and (phase is null or phase in ('queued', 'open'))"

/** A pool of our own, for `name`. Throws `missing_dependency` if `pg` is not installed. */
export async function openPool(connectionString: string, name: string): Promise<OwnPool> {
  const { Pool } = await loadPackage(name)
  const pool = new Pool({
    connectionString,
    connectionTimeoutMillis: CONNECT_MS,
    query_timeout: QUERY_MS,
    keepAlive: true,
    allowExitOnIdle: true,
  })
  // An idle connection that is lost is replaced when it is needed; without a listener it would end the process.
  pool.on('error', () => undefined)
  return pool
}

async function loadPackage(name: string) {
  try {
    return (await import('pg')).default
  } catch (cause) {
    throw new HarnessError('missing_dependency', `${name} needs the package \`pg\` (npm install pg).`, { cause })
  }
}

/** Creates schema and tables: in one transaction, by one process at a time. */
export async function createTables(pool: PostgresPool, schema: string): Promise<void> {
  if (await tablesExist(pool, schema)) return mendNumbers(pool, schema)
  await pool.query(`
    select pg_advisory_xact_lock(hashtext('thinharness'), hashtext('${schema}'));
    create schema if not exists "${schema}";
    ${logTables(schema, { logs: 'runs', events: 'events', id: 'run_id' })}
    create index if not exists runs_by_start on "${schema}".runs (started_at desc, run_id desc);
    create index if not exists runs_by_phase on "${schema}".runs (phase, started_at desc, run_id desc);
    create index if not exists runs_by_parent on "${schema}".runs (parent_run_id, started_at desc, run_id desc);
    create index if not exists runs_by_resource on "${schema}".runs (resource_id, started_at desc, run_id desc);
    create index if not exists runs_waiting on "${schema}".runs (started_at, run_id) where ${WAITING};
    create table if not exists "${schema}".run_labels (
      run_id text collate "C" not null,
      name text collate "C" not null,
      value text collate "C" not null,
      started_at text collate "C" not null,
      primary key (run_id, name)
    );
    create index if not exists run_labels_by_value on "${schema}".run_labels (name, value, started_at desc, run_id desc);
    ${logTables(schema, { logs: 'threads', events: 'thread_events', id: 'thread_id' })}
    create index if not exists threads_by_update on "${schema}".threads (updated_at desc, thread_id desc);
    create index if not exists threads_by_resource on "${schema}".threads (resource_id, updated_at desc, thread_id desc);
    create table if not exists "${schema}".log_references (
      from_kind text collate "C" not null,
      from_id text collate "C" not null,
      to_kind text collate "C" not null,
      to_id text collate "C" not null,
      primary key (from_kind, from_id, to_kind, to_id)
    );
    create index if not exists log_references_by_target on "${schema}".log_references (to_kind, to_id);
    create table if not exists "${schema}".posts (
      number bigserial,
      kind text collate "C" not null,
      log_id text collate "C" not null,
      post_id text collate "C" not null,
      body text,
      primary key (kind, log_id, post_id)
    );
    comment on table "${schema}".runs is '${MARK}';`)
}

/** Tables that were restored on another server have numbers of transactions that this one has not given yet. */
async function mendNumbers(pool: PostgresPool, schema: string): Promise<void> {
  for (const logs of ['runs', 'threads'])
    await pool.query(`update "${schema}".${logs} set changed = pg_current_xact_id()
      where changed >= pg_snapshot_xmax(pg_current_snapshot())`)
}

interface LogTableNames {
  readonly logs: string
  readonly events: string
  readonly id: string
}

function logTables(schema: string, { logs, events, id }: LogTableNames): string {
  return `
    create table if not exists "${schema}".${logs} (
      ${id} text collate "C" primary key,
      version integer not null default 1,
      last_seq integer not null default 0,
      phase text,
      started_at text collate "C",
      updated_at text collate "C",
      parent_run_id text collate "C",
      resource_id text collate "C",
      digest text,
      owner text,
      owned_until timestamptz,
      changed xid8
    );
    create index if not exists ${logs}_by_change on "${schema}".${logs} (changed, ${id});
    create table if not exists "${schema}".${events} (
      ${id} text collate "C" not null,
      seq integer not null,
      event text not null,
      primary key (${id}, seq)
    );`
}

/** True if the tables of this version exist. */
async function tablesExist(pool: PostgresPool, schema: string): Promise<boolean> {
  const sql = `select obj_description(to_regclass($1), 'pg_class') as mark, to_regclass($1) is not null as there`
  const [table] = (await pool.query(sql, [`"${schema}".runs`])).rows as { mark: string | null; there: boolean }[]
  if (table?.there === true && table.mark !== MARK) {
    const message = `Schema \`${schema}\` has a table \`runs\` that is not of this version of thinharness: give \`schema\`.`
    throw new HarnessError('store_failure', message)
  }
  return table?.mark === MARK
}

/** The methods of a pool of the package `pg` that are used here. */
export interface PostgresPool {
  query(text: string, values?: unknown[]): Promise<{ readonly rows: unknown[]; readonly rowCount: number | null }>
}

/** Where the tables are. */
export interface PostgresPlace {
  readonly connectionString?: string | undefined
  readonly pool?: PostgresPool | undefined
  readonly schema?: string | undefined
}

export const POSTGRES_PLACE: PartialFields<PostgresPlace> = {
  connectionString: secret(string),
  pool: having('a pool of `pg`', 'query'),
  schema: matching(/^[a-z_][a-z0-9_]{0,62}$/, 'a name of small letters, digits and `_`'),
}

/** Throws `invalid_options` unless there is one of `connectionString` and `pool`. `name` names the option. */
export function checkPlace({ connectionString, pool }: PostgresPlace, name: string): void {
  if ((connectionString === undefined) !== (pool === undefined)) return
  throw invalidOptions(`Expected ${name} to be given one of \`connectionString\` and \`pool\`.`)
}
