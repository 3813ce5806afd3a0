import { execFileSync } from 'node:child_process'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Tiktoken } from 'js-tiktoken/lite'
import ranks from 'js-tiktoken/ranks/o200k_base'
import { expect, test } from 'vitest'
import { Harness } from 'thinharness'
import type { JsonObject } from 'thinharness'
import { openaiCompatible } from 'thinharness/providers'
import { scriptedProvider } from 'thinharness/testing'
import { bash } from 'thinharness/tools'
import { temporaryFolder } from '../support/folder.js'

const MODULES = ['orders', 'refunds', 'carriers', 'invoices']

const sourceOf = (name: string): string =>
  Array.from({ length: 12 }, (_, index) =>
    [
      `/** Finds ${name} number \`${index}\` of the list. */`,
      `export function ${name}${index}(list: readonly Row[]): Row | undefined {`,
      `  const found = list.find(({ id }) => id === '${name}-${index}')`,
      `  return found === undefined ? undefined : { ...found, note: "${name} \\"${index}\\"" }`,
      '}',
    ].join('\n'),
  ).join('\n\n')

const FILES: Readonly<Record<string, string>> = Object.fromEntries(
  MODULES.map((name) => [`src/${name}.ts`, sourceOf(name)]),
)

const COMMAND = 'for n in $(seq 1 40); do echo "ok $n - src/module-$n.ts passes in ${n}0 ms"; done'

const editOf = (old_string: string, new_string: string): JsonObject => ({
  edits: [{ path: 'src/orders.ts', old_string, new_string }],
})

/** The calls of the journey, each in its own turn. */
const CALLS: readonly (readonly [string, JsonObject])[] = [
  ['list', { path: '.', recursive: true }],
  ['search', { query: 'found ===', max_matches_per_file: 100 }],
  ['read', { path: 'src/orders.ts' }],
  ['edit', editOf('const found = rows.find', 'const row = rows.find')],
  ['edit', editOf('  const found', '  const row')],
  ['edit', editOf("id === 'orders-3'", "id === 'orders-03'")],
  ['bash', { command: COMMAND }],
]

/** The data of the calls alone, as a program by hand would print it. */
function bareData(): readonly string[] {
  const matches = Object.entries(FILES)
    .sort()
    .map(([path, text]) => {
      const lines = text.split('\n').flatMap((line, at) => (line.includes('found ===') ? [`${at + 1}:${line}`] : []))
      return [path, ...lines].join('\n')
    })
  const source = FILES['src/orders.ts'] ?? ''
  const places = source.split('\n').flatMap((line, at) => (line.startsWith('  const found') ? [at + 1] : []))
  return [
    Object.keys(FILES).sort().join('\n'),
    matches.join('\n\n'),
    source,
    'old_string not found in src/orders.ts',
    `old_string matches ${places.length} times in src/orders.ts, in lines ${places.join(', ')}`,
    'replaced 1 occurrence in src/orders.ts',
    execFileSync('bash', ['-c', COMMAND]).toString(),
  ]
}

test('a coding journey with default options, two of three edits missing, ends well; its results take at most 1.05 times the tokens of the bare data', async () => {
  const root = temporaryFolder()
  for (const [path, text] of Object.entries(FILES)) {
    await mkdir(dirname(join(root, path)), { recursive: true })
    await writeFile(join(root, path), text)
  }
  await using provider = await scriptedProvider()
  let read: readonly string[] = []
  provider.always(({ turn, messages }) => {
    read = messages.flatMap((message) => (message.role === 'tool' ? [String(message.content)] : []))
    const [name, args] = CALLS[turn] ?? []
    return name === undefined
      ? 'The order 3 has the id `orders-03`; the tests pass.'
      : { calls: [{ name, arguments: args }] }
  })
  const model = openaiCompatible('local', { apiKey: 'any', baseUrl: provider.url.chat })
  await using harness = new Harness({ model, root, tools: [bash()] })
  const result = await harness.run('Rename order 3, and run the tests.')

  expect([result.status, result.stopReason, result.text]).toEqual([
    'completed',
    'end_turn',
    'The order 3 has the id `orders-03`; the tests pass.',
  ])
  expect(result.usage).toMatchObject({ toolCalls: CALLS.length, toolRetries: {} })
  expect(await readFile(join(root, 'src/orders.ts'), 'utf8')).toContain("id === 'orders-03'")
  const encoder = new Tiktoken(ranks)
  const count = (texts: readonly string[]): readonly number[] =>
    texts.map((text) => encoder.encode(text, [], []).length)
  const sum = (counts: readonly number[]): number => counts.reduce((total, each) => total + each, 0)
  const [sent, bare] = [count(read), count(bareData())]
  expect(
    sum(sent) / sum(bare),
    `sent ${sent.join(', ')}; bare ${bare.join(', ')}\n${read.join('\n---\n')}`,
  ).toBeLessThanOrEqual(1.05)
})
