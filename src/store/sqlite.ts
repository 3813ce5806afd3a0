import { placeOfEvent } from './codec/clear.js'
import { CIPHER } from './codec/log-codec.js'
import type { LogCodec, RecordCodec } from './codec/log-codec.js'
import type { RenewedRecord, RewrittenRow, StoredEvent, StoredPost } from './codec/rewrite-tables.js'
import { DatabaseFiles } from './database-files.js'
import { listPrunable, removableRuns } from './pruning.js'
import type { Reference, Removal } from './pruning.js'
import { claimedRow, digestColumns, encodedColumns, SqlLog, PAGE_ROWS, WAITING, logSchema } from './sql-log.js'
import type { ClaimedRow, DigestColumns, LogRow, OpenQuery, PageQuery, RawRow, SqlTables } from './sql-log.js'
import { HarnessError } from '#contracts/errors.js'
import { invalidOptions, parse } from '#contracts/parse.js'
import { invalidCursor } from './list-query.js'
import type { PruneOptions } from '#core/log/list-options.js'
import { checkClaim, ownedByAnother } from '#core/log/log.js'
import type { AppendOptions, LogEvent, LogStore } from '#core/log/log.js'
import { endOwner } from '#util/platform/owner.js'
import { checkRef, keyOf, lastSeqOf, nameOf } from '#core/log/ref.js'
import type { LogRef, LogKind } from '#core/log/ref.js'
import {
  emptyWalIfFree,
  leaveWalIfFree,
  rewriteFiles,
  transaction,
  openSqlite,
  SQLITE_NEEDED,
} from '#util/platform/sqlite.js'
import type { Database, Statement, Value } from '#util/platform/sqlite.js'
import { pieces } from '#util/in-pieces.js'
import { oneOf, partial } from '#util/validate.js'
import { existsSync, mkdirSync } from 'node:fs'
import { dirname, resolve } from 'node:path'

export interface SqliteLogOptions {
  /**
   * Events that survive a crash. A crash of the process loses none in any case.
   * - `full`: nor does a crash of the machine; every append waits for the disk.
   * - `normal` (default): a crash of the machine may lose the last appends.
   */
  readonly synchronous?: 'normal' | 'full' | undefined
  /** Encrypts or compresses what is stored: `encryption({ … })`, `compression()`. Default: neither. */
  readonly cipher?: LogCodec | undefined
}

export interface SqliteLog extends LogStore, AsyncDisposable {
  /** Closes the file. The next use opens it again. */
  close(): Promise<void>
}

const OPTIONS = partial<SqliteLogOptions>({ synchronous: oneOf('normal', 'full'), cipher: CIPHER })

/**
 * A log in a SQLite file, opened when it is first used: for any number of runs and threads, and of processes on one
 * machine. Needs `node:sqlite`, or the package `@photostructure/sqlite` if Node has none. Throws `invalid_options`; so does its
 * first use if the folder of the file does not exist.
 */
export function sqliteLog(path: string, options: SqliteLogOptions = {}): SqliteLog {
  const { synchronous = 'normal', cipher } = parse(OPTIONS, options, '`sqliteLog`')
  if (typeof path !== 'string' || path === '') throw invalidOptions('Expected the file of `sqliteLog` to be a path.')
  return new SqliteLogStore(path === ':memory:' ? path : resolve(path), synchronous, cipher)
}

class SqliteLogStore extends SqlLog<SqliteTables> implements SqliteLog {
  readonly outlives: boolean
  protected readonly followMs: number | null
  readonly #path: string
  readonly #synchronous: 'normal' | 'full'
  #tables: SqliteTables | null = null
  #files: DatabaseFiles | null = null
  #hasOpened = false
  /** Who has claimed a log in the files that are open. */
  readonly #owners = new Set<string>()
  /** Who had claimed a log in files that have lost their names. */
  readonly #lost = new Set<string>()

