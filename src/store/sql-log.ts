import { HarnessError } from '#contracts/errors.js'
import { summaryOf } from '#core/log/run-summary.js'
import type { LogSummaries, RunDigest, RunSummary, ThreadSummary } from '#core/log/run-summary.js'
import { isListed, listQuery, queriedPhases } from './list-query.js'
import type { ListOptions, PruneOptions, WaitingOptions } from '#core/log/list-options.js'
import type { ListQuery, Place } from './list-query.js'
import { checkPost, ownedByAnother, parseEvent, storeFailure } from '#core/log/log.js'
import type { AppendOptions, FollowOptions, LogDigest, LogEvent, LogStore, Post, ReadOptions } from '#core/log/log.js'
import { hasEnded } from '#util/platform/owner.js'
import { checkRef, nameOf } from '#core/log/ref.js'
import type { LogKind, LogRef } from '#core/log/ref.js'
import type { DurableEvent } from '#core/state/events.js'
import { isObject, jsonOr } from '#util/json.js'
import type { JsonObject } from '#util/json.js'
import { CLEAR, placeOfDigest, placeOfEvent, placeOfPost } from './codec/clear.js'
import type { LogCodec, RecordCodec, Rewritable, Rewriting } from './codec/log-codec.js'
import type { MaybePromise, RewrittenRow, RewrittenTables, StoredEvent, StoredPost } from './codec/rewrite-tables.js'
import { chosenWaiting, exportRun, foldRun, unlessDamaged, unreadableRun } from './fold-run.js'
import { Followers } from './followers.js'

/** Rows that are fetched together. */
export const PAGE_ROWS = 100

/** The columns that store a log in short; null: as it was before. */
export interface DigestColumns {
  readonly lastSeq: number
  /** Of a run with a digest. */
  readonly phase: string | null
  readonly startedAt: string | null
  readonly updatedAt: string
  readonly parentRunId: string | null
  readonly resourceId: string | null
  /** JSON; null if the writer passed none. */
  readonly digest: string | null
  /** Of a run that begins or goes on. */
  readonly labels: LabelPairs | null
}

type LabelPairs = readonly (readonly [name: string, value: string])[]

/** The fields of a run's first event that its row needs. */
interface Beginning {
  readonly parentRunId: unknown
  readonly metadata: unknown
  readonly labels: unknown
}

/** `isNew`: the log has no events yet. */
export function digestColumns(
  events: readonly [LogEvent, ...LogEvent[]],
  digest: LogDigest | undefined,
  isNew: boolean,
): DigestColumns {
  const [first] = events
  const last = events.at(-1) ?? first
  const beginning: Partial<Beginning> = isNew ? (first as LogEvent & Partial<Beginning>) : {}
  const run = isRunDigest(digest) ? digest : null
  const metadata = run?.metadata ?? beginning.metadata
  const parentRunId = run?.parent?.runId ?? beginning.parentRunId
  return {
    lastSeq: last.seq,
    phase: run?.phase ?? null,
    startedAt: run?.startedAt ?? (isNew ? first.at : null),
    updatedAt: last.at,
    parentRunId: textOr(parentRunId),
    resourceId: textOr((digest as JsonObject | undefined)?.['resourceId'] ?? metadataResource(metadata)),
    digest: digest === undefined ? null : JSON.stringify(digest),
    labels: labelsSetBy(events, run),
  }
}

function labelsSetBy(events: readonly LogEvent[], run: RunDigest | null): LabelPairs | null {
  const beginning = events.find(({ kind }) => kind === 'run_started' || kind === 'run_queued')
  if (beginning === undefined) return null
  const labels = run?.labels ?? (beginning as LogEvent & Partial<Beginning>).labels
  return isObject(labels) ? Object.entries(labels).map(([name, value]) => [name, String(value)] as const) : []
}

/** The columns as they are stored. */
export function encodedColumns(codec: RecordCodec, ref: LogRef, columns: DigestColumns): DigestColumns {
  if (codec === CLEAR) return columns
  const { digest, resourceId, lastSeq } = columns
  return {
    ...columns,
    resourceId: resourceId === null ? null : codec.ownerText(resourceId),
    digest: digest === null ? null : codec.encode(digest, placeOfDigest(ref, lastSeq)),
  }
}

function isRunDigest(digest: LogDigest | undefined): digest is RunDigest {
  return digest !== undefined && 'phase' in digest && 'usage' in digest && 'startedAt' in digest
}

