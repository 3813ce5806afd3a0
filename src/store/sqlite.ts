import { resolve } from 'node:path'
import { invalidOptions, parse } from '../contracts/parse.js'
import { oneOf, partial } from '../util/shape.js'
import type { ListOptions, PruneOptions } from '../run/log/listing.js'
import { checkClaim, checkPost, lastSeqOf, ownedByAnother, storeFailure } from '../run/log/log.js'
import type { AppendOptions, LogEvent, LogStore } from '../run/log/log.js'
import type { FollowOptions, Post, ReadOptions } from '../run/log/log.js'
import { prunables, removable } from '../run/log/pruning.js'
import type { DurableEvent } from '../run/machine/events.js'
import { exportRun } from './fold-run.js'
import { Followers } from './followers.js'
import { columnsOf, listPages, readPages, summaryOfRow } from './rows.js'
import { openDatabase } from './sqlite-database.js'
import { SqliteTables } from './sqlite-tables.js'
import { TakenPosts } from './taken-posts.js'
import { checkRef, nameOf } from '../run/log/ref.js'
import type { LogKind, LogRef } from '../run/log/ref.js'
import type { LogSummaries } from '../run/log/digest.js'

export interface SqliteLogOptions {
  /**
   * Events that survive a crash. A crash of the process loses none in any case.
   * - `full`: nor does a crash of the machine; every append waits for the disk.
   * - `normal` (default): a crash of the machine may lose the last appends.
   */
  readonly synchronous?: 'normal' | 'full' | undefined
}

export interface SqliteLog extends LogStore, AsyncDisposable {
  /** Closes the file. The next use opens it again. */
  close(): Promise<void>
}

const OPTIONS = partial<SqliteLogOptions>({ synchronous: oneOf('normal', 'full') })

/**
 * A log in a SQLite file, opened when it is first used: for any number of runs and threads, and of processes on one
 * machine. Needs `node:sqlite`, or the package `@photostructure/sqlite` if Node has none. Throws
 * `invalid_options`.
 */
export function sqliteLog(path: string, options: SqliteLogOptions = {}): SqliteLog {
  const { synchronous = 'normal' } = parse(OPTIONS, options, '`sqliteLog`')
  if (typeof path !== 'string' || path === '') throw invalidOptions('Expected the file of `sqliteLog` to be a path.')
  return new SqliteLogStore(path === ':memory:' ? path : resolve(path), synchronous)
}

/** The longest time until a follower sees an event of another process, in ms. */
const FOLLOW_MS = 250

class SqliteLogStore implements SqliteLog {
  readonly outlives: boolean
  readonly #path: string
  readonly #synchronous: 'normal' | 'full'
  readonly #taken = new TakenPosts()
  readonly #followers = new Followers()
  #opening: Promise<SqliteTables> | null = null

  constructor(path: string, synchronous: 'normal' | 'full') {
    this.#path = path
    this.#synchronous = synchronous
    this.outlives = path !== ':memory:'
  }

