import { describe, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { memoryLog } from 'thinharness'
import type { LogStore, TranscriptEntry } from 'thinharness'
import type { Chat, ChatEvent, ListThreadsOptions, ThreadItem } from 'thinharness/session'
import { tasks } from 'thinharness/session'
import { ScriptedModel } from 'thinharness/testing'
import { harnessOf, tool } from '../harness/support.js'
import { allStores, codeOf, gate, said, sessionsOf, until } from './support.js'
import { times } from '../support/length.js'

const SETTINGS = z.strictObject({ theme: z.string().default('light'), size: z.number().optional() })

function always(text = 'Yes.'): ReturnType<typeof harnessOf> {
  return harnessOf({ model: new ScriptedModel().always(text) })
}

async function done(chat: Chat, prompt: string): Promise<void> {
  await (
    await chat.send(prompt)
  ).done
}

/** Everything that the thread has stored, deltas left out. */
async function stored(chat: Chat): Promise<readonly ChatEvent[]> {
  const over = new AbortController()
  const last = chat.snapshot.thread.seq
  const events: ChatEvent[] = []
  for await (const event of chat.events({ signal: over.signal })) {
    events.push(event)
    if ('threadId' in event && event.seq === last) break
  }
  over.abort()
  return events
}

/** The text of an entry. */
function textIn(entry: TranscriptEntry): string {
  const parts = entry.role === 'user' ? entry.content : entry.role === 'assistant' ? entry.parts : []
  return parts.map((part) => (typeof part !== 'string' && 'text' in part ? part.text : '')).join('')
}

async function collect(items: AsyncIterable<ThreadItem>): Promise<readonly ThreadItem[]> {
  const all: ThreadItem[] = []
  for await (const item of items) all.push(item)
  return all
}

describe.each(await allStores())('threads in the %s log', (_name, open: () => LogStore) => {
  test('SB-15 a thread begins with the defaults of its settings; the objects that a reader gets cannot be changed', async () => {
    const chat = await sessionsOf({ log: open(), harness: always(), settings: SETTINGS }).open()
    const { settings } = chat.snapshot.thread
    expect(settings).toEqual({ theme: 'light' })
    expect(() => Object.assign(settings, { theme: 'dark' })).toThrow(TypeError)
    await chat.set({ size: 2 })
    expect(() => Object.assign(chat.snapshot.thread.settings, { size: 3 })).toThrow(TypeError)
    expect(chat.snapshot.thread.settings).toEqual({ theme: 'light', size: 2 })
  })

  test('a list of the threads in one phase has no others', async () => {
    const pay = tool('pay', () => 'paid', { requiresApproval: true })
    const model = new ScriptedModel().says('Hello.').calls('pay').says('Hello.').calls('pay')
    const sessions = sessionsOf({ log: open(), harness: harnessOf({ model, tools: [pay] }) })
    for (const threadId of ['t1', 't2', 't3', 't4']) await done(await sessions.open(threadId), 'Hi.')
    const idsOf = async (options: ListThreadsOptions): Promise<readonly string[]> =>
      (await collect(sessions.list(options))).map(({ threadId }) => threadId)
    expect(new Set(await idsOf({ phase: 'waiting' }))).toEqual(new Set(['t2', 't4']))
    expect(new Set(await idsOf({ phase: 'idle' }))).toEqual(new Set(['t1', 't3']))
    expect(await idsOf({ phase: 'interrupted' })).toEqual([])
    expect(await idsOf({ phase: 'waiting', limit: 1 })).toHaveLength(1)
  })

  test('SB-16 settings that do not fit are rejected and change nothing; the next ones are stored', async () => {
    const chat = await sessionsOf({ log: open(), harness: always(), settings: SETTINGS }).open()
    const { seq } = chat.snapshot.thread
    expect(await codeOf(chat.set({ theme: 3 }))).toBe('invalid_settings')
    expect(await codeOf(chat.set({ other: true }))).toBe('invalid_settings')
    expect(chat.snapshot.thread).toMatchObject({ seq, settings: { theme: 'light' } })
    await chat.set({ theme: 'dark' })
    expect(chat.snapshot.thread).toMatchObject({ seq: seq + 1, settings: { theme: 'dark' } })
  })

  test('SB-17 a hundred concurrent changes are a hundred events, each with what it changed', async () => {
    const chat = await sessionsOf({ log: open(), harness: always() }).open()
    const keys = Array.from({ length: 100 }, (_, index) => `k${index}`)
    await Promise.all(keys.map((key) => chat.set({ [key]: key })))
    const changes = (await stored(chat)).flatMap((event) => (event.kind === 'setting_changed' ? [event.settings] : []))
    expect(changes).toEqual(keys.map((key) => ({ [key]: key })))
    expect(Object.keys(chat.snapshot.thread.settings)).toEqual(keys)
  })

  test('SB-20 opening a thread that does not exist creates it, before its first message', async () => {
    const chat = await sessionsOf({ log: open(), harness: always() }).open('t1')
    await done(chat, 'Hello?')
    expect((await stored(chat)).slice(0, 3).map(({ kind }) => kind)).toEqual([
      'thread_opened',
      'message_queued',
      'run_begun',
    ])
    expect(said(chat)).toEqual(['user: Hello?', 'assistant: Yes.'])
  })

  test('SB-21 SB-35 the latest thread, and lists, are those of one owner; the last one written comes first', async () => {
    const sessions = sessionsOf({ log: open(), harness: always() })
    const [ann, bob] = [sessions.for({ resourceId: 'ann' }), sessions.for({ resourceId: 'bob' })]
    expect(await ann.latest()).toBe(null)
    const first = await ann.create({ threadId: 'a1' })
    await later()
    await ann.create({ threadId: 'a2' })
    await later()
    await bob.create({ threadId: 'b1' })
    expect((await ann.latest())?.threadId).toBe('a2')
    await later()
    await first.rename('Newer')
    expect((await ann.latest())?.threadId).toBe('a1')
    expect((await collect(ann.list())).map(({ threadId }) => threadId)).toEqual(['a1', 'a2'])
    expect((await collect(sessions.list())).map(({ threadId }) => threadId)).toEqual(['a1', 'b1', 'a2'])
  })

  test('SB-23 SB-24 a thread that does not exist, or is of another owner, is not found; a run in progress continues', async () => {
    const { opened, open: release } = gate()
    const model = new ScriptedModel().replies(async () => {
      await opened
      return 'Undisturbed.'
    })
    const sessions = sessionsOf({ log: open(), harness: harnessOf({ model }) })
    const [ann, bob] = [sessions.for({ resourceId: 'ann' }), sessions.for({ resourceId: 'bob' })]
    const chat = await ann.open('t1')
    const sent = await chat.send('Go.')
    expect(await codeOf(ann.messages('t2'))).toBe('thread_not_found')
    for (const refused of [bob.open('t1'), bob.messages('t1'), bob.fork('t1'), bob.delete('t1')])
      expect(await codeOf(refused)).toBe('thread_not_found')
    release()
    expect(await sent.done).toMatchObject({ status: 'completed', text: 'Undisturbed.' })
  })

  test('SB-29 the claim on a thread is released by its owner only', async () => {
    const log = open()
    const ref = { kind: 'thread', id: 't1' } as const
    expect(await log.claim(ref, 'ann', 60_000)).toBe(true)
    expect(await log.claim(ref, 'bob', 0)).toBe(false)
    expect(await log.claim(ref, 'bob', 60_000)).toBe(false)
    expect(await log.claim(ref, 'ann', 0)).toBe(true)
    expect(await log.claim(ref, 'bob', 60_000)).toBe(true)
  })

  test('SB-31 a fork has the same conversation in the same order; its source stays as it is', async () => {
    const sessions = sessionsOf({ log: open(), harness: always() })
    const chat = await sessions.create({ threadId: 't1', title: 'Bills', tags: ['money'], metadata: { project: 'p' } })
    await done(chat, 'One?')
    await done(chat, 'Two?')
    const before = JSON.stringify(await sessions.messages('t1'))
    const fork = await sessions.fork('t1', { threadId: 't2' })
    const idsOf = async (threadId: string): Promise<string[]> => (await sessions.messages(threadId)).map(({ id }) => id)
    expect(await idsOf('t2')).toEqual(await idsOf('t1'))
    await done(fork, 'Three?')
    const words = async (threadId: string): Promise<string[]> => (await sessions.messages(threadId)).map(textIn)
    expect(await words('t2')).toEqual(['One?', 'Yes.', 'Two?', 'Yes.', 'Three?', 'Yes.'])
    const { id } = (await sessions.messages('t2'))[4]!
    await sessions.fork('t2', { threadId: 't3', after: id })
    expect(await words('t3')).toEqual(['One?', 'Yes.', 'Two?', 'Yes.', 'Three?'])
    expect(await sessions.messages('t3', { last: 1 })).toHaveLength(1)
    expect(fork.snapshot.thread).toMatchObject({ title: 'Bills', tags: ['money'], metadata: { project: 'p' } })
    expect(fork.snapshot.thread.forkOf).toBe('t1')
    expect(fork.snapshot.runs).toHaveLength(1)
    expect(JSON.stringify(await sessions.messages('t1'))).toBe(before)
  })

  test('SB-19 SB-32 a fork of a thread that waits has a result for each call, and neither its items, queue nor permissions', async () => {
    const pay = tool('pay', () => 'Paid.', { requiresApproval: true })
    const model = new ScriptedModel().calls('pay').says('Paid.').calls('pay').says('Fine.')
    const sessions = sessionsOf({ log: open(), harness: harnessOf({ model, tools: [pay], use: [tasks()] }) })
    const chat = await sessions.open('t1')
    await done(chat, 'Pay.')
    await chat.answer([{ callId: chat.pending[0]?.callId ?? '', approved: true, remember: 'tool' }])
    await chat.whenIdle()
    await chat.revoke(chat.grants[0]?.id ?? '')
    await done(chat, 'Pay again.')
    await chat.send('Later.')
    await chat.set({ theme: 'dark' })
    const fork = await sessions.fork('t1')
    expect([fork.phase, fork.pending, fork.queue.list(), fork.grants]).toEqual(['idle', [], [], []])
    expect([fork.snapshot.thread.settings, fork.snapshot.tasks]).toEqual([{}, []])
    await done(fork, 'And here?')
    expect(said(fork)).toEqual(['user: And here?', 'assistant: Fine.'])
    const calls = model.requests.at(-1)?.entries ?? []
    expect(calls.filter(({ role }) => role === 'tool')).toEqual([])
    expect([chat.phase, chat.pending.length, chat.queue.list().length]).toEqual(['waiting', 1, 1])
    const other = await sessions.create()
    expect([other.grants, other.queue.list(), other.snapshot.thread.settings]).toEqual([[], [], {}])
  })

  test('SB-33 a thread is deleted with its runs, items and queue; others stay, and its id is free', async () => {
    const log = open()
    const pay = tool('pay', () => 'Paid.', { requiresApproval: true })
    const model = new ScriptedModel().says('Yes.').calls('pay').says('New.')
    const sessions = sessionsOf({ log, harness: harnessOf({ model, tools: [pay] }) })
    const other = await sessions.open('t2')
    await done(other, 'Stay.')
    const chat = await sessions.open('t1')
    await done(chat, 'Pay.')
    await chat.send('Later.')
    const runs = chat.snapshot.runs.map(({ runId }) => runId)
    await sessions.delete('t1')
    for (const id of runs) expect(await log.inspect({ kind: 'run', id })).toBe(null)
    expect(await log.inspect({ kind: 'thread', id: 't1' })).toBe(null)
    expect(await codeOf(chat.send('Still there?'))).toBe('thread_not_found')
    expect((await collect(sessions.list())).map(({ threadId }) => threadId)).toEqual(['t2'])
    expect(said(other)).toEqual(['user: Stay.', 'assistant: Yes.'])
    const again = await sessions.open('t1')
    expect([again.phase, again.queue.list(), again.snapshot.runs]).toEqual(['idle', [], []])
    await done(again, 'Hello?')
    expect(said(again)).toEqual(['user: Hello?', 'assistant: New.'])
  })

  test('sessions that were closed open nothing, also for who is opening a thread at that moment', async () => {
    const log = open()
    const sessions = sessionsOf({ log, harness: always() })
    await sessions.open('t1')
    const opening = codeOf(sessions.open('t1'))
    await sessions.close()
    expect([await opening, await codeOf(sessions.open('t1')), await codeOf(sessions.open('t2'))]).toEqual([
      ...['closed', 'closed', 'closed'],
    ])
    expect(await log.inspect({ kind: 'thread', id: 't2' })).toBe(null)
  })

  test('SB-34 changes of different settings by two sessions at once both survive', async () => {
    const log = open()
    const one = await sessionsOf({ log, harness: always() }).open('t1')
    const other = await sessionsOf({ log, harness: always() }).open('t1')
    const rounds = times(6, 50)
    for (let round = 0; round < rounds; round += 1)
      await Promise.all([one.set({ [`a${round}`]: round }), other.set({ [`b${round}`]: round })])
    const chat = await sessionsOf({ log, harness: always() }).open('t1')
    expect(Object.keys(chat.snapshot.thread.settings)).toHaveLength(2 * rounds)
  })

  test('SB-36 the last messages come oldest first; a thread without messages has none', async () => {
    const sessions = sessionsOf({ log: open(), harness: always() })
    const chat = await sessions.open('t1')
    expect(await sessions.messages('t1', { last: 2 })).toEqual([])
    await done(chat, 'One?')
    await done(chat, 'Two?')
    const last = await sessions.messages('t1', { last: 2 })
    expect(last.map(({ role }) => role)).toEqual(['user', 'assistant'])
    expect(last[0]).toMatchObject({ content: [{ type: 'text', text: 'Two?' }] })
  })

  test('SB-40 messages of one moment keep their order', async () => {
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() })
    try {
      const log = open()
      const chat = await sessionsOf({ log, harness: always() }).open('t1')
      const prompts = ['One?', 'Two?', 'Three?', 'Four?']
      for (const prompt of prompts) await done(chat, prompt)
      const again = await sessionsOf({ log, harness: always() }).open('t1')
      expect(said(again)).toEqual(prompts.flatMap((prompt) => [`user: ${prompt}`, 'assistant: Yes.']))
    } finally {
      vi.useRealTimers()
    }
  })
})

