import { mkdir, writeFile } from 'node:fs/promises'
import { callTool, defineTool, Harness, memoryLog } from 'thinharness'
import { Sessions } from 'thinharness/session'
import { runLogContract, ScriptedModel, scriptedProvider } from 'thinharness/testing'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { auditTrail } from '../../docs/snippets/subjects/audit.js'
import { harness as browsing } from '../../docs/snippets/subjects/browser.js'
import { costOfHours } from '../../docs/snippets/subjects/cost-alert.js'
import { Agent, DurableObjectLog } from '../../docs/snippets/subjects/durable-object.js'
import type { Sql } from '../../docs/snippets/subjects/durable-object.js'
import { serveWindow } from '../../docs/snippets/subjects/electron.js'
import type { IpcCall, IpcMain } from '../../docs/snippets/subjects/electron.js'
import { getWeather } from '../../docs/snippets/subjects/flaky-api.js'
import { withoutEmails } from '../../docs/snippets/subjects/emails.js'
import { handBack, handOver, onMessage } from '../../docs/snippets/subjects/hand-over.js'
import { indexOf } from '../../docs/snippets/subjects/index-documents.js'
import { searchHandbook } from '../../docs/snippets/subjects/retrieval.js'
import { quietRuns } from '../../docs/snippets/subjects/stuck.js'
import { openSqlite } from '../../src/util/platform/sqlite.js'
import type { Database } from '../../src/util/platform/sqlite.js'
import { collect } from '../support/collect.js'
import { wholeAnswer } from '../../docs/snippets/subjects/whole-answer.js'
import { inTemporaryFolder } from '../support/folder.js'

inTemporaryFolder()

const pay = defineTool({
  name: 'pay',
  description: 'Pays.',
  parameters: {},
  requiresApproval: true,
  handler: () => 'Paid.',
})

test('docs/conversation-approvals.md: who approved what', async () => {
  const model = new ScriptedModel().calls('pay', {}).says('Done.')
  await using harness = new Harness({ model, tools: [pay] })
  await using sessions = new Sessions({ harness, log: memoryLog() })
  const chat = await sessions.open('t1')
  await (
    await chat.send('Pay.')
  ).done
  expect(await auditTrail(sessions)).toEqual([])
  await chat.answer([{ callId: 'call_1', approved: true }], { by: 'ana' })
  await chat.whenIdle()
  const lines = await auditTrail(sessions)
  expect(lines.map((line) => line.split('\t').slice(1, 6))).toEqual([
    ['ana', 't1', 'pay', '{}', '{"by":"ana","callId":"call_1","approved":true}'],
  ])
})

test('docs/conversation-approvals.md: a person has the conversation until they hand it back', async () => {
  const model = new ScriptedModel().calls('hand_over', { reason: 'Asks for a person.' }).says('Anything else?')
  await using harness = new Harness({ model, tools: [handOver] })
  await using sessions = new Sessions({ harness, log: memoryLog() })
  const chat = await sessions.open('t1')
  const desk: string[] = []
  const toStaff = (text: string) => Promise.resolve(void desk.push(text))
  await onMessage(chat, 'A person, please.', toStaff)
  await chat.whenIdle()
  await onMessage(chat, 'Are you there?', toStaff)
  expect([desk, chat.phase]).toEqual([['Are you there?'], 'waiting'])
  await handBack(chat, 'The refund is on its way.', 'bob')
  await chat.whenIdle()
  expect([chat.phase, JSON.stringify(model.requests.at(-1)).includes('The refund is on its way.')]).toEqual([
    'idle',
    true,
  ])
})

