import { HarnessError } from '../../index.js'
import type { PostgresPool } from '../../contracts/postgres-place.js'
import type { RowVector } from '../index-port.js'

/** Rows whose quantized vectors are near, for each row that is wanted: their exact vectors decide. */
const CANDIDATES = 4
/** Of one search; also the most that the index of all owners gives. */
const MOST_CANDIDATES = 400

/** The vectors of an index, by the extension `vector` of the server. `embeddings` has one bit for each number, and the numbers themselves. */
export class PostgresVectors {
  readonly #pool: PostgresPool
  readonly #schema: string
  /** The schema of the extension. */
  readonly #extension: string

  private constructor(pool: PostgresPool, schema: string, extension: string) {
    this.#pool = pool
    this.#schema = schema
    this.#extension = extension
  }

  /** Creates what vectors need, if it is not there. Throws `missing_dependency`. */
  static async open(pool: PostgresPool, schema: string): Promise<PostgresVectors> {
    const extension = (await extensionIn(pool)) ?? (await createExtension(pool))
    const sql = 'select to_regclass($1) is not null as there'
    const [found] = (await pool.query(sql, [`"${schema}".embeddings`])).rows as { there: boolean }[]
    if (found?.there !== true) {
      await pool.query(`
        select pg_advisory_xact_lock(hashtext('thinharness memory'), hashtext('${schema}'));
        ${tablesIn(schema, extension)}`)
    }
    return new PostgresVectors(pool, schema, extension)
  }

  /** Stores vectors of rows that have none yet. */
  async store(rows: readonly RowVector[]): Promise<void> {
    const [first] = rows
    if (first === undefined) return
    const ids = rows.map(({ id }) => id)
    const texts = rows.map(({ vector }) => textOf(vector))
    const lengths = rows.map(({ vector }) => vector.length)
    const wrong = lengths.find((length) => length !== first.vector.length)
    const sql = `select "${this.#schema}".put_vectors($1::bigint[], $2::text[], $3::integer) as length`
    const [stored] = (await this.#pool.query(sql, [ids, texts, wrong ?? first.vector.length])).rows as {
      length: number
    }[]
    const length = stored?.length ?? 0
    const other = lengths.find((each) => each !== length)
    if (other === undefined) return
    const message = `The index has vectors of ${length} numbers, and \`embed\` returned ${other}. Call \`reindex\` after a change of the model.`
    throw new HarnessError('invalid_options', message)
  }

  /** The ids of the nearest rows of an owner, or of all; of one thread, if it is named. */
  async nearest(
    vector: Float32Array,
    { owner, thread, limit }: { readonly owner: number | null; readonly thread: string | null; readonly limit: number },
  ): Promise<readonly number[]> {
    const count = Math.min(MOST_CANDIDATES, limit * CANDIDATES)
    const sql = `select id::text as id from "${this.#schema}".nearest($1::text::"${this.#extension}".vector, $2, $3, $4, $5)`
    const { rows } = await this.#pool.query(sql, [textOf(vector), owner, thread, count, limit])
    return (rows as { id: string }[]).map(({ id }) => Number(id))
  }
}

async function extensionIn(pool: PostgresPool): Promise<string | null> {
  const sql = `
    select n.nspname as name from pg_extension e join pg_namespace n on n.oid = e.extnamespace where e.extname = 'vector'`
  const [found] = (await pool.query(sql)).rows as { name: string }[]
  return found?.name ?? null
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

/**
 * Rows of one owner are compared one by one. For all owners there is an index of the bits (HNSW), which is made when the first
 * vectors are stored, as their length is known then.
 */
function tablesIn(schema: string, extension: string): string {
  const operator = (name: string): string => `operator("${extension}".${name})`
  return `
    create table if not exists "${schema}".embeddings (
      id bigint primary key references "${schema}".entries on delete cascade,
      owner integer not null,
      bits bit varying not null,
      vector "${extension}".vector not null
    );
    create index if not exists embeddings_by_owner on "${schema}".embeddings (owner);

    create or replace function "${schema}".put_vectors(ids bigint[], texts text[], given integer) returns integer
    language plpgsql as $$
    declare
      length integer;
    begin
      insert into "${schema}".meta values ('length', given) on conflict do nothing;
      select value into length from "${schema}".meta where key = 'length' for share;
      if length <> given then return length; end if;
      execute format('create index if not exists embeddings_by_bits on "${schema}".embeddings
        using hnsw ((bits::bit(%s)) "${extension}".bit_hamming_ops)', given);
      with vectors as (
        select id, vector::"${extension}".vector as vector from unnest(ids, texts) as rows (id, vector)
      ), marked as (
        update "${schema}".entries e set has_vector = true from vectors v where e.id = v.id and not e.has_vector
        returning e.id, e.owner, v.vector
      )
      insert into "${schema}".embeddings
        select id, owner, "${extension}".binary_quantize(vector), vector from marked on conflict do nothing;
      return length;
    end $$;

    create or replace function "${schema}".nearest(
      given "${extension}".vector, given_owner integer, given_thread text, candidates integer, wanted integer
    ) returns table (id bigint) language plpgsql stable set hnsw.ef_search = ${MOST_CANDIDATES} as $$
    declare
      length integer := (select value from "${schema}".meta where key = 'length');
      given_bits bit varying := "${extension}".binary_quantize(given);
    begin
      if length is null or length <> "${extension}".vector_dims(given) then return; end if;
      if given_owner is not null then
        return query select x.id from (
          select b.* from "${schema}".embeddings b
          where b.owner = given_owner and (given_thread is null
            or b.id in (select e.id from "${schema}".entries e where e.owner = given_owner and e.thread = given_thread))
          order by b.bits ${operator('<~>')} given_bits limit candidates
        ) x order by x.vector ${operator('<=>')} given limit wanted;
      else
        return query execute format('select x.id from (
          select b.* from "${schema}".embeddings b order by b.bits::bit(%1$s) ${operator('<~>')} $2::bit(%1$s) limit $3
        ) x order by x.vector ${operator('<=>')} $1 limit $4', length) using given, given_bits, candidates, wanted;
      end if;
    end $$;`
}

function textOf(vector: Float32Array): string {
  return `[${vector.join(',')}]`
}