  constructor(path: string, synchronous: 'normal' | 'full', cipher: LogCodec | undefined) {
    super(cipher)
    this.#path = path
    this.#synchronous = synchronous
    this.outlives = path !== ':memory:'
    this.followMs = this.outlives ? 250 : null
  }

  async append(ref: LogRef, events: readonly LogEvent[], options: AppendOptions = {}): Promise<void> {
    checkRef(ref)
    await this.use(`store an event of ${nameOf(ref)}`, (tables) => {
      this.#checkOwner(options.owner)
      tables.transaction(() => {
        appendEvents(tables, ref, { events, options, codec: this.codec })
        tables.emptyPosts(ref, options.posts ?? [])
      })
    })
    this.followers.wake(ref)
  }

  claim(ref: LogRef, owner: string, ttlMs: number): Promise<boolean> {
    return this.use(`claim ${nameOf(ref)}`, (tables) => {
      checkRef(ref)
      checkClaim(owner, ttlMs)
      if (ttlMs > 0) this.#checkOwner(owner)
      const isGranted = tables.transaction(() => {
        const row = tables.log(ref)
        const claimant = row?.claimant ?? owner
        if (claimant !== owner && (ttlMs === 0 || row?.owner !== null)) return false
        if (ttlMs > 0) tables.claim(ref, owner, Date.now() + ttlMs)
        else if (row !== null) tables.release(ref, row)
        return true
      })
      if (isGranted && ttlMs > 0) this.#owners.add(owner)
      if (ttlMs === 0) this.#forget(owner)
      return isGranted
    })
  }

  async prune(options: PruneOptions): Promise<number> {
    const runs = await listPrunable(this.list())
    const references = await this.use('read its references', (tables) => tables.references())
    const { owner } = options
    const removals = removableRuns({ runs, references }, options, Date.now())
    const chosen = new Set(removals.map(({ ref }) => keyOf(ref)))
    let removed = 0
    // An owner removes all of them or none.
    for await (const piece of owner === undefined ? pieces(removals) : [removals])
      removed += await this.use('remove logs', (tables) =>
        tables.transaction(() => {
          if (owner !== undefined && removals.some(({ ref }) => tables.isOwnedByOther(ref, owner))) return 0
          return piece.filter((removal) => tables.isFree(removal.ref, chosen) && tables.remove(removal, owner)).length
        }),
      )
    if (options.only !== undefined && removed > 0)
      await this.use('remove logs', ({ database }) => emptyWalIfFree(database))
    return removed
  }

  scrub(): Promise<void> {
    return this.use('overwrite removed logs', ({ database }) => {
      if (rewriteFiles(database)) return
      throw new HarnessError(
        'store_failure',
        'Removed logs are still in the files: another process is reading them. Try again.',
      )
    })
  }

  protected erase(): Promise<boolean> {
    return this.use('overwrite former records', ({ database }) => rewriteFiles(database)).catch(() => false)
  }

