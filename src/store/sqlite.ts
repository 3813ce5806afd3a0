import { resolve } from 'node:path'
import type { DurableEvent } from '../run/machine/events.js'
import { prunables, removable } from '../run/log/listing.js'
import type { ListOptions, Prunable, PruneOptions } from '../run/log/listing.js'
import { checkClaim, lastSeqOf, ownedByAnother, storeFailure } from '../run/log/log.js'
import type { RunStore } from '../run/log/log.js'
import { hasEnded } from '../run/log/owner.js'
import { summaryOf } from '../run/log/summary.js'
import type { RunSummary } from '../run/log/summary.js'
import { invalidOptions, parse } from '../contracts/parse.js'
import { oneOf, partial } from '../util/shape.js'
import { digestIn, digestWith, listPages, PAGE_ROWS, readPages } from './rows.js'
import type { ListedRow, PageQuery } from './rows.js'
import { openDatabase, transaction } from './sqlite-database.js'
import type { Database, Statement, Value } from './sqlite-database.js'

export interface SqliteLogOptions {
  /**
   * What survives. A crash of the process loses nothing in any case.
   * - `full`: nor does a crash of the machine; every append waits for the disk.
   * - `normal` (default): a crash of the machine may lose the last appends.
   */
  readonly synchronous?: 'normal' | 'full'
}

export interface SqliteLog extends RunStore, AsyncDisposable {
  /** Closes the file. What is used afterwards opens it again. */
  close(): Promise<void>
}

const OPTIONS = partial<SqliteLogOptions>({ synchronous: oneOf('normal', 'full') })

/**
 * A log in a SQLite file, opened when it is first used: any number of runs, and of processes of one machine. With
 * `node:sqlite`, or with the package `@photostructure/sqlite` where Node has none. Throws
 * `invalid_options`.
 */
export function sqliteLog(path: string, options: SqliteLogOptions = {}): SqliteLog {
  const { synchronous = 'normal' } = parse(OPTIONS, options, '`sqliteLog`')
  if (typeof path !== 'string' || path === '') throw invalidOptions('Expected the file of `sqliteLog` to be a path.')
  return new SqliteRunStore(path === ':memory:' ? path : resolve(path), synchronous)
}

interface RunRow {
  readonly run_id: string
  readonly last_seq: number
  readonly digest: string | null
  readonly owner: string | null
  readonly owned_until: number
}

class SqliteRunStore implements SqliteLog {
  readonly #path: string
  readonly #synchronous: 'normal' | 'full'
  #opening: Promise<Tables> | null = null

  constructor(path: string, synchronous: 'normal' | 'full') {
    this.#path = path
    this.#synchronous = synchronous
  }

  append(runId: string, events: readonly DurableEvent[], owner?: string): Promise<void> {
    return this.#use(`keep an event of run \`${runId}\``, (tables) =>
      tables.transaction(() => {
        const row = tables.run(runId)
        if ((row?.owner ?? undefined) !== owner) throw ownedByAnother(runId, owner)
        const lastSeq = lastSeqOf(runId, row?.last_seq ?? 0, events)
        const digest = digestWith(runId, digestIn(row?.digest ?? null), events)
        if (digest === null || events.length === 0) return
        for (const event of events) tables.insertEvent.run(runId, event.seq, JSON.stringify(event))
        const { phase, startedAt, updatedAt, parent } = digest
        const columns = [phase, startedAt, updatedAt, parent?.runId ?? null, JSON.stringify(digest)]
        tables.putRun.run(runId, lastSeq, ...columns)
      }),
    )
  }

  async *read(runId: string, from = 1): AsyncGenerator<DurableEvent> {
    yield* readPages(runId, from, (start) =>
      this.#use(
        `read run \`${runId}\``,
        (tables) => tables.events.all(runId, start, PAGE_ROWS) as { seq: number; event: string }[],
      ),
    )
  }

  claim(runId: string, owner: string, ttlMs: number): Promise<boolean> {
    return this.#use(`claim run \`${runId}\``, (tables) => {
      checkClaim(owner, ttlMs)
      return tables.transaction(() => {
        const row = tables.run(runId)
        const isFree = row?.owner === null || row?.owner === undefined || row.owner === owner
        if (!isFree && (ttlMs === 0 || isHeld(row))) return false
        if (ttlMs > 0) tables.putOwner.run(runId, owner, Date.now() + ttlMs)
        else if (row?.digest === null) tables.deleteRun.run(runId)
        else tables.freeRun.run(runId)
        return true
      })
    })
  }

  inspect(runId: string): Promise<RunSummary | null> {
    return this.#use(`read run \`${runId}\``, (tables) => {
      const row = tables.run(runId)
      const digest = digestIn(row?.digest ?? null)
      return row === undefined || digest === null ? null : summaryOf(digest, isHeld(row))
    })
  }

  list(options: ListOptions = {}): AsyncIterable<RunSummary> {
    return listPages(options, (query) => this.#use('list its runs', (tables) => tables.page(query)))
  }

  async prune(options: PruneOptions): Promise<number> {
    const chosen = removable(await prunables(this.list()), options, Date.now())
    let removed = 0
    for (let start = 0; start < chosen.length; start += PAGE_ROWS) {
      removed += await this.#use('remove runs', (tables) => tables.remove(chosen.slice(start, start + PAGE_ROWS)))
    }
    return removed
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

  async #use<T>(what: string, work: (tables: Tables) => T): Promise<T> {
    try {
      this.#opening ??= openDatabase(this.#path, this.#synchronous).then((database) => new Tables(database))
      return work(await this.#opening.catch((error: unknown) => this.#notOpened(error)))
    } catch (error) {
      throw storeFailure(what, error)
    }
  }

  /** What could not be opened is tried again by the next who uses it. */
  #notOpened(error: unknown): never {
    this.#opening = null
    throw error
  }
}

