import { execFile } from 'node:child_process'
import { cp, mkdtemp, readFile, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
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

function quickstart(...args: string[]): Promise<{ stdout: string }> {
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
  const [log] = await readdir(join(workspace, '.thinharness', 'runs'))
  expect(stdout).toContain(log)
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

test('a model that cannot be is refused with the nearest name', async () => {
  await expect(quickstart('--model', 'antropic:claude')).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringContaining('Did you mean `anthropic`?') as string,
  })
})
