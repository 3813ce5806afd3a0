import type { PostgresPlace, PostgresPool } from '../../contracts/postgres-place.js'
import { openPool } from '../../store/postgres-pool.js'
import type { OwnPool } from '../../store/postgres-pool.js'
import { createIndex } from './postgres-schema.js'
import { PostgresSearch } from './postgres-search.js'
import { PostgresVectors } from './postgres-vectors.js'

/** An index in PostgreSQL that is in use. */
export interface OpenIndex {
  readonly pool: PostgresPool
  /** The pool, if it was not given. */
  readonly ownPool: OwnPool | null
  readonly search: PostgresSearch
  readonly vectors: PostgresVectors | null
}

interface Opening {
  readonly place: PostgresPlace
  readonly schema: string
  readonly withVectors: boolean
}

/** Opens an index, which it creates if there is none. Loaded when it is first used. */
export async function openPostgres({ place, schema, withVectors }: Opening): Promise<OpenIndex> {
  const ownPool = place.pool === undefined ? await openPool(place.connectionString ?? '', '`createMemory`') : null
  const pool = place.pool ?? ownPool
  if (pool === null) throw new TypeError('Expected a pool.')
  try {
    await createIndex(pool, schema)
    const vectors = withVectors ? await PostgresVectors.open(pool, schema) : null
    return { pool, ownPool, search: new PostgresSearch(pool, schema), vectors }
  } catch (error) {
    await ownPool?.end().catch(() => undefined)
    throw error
  }
}