  /** Whatever is found under the name of the file is opened, if it is not what was open. */
  protected override use<T>(act: string, work: (tables: SqliteTables) => T | Promise<T>): Promise<T> {
    const files = this.#files
    if (files?.haveMoved !== true) return super.use(act, work)
    this.#files = null
    if (!files.isMoved && this.#tables !== null) leaveWalIfFree(this.#tables.database)
    for (const owner of this.#owners) this.#lost.add(owner)
    this.#owners.clear()
    return this.close().then(() => super.use(act, work))
  }

  protected async openTables(): Promise<SqliteTables> {
    if (this.outlives) this.#prepareFolder(dirname(this.#path))
    this.#tables = new SqliteTables(await openDatabase(this.#path, this.#synchronous))
    this.#files = this.outlives ? new DatabaseFiles(this.#path) : null
    this.#hasOpened = true
    return this.#tables
  }

  /** The folder is there when the file is first opened; one that has been removed since is made again. */
  #prepareFolder(folder: string): void {
    if (this.#hasOpened) mkdirSync(folder, { recursive: true })
    else if (!existsSync(folder))
      throw invalidOptions(`The folder of \`sqliteLog\` does not exist: \`${folder}\`. Create it, or mend the path.`)
  }

  /** A copy of the file may have its claim. */
  #forget(owner: string): void {
    this.#owners.delete(owner)
    if (this.#lost.delete(owner)) endOwner(owner)
  }

  /** Its log is in a file that has no name any more: what it stored would be lost with this process. */
  #checkOwner(owner: string | undefined): void {
    if (owner === undefined || !this.#lost.has(owner)) return
    const message = `The file \`${this.#path}\`, or its \`-wal\` or \`-shm\`, was removed, moved or replaced while it was open.`
    throw new HarnessError('store_failure', message)
  }

  protected closeTables(): void {
    this.#tables?.database.close()
    this.#tables = null
    this.#files = null
  }
}

interface EventsToAppend {
  readonly events: readonly LogEvent[]
  readonly options: AppendOptions
  readonly codec: RecordCodec
}

function appendEvents(tables: SqliteTables, ref: LogRef, { events, options, codec }: EventsToAppend): void {
  const { owner, references = [] } = options
  const row = tables.log(ref)
  if ((row?.claimant ?? undefined) !== owner) throw ownedByAnother(ref, owner)
  const lastSeq = row?.lastSeq ?? 0
  lastSeqOf(ref, lastSeq, events)
  const [first, ...rest] = events
  if (first === undefined) return
  for (const event of events)
    tables.insertEvent(ref, event.seq, codec.encode(JSON.stringify(event), placeOfEvent(ref, event.seq)))
  tables.putDigest(ref, encodedColumns(codec, ref, digestColumns([first, ...rest], options.digest, lastSeq === 0)))
  for (const to of references) tables.refer(ref, to)
}

/** The tables of each kind of log, and the column that orders its list. */
const NAMES = {
  run: { logs: 'runs', events: 'events', id: 'run_id', order: 'started_at' },
  thread: { logs: 'threads', events: 'thread_events', id: 'thread_id', order: 'updated_at' },
} as const

interface StoredRow extends RawRow {
  readonly owned_until: number
  readonly changed: number
}

type Prepare = (sql: string) => Statement

function sharedStatements(prepare: Prepare) {
  return {
    addReference: prepare('insert into log_references values (?, ?, ?, ?) on conflict do nothing'),
    references: prepare('select from_kind, from_id, to_kind, to_id from log_references'),
    referrers: prepare('select from_kind as kind, from_id as id from log_references where to_kind = ? and to_id = ?'),
    dropReferences: prepare('delete from log_references where from_kind = ? and from_id = ?'),
    addPost: prepare('insert into posts (kind, log_id, post_id, body) values (?, ?, ?, ?) on conflict do nothing'),
    posts: prepare(
      'select post_id as id, body from posts where kind = ? and log_id = ? and body is not null order by number',
    ),
    emptyPost: prepare('update posts set body = null where kind = ? and log_id = ? and post_id = ?'),
    dropPosts: prepare('delete from posts where kind = ? and log_id = ?'),
    keepChanges: prepare('update appends set number = max(number, ?)'),
    putLabel: prepare('insert or replace into run_labels (run_id, name, value, started_at) values (?, ?, ?, ?)'),
    dropLabels: prepare('delete from run_labels where run_id = ?'),
  }
}

/** The statements for logs of one kind. */
function logStatements(prepare: Prepare, kind: LogKind) {
  const { logs, events, id } = NAMES[kind]
  // The table has the number of an append at least whose log was removed.
  const changes = `max((select number from appends), coalesce((select max(changed) from ${logs}), 0))`
  return {
    changes: prepare(`select ${changes} as number`),
    log: prepare(`select ${columnsOf(kind)} from ${logs} where ${id} = ?`),
    events: prepare(`select seq, event from ${events} where ${id} = ? and seq > ? order by seq limit ?`),
    insertEvent: prepare(`insert into ${events} (${id}, seq, event) values (?, ?, ?)`),
    // Writes no index but that of changes, and for threads that of times.
    goOn: prepare(
      `update ${logs} set last_seq = ?, updated_at = ?, digest = ?, changed = ${changes} + 1
       where ${id} = ? and phase is ? and started_at is coalesce(?, started_at)
         and parent_run_id is coalesce(?, parent_run_id) and resource_id is coalesce(?, resource_id)`,
    ),
    putDigest: prepare(
      `insert into ${logs} (${id}, last_seq, phase, started_at, updated_at, parent_run_id, resource_id, digest, changed)
       values (?, ?, ?, ?, ?, ?, ?, ?, ${changes} + 1)
       on conflict (${id}) do update set last_seq = excluded.last_seq, phase = excluded.phase,
         started_at = coalesce(excluded.started_at, started_at), updated_at = excluded.updated_at,
         parent_run_id = coalesce(excluded.parent_run_id, parent_run_id),
         resource_id = coalesce(excluded.resource_id, resource_id), digest = excluded.digest,
         changed = excluded.changed`,
    ),
    putOwner: prepare(
      `insert into ${logs} (${id}, owner, owned_until) values (?, ?, ?)
       on conflict (${id}) do update set owner = excluded.owner, owned_until = excluded.owned_until`,
    ),
    freeLog: prepare(`update ${logs} set owner = null, owned_until = 0 where ${id} = ?`),
    deleteLog: prepare(`delete from ${logs} where ${id} = ?`),
    deleteEvents: prepare(`delete from ${events} where ${id} = ?`),
  }
}

function columnsOf(kind: LogKind): string {
  const { logs, id } = NAMES[kind]
  return `${logs}.${id} as id, last_seq, ${logs}.started_at, updated_at, resource_id, digest, owner, owned_until, changed`
}

/** The statements, prepared once. */
class SqliteTables implements SqlTables {
  readonly database: Database
  readonly #shared: ReturnType<typeof sharedStatements>
  readonly #logs: Readonly<Record<LogKind, ReturnType<typeof logStatements>>>

  constructor(database: Database) {
    const prepare = (sql: string): Statement => database.prepare(sql)
    this.database = database
    this.#shared = sharedStatements(prepare)
    this.#logs = { run: logStatements(prepare, 'run'), thread: logStatements(prepare, 'thread') }
  }

  transaction<T>(work: () => T): T {
    return transaction(this.database, work)
  }

  log(ref: LogRef): ClaimedRow | null {
    const row = this.#logs[ref.kind].log.get(ref.id) as StoredRow | undefined
    return row === undefined ? null : storedRow(row)
  }

  events({ kind, id }: LogRef, after: number, limit: number): StoredEvent[] {
    return this.#logs[kind].events.all(id, after, limit) as StoredEvent[]
  }

  insertEvent({ kind, id }: LogRef, seq: number, event: string): void {
    this.#logs[kind].insertEvent.run(id, seq, event)
  }

  putDigest({ kind, id }: LogRef, columns: DigestColumns): void {
    const { lastSeq, phase, startedAt, updatedAt, parentRunId, resourceId, digest, labels } = columns
    const { goOn, putDigest } = this.#logs[kind]
    if (goOn.run(lastSeq, updatedAt, digest, id, phase, startedAt, parentRunId, resourceId).changes === 0)
      putDigest.run(id, lastSeq, phase, startedAt, updatedAt, parentRunId, resourceId, digest)
    for (const [name, value] of labels ?? []) this.#shared.putLabel.run(id, name, value, startedAt ?? updatedAt)
  }

  claim({ kind, id }: LogRef, owner: string, untilMs: number): void {
    this.#logs[kind].putOwner.run(id, owner, untilMs)
  }

  /** A row that is there only for its claim goes with it. */
  release({ kind, id }: LogRef, row: LogRow): void {
    const statements = this.#logs[kind]
    if (row.lastSeq === 0) statements.deleteLog.run(id)
    else statements.freeLog.run(id)
  }

  page(query: PageQuery): LogRow[] {
    const { kind, phases, parentRunId, owner, labels, before } = query
    const { logs, id, order } = NAMES[kind]
    const changedAfter = this.#changeBefore(query)
    const [first, ...others] = labels
    const conditions = ['last_seq > 0']
    const values: Value[] = []
    const require = (condition: string, ...bound: readonly Value[]): void => {
      conditions.push(condition)
      values.push(...bound)
    }
    if (phases !== null) require(`(phase is null or phase in (${marks(phases)}))`, ...phases)
    if (parentRunId !== undefined) require('parent_run_id is ?', parentRunId)
    if (owner !== undefined) {
      const foreign = owner.foreign.map(() => ' or (resource_id >= ? and resource_id < ?)').join('')
      require(`(resource_id = ?${foreign})`, owner.text, ...owner.foreign.flat())
    }
    // The index of labels has the order of the list.
    const isLabelled = first !== undefined && changedAfter === undefined
    for (const label of isLabelled ? others : labels)
      require(`exists (select 1 from run_labels where run_id = ${id} and ${LABEL})`, ...label)
    const [place, placeId] = isLabelled
      ? ['labelled.started_at', 'labelled.run_id']
      : [`${logs}.${order}`, `${logs}.${id}`]
    if (isLabelled) require('labelled.name = ? and labelled.value = ?', ...first)
    if (before !== null) require(`(${place}, ${placeId}) < (?, ?)`, before.time, before.id)
    if (changedAfter !== undefined) require('changed > ?', changedAfter)
    const from = isLabelled ? `run_labels as labelled cross join ${logs} on ${logs}.${id} = labelled.run_id` : logs
    const sorted = changedAfter === undefined ? `${place} desc, ${placeId} desc` : 'changed'
    return this.#rows(
      kind,
      `from ${from} where ${conditions.join(' and ')} order by ${sorted} limit ${PAGE_ROWS}`,
      values,
    )
  }

  open({ after, without }: OpenQuery): LogRow[] {
    const conditions = [WAITING]
    const values: Value[] = []
    if (after !== null) conditions.push('(started_at, run_id) > (?, ?)')
    if (after !== null) values.push(after.time, after.id)
    if (without.length > 0) {
      const tenant = `(select '=' || value from run_labels where run_id = runs.run_id and name = 'tenant')`
      conditions.push(`coalesce(${tenant}, '') not in (${marks(without)})`)
      values.push(...without)
    }
    const where = conditions.join(' and ')
    // Without statistics SQLite would go through all runs at the top.
    return this.#rows(
      'run',
      `from runs indexed by runs_waiting where ${where} order by started_at, run_id limit ${PAGE_ROWS}`,
      values,
    )
  }

