import { HarnessError } from '#contracts/errors.js'
import { parse } from '#contracts/parse.js'
import { checkPlace, POSTGRES_PLACE } from './postgres-place.js'
import type { PostgresPool } from './postgres-place.js'
import type { PruneOptions } from '#core/log/listing.js'
import { checkClaim, ownedByAnother } from '#core/log/log.js'
import type { AppendOptions, LogEvent, LogStore } from '#core/log/log.js'
import { hasEnded } from '#core/log/owner.js'
import { prunables, removable } from './pruning.js'
import { checkRef, keyOf, lastSeqOf, nameOf } from '#core/log/ref.js'
import type { LogKind, LogRef } from '#core/log/ref.js'
import { partial } from '#util/shape.js'
import { createTables, openPool } from './postgres-pool.js'
import type { OwnPool } from './postgres-pool.js'
import { PostgresTables } from './postgres-tables.js'
import type { VersionedAppend, VersionedRow } from './postgres-tables.js'
import { columnsOf, SqlLog } from './sql-log.js'

export type { PostgresPool } from './postgres-place.js'

/** One of `connectionString` and `pool`. */
export interface PostgresLogOptions {
  readonly connectionString?: string | undefined
  /** A pool of the package `pg`. It remains the caller's: `close` does not end it. Listen to its `error` events. */
  readonly pool?: PostgresPool | undefined
  /** The schema of the tables, which are created if they are missing. Default `thinharness`. */
  readonly schema?: string | undefined
}

export interface PostgresLog extends LogStore, AsyncDisposable {
  /** Ends its own connections. The next use opens new ones. */
  close(): Promise<void>
}

const OPTIONS = partial<PostgresLogOptions>(POSTGRES_PLACE)

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
    super()
    this.#options = options
  }

  append(ref: LogRef, events: readonly LogEvent[], options: AppendOptions = {}): Promise<void> {
    return this.use(`store an event of ${nameOf(ref)}`, async (tables) => {
      checkRef(ref)
      const { owner, references = [], posts = [] } = options
      const texts = events.map((event) => ({ seq: event.seq, event: JSON.stringify(event) }))
      for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
        const row = await this.#rowFor(tables, ref, { events, owner })
        const [first, ...rest] = events
        if (first === undefined) return
        const { version } = row
        const columns = columnsOf([first, ...rest], options.digest, row.lastSeq === 0)
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
    const runs = await prunables(this.list())
    return this.use('remove logs', async (tables) => {
      const removals = removable({ runs, references: await tables.references() }, options, Date.now())
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

  /** The row of the log, if `owner` may append `events` to it. A remembered row may be out of date. */
  async #rowFor(tables: PostgresTables, ref: LogRef, append: Appending): Promise<VersionedRow> {
    const remembered = this.#remembered.get(keyOf(ref))
    if (remembered !== undefined && rejectionOf(ref, remembered, append) === null) return remembered
    this.#remembered.delete(keyOf(ref))
    const row = await tables.logOrNew(ref)
    const rejection = rejectionOf(ref, row, append)
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
function rejectionOf(ref: LogRef, row: VersionedRow, { events, owner }: Appending): HarnessError | null {
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
