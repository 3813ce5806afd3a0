import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { defineTool, ToolResult } from 'thinharness'
import type { ToolSpec } from 'thinharness'
import { z } from 'zod'
import { found, PAGES } from './library.js'

/** One row of results.jsonl. */
interface Found {
  readonly id: string
  readonly query: string
  readonly url: string
  readonly title: string
}

/** Long results go to files, which the file tools can read in pieces. The model gets a summary and the paths. */
export const search = defineTool({
  name: 'search_library',
  description: 'Search the library for several queries at once. Results go to research/results.jsonl.',
  parameters: z.object({
    queries: z.array(z.string().min(3)).min(1).max(8),
    per_query: z.number().int().min(1).max(20).default(5),
  }),
  handler: async ({ queries, per_query: most }, { root }) => {
    const rows = queries.flatMap((query) => found(query, most).map((page) => ({ query, ...page })))
    const results: readonly Found[] = rows.map((row, index) => ({ id: `r${index + 1}`, ...row }))
    const counts = queries.map((query) => ({ query, results: rows.filter((row) => row.query === query).length }))
    await write(root, 'results.jsonl', results.map((row) => `${JSON.stringify(row)}\n`).join(''))
    await write(root, 'manifest.json', JSON.stringify({ total: results.length, queries: counts }, null, 2))
    return new ToolResult({
      content: `${results.length} results for ${queries.length} queries, in research/results.jsonl.`,
      metadata: { total: results.length, manifest: 'research/manifest.json' },
    })
  },
})

/** A missing page does not fail the call: each address has its own status. */
export const fetchPages = defineTool({
  name: 'fetch_pages',
  description: 'Fetch pages by the ids of results. Texts go to research/pages.jsonl.',
  parameters: z.object({
    pages: z
      .array(z.object({ id: z.string(), url: z.url() }))
      .min(1)
      .max(20),
  }),
  handler: async ({ pages }, { root }) => {
    const rows = pages.map(({ id, url }) => {
      const page = PAGES.find((each) => each.url === url)
      return page === undefined ? { id, url, status: 404, text: '' } : { id, url, status: 200, text: page.text }
    })
    await write(root, 'pages.jsonl', rows.map((row) => `${JSON.stringify(row)}\n`).join(''))
    const failed = rows.filter(({ status }) => status !== 200).map(({ url }) => url)
    return new ToolResult({
      content: { fetched: rows.map(({ id, url, status }) => ({ id, url, status })), failed_urls: failed },
      metadata: { fetched: rows.length - failed.length, failed: failed.length },
    })
  },
})

/** One prompt per page with the question and the whole record, so that it can be answered independently. */
export const buildPrompts = defineTool({
  name: 'build_prompts',
  description: 'Create one prompt per page of research/pages.jsonl in research/prompts.json, for parallel_llm.',
  parameters: z.object({ question: z.string().min(3) }),
  handler: async ({ question }, { root }) => {
    const lines = (await readFile(join(root, 'research/pages.jsonl'), 'utf8')).split('\n').filter(Boolean)
    const pages = lines.filter((line) => (JSON.parse(line) as { status: number }).status === 200)
    const prompts = pages.map((page) => `Question: ${question}\n\nWhat does this page say to it?\n\n${page}`)
    await write(root, 'prompts.json', JSON.stringify(prompts, null, 2))
    return `${prompts.length} prompts are in research/prompts.json.`
  },
})

export const researchTools: readonly ToolSpec[] = [search, fetchPages, buildPrompts]

async function write(root: string, name: string, text: string): Promise<void> {
  await mkdir(join(root, 'research'), { recursive: true })
  await writeFile(join(root, 'research', name), text)
}
