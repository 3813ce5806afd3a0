import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import fc from 'fast-check'
import { estimateText } from '#contracts/estimate.js'
import { indexedWords, queryWords } from '#toolbox/tool-search/stems-and-synonyms.js'
import { ToolIndex } from '#toolbox/tool-search/tool-index.js'
import type { ToolSpec } from 'thinharness'
import { defineTool } from 'thinharness'
import type { EmbedTools } from 'thinharness/tools'

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

const { signal } = new AbortController()
const definitions = lines('tools.jsonl') as readonly Definition[]
const queries = lines('queries.jsonl') as readonly Asked[]
const specs = definitions.map(({ key, name, description, inputSchema }): ToolSpec => {
  return { name, description, parameters: inputSchema, metadata: { key }, call: () => Promise.reject(new Error()) }
})

function lines(name: string): readonly unknown[] {
  const text = readFileSync(new URL(`../../data/tool-search/${name}`, import.meta.url), 'utf8')
  return text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as unknown)
}

/** The share of the queries one of whose tools is among the first 1, 5 and 10, and the tokens of the first 5 definitions. */
async function recall(index: ToolIndex, asked: readonly Asked[] = queries) {
  const hits = { 1: 0, 5: 0, 10: 0 }
  let tokens = 0
  for (const { query, tools } of asked) {
    const found = (await index.search(query, specs, signal)).slice(0, 10)
    const rank = found.findIndex(({ metadata }) => tools.some((key) => key === metadata?.['key']))
    for (const k of [1, 5, 10] as const) if (rank >= 0 && rank < k) hits[k] += 1
    tokens += estimateText(
      JSON.stringify(found.slice(0, 5).map(({ name, description, parameters }) => [name, description, parameters])),
    )
  }
  const share = (count: number): number => Number((count / asked.length).toFixed(2))
  return { at1: share(hits[1]), at5: share(hits[5]), at10: share(hits[10]), tokens: Math.round(tokens / asked.length) }
}

describe('on 264 tools of real servers and 101 queries', () => {
  test('words alone find the right tool among the first five in at least 62 of 100', async () => {
    const found = await recall(new ToolIndex())
    process.stdout.write(`tool search by words: ${JSON.stringify(found)}, all definitions: ${allTokens()} tokens\n`)
    expect(found.at5).toBeGreaterThanOrEqual(0.62)
    expect(found.at10).toBeGreaterThanOrEqual(found.at5)
    expect(found.tokens).toBeLessThan(allTokens() / 20)
  })

  test('an embedder that knows what is meant raises the share', async () => {
    const words = await recall(new ToolIndex())
    const knowing = await recall(new ToolIndex(embedderOf((text) => meaningOf(text))))
    process.stdout.write(`tool search by words and meaning (a perfect embedder): ${JSON.stringify(knowing)}\n`)
    expect(knowing.at5).toBeGreaterThan(words.at5)
  })
})

function allTokens(): number {
  return estimateText(
    JSON.stringify(definitions.map(({ name, description, inputSchema }) => [name, description, inputSchema])),
  )
}

/** An embedder whose vectors point to a number of the text. */
function embedderOf(meaning: (text: string) => number): EmbedTools {
  return (texts) =>
    Promise.resolve(
      texts.map((text) => Array.from({ length: queries.length + 1 }, (_, at) => (at === meaning(text) ? 1 : 0.01))),
    )
}

/** The number of the query that a text is, or that its tool is right for. */
function meaningOf(text: string): number {
  const name = text.split('\n', 1)[0] ?? ''
  const place = queries.findIndex(({ query, tools }) => query === text || tools[0]?.endsWith(`/${name}`))
  return place + 1
}

test.each<[string, string, boolean]>([
  ['create issues', 'createIssue', true],
  ['listing branches', 'list_branches', true],
  ['HTTP servers', 'httpServer', true],
  ['policies', 'policy', true],
  ['searches', 'search', true],
  ['merged', 'merge', true],
  ['stopping', 'stop', true],
  ['status', 'stat', false],
])('`%s` and `%s` have the same words: %s', (one, other, are) => {
  const [words, others] = [indexedWords(one), indexedWords(other)]
  if (are) expect(words).toEqual(others)
  else expect(words).not.toEqual(others)
})