test('SB-37 SB-81 a list has the first message of each thread without reading them; reminders of the host are none', async () => {
  const log = memoryLog()
  const reminding = { name: 'clock', notices: () => [{ name: 'clock', text: 'It is noon.' }] }
  const sessions = sessionsOf({
    log,
    harness: harnessOf({ model: new ScriptedModel().always('Yes.'), use: [reminding] }),
  })
  for (let index = 0; index < 50; index += 1) await done(await sessions.open(`t${index}`), `Question ${index}\nMore.`)
  const [read, list] = [vi.spyOn(log, 'read'), vi.spyOn(log, 'list')]
  const items = await collect(sessions.list())
  expect(new Set(items.map(({ firstMessage }) => firstMessage))).toEqual(
    new Set(Array.from({ length: 50 }, (_, index) => `Question ${index}`)),
  )
  expect(list).toHaveBeenCalledOnce()
  expect(read.mock.calls.filter(([{ kind }]) => kind === 'thread')).toEqual([])
})

test('SB-25 a thread that another process owns can be read and written; it names its owner', async () => {
  const { opened, open: release } = gate()
  const model = new ScriptedModel().replies(async () => {
    await opened
    return 'One.'
  })
  const log = memoryLog()
  const owner = await sessionsOf({ log, harness: harnessOf({ model }) }).open('t1')
  const sent = await owner.send('Go.')
  const other = await sessionsOf({ log, harness: harnessOf({ model }) }).open('t1')
  expect([owner.owner, other.owner]).toEqual(['self', expect.any(String)])
  expect(other.phase).toBe('running')
  await other.rename('By the other')
  await until(owner, ({ kind }) => kind === 'title_changed')
  release()
  expect((await sent.done).status).toBe('completed')
})

