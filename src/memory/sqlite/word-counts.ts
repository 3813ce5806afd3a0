import type { Database } from '../../util/platform/sqlite.js'
import { chosenWords, GROWTH, RARE } from '../chosen-words.js'

/** FTS5 counts the rows of every word of a search in the whole index, also if only those of one owner are searched. */
const MOST_COUNTED = 400_000
const TOTAL = ''

interface Counting {
  /** How many rows the search may find. */
  readonly rows: number
  readonly counts: Map<string, number>
}

/** The words that a search looks for, by their counts in the whole index. */
export function wordsToFind(
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
  const counted = new Map(words.map((word) => [word, countOf(database, word, counts)]))
  const bounds = { share: Math.min(1, rows / all), mostCounted: MOST_COUNTED }
  return chosenWords(counted, all, bounds).map(({ word }) => word)
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
  if (count > RARE) counts.set(word, count)
  return count
}
