import { gzipSync } from 'node:zlib'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { expect, onTestFinished, test } from 'vitest'
import { memoryLog } from 'thinharness'
import type { DurableEvent } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { createHandlers, createHub, toSse } from 'thinharness/ui'
import type { AnyRunEvent } from 'thinharness/ui'
import { reduceChat } from 'thinharness/ui/client'
import type { ChatSnapshot, FollowedEvent } from 'thinharness/ui/client'
import { Mailbox } from '#util/queue/tail.js'
import { harnessOf, told, tool } from '../../../harness/support.js'
import { gate } from '../../../session/support.js'
import { collect } from '../../../support/collect.js'

interface Item {
  readonly id: string | undefined
  readonly event: string
  readonly data: Readonly<Record<string, unknown>>
}

async function itemsOf(events: readonly AnyRunEvent[]): Promise<readonly Item[]> {
  const text = await new Response(toSse(events)).text()
  return [...text.matchAll(/(?:id: (.*)\n)?event: (.*)\ndata: (.*)\n\n/g)].map(([, id, event = '', data = '{}']) => ({
    ...{ id, event, data: JSON.parse(data) as Item['data'] },
  }))
}

test('SS-13 events that are not stored have no id, so that the last id of a browser stays its cursor', async () => {
  const model = new ScriptedModel().calls('look', {}, { text: 'Well.' }).says('Done.')
  const { events } = await told(harnessOf({ model, tools: [tool('look')] }).stream('Hi.'))
  const items = await itemsOf(events)
  const stored = new Set(events.filter(({ durable }) => durable).map(({ kind }) => kind as string))
  expect(items.some(({ event }) => event === 'text_delta')).toBe(true)
  for (const { id, event, data } of items) expect(id).toBe(stored.has(event) ? String(data['seq']) : undefined)
})

