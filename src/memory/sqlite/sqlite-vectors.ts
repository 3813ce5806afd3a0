import { HarnessError } from '../../index.js'
import { importInstalled } from '../../util/platform/node.js'
import type { Database, Value } from '../../util/platform/sqlite.js'
import type { RowVector } from '../index-port.js'
import { hasVectors, ROWS_PER_OWNER } from './sqlite-schema.js'
import type { VectorSample } from './vector-sample.js'
import { totalRows } from './word-counts.js'

/** Rows whose quantized vectors are near, for each row that is wanted: their exact vectors decide. */
const CANDIDATES = 4
const MOST_CANDIDATES = 400
/** A search among fewer rows is fast anyway. */
const FEW_ROWS = 20_000

interface SqliteVec {
  readonly getLoadablePath: () => string
}

/** Loads `sqlite-vec` into an open database. Throws `missing_dependency`. */
export async function loadVectors(database: Database): Promise<void> {
  const { getLoadablePath } = await (importInstalled('sqlite-vec') as Promise<SqliteVec>).catch((cause: unknown) => {
    const message = 'A memory with vectors needs the package `sqlite-vec` (npm install sqlite-vec).'
    throw new HarnessError('missing_dependency', message, { cause })
  })
  database.enableLoadExtension(true)
  database.loadExtension(getLoadablePath())
  database.enableLoadExtension(false)
}

/** `vectors` has one bit for each number, `embeddings` the numbers themselves. To be called in a transaction. */
export function storeVectors(database: Database, rows: readonly RowVector[]): void {
  const [first] = rows
  if (first === undefined) return
  if (!hasVectors(database)) createTables(database, first.vector.length)
  const has = lengthIn(database)
  const mark = database.prepare('update entries set has_vector = 1 where id = ? and has_vector = 0')
  const addBits = database.prepare(
    'insert into vectors (id, owner, bits) values (cast(? as integer), cast(? as integer), vec_quantize_binary(?))',
  )
  const add = database.prepare('insert into embeddings values (?, ?)')
  for (const { id, vector } of rows) {
    if (vector.length !== has) {
      const message = `The index has vectors of ${has} numbers, and \`embed\` returned ${vector.length}. Call \`reindex\` after a change of the model.`
      throw new HarnessError('invalid_options', message)
    }
    // Another process may have been faster, or the row may be gone.
    if (Number(mark.run(id).changes) === 0) continue
    addBits.run(id, Math.floor(id / ROWS_PER_OWNER), bytesOf(vector))
    add.run(id, bytesOf(vector))
  }
}

export function removeVectors(database: Database, condition: string, values: readonly Value[]): void {
  const ids = `select id from entries where has_vector = 1 and ${condition}`
  for (const table of ['vectors', 'embeddings']) {
    database.prepare(`delete from ${table} where id in (${ids})`).run(...values)
  }
}

/** Writes the bits of the remaining rows anew: a removed row leaves its own in the table. To be called in a transaction. */
export function rewriteVectors(database: Database): void {
  if (!hasVectors(database)) return
  database.exec('drop table vectors')
  createBits(database, lengthIn(database))
  database.exec(`
    insert into vectors (id, owner, bits)
    select id, id / ${ROWS_PER_OWNER}, vec_quantize_binary(vector) from embeddings`)
}

/** The ids of the nearest rows of an owner, or of all. `condition`: of the rows `e`. */
export function nearest(
  database: Database,
  vector: Float32Array,
  { owner, condition, values, limit, sample }: Nearest,
): readonly number[] {
  if (!hasVectors(database) || lengthIn(database) !== vector.length) return []
  const count = Math.min(MOST_CANDIDATES, limit * CANDIDATES)
  const rows = owner === null && condition === '' ? totalRows(database) : 0
  const within = rows < FEW_ROWS ? null : sample.distanceOf(database, bitsOf(vector), { rank: count, rows })
  const query = { vector, owner, condition, values, limit, count }
  const ids = nearestWithin(database, query, within)
  // The sample was not like the others.
  return within === null || ids.length >= Math.min(limit, rows) ? ids : nearestWithin(database, query, null)
}

interface Nearest {
  readonly owner: number | null
  readonly condition: string
  readonly values: readonly Value[]
  readonly limit: number
  readonly sample: VectorSample
}

/**
 * `sqlite-vec` looks through a list of candidates for each row that is near enough: if none is too far, that takes four times as long
 * as the comparison of a million rows.
 */
function nearestWithin(
  database: Database,
  { vector, owner, condition, values, limit, count }: Omit<Nearest, 'sample'> & { vector: Float32Array; count: number },
  within: number | null,
): readonly number[] {
  const among = condition === '' ? '' : `and id in (select id from entries e where true ${condition})`
  const sql = `
    select near.id as id from (
      select id from vectors where bits match vec_quantize_binary(?) and k = cast(? as integer)
      ${within === null ? '' : 'and distance <= cast(? as real)'}
      ${owner === null ? '' : 'and owner = cast(? as integer)'} ${among}
    ) near join embeddings x on x.id = near.id order by vec_distance_cosine(x.vector, ?) limit ?`
  const bounds = [within, owner].filter((bound) => bound !== null)
  const given = [bytesOf(vector), count, ...bounds, ...values, bytesOf(vector), limit]
  return database
    .prepare(sql)
    .all(...given)
    .map((row) => (row as { readonly id: number }).id)
}

function createTables(database: Database, length: number): void {
  createBits(database, length)
  database.exec('create table embeddings (id integer primary key, vector blob not null)')
  const sql = "insert into meta values ('length', ?) on conflict (key) do update set value = excluded.value"
  database.prepare(sql).run(String(length))
}

function createBits(database: Database, length: number): void {
  database.exec(
    `create virtual table vectors using vec0 (id integer primary key, owner integer, bits bit[${wholeLength(length)}])`,
  )
}

/** How many numbers a vector has. */
function lengthIn(database: Database): number {
  const row = database.prepare("select value from meta where key = 'length'").get() as { readonly value: string }
  return Number(row.value)
}

/** Bits are stored in whole bytes. The zeros change no angle. */
function bytesOf(vector: Float32Array): Uint8Array {
  const whole = new Float32Array(wholeLength(vector.length))
  whole.set(vector)
  return new Uint8Array(whole.buffer)
}

/** One bit for each number, as `vec_quantize_binary` makes them. */
function bitsOf(vector: Float32Array): Uint8Array {
  const bits = new Uint8Array(wholeLength(vector.length) / 8)
  vector.forEach((value, place) => {
    if (value > 0) bits[place >> 3] = (bits[place >> 3] ?? 0) | (1 << (place & 7))
  })
  return bits
}

function wholeLength(length: number): number {
  return Math.ceil(length / 8) * 8
}