test('docs/conversation-approvals.md: a plan is approved, and carried out by the same run in another mode', async () => {
  await using provider = await scriptedProvider()
  provider.calls('submit_plan', { title: 'Tidy', plan: '1. Write a.txt' })
  provider.calls('submit_plan', { title: 'Tidy', plan: '1. Write b.txt' })
  provider.calls('write', { path: 'b.txt', content: 'Hi.' }).says('Done.')
  vi.stubEnv('ANTHROPIC_API_KEY', 'test-key')
  vi.stubEnv('ANTHROPIC_BASE_URL', provider.url.messages)
  await mkdir('project')
  const { decidePlan, planOf, sessions } = await import('../../docs/snippets/subjects/plan-mode.js')
  const chat = await sessions.open('t1')
  await (
    await chat.send('Tidy up.')
  ).done
  const first = await planOf('t1')
  expect(first?.payload).toMatchObject({ title: 'Tidy' })
  await decidePlan('t1', first?.callId ?? '', 'Call it b.txt.')
  await chat.whenIdle()
  const second = await planOf('t1')
  expect(JSON.stringify(second?.payload)).toContain('b.txt')
  await decidePlan('t1', second?.callId ?? '', null)
  await chat.whenIdle()
  expect([chat.phase, chat.snapshot.thread.mode, (await sessions.messages('t1')).length]).toEqual(['idle', 'build', 8])
  await sessions.close()
})

test('docs/workflows.md: a small model decides which agent answers', async () => {
  await using provider = await scriptedProvider()
  provider.says('{"choice":"sales"}').says('It is 20 euros.').says('{"choice":"support"}').says('Turn it off and on.')
  vi.stubEnv('OPENAI_API_KEY', 'test-key')
  vi.stubEnv('OPENAI_BASE_URL', provider.url.responses)
  const { send, sessions } = await import('../../docs/snippets/subjects/handoff.js')
  const chat = await sessions.open('t1')
  await (
    await send(chat, 'How much is it?')
  ).done
  await (
    await send(chat, 'It does not work.')
  ).done
  const sent = provider.requests.map((request) => JSON.stringify(request))
  expect([
    sent[1]?.includes('want to buy'),
    sent[3]?.includes('does not work.'),
    sent[3]?.includes('20 euros'),
  ]).toEqual([true, true, true])
  await sessions.close()
})

test('docs/debugging.md: runs in which nothing has happened', async () => {
  const log = memoryLog()
  await using harness = new Harness({ model: new ScriptedModel().calls('pay', {}).says('Hi.'), tools: [pay], log })
  const { runId } = await harness.run('Pay.')
  await harness.run('Hello?')
  expect([(await quietRuns(log, 5)).length, (await quietRuns(log, -1)).map((run) => run.runId)]).toEqual([0, [runId]])
})

test('docs/users.md: the cost of the last hour', async () => {
  const log = memoryLog()
  const prices = { unknown: { inputPerMillion: 1e6, outputPerMillion: 1e6 } }
  await using harness = new Harness({ model: new ScriptedModel().says('Hi.'), log, prices })
  const { usage } = await harness.run('Hello?')
  expect(await costOfHours(log)).toEqual({ now: usage.costUsd, usual: 0 })
})

test('docs/privacy.md: addresses are masked for the model', async () => {
  const log = memoryLog()
  const tool = defineTool({
    name: 'look_up',
    description: 'Looks up.',
    parameters: {},
    handler: () => 'bob@example.com',
  })
  const model = new ScriptedModel().calls('look_up', {}).says('Done.')
  await using harness = new Harness({ model, log, tools: [tool], use: [withoutEmails] })
  const { runId } = await harness.run('Who is ana@example.com?')
  const heard = JSON.stringify(model.requests)
  const stored = JSON.stringify(await collect(log.read({ kind: 'run', id: runId })))
  expect([heard.includes('@example'), heard.includes('[email]')]).toEqual([false, true])
  expect(stored.includes('@example')).toBe(false)
})

test('docs/retrieval.md: paragraphs of files are found by their vectors', async () => {
  await writeFile('a.md', 'Tides are high.\n\nCakes are sweet.\n')
  const embed = (texts: readonly string[]) =>
    Promise.resolve(texts.map((text) => (/cake/i.test(text) ? [0, 1] : [1, 0])))
  const passages = await indexOf(['a.md'], embed)
  expect(await passages.nearest([0, 1], 1)).toEqual([{ text: 'Cakes are sweet.', url: 'a.md' }])
  const model = new ScriptedModel().calls('search_handbook', { question: 'Which cake?' }).says('A sweet one (a.md).')
  await using harness = new Harness({ model, tools: [searchHandbook(passages, embed)] })
  expect((await harness.run('Which cake?')).toolCallRecords[0]?.output).toContain('Cakes are sweet.')
})

test('docs/fetching.md: the browser is a server that is started when it is needed', async () => {
  await browsing.close()
})

