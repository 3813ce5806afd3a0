import { execFile } from 'node:child_process'
import { cp, readFile, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { fileLog, Harness } from 'thinharness'
import type { DurableEvent } from 'thinharness'
import { replayTest, ScriptedModel } from 'thinharness/testing'
import { localTraces, otlpJson, traceLog } from 'thinharness/tracing'
import type { TraceRecord } from 'thinharness/tracing'
import { beforeAll, expect, test } from 'vitest'
import { makeOrders } from '../examples/quickstart/orders.js'
import type { Order } from '../examples/quickstart/orders.js'
import { reader } from '../examples/quickstart/reader.js'
import { stormRefunds } from '../examples/quickstart/refunds.js'
import { temporaryFolder } from '../tests/support/folder.js'

const run = promisify(execFile)
const workspace = temporaryFolder()

beforeAll(async () => {
  await cp('examples/quickstart/workspace', workspace, {
    recursive: true,
    filter: (path) => !/(orders\.jsonl|report\.md|\.thinharness)/.test(path),
  })
})

function quickstart(...args: string[]): Promise<{ stdout: string; stderr: string }> {
  const env = { PATH: process.env['PATH'] ?? '' }
  return run(process.execPath, ['.build/examples/quickstart.js', '--workspace', workspace, ...args], { env })
}

test('the quickstart is killed in the middle of a call, and another process finishes its report with the numbers of a plain script', async () => {
  const { stdout } = await quickstart('--model', 'scripted')

  const lines = (await readFile(join(workspace, 'orders.jsonl'), 'utf8')).trimEnd().split('\n')
  const { orders, totalCents, largest } = stormRefunds(lines.map((line) => JSON.parse(line) as Order))
  expect(lines.length).toBeGreaterThanOrEqual(20_000)
  const report = await readFile(join(workspace, 'report.md'), 'utf8')
  expect(report).toContain(`Orders: **${orders}**`)
  expect(report).toContain(`Total refunds: **${totalCents} cents**`)
  expect(report.match(/^- ord_.*$/gm)).toEqual(largest.map(({ id, refundCents }) => `- ${id}: ${refundCents} cents`))

  expect(stdout).toContain('the scripted provider')
  const [before = '', after = ''] = stdout.split('✗ The process was killed in the middle of this call')
  expect(before.match(/^→ \w+/gm)).toEqual(['→ subagent', '→ list', '→ jsonl_search'])
  expect(after.match(/^→ \w+/gm)).toEqual(['→ jsonl_search', '→ write'])
  expect(after).toContain(report.trimEnd())
  expect(after).toContain('7 requests: none was repeated after the crash')
  expect(stdout.match(/^ {2}→ \w+/gm)).toEqual(['  → search', '  → read', '  → read'])
  expect(stdout).toContain('Turns    4, with 4 tool calls; subagents 3, with 3')
  expect(stdout).toContain('  → search "storm|refund" in notes\n')
  expect(stdout).toMatch(/^Cost {5}\$0\.\d+, at made-up prices$/m)
  expect(stdout).not.toMatch(/\u001b|[{}]/)
  expect(
    Math.max(...stdout.split('\n').map((line) => (/^ *→|^Log|^Report/.test(line) ? 0 : line.length))),
  ).toBeLessThan(91)
  const runs = join(workspace, '.thinharness', 'runs')
  const told = (await readdir(runs)).filter((log) => stdout.includes(log))
  expect(told).toHaveLength(1)

  // The run is a test from now on: it emits the same events again, without a request and without running a tool.
  const builtinTools = ['read', 'write', 'edit', 'search', 'list', 'glob', 'jsonl_search'] as const
  await using harness = new Harness({ model: new ScriptedModel(), root: workspace, builtinTools, subagents: [reader] })
  const { result } = await replayTest(join(runs, told[0] ?? ''), harness)
  expect(result).toMatchObject({ stopReason: 'end_turn', usage: { modelRequests: 4, toolCalls: 4 } })
})

test('a trace of the quickstart has the run of its subagent inside the call that started it, in the format of viewers', async () => {
  const own = temporaryFolder()
  await cp(join(workspace, 'notes'), join(own, 'notes'), { recursive: true })
  await quickstart('--model', 'scripted', '--keep-alive', '--workspace', own)
  const dir = join(own, 'traces')
  await traceLog(localTraces({ dir, captureContent: false }), await eventsIn(join(own, '.thinharness', 'runs')))
  const [file = ''] = (await readdir(dir, { recursive: true })).filter((name) => name.endsWith('.jsonl'))
  const records = jsonLines<TraceRecord>(await readFile(join(dir, file), 'utf8'))
  const document = otlpJson(records, { serviceName: 'quickstart' }) as unknown as Otlp
  const [{ scopeSpans }] = document.resourceSpans
  const { spans } = scopeSpans[0]
  const pathOf = ({ name, parentSpanId }: OtlpSpan): string[] => {
    const parent = spans.find(({ spanId }) => spanId === parentSpanId)
    return parent === undefined ? [name] : [...pathOf(parent), name]
  }
  const run = 'invoke_agent thinharness'
  const nested = [run, 'execute_tool subagent', 'invoke_agent subagent.reader']
  const expected = [
    [run],
    ...['subagent', 'list', 'jsonl_search', 'write'].map((name) => [run, `execute_tool ${name}`]),
    ...Array.from({ length: 4 }, () => [run, 'chat scripted']),
    nested,
    ...['search', 'read', 'read'].map((name) => [...nested, `execute_tool ${name}`]),
    ...Array.from({ length: 3 }, () => [...nested, 'chat scripted']),
  ]
  expect(spans.map(pathOf).map(String).sort()).toEqual(expected.map(String).sort())
  expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(1)
  expect(spans.every(isSpan)).toBe(true)
})

interface Otlp {
  readonly resourceSpans: readonly [{ readonly scopeSpans: readonly [{ readonly spans: readonly OtlpSpan[] }] }]
}

interface OtlpSpan {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly name: string
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
}

/** Ids are hex of their lengths, times are nanoseconds as text: what the JSON of OTLP wants. */
function isSpan({ traceId, spanId, startTimeUnixNano: start, endTimeUnixNano: end }: OtlpSpan): boolean {
  return /^[0-9a-f]{32}$/.test(traceId) && /^[0-9a-f]{16}$/.test(spanId) && BigInt(start) <= BigInt(end)
}

/** The events of the logs of a folder, by time; a parent before its children. */
async function eventsIn(folder: string): Promise<DurableEvent[]> {
  const log = fileLog(folder)
  const events: DurableEvent[] = []
  for await (const { runId: id } of log.list())
    for await (const event of log.read({ kind: 'run', id })) events.push(event)
  const depth = ({ parentRunId }: DurableEvent): number => (parentRunId === null ? 0 : 1)
  return events.sort((one, other) => one.at.localeCompare(other.at) || depth(one) - depth(other) || one.seq - other.seq)
}

function jsonLines<T>(text: string): T[] {
  return text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as T)
}

