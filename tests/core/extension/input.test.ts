import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { defineExtension, defineTool, fileLog, HarnessError, inputPort, memoryLog } from 'thinharness'
import type { Extension, LogStore } from 'thinharness'
import { Sessions } from 'thinharness/session'
import { sqliteLog } from 'thinharness/store/sqlite'
import { ScriptedModel } from 'thinharness/testing'
import { eventsOf, failureOf, harnessOf, tool } from '../../harness/support.js'
import { ask, delegateTool, playing } from '../../run/children/children-support.js'
import { collect, eventsOfRun } from '../../support/collect.js'
import { temporaryFolder } from '../../support/folder.js'

const KEY = 'sk-SECRET1'
type Asked = NonNullable<Extension['input']>

/** Takes keys out of what people say, and refuses the word `bomb`. */
function guard(seen: unknown[] = []): Extension {
  const clean: Asked = async (content, { kind }) => {
    seen.push([kind, content])
    const text = JSON.stringify(content)
    if (text.includes('bomb')) return { reject: 'Not about that.' }
    return JSON.parse(text.replaceAll(/sk-[A-Z0-9]+/g, '[key]')) as typeof content
  }
  return defineExtension({ name: 'guard', input: clean })
}

const pay = defineTool({
  ...{ name: 'pay', description: 'Pays.', parameters: z.object({ to: z.string() }), requiresApproval: true },
  handler: ({ to }) => `Paid ${to}.`,
})

/** Every byte of a folder. */
function bytesIn(folder: string): string {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((each) => each.isFile())
  return files.map((each) => readFileSync(join(each.parentPath, each.name), 'latin1')).join('\n')
}

const STORES: Readonly<Record<string, (folder: string) => LogStore>> = {
  files: (folder) => fileLog(folder),
  SQLite: (folder) => sqliteLog(join(folder, 'runs.db')),
}

test.each(Object.keys(STORES))(
  'a secret that is taken out of prompts, steering, messages and answers stands in no byte of the log: %s',
  async (name) => {
    const folder = temporaryFolder()
    const log = STORES[name]?.(folder) ?? memoryLog()
    const model = new ScriptedModel().calls('ask').calls('pay', { to: 'Ann' }).calls('pay', { to: 'Bob' }).says('Done.')
    const harness = harnessOf({ model, tools: [ask, pay], use: [guard()], log })
    const input = inputPort()
    const sent = input.send([{ type: 'text', text: `Also ${KEY}.` }])
    const first = await harness.run(`Use ${KEY}.`, { input, runId: 'run_1' })
    await sent
    const answer = (callId: string, said: object) => harness.resumeRun('run_1', [{ callId, ...said } as never])
    await answer(first.pending[0]?.callId ?? '', { answer: `It is ${KEY}` })
    await answer('call_2', { approved: true, editedArguments: { to: `Ann ${KEY}` } })
    const last = await answer('call_3', { approved: false, reason: `No, ${KEY}` })
    expect(last.text).toBe('Done.')

    const chatModel = new ScriptedModel().calls('ask').says('Done.').says('Done.').says('Done.')
    const chatHarness = harnessOf({ model: chatModel, tools: [ask], use: [guard()] })
    const sessions = new Sessions({ log, harness: chatHarness })
    onTestFinished(() => sessions.close())
    // Another process owns the thread: what it is sent is posted.
    const owner = await sessions.open('t1')
    const { done } = await owner.send(`Use ${KEY}.`)
    expect((await done).status).toBe('paused')
    const others = new Sessions({ log, harness: chatHarness })
    onTestFinished(() => others.close())
    const other = await others.open('t1')
    await other.send(`And ${KEY}.`)
    await other.answer([{ callId: other.pending[0]?.callId ?? '', answer: KEY }])
    await owner.whenIdle()
    const shown = JSON.stringify([
      model.requests.map(({ entries }) => entries),
      chatModel.requests.map(({ entries }) => entries),
      await eventsOfRun(log, 'run_1'),
      owner.snapshot,
    ])
    expect(shown).toContain('[key]')
    expect(shown).not.toContain('SECRET1')
    await Promise.all([sessions.close(), others.close()])
    expect(bytesIn(folder)).not.toContain('SECRET1')
    expect(bytesIn(folder)).toContain('[key]')
  },
  60_000,
)

