import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, expect, test } from 'vitest'
import { callTool } from 'thinharness'
import type { JsonObject, ToolSpec } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { audit } from '../examples/research/audit.js'
import { researchHarness } from '../examples/research/harness.js'
import { GONE, PAGES } from '../examples/research/library.js'
import { buildPrompts, fetchPages, search } from '../examples/research/tools.js'
import { temporaryFolder } from '../tests/support/folder.js'

let root: string

beforeEach(() => void (root = temporaryFolder()))

const file = (name: string): Promise<string> => readFile(join(root, name), 'utf8')
const rows = async (name: string): Promise<unknown[]> =>
  (await file(name))
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as unknown)

interface Envelope {
  readonly ok: boolean
  readonly content: string
  readonly metadata: JsonObject
}

async function called(tool: ToolSpec, args: JsonObject): Promise<Envelope> {
  return callTool(tool, args, { root })
}

const [oolong, tins] = PAGES.map(({ url }) => url)

test.each<[string, ToolSpec, JsonObject]>([
  ['no query', search, { queries: [] }],
  ['nine queries', search, { queries: Array.from({ length: 9 }, () => 'oolong') }],
  ['a query that is too short', search, { queries: ['ab'] }],
  ['no results wanted', search, { queries: ['oolong'], per_query: 0 }],
  ['too many results wanted', search, { queries: ['oolong'], per_query: 21 }],
  ['half a result', search, { queries: ['oolong'], per_query: 1.5 }],
  ['no pages', fetchPages, { pages: [] }],
  ['21 pages', fetchPages, { pages: Array.from({ length: 21 }, (_, n) => ({ id: `r${n}`, url: 'https://a.test/' })) }],
  ['an address that is none', fetchPages, { pages: [{ id: 'r1', url: 'nowhere' }] }],
  ['no question', buildPrompts, { question: '' }],
])('EX-01 invalid arguments are rejected, and the model can correct them: %s', async (_name, tool, args) => {
  expect(await called(tool, args)).toMatchObject({
    ok: false,
    metadata: { error_type: 'ValidationError', retry: true },
  })
})

test('EX-02 a search writes a manifest and rows with their own ids, and returns a summary', async () => {
  const { content, metadata } = await called(search, { queries: ['oolong storage', 'rubber seals'], per_query: 2 })

  expect(content).toBe('3 results for 2 queries, in research/results.jsonl.')
  expect(metadata).toEqual({ total: 3, manifest: 'research/manifest.json' })
  expect(JSON.parse(await file('research/manifest.json'))).toEqual({
    total: 3,
    queries: [
      { query: 'oolong storage', results: 2 },
      { query: 'rubber seals', results: 1 },
    ],
  })
  expect(await rows('research/results.jsonl')).toMatchObject([
    { id: 'r1', query: 'oolong storage', url: oolong },
    { id: 'r2', query: 'oolong storage' },
    { id: 'r3', query: 'rubber seals', url: tins },
  ])
})

test('EX-03 pages keep the ids of the caller, each address has its status, and failures are reported', async () => {
  const { ok, content, metadata } = await called(fetchPages, {
    pages: [
      { id: 'mine', url: oolong ?? '' },
      { id: 'lost', url: GONE },
    ],
  })

  expect([ok, metadata]).toEqual([true, { fetched: 1, failed: 1 }])
  expect(JSON.parse(content)).toEqual({
    fetched: [
      { id: 'mine', url: oolong, status: 200 },
      { id: 'lost', url: GONE, status: 404 },
    ],
    failed_urls: [GONE],
  })
  expect(await rows('research/pages.jsonl')).toEqual([
    { id: 'mine', url: oolong, status: 200, text: PAGES[0]?.text },
    { id: 'lost', url: GONE, status: 404, text: '' },
  ])
})

test('EX-04 the prompts are a JSON array of strings, each with the question and its whole record', async () => {
  const pages = PAGES.map(({ url }, index) => ({ id: `r${index}`, url }))
  await called(fetchPages, { pages: [...pages, { id: 'lost', url: GONE }] })

  await called(buildPrompts, { question: 'How is oolong stored best?' })

  const prompts = JSON.parse(await file('research/prompts.json')) as string[]
  const records = await rows('research/pages.jsonl')
  expect(prompts).toEqual(
    records
      .slice(0, 3)
      .map(
        (record) =>
          `Question: How is oolong stored best?\n\nWhat does this page say to it?\n\n${JSON.stringify(record)}`,
      ),
  )
})

test('EX-05 EX-06 a custom `parallel_llm` works next to the file tools and `subagent`, and the audit has a row for each call', async () => {
  const model = new ScriptedModel()
    .calls('search_library', { queries: ['oolong'] })
    .calls('read', { path: 'research/manifest.json' })
    .calls('fetch_pages', { pages: [] })
    .says('Done.')
  const log = join(root, 'audit.jsonl')
  const hooks = [audit(log, ['search_library', 'fetch_pages'])]
  await using harness = researchHarness({ model, root, hooks, tracing: [] })

  await harness.run('Search.')

  const offered = model.requests[0]?.constants.tools ?? []
  expect(offered.map(({ name }) => name)).toEqual([
    ...['read', 'write', 'jsonl_search', 'subagent'],
    ...['search_library', 'fetch_pages', 'build_prompts', 'parallel_llm'],
  ])
  expect(await rows('audit.jsonl')).toMatchObject([
    { callId: 'call_1', toolName: 'search_library', ok: true, metadata: { total: 1 } },
    { callId: 'call_3', toolName: 'fetch_pages', ok: false, metadata: { error_type: 'ValidationError' } },
  ])
})
