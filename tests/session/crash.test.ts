import { readdirSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { defineTool, fileLog, HarnessError, memoryLog } from 'thinharness'
import type { ModelRef } from 'thinharness'
import { submitPlan } from 'thinharness/session'
import { ScriptedModel } from 'thinharness/testing'
import { harnessOf } from '../harness/support.js'
import { codeOf, gate, said, sessionsOf, temporaryFolder, until } from './support.js'

/** Leaves a piece of the first record in the only log of a folder. */
function tear(folder: string): void {
  const [name = ''] = readdirSync(folder).filter((each) => each.endsWith('.jsonl'))
  truncateSync(join(folder, name), 20)
}

test('SB-27 a thread whose process ended while it stored the first event does not exist, and can be created', async () => {
  const folder = temporaryFolder()
  const log = fileLog(folder)
  const harness = harnessOf({ model: new ScriptedModel().says('One.') })
  const first = sessionsOf({ log, harness })
  await first.create({ threadId: 't1' })
  await first.close()
  tear(join(folder, 'threads'))
  const chat = await sessionsOf({ log: fileLog(folder), harness }).open('t1')
  expect((await (await chat.send('1')).done).text).toBe('One.')
  expect(said(await sessionsOf({ log: fileLog(folder), harness }).open('t1'))).toEqual(['user: 1', 'assistant: One.'])
})

test('a run whose process ended while it stored the first event is begun again', async () => {
  const folder = temporaryFolder()
  const first = sessionsOf({ log: fileLog(folder), harness: harnessOf({ model: new ScriptedModel().says('Lost.') }) })
  const before = await first.open('t1')
  await (
    await before.send('1')
  ).done
  await first.close()
  tear(folder)
  const harness = harnessOf({ model: new ScriptedModel().says('One.') })
  const chat = await sessionsOf({ log: fileLog(folder), harness }).open('t1')
  expect(chat.phase).toBe('interrupted')
  expect((await (await chat.send('2')).done).status).toBe('completed')
  expect(chat.snapshot.runs).toHaveLength(1)
  expect(said(chat)).toContain('user: 1')
})

test('the message of a run that another process may still be beginning is not put back into the queue', async () => {
  const log = memoryLog()
  const [asked, stored] = [gate(), gate()]
  const append = log.append.bind(log)
  log.append = async (...args) => {
    if (args[0].kind === 'run') {
      asked.open()
      await stored.opened
    }
    return append(...args)
  }
  const first = await sessionsOf({ log, harness: harnessOf({ model: new ScriptedModel().says('One.') }) }).open('t1')
  const sent = await first.send('1')
  await asked.opened
  // The first process is slow, and its claim on the thread has expired.
  const ref = { kind: 'thread', id: 't1' } as const
  await log.claim(ref, (await log.inspect(ref))?.owner ?? '', 0)
  const second = await sessionsOf({ log, harness: harnessOf({ model: new ScriptedModel().says('Two.') }) }).open('t1')
  expect(second.phase).toBe('interrupted')
  expect(await codeOf(second.cancel({ queue: 'drop' }))).toContain('in progress elsewhere')
  expect(second.queue.list()).toEqual([])
  stored.open()
  expect((await sent.done).text).toBe('One.')
  await (
    await second.send('2')
  ).done
  expect(said(second)).toEqual(['user: 1', 'assistant: One.', 'user: 2', 'assistant: Two.'])
})

test('a plan that was answered before a crash is carried out under its next mode', async () => {
  const log = memoryLog()
  const append = log.append.bind(log)
  log.append = (ref, events, options) =>
    events.some(({ kind }) => kind === 'mode_handed_over')
      ? Promise.reject(new HarnessError('store_failure', 'The disk is full.'))
      : append(ref, events, options)
  const planning = new ScriptedModel().calls('submit_plan', { plan: '1. Build.' })
  const building = new ScriptedModel().says('Built.')
  const modes = {
    plan: harnessOf({ model: planning, use: [submitPlan({ then: 'build' })] }),
    build: harnessOf({ model: building }),
  }
  const before = await sessionsOf({ log, modes }).open('t1')
  await (
    await before.send('Go.')
  ).done
  await before.answer([{ callId: before.pending[0]?.callId ?? '', answer: { action: 'approved' } }])
  await before.whenIdle()
  log.append = append
  const chat = await sessionsOf({ log, modes }).open('t1')
  expect([chat.phase, chat.snapshot.thread.mode]).toEqual(['interrupted', 'plan'])
  expect(await (await chat.send('Still there?')).done).toMatchObject({ status: 'completed', text: 'Built.' })
  expect(chat.snapshot.runs).toMatchObject([{ mode: 'build', status: 'completed' }])
  expect([planning.requests.length, building.requests.length]).toEqual([1, 1])
})

test('`resolveModel` gives the model for a reference; a message whose model it cannot give is back in the queue', async () => {
  const own = new ScriptedModel().says('Own.')
  const fast = new ScriptedModel().says('Fast.')
  const asked: ModelRef[] = []
  const resolveModel = (reference: ModelRef): ScriptedModel => {
    // It is there when the message is sent, and is not when its run begins.
    asked.push(reference)
    if (reference !== 'any:fast' && asked.at(-2) === reference) throw new Error('There is no such model.')
    return fast
  }
  const chat = await sessionsOf({ harness: harnessOf({ model: own }), resolveModel }).open()
  expect((await (await chat.send('1', { model: 'any:fast' })).done).text).toBe('Fast.')
  expect((await (await chat.send('2')).done).text).toBe('Own.')
  const sent = await chat.send('3', { model: 'any:other' })
  expect((await sent.done).status).toBe('failed')
  await chat.whenIdle()
  expect(chat.queue.list()).toMatchObject([{ messageId: sent.messageId }])
})

test('a process that loses the thread while it stores a message shows all runs of the next owner', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  onTestFinished(() => void vi.useRealTimers())
  const log = memoryLog()
  const [asked, stored] = [gate(), gate()]
  const append = log.append.bind(log)
  log.append = async (ref, events, options) => {
    if (events.some((event) => 'messageId' in event && event.messageId === 'late')) {
      asked.open()
      await stored.opened
    }
    return append(ref, events, options)
  }
  const sessions = sessionsOf({ log, harness: harnessOf({ model: new ScriptedModel().says('One.') }) })
  const first = await sessions.open('t1')
  await (
    await first.send('1')
  ).done
  const late = codeOf(first.send('2', { messageId: 'late' }))
  await asked.opened
  const ref = { kind: 'thread', id: 't1' } as const
  await log.claim(ref, (await log.inspect(ref))?.owner ?? '', 0)
  const model = new ScriptedModel().says('Three.').says('Four.')
  const second = await sessionsOf({ log, harness: harnessOf({ model }) }).open('t1')
  for (const text of ['3', '4']) await (await second.send(text)).done
  // The first process cannot renew its claim.
  vi.advanceTimersByTime(20_000)
  while (first.owner === 'self') await new Promise((resolve) => setImmediate(resolve))
  await sessions.open('t1')
  stored.open()
  expect(await late).toContain('no longer, claimed')
  expect(said(first)).toEqual([
    'user: 1',
    'assistant: One.',
    'user: 3',
    'assistant: Three.',
    'user: 4',
    'assistant: Four.',
  ])
})

