import { join } from 'node:path'
import { PGlite } from '@electric-sql/pglite'
import { vector } from '@electric-sql/pglite-pgvector'
import pg from 'pg'
import type { MemoryOptions } from 'thinharness/memory'
import { temporaryFolder } from '../../support/folder.js'
import { startPostgres } from '../../support/postgres.js'

/** A kind of place where an index can be. */
export interface Place {
  readonly name: string
  /** A new place. */
  readonly fresh: () => NonNullable<MemoryOptions['index']>
  /** True if vectors can be stored there. */
  readonly hasVectors: boolean
  readonly query?: (sql: string) => Promise<readonly unknown[]>
}

type Pool = Exclude<NonNullable<MemoryOptions['index']>, string>['pool']

let count = 0
const schema = (): string => `memory_${process.pid}_${(count += 1)}`

export const files: Place = {
  name: 'a file of SQLite',
  fresh: () => join(temporaryFolder(), 'memory.db'),
  hasVectors: true,
}

/** A server of the machine, if it has one: for several processes at a time. */
export async function servedPlace(): Promise<{ readonly place: Place; readonly stop: () => Promise<void> } | null> {
  const server = await startPostgres()
  if (server === null) return null
  const admin = new pg.Pool({ connectionString: server.url, max: 2 })
  admin.on('error', () => undefined)
  const { rows } = await admin.query("select 1 from pg_available_extensions where name = 'vector'")
  const query = async (sql: string): Promise<readonly unknown[]> => (await admin.query(sql)).rows as unknown[]
  return {
    place: {
      name: 'a server of PostgreSQL',
      fresh: () => ({ connectionString: server.url, schema: schema() }),
      hasVectors: rows.length > 0,
      query,
    },
    stop: async () => {
      await admin.end()
      server.stop()
    },
  }
}

/** PostgreSQL with `pgvector` inside this process, through a pool of the caller's. */
export async function embeddedPlace(): Promise<{ readonly place: Place; readonly stop: () => Promise<void> }> {
  const database = await PGlite.create({ extensions: { vector } })
  const query = async (sql: string, values?: unknown[]): Promise<{ rows: unknown[]; rowCount: number | null }> => {
    const result =
      values === undefined ? (await database.exec(sql)).at(-1) : await database.query<unknown>(sql, [...values])
    return { rows: result?.rows ?? [], rowCount: result?.affectedRows ?? null }
  }
  const pool: Pool = { query }
  return {
    place: {
      name: 'PostgreSQL with pgvector, through a pool',
      fresh: () => ({ pool, schema: schema() }),
      hasVectors: true,
      query: async (sql) => (await query(sql)).rows,
    },
    stop: () => database.close(),
  }
}
