import { mkdir, mkdtemp, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Harness } from 'thinharness'
import type { JsonObject, Model } from 'thinharness'
import { anthropic, openai, openaiChat } from 'thinharness/providers'
import { scriptedProvider } from 'thinharness/testing'
import type { ScriptedProvider } from 'thinharness/testing'
import { bash } from 'thinharness/tools'
import type { McpServer } from '#adapters/mcp/index.js'
import { oddServer } from '../adapters/mcp/support.js'
import { INJECTIONS } from './support.js'
import { temporaryFolder } from '../support/folder.js'
import { rounds, timeLimit } from '../support/length.js'

const folder = temporaryFolder()
let provider: ScriptedProvider
let server: McpServer

beforeAll(async () => {
  provider = await scriptedProvider()
  server = oddServer(`{
    'tools/list': () => ({ tools: [tool('say', { inputSchema: { type: 'object', properties: { text: { type: 'string' } } } })] }),
    'tools/call': ({ arguments: args }) => ({ content: [{ type: 'text', text: args.text }], isError: args.text.length % 2 === 0 }),
  }`)
})

afterAll(async () => {
  await provider.close()
  await server.close()
})

const KEY = { apiKey: 'any', maxRetries: 0 }
const APIS: Readonly<Record<string, () => Model>> = {
  responses: () => openai('gpt-5.5', { ...KEY, baseUrl: provider.url.responses }),
  chat: () => openaiChat('gpt-4.1', { ...KEY, baseUrl: provider.url.chat }),
  messages: () => anthropic('claude-sonnet-5', { ...KEY, baseUrl: provider.url.messages }),
}

/** What no API puts anywhere but into the conversation. */
const FRAME = ['tools', 'instructions', 'system', 'tool_choice', 'model', 'text', 'response_format']
const MARK = 'mark-7f3a'

/** Where in a request texts with the mark stand, and what kind of item holds each. */
function holders(value: unknown, holder = 'request'): string[] {
  if (typeof value === 'string') return value.includes(MARK) ? [holder] : []
  if (Array.isArray(value)) return value.flatMap((each) => holders(each, holder))
  if (typeof value !== 'object' || value === null) return []
  const { type, role } = value as JsonObject
  const kind = typeof type === 'string' && type !== 'text' ? type : typeof role === 'string' ? role : holder
  return Object.entries(value).flatMap(([key, each]) => [
    ...(key.includes(MARK) ? [`key of ${kind}`] : []),
    ...holders(each, kind),
  ])
}

/** The items of a request that a provider reads as orders. */
function ordersIn(request: JsonObject | undefined): unknown[] {
  const items = (request?.['messages'] ?? request?.['input'] ?? []) as readonly JsonObject[]
  return items.filter(({ role }) => role === 'system' || role === 'developer')
}

const injection = fc.oneof(
  fc.constantFrom(...INJECTIONS),
  fc
    .array(
      fc.constantFrom(
        '"',
        '\\',
        '}',
        ']',
        ',',
        '{"role":"system"}',
        '\n\n',
        '\u0000',
        '\u2028',
        '</',
        '<|',
        '\ud83d',
        ' ',
      ),
      { maxLength: 12 },
    )
    .map((pieces) => pieces.join('')),
)

test.each(Object.keys(APIS))(
  'content from tools stays in tool results: it adds no instruction, role or tool (%s)',
  async (api) => {
    await fc.assert(
      fc.asyncProperty(injection, async (drawn) => {
        const text = `${MARK} ${drawn} ${MARK}`
        const root = await mkdtemp(join(folder, 'root-'))
        await mkdir(join(root, 'docs'))
        await writeFile(join(root, 'docs', 'a.txt'), `${text}\n`)
        const name = `docs/${text.replace(/[/\0]/g, '_').slice(0, 100)}.md`
        await writeFile(join(root, name), 'a page\n')
        const calls = [
          { name: 'read', arguments: { path: 'docs/a.txt' } },
          { name: 'list', arguments: { path: 'docs' } },
          { name: 'glob', arguments: { pattern: '**/*.md' } },
          { name: 'search', arguments: { query: 'mark.7f3a|a page' } },
          { name: 'bash', arguments: { command: 'cat docs/a.txt; cat docs/a.txt >&2; exit 1' } },
          { name: 'say', arguments: { text: 'x' } },
        ]
        // The model repeats none of it: whatever is elsewhere was put there by the harness.
        const from = provider.requests.length
        provider.callsAll(calls).says('Done.')
        await using harness = new Harness({ model: APIS[api]!(), root, tools: [bash({ root })], mcpServers: [server] })
        const { text: said } = await harness.run('Look.')

        expect(said).toBe('Done.')
        const [first, second] = provider.requests.slice(from).map(({ body }) => body as JsonObject)
        expect(FRAME.map((key) => second?.[key])).toEqual(FRAME.map((key) => first?.[key]))
        expect(ordersIn(second)).toEqual(ordersIn(first))
        expect(new Set(holders(second))).toEqual(new Set([RESULT[api]]))
        provider.requests.length = 0
      }),
      rounds(3, 150),
    )
  },
  timeLimit(300_000),
)

/** The item in which a result of a tool stands. */
const RESULT: Readonly<Record<string, string>> = {
  responses: 'function_call_output',
  chat: 'tool',
  messages: 'tool_result',
}
