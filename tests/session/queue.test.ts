import fc from 'fast-check'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { memoryLog } from 'thinharness'
import type { LogStore } from 'thinharness'
import { Sessions } from 'thinharness/session'
import type { Chat } from 'thinharness/session'
import { ScriptedModel } from 'thinharness/testing'
import { harnessOf, tool } from '../harness/support.js'
import { allStores, codeOf, gate, sessionsOf, until } from './support.js'

/** A tool that ends when its run is cancelled. */
const never = tool('never', (_args, { signal }) => new Promise((_, reject) => signal.addEventListener('abort', reject)))

async function passTicks(count: number): Promise<void> {
  for (let tick = 0; tick < count; tick += 1) await new Promise((resolve) => setImmediate(resolve))
}

/** A log whose appends take as many turns of the event loop as the list says, over and over. */
function slowLog(ticks: readonly number[], log: LogStore = memoryLog()): LogStore {
  const append = log.append.bind(log)
  let count = 0
  log.append = async (...args) => {
    const wait = ticks[count++ % ticks.length] ?? 0
    await passTicks(Math.floor(wait / 2))
    await append(...args)
    await passTicks(Math.ceil(wait / 2))
  }
  return log
}

function idsOf(messages: readonly { readonly messageId: string }[]): string[] {
  return messages.map(({ messageId }) => messageId)
}

/** Where a conversation and its callers have the messages. */
function placesOf(chat: Chat, returned: readonly { readonly messageId: string }[]): string[] {
  const { queue, runs } = chat.snapshot
  return [...runs.flatMap((run) => run.messageIds), ...idsOf(queue), ...idsOf(returned)]
}