test('docs/runtimes.md: a window of Electron asks, sees events and answers', async () => {
  const handlers = new Map<string, (call: IpcCall, ...args: never[]) => unknown>()
  const main: IpcMain = { handle: (channel, listener) => void handlers.set(channel, listener) }
  const kinds: string[] = []
  const call: IpcCall = { sender: { send: (_channel, event) => void kinds.push(structuredClone(event).kind) } }
  await using harness = new Harness({ model: new ScriptedModel().calls('pay', {}).says('Done.'), tools: [pay] })
  serveWindow(main, harness)
  const invoke = async (channel: string, ...args: unknown[]) =>
    (await handlers.get(channel)?.(call, ...(args as never[]))) as { runId: string; status: string; text: string }
  const { runId, status } = await invoke('agent:ask', 'Pay.')
  expect(status).toBe('paused')
  expect((await invoke('agent:answer', runId, [{ callId: 'call_1', approved: true }])).text).toBe('Done.')
  expect(kinds).toContain('text_delta')
})

/** The storage of a Durable Object, by SQLite of Node. */
function sqlOf(database: Database): Sql {
  return { exec: (query, ...values) => database.prepare(query).all(...values) as Record<string, unknown>[] }
}
const openDatabase = () => openSqlite(':memory:', { missing: () => new Error('No SQLite.') })

test('docs/runtimes.md: a Durable Object that was evicted gives the stored answer', async () => {
  const database = await openDatabase()
  await using provider = await scriptedProvider()
  provider.says('Hi.')
  vi.stubEnv('ANTHROPIC_BASE_URL', provider.url.messages)
  for (const text of ['Hi.', 'Hi.']) {
    const agent = new Agent({ storage: { sql: sqlOf(database) } }, { ANTHROPIC_API_KEY: 'test-key' })
    const request = new Request('http://agent', { method: 'POST', body: '{"prompt":"Hello?"}' })
    expect(await (await agent.fetch(request)).json()).toMatchObject({ text, status: 'completed' })
  }
  database.close()
})

describe('docs/runtimes.md: the log of a Durable Object', () => {
  const databases = new WeakMap<DurableObjectLog, Database>()
  const open = (database: Database) => {
    const log = new DurableObjectLog(sqlOf(database))
    databases.set(log, database)
    return log
  }
  const laws = runLogContract({
    open: async () => open(await openDatabase()),
    reopen: async (log) => open(databases.get(log) ?? (await openDatabase())),
  })
  const kept = [
    'keeps_in_order',
    'keeps_texts',
    'keeps_many',
    'refuses_gaps',
    'goes_on_from_anywhere',
    'one_of_two_writers',
  ]
  for (const { name, says, check } of laws) if (kept.includes(name)) test(`${name}: ${says}`, check, 60_000)
})

test('docs/settings.md: an answer that is cut off is continued, and the pieces are joined', async () => {
  const cut = { text: 'Half of', finishReason: 'length' } as const
  const model = new ScriptedModel().replies(() => cut).says(' the answer.')
  await using harness = new Harness({ model })
  expect(await wholeAnswer(harness, 'Write.')).toBe('Half of the answer.')
  await using other = new Harness({ model: new ScriptedModel().always(cut) })
  await expect(wholeAnswer(other, 'Write.', 2)).rejects.toMatchObject({ code: 'unexpected_model_behavior' })
})

test('docs/retries.md: a failed connection and an overloaded service are asked again, other answers are not', async () => {
  const fetch = vi.fn<() => Promise<Response>>()
  vi.stubGlobal('fetch', fetch)
  onTestFinished(() => void vi.unstubAllGlobals())
  fetch.mockRejectedValueOnce(new TypeError('fetch failed'))
  fetch.mockResolvedValueOnce(new Response('', { status: 503 }))
  fetch.mockResolvedValueOnce(new Response('Sunny.'))
  expect(await callTool(getWeather, { city: 'Bern' })).toMatchObject({ ok: true, content: 'Sunny.' })
  expect(fetch).toHaveBeenCalledTimes(3)

  fetch.mockResolvedValueOnce(new Response('', { status: 404 }))
  const missing = { ok: false, content: 'The weather service answered 404.' }
  expect(await callTool(getWeather, { city: 'Atlantis' })).toMatchObject(missing)
  expect(fetch).toHaveBeenCalledTimes(4)
})
