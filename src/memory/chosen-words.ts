/** Rows that a search scores at most, as far as the counts tell: among a million rows, 95 of 100 searches take less than 22 ms of CPU time in SQLite. */
const MOST_ROWS = 20_000
/** A count is remembered until the index has grown by this factor. */
export const GROWTH = 1.2
/** A rare word is counted quickly, and its count changes quickly. */
export const RARE = 1000
const MOST_REMEMBERED = 10_000

/** A word of a search, and how much it says about a row that has it. */
export interface WeightedWord {
  readonly word: string
  readonly weight: number
}

interface WordBounds {
  /** The share of the counted rows that a search scores. Default 1. */
  readonly share?: number
  /** Rows that may be counted, whether they are scored or not. Default: any number. */
  readonly mostCounted?: number
}

/**
 * The rarest words of a search, at least one, and as many as can be looked for in time: the others say little about a row. Words
 * that no row has are left out. `counts`: the rows of each word among `rows`.
 */
export function chosenWords(
  counts: ReadonlyMap<string, number>,
  rows: number,
  { share = 1, mostCounted = Infinity }: WordBounds = {},
): readonly WeightedWord[] {
  const rarest = [...counts].filter(([, count]) => count > 0).sort(([, left], [, right]) => left - right)
  const chosen: WeightedWord[] = []
  let scored = 0
  for (const [word, count] of rarest) {
    scored += count
    if (chosen.length > 0 && (scored > mostCounted || scored * share > MOST_ROWS)) break
    chosen.push({ word, weight: Math.log(1 + (Math.max(rows, count) - count + 0.5) / (count + 0.5)) })
  }
  return chosen
}

interface Among {
  /** Names the rows. */
  readonly name: string
  readonly rows: number
}

/** Counts of frequent words, which take long to count. */
export class WordCounts {
  readonly #known = new Map<string, { readonly count: number; readonly rows: number }>()

  /** Counts words, by `count` if they are not known. */
  async of(
    words: readonly string[],
    { name, rows }: Among,
    count: (words: readonly string[]) => Promise<ReadonlyMap<string, number>>,
  ): Promise<ReadonlyMap<string, number>> {
    const isCurrent = (known: number): boolean => known <= rows && rows <= known * GROWTH
    const known = new Map<string, number>()
    for (const word of words) {
      const found = this.#known.get(`${name}:${word}`)
      if (found !== undefined && isCurrent(found.rows)) known.set(word, found.count)
    }
    const unknown = words.filter((word) => !known.has(word))
    if (unknown.length === 0) return known
    if (this.#known.size > MOST_REMEMBERED) this.#known.clear()
    for (const [word, found] of await count(unknown)) {
      known.set(word, found)
      if (found > RARE) this.#known.set(`${name}:${word}`, { count: found, rows })
    }
    return known
  }

  clear(): void {
    this.#known.clear()
  }
}
