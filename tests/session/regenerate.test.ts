import { describe, expect, test } from 'vitest'
import { memoryLog } from 'thinharness'
import type { LogStore } from 'thinharness'
import { tasks } from 'thinharness/session'
import type { Chat } from 'thinharness/session'
import { ScriptedModel } from 'thinharness/testing'
import { harnessOf, tool } from '../harness/support.js'
import { allStores, codeOf, gate, said, sessionsOf } from './support.js'

async function talk(chat: Pick<Chat, 'send'>, ...messages: readonly string[]): Promise<void> {
  for (const text of messages) await (await chat.send(text, { messageId: text })).done
}

async function again(chat: Pick<Chat, 'regenerate'>, id?: string): Promise<string> {
  return (await (await chat.regenerate(id)).done).text
}

describe.each(await allStores())('a message that is answered again, in the %s log', (_name, open: () => LogStore) => {
  test('UI-36 its run and the later ones leave the conversation: the new run does not read them, and their logs are kept', async () => {
    const model = new ScriptedModel().says('1.').says('2.').says('3.').says('2 again.').says('4.')
    const log = open()
    const chat = await sessionsOf({ log, harness: harnessOf({ model }) }).open('t1')
    await talk(chat, 'a', 'b', 'c')
    const left = chat.snapshot.runs.slice(1).map(({ runId }) => runId)
    expect(await again(chat, 'b')).toBe('2 again.')
    await talk(chat, 'd')
    const line = ['user: a', 'assistant: 1.', 'user: b', 'assistant: 2 again.', 'user: d', 'assistant: 4.']
    expect(said(chat)).toEqual(line)
    expect(model.requests.at(-1)?.transcriptLength).toBe(5)
    expect(chat.snapshot.thread.replaced).toEqual(left)
    for (const id of left) expect(await log.inspect({ kind: 'run', id })).toMatchObject({ status: 'completed' })
    const opened = await sessionsOf({ log, harness: harnessOf({ model }) }).open('t1')
    expect(opened.snapshot).toEqual(chat.snapshot)
  })

  test('UI-36 it is answered as often as wanted, also the first message of a fork, which keeps what the fork began with', async () => {
    const model = new ScriptedModel().says('1.').says('2.').says('2b.').says('2c.')
    const sessions = sessionsOf({ log: open(), harness: harnessOf({ model }) })
    await talk(await sessions.open('t1'), 'a')
    const fork = await sessions.fork('t1')
    await talk(fork, 'b')
    expect([await again(fork), await again(fork, fork.snapshot.runs[0]?.runId)]).toEqual(['2b.', '2c.'])
    expect(said(fork)).toEqual(['user: b', 'assistant: 2c.'])
    expect(model.requests.map(({ transcriptLength }) => transcriptLength)).toEqual([1, 3, 3, 3])
  })

  test('UI-36 a thread that is deleted takes the runs along that have left it', async () => {
    const log = open()
    const sessions = sessionsOf({ log, harness: harnessOf({ model: new ScriptedModel().says('1.').says('1b.') }) })
    const chat = await sessions.open('t1')
    await talk(chat, 'a')
    const [run] = chat.snapshot.runs
    await again(chat)
    await sessions.delete('t1')
    expect(await log.inspect({ kind: 'run', id: run?.runId ?? '' })).toBe(null)
  })

  test('UI-36 another process asks the owner for it, and reads the same', async () => {
    const log = open()
    const model = new ScriptedModel().says('1.').says('1b.')
    const owner = await sessionsOf({ log, harness: harnessOf({ model }) }).open('t1')
    await talk(owner, 'a')
    const follower = await sessionsOf({ log, harness: harnessOf({ model }) }).open('t1')
    expect(follower.owner).not.toBe('self')
    expect(await again(follower)).toBe('1b.')
    expect(said(follower)).toEqual(['user: a', 'assistant: 1b.'])
    expect(said(owner)).toEqual(said(follower))
  })
})