test('each thing that somebody says is asked about once, and in its kind: by the harness, or by sessions', async () => {
  const seen: unknown[] = []
  const log = memoryLog()
  const model = new ScriptedModel().calls('ask').says('Done.')
  const harness = harnessOf({ model, tools: [ask], use: [guard(seen)], log })
  const input = inputPort()
  void input.send('Also.')
  await harness.run('Go.', { input, runId: 'run_1' })
  await harness.resumeRun('run_1', [{ callId: 'call_1', answer: 'that' }])
  const said = [
    ['prompt', 'Go.'],
    ['steering', 'Also.'],
    ['answer', 'that'],
  ]
  expect(seen.splice(0)).toEqual(said)

  const inChat = harnessOf({ model: new ScriptedModel().calls('ask').says('Done.'), tools: [ask], use: [guard(seen)] })
  await using sessions = new Sessions({ log: memoryLog(), harness: inChat, use: [{ ...guard(seen), name: 'outer' }] })
  const chat = await sessions.open('t1')
  await (
    await chat.send('Go.')
  ).done
  await chat.answer([{ callId: 'call_1', answer: 'that' }])
  await chat.whenIdle()
  const parts = [{ type: 'text', text: 'Go.' }]
  expect(seen).toEqual([
    ['prompt', parts],
    ['prompt', parts],
    ['answer', 'that'],
    ['answer', 'that'],
  ])
})

test('a refused prompt begins no run, and its caller has the reason', async () => {
  const log = memoryLog()
  const model = new ScriptedModel()
  const harness = harnessOf({ model, use: [guard()], log })
  const error = await failureOf(harness.run('A bomb.', { runId: 'run_1' }))
  expect([error.code, error.message.includes('Not about that.')]).toEqual(['guard_blocked', true])
  await failureOf(harness.stream('A bomb.').result)
  expect([await collect(log.list({ kind: 'run' })), model.requests]).toEqual([[], []])
})

test('a run that waits in the log is asked about when it is queued, and not again when it begins', async () => {
  const seen: unknown[] = []
  const log = memoryLog()
  const model = new ScriptedModel().says('Done.')
  const harness = harnessOf({ model, use: [guard(seen)], log })
  await expect(harness.queue('A bomb.')).rejects.toMatchObject({ code: 'guard_blocked' })
  expect(await collect(log.list({ kind: 'run' }))).toEqual([])
  const { runId } = await harness.queue(`Use ${KEY}.`)
  expect((await harness.recover(runId)).text).toBe('Done.')
  expect(JSON.stringify(await eventsOfRun(log, runId))).not.toContain('SECRET1')
  expect(seen).toEqual([
    ['prompt', 'A bomb.'],
    ['prompt', `Use ${KEY}.`],
  ])
})

test('the sender of refused steering has the reason, and the run goes on without it', async () => {
  const model = new ScriptedModel().calls('look').says('Done.')
  const input = inputPort()
  const sent: Promise<unknown>[] = []
  // A tool may wait for it.
  const look = tool('look', async () => {
    sent.push(...['A bomb.', 'A cake.'].map((text) => input.send(text)))
    await Promise.allSettled(sent)
    return 'ok'
  })
  const stream = harnessOf({ model, tools: [look], use: [guard()] }).stream('Go.', { input })
  const events = await eventsOf(stream)
  const [refused, taken] = await Promise.allSettled(sent)
  expect(refused).toMatchObject({ status: 'rejected', reason: { code: 'guard_blocked' } })
  expect(taken?.status).toBe('fulfilled')
  expect([JSON.stringify(events).includes('bomb'), JSON.stringify(events).includes('A cake.')]).toEqual([false, true])
  expect((await stream.result).text).toBe('Done.')
  // Steering that comes with the answer, and is refused, costs no request.
  const late = new ScriptedModel().says('Done.')
  const another = harnessOf({ model: late, use: [guard()] }).stream('Go.')
  await Promise.all([expect(another.steer('A bomb.')).rejects.toThrow('Not about that.'), another.result])
  expect(late.requests).toHaveLength(1)
})

