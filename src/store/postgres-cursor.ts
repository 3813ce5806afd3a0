import { invalidCursor } from './list-query.js'

/**
 * Where a reader is among the appends: after those of transaction `changed` up to the log `id`, except those of the transactions in
 * `open`, which have lower numbers and had not ended. Numbers are given when a transaction begins to write, not when it ends: without
 * `open`, an append that commits late would be missed. Nothing waits for another: appends take no common lock, and readers see what
 * has ended, however long another transaction of the server lasts.
 */
export interface ChangePosition {
  readonly changed: string
  readonly id: string
  readonly open: readonly string[]
}

/** The fields of a row that say where it is. */
interface ChangedRow {
  readonly id: string
  readonly changed: string | null
  /** `pg_current_snapshot()` of the statement that read it. */
  readonly snapshot: string
}

/** The position that a cursor names; null: the beginning. Throws `invalid_options` for one that is none. */
export function newPosition(cursor: string | null): ChangePosition {
  if (cursor === null) return { changed: '0', id: '', open: [] }
  const [, changed, open = '', id] = /^(\d+):([\d,]*):([^]*)$/.exec(cursor) ?? []
  if (changed === undefined || id === undefined) throw invalidCursor(cursor)
  return { changed, id, open: open === '' ? [] : open.split(',') }
}

export function cursorAfter({ changed, open, id }: ChangePosition): string {
  return `${changed}:${open.join(',')}:${id}`
}

/** The position after a row, for a reader that has seen all before it. */
export function positionOf({ id, changed, snapshot }: ChangedRow): ChangePosition {
  const number = changed ?? '0'
  const [, , running = ''] = snapshot.split(':')
  const open = running.split(',').filter((each) => each !== '' && BigInt(each) < BigInt(number))
  return { changed: number, id, open }
}

/** The rows after a position, with the cursor after each: first those of transactions that were open, then the later ones. */
export function changesAfter<Row extends ChangedRow>(
  from: ChangePosition,
  rows: readonly Row[],
): { readonly row: Row; readonly cursor: string }[] {
  const isLate = ({ changed }: ChangedRow): boolean => changed !== null && from.open.includes(changed)
  let { open } = from
  const late = rows.filter(isLate).map((row, index, all) => {
    // The last of its transaction.
    if (all[index + 1]?.changed !== row.changed) open = open.filter((each) => each !== row.changed)
    return { row, cursor: cursorAfter({ ...from, open }) }
  })
  const later = rows.filter((row) => !isLate(row)).map((row) => ({ row, cursor: cursorAfter(positionOf(row)) }))
  return [...late, ...later]
}