test('a run that waits is continued by a process that had lost the thread: the next owner goes on with its queue', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  onTestFinished(() => void vi.useRealTimers())
  const log = memoryLog()
  const pay = defineTool({
    ...{ name: 'pay', description: 'Pays.', parameters: { type: 'object' }, requiresApproval: true },
    handler: () => 'paid',
  })
  const model = new ScriptedModel().calls('pay').says('Paid.')
  const first = await sessionsOf({ log, harness: harnessOf({ model, tools: [pay] }) }).open('t1')
  await (
    await first.send('1')
  ).done
  const ref = { kind: 'thread', id: 't1' } as const
  await log.claim(ref, (await log.inspect(ref))?.owner ?? '', 0)
  const harness = harnessOf({ model: new ScriptedModel().says('Two.'), tools: [pay] })
  const second = await sessionsOf({ log, harness }).open('t1')
  const { status, done } = await second.send('2')
  expect(status).toBe('queued')
  await first.answer([{ callId: first.pending[0]?.callId ?? '', approved: true }])
  await first.whenIdle()
  // Both renew their claims: one in vain.
  vi.advanceTimersByTime(20_000)
  expect(await done).toMatchObject({ status: 'completed', text: 'Two.' })
  expect(said(second)).toEqual(['user: 1', 'assistant: ', 'assistant: Paid.', 'user: 2', 'assistant: Two.'])
})

