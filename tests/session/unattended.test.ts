import { expect, onTestFinished, test, vi } from 'vitest'
import { memoryLog } from 'thinharness'
import type { Chat, Responder, SessionsOptions } from 'thinharness/session'
import { ScriptedModel } from 'thinharness/testing'
import { harnessOf, tool } from '../harness/support.js'
import { sessionsOf, until } from './support.js'

/** The calls of the first reply. */
function twoPayments(): ReturnType<typeof harnessOf> {
  const pay = tool('pay', () => 'Paid.', { requiresApproval: true })
  const model = new ScriptedModel()
    .replies({
      calls: [
        { name: 'pay', arguments: { cents: 1 } },
        { name: 'pay', arguments: { cents: 2 } },
      ],
    })
    .says('Done.')
  return harnessOf({ model, tools: [pay] })
}

function answersIn(chat: Chat): (string | null | undefined)[] {
  return (chat.snapshot.runs[0]?.calls ?? []).flatMap(({ answers = [] }) => answers.map(({ by }) => by))
}

function warnings(): () => string[] {
  const spy = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined)
  onTestFinished(() => spy.mockRestore())
  return () => spy.mock.calls.map(([message]) => String(message))
}

test('SB-107 responders that approve or decline everything finish the same run without a person', async () => {
  for (const approved of [true, false]) {
    const responder: Responder = () => ({ approved })
    const chat = await sessionsOf({ harness: twoPayments(), responder }).open()
    const sent = await chat.send('Pay.')
    expect(await sent.done).toMatchObject({ status: 'completed', text: 'Done.' })
    expect(answersIn(chat)).toEqual(['responder', 'responder'])
    const calls = chat.snapshot.runs[0]?.calls ?? []
    expect(calls.map(({ status }) => status)).toEqual(approved ? ['completed', 'completed'] : ['failed', 'failed'])
  }
})

test('a responder is told in which conversation it answers', async () => {
  const seen: unknown[] = []
  const responder: Responder = ({ callId }, { threadId, resourceId, mode, metadata }) => {
    seen.push([callId, threadId, resourceId, mode])
    return { approved: metadata['trial'] === true }
  }
  for (const trial of [true, false]) {
    const sessions = sessionsOf({ harness: twoPayments(), responder }).for({ resourceId: 'ann' })
    const { threadId } = await sessions.create({ threadId: `t_${trial}`, metadata: { trial } })
    const chat = await sessions.open(threadId)
    await (
      await chat.send('Pay.')
    ).done
    const status = trial ? 'completed' : 'failed'
    expect(chat.snapshot.runs[0]?.calls.map((call) => call.status)).toEqual([status, status])
  }
  expect(seen).toEqual(
    ['t_true', 't_false'].flatMap((id) => ['call_1', 'call_2'].map((callId) => [callId, id, 'ann', 'default'])),
  )
})

test('an item that the responder leaves to people waits for them, and is not asked about again', async () => {
  const asked: string[] = []
  const responder: Responder = ({ callId, arguments: args }) => {
    asked.push(callId)
    return args.includes('1') ? { approved: true } : null
  }
  const chat = await sessionsOf({ harness: twoPayments(), responder }).open()
  const sent = await chat.send('Pay.')
  expect(await sent.done).toMatchObject({ status: 'paused' })
  await chat.whenIdle()
  expect([chat.phase, chat.pending.length, asked.length]).toEqual(['waiting', 1, 2])
  await chat.answer([{ callId: chat.pending[0]?.callId ?? '', approved: true }], { by: 'ann' })
  await chat.whenIdle()
  expect([chat.phase, ...answersIn(chat)]).toEqual(['idle', 'responder', 'ann'])
})

test('a responder that throws or gives an invalid answer leaves the item to people, with a warning', async () => {
  const warned = warnings()
  const responder: Responder = ({ arguments: args }) => {
    if (args.includes('1')) throw new Error('No.')
    return { answer: 'Perhaps.' }
  }
  const chat = await sessionsOf({ harness: twoPayments(), responder }).open()
  expect(await (await chat.send('Pay.')).done).toMatchObject({ status: 'paused' })
  expect([chat.phase, chat.pending.length, warned().length]).toEqual(['waiting', 2, 2])
  expect(warned()[0]).toContain('which waits for people: No.')
})

test('a responder that does not answer leaves the item to people after a minute', async () => {
  const warned = warnings()
  let markAsked = (): void => undefined
  const asked = new Promise<void>((resolve) => (markAsked = resolve))
  const responder: Responder = () => {
    markAsked()
    return new Promise(() => undefined)
  }
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const chat = await sessionsOf({ harness: twoPayments(), responder }).open()
  const sent = await chat.send('Pay.')
  await asked
  vi.advanceTimersByTime(60_000)
  expect(await sent.done).toMatchObject({ status: 'paused' })
  expect(warned()[0]).toContain('60 s')
})

function titled(title: SessionsOptions['title']): Promise<Chat> {
  const model = new ScriptedModel().says('In May.').says('Yes.')
  return sessionsOf({ harness: harnessOf({ model }), title }).open()
}

test('a title is made from the first exchange, once, in the background', async () => {
  const make = vi.fn(() => '"Rent"\n')
  const chat = await titled(make)
  await chat.send('When is the rent due?')
  await until(chat, ({ kind }) => kind === 'title_changed')
  await (
    await chat.send('Sure?')
  ).done
  expect(chat.snapshot.thread).toMatchObject({ title: 'Rent', isNamed: false })
  expect(make.mock.calls).toEqual([[{ threadId: chat.threadId, message: 'When is the rent due?', reply: 'In May.' }]])
})

test('a model makes titles; its failure is a warning, and the message is not affected', async () => {
  const chat = await titled(new ScriptedModel().says('The rent'))
  await chat.send('When is the rent due?')
  await until(chat, ({ kind }) => kind === 'title_changed')
  expect(chat.snapshot.thread.title).toBe('The rent')
  const warned = warnings()
  const other = await titled(() => Promise.reject(new Error('Broken.')))
  expect(await (await other.send('Hello.')).done).toMatchObject({ status: 'completed' })
  await vi.waitFor(() => expect(warned()).toHaveLength(1))
  expect(other.snapshot.thread.title).toBe('')
})

test('SB-30 a title that a person gave is never replaced, even by one that is being made', async () => {
  let give: (title: string) => void = () => undefined
  const chat = await titled(() => new Promise((resolve) => (give = resolve)))
  await (
    await chat.send('When is the rent due?')
  ).done
  await chat.rename('Mine')
  give('Other')
  await (
    await chat.send('Sure?')
  ).done
  await chat.rename('Auto', { auto: true })
  expect(chat.snapshot.thread).toMatchObject({ title: 'Mine', isNamed: true })
})

test('SB-98 a responder that answers at once works with a log that is slow', async () => {
  const log = memoryLog()
  const append = log.append.bind(log)
  vi.spyOn(log, 'append').mockImplementation(async (...given) => {
    for (let tick = 0; tick < 20; tick += 1) await new Promise((resolve) => setImmediate(resolve))
    return append(...given)
  })
  const pay = tool('pay', () => 'Paid.', { requiresApproval: true })
  const harness = harnessOf({ model: new ScriptedModel().calls('pay').says('Paid.'), tools: [pay] })
  const chat = await sessionsOf({ log, harness, responder: () => ({ approved: true }) }).open()
  expect(await (await chat.send('Pay.')).done).toMatchObject({ status: 'completed', text: 'Paid.' })
})
