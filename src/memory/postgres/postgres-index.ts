import { HarnessError } from '../../index.js'
import type { PostgresPlace, PostgresPool } from '../../contracts/postgres-place.js'
import { openPool } from '../../store/postgres-pool.js'
import type { OwnPool } from '../../store/postgres-pool.js'
import { isObject } from '../../util/json.js'
import type { FoundRow, Generation, LogState, LogUpdate, MemoryIndex, Row, RowVector, Scope } from '../index-port.js'
import { indexedWords } from '../words.js'
import { addVectors, createIndex } from './postgres-schema.js'

const SCHEMA = 'thinharness_memory'
const NO_OWNER = ''
/** Codes of errors about a schema, a table or a function that is gone. */
const GONE: ReadonlySet<string> = new Set(['3F000', '42P01', '42883', '42704'])

/** An index that is in use. */
interface OpenIndex {
  readonly pool: PostgresPool
  /** The pool, if it was not given. */
  readonly ownPool: OwnPool | null
  /** The schema of the extension `vector`; null without vectors. */
  readonly extension: string | null
}

/** An index in a schema of PostgreSQL, for any number of processes on any number of machines. */
export class PostgresIndex implements MemoryIndex {
  readonly #place: PostgresPlace
  readonly #schema: string
  readonly #withVectors: boolean
  #opening: Promise<OpenIndex> | null = null

  constructor(place: PostgresPlace, withVectors = false) {
    this.#place = place
    this.#schema = place.schema ?? SCHEMA
    this.#withVectors = withVectors
  }

