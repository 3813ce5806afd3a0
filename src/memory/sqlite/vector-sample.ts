import type { Database } from '../../util/platform/sqlite.js'

/** Rows of a sample, about. */
const ROWS = 2048
/** A distance is taken within which so many times as many rows are expected as are wanted, and so many rows of the sample at least. */
const MARGIN = 4
const FEWEST = 8
/** A sample is used until the index has grown by this factor. */
const GROWTH = 1.5

/** Quantized vectors of some rows: they tell how far the nearest of all rows may be. */
export class VectorSample {
  #bits: readonly Uint8Array[] = []
  #rows = 0

  /** A distance within which the nearest `rank` of about `rows` rows are, as a rule. Null: unknown. */
  distanceOf(
    database: Database,
    bits: Uint8Array,
    { rank, rows }: { readonly rank: number; readonly rows: number },
  ): number | null {
    if (rows < this.#rows || rows > this.#rows * GROWTH || this.#bits[0]?.length !== bits.length) {
      this.#bits = sampleIn(database, rows)
      this.#rows = rows
    }
    const distances = this.#bits.map((other) => distanceBetween(bits, other)).sort((left, right) => left - right)
    const place = Math.max(FEWEST, Math.ceil((MARGIN * rank * distances.length) / rows))
    return distances[place] ?? null
  }
}

/** The ids of an owner's rows are consecutive: a prime number takes the same share of each. */
function sampleIn(database: Database, rows: number): readonly Uint8Array[] {
  const step = [5, 11, 23, 47, 97, 197, 397, 797, 1597, 3203].find((prime) => rows / prime <= ROWS) ?? 6421
  const sql =
    'select vec_quantize_binary(vector) as bits from embeddings where id in (select id from entries where id % ? = 0)'
  return database
    .prepare(sql)
    .all(step)
    .map((row) => (row as { readonly bits: Uint8Array }).bits)
}

const ONES = Uint8Array.from({ length: 256 }, (_none, byte) => byte.toString(2).replaceAll('0', '').length)

function distanceBetween(left: Uint8Array, right: Uint8Array): number {
  let distance = 0
  for (let place = 0; place < left.length; place++) distance += ONES[(left[place] ?? 0) ^ (right[place] ?? 0)] ?? 0
  return distance
}
