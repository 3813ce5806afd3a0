import { execFile } from 'node:child_process'
import { cp, mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Harness } from 'thinharness'
import { replayTest, ScriptedModel } from 'thinharness/testing'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { makeOrders } from '../examples/quickstart/orders.js'
import type { Order } from '../examples/quickstart/orders.js'
import { stormRefunds } from '../examples/quickstart/refunds.js'

const run = promisify(execFile)
let workspace: string

beforeAll(async () => {
  workspace = await mkdtemp(join(tmpdir(), 'quickstart-'))
  await cp('examples/quickstart/workspace', workspace, {
    recursive: true,
    filter: (path) => !/(orders\.jsonl|report\.md|\.thinharness)/.test(path),
  })
})
afterAll(() => rm(workspace, { recursive: true, force: true }))

function quickstart(...args: string[]): Promise<{ stdout: string; stderr: string }> {
  const env = { PATH: process.env['PATH'] ?? '' }
  return run(process.execPath, ['.build/examples/quickstart.js', '--workspace', workspace, ...args], { env })
}

test('the quickstart writes a report whose numbers are those of a plain script, and says where everything lies', async () => {
  const { stdout } = await quickstart('--model', 'scripted')

  const lines = (await readFile(join(workspace, 'orders.jsonl'), 'utf8')).trimEnd().split('\n')
  const { orders, totalCents, largest } = stormRefunds(lines.map((line) => JSON.parse(line) as Order))
  expect(lines.length).toBeGreaterThanOrEqual(20_000)
  const report = await readFile(join(workspace, 'report.md'), 'utf8')
  expect(report).toContain(`Orders: **${orders}**`)
  expect(report).toContain(`Refunds in all: **${totalCents} cents**`)
  expect(report.match(/^- ord_.*$/gm)).toEqual(largest.map(({ id, refundCents }) => `- ${id}: ${refundCents} cents`))

  expect(stdout).toContain('the scripted provider')
  expect(stdout.match(/^→ \w+/gm)).toEqual(['→ search', '→ list', '→ read', '→ read', '→ jsonl_search', '→ write'])
  expect(stdout).toContain('Turns      5, with 6 tool calls')
  const runs = join(workspace, '.thinharness', 'runs')
  const told = (await readdir(runs)).filter((log) => stdout.includes(log))
  expect(told).toHaveLength(1)

  // The run is a test from now on: it tells the same events again, with nobody asked and no tool run.
  const builtinTools = ['read', 'write', 'edit', 'search', 'list', 'glob', 'jsonl_search'] as const
  await using harness = new Harness({ model: new ScriptedModel(), root: workspace, builtinTools })
  const { result } = await replayTest(join(runs, told[0] ?? ''), harness)
  expect(result).toMatchObject({ stopReason: 'end_turn', usage: { modelRequests: 5, toolCalls: 6 } })
})

test('the orders are the same on every machine', () => {
  const first = makeOrders().next().value as Order
  expect(first.id).toBe('ord_000001')
  expect(stormRefunds(makeOrders())).toMatchObject({ orders: 58, totalCents: 70_110 })
})

test('a question of your own is not answered by the script, and the quickstart says so', async () => {
  const { stdout } = await quickstart('--model', 'scripted', 'Who are you?')
  expect(stdout).toContain('I am a script and know one question only.')
  expect(stdout).toContain('none was written')
})

test('a folder of your own that is asked a question of your own is left as it is', async () => {
  const own = await mkdtemp(join(tmpdir(), 'quickstart-own-'))
  try {
    await writeFile(join(own, 'report.md'), 'Mine.\n')
    const { stdout } = await quickstart('--model', 'scripted', '--workspace', own, 'Who are you?')
    expect(stdout).toContain('none was written')
    expect((await readdir(own)).sort()).toEqual(['.thinharness', 'report.md'])
    expect(await readFile(join(own, 'report.md'), 'utf8')).toBe('Mine.\n')
  } finally {
    await rm(own, { recursive: true, force: true })
  }
})

test.each([
  [['--help'], /^npm run quickstart -- \["your own question"\] \[options\]\n\n {2}--model MODEL /, /^$/],
  [['--modle', 'scripted'], /^$/, /^Unknown option '--modle'\.\n\nnpm run quickstart -- /],
  [['--model'], /^$/, /^Option '--model <value>' argument missing\.\n\nnpm run quickstart -- /],
  [
    ['--model', 'openai:gpt-5.5'],
    /^Model: openai:gpt-5\.5\n/,
    /^\nThere is no API key for `openai`: set .*`OPENAI_API_KEY`.*\.\n$/,
  ],
])('%j gets a plain answer', async (args, stdout, stderr) => {
  const told = await quickstart(...args).catch((error: unknown) => error as { stdout: string; stderr: string })
  expect(told.stdout).toMatch(stdout)
  expect(told.stderr).toMatch(stderr)
})

test('a workspace that is a file is refused in a line', async () => {
  const file = join(workspace, 'README.md')
  await expect(quickstart('--model', 'scripted', '--workspace', file)).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/^The workspace cannot be used: EEXIST: [^\n]*\n$/) as string,
  })
})

test('a model that cannot be is refused with the nearest name', async () => {
  await expect(quickstart('--model', 'antropic:claude')).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringContaining('Did you mean `anthropic`?') as string,
  })
})
