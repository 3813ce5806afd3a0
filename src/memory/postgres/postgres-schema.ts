import { HarnessError } from '../../index.js'
import type { PostgresPool } from '../../contracts/postgres-place.js'

/** Marks the tables of this version: an index of another version is emptied and made again. */
const MARK = 'thinharness memory 2'
const ANY_VERSION = /^thinharness memory \d+$/

/** Tables that another program made, or none, or those of an index. */
interface Existing {
  readonly mark: string | null
  readonly tables: number
}

/** Creates the tables and functions of an index, if they are not there, by one process at a time. */
export async function createIndex(pool: PostgresPool, schema: string): Promise<void> {
  const { mark, tables } = await existing(pool, schema)
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
        ${tablesIn(schema)}
        ${functionsIn(schema)}
      end if;
    end $do$;`)
}

async function existing(pool: PostgresPool, schema: string): Promise<Existing> {
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
export async function addVectors(pool: PostgresPool, schema: string): Promise<string> {
  const extension = (await extensionIn(pool)) ?? (await createExtension(pool))
  await pool.query(`
    select pg_advisory_xact_lock(hashtext('thinharness memory'), hashtext('${schema}'));
    alter table "${schema}".entries add column if not exists vector "${extension}".vector;
    create index if not exists entries_without_vector on "${schema}".entries (owner, id) where vector is null;`)
  return extension
}

async function extensionIn(pool: PostgresPool): Promise<string | null> {
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
  return (await extensionIn(pool)) ?? 'public'
}

/** The configuration `stems` reduces English words to their stems, and has no stop words: `forget` needs every word. */
function tablesIn(schema: string): string {
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
function functionsIn(schema: string): string {
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
