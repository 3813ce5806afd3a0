import { HarnessError } from '../../index.js'
import type { PostgresPlace } from '../../contracts/postgres-place.js'
import { isObject } from '../../util/json.js'
import type { FoundRow, Generation, LogState, LogUpdate, MemoryIndex, RowVector, Scope } from '../index-port.js'
import { indexedWords } from '../words.js'
import type { OpenIndex } from './open-postgres.js'

const SCHEMA = 'thinharness_memory'
const NO_OWNER = ''
/** Codes of errors about a schema, a table or a function that is gone. */
const GONE: ReadonlySet<string> = new Set(['3F000', '42P01', '42883', '42704'])

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

  search(words: readonly string[], scope: Scope, limit: number): Promise<readonly FoundRow[]> {
    return this.#use(({ search }) => search.some(words, scope, limit))
  }

  having(words: readonly string[], scope: Scope, limit: number): Promise<readonly FoundRow[]> {
    return this.#use(({ search }) => search.all(words, scope, limit))
  }

  withoutVector(scope: Scope, limit: number): Promise<readonly Pick<FoundRow, 'id' | 'text'>[]> {
    return this.#use(({ search }) => search.withoutVector(scope, limit))
  }

  async putVectors(vectors: readonly RowVector[]): Promise<void> {
    await this.#use((open) => open.vectors?.store(vectors))
  }

  near(vector: Float32Array, scope: Scope, limit: number): Promise<readonly FoundRow[]> {
    return this.#use(async ({ search, vectors }) => {
      const owner = await search.ownerIn(scope)
      if (vectors === null || owner === undefined) return []
      const thread = scope === 'all' ? null : scope.threadId
      return search.rows(await vectors.nearest(vector, { owner: owner?.number ?? null, thread, limit }))
    })
  }

  text(handle: string, scope: Scope): Promise<readonly FoundRow[]> {
    return this.#use(({ search }) => search.text(handle, scope))
  }

  async clear(): Promise<void> {
    await this.#use(async ({ pool, search }) => {
      // The next vectors may have another length.
      await pool.query(`
        select ${this.#table('erase')}(null);
        delete from ${this.#table('meta')} where key = 'length';
        drop index if exists ${this.#table('embeddings_by_bits')};`)
      search.forgetCounts()
    })
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

  async #open(): Promise<OpenIndex> {
    const { openPostgres } = await import('./open-postgres.js')
    return openPostgres({ place: this.#place, schema: this.#schema, withVectors: this.#withVectors })
  }
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