test('SS-15 a stream that begins in the middle of a reply says so before it sends the reply again', async () => {
  const { opened, open: release } = gate()
  const { opened: reached, open: reach } = gate()
  const log = memoryLog()
  const model = new ScriptedModel().replies(async ({ options }) => {
    options.onDelta?.({ kind: 'text_delta', text: 'One ' })
    reach()
    await opened
    return 'Two.'
  })
  const harness = harnessOf({ model, log })
  onTestFinished(() => harness.close())
  const hub = createHub({ log })
  const { events } = createHandlers({ harness, log, hub })
  await hub.start(harness.stream('Hi.', { runId: 'r1' }))
  await reached
  const response = await events(new Request('http://localhost/runs/r1/events?after=2'))
  const text = response.text()
  release()
  expect((await text).replace(/^retry: 2000\n: \w+\n\n/, '')).toMatch(
    /^event: open_turn\ndata: \{"seq":2,"runId":"r1"\}\n\nevent: text_delta\ndata: \{.*"text":"One /,
  )
})

test('SS-23 events that wait for a reader are joined, and bounded', async () => {
  const delta = (text: string, partId: string) => ({ kind: 'text_delta', runId: 'r1', seq: 1, partId, text })
  const mailbox = new Mailbox(100)
  for (let count = 0; count < 50; count++) mailbox.add(delta('a', 'one'))
  expect(await mailbox.take()).toEqual([delta('a'.repeat(50), 'one')])
  for (let count = 0; count < 100; count++) mailbox.add(delta('b', `part ${count}`))
  expect((await mailbox.take())?.length).toBe(100)
  for (let count = 0; count < 101; count++) mailbox.add(delta('b', `part ${count}`))
  mailbox.add(delta('late', 'last'))
  expect(await mailbox.take()).toBe(null)
})

/** The events of a run of so many turns with one call each: those of a short run, of which one turn is repeated. */
async function longRun(turns: number): Promise<readonly FollowedEvent[]> {
  const log = memoryLog()
  const model = new ScriptedModel().calls('look', {}, { text: 'Next.' }).says('Done.')
  await harnessOf({ model, tools: [tool('look', () => 'seen')], log }).run('Go.', { runId: 'run_1' })
  const events: readonly DurableEvent[] = await collect(log.read({ kind: 'run', id: 'run_1' }))
  const [started, ...rest] = events
  const turn = JSON.stringify(rest.slice(0, 4))
  const repeated = Array.from(
    { length: turns },
    (_, index) => JSON.parse(turn.replaceAll('call_1', `call_${index + 1}`)) as DurableEvent[],
  )
  const all = [started, ...repeated.flat(), ...rest.slice(4)]
  return all.map((event, index) => ({ ...event, seq: index + 1 })) as unknown as readonly FollowedEvent[]
}

test('SS-26 the view of a run has its entries, calls with state and result, pending items, usage and status', async () => {
  const log = memoryLog()
  const pay = tool('pay', () => 'paid', { requiresApproval: true })
  const model = new ScriptedModel().callsAll([{ name: 'look' }, { name: 'pay' }]).says('Done.')
  const harness = harnessOf({ model, tools: [tool('look', () => 'seen'), pay], log })
  const { events: first } = await told(harness.stream('Hi.', { runId: 'run_1' }))
  const { events: second } = await told(harness.streamResume('run_1', [{ callId: 'call_2', approved: true }]))
  const fold = (events: readonly AnyRunEvent[]): ChatSnapshot =>
    events.reduce<ChatSnapshot | undefined>((view, event) => reduceChat(view, event), undefined)!
  const paused = fold(first)
  expect(paused).toMatchObject({ phase: 'waiting', pending: [{ callId: 'call_2', kind: 'approval' }] })
  expect(paused.runs[0]?.calls).toMatchObject([{ status: 'requested' }, { callId: 'call_2', status: 'waiting' }])
  const frozen = JSON.stringify(paused)
  const done = fold([...first, ...second])
  expect(done).toMatchObject({ phase: 'idle', pending: [] })
  expect(done.runs[0]).toMatchObject({
    ...{ status: 'completed', error: null, usage: { modelRequests: 2 } },
    calls: [
      { callId: 'call_1', status: 'completed', toolName: 'look' },
      { callId: 'call_2', status: 'completed', toolName: 'pay' },
    ],
  })
  expect(done.runs[0]?.entries.map(({ role }) => role)).toEqual(['assistant', 'assistant'])
  expect(JSON.stringify(paused)).toBe(frozen)
})

test('SS-28 a run of 5,000 calls is folded event by event, and an event changes the call that it is about', () => {
  const base = { runId: 'run_1', parentRunId: null, at: '2026-01-01T00:00:00.000Z', durable: true } as const
  const call = (index: number) =>
    ({ type: 'tool_call', callId: `call_${index}`, name: 'look', arguments: '{}' }) as const
  const about = (index: number) => ({ callId: `call_${index}`, toolName: 'look', toolIndex: 0 })
  const events = Array.from({ length: 5000 }, (_, index) => [
    { ...base, kind: 'model_request_started', entries: [] },
    { ...base, kind: 'model_message', entry: { role: 'assistant', parts: [call(index)] } },
    { ...base, kind: 'tool_call_started', ...about(index) },
    { ...base, kind: 'tool_call_completed', ...about(index), ok: true, output: '{}', durationMs: 1 },
  ]).flat()
  const started = {
    ...base,
    kind: 'run_started',
    begun: 'fresh',
    prompt: 'Hi.',
    provider: 'p',
    model: 'm',
    metadata: {},
    history: [],
  }
  let view: ChatSnapshot | undefined
  for (const [index, event] of [started, ...events].entries()) {
    const before = view?.runs[0]
    view = reduceChat(view, { ...event, seq: index + 1 } as unknown as AnyRunEvent)
    const run = view.runs[0]!
    if (index % 500 !== 3) continue
    expect(run.calls.filter((each) => before?.calls.includes(each) !== true)).toHaveLength(1)
    expect(run.entries).toBe(before?.entries)
  }
  expect(view?.runs[0]?.calls).toHaveLength(5000)
  expect(view?.runs[0]?.calls.every(({ status }) => status === 'completed')).toBe(true)
})

test('what did not change in a view keeps its identity', async () => {
  const events = await longRun(50)
  expect(events.length).toBeGreaterThan(200)
  const most = events.slice(0, -6)
  let view: ChatSnapshot | undefined
  for (const event of most) view = reduceChat(view, event)
  const before = view
  for (const event of events.slice(-6)) view = reduceChat(view, event)
  const [old, now] = [before?.runs[0], view?.runs[0]]
  expect(now?.entries[0]).toBe(old?.entries[0])
  expect(now?.calls[0]).toBe(old?.calls[0])
  expect(view?.thread).toBe(before?.thread)
})

test('SS-29 reader and reducer are under 4 KiB compressed, and use nothing of Node', async () => {
  const client = fileURLToPath(new URL('../../../../src/adapters/ui/client/index.ts', import.meta.url))
  const { outputFiles } = await build({
    stdin: { contents: `export { followRun, reduceChat } from ${JSON.stringify(client)}`, resolveDir: '.' },
    ...{ bundle: true, minify: true, write: false, format: 'esm', platform: 'browser', target: 'es2022' },
  })
  expect(gzipSync(outputFiles[0]?.contents ?? '').length).toBeLessThan(4_096)
})
