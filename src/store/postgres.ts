import { HarnessError } from '../contracts/errors.js'
import type { DurableEvent } from '../run/machine/events.js'
import { prunables, removable } from '../run/log/listing.js'
import type { ListOptions, PruneOptions } from '../run/log/listing.js'
import { checkClaim, lastSeqOf, ownedByAnother, storeFailure } from '../run/log/log.js'
import type { RunStore } from '../run/log/log.js'
import { hasEnded } from '../run/log/owner.js'
import { summaryOf } from '../run/log/summary.js'
import type { RunDigest, RunSummary } from '../run/log/summary.js'
import { invalidOptions, parse } from '../contracts/parse.js'
import { having, matching, partial, secret, string } from '../util/shape.js'
import { createTables, openPool } from './postgres-pool.js'
import type { OwnPool, PostgresPool } from './postgres-pool.js'
import { PostgresTables } from './postgres-tables.js'
import type { RunRow } from './postgres-tables.js'
import { digestWith, listPages, PAGE_ROWS, readPages } from './rows.js'

export type { PostgresPool } from './postgres-pool.js'

/** One of `connectionString` and `pool`. */
export interface PostgresLogOptions {
  readonly connectionString?: string
  /** A pool of the package `pg`, which stays yours: `close` does not end it. Listen to its `error` events. */
  readonly pool?: PostgresPool
  /** Where the tables are, which are made when they are missing. Default `thinharness`. */
  readonly schema?: string
}

export interface PostgresLog extends RunStore, AsyncDisposable {
  /** Ends its own connections. What is used afterwards opens new ones. */
  close(): Promise<void>
}

const OPTIONS = partial<PostgresLogOptions>({
  connectionString: secret(string),
  pool: having('a pool of `pg`', 'query'),
  schema: matching(/^[a-z_][a-z0-9_]{0,62}$/, 'a name of small letters, digits and `_`'),
})

/**
 * A log in PostgreSQL, for any number of processes on any number of machines. Needs the package `pg`, unless a pool is
 * handed in. An append whose connection is lost is looked up: it resolves when it was kept, and rejects when it was not,
 * after which it cannot be. Throws `invalid_options`.
 */
export function postgresLog(options: PostgresLogOptions): PostgresLog {
  const given = parse(OPTIONS, options, '`postgresLog`')
  if ((given.connectionString === undefined) === (given.pool === undefined)) {
    throw invalidOptions('Expected `postgresLog` to be given one of `connectionString` and `pool`.')
  }
  return new PostgresRunStore(given)
}

/** Runs of which is remembered how they stand, so that an append takes one statement. */
const REMEMBERED_RUNS = 5000
/** How often an append begins anew because the run was claimed at the same moment. */
const ATTEMPTS = 5
/** How long is waited before each attempt to learn what became of an append, in ms. */
const LOOK_AFTER_MS = [0, 100, 300, 1000, 3000]

class PostgresRunStore implements PostgresLog {
  readonly #options: PostgresLogOptions
  readonly #remembered = new Map<string, RunRow>()
  #ownPool: OwnPool | null = null
  #opening: Promise<PostgresTables> | null = null

  constructor(options: PostgresLogOptions) {
    this.#options = options
  }