test('UI-36 nothing is answered again while a run is in progress, nor a message that the conversation does not have', async () => {
  const { opened, open } = gate()
  const model = new ScriptedModel().replies(async () => {
    await opened
    return '1.'
  })
  const chat = await sessionsOf({ log: memoryLog(), harness: harnessOf({ model }) }).open('t1')
  expect(await codeOf(chat.regenerate())).toBe('message_not_found')
  const sent = await chat.send('a', { messageId: 'a' })
  expect(await codeOf(chat.regenerate())).toBe('busy')
  open()
  await sent.done
  const { seq } = chat.snapshot.thread
  expect(await codeOf(chat.regenerate('b'))).toBe('message_not_found')
  expect(chat.snapshot.thread.seq).toBe(seq)
  expect(said(chat)).toEqual(['user: a', 'assistant: 1.'])
})

test('UI-36 a run that waits for people ends when its message is answered again; its call does not run', async () => {
  const paid: unknown[] = []
  const pay = tool('pay', (args) => paid.push(args), { requiresApproval: true })
  const model = new ScriptedModel().calls('pay', {}).says('Not paid.')
  const log = memoryLog()
  const chat = await sessionsOf({ log, harness: harnessOf({ model, tools: [pay] }) }).open('t1')
  await talk(chat, 'Pay.')
  const [run] = chat.snapshot.runs
  expect(await again(chat)).toBe('Not paid.')
  expect([paid, chat.pending, chat.phase]).toEqual([[], [], 'idle'])
  expect(await log.inspect({ kind: 'run', id: run?.runId ?? '' })).toMatchObject({ status: 'cancelled' })
})

test('UI-36 the message keeps its content, mode and metadata; the list of tasks is that of the runs which remain', async () => {
  const list = (content: string) => ({
    tasks: [{ content, activeForm: `${content}…`, status: 'pending' }],
  })
  const model = new ScriptedModel()
  model.calls('task_write', list('First')).says('1.')
  model.calls('task_write', list('Second')).says('2.').says('2 again.')
  const [plan, build] = [harnessOf({ model }), harnessOf({ model })]
  const log = memoryLog()
  const sessions = sessionsOf({ log, modes: { plan, build }, defaultMode: 'plan', use: [tasks()] })
  const chat = await sessions.open('t1')
  await talk(chat, 'a')
  const image = { type: 'image', data: 'AAAA', mediaType: 'image/png' } as const
  const content = [{ type: 'text', text: 'b' } as const, image]
  await (
    await chat.send(content, { messageId: 'b', mode: 'build', metadata: { from: 'mail' } })
  ).done
  expect(chat.snapshot.tasks).toMatchObject([{ content: 'Second' }])
  await again(chat, 'b')
  const run = chat.snapshot.runs.at(-1)
  expect(run).toMatchObject({ mode: 'build', messageIds: ['b'], prompt: content })
  const summary = await log.inspect({ kind: 'run', id: run?.runId ?? '' })
  expect(summary?.metadata).toMatchObject({ from: 'mail', conversation_id: 't1' })
  expect(chat.snapshot.tasks).toMatchObject([{ content: 'First' }])
})

test('UI-36 the queue is kept, and continues after the reply', async () => {
  const model = new ScriptedModel().fails('No.').says('1.').says('2.')
  const chat = await sessionsOf({ log: memoryLog(), harness: harnessOf({ model }) }).open('t1')
  const first = await chat.send('a', { messageId: 'a' })
  const second = await chat.send('b', { messageId: 'b' })
  await Promise.all([first.done, chat.whenIdle()])
  expect(chat.queue.held).toBe(true)
  expect(await again(chat)).toBe('1.')
  expect(chat.queue.list()).toHaveLength(1)
  await chat.queue.release()
  expect((await second.done).text).toBe('2.')
  expect(said(chat)).toEqual(['user: a', 'assistant: 1.', 'user: b', 'assistant: 2.'])
})
