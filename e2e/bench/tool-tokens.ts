// The tokens of tool results as they are sent, compared with those of the bare data.
import { execFileSync } from 'node:child_process'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Tiktoken } from 'js-tiktoken/lite'
import ranks from 'js-tiktoken/ranks/o200k_base'
import { defineTool, Harness, ToolResult } from 'thinharness'
import type { ToolSpec } from 'thinharness'
import { openaiCompatible } from 'thinharness/providers'
import { bash, fileTools } from 'thinharness/tools'
import type { Section } from './document.js'

/** Tokens as sent, as a multiple of those of the bare data. */
const MOST = 1.05

interface Sample {
  readonly title: string
  readonly tool: ToolSpec
  readonly args: Readonly<Record<string, unknown>>
  readonly bare: string
  /** True if the goal applies. */
  readonly isMeasured: boolean
}

const COMPANIES = ['Borealis Freight', 'Meridian & Sons', 'Castellan Logistics', 'Ødegaard Shipping', 'Halcyon Air']

const ROWS = Array.from({ length: 50 }, (_, index) => ({
  id: 1000 + index,
  customer: COMPANIES[index % COMPANIES.length],
  status: index % 3 === 0 ? 'late' : 'delivered',
  total: Math.round(((index * 7919) % 100_000) + 37) / 100,
  paid: index % 4 !== 0,
}))

const SOURCE = Array.from({ length: 30 }, (_, index) =>
  [
    `/** Reads the order \`${index}\` of the list. */`,
    `export function order${index}(list: readonly Order[]): Order | undefined {`,
    `  const found = list.find(({ id }) => id === 'order-${index}')`,
    `  return found === undefined ? undefined : { ...found, note: "order \\"${index}\\"" }`,
    '}',
  ].join('\n'),
).join('\n\n')

function constant(name: string, result: unknown): ToolSpec {
  return defineTool({ name, description: name, parameters: { type: 'object' }, handler: () => result })
}

function packaged(name: string, root: string): ToolSpec {
  const tool = fileTools({ root }).find((each) => each.name === name)
  if (tool === undefined) throw new RangeError(`There is no file tool \`${name}\`.`)
  return tool
}

/** What a search prints that groups its matches by file. */
function grouped(files: Readonly<Record<string, string>>, word: string): string {
  const blocks = Object.entries(files).map(([path, text]) => {
    const lines = text.split('\n').flatMap((line, at) => (line.includes(word) ? [`${at + 1}:${line}`] : []))
    return [path, ...lines].join('\n')
  })
  return blocks.join('\n\n')
}

function samples(root: string, files: Readonly<Record<string, string>>): readonly Sample[] {
  const command = 'for n in $(seq 1 60); do echo "$n src/module-$n.ts compiled in ${n}0 ms"; done'
  const shown = execFileSync('bash', ['-c', command]).toString()
  const failure = 'The order 4711 has been shipped; only open orders can be cancelled.'
  const failing = new ToolResult({ ok: false, content: failure, metadata: { error_type: 'Conflict' } })
  const found = JSON.stringify({ issues: ROWS.slice(0, 10) })
  const served = new ToolResult({
    content: found,
    metadata: { source: 'mcp', mcp_server_id: 'tracker', mcp_tool_name: 'issues' },
  })
  return [
    { title: '50 database rows', tool: constant('rows', ROWS), args: {}, bare: JSON.stringify(ROWS), isMeasured: true },
    {
      title: '`read`, 179 lines of source',
      tool: packaged('read', root),
      args: { path: 'src/a.ts' },
      bare: SOURCE,
      isMeasured: true,
    },
    {
      title: '`search`, 60 matches in 2 files',
      tool: packaged('search', root),
      args: { query: 'found', max_matches_per_file: 100 },
      bare: grouped(files, 'found'),
      isMeasured: true,
    },
    { title: '`bash`, 60 lines', tool: bash({ root }), args: { command }, bare: shown, isMeasured: true },
    { title: 'a failure', tool: constant('cancel', failing), args: {}, bare: failure, isMeasured: false },
    { title: 'a result of an MCP server', tool: constant('issues', served), args: {}, bare: found, isMeasured: false },
  ]
}

/** The result of one call in the body of the next request. */
async function sentFor({ tool, args }: Sample): Promise<string> {
  const bodies: string[] = []
  const call = { id: 'call_1', type: 'function', function: { name: tool.name, arguments: JSON.stringify(args) } }
  const fetch = (_url: unknown, init?: { readonly body?: unknown }): Promise<Response> => {
    bodies.push(String(init?.body))
    const message = bodies.length === 1 ? { role: 'assistant', content: null, tool_calls: [call] } : DONE
    const finish_reason = bodies.length === 1 ? 'tool_calls' : 'stop'
    return Promise.resolve(Response.json({ id: 'a', choices: [{ index: 0, message, finish_reason }] }))
  }
  const model = openaiCompatible('bench', { apiKey: 'any', baseUrl: 'http://127.0.0.1:9', fetch })
  await using harness = new Harness({ model, builtinTools: [], tools: [tool] })
  await harness.run('Go.')
  const { messages } = JSON.parse(bodies[1] ?? '{}') as { messages: { role: string; content: string }[] }
  return messages.find(({ role }) => role === 'tool')?.content ?? ''
}

const DONE = { role: 'assistant', content: 'Done.' }

/** The tokens of results as sent and bare, by the tokenizer `o200k_base`. */
export async function tokenSection(): Promise<Section> {
  const encoder = new Tiktoken(ranks)
  const count = (text: string): number => encoder.encode(text, [], []).length
  const root = await mkdtemp(join(tmpdir(), 'thinharness-tokens-'))
  const files = { 'src/a.ts': SOURCE, 'src/b.ts': SOURCE.replaceAll('order-', 'item-') }
  try {
    await mkdir(join(root, 'src'))
    for (const [path, text] of Object.entries(files)) await writeFile(join(root, path), text)
    const lines = ['|  | bare data | as sent | ratio | goal |', '| --- | ---: | ---: | ---: | ---: |']
    const notes: string[] = []
    for (const sample of samples(root, files)) {
      const [bare, sent] = [count(sample.bare), count(await sentFor(sample))]
      const ratio = sent / bare
      const goal = sample.isMeasured ? `≤ ${MOST}×` : ''
      lines.push(`| ${sample.title} | ${bare} | ${sent} | ${ratio.toFixed(2)}× | ${goal} |`)
      if (sample.isMeasured && ratio > MOST) notes.push(`Missed: ${sample.title}: ${ratio.toFixed(2)}×, goal ${goal}.`)
    }
    return { title: 'Tokens of a tool result in a request', table: lines.join('\n'), notes }
  } finally {
    await rm(root, { recursive: true, force: true })
  }
}
