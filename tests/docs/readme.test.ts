import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { scriptedProvider } from 'thinharness/testing'
import type { ScriptedProvider } from 'thinharness/testing'
import { inTemporaryFolder } from '../support/folder.js'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const README = readFileSync(join(ROOT, 'README.md'), 'utf8')
const SNIPPETS = join(ROOT, 'docs/snippets/readme')

inTemporaryFolder()

/** The programs of README as a user has them: each runs in a process of its own. */
let programs = ''

beforeAll(async () => {
  // Inside the project, where packages are found.
  mkdirSync(join(ROOT, '.build'), { recursive: true })
  programs = mkdtempSync(join(ROOT, '.build/readme-'))
  await build({
    absWorkingDir: ROOT,
    entryPoints: ['first', 'pay', 'approvals'].map((name) => join(SNIPPETS, `${name}.ts`)),
    outdir: programs,
    ...{ bundle: true, splitting: true, platform: 'node', format: 'esm', target: 'node20', logLevel: 'error' },
    alias: { thinharness: join(ROOT, 'src/index.ts') },
    external: Object.keys((JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')) as Lockfile).packages)
      .filter((path) => path.startsWith('node_modules/'))
      .map((path) => path.slice('node_modules/'.length)),
  })
})

afterAll(() => rmSync(programs, { recursive: true, force: true }))

interface Lockfile {
  readonly packages: Readonly<Record<string, unknown>>
}

/** Runs a program in the temporary folder, and gives the signal that ended it, and what it printed. */
async function run(provider: ScriptedProvider, name: string, ...options: readonly string[]) {
  const child = spawn(process.execPath, [join(programs, `${name}.js`), ...options], {
    env: { PATH: process.env['PATH'], ANTHROPIC_API_KEY: 'test-key', ANTHROPIC_BASE_URL: provider.url.messages },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [printed] = await Promise.all([text(child.stdout), once(child, 'close')])
  return { printed, signal: child.signalCode }
}

test('first.ts prints what README shows', async () => {
  await using provider = await scriptedProvider()
  provider.calls('lookup_order', { id: '1042' }).says('Yes. It was promised for November 18, and is still in transit.')
  const { printed } = await run(provider, 'first')
  expect(README).toContain(`\`\`\`text\n${printed}\`\`\``)
})

test('pay.ts is killed after the payment, and the next process finds the receipt and pays nothing', async () => {
  await using provider = await scriptedProvider()
  provider.calls('pay', { invoice: '17', cents: 6450 }).replies(({ heard }) => {
    const [result] = heard.kind === 'tool_outputs' ? heard.outputs : []
    return `Invoice 17 is paid. The receipt is ${result?.content}.`
  })
  const first = await run(provider, 'pay', '--crash')
  expect(first.signal).toBe('SIGKILL')
  const second = await run(provider, 'pay')
  expect(second.signal).toBeNull()
  expect(await readFile('bank.txt', 'utf8')).toMatch(/^invoice-17:\S+ R-6450\n$/)
  expect(README).toContain(
    `\`\`\`console\n$ node pay.js --crash\n${first.printed}Killed\n$ node pay.js\n${second.printed}\`\`\``,
  )
  // Once more: the stored answer, without a request.
  expect((await run(provider, 'pay')).printed).toBe(second.printed)
})

test('approvals.ts prints what README shows', async () => {
  await using provider = await scriptedProvider()
  provider.calls('refund', { orderId: '1042', cents: 6450 }).says('The 64.50 euros are on their way back.')
  const { printed } = await run(provider, 'approvals')
  expect(README).toContain(`\`\`\`text\n${printed}\`\`\``)
})

test('every program of README is run', () => {
  expect(readdirSync(SNIPPETS).sort()).toEqual(['approvals.ts', 'bank.ts', 'first.ts', 'pay.ts', 'refund.ts'])
})
