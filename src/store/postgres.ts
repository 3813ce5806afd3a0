import { placeOfEvent } from './codec/clear.js'
import { CIPHER } from './codec/log-codec.js'
import type { LogCodec } from './codec/log-codec.js'
import type { RenewedRecord, RewrittenRow, StoredEvent, StoredPost } from './codec/rewrite-tables.js'
import { checkPlace, POSTGRES_PLACE, openPool } from './postgres-pool.js'
import { changesAfter, columnNames, createTables, newPosition, versionedRow } from './postgres-schema.js'
import type { Names, StoredRow, VersionedRow } from './postgres-schema.js'
import type { PostgresPool, OwnPool } from './postgres-pool.js'
import { listPrunable, removableRuns } from './pruning.js'
import type { Reference, Removal } from './pruning.js'
import { digestColumns, encodedColumns, SqlLog, PAGE_ROWS, WAITING } from './sql-log.js'
import type { DigestColumns, LogRow, OpenQuery, OwnerTexts, PageQuery, SqlTables } from './sql-log.js'
import { HarnessError } from '#contracts/errors.js'
import { parse } from '#contracts/parse.js'
import type { PruneOptions } from '#core/log/list-options.js'
import { checkClaim, ownedByAnother } from '#core/log/log.js'
import type { AppendOptions, LogEvent, LogStore } from '#core/log/log.js'
import { hasEnded } from '#util/platform/owner.js'
import { checkRef, keyOf, lastSeqOf, nameOf } from '#core/log/ref.js'
import type { LogKind, LogRef } from '#core/log/ref.js'
import { partial } from '#util/validate.js'

export type { PostgresPool } from './postgres-pool.js'

/** One of `connectionString` and `pool`. */
export interface PostgresLogOptions {
  readonly connectionString?: string | undefined
  /** A pool of the package `pg`. It remains the caller's: `close` does not end it. Listen to its `error` events. */
  readonly pool?: PostgresPool | undefined
  /** The schema of the tables, which are created if they are missing. Default `thinharness`. */
  readonly schema?: string | undefined
  /** Encrypts or compresses what is stored: `encryption({ … })`, `compression()`. Default: neither. */
  readonly cipher?: LogCodec | undefined
}

export interface PostgresLog extends LogStore, AsyncDisposable {
  /** Ends its own connections. The next use opens new ones. */
  close(): Promise<void>
}

const OPTIONS = partial<PostgresLogOptions>({ ...POSTGRES_PLACE, cipher: CIPHER })

/**
 * A log in PostgreSQL, for any number of processes on any number of machines. Needs the package `pg`, unless a pool is
 * passed. An append whose connection is lost is looked up: it resolves if the events were stored; else it rejects, and
 * they will not be stored later. Throws `invalid_options`.
 */
export function postgresLog(options: PostgresLogOptions): PostgresLog {
  const parsed = parse(OPTIONS, options, '`postgresLog`')
  checkPlace(parsed, '`postgresLog`')
  return new PostgresLogStore(parsed)
}

/** Logs whose version is remembered, so that an append takes one statement. */
const REMEMBERED_LOGS = 5000
/** How often an append is tried again because another process has changed the log at the same moment. */
const ATTEMPTS = 5
/** The time before each attempt to look up an append whose connection was lost, in ms. */
const LOOK_AFTER_MS = [0, 100, 300, 1000, 3000]

class PostgresLogStore extends SqlLog<PostgresTables> implements PostgresLog {
  readonly outlives = true
  protected readonly followMs = 1000
  readonly #options: PostgresLogOptions
  readonly #remembered = new Map<string, VersionedRow>()
  #ownPool: OwnPool | null = null

  constructor(options: PostgresLogOptions) {
    super(options.cipher)
    this.#options = options
  }

  append(ref: LogRef, events: readonly LogEvent[], options: AppendOptions = {}): Promise<void> {
    return this.use(`store an event of ${nameOf(ref)}`, async (tables) => {
      checkRef(ref)
      const { owner, references = [], posts = [] } = options
      const texts = events.map((event) => this.#stored(ref, event))
      for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
        const row = await this.#rowFor(tables, ref, { events, owner })
        const [first, ...rest] = events
        if (first === undefined) return
        const { version } = row
        const isNew = row.lastSeq === 0
        const columns = encodedColumns(this.codec, ref, digestColumns([first, ...rest], options.digest, isNew))
        const next = await versionAfter(tables, {
          ref,
          version,
          owner: owner ?? null,
          columns,
          texts,
          references,
          posts,
        })
        this.#remembered.delete(keyOf(ref))
        if (next === null) continue
        this.#remember(ref, { ...row, version: next, lastSeq: columns.lastSeq })
        this.followers.wake(ref)
        return
      }
      throw new HarnessError('store_failure', `The log of ${nameOf(ref)} is being changed by other processes.`)
    })
  }