const RUN_COLUMNS = 'run_id, last_seq, digest, owner, owned_until'

/** The statements, prepared once. */
class Tables {
  readonly insertEvent: Statement
  readonly events: Statement
  readonly putRun: Statement
  readonly putOwner: Statement
  readonly freeRun: Statement
  readonly deleteRun: Statement
  readonly #database: Database
  readonly #run: Statement
  readonly #removeRun: Statement
  readonly #removeEvents: Statement

  constructor(database: Database) {
    const prepare = (sql: string): Statement => database.prepare(sql)
    this.#database = database
    this.#run = prepare(`select ${RUN_COLUMNS} from runs where run_id = ?`)
    this.events = prepare('select seq, event from events where run_id = ? and seq >= ? order by seq limit ?')
    this.insertEvent = prepare('insert into events (run_id, seq, event) values (?, ?, ?)')
    this.putRun = prepare(
      `insert into runs (run_id, last_seq, phase, started_at, updated_at, parent_run_id, digest) values (?, ?, ?, ?, ?, ?, ?)
       on conflict (run_id) do update set last_seq = excluded.last_seq, phase = excluded.phase,
         started_at = excluded.started_at, updated_at = excluded.updated_at,
         parent_run_id = excluded.parent_run_id, digest = excluded.digest`,
    )
    this.putOwner = prepare(
      `insert into runs (run_id, owner, owned_until) values (?, ?, ?)
       on conflict (run_id) do update set owner = excluded.owner, owned_until = excluded.owned_until`,
    )
    this.freeRun = prepare('update runs set owner = null, owned_until = 0 where run_id = ?')
    this.deleteRun = prepare('delete from runs where run_id = ?')
    this.#removeRun = prepare(
      'delete from runs where run_id = ? and last_seq = ? and (owner is null or owned_until <= ?)',
    )
    this.#removeEvents = prepare('delete from events where run_id = ?')
  }

  transaction<T>(work: () => T): T {
    return transaction(this.#database, work)
  }

  run(runId: string): RunRow | undefined {
    return this.#run.get(runId) as RunRow | undefined
  }

  page({ phases, parentRunId, before }: PageQuery): ListedRow[] {
    const conditions = ['digest is not null', `phase in (${phases.map(() => '?').join(', ')})`]
    const values: Value[] = [...phases]
    if (parentRunId !== undefined) {
      conditions.push('parent_run_id is ?')
      values.push(parentRunId)
    }
    if (before !== null) {
      conditions.push('(started_at, run_id) < (?, ?)')
      values.push(before.startedAt, before.runId)
    }
    const sql = `select ${RUN_COLUMNS} from runs where ${conditions.join(' and ')}
      order by started_at desc, run_id desc limit ${PAGE_ROWS}`
    const rows = this.#database.prepare(sql).all(...values) as RunRow[]
    return rows.flatMap((row) => {
      const digest = digestIn(row.digest)
      return digest === null ? [] : [{ digest, isHeld: isHeld(row) }]
    })
  }

  /** Removes those that have not gone on since they were chosen. */
  remove(runs: readonly Prunable[]): number {
    return this.transaction(() => {
      let removed = 0
      for (const { runId, lastSeq } of runs) {
        if (Number(this.#removeRun.run(runId, lastSeq, Date.now()).changes) === 0) continue
        this.#removeEvents.run(runId)
        removed += 1
      }
      return removed
    })
  }

  close(): void {
    this.#database.close()
  }
}

function isHeld({ owner, owned_until: until }: RunRow): boolean {
  return owner !== null && until > Date.now() && !hasEnded(owner)
}