  async append(ref: LogRef, events: readonly LogEvent[], options: AppendOptions = {}): Promise<void> {
    checkRef(ref)
    const leaving = this.#taken.of(ref, options.owner)
    await this.#use(`store an event of ${nameOf(ref)}`, (tables) =>
      tables.transaction(() => {
        append(tables, ref, { events, options })
        tables.emptyPosts(ref, leaving)
      }),
    )
    this.#taken.forget(ref, leaving)
    this.#followers.wake(ref)
  }

  async *read<Event extends LogEvent = DurableEvent>(
    ref: LogRef,
    { after = 0 }: ReadOptions = {},
  ): AsyncGenerator<Event> {
    checkRef(ref)
    yield* readPages<Event>(ref, after, (start) =>
      this.#use(`read ${nameOf(ref)}`, (tables) => tables.events(ref, start)),
    )
  }

  claim(ref: LogRef, owner: string, ttlMs: number): Promise<boolean> {
    return this.#use(`claim ${nameOf(ref)}`, (tables) => {
      checkRef(ref)
      checkClaim(owner, ttlMs)
      const leaving = ttlMs === 0 ? this.#taken.of(ref, owner) : []
      const isOwner = tables.transaction(() => {
        const row = tables.log(ref)
        const claimant = row?.claimant ?? owner
        if (claimant !== owner && (ttlMs === 0 || row?.owner !== null)) return false
        tables.emptyPosts(ref, leaving)
        if (ttlMs > 0) tables.claim(ref, owner, Date.now() + ttlMs)
        else if (row !== undefined) tables.release(ref, row)
        return true
      })
      this.#taken.forget(ref, leaving)
      return isOwner
    })
  }

  post(ref: LogRef, post: Post): Promise<void> {
    return this.#use(`take a post to ${nameOf(ref)}`, (tables) => {
      checkPost(ref, post)
      tables.post(ref, post)
    })
  }

  takePosts(ref: LogRef, owner: string): Promise<readonly Post[]> {
    return this.#use(`give the posts to ${nameOf(ref)}`, (tables) => {
      checkRef(ref)
      return tables.transaction(() => {
        if (tables.log(ref)?.claimant !== owner) throw ownedByAnother(ref, owner)
        return this.#taken.take(ref, owner, tables.posts(ref))
      })
    })
  }

  follow<Event extends LogEvent = DurableEvent>(ref: LogRef, options: FollowOptions = {}): AsyncIterable<Event> {
    checkRef(ref)
    const read = (from: ReadOptions): AsyncIterable<Event> => this.read<Event>(ref, from)
    return this.#followers.follow<Event>(ref, options, { read, longestMs: this.outlives ? FOLLOW_MS : null })
  }

  async inspect<Kind extends LogKind>(ref: LogRef<Kind>): Promise<LogSummaries[Kind] | null> {
    checkRef(ref)
    const row = await this.#use(`read ${nameOf(ref)}`, (tables) => tables.log(ref))
    if (row === undefined || row.lastSeq === 0) return null
    return (await summaryOfRow(ref.kind, row, this)) as LogSummaries[Kind] | null
  }

  list<Kind extends LogKind = 'run'>(options?: ListOptions<Kind>): AsyncIterable<LogSummaries[Kind]> {
    return listPages(options, (query) => this.#use('list its logs', (tables) => tables.page(query)), this)
  }

  export(runId: string): AsyncIterable<DurableEvent> {
    return exportRun(this, runId)
  }

  referrers(ref: LogRef): Promise<readonly LogRef[]> {
    return this.#use(`read the references to ${nameOf(ref)}`, (tables) => {
      checkRef(ref)
      return tables.referrers(ref)
    })
  }

  async prune(options: PruneOptions): Promise<number> {
    const runs = await prunables(this.list())
    return this.#use('remove logs', (tables) =>
      tables.transaction(() => {
        const removals = removable({ runs, references: tables.references() }, options, Date.now())
        return removals.filter((removal) => tables.remove(removal)).length
      }),
    )
  }

  async close(): Promise<void> {
    const opening = this.#opening
    this.#opening = null
    const tables = await opening?.catch(() => undefined)
    tables?.close()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  async #use<T>(act: string, work: (tables: SqliteTables) => T): Promise<T> {
    try {
      this.#opening ??= openDatabase(this.#path, this.#synchronous).then((database) => new SqliteTables(database))
      return work(await this.#opening.catch((error: unknown) => this.#notOpened(error)))
    } catch (error) {
      throw storeFailure(act, error)
    }
  }

  /** The next use tries to open it again. */
  #notOpened(error: unknown): never {
    this.#opening = null
    throw error
  }
}

function append(
  tables: SqliteTables,
  ref: LogRef,
  { events, options }: { readonly events: readonly LogEvent[]; readonly options: AppendOptions },
): void {
  const { owner, references = [] } = options
  const row = tables.log(ref)
  if ((row?.claimant ?? undefined) !== owner) throw ownedByAnother(ref, owner)
  const lastSeq = row?.lastSeq ?? 0
  lastSeqOf(ref, lastSeq, events)
  const [first, ...rest] = events
  if (first === undefined) return
  for (const event of events) tables.insertEvent(ref, event.seq, JSON.stringify(event))
  tables.putDigest(ref, columnsOf([first, ...rest], options, lastSeq === 0))
  for (const to of references) tables.refer(ref, to)
}