  prepare(): Promise<Generation> {
    return this.#use(async ({ pool }) => {
      const { rows } = await pool.query(`select value from ${this.#table('meta')} where key = 'generation'`)
      return Number((rows as { value: string }[])[0]?.value)
    })
  }

  state(log: string): Promise<LogState | null> {
    return this.#use(async ({ pool }) => {
      const sql = `select seq, began, thread as "threadId", sources from ${this.#table('logs')} where log = $1`
      return ((await pool.query(sql, [log])).rows as LogState[])[0] ?? null
    })
  }

  states(scope: Scope): Promise<ReadonlyMap<string, Pick<LogState, 'seq' | 'began'>>> {
    return this.#use(async ({ pool }) => {
      const [condition, values] =
        scope === 'all'
          ? ['', []]
          : [`where owner = (select number from ${this.#table('owners')} where resource = $1)`, [ownerOf(scope)]]
      const { rows } = await pool.query(`select log, seq, began from ${this.#table('logs')} ${condition}`, values)
      return new Map(
        (rows as { log: string; seq: number; began: string }[]).map(({ log, seq, began }) => [log, { seq, began }]),
      )
    })
  }

  put({ log, resourceId, after, state, rows, forgotten }: LogUpdate, generation: Generation): Promise<boolean> {
    return this.#use(async ({ pool }) => {
      const sql = `select ${this.#table('put')}($1, $2, $3, $4, $5, $6, $7) as stored`
      const given = rows.map((row) => ({ ...row, words: indexedWords(row.text) }))
      const values = [log, resourceId ?? NO_OWNER, after, String(generation), json(state), json(given), forgotten]
      return ((await pool.query(sql, values)).rows as { stored: boolean }[])[0]?.stored === true
    })
  }

  async drop(log: string): Promise<void> {
    await this.#use(({ pool }) => pool.query(`select ${this.#table('drop_log')}($1)`, [log]))
  }

  /** Rare words count more, as in BM25: `ts_rank` alone knows only how often a row has a word. */
  search(words: readonly string[], scope: Scope, limit: number): Promise<readonly FoundRow[]> {
    if (words.length === 0) return Promise.resolve([])
    const place = new Values()
    const rows = conditions(scope, place)
    const sql = `
      with searched as materialized (
        select plainto_tsquery('"${this.#schema}".stems', word) as query from unnest(${place.of(words.map(indexedWords))}::text[]) as word
      ), total as materialized (
        select coalesce(sum(o.rows), 0) as rows from ${this.#table('owners')} o where ${conditions(scope, place, 'owner only')}
      ), counted as materialized (
        select query, (
          select count(*) from ${this.#table('entries')} e join ${this.#table('owners')} o on o.number = e.owner
          where e.words @@ query and ${conditions(scope, place, 'owner only')}
        ) as count from searched
      ), weighted as materialized (
        select query, ln(1 + (greatest(total.rows, count) - count + 0.5) / (count + 0.5)) as weight
        from counted, total where count > 0
      ), best as (
        select e.id, sum(weight * ts_rank(e.words, query, 1)) as score
        from weighted join ${this.#table('entries')} e on e.words @@ query join ${this.#table('owners')} o on o.number = e.owner
        where ${rows} group by e.id order by score desc, e.id desc limit ${place.of(limit)}
      )`
    return this.#find(`join best on best.id = e.id order by best.score desc, e.id desc`, place, sql)
  }

  having(words: readonly string[], scope: Scope, limit: number): Promise<readonly FoundRow[]> {
    if (words.length === 0) return Promise.resolve([])
    const place = new Values()
    const query = `plainto_tsquery('"${this.#schema}".stems', ${place.of(words.map(indexedWords).join(' '))})`
    const rest = `where e.words @@ ${query} and ${conditions(scope, place)} order by e.id desc limit ${place.of(limit)}`
    return this.#find(rest, place)
  }

  withoutVector(scope: Scope, limit: number): Promise<readonly Pick<FoundRow, 'id' | 'text'>[]> {
    const place = new Values()
    const rest = `where e.vector is null and ${conditions(scope, place)} order by e.owner, e.id limit ${place.of(limit)}`
    return this.#find(rest, place)
  }

  async putVectors(vectors: readonly RowVector[]): Promise<void> {
    const [first] = vectors
    if (first === undefined) return
    await this.#use(async ({ pool, extension }) => {
      const length = await this.#vectorLength(pool, first.vector.length)
      const other = vectors.find(({ vector }) => vector.length !== length)
      if (other !== undefined) {
        const message = `The index has vectors of ${length} numbers, and \`embed\` returned ${other.vector.length}. Call \`reindex\` after a change of the model.`
        throw new HarnessError('invalid_options', message)
      }
      const sql = `
        update ${this.#table('entries')} e set vector = v.vector::"${extension}".vector
        from unnest($1::bigint[], $2::text[]) as v (id, vector) where e.id = v.id and e.vector is null`
      await pool.query(sql, [vectors.map(({ id }) => id), vectors.map(({ vector }) => vectorText(vector))])
    })
  }

  async near(vector: Float32Array, scope: Scope, limit: number): Promise<readonly FoundRow[]> {
    const { extension, length } = await this.#use(async (open) => ({
      extension: open.extension,
      length: await this.#vectorLength(open.pool, null),
    }))
    if (length !== vector.length) return []
    const place = new Values()
    const distance = `e.vector operator("${extension}".<=>) ${place.of(vectorText(vector))}::text::"${extension}".vector`
    const rest = `where e.vector is not null and ${conditions(scope, place)} order by ${distance} limit ${place.of(limit)}`
    return this.#find(rest, place)
  }

  text(handle: string, scope: Scope): Promise<readonly FoundRow[]> {
    const place = new Values()
    return this.#find(`where e.handle = ${place.of(handle)} and ${conditions(scope, place)} order by e.part`, place)
  }

  async clear(): Promise<void> {
    // The next vectors may have another length.
    await this.#use(({ pool }) =>
      pool.query(`
        select ${this.#table('erase')}(null);
        delete from ${this.#table('meta')} where key = 'length';`),
    )
  }

  async erase(resourceId: string): Promise<void> {
    await this.#use(({ pool }) => pool.query(`select ${this.#table('erase')}($1)`, [resourceId]))
  }

  async close(): Promise<void> {
    const opening = this.#opening
    this.#opening = null
    await opening?.then(
      ({ ownPool }) => ownPool?.end(),
      () => undefined,
    )
  }

  /** How many numbers the vectors of the index have; the first vectors decide it. */
  async #vectorLength(pool: PostgresPool, first: number | null): Promise<number | null> {
    const meta = this.#table('meta')
    if (first !== null)
      await pool.query(`insert into ${meta} values ('length', $1) on conflict do nothing`, [String(first)])
    const [row] = (await pool.query(`select value from ${meta} where key = 'length'`)).rows as { value: string }[]
    return row === undefined ? null : Number(row.value)
  }

  /** Reads rows `e`, of owners `o`. `before`: the beginning of the statement. */
  #find(rest: string, { values }: Values, before = ''): Promise<readonly FoundRow[]> {
    const sql = `${before}
      select e.id::text as id, e.thread, e.handle, e.part, e.kind, e.at, e.sources, e.text, o.resource
      from ${this.#table('entries')} e join ${this.#table('owners')} o on o.number = e.owner ${rest}`
    return this.#use(async ({ pool }) =>
      ((await pool.query(sql, [...values])).rows as StoredRow[]).map(({ id, thread: threadId, resource, ...row }) => ({
        ...row,
        id: Number(id),
        threadId,
        resourceId: resource === NO_OWNER ? null : resource,
      })),
    )
  }

  #table(name: string): string {
    return `"${this.#schema}".${name}`
  }

  /** The schema may be removed at any time: it is made again, empty. */
  async #use<T>(work: (open: OpenIndex) => Promise<T> | T, attempts = 2): Promise<T> {
    this.#opening ??= this.#open()
    const opening = this.#opening
    try {
      return await work(await opening)
    } catch (thrown) {
      const isGone = GONE.has(codeOf(thrown))
      // A server that could not be reached is tried again at the next use.
      if (this.#opening === opening && (isGone || !(await hasOpened(opening)))) await this.close()
      if (isGone && attempts > 1) return this.#use(work, attempts - 1)
      if (thrown instanceof HarnessError) throw thrown
      throw new HarnessError('store_failure', `The index of the memory failed: ${String(thrown)}`, { cause: thrown })
    }
  }

  /** Creates the index if there is none. */
  async #open(): Promise<OpenIndex> {
    const { pool: givenPool, connectionString = '' } = this.#place
    const ownPool = givenPool === undefined ? await openPool(connectionString, '`createMemory`') : null
    const pool = givenPool ?? ownPool
    if (pool === null) throw new TypeError('Expected a pool.')
    try {
      await createIndex(pool, this.#schema)
      return { pool, ownPool, extension: this.#withVectors ? await addVectors(pool, this.#schema) : null }
    } catch (error) {
      await ownPool?.end().catch(() => undefined)
      throw error
    }
  }
}

