import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { defineTool, Harness } from 'thinharness'
import type { LogStore } from 'thinharness'
import type { Chat } from 'thinharness/session'
import { ScriptedModel } from 'thinharness/testing'
import { harnessOf, tool } from '../harness/support.js'
import { allStores, codeOf, gate, said, sessionsOf, until } from './support.js'

describe.each(await allStores())('a conversation in the %s log', (_name, open) => {
  test('continues with each message, and its runs refer to the ones before', async () => {
    const log = open()
    const model = new ScriptedModel().says('Hello.').says('You said: Hi.')
    const chat = await sessionsOf({ log, harness: harnessOf({ model }) }).open('t1')
    const first = await chat.send('Hi.')
    expect(first.status).toBe('started')
    expect(await first.done).toMatchObject({ status: 'completed', text: 'Hello.', result: { output: 'Hello.' } })
    const second = await chat.send('What did I say?')
    expect(await second.done).toMatchObject({ status: 'completed', text: 'You said: Hi.' })
    expect(model.requests[1]?.transcriptLength).toBe(3)
    expect(said(chat)).toEqual(['user: Hi.', 'assistant: Hello.', 'user: What did I say?', 'assistant: You said: Hi.'])
    expect(chat.phase).toBe('idle')
  })

  test('SB-61 messages during a run are queued, and each has a run of its own, in order', async () => {
    const { opened, open: release } = gate()
    const model = new ScriptedModel().replies(async () => {
      await opened
      return 'One.'
    })
    model.says('Two.').says('Three.')
    const chat = await sessionsOf({ log: open(), harness: harnessOf({ model }) }).open()
    const first = await chat.send('1')
    const [second, third] = [await chat.send('2'), await chat.send('3')]
    expect([second.status, third.status]).toEqual(['queued', 'queued'])
    expect(chat.queue.list().map(({ content }) => content)).toEqual([
      [{ type: 'text', text: '2' }],
      [{ type: 'text', text: '3' }],
    ])
    release()
    const ends = await Promise.all([first.done, second.done, third.done])
    expect(ends.map(({ text }) => text)).toEqual(['One.', 'Two.', 'Three.'])
    expect(chat.queue.list()).toEqual([])
  })

  test('SB-69 a steer during a batch is in the very next request, and the run is not begun again', async () => {
    const { opened, open: release } = gate()
    const slow = tool('slow', () => opened.then(() => 'done'))
    const model = new ScriptedModel().calls('slow').says('Noted.')
    const chat = await sessionsOf({ log: open(), harness: harnessOf({ model, tools: [slow] }) }).open()
    const sent = await chat.send('Go.')
    await until(chat, ({ kind }) => kind === 'tool_call_started')
    const steer = await chat.steer('And be quick.', { messageId: 'm2' })
    expect(steer.status).toBe('steered')
    release()
    expect((await steer.done).runId).toBe((await sent.done).runId)
    expect(chat.snapshot.runs).toHaveLength(1)
    expect(chat.snapshot.runs[0]?.entries.find((entry) => entry.role === 'user')).toMatchObject({ messageId: 'm2' })
  })

  test('SB-67 after a cancel the queue is held; a new message comes after it, and releases it', async () => {
    const never = tool(
      'never',
      (_args, { signal }) => new Promise((_, reject) => signal.addEventListener('abort', reject)),
    )
    const model = new ScriptedModel().calls('never').says('A.').says('B.')
    const chat = await sessionsOf({ log: open(), harness: harnessOf({ model, tools: [never] }) }).open()
    const first = await chat.send('Go.')
    await until(chat, ({ kind }) => kind === 'tool_call_started')
    const a = await chat.send('A?')
    await chat.cancel()
    expect(await first.done).toMatchObject({ status: 'cancelled' })
    expect([chat.phase, chat.queue.held, chat.queue.list().length]).toEqual(['idle', true, 1])
    const b = await chat.send('B?')
    expect(b.status).toBe('queued')
    expect([(await a.done).text, (await b.done).text]).toEqual(['A.', 'B.'])
    expect(said(chat).slice(0, 1)).toEqual(['user: Go.'])
  })

  test('SB-68 a cancel that drops the queue gives the messages back', async () => {
    const never = tool(
      'never',
      (_args, { signal }) => new Promise((_, reject) => signal.addEventListener('abort', reject)),
    )
    const model = new ScriptedModel().calls('never')
    const chat = await sessionsOf({ log: open(), harness: harnessOf({ model, tools: [never] }) }).open()
    await chat.send('Go.')
    await until(chat, ({ kind }) => kind === 'tool_call_started')
    const a = await chat.send('A?', { messageId: 'a' })
    expect((await chat.cancel({ queue: 'drop' })).map(({ messageId }) => messageId)).toEqual(['a'])
    expect(await a.done).toMatchObject({ status: 'removed', runId: null })
  })

  test('SB-72 an interrupting message comes first, and the queue after it', async () => {
    const never = tool(
      'never',
      (_args, { signal }) => new Promise((_, reject) => signal.addEventListener('abort', reject)),
    )
    const model = new ScriptedModel().calls('never').says('Now.').says('Later.')
    const chat = await sessionsOf({ log: open(), harness: harnessOf({ model, tools: [never] }) }).open()
    await chat.send('Go.')
    await until(chat, ({ kind }) => kind === 'tool_call_started')
    const queued = await chat.send('Later?')
    const now = await chat.steer('Now!', { interrupt: true })
    expect((await now.done).text).toBe('Now.')
    expect((await queued.done).text).toBe('Later.')
  })

  test('SB-73 a failed run holds the queue, and release continues it', async () => {
    const { opened, open: release } = gate()
    const model = new ScriptedModel().replies(async () => {
      await opened
      return { fault: 'error', error: new Error('Down.') }
    })
    model.says('Up again.')
    const chat = await sessionsOf({ log: open(), harness: harnessOf({ model }) }).open()
    const first = await chat.send('1')
    const second = await chat.send('2')
    release()
    expect(await first.done).toMatchObject({ status: 'failed', error: { code: 'error' } })
    await chat.whenIdle()
    expect(chat.queue.held).toBe(true)
    await chat.queue.release()
    expect((await second.done).text).toBe('Up again.')
  })

  test('SB-74 the message of a run that cannot begin is at the head of the queue', async () => {
    const chat = await sessionsOf({ log: open(), harness: harnessOf({}) }).open()
    const sent = await chat.send('Hi.', { messageId: 'm1' })
    expect(await sent.done).toMatchObject({ status: 'failed' })
    await chat.whenIdle()
    const isThere = chat.snapshot.runs.some(({ prompt }) => prompt.length > 0)
    expect(isThere || chat.queue.list().some(({ messageId }) => messageId === 'm1')).toBe(true)
  })

  test('SB-85 answers in parts and in any order; the first counts, a later one is stale', async () => {
    const ran: string[] = []
    const pay = defineTool({
      name: 'pay',
      description: 'Pays.',
      parameters: z.object({ to: z.string() }),
      requiresApproval: true,
      handler: ({ to }) => void ran.push(to),
    })
    const model = new ScriptedModel()
      .callsAll([
        { name: 'pay', arguments: { to: 'a' } },
        { name: 'pay', arguments: { to: 'b' } },
      ])
      .says('Paid.')
    const chat = await sessionsOf({ log: open(), harness: harnessOf({ model, tools: [pay] }) }).open()
    const sent = await chat.send('Pay.')
    expect((await sent.done).status).toBe('paused')
    expect([chat.phase, chat.pending.map(({ callId }) => callId)]).toEqual(['waiting', ['call_1', 'call_2']])
    expect(await chat.answer([{ callId: 'call_2', approved: true }], { by: 'ann' })).toEqual([
      { callId: 'call_2', status: 'accepted' },
    ])
    expect(await chat.answer([{ callId: 'call_2', approved: false }])).toEqual([{ callId: 'call_2', status: 'stale' }])
    expect(ran).toEqual([])
    expect(await chat.answer([{ callId: 'call_1', approved: false, reason: 'Too much.' }])).toMatchObject([
      { status: 'accepted' },
    ])
    await chat.whenIdle()
    expect([ran, chat.phase]).toEqual([['b'], 'idle'])
  })

  test('SB-97 an invalid answer is refused, and the item stays', async () => {
    const ask = tool('ask', (_args, context) => context.ask({ q: 'How many?' }, z.number()))
    const model = new ScriptedModel().calls('ask').says('Three.')
    const chat = await sessionsOf({ log: open(), harness: harnessOf({ model, tools: [ask] }) }).open()
    await (
      await chat.send('Ask me.')
    ).done
    await expect(chat.answer([{ callId: 'call_1', answer: 'many' }])).rejects.toMatchObject({ code: 'invalid_answer' })
    expect([chat.phase, chat.pending.length]).toEqual(['waiting', 1])
    await chat.answer([{ callId: 'call_1', answer: 3 }])
    await chat.whenIdle()
    expect(said(chat).at(-1)).toBe('assistant: Three.')
  })

  test('SB-62 a message while people are waited for is queued, or declines the questions', async () => {
    const ask = tool('ask', (_args, context) => context.ask({ q: 'How many?' }, z.number()))
    const model = new ScriptedModel().calls('ask').says('As you like.').says('Next.')
    const chat = await sessionsOf({ log: open(), harness: harnessOf({ model, tools: [ask] }) }).open()
    await (
      await chat.send('Ask me.')
    ).done
    const queued = await chat.send('Later.')
    expect([queued.status, chat.phase]).toEqual(['queued', 'waiting'])
    const declining = await chat.send('Never mind.', { whenBusy: 'decline' })
    expect(declining.status).toBe('steered')
    expect((await declining.done).text).toBe('As you like.')
    expect((await queued.done).text).toBe('Next.')
  })

  test('SB-100 a cancel while people are waited for ends the run, and the next message works', async () => {
    const pay = tool('pay', () => 'paid', { requiresApproval: true })
    const model = new ScriptedModel().calls('pay').says('Fine.')
    const chat = await sessionsOf({ log: open(), harness: harnessOf({ model, tools: [pay] }) }).open()
    await (
      await chat.send('Pay.')
    ).done
    await chat.cancel()
    expect([chat.phase, chat.pending]).toEqual(['idle', []])
    expect((await (await chat.send('Go on.')).done).text).toBe('Fine.')
  })

  test('SB-46 modes are harnesses, and a model is chosen for each', async () => {
    const plan = harnessOf({ model: new ScriptedModel().says('Planned.') })
    const build = harnessOf({ model: new ScriptedModel().says('Built.').says('Built by hand.') })
    const chat = await sessionsOf({ log: open(), modes: { plan, build }, defaultMode: 'plan' }).open()
    expect((await (await chat.send('Go.')).done).text).toBe('Planned.')
    await chat.setMode('build')
    expect((await (await chat.send('Go.')).done).text).toBe('Built.')
    await chat.setMode('plan')
    expect((await (await chat.send('Go.', { mode: 'build' })).done).text).toBe('Built by hand.')
    expect(chat.snapshot.thread.mode).toBe('plan')
    expect(await codeOf(chat.setMode('other' as never))).toBe('unknown_mode')
  })

  test('SB-44 SB-75 another session finds thread, title, tags, mode, settings, queue and pending items', async () => {
    const log = open()
    const pay = tool('pay', () => 'paid', { requiresApproval: true })
    const model = new ScriptedModel().calls('pay').says('Paid.').says('Next.')
    const harness = harnessOf({ model, tools: [pay] })
    const before = sessionsOf({ log, harness, settings: z.object({ theme: z.string().optional() }) })
    const mine = before.for({ resourceId: 'ann' })
    const chat = await mine.create({ threadId: 't1', title: 'Bills', tags: ['money'] })
    await (
      await chat.send('Pay.')
    ).done
    await chat.send('And then?')
    await chat.set({ theme: 'dark' })
    expect(await codeOf(chat.set({ theme: 3 }))).toBe('invalid_settings')
    await before.close()
    const after = sessionsOf({ log, harness })
    const again = await after.for({ resourceId: 'ann' }).open('t1')
    expect(again.snapshot.thread).toMatchObject({ title: 'Bills', tags: ['money'], settings: { theme: 'dark' } })
    expect([again.phase, again.queue.list().length, again.pending.length]).toEqual(['waiting', 1, 1])
    expect((await collect(after.inbox())).map(({ threadId, title }) => [threadId, title])).toEqual([['t1', 'Bills']])
    await again.answer([{ callId: 'call_1', approved: true }])
    await again.whenIdle()
    expect(again.queue.held).toBe(true)
    await again.queue.release()
    await again.whenIdle()
    expect(said(again).at(-1)).toBe('assistant: Next.')
    expect(await codeOf(after.for({ resourceId: 'bob' }).messages('t1'))).toBe('thread_not_found')
  })

  test('XL-01 a reader that comes in the middle, and one that comes back with a cursor, miss nothing', async () => {
    const { opened, open: release } = gate()
    const model = new ScriptedModel().says('One two three.').replies(async () => {
      await opened
      return 'Four five.'
    })
    const chat = await sessionsOf({ log: open(), harness: harnessOf({ model }) }).open()
    await (
      await chat.send('Count.')
    ).done
    const second = await chat.send('On.')
    const early = await read(chat, 4)
    const all = read(chat, 1000, 'Four five.')
    const rest = read(chat, 1000, 'Four five.', early.at(-1)?.cursor)
    release()
    await second.done
    const durable = (events: readonly { durable: boolean; cursor: string }[]): string[] =>
      events.filter((event) => event.durable).map(({ cursor }) => cursor)
    expect([...durable(early), ...durable(await rest)]).toEqual(durable(await all))
    expect(new Set(durable(await all)).size).toBe(durable(await all).length)
  })

  test('SB-31 a fork continues the conversation on its own', async () => {
    const model = new ScriptedModel().says('One.').says('Two.').says('Other two.')
    const sessions = sessionsOf({ log: open(), harness: harnessOf({ model }) })
    const chat = await sessions.open('t1')
    await (
      await chat.send('1')
    ).done
    const [, first] = await sessions.messages('t1')
    await (
      await chat.send('2')
    ).done
    const fork = await sessions.fork('t1', { after: first?.id ?? '' })
    expect((await (await fork.send('2b')).done).text).toBe('Other two.')
    expect(model.requests[2]?.transcriptLength).toBe(3)
    await sessions.delete('t1')
    expect(await codeOf(sessions.messages('t1'))).toBe('thread_not_found')
    expect(said(fork)).toEqual(['user: 2b', 'assistant: Other two.'])
  })

  test('an interrupted run is continued by the next message, and by nothing else', async () => {
    const log = open()
    const { opened, open: release } = gate()
    const slow = tool('slow', () => opened.then(() => 'done'))
    const first = sessionsOf({ log, harness: harnessOf({ model: new ScriptedModel().calls('slow'), tools: [slow] }) })
    const before = await first.open('t1')
    const sent = await before.send('Go.')
    await until(before, ({ kind }) => kind === 'tool_call_started')
    const closing = first.close()
    release()
    await closing
    expect((await sent.done).status).toBe('left')
    const model = new ScriptedModel().says('Recovered.')
    const chat = await sessionsOf({ log, harness: harnessOf({ model, tools: [slow] }) }).open('t1')
    expect(chat.phase).toBe('interrupted')
    expect(model.requests).toHaveLength(0)
    const next = await chat.send('Still there?')
    expect(next.status).toBe('steered')
    expect((await next.done).text).toBe('Recovered.')
    expect(chat.snapshot.runs).toHaveLength(1)
  })

  test('SB-22 SB-25 a second session follows the owner, and its messages reach it', async () => {
    const log: LogStore = open()
    const model = new ScriptedModel().says('One.').says('Two.')
    const harness = harnessOf({ model })
    const owner = await sessionsOf({ log, harness }).open('t1')
    await (
      await owner.send('1')
    ).done
    const other = await sessionsOf({ log, harness: new Harness({ builtinTools: [] }) }).open('t1')
    expect([owner.owner, other.owner]).toEqual(['self', expect.any(String)])
    const sent = await other.send('2')
    expect(sent.status).toBe('started')
    expect(await sent.done).toMatchObject({ status: 'completed', text: 'Two.' })
    expect(said(other)).toEqual(said(owner))
  })

  test('a message with a known id is not delivered again', async () => {
    const model = new ScriptedModel().says('One.')
    const chat = await sessionsOf({ log: open(), harness: harnessOf({ model }) }).open()
    await (
      await chat.send('1', { messageId: 'm1' })
    ).done
    const again = await chat.send('1', { messageId: 'm1' })
    expect(await again.done).toMatchObject({ status: 'completed', text: 'One.' })
    await chat.whenIdle()
    expect(model.requests).toHaveLength(1)
  })
})

async function collect<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const all: Item[] = []
  for await (const item of items) all.push(item)
  return all
}

/** The next events of a conversation: at most so many, up to the end of the run whose text is `last`. */
async function read(
  chat: Chat,
  most: number,
  last = '',
  after?: string,
): Promise<{ cursor: string; durable: boolean }[]> {
  const over = new AbortController()
  const events: { cursor: string; durable: boolean }[] = []
  let text = ''
  for await (const event of chat.events({ after, signal: over.signal })) {
    events.push(event)
    if (event.kind === 'model_message')
      text = event.entry.parts.map((part) => ('text' in part ? part.text : '')).join('')
    if (events.length === most || (event.kind === 'run_completed' && text === last)) break
  }
  over.abort()
  return events
}