const fakeTimers = (): void => {
  vi.useFakeTimers({ toFake: ['Date', 'setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] })
  onTestFinished(() => void vi.useRealTimers())
}

describe('a cancel', () => {
  test('meets whatever it meets: then the queue is empty, is held and says so, or goes on; no message is lost, and each has an end', async () => {
    const delays = fc.array(fc.nat(3), { minLength: 1, maxLength: 6 })
    const cancels = fc.array(fc.constantFrom('hold', 'drop', 'continue'), { minLength: 1, maxLength: 3 })
    await fc.assert(
      fc.asyncProperty(delays, fc.nat(12), cancels, fc.boolean(), async (ticks, wait, kinds, hasThird) => {
        const model = new ScriptedModel().always('Fine.')
        const sessions = new Sessions({ log: slowLog(ticks), harness: harnessOf({ model }) })
        const chat = await sessions.open('t1')
        const sent = [await chat.send('1'), await chat.send('2')]
        await passTicks(wait)
        const cancelling = kinds.map((queue) => chat.cancel({ queue }))
        if (hasThird) sent.push(await chat.send('3'))
        const returned = (await Promise.all(cancelling)).flat()
        await chat.whenIdle()
        const { phase, queue, held } = chat.snapshot
        expect(phase).toBe('idle')
        expect(held || queue.length === 0).toBe(true)
        expect(placesOf(chat, returned).sort()).toEqual(idsOf(sent).sort())
        await chat.queue.release()
        for (const { done } of sent) expect(['completed', 'cancelled', 'removed']).toContain((await done).status)
        await sessions.close()
      }),
      { numRuns: 150 },
    )
  })

  test('right after a message stops that message, also if it is the first, or comes with a steer or an interrupt', async () => {
    for (const wait of [0, 1, 2]) {
      const ran: string[] = []
      const order = tool('order', () => void ran.push('order'))
      const model = new ScriptedModel().calls('order').always('Ordered.')
      const chat = await sessionsOf({ log: slowLog([wait]), harness: harnessOf({ model, tools: [order] }) }).open()
      const sending = [chat.send('Order it.'), chat.steer('Order it now!'), chat.steer('Now!', { interrupt: true })]
      await chat.cancel()
      await Promise.all(sending)
      await chat.whenIdle()
      expect(chat.snapshot.runs.map(({ status }) => status).filter((status) => status !== 'cancelled')).toEqual([])
      expect(chat.queue.held || chat.queue.list().length === 0).toBe(true)
      expect(ran).toEqual([])
    }
  })

  test.each(['hold', 'continue'] as const)(
    'each keeps its word about the queue when two come at once: %s and drop',
    async (queue) => {
      const model = new ScriptedModel().calls('never').always('Fine.')
      const chat = await sessionsOf({ harness: harnessOf({ model, tools: [never] }) }).open()
      await chat.send('Go.')
      await until(chat, ({ kind }) => kind === 'tool_call_started')
      await chat.send('A?', { messageId: 'a' })
      await chat.send('B?', { messageId: 'b' })
      const [, dropped, again] = await Promise.all([
        chat.cancel({ queue }),
        chat.cancel({ queue: 'drop' }),
        chat.cancel({ queue: 'drop' }),
      ])
      await chat.whenIdle()
      expect([chat.queue.list(), again]).toEqual([[], []])
      // With `continue` the first of them may have begun.
      expect(idsOf(dropped).at(-1)).toBe('b')
      expect(
        placesOf(chat, [...dropped, ...again])
          .slice(1)
          .sort(),
      ).toEqual(['a', 'b'])
    },
  )
})

describe('the signal of a message', () => {
  test('refuses, removes or cancels it, whenever it fires', async () => {
    const delays = fc.array(fc.nat(3), { minLength: 1, maxLength: 5 })
    await fc.assert(
      fc.asyncProperty(
        delays,
        fc.nat(16),
        fc.constantFrom('send', 'queue', 'steer', 'interrupt'),
        async (ticks, wait, how) => {
          const model = new ScriptedModel()
          for (let count = 0; count < 9; count += 1) model.calls('never')
          const sessions = new Sessions({ log: slowLog(ticks), harness: harnessOf({ model, tools: [never] }) })
          const chat = await sessions.open('t1')
          if (how !== 'send') await chat.send('First.')
          const abort = new AbortController()
          const options = { messageId: 'm', signal: abort.signal }
          const sending =
            how === 'send' || how === 'queue'
              ? chat.send('Order it.', options)
              : chat.steer('Order it.', { ...options, interrupt: how === 'interrupt' })
          await passTicks(wait)
          abort.abort()
          const sent = await sending.catch(() => null)
          if (sent === null) expect(placesOf(chat, [])).not.toContain('m')
          else
            expect(
              await Promise.race([
                sent.done.then(({ status }) => status),
                passTicks(2_000).then(() => `open: ${chat.phase}`),
              ]),
            ).toMatch(/^(cancelled|removed)$/)
          await chat.cancel()
          await sessions.close()
        },
      ),
      { numRuns: 100 },
    )
  })

  test('reaches the owner of the thread in another process, which has not taken the message yet', async () => {
    const ran: string[] = []
    const order = tool('order', () => void ran.push('order'))
    const log = memoryLog()
    const model = new ScriptedModel().calls('never').calls('order').always('Ordered.')
    const harness = harnessOf({ model, tools: [never, order] })
    const owner = await sessionsOf({ log, harness }).open('t1')
    await owner.send('First.')
    const other = await sessionsOf({ log, harness }).open('t1')
    for (const ticks of [0, 4, 40]) {
      const abort = new AbortController()
      const sending = other.send('Order it.', { signal: abort.signal })
      await passTicks(ticks)
      abort.abort()
      const end = await sending.then(
        ({ done }) => done,
        () => null,
      )
      expect(end?.status ?? 'removed').toBe('removed')
    }
    await owner.cancel()
    await owner.whenIdle()
    expect([owner.queue.list(), ran]).toEqual([[], []])
  })
})

/** A thread with a run in progress and two queued messages, whose owner does not look at its posts until it is told to. */
async function silentOwner(): Promise<{ readonly owner: Chat; readonly other: Chat; readonly wake: () => void }> {
  fakeTimers()
  const log = memoryLog()
  let isSilent = true
  const ask = tool('ask', () => 'asked', { requiresApproval: true })
  const model = new ScriptedModel().calls('ask').always('Fine.')
  const harness = harnessOf({ model, tools: [ask] })
  const takePosts = log.takePosts.bind(log)
  log.takePosts = async (...args) => (isSilent ? [] : takePosts(...args))
  const owner = await sessionsOf({ log, harness }).open('t1')
  await (
    await owner.send('Go.')
  ).done
  for (const messageId of ['a', 'b']) await owner.send(messageId, { messageId })
  const other = await sessionsOf({ log, harness }).open('t1')
  return { owner, other, wake: () => void (isSilent = false) }
}

describe('an owner that does not answer for a while', () => {
  test.each<[string, (chat: Chat) => Promise<unknown>, unknown]>([
    ['remove', (chat) => codeOf(chat.queue.remove('a')), 'thread_owned'],
    ['clear', (chat) => codeOf(chat.queue.clear()), 'thread_owned'],
    ['cancel with drop', (chat) => chat.cancel({ queue: 'drop' }), []],
  ])('keeps the messages that %s could not give back to its caller', async (_name, act, told) => {
    const { owner, other, wake } = await silentOwner()
    const acting = act(other)
    await vi.advanceTimersByTimeAsync(11_000)
    expect(await acting).toEqual(told)
    wake()
    await vi.advanceTimersByTimeAsync(2_000)
    expect(idsOf(owner.queue.list())).toEqual(['a', 'b'])
    expect(idsOf(other.queue.list())).toEqual(['a', 'b'])
  })

  test('gives them back if it answers in time', async () => {
    const { owner, other, wake } = await silentOwner()
    const clearing = other.queue.clear()
    await vi.advanceTimersByTimeAsync(7_000)
    wake()
    await vi.advanceTimersByTimeAsync(1_000)
    expect([idsOf(await clearing), owner.queue.list()]).toEqual([['a', 'b'], []])
  })

  test('has answers that are posted, one for each', async () => {
    const { owner, other, wake } = await silentOwner()
    const answering = other.answer([{ callId: 'call_1', approved: true }])
    await vi.advanceTimersByTimeAsync(11_000)
    expect(await answering).toEqual([{ callId: 'call_1', status: 'posted' }])
    wake()
    await vi.advanceTimersByTimeAsync(2_000)
    expect(owner.pending).toEqual([])
  })
})

describe.each(await allStores())('a queue in the %s log', (_name, open) => {
  test('whose process has ended between two runs is held, and is found by whoever recovers at startup', async () => {
    const log = open()
    const { opened, open: release } = gate()
    const model = new ScriptedModel().replies(async () => {
      await opened
      return 'One.'
    })
    const harness = harnessOf({ model: model.always('Two.') })
    const dead = await sessionsOf({ log, harness }).open('t1')
    const first = await dead.send('1')
    await dead.send('2', { messageId: 'm2' })
    await kill(log, () => release())
    expect((await first.done).status).not.toBe('cancelled')
    const sessions = sessionsOf({ log, harness })
    const listed: string[] = []
    for await (const { phase } of sessions.list()) listed.push(phase)
    const chat = await sessions.open('t1')
    expect([listed, chat.snapshot.phase, chat.queue.held, idsOf(chat.queue.list())]).toEqual([
      ['interrupted'],
      'idle',
      true,
      ['m2'],
    ])
    expect(await chat.recover()).toBe(true)
    expect([chat.snapshot.held, await chat.recover()]).toEqual([true, false])
    await chat.queue.release()
    await chat.whenIdle()
    expect(chat.snapshot.runs.map(({ status }) => status)).toEqual(['completed', 'completed'])
  })
})

/** The process of a thread ends when its run has ended: what it would store next is refused, and its claims are gone. */
async function kill(log: LogStore, last: () => void): Promise<void> {
  const [append, claim] = [log.append.bind(log), log.claim.bind(log)]
  const claims = new Map<string, Parameters<LogStore['claim']>>()
  const ended = gate()
  log.claim = async (...args) => {
    claims.set(args[1], args)
    return claim(...args)
  }
  log.append = async (...args) => {
    if (args[0].kind === 'thread' && args[1][0]?.kind === 'run_begun') {
      await claim(args[0], args[2]?.owner ?? '', 0)
      ended.open()
    }
    await append(...args)
  }
  last()
  await ended.opened
  log.append = append
  log.claim = claim
}

describe('a store that fails for a moment, and may have kept what it says that it has not', () => {
  test('is read again before anything is told: what is refused is not there, the queue is held or goes on, and errors have a code', async () => {
    const failures = fc.array(fc.constantFrom('none', 'none', 'none', 'before', 'after'), {
      minLength: 1,
      maxLength: 8,
    })
    const acts = fc.array(fc.constantFrom('send', 'send', 'cancel', 'drop', 'clear', 'release'), {
      minLength: 1,
      maxLength: 6,
    })
    await fc.assert(
      fc.asyncProperty(failures, acts, fc.nat(6), async (kinds, names, wait) => {
        const log = memoryLog()
        const append = log.append.bind(log)
        let isFailing = false
        let count = 0
        log.append = async (...args) => {
          const kind = isFailing && args[0].kind === 'thread' ? kinds[count++ % kinds.length] : 'none'
          if (kind === 'before') throw new Error('Away.')
          await append(...args)
          if (kind === 'after') throw new Error('Away.')
        }
        const sessions = new Sessions({ log, harness: harnessOf({ model: new ScriptedModel().always('Fine.') }) })
        const chat = await sessions.open('t1')
        isFailing = true
        const accepted: string[] = []
        const refused: string[] = []
        const returned: { readonly messageId: string }[] = []
        const codes: unknown[] = []
        for (const [index, name] of names.entries()) {
          const messageId = `m${index}`
          const noteRefusal = (error: unknown): void => {
            codes.push((error as { code?: unknown }).code)
            if (name === 'send') refused.push(messageId)
          }
          const acting = async (): Promise<void> => {
            if (name === 'send') await chat.send(messageId, { messageId }).then(() => accepted.push(messageId))
            else if (name === 'release') await chat.queue.release()
            else
              returned.push(
                ...(await (name === 'clear'
                  ? chat.queue.clear()
                  : chat.cancel({ queue: name === 'drop' ? 'drop' : 'hold' }))),
              )
          }
          await acting().catch(noteRefusal)
          await passTicks(wait)
        }
        await chat.whenIdle()
        expect(chat.phase).not.toBe('running')
        expect(chat.queue.held || chat.queue.list().length === 0 || chat.phase !== 'idle').toBe(true)
        expect(codes.filter((code) => code !== 'store_failure')).toEqual([])
        isFailing = false
        await (await sessions.open('t1')).recover()
        await chat.whenIdle()
        await chat.queue.release()
        await chat.whenIdle()
        expect([chat.phase, chat.queue.list()]).toEqual(['idle', []])
        const places = placesOf(chat, returned)
        expect([...new Set(places)].sort()).toEqual(accepted.sort())
        expect(refused.filter((messageId) => places.includes(messageId))).toEqual([])
        await sessions.close()
      }),
      { numRuns: 150 },
    )
  })
})

test('readers of a conversation end when its sessions are closed, in the process that owns it and in others', async () => {
  const log = memoryLog()
  const harness = harnessOf({ model: new ScriptedModel().always('Fine.') })
  const [mine, others] = [sessionsOf({ log, harness }), sessionsOf({ log, harness })]
  const [first, second] = [await mine.open('t1'), await others.open('t1')]
  const kindsOf = async (chat: Chat): Promise<string[]> => {
    const kinds: string[] = []
    for await (const { kind } of chat.events()) kinds.push(kind)
    return kinds
  }
  const reading = [kindsOf(first), kindsOf(second)]
  await (
    await first.send('Hi.')
  ).done
  await Promise.all([mine.close(), others.close()])
  for (const kinds of await Promise.all(reading)) expect(kinds[0]).toBe('thread_opened')
  // A reader that comes later gets what is stored, and ends.
  expect(await kindsOf(first)).toContain('run_completed')
})

describe.each(await allStores())('a claim in the %s log', (_name, open) => {
  test('that this process could not release, because the store failed, is its own again at once', async () => {
    const log = open()
    const [append, claim] = [log.append.bind(log), log.claim.bind(log)]
    let isAway = false
    log.append = async (...args) => {
      if (args[1][0]?.kind === 'model_message') isAway = true
      if (isAway) throw new Error('Locked.')
      await append(...args)
    }
    log.claim = async (...args) => {
      if (isAway) throw new Error('Locked.')
      return claim(...args)
    }
    const harness = harnessOf({ model: new ScriptedModel().says('One.').says('Two.'), log })
    await expect(harness.run('Go.', { runId: 'run_a' })).rejects.toMatchObject({ code: 'store_failure' })
    isAway = false
    log.append = append
    expect((await harness.recover('run_a')).text).toBe('Two.')
  })
})
