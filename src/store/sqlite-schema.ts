import { realpathSync, statSync } from 'node:fs'
import { logSchema } from './sql-log.js'
import { HarnessError } from '#contracts/errors.js'
import { openSqlite, SQLITE_NEEDED, transaction } from '#util/platform/sqlite.js'
import type { Database } from '#util/platform/sqlite.js'

/** The version of the tables. A file with tables of another version is rejected. */
const SCHEMA_VERSION = 5

const SCHEMA = `
${logSchema({
  table: (name) => name,
  text: 'text',
  logColumns: 'owned_until integer not null default 0, changed integer not null default 0',
  byChange: () => 'changed',
  postNumber: 'integer primary key autoincrement',
  postKey: 'unique',
  keyed: 'without rowid',
})}
create table appends (number integer not null);
insert into appends values (0);`

/** Opens the file, which it creates with its tables. Throws `missing_dependency` if Node has no SQLite. */
export async function openDatabase(path: string, synchronous: 'normal' | 'full'): Promise<Database> {
  const database = await openSqlite(path, { missing: missingSqliteError })
  try {
    database.exec(`pragma synchronous = ${synchronous}; pragma secure_delete = on`)
    transaction(database, () => createTables(database, path))
    return database
  } catch (error) {
    database.close()
    throw error
  }
}

/** The files of an open database, by what had their names when it was opened. */
export class DatabaseFiles {
  readonly #paths: readonly string[]
  readonly #opened: readonly string[]

  constructor(path: string) {
    const real = realpathSync(path)
    this.#paths = [path, `${real}-wal`, `${real}-shm`]
    this.#opened = this.#present()
  }

  /** One of them was removed, moved or replaced. */
  get haveMoved(): boolean {
    return this.#present().some((file, index) => file !== this.#opened[index])
  }

  /** The file itself was, not only its write-ahead log. */
  get isMoved(): boolean {
    return this.#present()[0] !== this.#opened[0]
  }

  #present(): readonly string[] {
    return this.#paths.map((path) => {
      const stats = statSync(path, { throwIfNoEntry: false })
      return stats === undefined ? '' : `${stats.dev}:${stats.ino}`
    })
  }
}

function missingSqliteError(cause: unknown): HarnessError {
  return new HarnessError('missing_dependency', `\`sqliteLog\` needs ${SQLITE_NEEDED}`, { cause })
}

function createTables(database: Database, path: string): void {
  const { user_version: version } = database.prepare('pragma user_version').get() as { user_version: number }
  if (version === SCHEMA_VERSION) return
  if (version !== 0) {
    const message = `The tables in \`${path}\` are of version ${version}: this version of thinharness reads version ${SCHEMA_VERSION}.`
    throw new HarnessError('store_failure', message)
  }
  database.exec(SCHEMA)
  database.exec(`pragma user_version = ${SCHEMA_VERSION}`)
}
