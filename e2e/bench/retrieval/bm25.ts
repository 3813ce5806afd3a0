/** Plain BM25 (k1 1.2, b 0.75) over words in lower case: no stems, no other change. */
export class Bm25 {
  readonly #texts: { readonly id: string; readonly counts: ReadonlyMap<string, number>; readonly length: number }[] = []
  readonly #found = new Map<string, number>()
  readonly #meanLength: number

  constructor(texts: readonly { readonly id: string; readonly text: string }[]) {
    for (const { id, text } of texts) {
      const words = wordsIn(text)
      const counts = new Map<string, number>()
      for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1)
      for (const word of counts.keys()) this.#found.set(word, (this.#found.get(word) ?? 0) + 1)
      this.#texts.push({ id, counts, length: words.length })
    }
    this.#meanLength = this.#texts.reduce((sum, { length }) => sum + length, 0) / texts.length
  }

  /** The ids of the best texts. */
  search(query: string, limit: number): readonly string[] {
    const words = [...new Set(wordsIn(query))]
    return this.#texts
      .map(({ id, counts, length }) => {
        const dampening = 1.2 * (0.25 + (0.75 * length) / this.#meanLength)
        const score = words.reduce((sum, word) => {
          const count = counts.get(word) ?? 0
          return sum + (this.#weightOf(word) * count * 2.2) / (count + dampening)
        }, 0)
        return { id, score }
      })
      .filter(({ score }) => score > 0)
      .sort((left, right) => right.score - left.score)
      .slice(0, limit)
      .map(({ id }) => id)
  }

  #weightOf(word: string): number {
    const found = this.#found.get(word) ?? 0
    return Math.log(1 + (this.#texts.length - found + 0.5) / (found + 0.5))
  }
}

function wordsIn(text: string): readonly string[] {
  return text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []
}