test('the orders are the same on every machine', () => {
  const first = makeOrders().next().value as Order
  expect(first.id).toBe('ord_000001')
  expect(stormRefunds(makeOrders())).toMatchObject({ orders: 58, totalCents: 70_110 })
})

test('your own question is not answered by the script, and the quickstart explains it', async () => {
  const { stdout } = await quickstart('--model', 'scripted', 'Who are you?')
  expect(stdout).toContain('These replies are scripted and cover one question only.')
  expect(stdout).toContain('not written')
})

test('your own folder with your own question is left as it is', async () => {
  const own = temporaryFolder()
  await writeFile(join(own, 'report.md'), 'Mine.\n')
  const { stdout } = await quickstart('--model', 'scripted', '--workspace', own, 'Who are you?')
  expect(stdout).toContain('not written')
  expect((await readdir(own)).sort()).toEqual(['.thinharness', 'report.md'])
  expect(await readFile(join(own, 'report.md'), 'utf8')).toBe('Mine.\n')
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
])('%j yields a plain answer', async (args, stdout, stderr) => {
  const told = await quickstart(...args).catch((error: unknown) => error as { stdout: string; stderr: string })
  expect(told.stdout).toMatch(stdout)
  expect(told.stderr).toMatch(stderr)
})

test('a workspace that is a file is rejected in one line', async () => {
  const file = join(workspace, 'README.md')
  await expect(quickstart('--model', 'scripted', '--workspace', file)).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/^The workspace cannot be used: EEXIST: [^\n]*\n$/) as string,
  })
})

test('an unknown model is rejected with the nearest name', async () => {
  await expect(quickstart('--model', 'antropic:claude')).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringContaining('Did you mean `anthropic`?') as string,
  })
})