function metadataResource(metadata: unknown): unknown {
  return isObject(metadata) ? metadata['resourceId'] : undefined
}

function textOr(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}

/** One page of a list, in its order. */
export interface PageQuery extends Pick<ListQuery, 'labels' | 'changedAfter'> {
  readonly kind: LogKind
  /** Of the runs; null: all. Rows without a phase are wanted in any case. */
  readonly phases: readonly RunDigest['phase'][] | null
  readonly parentRunId: string | null | undefined
  /** Undefined: all. */
  readonly owner: OwnerTexts | undefined
  readonly before: Place | null
}

/** A log as a row stores it. */
export interface LogRow extends RewrittenRow {
  readonly startedAt: string
  readonly updatedAt: string
  /** Where its last append is among all. */
  readonly cursor: string
}

/** The row of a log, and its owner, even if that claim has expired. */
export interface ClaimedRow extends LogRow {
  readonly claimant: string | null
}

/** What differs between databases. */
export interface SqlDialect {
  /** A table by its name, with its schema. */
  readonly table: (name: string) => string
  /** The type of texts that are compared byte by byte. */
  readonly text: string
  /** Columns of a log: `owned_until`, `changed`. */
  readonly logColumns: string
  /** The order of changes. */
  readonly byChange: (id: string) => string
  /** How posts are numbered and found. */
  readonly postNumber: string
  readonly postKey: 'unique' | 'primary key'
  /** Of tables that are found by their key. */
  readonly keyed: string
}

/** The runs at the top that have not ended, for an index and its queries. */
export const WAITING =
  "parent_run_id is null and started_at is not null and (phase is null or phase in ('queued', 'open'))"

/** The statements that create the tables of a log. Threads have the tables and columns of runs. */
export function logSchema({ table, text, keyed, ...dialect }: SqlDialect): string {
  const index = (name: string, on: string, columns: string): string =>
    `create index if not exists ${name} on ${table(on)} (${columns})`
  const logTables = (logs: string, events: string, id: string): string => `
    create table if not exists ${table(logs)} (
      ${id} ${text} primary key,
      last_seq integer not null default 0,
      phase text,
      started_at ${text},
      updated_at ${text},
      parent_run_id ${text},
      resource_id ${text},
      digest text,
      owner text,
      ${dialect.logColumns}
    );
    ${index(`${logs}_by_change`, logs, dialect.byChange(id))};
    create table if not exists ${table(events)} (
      ${id} ${text} not null,
      seq integer not null,
      event text not null,
      primary key (${id}, seq)
    );`
  return `
    ${logTables('runs', 'events', 'run_id')}
    ${index('runs_by_start', 'runs', 'started_at desc, run_id desc')};
    ${index('runs_by_phase', 'runs', 'phase, started_at desc, run_id desc')};
    ${index('runs_by_parent', 'runs', 'parent_run_id, started_at desc, run_id desc')};
    ${index('runs_by_resource', 'runs', 'resource_id, started_at desc, run_id desc')};
    ${index('runs_waiting', 'runs', 'started_at, run_id')} where ${WAITING};
    create table if not exists ${table('run_labels')} (
      run_id ${text} not null,
      name ${text} not null,
      value ${text} not null,
      started_at ${text} not null,
      primary key (run_id, name)
    ) ${keyed};
    ${index('run_labels_by_value', 'run_labels', 'name, value, started_at desc, run_id desc')};
    ${logTables('threads', 'thread_events', 'thread_id')}
    ${index('threads_by_update', 'threads', 'updated_at desc, thread_id desc')};
    ${index('threads_by_resource', 'threads', 'resource_id, updated_at desc, thread_id desc')};
    create table if not exists ${table('log_references')} (
      from_kind ${text} not null,
      from_id ${text} not null,
      to_kind ${text} not null,
      to_id ${text} not null,
      primary key (from_kind, from_id, to_kind, to_id)
    ) ${keyed};
    ${index('log_references_by_target', 'log_references', 'to_kind, to_id')};
    create table if not exists ${table('posts')} (
      number ${dialect.postNumber},
      kind ${text} not null,
      log_id ${text} not null,
      post_id ${text} not null,
      body text,
      ${dialect.postKey} (kind, log_id, post_id)
    );`
}

