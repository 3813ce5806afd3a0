import { resolve } from 'node:path'
import { HarnessError } from '#contracts/errors.js'
import { invalidOptions, parse } from '#contracts/parse.js'
import type { PruneOptions } from '#core/log/listing.js'
import { checkClaim, ownedByAnother } from '#core/log/log.js'
import type { AppendOptions, LogEvent, LogStore } from '#core/log/log.js'
import { prunables, removable } from './pruning.js'
import { checkRef, lastSeqOf, nameOf } from '#core/log/ref.js'
import type { LogRef } from '#core/log/ref.js'
import { oneOf, partial } from '#util/shape.js'
import { columnsOf, SqlLog } from './sql-log.js'
import { openDatabase } from './sqlite-database.js'
import { SqliteTables } from './sqlite-tables.js'

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

class SqliteLogStore extends SqlLog<SqliteTables> implements SqliteLog {
  readonly outlives: boolean
  protected readonly followMs: number | null
  readonly #path: string
  readonly #synchronous: 'normal' | 'full'
  #tables: SqliteTables | null = null

  constructor(path: string, synchronous: 'normal' | 'full') {
    super()
    this.#path = path
    this.#synchronous = synchronous
    this.outlives = path !== ':memory:'
    this.followMs = this.outlives ? 250 : null
  }

  async append(ref: LogRef, events: readonly LogEvent[], options: AppendOptions = {}): Promise<void> {
    checkRef(ref)
    await this.use(`store an event of ${nameOf(ref)}`, (tables) =>
      tables.transaction(() => {
        append(tables, ref, { events, options })
        tables.emptyPosts(ref, options.posts ?? [])
      }),
    )
    this.followers.wake(ref)
  }

  claim(ref: LogRef, owner: string, ttlMs: number): Promise<boolean> {
    return this.use(`claim ${nameOf(ref)}`, (tables) => {
      checkRef(ref)
      checkClaim(owner, ttlMs)
      return tables.transaction(() => {
        const row = tables.log(ref)
        const claimant = row?.claimant ?? owner
        if (claimant !== owner && (ttlMs === 0 || row?.owner !== null)) return false
        if (ttlMs > 0) tables.claim(ref, owner, Date.now() + ttlMs)
        else if (row !== null) tables.release(ref, row)
        return true
      })
    })
  }

  async prune(options: PruneOptions): Promise<number> {
    const runs = await prunables(this.list())
    return this.use('remove logs', (tables) => {
      const removed = tables.transaction(() => {
        const removals = removable({ runs, references: tables.references() }, options, Date.now())
        const { owner } = options
        if (owner !== undefined && removals.some(({ ref }) => tables.isOwnedByOther(ref, owner))) return 0
        return removals.filter((removal) => tables.remove(removal, owner)).length
      })
      if (options.only !== undefined && removed > 0) tables.settleRemoval()
      return removed
    })
  }

  scrub(): Promise<void> {
    return this.use('overwrite removed logs', (tables) => {
      if (tables.scrub()) return
      throw new HarnessError(
        'store_failure',
        'Removed logs are still in the files: another process is reading them. Try again.',
      )
    })
  }

  protected async openTables(): Promise<SqliteTables> {
    this.#tables = new SqliteTables(await openDatabase(this.#path, this.#synchronous))
    return this.#tables
  }

  protected closeTables(): void {
    this.#tables?.close()
    this.#tables = null
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
  tables.putDigest(ref, columnsOf([first, ...rest], options.digest, lastSeq === 0))
  for (const to of references) tables.refer(ref, to)
}