test('a message of another process that was refused is not sent later, although the store failed after it had stored the refusal', async () => {
  const log = memoryLog()
  const append = log.append.bind(log)
  let failures = 0
  log.append = async (ref, events, options) => {
    await append(ref, events, options)
    if (!events.some((event) => event.kind === 'message_taken' && 'messageId' in event && event.messageId === 'x'))
      return
    failures += 1
    throw new HarnessError('store_failure', 'The answer was lost.')
  }
  const over = gate()
  const wait = defineTool({
    ...{ name: 'wait', description: 'Waits.', parameters: { type: 'object' } },
    handler: () => over.opened.then(() => 'over'),
  })
  const model = new ScriptedModel().calls('wait').says('One.').says('Two.').says('Three.')
  const first = await sessionsOf({ log, harness: harnessOf({ model, tools: [wait] }) }).open('t1')
  const sent = await first.send('1')
  const second = await sessionsOf({ log, harness: harnessOf({ model: new ScriptedModel() }) }).open('t1')
  expect(await codeOf(second.send('x', { messageId: 'x', whenBusy: 'reject' }))).toContain('busy')
  over.open()
  await sent.done
  // Posts are dealt with in their order.
  expect((await (await second.send('2')).done).status).toBe('completed')
  expect(said(first)).toEqual(['user: 1', 'assistant: ', 'assistant: One.', 'user: 2', 'assistant: Two.'])
  expect(failures).toBe(1)
})

test('a message of another process is taken, although the store failed once after it had given it to the owner', async () => {
  const log = memoryLog()
  const takePosts = log.takePosts.bind(log)
  let failures = 0
  log.takePosts = async (...args) => {
    const posts = await takePosts(...args)
    if (posts.length === 0 || failures > 0) return posts
    failures += 1
    throw new HarnessError('store_failure', 'The answer was lost.')
  }
  const over = gate()
  const wait = defineTool({
    ...{ name: 'wait', description: 'Waits.', parameters: { type: 'object' } },
    handler: () => over.opened.then(() => 'over'),
  })
  const model = new ScriptedModel().calls('wait').says('One.').says('Two.')
  const first = await sessionsOf({ log, harness: harnessOf({ model, tools: [wait] }) }).open('t1')
  const sent = await first.send('1')
  const second = await sessionsOf({ log, harness: harnessOf({ model: new ScriptedModel() }) }).open('t1')
  const next = await second.send('2')
  expect(next.status).toBe('queued')
  over.open()
  await sent.done
  expect((await next.done).status).toBe('completed')
  expect(said(first)).toEqual(['user: 1', 'assistant: ', 'assistant: One.', 'user: 2', 'assistant: Two.'])
  expect(failures).toBe(1)
})

test('what another process asks for is done, although the owner gives the thread back at that moment', async () => {
  const log = memoryLog()
  const harness = harnessOf({ model: new ScriptedModel().says('One.') })
  const [first, second] = [await sessionsOf({ log, harness }).open('t1'), await sessionsOf({ log, harness }).open('t1')]
  await (
    await first.send('1')
  ).done
  const claim = log.claim.bind(log)
  log.claim = async (...args) => {
    const isGranted = await claim(...args)
    if (!isGranted) await first.release()
    return isGranted
  }
  expect(first.owner).toBe('self')
  await second.rename('A title')
  expect(second.snapshot.thread.title).toBe('A title')
  expect(second.owner).toBe('self')
})

test('a message for a run that is cancelled while it stores its request is read once, although the store is slow', async () => {
  const log = memoryLog()
  const append = log.append.bind(log)
  const [begins, mayBegin, asks, mayAsk] = [gate(), gate(), gate(), gate()]
  log.append = async (...args) => {
    const kind = args[1][0]?.kind
    if (kind === 'run_started') {
      begins.open()
      await mayBegin.opened
    }
    if (kind === 'model_request_started') {
      asks.open()
      await mayAsk.opened
    }
    await append(...args)
  }
  const chat = await sessionsOf({ log, harness: harnessOf({ model: new ScriptedModel().says('One.') }) }).open('t1')
  const first = await chat.send('1')
  await begins.opened
  expect((await chat.steer('2')).status).toBe('steered')
  mayBegin.open()
  await asks.opened
  // The run waits for the store for 2 s, then it is left as it is.
  await chat.cancel()
  expect((await first.done).status).toBe('cancelled')
  mayAsk.open()
  expect((await (await chat.send('3')).done).status).toBe('completed')
  await chat.whenIdle()
  expect(said(chat).filter((line) => line === 'user: 2')).toHaveLength(1)
  expect(chat.queue.list()).toEqual([])
})

