import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { compression, fileLog, memoryLog } from 'thinharness'
import type { LogEvent, LogRef, LogStore } from 'thinharness'
import { copyLogs } from 'thinharness/session'
import type { Sessions } from 'thinharness/session'
import { ScriptedModel } from 'thinharness/testing'
import { harnessOf, tool } from '../harness/support.js'
import { collect } from '../support/collect.js'
import { allStores, processLog, said, sessionsOf, temporaryFolder, until } from './support.js'

const stores = await allStores()
const look = tool('look', () => 'seen')
const pay = tool('pay', () => 'paid', { requiresApproval: true })

function desk(log: LogStore, model: ScriptedModel): Sessions {
  return sessionsOf({ log, harness: harnessOf({ model, tools: [look, pay] }) })
}

async function refs(log: LogStore): Promise<readonly LogRef[]> {
  const runs = await collect(log.list())
  const threads = await collect(log.list({ kind: 'thread' }))
  return [
    ...runs.map(({ runId: id }) => ({ kind: 'run', id }) as const),
    ...threads.map(({ threadId: id }) => ({ kind: 'thread', id }) as const),
  ]
}

/** Everything that a store says of its logs, but for places within it. */
async function contents(log: LogStore): Promise<unknown> {
  const all: unknown[] = []
  for (const ref of await refs(log)) {
    const { cursor: _, ...summary } = (await log.inspect(ref)) as { cursor: string }
    all.push([summary, await collect(log.read<LogEvent>(ref))])
  }
  return all
}

/** A store with everything that can wait, and nobody who uses it. */
async function fill(log: LogStore): Promise<void> {
  const long = new ScriptedModel()
  for (let turn = 0; turn < 45; turn += 1) long.calls('look')
  const done = desk(log, long.says('One.').says('Two.'))
  const talk = await done.open('talk')
  await (
    await talk.send('1')
  ).done
  await (
    await talk.send('2')
  ).done
  await talk.rename('Title')
  await done.fork('talk', { threadId: 'fork' })
  await done.close()
  const asking = desk(log, new ScriptedModel().calls('pay'))
  const waiting = await asking.open('waiting')
  await waiting.send('Pay.')
  await until(waiting, ({ kind }) => kind === 'approval_requested')
  await waiting.send('Behind it.')
  await asking.close()
  const { runId } = await harnessOf({ model: new ScriptedModel().calls('pay'), tools: [pay], log }).run('Pay.')
  expect((await log.inspect({ kind: 'run', id: runId }))?.status).toBe('paused')
  await harnessOf({ model: new ScriptedModel(), log }).queue('Later.', { runId: 'queued' })
  const { log: dying, kill } = processLog(log)
  const harness = harnessOf({
    model: new ScriptedModel().calls('die'),
    tools: [tool('die', () => kill().then(() => new Promise(() => undefined)))],
    log: dying,
  })
  void harness.run('Die.', { runId: 'interrupted' }).catch(() => undefined)
  while ((await log.inspect({ kind: 'run', id: 'interrupted' }))?.status !== 'interrupted')
    await new Promise(setImmediate)
}

describe.each(stores)('from %s', (_from, openSource) => {
  test.each(stores)(
    'all logs are copied to %s, and what waits in them goes on there',
    { timeout: 60_000 },
    async (_to, openTarget) => {
      const [from, to] = [openSource(), openTarget()]
      await fill(from)
      const before = await contents(from)
      expect(await copyLogs(from, to)).toEqual({ copied: (await refs(from)).length, present: 0, left: [] })
      expect(await contents(from)).toEqual(before)
      expect(await contents(to)).toEqual(before)
      expect(await copyLogs(from, to)).toMatchObject({ copied: 0, left: [] })

      const sessions = desk(to, new ScriptedModel().says('Paid.').says('Read.').says('Three.'))
      const waiting = await sessions.open('waiting')
      const [item] = waiting.pending
      await waiting.answer([{ callId: item?.callId ?? '', approved: true }])
      await waiting.whenIdle()
      // A queue that another process has left is held.
      await waiting.queue.release()
      await waiting.whenIdle()
      expect(said(waiting).filter((line) => line !== 'assistant: ')).toEqual([
        ...['user: Pay.', 'assistant: Paid.', 'user: Behind it.', 'assistant: Read.'],
      ])
      const talk = await sessions.open('talk')
      expect([talk.snapshot.thread.title, (await (await talk.send('3')).done).text]).toEqual(['Title', 'Three.'])
      const harness = harnessOf({ model: new ScriptedModel().says('Done.'), tools: [tool('die', () => 'no')], log: to })
      expect((await harness.recover('queued')).text).toBe('Done.')
      expect((await to.waiting()).map(({ runId }) => runId)).toEqual(['interrupted'])
      // A conversation keeps its runs there too.
      const run = talk.snapshot.runs[0]?.runId ?? ''
      expect(await to.prune({ only: [{ kind: 'run', id: run }] })).toBe(0)
    },
  )
})