/** The columns of a log that both databases have. */
export interface RawRow {
  readonly id: string
  readonly last_seq: number
  readonly started_at: string
  readonly updated_at: string
  readonly resource_id: string | null
  readonly digest: string | null
  readonly owner: string | null
}

/** The row with its cursor. `isInTime`: the claim of its owner has not expired. */
export function claimedRow(
  { id, last_seq, started_at, updated_at, resource_id, digest, owner }: RawRow,
  { cursor, isInTime }: { readonly cursor: string; readonly isInTime: boolean },
): ClaimedRow {
  const times = { startedAt: started_at, updatedAt: updated_at }
  const isHeld = owner !== null && isInTime && !hasEnded(owner)
  const owners = { claimant: owner, owner: isHeld ? owner : null }
  return { id, lastSeq: last_seq, ...times, cursor, resourceId: resource_id, digest, ...owners }
}

export interface OwnerTexts {
  /** As a column stores an owner. */
  readonly text: string
  /** Texts of the column that may be those of any owner. */
  readonly foreign: RecordCodec['foreignOwners']
}

/** The queries of a database. */
export interface SqlTables extends RewrittenTables {
  log(ref: LogRef): MaybePromise<ClaimedRow | null>
  page(query: PageQuery): MaybePromise<readonly LogRow[]>
  /** The oldest runs at the top that have not ended, after `place`, without those of some tenants. */
  open(query: OpenQuery): MaybePromise<readonly LogRow[]>
  referrers(ref: LogRef): MaybePromise<readonly LogRef[]>
  post(ref: LogRef, post: StoredPost): MaybePromise<void>
}

export interface OpenQuery {
  readonly after: Place | null
  /** As `tenantOf` names them: `=` and the label, or nothing. */
  readonly without: readonly string[]
}

/** What is the same in every SQL database. It is opened when first used. */
export abstract class SqlLog<Tables extends SqlTables> implements LogStore, Rewritable, AsyncDisposable {
  abstract readonly outlives: boolean
  /** Until a follower sees an event of another process, at most, in ms; null: there are no others. */
  protected abstract readonly followMs: number | null
  protected readonly followers = new Followers()
  protected codec: RecordCodec = CLEAR
  /** Is loaded when the database is first opened. */
  #cipher: LogCodec | undefined
  #opening: Promise<Tables> | null = null

  constructor(cipher: LogCodec | undefined) {
    this.#cipher = cipher
  }

  abstract append(ref: LogRef, events: readonly LogEvent[], options?: AppendOptions): Promise<void>
  abstract claim(ref: LogRef, owner: string, ttlMs: number): Promise<boolean>
  abstract prune(options: PruneOptions): Promise<number>
  protected abstract openTables(): Promise<Tables>
  protected abstract closeTables(): void | Promise<void>

  async *read<Event extends LogEvent = DurableEvent>(
    ref: LogRef,
    { after = 0 }: ReadOptions = {},
  ): AsyncGenerator<Event> {
    checkRef(ref)
    yield* readPages<Event>(ref, {
      after,
      fetchPage: (start) => this.use(`read ${nameOf(ref)}`, (tables) => tables.events(ref, start, PAGE_ROWS)),
      decode: ({ seq, event }) => this.codec.decode(event, placeOfEvent(ref, seq)),
    })
  }

  post(ref: LogRef, post: Post): Promise<void> {
    return this.use(`take a post to ${nameOf(ref)}`, (tables) => {
      checkPost(ref, post)
      const { id, body } = post
      return tables.post(ref, { id, body: this.codec.encode(JSON.stringify(body), placeOfPost(ref, id)) })
    })
  }

  takePosts(ref: LogRef, owner: string): Promise<readonly Post[]> {
    return this.use(`give the posts to ${nameOf(ref)}`, async (tables) => {
      checkRef(ref)
      if ((await tables.log(ref))?.claimant !== owner) throw ownedByAnother(ref, owner)
      return (await tables.posts(ref)).map(({ id, body }) => {
        return { id, body: JSON.parse(this.codec.decode(body, placeOfPost(ref, id))) as Post['body'] }
      })
    })
  }

  follow<Event extends LogEvent = DurableEvent>(ref: LogRef, options: FollowOptions = {}): AsyncIterable<Event> {
    checkRef(ref)
    const readRef = (from: ReadOptions): AsyncIterable<Event> => this.read<Event>(ref, from)
    return this.followers.follow<Event>(ref, options, { read: readRef, longestMs: this.followMs })
  }

