import type { Database } from '../../util/platform/sqlite.js'

/**
 * Rows that a search scores at most, as far as the counts tell. With both bounds, 95 of 100 searches among a million rows take less
 * than 22 ms of CPU time (`npm run bench:memory`).
 */
const MOST_ROWS = 20_000
/** FTS5 counts the rows of every word of a search in the whole index, also if only those of one owner are searched. */
const MOST_COUNTED = 400_000
/** A count is remembered until the index has grown by this factor. */
const GROWTH = 1.2
const TOTAL = ''

interface Counting {
  /** How many rows the search may find. */
  readonly rows: number
  readonly counts: Map<string, number>
}

/**
 * The rarest words of a search, at least one, and as many as can be looked for in time: the others say little about a row. Words
 * that no row has are left out.
 */
export function chosenWords(
  database: Database,
  words: readonly string[],
  { rows, counts }: Counting,
): readonly string[] {
  const all = totalRows(database)
  const known = counts.get(TOTAL) ?? 0
  if (known * GROWTH < all || known > all) {
    counts.clear()
    counts.set(TOTAL, all)
  }
  const share = Math.min(1, rows / all)
  const rarest = words
    .map((word) => ({ word, count: countOf(database, word, counts) }))
    .filter(({ count }) => count > 0)
    .sort((left, right) => left.count - right.count)
  const chosen: string[] = []
  let counted = 0
  for (const { word, count } of rarest) {
    counted += count
    if (chosen.length > 0 && (counted > MOST_COUNTED || counted * share > MOST_ROWS)) break
    chosen.push(word)
  }
  return chosen
}

/** The number of rows that the index has had. */
export function totalRows(database: Database): number {
  const row = database.prepare('select coalesce(sum(next - 1), 0) as total from owners').get()
  return (row as { readonly total: number }).total
}

function countOf(database: Database, word: string, counts: Map<string, number>): number {
  const known = counts.get(word)
  if (known !== undefined) return known
  const row = database.prepare('select count(*) as count from words where words match ?').get(`"${word}"`)
  const { count } = row as { readonly count: number }
  // A rare word is counted quickly, and its count changes quickly.
  if (count > 1000) counts.set(word, count)
  return count
}
