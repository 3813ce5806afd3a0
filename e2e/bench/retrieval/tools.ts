// `npm run bench:tools-found -- [folder of tool-search]`: how often the right one of 264 tools is found, by words, by the vectors of a real
// embedder, by both as `toolSearch({ embed })` joins them, and by what Anthropic says of its own search, which can be called with a key
// only: BM25 over names, descriptions, and names and descriptions of arguments (platform.claude.com, Tool search tool). `--vectors <folder>` for the packages and the vectors.
import { readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type { ToolSpec } from '#core/tools/tool-spec.js'
import { ToolIndex } from '#toolbox/tool-search/tool-index.js'
import { nearest } from '#toolbox/tool-search/vectors.js'
import { textOfTool } from '#toolbox/tool-search/tool-text.js'
import { Bm25 } from './bm25.js'
import { embedderIn } from './embedder.js'

interface Definition {
  readonly key: string
  readonly name: string
  readonly description: string
  readonly inputSchema: ToolSpec['parameters']
}
interface Asked {
  readonly query: string
  readonly tools: readonly string[]
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { vectors: { type: 'string', default: join(tmpdir(), 'thinharness-vectors') } },
})
const folder = positionals[0] ?? 'tests/data/tool-search'
const queries = read('queries.jsonl') as readonly Asked[]
const tools = (read('tools.jsonl') as readonly Definition[]).map(
  ({ key, name, description, inputSchema }): ToolSpec => {
    return { name, description, parameters: inputSchema, metadata: { key }, call: () => Promise.reject(new Error()) }
  },
)
const asDocumented = new Bm25(
  tools.map((tool, place) => {
    const { name, description, parameters, details } = textOfTool(tool)
    return { id: String(place), text: `${name}\n${description}\n${parameters}\n${details}` }
  }),
)
const vectors = await embedderIn(values.vectors)
const embed = async (texts: readonly string[]) => (await vectors(texts)).map((vector) => Array.from(vector))
const { signal } = new AbortController()
const ofTools = await vectors(tools.map(({ name, description }) => `${name}\n${description}`))
const byBoth = new ToolIndex(embed)
const byWords = new ToolIndex()

await print('hosted, as documented', async (query) =>
  asDocumented.search(query, tools.length).flatMap((place) => tools[Number(place)] ?? []),
)
await print('words', (query) => byWords.search(query, tools, signal))
await print('vectors', byMeaning)
await print('both', (query) => byBoth.search(query, tools, signal))

function read(name: string): readonly unknown[] {
  const lines = readFileSync(join(folder, name), 'utf8').trim().split('\n')
  return lines.map((line) => JSON.parse(line) as unknown)
}

async function byMeaning(query: string): Promise<readonly ToolSpec[]> {
  const [asked] = await vectors([query])
  return nearest(asked ?? new Float32Array(), ofTools).flatMap((place) => tools[place] ?? [])
}

/** The share of the queries one of whose tools is among the first 1, 5 and 10. */
async function print(title: string, find: (query: string) => Promise<readonly ToolSpec[]>): Promise<void> {
  const ranks: number[] = []
  for (const { query, tools: right } of queries) {
    const found = await find(query)
    const rank = found.findIndex(({ metadata }) => right.some((key) => key === metadata?.['key']))
    ranks.push(rank < 0 ? Infinity : rank)
  }
  const at = (k: number): string => (ranks.filter((rank) => rank < k).length / ranks.length).toFixed(2)
  console.log(`${title.padEnd(21)} first ${at(1)}, among 5 ${at(5)}, among 10 ${at(10)}`)
}
