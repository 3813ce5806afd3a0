import { HarnessError } from '#contracts/errors.js'
import { transaction } from '#util/platform/sqlite.js'
import type { Database } from '#util/platform/sqlite.js'

/** Rows of one owner have ids in a range of their own, so that a search of one owner reads nothing of the others. */
export const ROWS_PER_OWNER = 2 ** 28

/** The ids that a search may find. Owner 0: all. */
export interface IdRange {
  readonly owner: number
  readonly from: number
  readonly to: number
}

/** Marks a file as an index of this package: `thMe`. */
const APPLICATION_ID = 0x74_68_4d_65
/** Version of the tables: an index of another version is emptied and made again. */
const VERSION = 5

/** `words` has no content of its own: a row is found by its words, and read from `entries`. */
const SCHEMA = `
create table meta (key text primary key, value text not null) without rowid;
create table owners (
  number integer primary key,
  resource text not null unique,
  next integer not null default 1
);
create table logs (
  log text primary key,
  owner integer not null,
  thread text not null,
  began text not null,
  seq integer not null,
  sources text not null
) without rowid;
create index logs_by_owner on logs (owner);
create table entries (
  id integer primary key,
  log text not null,
  thread text not null,
  handle text not null,
  part integer not null,
  kind text not null,
  at text not null,
  sources text not null,
  text text not null,
  has_vector integer not null default 0
);
create index entries_without_vector on entries (id) where has_vector = 0;
create unique index entries_by_log on entries (log, handle, part);
create index entries_by_handle on entries (handle);
create index entries_by_thread on entries (thread);
create table embeddings (id integer primary key, vector blob not null);
create table forgotten (
  owner integer not null,
  handle text not null,
  log text not null,
  primary key (owner, handle)
) without rowid;
create index forgotten_by_log on forgotten (log);
create virtual table words using fts5 (text, content = '', tokenize = 'porter unicode61 remove_diacritics 2');
insert into words (words, rank) values ('secure-delete', 1);
`

const TABLES = ['embeddings', 'words', 'forgotten', 'entries', 'logs', 'owners', 'meta']

/** Rejects a database of another program. Called before anything is written to it. */
export function checkIsIndex(database: Database, path: string): void {
  const expected = `Expected \`index\` of \`createMemory\` to be a file of its own, which need not exist: \`${path}\` `
  try {
    if (readNumber(database, 'pragma application_id') === APPLICATION_ID) return
    if (
      readNumber(database, 'select count(*) from sqlite_schema') === 0 &&
      readNumber(database, 'pragma user_version') === 0
    )
      return
  } catch (cause) {
    if (!/file is not a database|malformed/i.test(String(cause))) throw cause
    throw new HarnessError('invalid_options', `${expected}is not a database.`, { cause })
  }
  throw new HarnessError('invalid_options', `${expected}is a database of another program.`)
}

/** Creates the tables of a new file, or of one that another version of the package wrote. */
export function prepareTables(database: Database): void {
  transaction(database, () => {
    const isOwn = readNumber(database, 'pragma application_id') === APPLICATION_ID
    if (!isOwn || readNumber(database, 'pragma user_version') !== VERSION) createTables(database)
  })
}

/** Empties the index. To be called in a transaction. */
export function createTables(database: Database): void {
  for (const table of TABLES) database.exec(`drop table if exists ${table}`)
  database.exec(SCHEMA)
  // Rows that another process has read for the index as it was are not stored.
  const generation = Math.floor(Math.random() * 2 ** 48)
  database.prepare("insert into meta values ('generation', ?)").run(String(generation))
  database.exec(`pragma application_id = ${APPLICATION_ID}; pragma user_version = ${VERSION}`)
}

function readNumber(database: Database, sql: string): number {
  return Number(Object.values(database.prepare(sql).get() as object)[0])
}
