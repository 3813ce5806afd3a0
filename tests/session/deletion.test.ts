import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { fileLog, memoryLog } from 'thinharness'
import type { LogRef, LogStore } from 'thinharness'
import type { Chat } from 'thinharness/session'
import { sqliteLog } from 'thinharness/store/sqlite'
import { ScriptedModel } from 'thinharness/testing'
import { openDatabase } from '#store/sqlite.js'
import { harnessOf, tool } from '../harness/support.js'
import { collect } from '../support/collect.js'
import { allStores, codeOf, gate, said, sessionsOf, temporaryFolder } from './support.js'

const stores = await allStores()

function always(): ReturnType<typeof harnessOf> {
  return harnessOf({ model: new ScriptedModel().always('Yes.') })
}

function fakeTimers(): void {
  vi.useFakeTimers({ toFake: ['Date', 'setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] })
  onTestFinished(() => void vi.useRealTimers())
}

/** Those of the logs that have an event. */
async function left(log: LogStore, refs: readonly LogRef[]): Promise<readonly string[]> {
  const found: string[] = []
  for (const ref of refs) if ((await log.inspect(ref)) !== null) found.push(`${ref.kind} ${ref.id}`)
  return found
}

function logsOf(chat: Chat): readonly LogRef[] {
  const runs = chat.snapshot.runs.map(({ runId }): LogRef => ({ kind: 'run', id: runId }))
  return [{ kind: 'thread', id: chat.threadId }, ...runs]
}

async function done(chat: Chat, text: string): Promise<void> {
  await (
    await chat.send(text)
  ).done
}

describe.each(stores)('a thread that another process has, in %s', (_, open) => {
  test('SB-33 is deleted with its runs at once if nothing is in progress there, and is a new one when it is opened again', async () => {
    const log = open()
    const model = new ScriptedModel().says('One.').says('New.')
    const [here, there] = [sessionsOf({ log, harness: always() }), sessionsOf({ log, harness: harnessOf({ model }) })]
    const chat = await there.open('t1')
    await done(chat, '1')
    const logs = logsOf(chat)
    const other = await here.open('t1')
    const reading = Promise.all([chat, other].map((each) => collect(each.events())))
    await here.delete('t1')
    expect(await left(log, logs)).toEqual([])
    const [ofChat, ofOther] = await reading
    expect(ofOther).toEqual(ofChat)
    expect([await codeOf(other.send('Still there?')), await codeOf(chat.send('Still there?'))]).toEqual([
      'thread_not_found',
      'thread_not_found',
    ])
    expect(await left(log, logs)).toEqual([])
    const again = await there.open('t1')
    expect(again.snapshot.runs).toEqual([])
    await done(again, '2')
    expect(said(again)).toEqual(['user: 2', 'assistant: New.'])
  })

  test('SB-33 is deleted after its run there was cancelled; senders there are told', async () => {
    const log = open()
    const started = gate()
    const wait = tool('wait', async (_args, { signal }) => {
      started.open()
      await new Promise((resolve) => signal.addEventListener('abort', resolve))
      return 'Stopped.'
    })
    const harness = harnessOf({ model: new ScriptedModel().calls('wait'), tools: [wait] })
    const chat = await sessionsOf({ log, harness }).open('t1')
    const [first, second] = [await chat.send('1'), await chat.send('2')]
    await started.opened
    const logs = logsOf(chat)
    await sessionsOf({ log, harness: always() }).delete('t1')
    expect(await left(log, logs)).toEqual([])
    expect([(await first.done).status, (await second.done).status]).toEqual(['cancelled', 'removed'])
  })

  test('SB-33 is not written by a process that does not know yet that it was deleted, and begun anew', async () => {
    const log = open()
    const model = new ScriptedModel().says('One.').says('Two.')
    const here = sessionsOf({ log, harness: harnessOf({ model }) })
    const chat = await here.open('t1')
    await done(chat, '1')
    await chat.release()
    const there = sessionsOf({ log, harness: always() })
    await there.delete('t1')
    await there.create({ threadId: 't1', title: 'Anew' })
    expect(await codeOf(chat.send('Still there?'))).toBe('thread_not_found')
    const again = await here.open('t1')
    expect([again.snapshot.thread.title, again.snapshot.runs]).toEqual(['Anew', []])
    await done(again, '2')
    expect(said(again)).toEqual(['user: 2', 'assistant: Two.'])
  })
})

test('SB-33 a thread is not deleted, and loses no run, if its owner does not give it up', async () => {
  fakeTimers()
  const log = memoryLog()
  const sessions = sessionsOf({ log, harness: always() })
  const chat = await sessions.open('t1')
  await done(chat, '1')
  await chat.release()
  await log.claim({ kind: 'thread', id: 't1' }, 'another', 60_000)
  const deleting = codeOf(sessions.delete('t1'))
  await vi.advanceTimersByTimeAsync(25_000)
  expect(await deleting).toBe('thread_owned')
  expect(await left(log, logsOf(chat))).toHaveLength(2)
})

test('SB-33 a thread is not deleted while a process still has one of its runs', async () => {
  fakeTimers()
  const log = memoryLog()
  const sessions = sessionsOf({ log, harness: always() })
  const chat = await sessions.open('t1')
  await done(chat, '1')
  const [, run] = logsOf(chat)
  await log.claim(run!, 'another', 60_000)
  const deleting = codeOf(sessions.delete('t1'))
  await vi.advanceTimersByTimeAsync(25_000)
  expect(await deleting).toBe('thread_owned')
  expect(await left(log, logsOf(chat))).toHaveLength(2)
  await log.claim(run!, 'another', 0)
  await sessions.delete('t1')
  expect(await left(log, logsOf(chat))).toEqual([])
})

test('SB-33 a fork is deleted while the run of its source that it continues is in progress; that one stays', async () => {
  const log = memoryLog()
  const [started, waited] = [gate(), gate()]
  const wait = tool('wait', async () => {
    started.open()
    await waited.opened
    return 'Done.'
  })
  const model = new ScriptedModel().calls('wait').says('Waited.')
  const sessions = sessionsOf({ log, harness: harnessOf({ model, tools: [wait] }) })
  const chat = await sessions.open('t1')
  const sent = await chat.send('1')
  await started.opened
  const fork = await sessions.fork('t1', { threadId: 't2' })
  expect(fork.snapshot.thread.history?.runId).toBe(chat.snapshot.runs[0]?.runId)
  await sessions.delete('t2')
  expect(await left(log, [{ kind: 'thread', id: 't2' }])).toEqual([])
  expect(await left(log, logsOf(chat))).toHaveLength(2)
  waited.open()
  expect((await sent.done).text).toBe('Waited.')
})

test('SB-33 the sender of a message that nobody has read is told that the thread was deleted', async () => {
  fakeTimers()
  const log = memoryLog()
  const chat = await sessionsOf({ log, harness: always() }).open('t1')
  const ref = { kind: 'thread', id: 't1' } as const
  await log.claim(ref, 'another', 60_000)
  const sending = chat.send('1')
  await vi.advanceTimersByTimeAsync(11_000)
  const { status, done: end } = await sending
  expect(status).toBe('posted')
  await log.prune({ only: [ref], owner: 'another' })
  await vi.advanceTimersByTimeAsync(2_000)
  expect((await end).status).toBe('removed')
  expect(vi.getTimerCount()).toBe(0)
})

test('SB-33 a thread that is deleted while a message comes is gone, and the message has an end', async () => {
  const log = memoryLog()
  const [here, there] = [sessionsOf({ log, harness: always() }), sessionsOf({ log, harness: always() })]
  for (let round = 0; round < 20; round += 1) {
    const chat = await there.open('t1')
    await done(chat, 'Before.')
    const logs = logsOf(chat)
    const sending = chat.send('Late.').then(
      async (sent) => (await sent.done).status,
      () => 'refused',
    )
    for (let step = 0; step < round; step += 1) await Promise.resolve()
    await here.delete('t1')
    expect(await left(log, logs)).toEqual([])
    expect(['completed', 'cancelled', 'removed', 'refused']).toContain(await sending)
  }
})

/** The files of a folder that contain a text. */
function filesWith(folder: string, text: string): readonly string[] {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  return files.flatMap(({ parentPath, name }) => (readFileSync(join(parentPath, name)).includes(text) ? [name] : []))
}

test.each([
  ['files', (folder: string) => fileLog(folder)],
  ['SQLite', (folder: string) => sqliteLog(join(folder, 'chat.db'))],
])('SB-33 the text of a thread that was deleted leaves the %s; that of a fork stays', async (_, open) => {
  const folder = temporaryFolder()
  const log = open(folder)
  const model = new ScriptedModel().always(`The answer is SECRET-${'x'.repeat(600)}.`)
  const sessions = sessionsOf({ log, harness: harnessOf({ model }) })
  const chat = await sessions.open('t1')
  for (const text of ['First SECRET.', `Second SECRET-${'y'.repeat(30_000)}.`]) await done(chat, text)
  await chat.rename('About the SECRET')
  await sessions.fork('t1', { threadId: 't2', title: 'Fork' })
  await sessions.delete('t1')
  expect(filesWith(folder, 'About the SECRET')).toEqual([])
  expect(filesWith(folder, 'First SECRET')).not.toEqual([])
  await sessions.delete('t2')
  expect(filesWith(folder, 'SECRET')).toEqual([])
})

/** Breaks the second record of a run, as a disk or an editor does. */
const DAMAGE: readonly (readonly [
  string,
  (folder: string) => LogStore,
  (folder: string, runId: string) => Promise<void>,
])[] = [
  [
    'file',
    (folder) => fileLog(folder),
    async (folder, runId) => {
      const path = join(folder, `${runId}.jsonl`)
      const [first, second = '', ...rest] = readFileSync(path, 'utf8').split('\n')
      writeFileSync(path, [first, second.slice(1), ...rest].join('\n'))
    },
  ],
  [
    'SQLite',
    (folder) => sqliteLog(join(folder, 'x.db')),
    async (folder, runId) => {
      const database = await openDatabase(join(folder, 'x.db'), 'normal')
      database.exec(`update events set event = substr(event, 2) where run_id = '${runId}' and seq = 2`)
      database.close()
    },
  ],
]

describe.each(DAMAGE)(
  'a conversation in a %s log, one of whose runs cannot be read any more',
  (_name, open, damage) => {
    test.each(['has ended', 'waits'])(
      'is opened: what can be read is there, and a code says why (the run %s)',
      async (phase) => {
        const folder = temporaryFolder()
        const log = open(folder)
        const pay = tool('pay', () => 'paid', { requiresApproval: true })
        const model = new ScriptedModel().says('Violet.').says('Green.').calls('pay')
        const harness = harnessOf({ model, tools: [pay] })
        const before = sessionsOf({ log, harness })
        const chat = await before.open('t1')
        await done(chat, 'Crimson?')
        await done(chat, 'And now?')
        if (phase === 'waits') await done(chat, 'Pay for it.')
        await before.close()
        await damage(folder, chat.snapshot.runs.at(-1)?.runId ?? '')
        await using sessions = sessionsOf({ log, harness })
        const { snapshot } = await sessions.open('t1')
        expect(snapshot.runs).toHaveLength(phase === 'waits' ? 3 : 2)
        expect(JSON.stringify(snapshot.runs[0])).toContain('Violet.')
        expect(snapshot.thread.refused).toMatchObject({ code: 'invalid_log' })
        expect(JSON.stringify(await sessions.messages('t1'))).toContain('And now?')
      },
    )

    test.each([
      ['has ended', 'open here'],
      ['has ended', 'opened by another process'],
      ['waits', 'open here'],
      ['waits', 'opened by another process'],
    ])(
      'is deleted with its words (the run %s; the conversation is %s), and lists say that it cannot be read',
      async (phase, where) => {
        const folder = temporaryFolder()
        const log = open(folder)
        const warnings: string[] = []
        const note = ({ message }: Error): unknown => warnings.push(message)
        process.on('warning', note)
        onTestFinished(() => void process.off('warning', note))
        const pay = tool('pay', () => 'paid', { requiresApproval: true })
        const model = new ScriptedModel().says('Violet.').calls('pay')
        const harness = harnessOf({ model, tools: [pay] })
        const before = sessionsOf({ log, harness })
        const chat = await before.open('t1')
        await done(chat, 'Crimson?')
        if (phase === 'waits') await done(chat, 'Pay for crimson.')
        const runId = chat.snapshot.runs.at(-1)?.runId ?? ''
        const sessions = where === 'open here' ? before : sessionsOf({ log, harness })
        if (where !== 'open here') await before.close()
        await damage(folder, runId)
        const items = await collect(sessions.inbox())
        await new Promise((resolve) => setImmediate(resolve))
        const listed = await collect(sessions.list())
        // A summary that is stored still has the items.
        if (items.length > 0) expect(warnings.join('\n')).toContain(runId)
        else if (phase === 'waits') expect(listed).toMatchObject([{ threadId: 't1', error: { code: 'invalid_log' } }])
        await sessions.delete('t1')
        expect(await log.inspect({ kind: 'thread', id: 't1' })).toBeNull()
        expect(await collect(log.list())).toEqual([])
        const files = readdirSync(folder, { recursive: true, encoding: 'utf8', withFileTypes: true })
        for (const file of files.filter((each) => each.isFile()))
          expect(readFileSync(join(file.parentPath, file.name), 'latin1')).not.toMatch(/crimson|violet/i)
        expect((await sessions.open('t1')).snapshot.runs).toEqual([])
      },
    )
  },
)

test('a run whose first event is being stored while its conversation is opened is not a damaged one', async () => {
  const folder = temporaryFolder()
  const log = fileLog(folder)
  const writing = sessionsOf({ log, harness: always() })
  const chat = await writing.open('t1')
  await done(chat, 'Now?')
  await writing.close()
  const path = join(folder, `${chat.snapshot.runs[0]?.runId ?? ''}.jsonl`)
  const whole = readFileSync(path, 'utf8')
  // Its process has created the file, and has written nothing yet.
  writeFileSync(path, '')
  const read: LogStore['read'] = async function* (ref, options) {
    try {
      yield* log.read(ref, options)
    } finally {
      if (ref.kind === 'run') writeFileSync(path, whole)
    }
  }
  const atThatMoment = new Proxy(log, {
    get(target, name) {
      if (name === 'read') return read
      const member: unknown = Reflect.get(target, name, target)
      return typeof member === 'function' ? (member.bind(target) as unknown) : member
    },
  })
  await using sessions = sessionsOf({ log: atThatMoment, harness: always() })
  const { snapshot } = await sessions.open('t1')
  expect(snapshot.thread.refused).toBeUndefined()
  expect(snapshot.runs[0]).toMatchObject({ status: 'completed', entries: [{ role: 'assistant' }] })
})
