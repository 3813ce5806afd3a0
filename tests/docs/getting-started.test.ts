import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { scriptedProvider } from 'thinharness/testing'
import type { ScriptedProvider } from 'thinharness/testing'
import { entries } from '../../scripts/entries.js'
import { inTemporaryFolder } from '../support/folder.js'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const PAGE = readFileSync(join(ROOT, 'docs/getting-started.md'), 'utf8')
const SNIPPETS = join(ROOT, 'docs/snippets/getting-started')
const LANDING = readFileSync(join(ROOT, 'docs/.vitepress/index.md'), 'utf8')
const PROGRAMS = ['answer', 'ask', 'batch', 'hello', 'server']

inTemporaryFolder()

/** The programs of the page, each for a process of its own. */
let programs = ''

beforeAll(async () => {
  // Inside the project, where packages are found.
  mkdirSync(join(ROOT, '.build'), { recursive: true })
  programs = mkdtempSync(join(ROOT, '.build/getting-started-'))
  const { packages } = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')) as { packages: object }
  await build({
    absWorkingDir: ROOT,
    entryPoints: [
      ...PROGRAMS.map((name) => join(SNIPPETS, `${name}.ts`)),
      join(ROOT, 'docs/snippets/landing/refund.ts'),
    ],
    entryNames: '[name]',
    outdir: programs,
    ...{ bundle: true, splitting: true, platform: 'node', format: 'esm', target: 'node20', logLevel: 'error' },
    alias: Object.fromEntries(entries.map(({ specifier, source }) => [specifier, join(ROOT, source)])),
    external: Object.keys(packages).flatMap((path) => (path === '' ? [] : [path.slice('node_modules/'.length)])),
  })
})

afterAll(() => rmSync(programs, { recursive: true, force: true }))

function start(provider: ScriptedProvider, name: string): ChildProcess & { readonly stdout: NodeJS.ReadableStream } {
  return spawn(process.execPath, [join(programs, `${name}.js`)], {
    env: {
      PATH: process.env['PATH'],
      ANTHROPIC_API_KEY: 'test-key',
      ANTHROPIC_BASE_URL: provider.url.messages,
      PORT: '0',
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
}

/** What a program prints until it ends. */
async function run(provider: ScriptedProvider, name: string): Promise<string> {
  const child = start(provider, name)
  const [printed] = await Promise.all([text(child.stdout), once(child, 'close')])
  return printed
}

test('hello.ts prints what the page shows', async () => {
  await using provider = await scriptedProvider()
  provider.says('The Nile, the Congo and the Niger.')
  expect(PAGE).toContain(`$ npx tsx hello.ts\n${await run(provider, 'hello')}\`\`\``)
})

test('ask.ts pauses, a second process answers, and a third one reads the stored result', async () => {
  await using provider = await scriptedProvider()
  provider.calls('find_order', { number: '1043' }).calls('refund', { number: '1043', dollars: 20 })
  provider.says('The 20 dollars are on their way back.')
  expect(PAGE).toContain(`$ npx tsx ask.ts\n${await run(provider, 'ask')}\`\`\``)
  expect(PAGE).toContain(`$ npx tsx answer.ts\n${await run(provider, 'answer')}\`\`\``)
  expect(await run(provider, 'ask')).toBe('completed\n')
  expect(readdirSync('.thinharness/runs')).toContain('order-1043.jsonl')
})

test('batch.ts answers each row, and begun again it asks nothing', async () => {
  await using provider = await scriptedProvider()
  for (const number of ['1043', '1044', '1045']) provider.says(`Nothing is known of ${number}.`)
  const lines = (printed: string) => printed.trim().split('\n').sort()
  const first = lines(await run(provider, 'batch'))
  expect(first.map((line) => line.split(' ')[0])).toEqual(['1043', '1044', '1045'])
  expect(lines(await run(provider, 'batch'))).toEqual(first)
})

test('server.ts serves a chat, and ends at SIGTERM', async () => {
  await using provider = await scriptedProvider()
  provider.says('It was delivered twice.')
  const child = start(provider, 'server')
  onTestFinished(() => void child.kill('SIGKILL'))
  const [line] = (await once(createInterface(child.stdout), 'line')) as [string]
  const port = /port: (\d+)/.exec(line)?.[1]
  const response = await fetch(`http://127.0.0.1:${String(port)}/chat`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      id: 'one',
      messages: [{ id: 'm1', role: 'user', parts: [{ type: 'text', text: 'What about order 1043?' }] }],
    }),
  })
  // The answer arrives in pieces.
  const pieces = [...(await response.text()).matchAll(/"delta":"([^"]*)"/g)].map(([, piece = '']) => piece)
  expect(pieces.join('')).toBe('It was delivered twice.')
  child.kill('SIGTERM')
  expect(await once(child, 'close')).toEqual([0, null])
})

test('the program of the landing page prints what is shown below it, and its crash is that of README', async () => {
  await using provider = await scriptedProvider()
  provider.calls('refund', { order: '7', dollars: 9 }).says('The 9 dollars for order 7 are on their way back.')
  expect(LANDING).toContain(`\`\`\`text\n${await run(provider, 'refund')}\`\`\``)
  const [crash = ''] = /```console\n[^]*?```/.exec(readFileSync(join(ROOT, 'README.md'), 'utf8')) ?? []
  expect(LANDING).toContain(crash)
})

test('every program of the page is run', () => {
  expect(readdirSync(SNIPPETS).sort()).toEqual([...PROGRAMS.map((name) => `${name}.ts`), 'thinharness.config.ts'])
})
