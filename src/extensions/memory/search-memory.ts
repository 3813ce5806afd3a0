import type { Embedder } from './embedder.js'
import type { FoundRow, MemoryIndex, Scope } from './memory-index.js'
import { searchWords } from './search-words.js'
import type { Synchroniser } from './synchroniser.js'
import { HarnessError } from '#contracts/errors.js'

interface SearchPorts {
  readonly index: MemoryIndex
  /** Null: full text only. */
  readonly embedder: Embedder | null
}

/** A text of the memory, for a host. */
export type MemoryFound = Omit<FoundRow, 'id' | 'part' | 'resourceId'>

/** The texts of an owner that fit a query best; null: those without an owner. */
export async function searchMemory(
  { reading, ...ports }: SearchPorts & { readonly reading: Synchroniser },
  query: string,
  { resourceId, k = 8 }: MemorySearch,
): Promise<readonly MemoryFound[]> {
  const within = { resourceId, threadId: null }
  await reading.sync(within)
  const search = { query, within, limit: k }
  const { rows } = await searchIndex(ports, search, new AbortController().signal)
  return rows.map(({ handle, kind, threadId, at, text, sources }) => ({ handle, kind, threadId, at, text, sources }))
}

export interface MemorySearch {
  /** The owner whose conversations are searched; null: those without one. */
  readonly resourceId: string | null
  /** The most texts. Default 8. */
  readonly k?: number | undefined
}

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
  { index, embedder }: SearchPorts,
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
