import { HarnessError } from '../../index.js'
import { importInstalled } from '../../util/platform/node.js'
import type { Database, Value } from '../../util/platform/sqlite.js'
import type { RowVector } from '../index-port.js'
import { hasVectors, ROWS_PER_OWNER } from './sqlite-schema.js'
import type { IdRange } from './sqlite-schema.js'
import type { VectorSample } from './vector-sample.js'
import { totalRows } from './word-counts.js'

/** Rows whose quantized vectors are near, for each row that is wanted: their exact vectors decide. */
const CANDIDATES = 4
const MOST_CANDIDATES = 400
/** Rows that are all compared by their exact vectors. */
const FEW_ROWS = 10_000

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
  { range, sample, ...among }: Nearest,
): readonly number[] {
  if (!hasVectors(database) || lengthIn(database) !== vector.length) return []
  const rows = range.owner === 0 ? totalRows(database) : range.to - range.from
  if (rows <= FEW_ROWS) return nearestOfFew(database, { vector, range, ...among })
  const count = Math.min(MOST_CANDIDATES, among.limit * CANDIDATES)
  const within = range.owner === 0 ? sample.distanceOf(database, bitsOf(vector), { rank: count, rows }) : null
  const query = { vector, range, count, ...among }
  const ids = nearestWithin(database, query, within)
  // The sample was not like the others.
  return within === null || ids.length >= among.limit ? ids : nearestWithin(database, query, null)
}

interface Nearest {
  /** Owner 0: all. */
  readonly range: IdRange
  readonly condition: string
  readonly values: readonly Value[]
  readonly limit: number
  readonly sample: VectorSample
}

type Query = Omit<Nearest, 'sample'> & { readonly vector: Float32Array }

/** Compares every vector. */
function nearestOfFew(database: Database, { vector, range, condition, values, limit }: Query): readonly number[] {
  const sql = `
    select x.id as id from embeddings x ${condition === '' ? '' : 'join entries e on e.id = x.id'}
    where x.id between cast(? as integer) and cast(? as integer) ${condition}
    order by vec_distance_cosine(x.vector, ?) limit ?`
  return idsIn(database, sql, [range.from, range.to, ...values, bytesOf(vector), limit])
}

/**
 * `sqlite-vec` looks through a list of candidates for each row that is near enough: if none is too far, that takes four times as long
 * as the comparison of a million rows.
 */
function nearestWithin(
  database: Database,
  { vector, range, condition, values, limit, count }: Query & { readonly count: number },
  within: number | null,
): readonly number[] {
  const owner = range.owner === 0 ? null : range.owner
  const among = condition === '' ? '' : `and id in (select id from entries e where true ${condition})`
  const sql = `
    select near.id as id from (
      select id from vectors where bits match vec_quantize_binary(?) and k = cast(? as integer)
      ${within === null ? '' : 'and distance <= cast(? as real)'}
      ${owner === null ? '' : 'and owner = cast(? as integer)'} ${among}
    ) near join embeddings x on x.id = near.id order by vec_distance_cosine(x.vector, ?) limit ?`
  const bounds = [within, owner].filter((bound) => bound !== null)
  const given = [bytesOf(vector), count, ...bounds, ...values, bytesOf(vector), limit]
  return idsIn(database, sql, given)
}

function idsIn(database: Database, sql: string, values: readonly Value[]): readonly number[] {
  const rows = database.prepare(sql).all(...values)
  return rows.map((row) => (row as { readonly id: number }).id)
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
