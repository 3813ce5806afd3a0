import { HarnessError } from '#contracts/errors.js'
import { importInstalled } from '#util/platform/node.js'
import type { Database, Value } from '#util/platform/sqlite.js'
import type { RowVector } from '../memory-index.js'
import type { IdRange } from './sqlite-schema.js'

/** Up to so many vectors are compared here; more by the extension `sqlite-vec`. */
export const MOST_COMPARED_HERE = 50_000
/** Vectors that are read together. */
const TOGETHER = 1000

interface SqliteVec {
  readonly getLoadablePath: () => string
}

/** Loads `sqlite-vec` into an open database. Throws `missing_dependency`. */
export async function loadSqliteVec(database: Database): Promise<void> {
  const { getLoadablePath } = await (importInstalled('sqlite-vec') as Promise<SqliteVec>).catch((cause: unknown) => {
    const message = `A memory with more than ${MOST_COMPARED_HERE} vectors needs the package \`sqlite-vec\` (npm install sqlite-vec).`
    throw new HarnessError('missing_dependency', message, { cause })
  })
  database.enableLoadExtension(true)
  database.loadExtension(getLoadablePath())
  database.enableLoadExtension(false)
}

/** To be called in a transaction. */
export function storeVectors(database: Database, rows: readonly RowVector[]): void {
  const mark = database.prepare('update entries set has_vector = 1 where id = ? and has_vector = 0')
  const add = database.prepare('insert into embeddings values (?, ?)')
  for (const { id, vector } of rows) {
    const length = vectorLength(database) ?? vector.length
    if (vector.length !== length) {
      const message = `The index has vectors of ${length} numbers, and \`embed\` returned ${vector.length}. Call \`reindex\` after a change of the model.`
      throw new HarnessError('invalid_options', message)
    }
    // Another process may have been faster, or the row may be gone.
    if (Number(mark.run(id).changes) > 0)
      add.run(id, new Uint8Array(vector.buffer, vector.byteOffset, vector.byteLength))
  }
}

/** The rows whose vectors are compared. */
export interface Nearest {
  readonly range: IdRange
  /** A condition for the rows `e`, and its values. */
  readonly condition: string
  readonly values: readonly Value[]
  readonly limit: number
}

/** The ids of the rows with the nearest vectors, the nearest first, by `sqlite-vec`. */
export function nearestBySqliteVec(
  database: Database,
  vector: Float32Array,
  { range, condition, values, limit }: Nearest,
): readonly number[] {
  if (vectorLength(database) !== vector.length) return []
  const sql = `
    select x.id as id from embeddings x join entries e on e.id = x.id
    where x.id between cast(? as integer) and cast(? as integer) ${condition}
    order by vec_distance_cosine(x.vector, ?) limit ?`
  const bytes = new Uint8Array(vector.buffer, vector.byteOffset, vector.byteLength)
  return (database.prepare(sql).all(range.from, range.to, ...values, bytes, limit) as { id: number }[]).map(
    ({ id }) => id,
  )
}

/** The same without an extension. */
export function nearestHere(
  database: Database,
  vector: Float32Array,
  { range, condition, values, limit }: Nearest,
): readonly number[] {
  if (vectorLength(database) !== vector.length) return []
  const page = database.prepare(`
    select x.id as id, x.vector as bytes from embeddings x join entries e on e.id = x.id
    where x.id > cast(? as integer) and x.id <= cast(? as integer) ${condition} order by x.id limit ${TOGETHER}`)
  const scores: { readonly id: number; readonly score: number }[] = []
  let from = range.from - 1
  for (;;) {
    const rows = page.all(from, range.to, ...values) as { readonly id: number; readonly bytes: Uint8Array }[]
    for (const { id, bytes } of rows) scores.push({ id, score: cosineSimilarity(vector, readVector(bytes)) })
    const last = rows.at(-1)
    if (last === undefined) break
    from = last.id
  }
  return scores
    .sort((left, right) => right.score - left.score)
    .slice(0, limit)
    .map(({ id }) => id)
}

function readVector(bytes: Uint8Array): Float32Array {
  return new Float32Array(bytes.slice().buffer)
}

function cosineSimilarity(left: Float32Array, right: Float32Array): number {
  let [dot, ofLeft, ofRight] = [0, 0, 0]
  for (let place = 0; place < left.length; place++) {
    const [a = 0, b = 0] = [left[place], right[place]]
    dot += a * b
    ofLeft += a * a
    ofRight += b * b
  }
  return dot / (Math.sqrt(ofLeft * ofRight) || 1)
}

/** How many numbers a vector of the index has; null: it has no vectors. */
function vectorLength(database: Database): number | null {
  const row = database.prepare('select length(vector) as bytes from embeddings limit 1').get()
  return row === undefined ? null : (row as { readonly bytes: number }).bytes / Float32Array.BYTES_PER_ELEMENT
}