describe('a second copy', () => {
  test('brings what has been stored since', async () => {
    const [from, to] = [memoryLog(), memoryLog()]
    const sessions = desk(from, new ScriptedModel().says('One.').says('Two.'))
    const chat = await sessions.open('talk')
    await (
      await chat.send('1')
    ).done
    await sessions.close()
    await copyLogs(from, to)
    const again = desk(from, new ScriptedModel().says('Two.'))
    await (
      await (await again.open('talk')).send('2')
    ).done
    await again.close()
    expect(await copyLogs(from, to)).toEqual({ copied: 2, present: 1, left: [] })
    expect(await contents(to)).toEqual(await contents(from))
  })

  test('leaves a log alone that has gone on in the target, and one of that name with other events', async () => {
    const [from, to] = [memoryLog(), memoryLog()]
    const begin = (log: LogStore): Promise<unknown> =>
      harnessOf({ model: new ScriptedModel().says('x'), log }).run('Go.', { runId: 'run_1' })
    await begin(from)
    const paused = harnessOf({ model: new ScriptedModel().calls('pay').says('x'), tools: [pay], log: from })
    const { pending } = await paused.run('Pay.', { runId: 'run_2' })
    await copyLogs(from, to)
    const answers = [{ callId: pending[0]?.callId ?? '', approved: true }]
    await harnessOf({ model: new ScriptedModel().says('x'), tools: [pay], log: to }).resume('run_2', answers)
    const after = await contents(to)
    expect(await copyLogs(from, to)).toEqual({ copied: 0, present: 2, left: [] })
    expect(await contents(to)).toEqual(after)
    const other = memoryLog()
    await begin(other)
    expect(await copyLogs(from, other)).toEqual({ copied: 1, present: 0, left: [{ kind: 'run', id: 'run_1' }] })
  })
})

test('a log that a process owns is left, on either side, and copied later; the claims are given back', async () => {
  const [from, to] = [memoryLog(), memoryLog()]
  const ref = { kind: 'run', id: 'run_1' } as const
  await harnessOf({ model: new ScriptedModel().says('x'), log: from }).run('Go.', { runId: 'run_1' })
  for (const log of [from, to]) {
    await log.claim(ref, 'somebody', 60_000)
    expect(await copyLogs(from, to)).toEqual({ copied: 0, present: 0, left: [ref] })
    await log.claim(ref, 'somebody', 0)
  }
  expect(await copyLogs(from, to)).toEqual({ copied: 1, present: 0, left: [] })
  for (const log of [from, to]) expect(await log.claim(ref, 'anybody', 1000)).toBe(true)
})

test('a damaged log is left, and keeps no other from being copied', async () => {
  const folder = temporaryFolder()
  const begin = (runId: string): Promise<unknown> =>
    harnessOf({ model: new ScriptedModel().says('x'), log: fileLog(folder) }).run('Go.', { runId })
  await begin('run_1')
  const [name = ''] = readdirSync(folder).filter((each) => each.endsWith('.jsonl'))
  await begin('run_2')
  writeFileSync(join(folder, name), '{"kind":"run_started"}\n{"no": "event"}\n')
  const to = memoryLog()
  expect(await copyLogs(fileLog(folder), to)).toEqual({ copied: 1, present: 0, left: [{ kind: 'run', id: 'run_1' }] })
  expect(await refs(to)).toEqual([{ kind: 'run', id: 'run_2' }])
})

test('messages to the owner of a conversation come with it, once; the form of the records is that of the target', async () => {
  const [from, to] = [memoryLog(), fileLog(temporaryFolder(), { cipher: compression() })]
  const sessions = desk(from, new ScriptedModel())
  await sessions.create({ threadId: 'talk' })
  await sessions.close()
  const ref = { kind: 'thread', id: 'talk' } as const
  await from.post(ref, { id: 'post_1', body: { text: 'Hello.' } })
  await copyLogs(from, to)
  await copyLogs(from, to)
  await to.claim(ref, 'me', 60_000)
  expect(await to.takePosts(ref, 'me')).toEqual([{ id: 'post_1', body: { text: 'Hello.' } }])
})

test('anything but two stores is refused, and says what was expected', async () => {
  const runsOnly = { append: () => Promise.resolve(), read: () => [] } as unknown as LogStore
  for (const other of [runsOnly, undefined, 'runs'])
    await expect(copyLogs(memoryLog(), other as LogStore)).rejects.toMatchObject({
      code: 'invalid_options',
      message: expect.stringContaining('two stores') as string,
    })
})
