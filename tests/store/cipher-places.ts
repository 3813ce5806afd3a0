import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, onTestFinished } from 'vitest'
import { fileLog, memoryLog } from 'thinharness'
import type { encryption, LogStore } from 'thinharness'
import { postgresLog } from 'thinharness/store/postgres'
import { sqliteLog } from 'thinharness/store/sqlite'
import { openDatabase } from '#store/sqlite.js'
import { temporaryFolder } from '../support/folder.js'
import { startPostgres } from '../support/postgres.js'

export type Cipher = ReturnType<typeof encryption>

/** One store, of which each call of `open` is another process. */
export interface Place {
  readonly open: (cipher?: Cipher) => LogStore
  /** True if a text is in a byte of its files, tables or write-ahead logs. */
  readonly holds: (text: string) => Promise<boolean>
  /** Exchanges the records of one number of two runs. */
  readonly swap: (runs: readonly [string, string], seq: number) => Promise<void>
  readonly change: (runId: string, seq: number, change: (stored: string) => string) => Promise<void>
}

/** The stores with bytes; PostgreSQL only if a server can be started. */
export async function placesWithBytes(): Promise<(readonly [string, () => Place])[]> {
  const server = await startPostgres()
  const places: (readonly [string, () => Place])[] = [
    ['files', filePlace],
    ['SQLite', sqlitePlace],
  ]
  if (server === null) return places
  afterAll(() => server.stop())
  return [...places, ['PostgreSQL', () => postgresPlace(server.url)]]
}

export function memoryPlace(): Pick<Place, 'open'> {
  let log: LogStore | undefined
  return { open: (cipher) => (log ??= memoryLog({ cipher })) }
}

function filePlace(): Place {
  const folder = temporaryFolder()
  const change: Place['change'] = async (runId, seq, changed) => {
    const path = join(folder, `${runId}.jsonl`)
    const lines = readFileSync(path, 'utf8').split('\n')
    writeFileSync(path, lines.with(seq - 1, changedLine(lines[seq - 1] ?? '', changed)).join('\n'))
  }
  const stored = (runId: string, seq: number): string => {
    const line = readFileSync(join(folder, `${runId}.jsonl`), 'utf8').split('\n')[seq - 1] ?? ''
    return (JSON.parse(line) as { sealed?: string }).sealed ?? line
  }
  return {
    open: (cipher) => fileLog(folder, { fsync: 'never', cipher }),
    holds: async (text) => filesHold(folder, text),
    change,
    swap: async ([left, right], seq) => {
      const [one, two] = [stored(left, seq), stored(right, seq)]
      await change(left, seq, () => two)
      await change(right, seq, () => one)
    },
  }
}

function changedLine(line: string, change: (stored: string) => string): string {
  const parsed = JSON.parse(line) as { readonly sealed?: string }
  if (parsed.sealed === undefined) return change(line)
  const sealed = change(parsed.sealed)
  return sealed.startsWith('{') ? sealed : JSON.stringify({ ...parsed, sealed })
}

function filesHold(folder: string, text: string): boolean {
  const paths = readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name))
  return paths.some((path) => path.includes(text) || (statSync(path).isFile() && readFileSync(path).includes(text)))
}

function sqlitePlace(): Place {
  const folder = temporaryFolder()
  const path = join(folder, 'runs.db')
  const execute = async (sql: string): Promise<void> => {
    const database = await openDatabase(path, 'normal')
    database.exec(sql)
    database.close()
  }
  return {
    open: (cipher) => closedAfter(sqliteLog(path, { cipher })),
    holds: async (text) => filesHold(folder, text),
    change: async (runId, seq, changed) => {
      const database = await openDatabase(path, 'normal')
      const where = `where run_id = '${runId}' and seq = ${seq}`
      const { event } = database.prepare(`select event from events ${where}`).get() as { event: string }
      database.prepare(`update events set event = ? ${where}`).run(changed(event))
      database.close()
    },
    swap: (runs, seq) => execute(swapSql('events', runs, seq)),
  }
}

function swapSql(events: string, [left, right]: readonly [string, string], seq: number): string {
  return `
    create temporary table was as select run_id, event from ${events} where seq = ${seq};
    update ${events} set event = (select event from was where run_id = '${right}') where run_id = '${left}' and seq = ${seq};
    update ${events} set event = (select event from was where run_id = '${left}') where run_id = '${right}' and seq = ${seq};
    drop table was;`
}

let schemas = 0

function postgresPlace(connectionString: string): Place {
  const schema = `c_${process.pid}_${(schemas += 1)}`
  const pool = new pg.Pool({ connectionString, max: 1 })
  pool.on('error', () => undefined)
  onTestFinished(() => pool.end())
  const events = `"${schema}".events`
  return {
    open: (cipher) => closedAfter(postgresLog({ connectionString, schema, cipher })),
    holds: (text) => serverHolds(pool, schema, text),
    change: async (runId, seq, changed) => {
      const where = `where run_id = '${runId}' and seq = ${seq}`
      const { rows } = await pool.query<{ event: string }>(`select event from ${events} ${where}`)
      await pool.query(`update ${events} set event = $1 ${where}`, [changed(rows[0]?.event ?? '')])
    },
    swap: async (runs, seq) => {
      await pool.query(swapSql(events, runs, seq))
    },
  }
}

/** Looks into the files of the tables and into the write-ahead log: the server may read its own files. */
async function serverHolds(pool: pg.Pool, schema: string, text: string): Promise<boolean> {
  await pool.query('checkpoint')
  const files = `
    select pg_relation_filepath(oid) as path from pg_class
    where relkind in ('r', 'i', 't') and relnamespace = '"${schema}"'::regnamespace
    union select pg_relation_filepath(reltoastrelid) from pg_class
    where relnamespace = '"${schema}"'::regnamespace and reltoastrelid <> 0
    union select 'pg_wal/' || name from pg_ls_waldir()`
  const sql = `
    select count(*)::integer as found from (${files}) as files
    where path is not null and position($1::bytea in coalesce(pg_read_binary_file(path, 0, 20000000, true), ''::bytea)) > 0`
  const { rows } = await pool.query<{ found: number }>(sql, [Buffer.from(text)])
  return (rows[0]?.found ?? 0) > 0
}

function closedAfter<Log extends LogStore & { close(): Promise<void> }>(log: Log): Log {
  onTestFinished(() => log.close())
  return log
}
