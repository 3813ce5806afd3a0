import type { ToolSpec } from '#core/tools/tool-spec.js'
import { textOfTool } from './tool-text.js'
import { fused, nearest, vectorsOf } from './vectors.js'
import type { EmbedTools } from './vectors.js'
import { WordIndex, wordsOfTool } from './word-index.js'
import type { ToolWords } from './word-index.js'

/** Deferred tools that can be searched. What is known of a tool is kept for all runs that have it. */
export class ToolIndex {
  readonly #embed: EmbedTools | undefined
  readonly #words = new WeakMap<ToolSpec, ToolWords>()
  readonly #vectors = new WeakMap<ToolSpec, Float32Array>()
  #tools: readonly ToolSpec[] = []
  #index = new WordIndex([])

  /** `embed` joins the ranking by meaning to that by words. */
  constructor(embed?: EmbedTools) {
    this.#embed = embed
  }

  /** The tools that fit a query, the best first; with an embedder all, else those that share a word with it. */
  async search(query: string, tools: readonly ToolSpec[], signal: AbortSignal): Promise<readonly ToolSpec[]> {
    const byWords = this.#indexOf(tools).ranked(query)
    const places = this.#embed === undefined ? byWords : fused([byWords, await this.#byMeaning(query, tools, signal)])
    return places.flatMap((place) => tools[place] ?? [])
  }

  #indexOf(tools: readonly ToolSpec[]): WordIndex {
    const isSame = tools.length === this.#tools.length && tools.every((tool, place) => tool === this.#tools[place])
    if (isSame) return this.#index
    this.#tools = tools
    this.#index = new WordIndex(tools.map((tool) => this.#wordsOf(tool)))
    return this.#index
  }

  #wordsOf(tool: ToolSpec): ToolWords {
    const words = this.#words.get(tool) ?? wordsOfTool(textOfTool(tool))
    this.#words.set(tool, words)
    return words
  }

  async #byMeaning(query: string, tools: readonly ToolSpec[], signal: AbortSignal): Promise<readonly number[]> {
    const embed = this.#embed
    if (embed === undefined) return []
    const missing = tools.filter((tool) => !this.#vectors.has(tool))
    const texts = missing.map((tool) => embeddedText(tool))
    const [asked, ...made] = await vectorsOf([query, ...texts], embed, signal)
    missing.forEach((tool, place) => this.#keep(tool, made[place]))
    if (asked === undefined) return []
    return nearest(
      asked,
      tools.map((tool) => this.#vectors.get(tool) ?? new Float32Array()),
    )
  }

  #keep(tool: ToolSpec, vector: Float32Array | undefined): void {
    if (vector !== undefined) this.#vectors.set(tool, vector)
  }
}

/** Longest text of a tool that is embedded, in characters: models of embeddings have short windows. */
const LONGEST = 2_000

function embeddedText(tool: ToolSpec): string {
  const { name, description, parameters } = textOfTool(tool)
  return `${name}\n${description}\n${parameters}`.slice(0, LONGEST)
}