  claim(ref: LogRef, owner: string, ttlMs: number): Promise<boolean> {
    return this.use(`claim ${nameOf(ref)}`, async (tables) => {
      checkRef(ref)
      checkClaim(owner, ttlMs)
      if (ttlMs === 0) {
        this.#remembered.delete(keyOf(ref))
        return tables.release(ref, owner)
      }
      if (await tables.claim(ref, owner, { ttlMs, ended: null })) return true
      const holder = (await tables.log(ref))?.claimant ?? null
      return holder === null || hasEnded(holder) ? tables.claim(ref, owner, { ttlMs, ended: holder }) : false
    })
  }

  async prune(options: PruneOptions): Promise<number> {
    const runs = await listPrunable(this.list())
    return this.use('remove logs', async (tables) => {
      const removals = removableRuns({ runs, references: await tables.references() }, options, Date.now())
      const { owner } = options
      if (owner !== undefined && (await tables.areOwnedByOthers(removals, owner))) return 0
      const removeOfKind = (kind: LogKind): Promise<number> => {
        const removalsOfKind = removals.filter(({ ref }) => ref.kind === kind)
        return tables.remove(kind, removalsOfKind, owner)
      }
      // Threads first: they refer to runs.
      return (await removeOfKind('thread')) + (await removeOfKind('run'))
    })
  }

  /** Former versions of rows stay until the next vacuum. */
  protected erase(): Promise<boolean> {
    return Promise.resolve(false)
  }

  #stored(ref: LogRef, event: LogEvent): StoredEvent {
    return { seq: event.seq, event: this.codec.encode(JSON.stringify(event), placeOfEvent(ref, event.seq)) }
  }

  /** The row of the log, if `owner` may append `events` to it. A remembered row may be out of date. */
  async #rowFor(tables: PostgresTables, ref: LogRef, append: Appending): Promise<VersionedRow> {
    const remembered = this.#remembered.get(keyOf(ref))
    if (remembered !== undefined && appendRejection(ref, remembered, append) === null) return remembered
    this.#remembered.delete(keyOf(ref))
    const row = await tables.logOrNew(ref)
    const rejection = appendRejection(ref, row, append)
    if (rejection !== null) throw rejection
    return row
  }

  #remember(ref: LogRef, row: VersionedRow): void {
    this.#remembered.set(keyOf(ref), row)
    if (this.#remembered.size <= REMEMBERED_LOGS) return
    for (const oldest of this.#remembered.keys()) {
      this.#remembered.delete(oldest)
      return
    }
  }

  protected async openTables(): Promise<PostgresTables> {
    const { connectionString = '', schema = 'thinharness', pool } = this.#options
    const used = pool ?? (this.#ownPool ??= await openPool(connectionString, '`postgresLog`'))
    await createTables(used, schema)
    return new PostgresTables(used, schema)
  }

  protected async closeTables(): Promise<void> {
    const pool = this.#ownPool
    this.#ownPool = null
    await pool?.end()
  }
}

interface Appending {
  readonly events: readonly LogEvent[]
  readonly owner: string | undefined
}

/** Why these events may not be appended; null if they may. */
function appendRejection(ref: LogRef, row: VersionedRow, { events, owner }: Appending): HarnessError | null {
  if ((row.claimant ?? undefined) !== owner) return ownedByAnother(ref, owner)
  try {
    lastSeqOf(ref, row.lastSeq, events)
    return null
  } catch (error) {
    if (error instanceof HarnessError) return error
    throw error
  }
}

/** The new version of the log; null if it had another version, and nothing was stored. */
async function versionAfter(tables: PostgresTables, append: VersionedAppend): Promise<number | null> {
  try {
    return (await tables.append(append)) ? append.version + 1 : null
  } catch (error) {
    const version = await lookUp(tables, append)
    if (version === null) throw error
    return version
  }
}