  inspect<Kind extends LogKind>(ref: LogRef<Kind>): Promise<LogSummaries[Kind] | null> {
    return this.use(`read ${nameOf(ref)}`, async (tables) => {
      checkRef(ref)
      const row = await tables.log(ref)
      if (row === null || row.lastSeq === 0) return null
      return (await summaryOfRow(ref.kind, row, this.#reader)) as LogSummaries[Kind] | null
    })
  }

  list<Kind extends LogKind = 'run'>(options?: ListOptions<Kind>): AsyncIterable<LogSummaries[Kind]> {
    return listRows(options, this.#fetchPage, this.#reader)
  }

  waiting(options?: WaitingOptions): Promise<readonly RunSummary[]> {
    const fetchPage = (query: OpenQuery): Promise<readonly LogRow[]> =>
      this.use('list its logs', (tables) => tables.open(query))
    return chosenWaiting(options, (full) => openPages(full, fetchPage, this.#reader))
  }

  async rewrite(cipher: LogCodec): Promise<Rewriting> {
    const use = <T>(work: (tables: Tables) => MaybePromise<T>): Promise<T> => this.use('write its logs anew', work)
    await use(() => undefined)
    const { renewedCodec, rewriteTables } = await import('./codec/rewrite-tables.js')
    const codec = await renewedCodec(this.codec, cipher)
    this.codec = codec
    const rows = (kind: LogKind): AsyncIterable<LogRow> => rowsOf(listQuery({ kind }), this.#fetchPage)
    const done = await rewriteTables({ codec, use, rows })
    return { ...done, erased: await this.erase() }
  }

  /** False if what was there before a rewriting may still be in the files. */
  protected abstract erase(): Promise<boolean>

  get #reader(): RowReader {
    return { log: this, digest: (ref, { lastSeq, digest }) => digestIn(this.codec, ref, { lastSeq, digest }) }
  }

  readonly #fetchPage: FetchPage = ({ resourceId, ...query }) =>
    this.use('list its logs', (tables) => {
      const { codec } = this
      const ownerOf = (id: string): OwnerTexts => ({ text: codec.ownerText(id), foreign: codec.foreignOwners })
      return tables.page({ ...query, owner: resourceId === undefined ? undefined : ownerOf(resourceId) })
    })

  export(runId: string): AsyncIterable<DurableEvent> {
    return exportRun(this, runId)
  }

  referrers(ref: LogRef): Promise<readonly LogRef[]> {
    return this.use(`read the references to ${nameOf(ref)}`, (tables) => {
      checkRef(ref)
      return tables.referrers(ref)
    })
  }

  async close(): Promise<void> {
    const opening = this.#opening
    this.#opening = null
    await opening?.catch(() => undefined)
    await this.closeTables()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  /** Rejects with `store_failure`, which names the `act`. The next use tries again to open a database. */
  protected async use<T>(act: string, work: (tables: Tables) => MaybePromise<T>): Promise<T> {
    try {
      this.#opening ??= this.#cipher === undefined ? this.openTables() : this.#openWith(this.#cipher)
      return await work(await this.#opening.catch((error: unknown) => this.#notOpened(error)))
    } catch (error) {
      throw storeFailure(act, error)
    }
  }

  async #openWith(cipher: LogCodec): Promise<Tables> {
    this.codec = await cipher.load()
    this.#cipher = undefined
    return this.openTables()
  }

  #notOpened(error: unknown): never {
    this.#opening = null
    throw error
  }
}

type FetchPage = (query: Omit<PageQuery, 'owner'> & Pick<ListQuery, 'resourceId'>) => Promise<readonly LogRow[]>

/** What the summary of a row needs. */
interface RowReader {
  readonly log: LogStore
  readonly digest: (ref: LogRef, row: LogRow) => LogDigest | null
}

/** The summaries of a list that is fetched page by page. */
async function* listRows<Kind extends LogKind = 'run'>(
  options: ListOptions<Kind> | undefined,
  fetchPage: FetchPage,
  reader: RowReader,
): AsyncGenerator<LogSummaries[Kind]> {
  const query = listQuery(options)
  for await (const row of rowsOf(query, fetchPage)) {
    const summary = await summaryOrDamage(query.kind, row, reader)
    if (summary !== null && isListed(query, summary)) yield summary as LogSummaries[Kind]
  }
}

async function* rowsOf(query: ListQuery, fetchPage: FetchPage): AsyncGenerator<LogRow> {
  const { kind, parentRunId, resourceId, labels } = query
  const phases = queriedPhases(query.statuses)
  let { before, changedAfter } = query
  for (;;) {
    const page = { kind, phases, parentRunId, resourceId, labels, before, changedAfter }
    const rows: readonly LogRow[] = await fetchPage(page)
    yield* rows
    const last = rows.at(-1)
    if (rows.length < PAGE_ROWS || last === undefined) return
    if (changedAfter === undefined) before = { time: kind === 'run' ? last.startedAt : last.updatedAt, id: last.id }
    else changedAfter = last.cursor
  }
}

/** The runs that may wait, page by page. */
async function* openPages(
  full: ReadonlySet<string>,
  fetchPage: (query: OpenQuery) => Promise<readonly LogRow[]>,
  reader: RowReader,
): AsyncGenerator<RunSummary | null> {
  let after: Place | null = null
  for (;;) {
    const rows: readonly LogRow[] = await fetchPage({ after, without: [...full] })
    for (const row of rows)
      if (row.owner === null) yield (await summaryOrDamage('run', row, reader)) as RunSummary | null
    const last = rows.at(-1)
    if (rows.length < PAGE_ROWS || last === undefined) return
    after = { time: last.startedAt, id: last.id }
  }
}

function summaryOrDamage(kind: LogKind, row: LogRow, reader: RowReader): Promise<LogSummaries[LogKind] | null> {
  const { id, startedAt, updatedAt, lastSeq, cursor, owner } = row
  return unlessDamaged<LogSummaries[LogKind]>(summaryOfRow(kind, row, reader), (error) => {
    if (kind === 'run') return unreadableRun(reader.log, { runId: id, startedAt, updatedAt, lastSeq, cursor }, error)
    const { code, message } = error
    return {
      threadId: id,
      createdAt: startedAt,
      updatedAt,
      lastSeq,
      cursor,
      owner,
      digest: null,
      error: { code, message },
    }
  })
}

/** The summary of a log; of a run without a digest by folding its events. */
async function summaryOfRow(
  kind: LogKind,
  row: LogRow,
  { log, digest: digestOf }: RowReader,
): Promise<RunSummary | ThreadSummary | null> {
  const { id, lastSeq, startedAt, updatedAt, cursor, owner } = row
  const stored = digestOf({ kind, id }, row)
  if (kind === 'thread') {
    const digest = stored as JsonObject | null
    return { threadId: id, createdAt: startedAt, updatedAt, lastSeq, cursor, owner, digest }
  }
  const digest = stored !== null && isRunDigest(stored) ? stored : await foldRun(log, id)
  return digest === null ? null : summaryOf(digest, owner !== null, cursor)
}

/** Null for one that is not there, or that is damaged. */
function digestIn(
  codec: RecordCodec,
  ref: LogRef,
  { lastSeq, digest }: Pick<LogRow, 'lastSeq' | 'digest'>,
): LogDigest | null {
  if (digest === null) return null
  const stored = jsonOr(codec.decode(digest, placeOfDigest(ref, lastSeq)), null)
  return isObject(stored) ? stored : null
}

interface PageReader {
  readonly after: number
  readonly fetchPage: (after: number) => Promise<readonly StoredEvent[]>
  readonly decode: (row: StoredEvent) => string
}

/** Reads the events of a log page by page, and checks that none is missing. */
async function* readPages<Event extends LogEvent>(
  ref: LogRef,
  { after, fetchPage, decode }: PageReader,
): AsyncGenerator<Event> {
  let last: number | null = null
  for (;;) {
    const rows = await fetchPage(last ?? after)
    for (const row of rows) {
      const { seq } = row
      if (last !== null && seq !== last + 1) throw damagedEventError(ref, last + 1, 'is missing')
      const stored = parseEvent(decode(row))
      if (stored?.seq !== seq) throw damagedEventError(ref, seq, 'cannot be read')
      last = seq
      yield stored as Event
    }
    if (rows.length < PAGE_ROWS) return
  }
}

function damagedEventError({ kind, id }: LogRef, seq: number, problem: string): HarnessError {
  return new HarnessError('invalid_log', `The log of ${kind} \`${id}\` is damaged: event ${seq} ${problem}.`)
}
