import { mkdirSync } from 'node:fs'
import type { LogStore } from 'thinharness'

export type Store = LogStore & { readonly close?: () => Promise<void> }

/** Opens a store. `place` is a folder, or the address of a database; `schema` is for PostgreSQL. */
export async function openStore(name: string, place: string, schema: string): Promise<Store> {
  switch (name) {
    case 'file': {
      const { fileLog } = await import('thinharness')
      return fileLog(place)
    }
    case 'sqlite': {
      mkdirSync(place, { recursive: true })
      const { sqliteLog } = await import('thinharness/store/sqlite')
      return sqliteLog(`${place}/runs.db`)
    }
    case 'dbos':
    case 'postgres': {
      const { postgresLog } = await import('thinharness/store/postgres')
      return postgresLog({ connectionString: place, schema })
    }
    default:
      throw new Error(`Expected the store to be file, sqlite, postgres or dbos, got ${name}.`)
  }
}