interface StoredRow extends Omit<Row, 'threadId'> {
  readonly id: string
  readonly thread: string
  readonly resource: string
}

/** The values of a statement, by their places. */
class Values {
  readonly values: unknown[] = []

  of(value: unknown): string {
    return `$${this.values.push(value)}`
  }
}

/** The rows `e` of an owner `o` and a thread. */
function conditions(scope: Scope, place: Values, which: 'all' | 'owner only' = 'all'): string {
  if (scope === 'all') return 'true'
  const ofOwner = `o.resource = ${place.of(ownerOf(scope))}`
  return scope.threadId === null || which === 'owner only'
    ? ofOwner
    : `${ofOwner} and e.thread = ${place.of(scope.threadId)}`
}

function vectorText(vector: Float32Array): string {
  return `[${vector.join(',')}]`
}

function ownerOf({ resourceId }: Exclude<Scope, 'all'>): string {
  return resourceId ?? NO_OWNER
}

/** PostgreSQL stores no character 0. */
function json(value: unknown): string {
  return JSON.stringify(value).replaceAll('\\u0000', '')
}

function codeOf(thrown: unknown): string {
  return isObject(thrown) && typeof thrown['code'] === 'string' ? thrown['code'] : ''
}

function hasOpened(opening: Promise<unknown>): Promise<boolean> {
  return opening.then(
    () => true,
    () => false,
  )
}
