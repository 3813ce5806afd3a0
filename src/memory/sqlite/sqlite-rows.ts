import type { ContentSource } from '../../index.js'
import { parseJson } from '../../util/json.js'
import type { Database, Value } from '../../util/platform/sqlite.js'
import type { FoundRow, LogState, LogUpdate, Row, Scope } from '../index-port.js'
import { isSource } from '../rows.js'
import { ROWS_PER_OWNER } from './sqlite-schema.js'
import type { IdRange } from './sqlite-schema.js'
import { indexedWords } from '../words.js'

const NO_OWNER = ''

/** Null: there are no rows. */
export function rangeOf(database: Database, scope: Scope): IdRange | null {
  if (scope === 'all') return { owner: 0, from: 0, to: Number.MAX_SAFE_INTEGER }
  const owner = ownerIn(database, scope.resourceId)
  if (owner === null) return null
  const { next } = database.prepare('select next from owners where number = ?').get(owner) as { next: number }
  return { owner, from: owner * ROWS_PER_OWNER, to: owner * ROWS_PER_OWNER + next }
}

/** How many rows a range has had. */
export function countRows(database: Database, { owner, from, to }: IdRange): number {
  if (owner !== 0) return to - from
  const row = database.prepare('select coalesce(sum(next - 1), 0) as total from owners').get()
  return (row as { readonly total: number }).total
}

/** The condition for the rows `e` of one conversation. */
export function threadIn(scope: Scope): readonly [string, readonly Value[]] {
  return scope === 'all' || scope.threadId === null ? ['', []] : ['and e.thread = ?', [scope.threadId]]
}

export function stateIn(database: Database, log: string): LogState | null {
  const row = database.prepare('select thread, began, seq, sources from logs where log = ?').get(log)
  if (row === undefined) return null
  const { seq } = row as { readonly seq: number }
  return { seq, began: textOf(row, 'began'), threadId: textOf(row, 'thread'), sources: sourcesIn(row) }
}

export function statesIn(database: Database, scope: Scope): ReadonlyMap<string, Pick<LogState, 'seq' | 'began'>> {
  const owner = scope === 'all' ? null : (ownerIn(database, scope.resourceId) ?? -1)
  const sql = `select log, began, seq from logs ${owner === null ? '' : 'where owner = ?'}`
  const rows = database.prepare(sql).all(...(owner === null ? [] : [owner]))
  return new Map(
    rows.map((row) => {
      const { seq } = row as { readonly seq: number }
      return [textOf(row, 'log'), { seq, began: textOf(row, 'began') }]
    }),
  )
}

/** Stores the rows of a log and its state. To be called in a transaction. */
export function store(database: Database, { log, resourceId, state, rows, forgotten }: LogUpdate): void {
  const owner = ownerFor(database, resourceId)
  const first = owner * ROWS_PER_OWNER
  let { next } = database.prepare('select next from owners where number = ?').get(owner) as { next: number }
  const update = 'on conflict (log) do update set seq = excluded.seq, sources = excluded.sources'
  database
    .prepare(`insert into logs values (?, ?, ?, ?, ?, ?) ${update}`)
    .run(log, owner, state.threadId, state.began, state.seq, JSON.stringify(state.sources))
  const isForgotten = database.prepare('select 1 from forgotten where owner = ? and handle = ?')
  const addEntry = database.prepare('insert into entries values (?, ?, ?, ?, ?, ?, ?, ?, ?, 0) on conflict do nothing')
  const addWords = database.prepare('insert into words (rowid, text) values (?, ?)')
  for (const { handle, part, kind, at, text, threadId, sources } of rows) {
    if (isForgotten.get(owner, handle) !== undefined) continue
    const id = first + next
    const { changes } = addEntry.run(...[id, log, threadId, handle, part, kind, at, JSON.stringify(sources), text])
    if (Number(changes) === 0) continue
    addWords.run(id, indexedWords(text))
    next += 1
  }
  database.prepare('update owners set next = ? where number = ?').run(next, owner)
  const forget = database.prepare('insert into forgotten values (?, ?, ?) on conflict do nothing')
  for (const handle of forgotten) {
    forget.run(owner, handle, log)
    removeRows(database, 'handle = ? and id between ? and ?', handle, first, first + ROWS_PER_OWNER - 1)
  }
}

/** The words leave the index with the rows: they must be the same that were added. */
export function removeRows(database: Database, condition: string, ...values: readonly Value[]): void {
  const rows = database.prepare(`select id, text from entries where ${condition}`).all(...values)
  const removeWords = database.prepare("insert into words (words, rowid, text) values ('delete', ?, ?)")
  for (const row of rows) removeWords.run((row as { id: number }).id, indexedWords(textOf(row, 'text')))
  const withVector = `select id from entries where has_vector = 1 and ${condition}`
  database.prepare(`delete from embeddings where id in (${withVector})`).run(...values)
  database.prepare(`delete from entries where ${condition}`).run(...values)
}

function ownerFor(database: Database, resourceId: string | null): number {
  const known = ownerIn(database, resourceId)
  if (known !== null) return known
  database.prepare('insert into owners (resource) values (?)').run(resourceId ?? NO_OWNER)
  return ownerFor(database, resourceId)
}

function ownerIn(database: Database, resourceId: string | null): number | null {
  const row = database.prepare('select number from owners where resource = ?').get(resourceId ?? NO_OWNER)
  return row === undefined ? null : (row as { readonly number: number }).number
}

/** Selects the rows `e`, for `foundRow`. */
export const SELECT = `
  select e.id, e.thread, e.handle, e.part, e.kind, e.at, e.sources, e.text,
    (select resource from owners where number = e.id / ${ROWS_PER_OWNER}) as resource
  from entries e`

export function foundRow(row: unknown): FoundRow {
  const { id, part } = row as { readonly id: number; readonly part: number }
  const resource = textOf(row, 'resource')
  return {
    id,
    part,
    kind: textOf(row, 'kind') as Row['kind'],
    at: textOf(row, 'at'),
    threadId: textOf(row, 'thread'),
    handle: textOf(row, 'handle'),
    text: textOf(row, 'text'),
    sources: sourcesIn(row),
    resourceId: resource === NO_OWNER ? null : resource,
  }
}

function textOf(row: unknown, column: string): string {
  const value = (row as Readonly<Record<string, Value>>)[column]
  return value === null || value === undefined ? '' : String(value)
}

function sourcesIn(row: unknown): readonly ContentSource[] {
  const parsed = parseJson(textOf(row, 'sources'))
  return parsed.ok && Array.isArray(parsed.value) ? (parsed.value as readonly unknown[]).filter(isSource) : []
}