  /** The append after which logs are listed: 0 for a cursor of a former file. */
  #changeBefore({ kind, changedAfter }: PageQuery): number | undefined {
    if (typeof changedAfter !== 'string') return changedAfter === null ? 0 : undefined
    if (!/^\d+$/.test(changedAfter)) throw invalidCursor(changedAfter)
    const { number } = this.#logs[kind].changes.get() as { number: number }
    return Number(changedAfter) > number ? 0 : Number(changedAfter)
  }

  #rows(kind: LogKind, query: string, values: readonly Value[]): LogRow[] {
    const statement = this.database.prepare(`select ${columnsOf(kind)} ${query}`)
    return (statement.all(...values) as StoredRow[]).map(storedRow)
  }

  refer(from: LogRef, to: LogRef): void {
    this.#shared.addReference.run(from.kind, from.id, to.kind, to.id)
  }

  references(): Reference[] {
    const rows = this.#shared.references.all() as Record<string, string>[]
    return rows.map((row) => ({
      from: { kind: row['from_kind'] as LogKind, id: row['from_id'] ?? '' },
      to: { kind: row['to_kind'] as LogKind, id: row['to_id'] ?? '' },
    }))
  }

  referrers({ kind, id }: LogRef): LogRef[] {
    return this.#shared.referrers.all(kind, id) as LogRef[]
  }

  post({ kind, id }: LogRef, post: StoredPost): void {
    this.#shared.addPost.run(kind, id, post.id, post.body)
  }

  posts({ kind, id }: LogRef): StoredPost[] {
    return this.#shared.posts.all(kind, id) as StoredPost[]
  }

  inboxes(): LogRef[] {
    const sql = 'select distinct kind, log_id as id from posts where body is not null'
    return this.database.prepare(sql).all() as LogRef[]
  }

  changeEvents({ kind, id: logId }: LogRef, changes: readonly RenewedRecord<number>[]): void {
    const { events, id } = NAMES[kind]
    const change = this.database.prepare(`update ${events} set event = ? where ${id} = ? and seq = ? and event = ?`)
    this.transaction(() => changes.forEach(({ key, before, after }) => change.run(after, logId, key, before)))
  }

  changePosts({ kind, id }: LogRef, changes: readonly RenewedRecord<string>[]): void {
    const sql = 'update posts set body = ? where kind = ? and log_id = ? and post_id = ? and body = ?'
    const change = this.database.prepare(sql)
    this.transaction(() => changes.forEach(({ key, before, after }) => change.run(after, kind, id, key, before)))
  }

  changeRow(kind: LogKind, { id: logId, lastSeq, resourceId, digest }: RewrittenRow): void {
    const { logs, id } = NAMES[kind]
    const sql = `update ${logs} set resource_id = ?, digest = ? where ${id} = ? and last_seq = ?`
    this.database.prepare(sql).run(resourceId, digest, logId, lastSeq)
  }

  emptyPosts({ kind, id }: LogRef, postIds: readonly string[]): void {
    for (const postId of postIds) this.#shared.emptyPost.run(kind, id, postId)
  }

  isOwnedByOther(ref: LogRef, owner: string | undefined): boolean {
    const claimant = this.log(ref)?.owner ?? null
    return claimant !== null && claimant !== owner
  }

  /** No log refers to it that has come since the logs were chosen. */
  isFree(ref: LogRef, chosen: ReadonlySet<string>): boolean {
    return this.referrers(ref).every((from) => chosen.has(keyOf(from)))
  }

  /** False if it has more events now, or another owner. */
  remove({ ref, lastSeq }: Removal, owner: string | undefined): boolean {
    const { kind, id } = ref
    const row = this.log(ref)
    if (row === null || (row.owner !== null && row.owner !== owner) || (lastSeq !== null && row.lastSeq !== lastSeq))
      return false
    this.#shared.keepChanges.run(Number(row.cursor))
    this.#logs[kind].deleteLog.run(id)
    this.#logs[kind].deleteEvents.run(id)
    this.#shared.dropReferences.run(kind, id)
    this.#shared.dropPosts.run(kind, id)
    if (kind === 'run') this.#shared.dropLabels.run(id)
    return true
  }
}

const LABEL = 'name = ? and value = ?'

function marks(values: readonly unknown[]): string {
  return values.map(() => '?').join(', ')
}

function storedRow(row: StoredRow): ClaimedRow {
  return claimedRow(row, { cursor: `${row.changed}`, isInTime: row.owned_until > Date.now() })
}

/** The version of the tables. A file with tables of another version is rejected. */
const SCHEMA_VERSION = 5

const SCHEMA = `
${logSchema({
  table: (name) => name,
  text: 'text',
  logColumns: 'owned_until integer not null default 0, changed integer not null default 0',
  byChange: () => 'changed',
  postNumber: 'integer primary key autoincrement',
  postKey: 'unique',
  keyed: 'without rowid',
})}
create table appends (number integer not null);
insert into appends values (0);`

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
