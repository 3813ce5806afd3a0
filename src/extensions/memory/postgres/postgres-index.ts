import { HarnessError } from '#contracts/errors.js'
import type { PostgresPlace, PostgresPool, OwnPool } from '#store/postgres-pool.js'
import { openPool } from '#store/postgres-pool.js'
import { isObject } from '#util/json.js'
import type {
  FoundRow,
  Generation,
  LogState,
  LogUpdate,
  MemoryIndex,
  MemoryRow,
  RowVector,
  Scope,
} from '../memory-index.js'
import { indexedWords } from '../search-words.js'

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
          : [`where owner = (select number from ${this.#table('owners')} where resource = $1)`, [scopeOwner(scope)]]
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
      const values = [
        log,
        resourceId ?? NO_OWNER,
        after,
        String(generation),
        storableJson(state),
        storableJson(given),
        forgotten,
      ]
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
    const rows = scopeConditions(scope, place)
    const sql = `
      with searched as materialized (
        select plainto_tsquery('"${this.#schema}".stems', word) as query from unnest(${place.of(words.map(indexedWords))}::text[]) as word
      ), total as materialized (
        select coalesce(sum(o.rows), 0) as rows from ${this.#table('owners')} o where ${scopeConditions(scope, place, 'owner only')}
      ), counted as materialized (
        select query, (
          select count(*) from ${this.#table('entries')} e join ${this.#table('owners')} o on o.number = e.owner
          where e.words @@ query and ${scopeConditions(scope, place, 'owner only')}
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
    const rest = `where e.words @@ ${query} and ${scopeConditions(scope, place)} order by e.id desc limit ${place.of(limit)}`
    return this.#find(rest, place)
  }

  withoutVector(scope: Scope, limit: number): Promise<readonly Pick<FoundRow, 'id' | 'text'>[]> {
    const place = new Values()
    const rest = `where e.vector is null and ${scopeConditions(scope, place)} order by e.owner, e.id limit ${place.of(limit)}`
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
    const rest = `where e.vector is not null and ${scopeConditions(scope, place)} order by ${distance} limit ${place.of(limit)}`
    return this.#find(rest, place)
  }

  text(handle: string, scope: Scope): Promise<readonly FoundRow[]> {
    const place = new Values()
    return this.#find(
      `where e.handle = ${place.of(handle)} and ${scopeConditions(scope, place)} order by e.part`,
      place,
    )
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
      const isGone = GONE.has(postgresErrorCode(thrown))
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

interface StoredRow extends Omit<MemoryRow, 'threadId'> {
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
function scopeConditions(scope: Scope, place: Values, which: 'all' | 'owner only' = 'all'): string {
  if (scope === 'all') return 'true'
  const ofOwner = `o.resource = ${place.of(scopeOwner(scope))}`
  return scope.threadId === null || which === 'owner only'
    ? ofOwner
    : `${ofOwner} and e.thread = ${place.of(scope.threadId)}`
}

function vectorText(vector: Float32Array): string {
  return `[${vector.join(',')}]`
}

function scopeOwner({ resourceId }: Exclude<Scope, 'all'>): string {
  return resourceId ?? NO_OWNER
}

/** PostgreSQL stores no character 0. */
function storableJson(value: unknown): string {
  return JSON.stringify(value).replaceAll('\\u0000', '')
}

function postgresErrorCode(thrown: unknown): string {
  return isObject(thrown) && typeof thrown['code'] === 'string' ? thrown['code'] : ''
}

function hasOpened(opening: Promise<unknown>): Promise<boolean> {
  return opening.then(
    () => true,
    () => false,
  )
}

/** Marks the tables of this version: an index of another version is emptied and made again. */
const MARK = 'thinharness memory 3'
const ANY_VERSION = /^thinharness memory \d+$/

/** Tables that another program made, or none, or those of an index. */
interface Existing {
  readonly mark: string | null
  readonly tables: number
}

/** Creates the tables and functions of an index, if they are not there, by one process at a time. */
async function createIndex(pool: PostgresPool, schema: string): Promise<void> {
  const { mark, tables } = await existingTables(pool, schema)
  if (mark === MARK) return
  if (tables > 0 && !ANY_VERSION.test(mark ?? '')) {
    const message = `Expected \`index.schema\` of \`createMemory\` to be a schema of its own, which need not exist: \`${schema}\` has tables of another program.`
    throw new HarnessError('invalid_options', message)
  }
  // One text is one transaction. What another process made in the meantime stays.
  await pool.query(`
    select pg_advisory_xact_lock(hashtext('thinharness memory'), hashtext('${schema}'));
    do $do$ begin
      if obj_description(to_regclass('"${schema}".meta'), 'pg_class') is distinct from '${MARK}' then
        drop schema if exists "${schema}" cascade;
        create schema "${schema}";
        ${createTablesSql(schema)}
        ${createFunctionsSql(schema)}
      end if;
    end $do$;`)
}

async function existingTables(pool: PostgresPool, schema: string): Promise<Existing> {
  const sql = `
    select obj_description(to_regclass($1), 'pg_class') as mark,
      (select count(*)::integer from pg_class c join pg_namespace n on n.oid = c.relnamespace where n.nspname = $2) as tables`
  const [found] = (await pool.query(sql, [`"${schema}".meta`, schema])).rows as Existing[]
  return found ?? { mark: null, tables: 0 }
}

/**
 * Adds the column of the vectors, if it is not there, and returns the schema of the extension `vector`. Throws
 * `missing_dependency`.
 */
