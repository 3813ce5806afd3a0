import { hasEnded } from '#util/platform/owner.js'
import { cursorAfter, positionOf } from './postgres-cursor.js'
import type { ClaimedRow } from './sql-log.js'

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
