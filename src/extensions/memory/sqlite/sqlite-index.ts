import { mkdirSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { HarnessError } from '#contracts/errors.js'
import { openSqlite, rewriteFiles, SQLITE_NEEDED, transaction } from '#util/platform/sqlite.js'
import type { Database, Value } from '#util/platform/sqlite.js'
import type {
  FoundRow,
  Generation,
  LogState,
  LogUpdate,
  MemoryIndex,
  RowVector,
  Scope,
  MemoryRow,
} from '../memory-index.js'
import { checkIsIndex, createTables, prepareTables, ROWS_PER_OWNER } from './sqlite-schema.js'
import { loadSqliteVec, MOST_COMPARED_HERE, nearestBySqliteVec, nearestHere, storeVectors } from './sqlite-vectors.js'
import type { ContentSource } from '#contracts/entry.js'
import { parseJson } from '#util/json.js'
import { isSource } from '../run-reader.js'
import type { IdRange } from './sqlite-schema.js'
import { indexedWords } from '../search-words.js'

/** An index in a file of SQLite, or in memory. Any number of processes may share the file. */
export class SqliteIndex implements MemoryIndex {
  readonly #path: string
  #database: Promise<Database> | null = null
  /** The open database that has `sqlite-vec`. */
  #extended: Database | null = null
  #inode: number | null = null

  /** `path`: absolute, or `:memory:`. */
  constructor(path: string) {
    this.#path = path
  }

  async prepare(): Promise<Generation> {
    // Somebody has removed or replaced the file.
    if (this.#database !== null && this.#inode !== this.#inodeNow()) await this.close()
    return this.#use(readGeneration)
  }

  state(log: string): Promise<LogState | null> {
    return this.#use((database) => readState(database, log))
  }

  states(scope: Scope): Promise<ReadonlyMap<string, Pick<LogState, 'seq' | 'began'>>> {
    return this.#use((database) => readStates(database, scope))
  }

  put(update: LogUpdate, generation: Generation): Promise<boolean> {
    return this.#use((database) =>
      transaction(database, () => {
        if (readGeneration(database) !== generation) return false
        if ((readState(database, update.log)?.seq ?? 0) !== update.after) return false
        storeUpdate(database, update)
        return true
      }),
    )
  }

  async drop(log: string): Promise<void> {
    await this.#use((database) =>
      transaction(database, () => {
        removeRows(database, 'log = ?', log)
        for (const table of ['forgotten', 'logs']) database.prepare(`delete from ${table} where log = ?`).run(log)
      }),
    )
  }

  search(words: readonly string[], scope: Scope, limit: number): Promise<readonly FoundRow[]> {
    return this.#use((database) => findRows(database, { words, joined: ' OR ', scope, limit }))
  }

  having(words: readonly string[], scope: Scope, limit: number): Promise<readonly FoundRow[]> {
    return this.#use((database) => findRows(database, { words, joined: ' AND ', scope, limit }))
  }

  withoutVector(scope: Scope, limit: number): Promise<readonly Pick<FoundRow, 'id' | 'text'>[]> {
    return this.#use((database) => {
      const range = scopeRange(database, scope)
      if (range === null) return []
      const sql = `${SELECT} where e.has_vector = 0 and e.id between ? and ? order by e.id limit ?`
      return database.prepare(sql).all(range.from, range.to, limit).map(foundRow)
    })
  }

  async putVectors(vectors: readonly RowVector[]): Promise<void> {
    await this.#use((database) => transaction(database, () => storeVectors(database, vectors)))
  }

  near(vector: Float32Array, scope: Scope, limit: number): Promise<readonly FoundRow[]> {
    return this.#use(async (database) => {
      const range = scopeRange(database, scope)
      if (range === null) return []
      const [condition, values] = threadCondition(scope)
      const among = { range, condition, values, limit }
      const isFew = countRows(database, range) <= MOST_COMPARED_HERE
      if (!isFew && this.#extended !== database) {
        await loadSqliteVec(database)
        this.#extended = database
      }
      const ids = (isFew ? nearestHere : nearestBySqliteVec)(database, vector, among)
      const one = database.prepare(`${SELECT} where e.id = ?`)
      return ids.flatMap((id) => one.all(id).map(foundRow))
    })
  }

  text(handle: string, scope: Scope): Promise<readonly FoundRow[]> {
    return this.#use((database) => {
      const range = scopeRange(database, scope)
      if (range === null) return []
      const [condition, values] = threadCondition(scope)
      const sql = `${SELECT} where e.handle = ? and e.id between ? and ? ${condition} order by e.part`
      return database
        .prepare(sql)
        .all(handle, range.from, range.to, ...values)
        .map(foundRow)
    })
  }

  async clear(): Promise<void> {
    await this.#use((database) => transaction(database, () => createTables(database)))
  }

  async erase(resourceId: string): Promise<void> {
    await this.#use((database) => {
      transaction(database, () => {
        const generation = String(readGeneration(database) + 1)
        database.prepare("update meta set value = ? where key = 'generation'").run(generation)
        const range = scopeRange(database, { resourceId, threadId: null })
        if (range === null) return
        removeRows(database, 'id between ? and ?', range.from, range.to)
        for (const table of ['forgotten', 'logs'])
          database.prepare(`delete from ${table} where owner = ?`).run(range.owner)
        database.prepare('delete from owners where number = ?').run(range.owner)
      })
      scrubWords(database)
    })
  }

  async close(): Promise<void> {
    const database = this.#database
    this.#database = null
    await database?.then(
      (open) => open.close(),
      () => undefined,
    )
  }

  async #use<T>(work: (database: Database) => T | Promise<T>): Promise<T> {
    this.#database ??= this.#open()
    const opening = this.#database
    try {
      return await work(await opening)
    } catch (thrown) {
      if (thrown instanceof HarnessError) {
        // A file that could not be opened is tried again at the next use.
        await opening.catch(() => (this.#database = null))
        throw thrown
      }
      throw new HarnessError('store_failure', `The index of the memory failed: ${String(thrown)}`, { cause: thrown })
    }
  }

  async #open(): Promise<Database> {
    if (this.#path !== ':memory:') mkdirSync(dirname(this.#path), { recursive: true })
    const checkDatabase = (database: Database): void => checkIsIndex(database, this.#path)
    const database = await openSqlite(this.#path, {
      missing: missingSqlite,
      check: checkDatabase,
      allowExtension: true,
    })
    try {
      database.exec('pragma synchronous = normal; pragma secure_delete = on')
      prepareTables(database)
    } catch (error) {
      database.close()
      throw error
    }
    this.#inode = this.#inodeNow()
    return database
  }

  #inodeNow(): number | null {
    if (this.#path === ':memory:') return null
    return statSync(this.#path, { throwIfNoEntry: false })?.ino ?? -1
  }
}

function missingSqlite(cause: unknown): HarnessError {
  return new HarnessError('missing_dependency', `\`createMemory\` needs ${SQLITE_NEEDED}`, { cause })
}

function readGeneration(database: Database): Generation {
  const row = database.prepare("select value from meta where key = 'generation'").get() as { readonly value: string }
  return Number(row.value)
}

interface Query {
  readonly words: readonly string[]
  readonly joined: ' AND ' | ' OR '
  readonly scope: Scope
  readonly limit: number
}

function findRows(database: Database, { words, joined, scope, limit }: Query): readonly FoundRow[] {
  const range = scopeRange(database, scope)
  if (range === null || words.length === 0) return []
  const match = words.map((word) => `"${word}"`).join(joined)
  const [condition, values]: readonly [string, readonly Value[]] = threadCondition(scope)
  // FTS5 uses a range of ids only if they are integers.
  const sql = `${SELECT} join (
      select words.rowid as id, bm25(words) as rank from words ${condition === '' ? '' : 'join entries e on e.id = words.rowid'}
      where words match ? and words.rowid between cast(? as integer) and cast(? as integer) ${condition}
      order by rank limit ?
    ) best on best.id = e.id order by best.rank, e.id desc`
  return database
    .prepare(sql)
    .all(match, range.from, range.to, ...values, limit)
    .map(foundRow)
}

/** Nothing of a removed row stays in the files. */
function scrubWords(database: Database): void {
  database.exec("insert into words (words) values ('optimize')")
  if (rewriteFiles(database)) return
  const message =
    'The index of the memory is being read by another process: erased rows are still in its files. Try again.'
  throw new HarnessError('store_failure', message)
}

const NO_OWNER = ''

/** Null: there are no rows. */
function scopeRange(database: Database, scope: Scope): IdRange | null {
  if (scope === 'all') return { owner: 0, from: 0, to: Number.MAX_SAFE_INTEGER }
  const owner = readOwner(database, scope.resourceId)
  if (owner === null) return null
  const { next } = database.prepare('select next from owners where number = ?').get(owner) as { next: number }
  return { owner, from: owner * ROWS_PER_OWNER, to: owner * ROWS_PER_OWNER + next }
}

/** How many rows a range has had. */
function countRows(database: Database, { owner, from, to }: IdRange): number {
  if (owner !== 0) return to - from
  const row = database.prepare('select coalesce(sum(next - 1), 0) as total from owners').get()
  return (row as { readonly total: number }).total
}

/** The condition for the rows `e` of one conversation. */
function threadCondition(scope: Scope): readonly [string, readonly Value[]] {
  return scope === 'all' || scope.threadId === null ? ['', []] : ['and e.thread = ?', [scope.threadId]]
}

function readState(database: Database, log: string): LogState | null {
  const row = database.prepare('select thread, began, seq, sources from logs where log = ?').get(log)
  if (row === undefined) return null
  const { seq } = row as { readonly seq: number }
  return { seq, began: columnText(row, 'began'), threadId: columnText(row, 'thread'), sources: columnSources(row) }
}

function readStates(database: Database, scope: Scope): ReadonlyMap<string, Pick<LogState, 'seq' | 'began'>> {
  const owner = scope === 'all' ? null : (readOwner(database, scope.resourceId) ?? -1)
  const sql = `select log, began, seq from logs ${owner === null ? '' : 'where owner = ?'}`
  const rows = database.prepare(sql).all(...(owner === null ? [] : [owner]))
  return new Map(
    rows.map((row) => {
      const { seq } = row as { readonly seq: number }
      return [columnText(row, 'log'), { seq, began: columnText(row, 'began') }]
    }),
  )
}

/** Stores the rows of a log and its state. To be called in a transaction. */
function storeUpdate(database: Database, { log, resourceId, state, rows, forgotten }: LogUpdate): void {
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
function removeRows(database: Database, condition: string, ...values: readonly Value[]): void {
  const rows = database.prepare(`select id, text from entries where ${condition}`).all(...values)
  const removeWords = database.prepare("insert into words (words, rowid, text) values ('delete', ?, ?)")
  for (const row of rows) removeWords.run((row as { id: number }).id, indexedWords(columnText(row, 'text')))
  const withVector = `select id from entries where has_vector = 1 and ${condition}`
  database.prepare(`delete from embeddings where id in (${withVector})`).run(...values)
  database.prepare(`delete from entries where ${condition}`).run(...values)
}

function ownerFor(database: Database, resourceId: string | null): number {
  const known = readOwner(database, resourceId)
  if (known !== null) return known
  database.prepare('insert into owners (resource) values (?)').run(resourceId ?? NO_OWNER)
  return ownerFor(database, resourceId)
}

function readOwner(database: Database, resourceId: string | null): number | null {
  const row = database.prepare('select number from owners where resource = ?').get(resourceId ?? NO_OWNER)
  return row === undefined ? null : (row as { readonly number: number }).number
}

/** Selects the rows `e`, for `foundRow`. */
const SELECT = `
  select e.id, e.thread, e.handle, e.part, e.kind, e.at, e.sources, e.text,
    (select resource from owners where number = e.id / ${ROWS_PER_OWNER}) as resource
  from entries e`

function foundRow(row: unknown): FoundRow {
  const { id, part } = row as { readonly id: number; readonly part: number }
  const resource = columnText(row, 'resource')
  return {
    id,
    part,
    kind: columnText(row, 'kind') as MemoryRow['kind'],
    at: columnText(row, 'at'),
    threadId: columnText(row, 'thread'),
    handle: columnText(row, 'handle'),
    text: columnText(row, 'text'),
    sources: columnSources(row),
    resourceId: resource === NO_OWNER ? null : resource,
  }
}

function columnText(row: unknown, column: string): string {
  const value = (row as Readonly<Record<string, Value>>)[column]
  return value === null || value === undefined ? '' : String(value)
}

function columnSources(row: unknown): readonly ContentSource[] {
  const parsed = parseJson(columnText(row, 'sources'))
  return parsed.ok && Array.isArray(parsed.value) ? (parsed.value as readonly unknown[]).filter(isSource) : []
}