async function addVectors(pool: PostgresPool, schema: string): Promise<string> {
  const extension = (await vectorExtension(pool)) ?? (await createExtension(pool))
  await pool.query(`
    select pg_advisory_xact_lock(hashtext('thinharness memory'), hashtext('${schema}'));
    alter table "${schema}".entries add column if not exists vector "${extension}".vector;
    create index if not exists entries_without_vector on "${schema}".entries (owner, id) where vector is null;`)
  return extension
}

async function vectorExtension(pool: PostgresPool): Promise<string | null> {
  const sql = `
    select n.nspname as name from pg_extension e join pg_namespace n on n.oid = e.extnamespace where e.extname = 'vector'`
  const [extension] = (await pool.query(sql)).rows as { name: string }[]
  return extension?.name ?? null
}

async function createExtension(pool: PostgresPool): Promise<string> {
  try {
    await pool.query('create extension if not exists vector')
  } catch (cause) {
    const message =
      'A memory with vectors in PostgreSQL needs the extension `vector` (pgvector) in the database: install it, and run `create extension vector`.'
    throw new HarnessError('missing_dependency', message, { cause })
  }
  return (await vectorExtension(pool)) ?? 'public'
}

/** The configuration `stems` reduces English words to their stems, and has no stop words: `forget` needs every word. */
function createTablesSql(schema: string): string {
  return `
    create text search dictionary "${schema}".stem (template = pg_catalog.snowball, language = english);
    create text search configuration "${schema}".stems (copy = pg_catalog.simple);
    alter text search configuration "${schema}".stems
      alter mapping for asciiword, word, numword with "${schema}".stem;
    create table "${schema}".meta (key text collate "C" primary key, value text not null);
    insert into "${schema}".meta values ('generation', (random() * 1e15)::bigint::text);
    create table "${schema}".owners (
      number integer generated always as identity primary key,
      resource text collate "C" not null unique,
      rows integer not null default 0
    );
    create table "${schema}".logs (
      log text collate "C" primary key,
      owner integer not null,
      thread text collate "C" not null,
      began text not null,
      seq integer not null,
      sources jsonb not null
    );
    create index on "${schema}".logs (owner);
    create table "${schema}".entries (
      id bigint generated always as identity primary key,
      owner integer not null,
      log text collate "C" not null,
      thread text collate "C" not null,
      handle text collate "C" not null,
      part integer not null,
      kind text not null,
      at text not null,
      sources jsonb not null,
      text text not null,
      words tsvector not null
    );
    create unique index on "${schema}".entries (log, handle, part);
    create index on "${schema}".entries (owner, handle);
    create index on "${schema}".entries (owner, thread);
    create index on "${schema}".entries using gin (words) with (fastupdate = off);
    create table "${schema}".forgotten (
      owner integer not null,
      handle text collate "C" not null,
      log text collate "C" not null,
      primary key (owner, handle)
    );
    create index on "${schema}".forgotten (log);
    comment on table "${schema}".meta is '${MARK}';`
}

/** Changes of several tables are functions: a pool promises no two statements on one connection. */
function createFunctionsSql(schema: string): string {
  return `
    create function "${schema}".put(
      given_log text, resource_id text, after_seq integer, given_generation text, state jsonb, given_rows jsonb, forgotten_handles text[]
    ) returns boolean language plpgsql as $$
    declare
      owner_number integer;
      added integer;
    begin
      -- Waits for an erasure, and an erasure waits for this.
      perform 1 from "${schema}".meta where key = 'generation' and value = given_generation for share;
      if not found then return false; end if;
      insert into "${schema}".owners (resource) values (resource_id) on conflict do nothing;
      select number into owner_number from "${schema}".owners where resource = resource_id for update;
      if coalesce((select seq from "${schema}".logs where log = given_log), 0) <> after_seq then return false; end if;
      insert into "${schema}".logs
        values (given_log, owner_number, state->>'threadId', state->>'began', (state->>'seq')::integer, state->'sources')
        on conflict (log) do update set seq = excluded.seq, sources = excluded.sources;
      insert into "${schema}".entries (owner, log, thread, handle, part, kind, at, sources, text, words)
        select owner_number, given_log, r."threadId", r.handle, r.part, r.kind, r.at, r.sources, r.text,
          to_tsvector('"${schema}".stems', r.words)
        from jsonb_to_recordset(given_rows)
          as r ("threadId" text, handle text, part integer, kind text, at text, sources jsonb, text text, words text)
        where not exists (
          select 1 from "${schema}".forgotten f where f.owner = owner_number and f.handle = r.handle
        )
        on conflict do nothing;
      get diagnostics added = row_count;
      update "${schema}".owners set rows = rows + added where number = owner_number;
      insert into "${schema}".forgotten select owner_number, handle, given_log from unnest(forgotten_handles) as handle
        on conflict do nothing;
      delete from "${schema}".entries where owner = owner_number and handle = any(forgotten_handles);
      return true;
    end $$;

    create function "${schema}".drop_log(given_log text) returns void language sql as $$
      delete from "${schema}".entries where log = given_log;
      delete from "${schema}".forgotten where log = given_log;
      delete from "${schema}".logs where log = given_log;
    $$;

    -- Rows that were read before are not stored after it. Null: everything.
    create function "${schema}".erase(resource_id text) returns void language plpgsql as $$
    declare
      owner_number integer;
    begin
      update "${schema}".meta set value = (value::bigint + 1)::text where key = 'generation';
      select number into owner_number from "${schema}".owners where resource = resource_id;
      delete from "${schema}".entries where resource_id is null or owner = owner_number;
      delete from "${schema}".forgotten where resource_id is null or owner = owner_number;
      delete from "${schema}".logs where resource_id is null or owner = owner_number;
      delete from "${schema}".owners where resource_id is null or number = owner_number;
    end $$;`
}