  append(runId: string, events: readonly DurableEvent[], owner?: string): Promise<void> {
    return this.#use(`keep an event of run \`${runId}\``, async (tables) => {
      for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
        const row = await this.#rowFor(tables, runId, { events, owner })
        const digest = digestWith(runId, row.digest, events)
        if (digest === null || events.length === 0) return
        const version = await appended(tables, row, { runId, events, owner, digest })
        this.#remembered.delete(runId)
        if (version === null) continue
        if (digest.phase === 'open') this.#remember(runId, { ...row, version, digest, lastSeq: digest.lastSeq })
        return
      }
      throw new HarnessError('store_failure', `The log of run \`${runId}\` is being changed by others.`)
    })
  }

  async *read(runId: string, from = 1): AsyncGenerator<DurableEvent> {
    yield* readPages(runId, from, (start) =>
      this.#use(`read run \`${runId}\``, (tables) => tables.events(runId, start, PAGE_ROWS)),
    )
  }

  claim(runId: string, owner: string, ttlMs: number): Promise<boolean> {
    return this.#use(`claim run \`${runId}\``, async (tables) => {
      checkClaim(owner, ttlMs)
      if (ttlMs === 0) {
        this.#remembered.delete(runId)
        return tables.release(runId, owner)
      }
      if (await tables.claim(runId, owner, { ttlMs, ended: null })) return true
      const holder = (await tables.run(runId))?.owner ?? null
      return holder === null || hasEnded(holder) ? tables.claim(runId, owner, { ttlMs, ended: holder }) : false
    })
  }

  inspect(runId: string): Promise<RunSummary | null> {
    return this.#use(`read run \`${runId}\``, async (tables) => {
      const row = await tables.run(runId)
      const digest = row?.digest ?? null
      return row === null || digest === null ? null : summaryOf(digest, row.isHeld)
    })
  }

  list(options: ListOptions = {}): AsyncIterable<RunSummary> {
    return listPages(options, (query) => this.#use('list its runs', (tables) => tables.page(query)))
  }

  async prune(options: PruneOptions): Promise<number> {
    const chosen = removable(await prunables(this.list()), options, Date.now())
    let removed = 0
    for (let start = 0; start < chosen.length; start += PAGE_ROWS) {
      const some = chosen.slice(start, start + PAGE_ROWS)
      removed += await this.#use('remove runs', (tables) => tables.remove(some))
    }
    return removed
  }

  async close(): Promise<void> {
    const opening = this.#opening
    this.#opening = null
    await opening?.catch(() => undefined)
    const pool = this.#ownPool
    this.#ownPool = null
    await pool?.end()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  /** The run as it stands, if `owner` may append `events` to it. What is remembered may be out of date. */
  async #rowFor(
    tables: PostgresTables,
    runId: string,
    { events, owner }: { readonly events: readonly DurableEvent[]; readonly owner: string | undefined },
  ): Promise<RunRow> {
    const remembered = this.#remembered.get(runId)
    if (remembered !== undefined && mayAppend(runId, remembered, { events, owner }) === null) return remembered
    this.#remembered.delete(runId)
    const row = await tables.runOrNew(runId)
    const refusal = mayAppend(runId, row, { events, owner })
    if (refusal !== null) throw refusal
    return row
  }

  #remember(runId: string, row: RunRow): void {
    this.#remembered.set(runId, row)
    if (this.#remembered.size <= REMEMBERED_RUNS) return
    for (const oldest of this.#remembered.keys()) {
      this.#remembered.delete(oldest)
      return
    }
  }

  async #use<T>(what: string, work: (tables: PostgresTables) => Promise<T>): Promise<T> {
    try {
      this.#opening ??= this.#open()
      return await work(await this.#opening.catch((error: unknown) => this.#notOpened(error)))
    } catch (error) {
      throw storeFailure(what, error)
    }
  }

  async #open(): Promise<PostgresTables> {
    const { connectionString = '', schema = 'thinharness', pool } = this.#options
    const used = pool ?? (this.#ownPool ??= await openPool(connectionString))
    await createTables(used, schema)
    return new PostgresTables(used, schema)
  }

  /** What could not be opened is tried again by the next who uses it. */
  #notOpened(error: unknown): never {
    this.#opening = null
    throw error
  }
}

interface Append {
  readonly runId: string
  readonly events: readonly DurableEvent[]
  readonly owner: string | undefined
  readonly digest: RunDigest
}

/** Why these events may not be appended; null when they may. */
function mayAppend(runId: string, row: RunRow, append: Pick<Append, 'events' | 'owner'>): HarnessError | null {
  if ((row.owner ?? undefined) !== append.owner) return ownedByAnother(runId, append.owner)
  try {
    lastSeqOf(runId, row.lastSeq, append.events)
    return null
  } catch (error) {
    if (error instanceof HarnessError) return error
    throw error
  }
}

/** The new version of the run; null when the run had changed, and nothing was kept. */
async function appended(tables: PostgresTables, row: RunRow, append: Append): Promise<number | null> {
  const { runId, owner, digest } = append
  const texts = append.events.map((event) => ({ seq: event.seq, event: JSON.stringify(event) }))
  try {
    const isKept = await tables.append({ runId, version: row.version, owner: owner ?? null, digest, texts })
    return isKept ? row.version + 1 : null
  } catch (error) {
    const version = await lookUp(tables, runId, texts)
    if (version === null) throw error
    return version
  }
}

/**
 * What became of an append that failed: the run's version when it was kept, null when it was not. It asks in a way after
 * which an append that is still on its way to the server does nothing.
 */
async function lookUp(
  tables: PostgresTables,
  runId: string,
  texts: readonly { readonly seq: number; readonly event: string }[],
): Promise<number | null> {
  let failure: unknown
  for (const afterMs of LOOK_AFTER_MS) {
    await new Promise((resolve) => setTimeout(resolve, afterMs))
    try {
      const version = await tables.fence(runId)
      const kept = await tables.events(runId, texts[0]?.seq ?? 1, texts.length)
      const isKept = texts.every(({ seq, event }, index) => kept[index]?.seq === seq && kept[index].event === event)
      return isKept ? version : null
    } catch (error) {
      failure = error
    }
  }
  throw failure
}
