import { HarnessError } from '../contracts/errors.js'

/** What is used of a pool of the package `pg`. */
export interface PostgresPool {
  query(text: string, values?: unknown[]): Promise<{ readonly rows: unknown[]; readonly rowCount: number | null }>
}

export interface OwnPool extends PostgresPool {
  end(): Promise<void>
}

/** How long connecting and a statement may take, in ms: nothing waits for a server that is gone. */
const CONNECT_MS = 10_000
const QUERY_MS = 30_000

/** What a schema of ours is marked with. */
const MARK = 'thinharness store 1'

/** A pool of our own. Throws `missing_dependency` where `pg` is not installed. */
export async function openPool(connectionString: string): Promise<OwnPool> {
  const { Pool } = await loadPackage()
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

async function loadPackage() {
  try {
    return (await import('pg')).default
  } catch (cause) {
    throw new HarnessError('missing_dependency', '`postgresLog` needs the package `pg` (npm install pg).', { cause })
  }
}

/** Makes schema and tables where they are not there yet: in one transaction, by one process at a time. */
export async function createTables(pool: PostgresPool, schema: string): Promise<void> {
  if (await isThere(pool, schema)) return
  await pool.query(`
    select pg_advisory_xact_lock(hashtext('thinharness'), hashtext('${schema}'));
    create schema if not exists "${schema}";
    create table if not exists "${schema}".runs (
      run_id text collate "C" primary key,
      version integer not null default 1,
      last_seq integer not null default 0,
      phase text,
      started_at text collate "C",
      updated_at text collate "C",
      parent_run_id text collate "C",
      digest text,
      owner text,
      owned_until timestamptz
    );
    create index if not exists runs_by_start on "${schema}".runs (started_at desc, run_id desc);
    create index if not exists runs_by_phase on "${schema}".runs (phase, started_at desc, run_id desc);
    create index if not exists runs_by_parent on "${schema}".runs (parent_run_id, started_at desc, run_id desc);
    create table if not exists "${schema}".events (
      run_id text collate "C" not null,
      seq integer not null,
      event text not null,
      primary key (run_id, seq)
    );
    comment on table "${schema}".runs is '${MARK}';`)
}

async function isThere(pool: PostgresPool, schema: string): Promise<boolean> {
  const sql = `select obj_description(to_regclass($1), 'pg_class') as mark, to_regclass($1) is not null as there`
  const [found] = (await pool.query(sql, [`"${schema}".runs`])).rows as { mark: string | null; there: boolean }[]
  if (found?.there === true && found.mark !== MARK) {
    const message = `Schema \`${schema}\` has a table \`runs\` that is not of this version of thinharness: give \`schema\`.`
    throw new HarnessError('store_failure', message)
  }
  return found?.there === true
}