/**
 * The outcome of an append that failed: the log's version if it was stored, else null. After the look-up, an append that
 * is still on its way to the server stores nothing.
 */
async function lookUp(tables: PostgresTables, { ref, texts }: VersionedAppend): Promise<number | null> {
  let failure: unknown
  for (const afterMs of LOOK_AFTER_MS) {
    await new Promise((resolve) => setTimeout(resolve, afterMs))
    try {
      const version = await tables.fence(ref)
      const stored = await tables.events(ref, (texts[0]?.seq ?? 1) - 1, texts.length)
      const isStored = texts.every(({ seq, event }, index) => {
        return stored[index]?.seq === seq && stored[index].event === event
      })
      return isStored ? version : null
    } catch (error) {
      failure = error
    }
  }
  throw failure
}

/** An append to a log of one version. */
export interface VersionedAppend {
  readonly ref: LogRef
  readonly version: number
  readonly owner: string | null
  readonly columns: DigestColumns
  readonly texts: readonly StoredEvent[]
  readonly references: readonly LogRef[]
  /** Ids of posts that leave the inbox. */
  readonly posts: readonly string[]
}

/** The statements: each is a transaction of its own. */
class PostgresTables implements SqlTables {
  readonly #pool: PostgresPool
  readonly #names: Readonly<Record<LogKind, Names>>
  readonly #references: string
  readonly #posts: string
  readonly #labels: string

