import { HarnessError } from '#contracts/errors.js'
import { hasEnded } from '#util/platform/owner.js'
import { cursorAfter, positionOf } from './postgres-cursor.js'
import type { PostgresPool } from './postgres-pool.js'
import type { ClaimedRow } from './sql-log.js'

/** The comment that marks tables of this version. */
const MARK = 'thinharness store 5'

/** The runs at the top that have not ended, as an index and its queries have to say it. */
export const WAITING =
  "parent_run_id is null and started_at is not null and (phase is null or phase in ('queued', 'open'))"

/** The row of a log, with its version. */
export interface VersionedRow extends ClaimedRow {
  /** Changes with each append and each new owner: an append is for one version. */
  readonly version: number
}

export interface RawRow {
  readonly id: string
  readonly version: number
  readonly last_seq: number
  readonly started_at: string
  readonly updated_at: string
  readonly resource_id: string | null
  readonly digest: string | null
  readonly owner: string | null
  readonly in_time: boolean
  /** The transaction of its last append; null: it has none. */
  readonly changed: string | null
  /** The snapshot in which the row was read. */
  readonly snapshot: string
}

/** The names of the tables for logs of one kind. */
export interface Names {
  readonly logs: string
  readonly events: string
  readonly id: string
  readonly order: string
}

export function columnNames({ logs, id }: Names): string {
  const inTime = 'coalesce(owned_until > clock_timestamp(), false) as in_time'
  const place = 'changed::text as changed, pg_current_snapshot()::text as snapshot'
  return `${logs}.${id} as id, version, last_seq, ${logs}.started_at, updated_at, resource_id, digest, owner, ${inTime}, ${place}`
}

export function versionedRow(row: RawRow): VersionedRow {
  const { id, version, last_seq: lastSeq, started_at: startedAt, updated_at: updatedAt, resource_id: resourceId } = row
  const { digest, owner } = row
  const isHeld = owner !== null && row.in_time && !hasEnded(owner)
  const cursor = cursorAfter(positionOf(row))
  return {
    id,
    version,
    lastSeq,
    startedAt,
    updatedAt,
    cursor,
    resourceId,
    digest,
    claimant: owner,
    owner: isHeld ? owner : null,
  }
}

export function newRow(id: string): VersionedRow {
  return {
    id,
    version: 1,
    lastSeq: 0,
    startedAt: '',
    updatedAt: '',
    cursor: '',
    resourceId: null,
    digest: null,
    claimant: null,
    owner: null,
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

function logTables(schema: string, { logs, events, id }: Omit<Names, 'order'>): string {
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
