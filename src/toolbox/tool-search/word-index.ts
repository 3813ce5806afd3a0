import { indexedWords, queryWords } from './stems-and-synonyms.js'
import type { ToolText } from './tool-text.js'

/** How much a word of a text counts, and how far the length of the text takes from that (0: not at all, 1: in full). */
const FIELDS = {
  name: { weight: 3, length: 0.3 },
  description: { weight: 1, length: 0.6 },
  parameters: { weight: 0.3, length: 0.6 },
  details: { weight: 0.2, length: 0.7 },
} as const satisfies Readonly<Record<keyof ToolText, { readonly weight: number; readonly length: number }>>

type Field = keyof typeof FIELDS
const NAMES = Object.keys(FIELDS) as readonly Field[]

/** From which number on it hardly matters how often a tool has a word: `k1` of BM25. */
const SATURATION = 1.6

/** The words of the texts of one tool. */
export type ToolWords = Readonly<Record<Field, readonly string[]>>

/** The words of a tool's texts, as the index counts them. */
export function wordsOfTool(text: ToolText): ToolWords {
  const words = (field: Field): readonly string[] => indexedWords(text[field])
  return {
    name: words('name'),
    description: words('description'),
    parameters: words('parameters'),
    details: words('details'),
  }
}

/**
 * Ranks tools by the words that they share with a query: BM25 over several texts (BM25F), where a word of a name counts more than one
 * of a description.
 */
export class WordIndex {
  readonly #counts: readonly ReadonlyMap<string, number>[]
  /** How many tools have a word. */
  readonly #spread = new Map<string, number>()

  constructor(tools: readonly ToolWords[]) {
    const lengths = Object.fromEntries(NAMES.map((field) => [field, averageLength(tools, field)])) as Record<
      Field,
      number
    >
    this.#counts = tools.map((words) => countsOf(words, lengths))
    for (const counts of this.#counts)
      for (const word of counts.keys()) this.#spread.set(word, (this.#spread.get(word) ?? 0) + 1)
  }

  /** The places of the tools that share a word with the query, the best first. */
  ranked(query: string): readonly number[] {
    const words = [...queryWords(query)].map(([word, weight]) => ({ word, weight: weight * this.#rarity(word) }))
    return this.#counts
      .map((counts, place) => ({ place, score: scoreOf(counts, words) }))
      .filter(({ score }) => score > 0)
      .sort((one, other) => other.score - one.score || one.place - other.place)
      .map(({ place }) => place)
  }

  #rarity(word: string): number {
    const having = this.#spread.get(word) ?? 0
    return Math.log(1 + (this.#counts.length - having + 0.5) / (having + 0.5))
  }
}

function averageLength(tools: readonly ToolWords[], field: Field): number {
  return tools.reduce((sum, words) => sum + words[field].length, 0) / Math.max(1, tools.length)
}

function countsOf(words: ToolWords, lengths: Readonly<Record<Field, number>>): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const field of NAMES) {
    const { weight, length } = FIELDS[field]
    const share = weight / (1 - length + length * (words[field].length / Math.max(1, lengths[field])))
    for (const word of words[field]) counts.set(word, (counts.get(word) ?? 0) + share)
  }
  return counts
}

function scoreOf(
  counts: ReadonlyMap<string, number>,
  words: readonly { readonly word: string; readonly weight: number }[],
): number {
  let score = 0
  for (const { word, weight } of words) {
    const count = counts.get(word) ?? 0
    score += (weight * count * (SATURATION + 1)) / (count + SATURATION)
  }
  return score
}