  constructor(pool: PostgresPool, schema: string) {
    const table = (name: string): string => `"${schema}".${name}`
    this.#pool = pool
    this.#names = {
      run: { logs: table('runs'), events: table('events'), id: 'run_id', order: 'started_at' },
      thread: { logs: table('threads'), events: table('thread_events'), id: 'thread_id', order: 'updated_at' },
    }
    this.#references = table('log_references')
    this.#posts = table('posts')
    this.#labels = table('run_labels')
  }

  async log({ kind, id }: LogRef): Promise<VersionedRow | null> {
    const names = this.#names[kind]
    const sql = `select ${columnNames(names)} from ${names.logs} where ${names.id} = $1`
    const [row] = await this.#rows<StoredRow>(sql, [id])
    return row === undefined ? null : versionedRow(row)
  }

  async logOrNew(ref: LogRef): Promise<VersionedRow> {
    const { logs, id } = this.#names[ref.kind]
    const existing = await this.log(ref)
    if (existing !== null) return existing
    const sql = `
      insert into ${logs} (${id}) values ($1) on conflict (${id}) do update set ${id} = excluded.${id}
      returning ${columnNames(this.#names[ref.kind])}`
    const [row] = await this.#rows<StoredRow>(sql, [ref.id])
    if (row === undefined) throw new TypeError('Expected the row that was written.')
    return versionedRow(row)
  }

  events({ kind, id: logId }: LogRef, after: number, limit: number): Promise<StoredEvent[]> {
    const { events, id } = this.#names[kind]
    const sql = `select seq, event from ${events} where ${id} = $1 and seq > $2 order by seq limit $3`
    return this.#rows<StoredEvent>(sql, [logId, after, limit])
  }

  /** False, and nothing is stored, if the log has another version or owner. */
  async append(append: VersionedAppend): Promise<boolean> {
    const { ref, version, owner, columns, texts, references, posts } = append
    const { logs, events, id } = this.#names[ref.kind]
    const { lastSeq, phase, startedAt, updatedAt, parentRunId, resourceId, digest, labels } = columns
    const values: unknown[] = [ref.id, version, owner, lastSeq, phase, startedAt, updatedAt, parentRunId, resourceId]
    values.push(
      digest,
      texts.map(({ seq }) => seq),
      texts.map(({ event }) => event),
    )
    const place = placesIn(values)
    const parts = [
      `log as (
        update ${logs} set version = version + 1, last_seq = $4, phase = $5, started_at = coalesce($6, started_at),
          updated_at = $7, parent_run_id = coalesce($8, parent_run_id), resource_id = coalesce($9, resource_id), digest = $10,
          changed = pg_current_xact_id()
        where ${id} = $1 and version = $2 and owner is not distinct from $3::text
        returning ${id} as id
      )`,
    ]
    if (references.length > 0) {
      const kinds = place(references.map(({ kind }) => kind))
      const ids = place(references.map((to) => to.id))
      parts.push(`referred as (
        insert into ${this.#references} (from_kind, from_id, to_kind, to_id)
        select ${place(ref.kind)}, log.id, given.kind, given.id
        from log, unnest(${kinds}::text[], ${ids}::text[]) as given (kind, id) on conflict do nothing
      )`)
    }
    if (labels !== null && labels.length > 0) {
      const names = place(labels.map(([name]) => name))
      const texts = place(labels.map(([, value]) => value))
      parts.push(`labelled as (
        insert into ${this.#labels} (run_id, name, value, started_at)
        select log.id, given.name, given.value, ${place(startedAt ?? updatedAt)}
        from log, unnest(${names}::text[], ${texts}::text[]) as given (name, value)
        on conflict (run_id, name) do update set value = excluded.value
      )`)
    }
    if (posts.length > 0) {
      parts.push(`emptied as (
        update ${this.#posts} set body = null
        where kind = ${place(ref.kind)} and log_id in (select id from log) and post_id = any(${place(posts)}::text[])
      )`)
    }
    const sql = `
      with ${parts.join(', ')}
      insert into ${events} (${id}, seq, event)
      select log.id, seq, event from log, unnest($11::integer[], $12::text[]) as given (seq, event)`
    const { rowCount } = await this.#pool.query(sql, values)
    return rowCount === texts.length
  }

  /** Changes the version of the log, so that an append that is still on its way stores nothing; gives the version. */
  async fence(ref: LogRef): Promise<number | null> {
    const { logs, id } = this.#names[ref.kind]
    const sql = `update ${logs} set version = version + 1 where ${id} = $1 returning version`
    const [row] = await this.#rows<{ version: number }>(sql, [ref.id])
    return row?.version ?? null
  }

  /** `ended`: an owner that is replaced although its claim has not expired. */
  async claim(
    ref: LogRef,
    owner: string,
    { ttlMs, ended }: { readonly ttlMs: number; readonly ended: string | null },
  ): Promise<boolean> {
    const { logs, id } = this.#names[ref.kind]
    const sql = `
      insert into ${logs} as logs (${id}, owner, owned_until)
      values ($1, $2, clock_timestamp() + $3 * interval '1 millisecond')
      on conflict (${id}) do update set owner = excluded.owner, owned_until = excluded.owned_until,
        version = logs.version + case when logs.owner = excluded.owner then 0 else 1 end
      where logs.owner is null or logs.owner in ($2, $4::text) or logs.owned_until <= clock_timestamp()
      returning version`
    return (await this.#rows(sql, [ref.id, owner, ttlMs, ended])).length > 0
  }

  /** False if another owner has claimed the log. */
  async release(ref: LogRef, owner: string): Promise<boolean> {
    const { logs, id } = this.#names[ref.kind]
    const sql = `
      update ${logs} set owner = null, owned_until = null, version = version + 1
      where ${id} = $1 and owner = $2 returning last_seq = 0 as empty`
    const [released] = await this.#rows<{ empty: boolean }>(sql, [ref.id, owner])
    if (released === undefined) return ((await this.log(ref))?.claimant ?? null) === null
    const nothing = `delete from ${logs} where ${id} = $1 and owner is null and last_seq = 0`
    if (released.empty) await this.#pool.query(nothing, [ref.id])
    return true
  }

  async post({ kind, id }: LogRef, post: StoredPost): Promise<void> {
    const sql = `insert into ${this.#posts} (kind, log_id, post_id, body) values ($1, $2, $3, $4) on conflict do nothing`
    await this.#pool.query(sql, [kind, id, post.id, post.body])
  }

  posts({ kind, id }: LogRef): Promise<StoredPost[]> {
    const sql = `
      select post_id as id, body from ${this.#posts} where kind = $1 and log_id = $2 and body is not null order by number`
    return this.#rows<StoredPost>(sql, [kind, id])
  }

  inboxes(): Promise<LogRef[]> {
    return this.#rows<LogRef>(`select distinct kind, log_id as id from ${this.#posts} where body is not null`, [])
  }

  async changeEvents({ kind, id: logId }: LogRef, changes: readonly RenewedRecord<number>[]): Promise<void> {
    const { events, id } = this.#names[kind]
    const sql = `
      update ${events} as stored set event = given.after
      from unnest($2::integer[], $3::text[], $4::text[]) as given (seq, before, after)
      where stored.${id} = $1 and stored.seq = given.seq and stored.event = given.before`
    await this.#pool.query(sql, [logId, ...columnsOf(changes)])
  }

  async changePosts({ kind, id }: LogRef, changes: readonly RenewedRecord<string>[]): Promise<void> {
    const sql = `
      update ${this.#posts} as stored set body = given.after
      from unnest($3::text[], $4::text[], $5::text[]) as given (id, before, after)
      where stored.kind = $1 and stored.log_id = $2 and stored.post_id = given.id and stored.body = given.before`
    await this.#pool.query(sql, [kind, id, ...columnsOf(changes)])
  }

  async changeRow(kind: LogKind, { id: logId, lastSeq, resourceId, digest }: RewrittenRow): Promise<void> {
    const { logs, id } = this.#names[kind]
    const sql = `update ${logs} set resource_id = $3, digest = $4 where ${id} = $1 and last_seq = $2`
    await this.#pool.query(sql, [logId, lastSeq, resourceId, digest])
  }

  async page(query: PageQuery): Promise<readonly LogRow[]> {
    const { kind, labels, changedAfter, before } = query
    const names = this.#names[kind]
    const { logs, id, order } = names
    const values: unknown[] = []
    const place = placesIn(values)
    const conditions = this.#conditions(query, place)
    if (changedAfter !== undefined) return this.#changedPage(query, { conditions, values, place })
    const [label] = labels
    let [from, time, last] = [logs, `${logs}.${order}`, `${logs}.${id}`]
    if (label !== undefined) {
      // The index of labels has the order of the list.
      from = `${this.#labels} as labelled join ${logs} on ${logs}.${id} = labelled.run_id`
      ;[time, last] = ['labelled.started_at', 'labelled.run_id']
      conditions.push(`labelled.name = ${place(label[0])} and labelled.value = ${place(label[1])}`)
    }
    if (before !== null) conditions.push(`(${time}, ${last}) < (${place(before.time)}, ${place(before.id)})`)
    const sql = `select ${columnNames(names)} from ${from} where ${conditions.join(' and ')}
      order by ${time} desc, ${last} desc limit ${PAGE_ROWS}`
    return (await this.#rows<StoredRow>(sql, values)).map(versionedRow)
  }

  /** The logs whose last append is after a cursor, in one statement: in one snapshot. */
  async #changedPage(
    { kind, changedAfter }: PageQuery,
    given: { readonly conditions: readonly string[]; readonly values: unknown[]; readonly place: Place },
  ): Promise<readonly LogRow[]> {
    const { conditions, values, place } = given
    const names = this.#names[kind]
    const position = newPosition(changedAfter ?? null)
    const rows = (condition: string): string =>
      `(select ${columnNames(names)} from ${names.logs} where ${[...conditions, condition].join(' and ')}
        order by ${names.logs}.changed, ${names.id}`
    // A number that the server has not given yet is of another server: all of its appends count.
    const after = `${place(position.changed)}::xid8`
    const from = `case when ${after} < pg_snapshot_xmax(pg_current_snapshot()) then ${after} else '0' end`
    const later = `${rows(`(changed, ${names.id}) > (${from}, ${place(position.id)})`)} limit ${PAGE_ROWS})`
    const late = position.open.length === 0 ? [] : [`${rows(`changed = any(${place(position.open)}::xid8[])`)})`]
    const found = await this.#rows<StoredRow>([...late, later].join(' union all '), values)
    return changesAfter(position, found)
  }

  #conditions({ kind, phases, parentRunId, owner, labels, changedAfter }: PageQuery, place: Place): string[] {
    const { logs, id } = this.#names[kind]
    const conditions = ['last_seq > 0']
    if (phases !== null) conditions.push(`(phase is null or phase = any(${place(phases)}))`)
    if (parentRunId === null) conditions.push('parent_run_id is null')
    else if (parentRunId !== undefined) conditions.push(`parent_run_id = ${place(parentRunId)}`)
    if (owner !== undefined) conditions.push(ownerCondition(owner, place))
    for (const [name, value] of changedAfter === undefined ? labels.slice(1) : labels)
      conditions.push(`exists (select 1 from ${this.#labels} as own where own.run_id = ${logs}.${id}
        and own.name = ${place(name)} and own.value = ${place(value)})`)
    return conditions
  }

  async open({ after, without }: OpenQuery): Promise<LogRow[]> {
    const names = this.#names.run
    const values: unknown[] = []
    const place = placesIn(values)
    const conditions = [WAITING]
    if (after !== null) conditions.push(`(started_at, run_id) > (${place(after.time)}, ${place(after.id)})`)
    if (without.length > 0) {
      const tenant = `(select '=' || value from ${this.#labels} as own where own.run_id = ${names.logs}.run_id and own.name = 'tenant')`
      conditions.push(`coalesce(${tenant}, '') <> all(${place(without)}::text[])`)
    }
    const sql = `select ${columnNames(names)} from ${names.logs} where ${conditions.join(' and ')}
      order by started_at, run_id limit ${PAGE_ROWS}`
    return (await this.#rows<StoredRow>(sql, values)).map(versionedRow)
  }

  async references(): Promise<Reference[]> {
    const sql = `select from_kind, from_id, to_kind, to_id from ${this.#references}`
    const rows = await this.#rows<{ from_kind: LogKind; from_id: string; to_kind: LogKind; to_id: string }>(sql, [])
    return rows.map((row) => ({
      from: { kind: row.from_kind, id: row.from_id },
      to: { kind: row.to_kind, id: row.to_id },
    }))
  }

  referrers({ kind, id }: LogRef): Promise<LogRef[]> {
    const sql = `select from_kind as kind, from_id as id from ${this.#references} where to_kind = $1 and to_id = $2`
    return this.#rows<LogRef>(sql, [kind, id])
  }

  /**
   * Removes logs of one kind that have no more events than when they were chosen, that nobody but `owner` owns, and that no log
   * refers to but those removed with them. Resolves to their number.
   */
  async remove(kind: LogKind, removals: readonly Removal[], owner: string | undefined): Promise<number> {
    const { logs, events, id } = this.#names[kind]
    const sql = `
      with gone as (
        delete from ${logs} using unnest($1::text[], $2::integer[]) as given (id, seq)
        where ${id} = given.id and last_seq > 0 and (given.seq is null or last_seq = given.seq)
          and (owner is null or owner = $4 or owned_until <= clock_timestamp())
          and not exists (select 1 from ${this.#references} where to_kind = $3 and to_id = given.id
            and not (from_kind = $3 and from_id = any($1::text[])))
        returning ${id} as id
      ), without_events as (
        delete from ${events} where ${id} in (select id from gone)
      ), without_references as (
        delete from ${this.#references} where from_kind = $3 and from_id in (select id from gone)
      ), without_posts as (
        delete from ${this.#posts} where kind = $3 and log_id in (select id from gone)
      ), without_labels as (
        delete from ${this.#labels} where $3 = 'run' and run_id in (select id from gone)
      )
      select id from gone`
    const ids = removals.map(({ ref }) => ref.id)
    const seqs = removals.map(({ lastSeq }) => lastSeq)
    return (await this.#rows(sql, [ids, seqs, kind, owner ?? null])).length
  }

  /** True if somebody else than `owner` owns one of the logs. */
  async areOwnedByOthers(removals: readonly Removal[], owner: string): Promise<boolean> {
    for (const kind of ['thread', 'run'] as const) {
      const { logs, id } = this.#names[kind]
      const ids = removals.flatMap(({ ref }) => (ref.kind === kind ? [ref.id] : []))
      const sql = `select 1 from ${logs} where ${id} = any($1::text[]) and owner <> $2 and owned_until > clock_timestamp()`
      if ((await this.#rows(sql, [ids, owner])).length > 0) return true
    }
    return false
  }

  async #rows<Row>(sql: string, values: unknown[]): Promise<Row[]> {
    return (await this.#pool.query(sql, values)).rows as Row[]
  }
}

/** The place of a value in a statement. */
type Place = (value: unknown) => string

function placesIn(values: unknown[]): Place {
  return (value) => `$${values.push(value)}`
}

function ownerCondition({ text, foreign }: OwnerTexts, place: Place): string {
  const others = foreign.map(([from, below]) => ` or (resource_id >= ${place(from)} and resource_id < ${place(below)})`)
  return `(resource_id = ${place(text)}${others.join('')})`
}

function columnsOf(changes: readonly RenewedRecord<unknown>[]): unknown[] {
  return [changes.map(({ key }) => key), changes.map(({ before }) => before), changes.map(({ after }) => after)]
}