test('a message that no run has read when it ends is rejected, also for who does not wait', async () => {
  const input = inputPort()
  const sent = input.send('Too late.')
  expect(input.close()).toEqual(['Too late.'])
  await expect(sent).rejects.toThrow('no run has accepted this message')
  void inputPort().send('Nobody waits.')
})

test('a refused answer is an error of its caller, and the run stays paused', async () => {
  const log = memoryLog()
  const model = new ScriptedModel().calls('ask').says('Done.')
  const harness = harnessOf({ model, tools: [ask], use: [guard()], log })
  await harness.run('Go.', { runId: 'run_1' })
  const before = await eventsOfRun(log, 'run_1')
  expect((await failureOf(harness.resumeRun('run_1', [{ callId: 'call_1', answer: 'A bomb.' }]))).code).toBe(
    'guard_blocked',
  )
  expect(await eventsOfRun(log, 'run_1')).toEqual(before)
  expect((await harness.resumeRun('run_1', [{ callId: 'call_1', answer: 'A cake.' }])).text).toBe('Done.')
})

test('a conversation knows of a refused message without its words, and stores no refused answer', async () => {
  const log = memoryLog()
  const harness = harnessOf({ model: new ScriptedModel().calls('ask').says('Done.'), tools: [ask] })
  await using sessions = new Sessions({ log, harness, use: [guard()] })
  const chat = await sessions.open('t1')
  const refusal = await chat.send('A bomb.', { messageId: 'm1', by: 'ann' }).catch((error: unknown) => error)
  expect(refusal).toMatchObject({ code: 'guard_blocked' })
  const events = await collect(chat.events({ live: false }))
  expect(events.at(-1)).toMatchObject({ kind: 'message_refused', messageId: 'm1', by: 'ann' })
  expect(JSON.stringify(events)).not.toContain('bomb')
  expect([chat.phase, chat.queue.list(), chat.snapshot.runs]).toEqual(['idle', [], []])
  await (
    await chat.send('Go.', { messageId: 'm2' })
  ).done
  await expect(chat.answer([{ callId: 'call_1', answer: 'A bomb.' }])).rejects.toThrow('Not about that.')
  expect(chat.phase).toBe('waiting')
  await expect(chat.steer('A bomb.')).rejects.toThrow('Not about that.')
  await chat.answer([{ callId: 'call_1', answer: 'A cake.' }])
  await chat.whenIdle()
  expect(chat.snapshot.runs.at(-1)?.status).toBe('completed')
})

test.each<[string, Asked]>([
  ['throws', () => expect.fail('Oh.')],
  ['gives nothing', () => undefined as never],
  ['gives no content', () => [1] as never],
])('`input` that %s fails closed: no run begins', async (_how, input) => {
  const log = memoryLog()
  const harness = harnessOf({ model: new ScriptedModel(), use: [{ name: 'broken', input }], log })
  expect((await failureOf(harness.run('Go.'))).code).toBe('hook_failed')
  expect(await collect(log.list({ kind: 'run' }))).toEqual([])
})

test('`input` of one run is asked by the run, also in sessions; what is said to child runs is not asked about', async () => {
  const seen: unknown[] = []
  const own: Extension = { name: 'own', forRun: () => ({ input: guard(seen).input }) }
  const model = playing({ go: [['delegate'], 'Done.'], a: ['Yes.'] })
  await harnessOf({ model, tools: [delegateTool('delegate', { a: [] })], use: [own] }).run('go')
  expect(seen.splice(0)).toEqual([['prompt', 'go']])
  await using sessions = new Sessions({ harness: harnessOf({ model: new ScriptedModel().says('Done.'), use: [own] }) })
  const { done } = await (await sessions.open('t1')).send('Go.')
  expect([(await done).text, seen.length]).toEqual(['Done.', 1])
  expect(new HarnessError('guard_blocked', 'x').code).toBe('guard_blocked')
})