test('a query has words of the same meaning too, which count less than its own', () => {
  const words = queryWords('remove the PR')
  const weight = (word: string): number => words.get(indexedWords(word)[0] ?? '') ?? 0
  expect(weight('remove')).toBe(1)
  expect(weight('delete')).toBeGreaterThan(0)
  expect(weight('delete')).toBeLessThan(1)
  expect(weight('request')).toBeGreaterThan(0)
  expect(weight('create')).toBe(0)
  expect([...words.keys()]).not.toContain('the')
})

test('a tool is found by its name, its title, its description, and names, descriptions and values of parameters at any depth', async () => {
  const made = (name: string, beside: Partial<ToolSpec> = {}): ToolSpec => ({
    ...defineTool({ name, description: 'Something else.', parameters: { type: 'object' }, handler: () => '' }),
    ...beside,
  })
  const inner = (properties: object): ToolSpec['parameters'] => ({
    type: 'object',
    properties: { list: { type: 'array', items: { type: 'object', properties } } } as ToolSpec['parameters'],
  })
  const tools = [
    made('zebraStripes'),
    made('a', { metadata: { title: 'Yellow Submarine' } }),
    made('b', { description: 'Paints walruses.' }),
    made('c', { parameters: inner({ octopus_id: {} }) }),
    made('d', { parameters: inner({ id: { description: 'Of the garden.' } }) }),
    made('e', { parameters: inner({ id: { enum: ['kaleidoscope'] } }) }),
  ]
  const index = new ToolIndex()
  const found: string[] = []
  for (const query of ['zebra', 'submarines', 'walrus', 'octopus', 'gardens', 'kaleidoscope'])
    found.push((await index.search(query, tools, signal)).map(({ name }) => name).join(' '))
  expect(found).toEqual(['zebraStripes', 'a', 'b', 'c', 'd', 'e'])
  expect(await index.search('xylophones', tools, signal)).toEqual([])
})

test('any query gives tools of the list, each once, and the same ones whenever it is asked', async () => {
  const index = new ToolIndex()
  const some = specs.slice(0, 40)
  await fc.assert(
    fc.asyncProperty(
      fc.oneof(fc.string({ unit: 'grapheme' }), fc.constantFrom(...queries.map(({ query }) => query))),
      async (query) => {
        const found = await index.search(query, some, signal)
        expect(new Set(found).size).toBe(found.length)
        expect(found.every((tool) => some.includes(tool))).toBe(true)
        expect(await new ToolIndex().search(query, some, signal)).toEqual(found)
      },
    ),
    { numRuns: 60 },
  )
})

test('an embedder is asked for each tool once, in pieces', async () => {
  const asked: number[] = []
  const index = new ToolIndex((texts) => (asked.push(texts.length), Promise.resolve(texts.map(() => [1, 2]))))
  await index.search('one', specs.slice(0, 100), signal)
  await index.search('two', specs.slice(50, 101), signal)
  expect(asked).toEqual([64, 37, 2])
})

test.each<[string, EmbedTools, string]>([
  ['fails', () => Promise.reject(new Error('no quota')), '`embed` of the tool search failed: no quota'],
  ['gives too few', () => Promise.resolve([]), 'Expected `embed` of the tool search to return 3 vectors, got 0.'],
  [
    'gives vectors of two lengths',
    (texts) => Promise.resolve(texts.map((_, place) => (place === 0 ? [1, 1] : [1]))),
    'Expected `embed` of the tool search to return vectors of 2 numbers, got one of 1.',
  ],
  [
    'gives something that is no number',
    (texts) => Promise.resolve(texts.map(() => [NaN])),
    'Expected `embed` of the tool search to return vectors of 1 numbers, got one of 1.',
  ],
])('an embedder that %s is an error that says so', async (_name, embed, message) => {
  await expect(new ToolIndex(embed).search('x', specs.slice(0, 2), signal)).rejects.toThrow(message)
})