test('a message for a run that is cancelled while the store is slow is not lost when the next message begins a run', async () => {
  const log = memoryLog()
  const [append, claim] = [log.append.bind(log), log.claim.bind(log)]
  const [begun, mayEnd, ended] = [gate(), gate(), gate()]
  log.append = async (...args) => {
    const isEnd = args[1][0]?.kind === 'run_failed'
    if (isEnd) await mayEnd.opened
    await append(...args)
    if (isEnd) ended.open()
  }
  log.claim = async (...args) => {
    // The claim of the run stands until its end is stored, which is when it is claimed again, in vain.
    if (args[0].kind === 'run' && args[2] === 0) await ended.opened
    const isGranted = await claim(...args)
    if (!isGranted) {
      mayEnd.open()
      await ended.opened
    }
    return isGranted
  }
  const endless = defineTool({
    ...{ name: 'endless', description: 'Waits.', parameters: { type: 'object' } },
    handler: (_args, { signal }) => {
      begun.open()
      return new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('Stopped.'))))
    },
  })
  const model = new ScriptedModel().calls('endless').says('Two.').says('Three.')
  const chat = await sessionsOf({ log, harness: harnessOf({ model, tools: [endless] }) }).open('t1')
  await chat.send('1')
  await begun.opened
  await chat.cancel()
  const [steered, sent] = await Promise.all([chat.steer('2'), chat.send('3')])
  expect([steered.status, sent.status]).toEqual(['steered', 'queued'])
  expect((await sent.done).status).toBe('completed')
  await chat.whenIdle()
  expect(said(chat).filter((line) => line.startsWith('user'))).toEqual(['user: 1', 'user: 2', 'user: 3'])
})

test('answers that could not be stored are not accepted: their items wait again', async () => {
  const log = memoryLog()
  const append = log.append.bind(log)
  log.append = (ref, events, options) =>
    events.some(({ kind }) => kind === 'answer_received')
      ? Promise.reject(new HarnessError('store_failure', 'The disk is full.'))
      : append(ref, events, options)
  let runs = 0
  const pay = defineTool({
    ...{ name: 'pay', description: 'Pays.', parameters: { type: 'object' }, requiresApproval: true },
    handler: () => `paid ${(runs += 1)}`,
  })
  const harness = harnessOf({ model: new ScriptedModel().calls('pay').says('Not paid.'), tools: [pay] })
  const chat = await sessionsOf({ log, harness }).open('t1')
  const sent = await chat.send('Pay.')
  await chat.whenIdle()
  const callId = chat.pending[0]?.callId ?? ''
  expect(await codeOf(chat.answer([{ callId, approved: true }]))).toContain('The disk is full.')
  await chat.whenIdle()
  log.append = append
  await chat.recover()
  await chat.whenIdle()
  expect(chat.phase).toBe('waiting')
  expect(await chat.answer([{ callId, approved: false }])).toEqual([{ callId, status: 'accepted' }])
  await chat.whenIdle()
  expect(runs).toBe(0)
  expect((await sent.done).status).not.toBe('completed')
})

test('a process that could not take a thread over, because the store was slow and failed, goes on to follow it (simulation, seed 400017844)', async () => {
  vi.useFakeTimers({ toFake: ['Date', 'setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] })
  onTestFinished(() => void vi.useRealTimers())
  const log = memoryLog()
  const chat = await sessionsOf({ log, harness: harnessOf({ model: new ScriptedModel().says('One.') }) }).open('t1')
  const ref = { kind: 'thread', id: 't1' } as const
  await log.claim(ref, 'another', 60_000)
  const sending = chat.send('1')
  await vi.advanceTimersByTimeAsync(11_000)
  const { status, done } = await sending
  expect(status).toBe('posted')
  const read = log.read.bind(log)
  log.read = async function* (from, options) {
    if (from.kind === 'thread') {
      await new Promise((resolve) => setTimeout(resolve, 3_000))
      throw new HarnessError('store_failure', 'The disk is away.')
    }
    yield* read(from, options)
  }
  await log.claim(ref, 'another', 0)
  await vi.advanceTimersByTimeAsync(4_000)
  log.read = read
  await vi.advanceTimersByTimeAsync(10_000)
  expect((await done).text).toBe('One.')
})

test('a post that is no action is refused, and the posts after it are taken', async () => {
  const log = memoryLog()
  const over = gate()
  const wait = defineTool({
    ...{ name: 'wait', description: 'Waits.', parameters: { type: 'object' } },
    handler: () => over.opened.then(() => 'over'),
  })
  const model = new ScriptedModel().calls('wait').says('One.').says('Two.')
  const first = await sessionsOf({ log, harness: harnessOf({ model, tools: [wait] }) }).open('t1')
  const sent = await first.send('1')
  await log.post({ kind: 'thread', id: 't1' }, { id: 'p1', body: { kind: 'send', item: { messageId: 'x' } } })
  const refused = until(first, (event) => event.kind === 'message_taken' && event.postId === 'p1')
  expect(await refused).toMatchObject({ messageId: null, outcome: { error: 'invalid_options' } })
  const second = await sessionsOf({ log, harness: harnessOf({ model: new ScriptedModel() }) }).open('t1')
  const next = await second.send('2')
  over.open()
  await sent.done
  expect((await next.done).status).toBe('completed')
  expect(said(first)).toEqual(['user: 1', 'assistant: ', 'assistant: One.', 'user: 2', 'assistant: Two.'])
})
