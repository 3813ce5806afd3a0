import { HarnessError } from '#contracts/errors.js'
import { parse } from '#contracts/parse.js'
import type { Database } from '#util/platform/sqlite.js'
import { integer, partial } from '#util/validate.js'
import { checkPath } from './reply-store.js'
import type { KeepOptions, ReplyStore } from './reply-store.js'

export interface SqliteCacheOptions {
  /** The most replies; of more, those that were kept longest ago go. Default 100,000. */
  readonly entries?: number | undefined
}

export interface SqliteReplyStore extends ReplyStore, AsyncDisposable {
  /** Closes the file. The next use opens it again. */
  close(): Promise<void>
}

const OPTIONS = partial<SqliteCacheOptions>({ entries: integer(1) })

/**
 * Keeps replies in a SQLite file, which any number of processes of one machine can use. Opened when it is first used. Needs
 * `node:sqlite`, or the package `@photostructure/sqlite` if Node has none.
 * @throws HarnessError `invalid_options` for an empty path, and for an option that it does not know.
 * @example
 * await using store = sqliteCache('cache.db')
 * const model = cached('openai:gpt-5.5', { store })
 * const harness = new Harness({ model })
 */
export function sqliteCache(path: string, options: SqliteCacheOptions = {}): SqliteReplyStore {
  const { entries = 100_000 } = parse(OPTIONS, options, '`sqliteCache`')
  return new SqliteCache(checkPath(path), entries)
}

const TABLES = `
create table if not exists replies (
  key text primary key,
  reply text not null,
  expires_at integer,
  in_group text,
  kept integer not null
) without rowid;
create index if not exists replies_in_group on replies (in_group, kept) where in_group is not null;
create index if not exists replies_kept on replies (kept);`

/** After so many replies the oldest and the expired ones are removed. */
const CLEANED_AFTER = 100

class SqliteCache implements SqliteReplyStore {
  readonly #path: string
  readonly #most: number
  #database: Promise<Database> | null = null
  #sinceCleaned = CLEANED_AFTER

  constructor(path: string, most: number) {
    this.#path = path
    this.#most = most
  }

  async get(key: string): Promise<string | null> {
    const database = await this.#opened()
    const found = database
      .prepare('select reply from replies where key = ? and (expires_at is null or expires_at > ?)')
      .get(key, Date.now()) as { readonly reply: string } | undefined
    return found?.reply ?? null
  }

  async set(key: string, text: string, { expiresAt, group }: KeepOptions): Promise<void> {
    const database = await this.#opened()
    const next = '(select coalesce(max(kept), 0) + 1 from replies)'
    database
      .prepare(`insert or replace into replies (key, reply, expires_at, in_group, kept) values (?, ?, ?, ?, ${next})`)
      .run(key, text, expiresAt, group)
    if ((this.#sinceCleaned += 1) < CLEANED_AFTER) return
    this.#sinceCleaned = 0
    database.prepare('delete from replies where expires_at <= ?').run(Date.now())
    const oldest = 'select kept from replies order by kept desc limit 1 offset ?'
    database.prepare(`delete from replies where kept <= coalesce((${oldest}), -1)`).run(this.#most)
  }

  async group(group: string, limit: number): Promise<readonly string[]> {
    const database = await this.#opened()
    const rows = database
      .prepare(
        'select reply from replies where in_group = ? and (expires_at is null or expires_at > ?) order by kept desc limit ?',
      )
      .all(group, Date.now(), limit) as { readonly reply: string }[]
    return rows.map(({ reply }) => reply)
  }

  async close(): Promise<void> {
    const database = this.#database
    this.#database = null
    await database?.then(
      (opened) => opened.close(),
      () => undefined,
    )
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  #opened(): Promise<Database> {
    if (this.#database === null) {
      const opening = openTables(this.#path)
      this.#database = opening
      opening.catch(() => {
        if (this.#database === opening) this.#database = null
      })
    }
    return this.#database
  }
}

async function openTables(path: string): Promise<Database> {
  const { openSqlite, SQLITE_NEEDED } = await import('#util/platform/sqlite.js')
  const missing = (cause: unknown): HarnessError =>
    new HarnessError('missing_dependency', `\`sqliteCache\` needs ${SQLITE_NEEDED}`, { cause })
  const database = await openSqlite(path, { missing })
  try {
    database.exec('pragma synchronous = off')
    database.exec(TABLES)
    return database
  } catch (error) {
    database.close()
    throw error
  }
}