/** Threads are listed by their times, which are milliseconds. */
async function later(): Promise<void> {
  const now = Date.now()
  await vi.waitFor(() => expect(Date.now()).toBeGreaterThan(now), { interval: 1 })
}

test('a conversation whose log has an unknown version is refused, and stays as it is', async () => {
  const log = memoryLog()
  const opened = {
    kind: 'thread_opened',
    version: 99,
    seq: 1,
    at: new Date().toISOString(),
    durable: true,
    after: null,
  }
  const thread = { threadId: 't1', resourceId: null, title: '', tags: [], metadata: {}, mode: 'default' }
  await log.append({ kind: 'thread', id: 't1' }, [{ ...opened, ...thread }], { digest: { mode: 'default' } })
  const sessions = sessionsOf({ log, harness: harnessOf({ model: new ScriptedModel() }) })
  for (const call of [sessions.open('t1'), sessions.messages('t1'), sessions.fork('t1')])
    await expect(call).rejects.toMatchObject({
      code: 'invalid_log',
      message: expect.stringContaining('`99`') as string,
    })
  expect((await log.inspect({ kind: 'thread', id: 't1' }))?.lastSeq).toBe(1)
})

test('the log of something else is no conversation: it is not listed, and cannot be opened', async () => {
  const log = memoryLog()
  const noted = { kind: 'noted', seq: 1, at: new Date().toISOString(), durable: true, threadId: 'notes' }
  await log.append({ kind: 'thread', id: 'notes' }, [noted], { digest: { notes: 1 } })
  await log.append({ kind: 'thread', id: 'prompts:a' }, [{ ...noted, threadId: 'prompts:a' } as never], {})
  const sessions = sessionsOf({ log, harness: harnessOf({ model: new ScriptedModel() }) })
  expect(await collect(sessions.list())).toEqual([])
  for (const id of ['notes', 'prompts:a']) expect(await codeOf(sessions.messages(id))).toBe('thread_not_found')
  expect(await codeOf(sessions.open('notes'))).toBe('thread_not_found')
  expect(await codeOf(sessions.create({ threadId: 'keys:b' }))).toBe('invalid_options')
})
