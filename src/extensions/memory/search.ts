import { HarnessError } from '#contracts/errors.js'
import type { Embedder } from './embedder.js'
import type { FoundRow, MemoryIndex, Scope } from './index-port.js'
import { searchWords } from './words.js'

/** Rows of each list, if two are fused. */
export const FUSED = 50
/**
 * Dampens the first places of a list when lists are fused. The usual 60 is for lists of a thousand: in short ones it makes rows that are
 * somewhere in both better than the best of one (`npm run bench:retrieval`).
 */
const DAMPING = 5

interface Search {
  readonly query: string
  readonly within: Scope
  readonly limit: number
}

interface Found {
  readonly rows: readonly FoundRow[]
  /** `embed` failed: full text found the rows alone. */
  readonly fullTextOnly: boolean
}

/** The best rows for a query: by its words and, with an embedder, by its meaning. */
export async function searchIndex(
  { index, embedder }: { readonly index: MemoryIndex; readonly embedder: Embedder | null },
  { query, within, limit }: Search,
  signal: AbortSignal,
): Promise<Found> {
  const byWords = await index.search(searchWords(query), within, embedder === null ? limit : FUSED)
  if (embedder === null) return { rows: byWords, fullTextOnly: false }
  const byVectors = await nearestRows({ index, embedder }, { query, within }, signal)
  return { rows: fuseRanks([byWords, byVectors ?? []], limit), fullTextOnly: byVectors === null }
}

/** Rows by their vectors; null if `embed` fails: full text finds the rest. */
async function nearestRows(
  { index, embedder }: { readonly index: MemoryIndex; readonly embedder: Embedder },
  { query, within }: Pick<Search, 'query' | 'within'>,
  signal: AbortSignal,
): Promise<readonly FoundRow[] | null> {
  try {
    await embedder.complete(within, signal)
    const [vector] = await embedder.vectors([query], signal)
    return vector === undefined ? [] : await index.near(vector, within, FUSED)
  } catch (error) {
    signal.throwIfAborted()
    if (error instanceof HarnessError && error.code === 'store_failure') return null
    throw error
  }
}

/** One list of several, by the places that a row has in them (reciprocal rank fusion). */
export function fuseRanks(lists: readonly (readonly FoundRow[])[], limit: number): readonly FoundRow[] {
  const scores = new Map<number, { readonly row: FoundRow; score: number }>()
  for (const list of lists) {
    for (const [place, row] of list.entries()) {
      const known = scores.get(row.id) ?? { row, score: 0 }
      known.score += 1 / (DAMPING + place + 1)
      scores.set(row.id, known)
    }
  }
  const best = [...scores.values()].sort((left, right) => right.score - left.score)
  return best.slice(0, limit).map(({ row }) => row)
}
