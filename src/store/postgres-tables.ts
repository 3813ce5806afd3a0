import type { Prunable } from '../run/log/listing.js'
import { hasEnded } from '../run/log/owner.js'
import type { RunDigest } from '../run/log/summary.js'
import type { PostgresPool } from './postgres-pool.js'
import { digestIn, PAGE_ROWS } from './rows.js'
import type { ListedRow, PageQuery } from './rows.js'

/** How a run stands. */
export interface RunRow {
  /** Another one with each append and each new owner: an append is for one version. */
  readonly version: number
  readonly lastSeq: number
  readonly digest: RunDigest | null
  readonly owner: string | null
  readonly isHeld: boolean
}

export interface StoredEvent {
  readonly seq: number
  readonly event: string
}

const RUN_COLUMNS = 'version, last_seq, digest, owner, coalesce(owned_until > clock_timestamp(), false) as in_time'

interface RawRow {
  readonly version: number
  readonly last_seq: number
  readonly digest: string | null
  readonly owner: string | null
  readonly in_time: boolean
}

/** The statements: each is a transaction of its own. */
export class PostgresTables {
  readonly #pool: PostgresPool
  readonly #runs: string
  readonly #events: string

  constructor(pool: PostgresPool, schema: string) {
    this.#pool = pool
    this.#runs = `"${schema}".runs`
    this.#events = `"${schema}".events`
  }

  async run(runId: string): Promise<RunRow | null> {
    const [row] = await this.#rows<RawRow>(`select ${RUN_COLUMNS} from ${this.#runs} where run_id = $1`, [runId])
    return row === undefined ? null : rowOf(row)
  }

  async runOrNew(runId: string): Promise<RunRow> {
    const found = await this.run(runId)
    if (found !== null) return found
    await this.#pool.query(`insert into ${this.#runs} (run_id) values ($1) on conflict do nothing`, [runId])
    return (await this.run(runId)) ?? { version: 1, lastSeq: 0, digest: null, owner: null, isHeld: false }
  }

  events(runId: string, from: number, limit: number): Promise<StoredEvent[]> {
    const sql = `select seq, event from ${this.#events} where run_id = $1 and seq >= $2 order by seq limit $3`
    return this.#rows<StoredEvent>(sql, [runId, from, limit])
  }

  /** False, and nothing is kept, when the run is of another version or another's. */
  async append(append: {
    readonly runId: string
    readonly version: number
    readonly owner: string | null
    readonly digest: RunDigest
    readonly texts: readonly StoredEvent[]
  }): Promise<boolean> {
    const { runId, version, owner, digest, texts } = append
    const sql = `
      with run as (
        update ${this.#runs} set version = version + 1, last_seq = $4, phase = $5, started_at = $6, updated_at = $7,
          parent_run_id = $8, digest = $9
        where run_id = $1 and version = $2 and owner is not distinct from $3::text
        returning run_id
      )
      insert into ${this.#events} (run_id, seq, event)
      select run_id, seq, event from run, unnest($10::integer[], $11::text[]) as given (seq, event)`
    const { lastSeq, phase, startedAt, updatedAt, parent } = digest
    const { rowCount } = await this.#pool.query(sql, [
      ...[runId, version, owner, lastSeq, phase, startedAt, updatedAt, parent?.runId ?? null, JSON.stringify(digest)],
      texts.map(({ seq }) => seq),
      texts.map(({ event }) => event),
    ])
    return rowCount === texts.length
  }

  /** Makes the run one of another version, so that nothing that is still on its way is kept; gives the version. */
  async fence(runId: string): Promise<number | null> {
    const sql = `update ${this.#runs} set version = version + 1 where run_id = $1 returning version`
    const [row] = await this.#rows<{ version: number }>(sql, [runId])
    return row?.version ?? null
  }

  /** `ended`: an owner that may be followed although its time is not over. */
  async claim(
    runId: string,
    owner: string,
    { ttlMs, ended }: { readonly ttlMs: number; readonly ended: string | null },
  ): Promise<boolean> {
    const sql = `
      insert into ${this.#runs} as runs (run_id, owner, owned_until)
      values ($1, $2, clock_timestamp() + $3 * interval '1 millisecond')
      on conflict (run_id) do update set owner = excluded.owner, owned_until = excluded.owned_until,
        version = runs.version + case when runs.owner = excluded.owner then 0 else 1 end
      where runs.owner is null or runs.owner in ($2, $4::text) or runs.owned_until <= clock_timestamp()
      returning version`
    return (await this.#rows(sql, [runId, owner, ttlMs, ended])).length > 0
  }

  /** False when it is another's. */
  async release(runId: string, owner: string): Promise<boolean> {
    const sql = `
      update ${this.#runs} set owner = null, owned_until = null, version = version + 1
      where run_id = $1 and owner = $2 returning digest is null as empty`
    const [released] = await this.#rows<{ empty: boolean }>(sql, [runId, owner])
    if (released === undefined) return ((await this.run(runId))?.owner ?? null) === null
    const nothing = `delete from ${this.#runs} where run_id = $1 and owner is null and digest is null`
    if (released.empty) await this.#pool.query(nothing, [runId])
    return true
  }

  async page({ phases, parentRunId, before }: PageQuery): Promise<ListedRow[]> {
    const values: unknown[] = [phases]
    const place = (value: unknown): string => `$${values.push(value)}`
    const conditions = ['digest is not null', 'phase = any($1)']
    if (parentRunId === null) conditions.push('parent_run_id is null')
    else if (parentRunId !== undefined) conditions.push(`parent_run_id = ${place(parentRunId)}`)
    if (before !== null) conditions.push(`(started_at, run_id) < (${place(before.startedAt)}, ${place(before.runId)})`)
    const sql = `select ${RUN_COLUMNS} from ${this.#runs} where ${conditions.join(' and ')}
      order by started_at desc, run_id desc limit ${PAGE_ROWS}`
    const rows = (await this.#rows<RawRow>(sql, values)).map(rowOf)
    return rows.flatMap(({ digest, isHeld }) => (digest === null ? [] : [{ digest, isHeld }]))
  }

  /** Removes those that have not gone on since they were chosen; gives how many. */
  async remove(runs: readonly Prunable[]): Promise<number> {
    const sql = `
      with gone as (
        delete from ${this.#runs} where (run_id, last_seq) in (select * from unnest($1::text[], $2::integer[]))
          and (owner is null or owned_until <= clock_timestamp())
        returning run_id
      ), emptied as (
        delete from ${this.#events} where run_id in (select run_id from gone)
      )
      select run_id from gone`
    const removed = await this.#rows(sql, [runs.map(({ runId }) => runId), runs.map(({ lastSeq }) => lastSeq)])
    return removed.length
  }

  async #rows<Row>(sql: string, values: unknown[]): Promise<Row[]> {
    return (await this.#pool.query(sql, values)).rows as Row[]
  }
}

function rowOf({ version, last_seq: lastSeq, digest, owner, in_time: inTime }: RawRow): RunRow {
  return { version, lastSeq, digest: digestIn(digest), owner, isHeld: owner !== null && inTime && !hasEnded(owner) }
}
