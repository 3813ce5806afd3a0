import { HarnessError } from '#contracts/errors.js'
import type { PostgresPool } from './postgres-pool.js'
import { claimedRow, logSchema } from './sql-log.js'
import type { ClaimedRow, LogRow, RawRow } from './sql-log.js'
import { invalidCursor } from './list-query.js'

/**
 * Where a reader is among the appends: after those of transaction `changed` up to the log `id`, except those of the transactions in
 * `open`, which have lower numbers and had not ended: numbers are given when a transaction begins to write, so an append that commits
 * late would be missed without them. Nothing waits for another transaction.
 */
export interface ChangePosition {
  readonly changed: string
  readonly id: string
  readonly open: readonly string[]
}

/** The position that a cursor names; null: the beginning. Throws `invalid_options` for one that is none. */
export function newPosition(cursor: string | null): ChangePosition {
  if (cursor === null) return { changed: '0', id: '', open: [] }
  const [, changed, open = '', id] = /^(\d+):([\d,]*):([^]*)$/.exec(cursor) ?? []
  if (changed === undefined || id === undefined) throw invalidCursor(cursor)
  return { changed, id, open: open === '' ? [] : open.split(',') }
}

function cursorAfter({ changed, open, id }: ChangePosition): string {
  return `${changed}:${open.join(',')}:${id}`
}

/** The position after a row, for a reader that has seen all before it. */
function positionOf({ id, changed, snapshot }: StoredRow): ChangePosition {
  const number = changed ?? '0'
  const [, , running = ''] = snapshot.split(':')
  const open = running.split(',').filter((each) => each !== '' && BigInt(each) < BigInt(number))
  return { changed: number, id, open }
}

/** The rows after a position, each with its cursor: first those of transactions that were open, then the later ones. */
export function changesAfter(from: ChangePosition, rows: readonly StoredRow[]): readonly LogRow[] {
  const isLate = ({ changed }: StoredRow): boolean => changed !== null && from.open.includes(changed)
  let { open } = from
  const late = rows.filter(isLate).map((row, index, all) => {
    // The last of its transaction.
    if (all[index + 1]?.changed !== row.changed) open = open.filter((each) => each !== row.changed)
    return { ...versionedRow(row), cursor: cursorAfter({ ...from, open }) }
  })
  return [...late, ...rows.filter((row) => !isLate(row)).map(versionedRow)]
}

/** A row with its version. */
export interface VersionedRow extends ClaimedRow {
  /** Changes with each append and each new owner: an append is for one version. */
  readonly version: number
}

export interface StoredRow extends RawRow {
  readonly version: number
  readonly in_time: boolean
  /** The transaction of its last append; null: it has none. */
  readonly changed: string | null
  /** The snapshot in which the row was read. */
  readonly snapshot: string
}

/** The tables for logs of one kind. */
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

export function versionedRow(row: StoredRow): VersionedRow {
  const cursor = cursorAfter(positionOf(row))
  return { version: row.version, ...claimedRow(row, { cursor, isInTime: row.in_time }) }
}

/** Marks tables of this version. */
const MARK = 'thinharness store 5'

/** Creates schema and tables: in one transaction, by one process at a time. */
export async function createTables(pool: PostgresPool, schema: string): Promise<void> {
  if (await tablesExist(pool, schema)) return mendNumbers(pool, schema)
  await pool.query(`
    select pg_advisory_xact_lock(hashtext('thinharness'), hashtext('${schema}'));
    create schema if not exists "${schema}";
    ${logSchema({
      table: (name) => `"${schema}".${name}`,
      text: 'text collate "C"',
      logColumns: 'owned_until timestamptz, changed xid8, version integer not null default 1',
      byChange: (id) => `changed, ${id}`,
      postNumber: 'bigserial',
      postKey: 'primary key',
      keyed: '',
    })}
    comment on table "${schema}".runs is '${MARK}';`)
}

/** Tables that were restored on another server have numbers of transactions that this one has not given yet. */
async function mendNumbers(pool: PostgresPool, schema: string): Promise<void> {
  for (const logs of ['runs', 'threads'])
    await pool.query(`update "${schema}".${logs} set changed = pg_current_xact_id()
      where changed >= pg_snapshot_xmax(pg_current_snapshot())`)
}

/** True if the tables of this version exist. */
async function tablesExist(pool: PostgresPool, schema: string): Promise<boolean> {
  // As of one moment: `to_regclass` sees a table before its comment can be seen.
  const sql = `select obj_description(pg_class.oid, 'pg_class') as mark from pg_class
    join pg_namespace on pg_namespace.oid = relnamespace where nspname = $1 and relname = 'runs'`
  const [table] = (await pool.query(sql, [schema])).rows as { mark: string | null }[]
  if (table !== undefined && table.mark !== MARK) {
    const message = `Schema \`${schema}\` has a table \`runs\` that is not of this version of thinharness: give \`schema\`.`
    throw new HarnessError('store_failure', message)
  }
  return table?.mark === MARK
}
