import { describe, expect, test } from 'vitest'
import { fileLog, memoryLog } from 'thinharness'
import type { LogStore, RunEvent, RunLog } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { failureOf, gate, harnessOf, kinds, tool, until } from './support.js'
import { temporaryFolder } from '../support/folder.js'
import { collect, eventsOfRun } from '../support/collect.js'

/** A harness whose tool `pay` waits for approval, with `run_p` paused in its log. */
async function paused() {
  const log = memoryLog()
  let calls = 0
  const pay = tool('pay', () => `Paid ${(calls += 1)}.`, { requiresApproval: true })
  const model = new ScriptedModel().calls('pay').says('Done.')
  const harness = harnessOf({ model, tools: [pay], log })
  await harness.run('Pay.', { runId: 'run_p' })
  return { harness, log, calls: () => calls }
}

const YES = { callId: 'call_1', approved: true }

const textOf = (events: readonly RunEvent[]): string =>
  events.map((event) => (event.kind === 'text_delta' ? event.text : '')).join('')

describe('resume by id', () => {
  test('RI-01 it continues a paused run from its log', async () => {
    const { harness, calls } = await paused()
    const result = await harness.resume('run_p', [YES])
    expect(result).toMatchObject({ runId: 'run_p', text: 'Done.' })
    expect(calls()).toBe(1)
  })

  test('RI-02 it can be streamed, with deltas', async () => {
    const { harness } = await paused()
    const events = await collect(harness.streamResume('run_p', [YES]))
    expect(kinds(events.filter(({ durable }) => !durable))).toBe('text_delta')
  })

  test.each<[string, string, unknown, string, RegExp]>([
    ['an unknown run', 'run_9', [YES], 'run_not_found', /`run_9`/],
    ['no answer', 'run_p', [], 'invalid_answer', /Waiting: `call_1` \(pay\)/],
    ['an answer to another call', 'run_p', [{ callId: 'call_9', approved: true }], 'invalid_answer', /`call_9`/],
    ['an answer that is none', 'run_p', 'yes', 'invalid_answer', /Expected the answers to be a list/],
    ['an invalid id', '../p', [YES], 'invalid_options', /`runId`/],
  ])(
    'RI-03 unknown runs and invalid answers are rejected, and nothing runs (%s)',
    async (_name, runId, answers, code, message) => {
      const { harness, log, calls } = await paused()
      const before = await eventsOfRun(log, 'run_p')
      const failed = await failureOf(harness.resume(runId, answers as []))
      expect(failed.code).toBe(code)
      expect(failed.message).toMatch(message)
      expect(calls()).toBe(0)
      expect(await eventsOfRun(log, 'run_p')).toEqual(before)
    },
  )

  test('RI-04 a run that has ended is rejected', async () => {
    const { harness } = await paused()
    await harness.resume('run_p', [YES])
    expect((await failureOf(harness.resume('run_p', [YES]))).message).toMatch(/has ended: pass it as `history`/)
  })

  test('RI-05 a log records who answered', async () => {
    const { harness, log } = await paused()
    await harness.resume('run_p', [{ ...YES, by: 'ann' }])
    const received = (await eventsOfRun(log, 'run_p')).find((event) => event.kind === 'answer_received')
    expect(received).toMatchObject({ answer: { callId: 'call_1', approved: true, by: 'ann' } })
  })
})

describe('cancel by id', () => {
  test('RI-06 it ends a run in progress, and resolves when it has ended', async () => {
    const begun = gate()
    const work = tool('work', async (_args, { signal }) => {
      begun.open()
      await new Promise((resolve) => signal.addEventListener('abort', resolve))
    })
    const harness = harnessOf({ model: new ScriptedModel().calls('work').says('Done.'), tools: [work] })
    const run = failureOf(harness.run('Go.', { runId: 'run_w' }))
    await begun.opened
    expect(await harness.cancel('run_w')).toBe(true)
    expect((await run).code).toBe('cancelled')
  })

  test('RI-07 it ends a paused run without running its tool', async () => {
    const { harness, log, calls } = await paused()
    expect(await harness.cancel('run_p')).toBe(true)
    expect(calls()).toBe(0)
    expect((await eventsOfRun(log, 'run_p')).at(-1)).toMatchObject({ kind: 'run_failed', code: 'cancelled' })
    const failed = await failureOf(harness.recover('run_p'))
    expect(failed).toMatchObject({ code: 'cancelled', run: { stopReason: 'cancelled' } })
    expect((await failureOf(harness.resume('run_p', [YES]))).code).toBe('invalid_state')
    expect((await failureOf(harness.replay(await eventsOfRun(log, 'run_p')))).code).toBe('cancelled')
  })

  test('RI-08 it ends an interrupted run without running its tool', async () => {
    const { log, harness } = await paused()
    const whole = memoryLog()
    const events = (await eventsOfRun(log, 'run_p')).slice(0, 2)
    await whole.append({ kind: 'run', id: 'run_p' }, events)
    expect(await harnessOf({ model: new ScriptedModel(), log: whole }).cancel('run_p')).toBe(true)
    expect(kinds(await eventsOfRun(whole, 'run_p'))).toBe('run_started model_request_started run_failed')
    await harness.close()
  })

  test('RI-09 it is false for a run that has ended, and rejects an unknown one', async () => {
    const { harness } = await paused()
    await harness.resume('run_p', [YES])
    expect(await harness.cancel('run_p')).toBe(false)
    expect((await failureOf(harness.cancel('run_9'))).code).toBe('run_not_found')
    expect((await failureOf(harness.cancel('../p'))).code).toBe('invalid_options')
  })
})

describe('following a run', () => {
  test('RI-10 it yields the stored events of a run, and ends with it', async () => {
    const { harness, log } = await paused()
    await harness.resume('run_p', [YES])
    const events = await collect(harness.follow('run_p'))
    expect(events).toEqual(await eventsOfRun(log, 'run_p'))
  })

  test('RI-11 it continues after a cursor, which is exclusive', async () => {
    const { harness } = await paused()
    await harness.resume('run_p', [YES])
    const seen: number[] = []
    for await (const { seq } of harness.follow('run_p', { after: 4 })) seen.push(seq)
    expect(seen[0]).toBe(5)
    for await (const event of harness.follow('run_p', { after: seen.at(-1) })) expect.fail(event.kind)
  })

  test('RI-12 it continues across a pause, with the deltas of a run in this process', async () => {
    const { harness, log } = await paused()
    const events: RunEvent[] = []
    const following = (async () => {
      for await (const event of harness.follow('run_p')) events.push(event)
    })()
    await until(() => events.at(-1)?.kind === 'run_completed')
    for await (const event of harness.streamResume('run_p', [YES])) expect(event.runId).toBe('run_p')
    await following
    expect(events.filter(({ durable }) => durable)).toEqual(await eventsOfRun(log, 'run_p'))
    expect(kinds(events)).toContain('text_delta')
  })

  test('RI-13 it sees events that another harness adds to the log', async () => {
    const { harness, log } = await paused()
    const other = harnessOf({ model: new ScriptedModel(), log })
    const events: RunEvent[] = []
    const following = (async () => {
      for await (const event of other.follow('run_p', { after: 1 })) events.push(event)
    })()
    await harness.resume('run_p', [YES])
    await following
    expect(events).toEqual((await eventsOfRun(log, 'run_p')).slice(1))
  })

  test('RI-14 it reads a log with `follow` once, and waits for it after that', async () => {
    const { harness, log } = await paused()
    const reads: number[] = []
    const follows: number[] = []
    const watched = new Proxy(log, {
      get(target, name) {
        if (name === 'read') return (...given: Parameters<RunLog['read']>) => (reads.push(1), target.read(...given))
        if (name === 'follow')
          return (...given: Parameters<NonNullable<LogStore['follow']>>) => {
            follows.push(given[1]?.after ?? 0)
            return target.follow!(...given)
          }
        const member: unknown = Reflect.get(target, name)
        return typeof member === 'function' ? (member.bind(target) as unknown) : member
      },
    })
    const events: RunEvent[] = []
    const following = (async () => {
      for await (const event of harnessOf({ model: new ScriptedModel(), log: watched }).follow('run_p'))
        events.push(event)
    })()
    await until(() => follows.length > 0)
    await harness.resume('run_p', [YES])
    await following
    expect(events).toEqual(await eventsOfRun(log, 'run_p'))
    expect([reads.length, follows]).toEqual([1, [5]])
  })

  test('RI-15 it reads a log without `follow` again and again', async () => {
    const { harness, log } = await paused()
    const plain: RunLog = { append: log.append.bind(log), read: log.read.bind(log) }
    const events: RunEvent[] = []
    for await (const event of harnessOf({ model: new ScriptedModel(), log: plain }).follow('run_p')) {
      events.push(event)
      if (event.kind === 'run_completed' && event.pending.length > 0) void harness.resume('run_p', [YES])
    }
    expect(events).toEqual(await eventsOfRun(log, 'run_p'))
  })

  test('RI-16 it follows a run that has not stored anything yet, with its deltas, from a folder', async () => {
    const folder = temporaryFolder()
    const harness = harnessOf({
      model: new ScriptedModel().calls('look').says('Done now.'),
      tools: [tool('look')],
      log: fileLog(folder),
    })
    const running = harness.run('Go.', { runId: 'run_1', deltas: true })
    const events = await collect(harness.follow('run_1'))
    await running
    expect(events.filter(({ durable }) => durable)).toEqual(await eventsOfRun(fileLog(folder), 'run_1'))
    const reply = events.slice(events.findLastIndex(({ kind }) => kind === 'model_request_started'))
    expect(kinds(reply)).toMatch(/^model_request_started( text_delta)+ model_message run_completed$/)
    expect(textOf(reply)).toBe('Done now.')
  })

  test('a follower who comes in the middle of a reply gets it from its beginning, and each piece once', async () => {
    const [half, rest] = [gate(), gate()]
    const model = new ScriptedModel().replies(async ({ options }) => {
      for (const text of ['One ', 'two ']) options.onDelta?.({ kind: 'text_delta', text })
      half.open()
      await rest.opened
      options.onDelta?.({ kind: 'text_delta', text: 'three.' })
      return 'One two three.'
    })
    const harness = harnessOf({ model })
    const running = harness.run('Go.', { runId: 'run_1', deltas: true })
    await half.opened
    const followers = [0, 2].map((after) => collect(harness.follow('run_1', { after })))
    await new Promise((resolve) => setImmediate(resolve))
    rest.open()
    await running
    // The scripted model streams its reply as well.
    for (const events of await Promise.all(followers)) expect(textOf(events)).toBe('One two three.One two three.')
  })

  test('a follower who is too far behind gets the rest from the log', async () => {
    const model = new ScriptedModel()
    for (let turn = 0; turn < 40; turn++) model.calls('look')
    const look = tool('look', () => 'x'.repeat(100_000))
    const harness = harnessOf({ model: model.says('Done.'), tools: [look], limits: { modelRequests: null } })
    const log = memoryLog()
    const running = harness.run('Go.', { runId: 'run_1', deltas: true, log })
    const slow = harness.follow('run_1')[Symbol.asyncIterator]()
    const seen = [(await slow.next()).value as RunEvent]
    await running
    for (let next = await slow.next(); next.done !== true; next = await slow.next()) seen.push(next.value)
    expect(seen.filter(({ durable }) => durable)).toEqual(await eventsOfRun(log, 'run_1'))
  })

  test('RI-17 it ends when its signal is aborted, and leaves the run as it is', async () => {
    const { harness } = await paused()
    const controller = new AbortController()
    for await (const event of harness.follow('run_p', { signal: controller.signal }))
      if (event.kind === 'run_completed') controller.abort()
    expect((await harness.resume('run_p', [YES])).text).toBe('Done.')
  })

  test('RI-18 it rejects an unknown run and invalid options', async () => {
    const { harness } = await paused()
    const reading = (async () => {
      for await (const event of harness.follow('run_9')) expect.fail(event.kind)
    })()
    expect((await failureOf(reading)).code).toBe('run_not_found')
    expect(() => harness.follow('run_p', { after: -1 })).toThrow(/`after`/)
    expect(() => harness.follow('../p')).toThrow(/`runId`/)
  })
})

describe('a stream', () => {
  test('RI-19 it can steer its run', async () => {
    const asked = gate()
    const look = tool('look', () => asked.open())
    const model = new ScriptedModel().calls('look').says('Done, in blue.')
    const stream = harnessOf({ model, tools: [look] }).stream('Paint.')
    void stream.steer('In blue.')
    const result = await stream.result
    await asked.opened
    expect(JSON.stringify(result.transcript)).toContain('In blue.')
    const refused = { code: 'invalid_state', message: expect.stringContaining('no longer listens') as string }
    expect(() => stream.steer('In red.')).toThrow(expect.objectContaining(refused) as Error)
  })

  test('RI-20 it can be cancelled', async () => {
    const begun = gate()
    const work = tool('work', async (_args, { signal }) => {
      begun.open()
      await new Promise((resolve) => signal.addEventListener('abort', resolve))
    })
    const stream = harnessOf({ model: new ScriptedModel().calls('work'), tools: [work] }).stream('Go.')
    const failed = failureOf(stream.result)
    await begun.opened
    await stream.cancel()
    expect((await failed).code).toBe('cancelled')
  })

  test('RI-21 it yields its result even if its reader has stopped', async () => {
    const model = new ScriptedModel()
    for (let turn = 0; turn < 100; turn++) model.calls('look')
    const harness = harnessOf({ model: model.says('Done.'), tools: [tool('look')], limits: { modelRequests: null } })
    const stream = harness.stream('Go.')
    await stream[Symbol.asyncIterator]().next()
    expect((await stream.result).text).toBe('Done.')
  })
})

describe('`ifExists` decides what happens to a prompt whose run the log has', () => {
  test('`fail` rejects, `continue` gives the stored result, and without a run all begin one', async () => {
    const log = memoryLog()
    const model = new ScriptedModel().says('One.').says('Two.')
    const harness = harnessOf({ model, log })
    expect((await harness.run('Go.', { runId: 'a', ifExists: 'continue' })).text).toBe('One.')
    expect((await harness.run('Go.', { runId: 'b', ifExists: 'retry' })).text).toBe('Two.')
    expect((await failureOf(harness.run('Go.', { runId: 'a' }))).code).toBe('run_exists')
    expect((await harness.run('Other.', { runId: 'a', ifExists: 'continue' })).text).toBe('One.')
    expect(model.heard).toHaveLength(2)
  })

  test('`continue` gives the pause of a run that waits, and the error of one that failed; `retry` continues it', async () => {
    const log = memoryLog()
    const pay = tool('pay', () => 'ok', { requiresApproval: true })
    const model = new ScriptedModel().calls('pay').fails(new Error('Down.')).says('Done.')
    const harness = harnessOf({ model, log, tools: [pay] })
    const begun = await harness.run('Go.', { runId: 'a', ifExists: 'continue' })
    const again = await harness.run('Go.', { runId: 'a', ifExists: 'continue', metadata: { attempt: 2 } })
    expect([again.status, again.pending]).toEqual(['paused', begun.pending])
    const failed = await failureOf(harness.run('Go.', { runId: 'b', ifExists: 'continue' }))
    expect((await failureOf(harness.run('Go.', { runId: 'b', ifExists: 'continue' }))).message).toBe(failed.message)
    const retried = await harness.run('Go.', { runId: 'b', ifExists: 'retry', metadata: { attempt: 2 } })
    expect(retried.text).toBe('Done.')
    expect((await log.inspect({ kind: 'run', id: 'b' }))?.metadata).toEqual({ attempt: 2 })
  })

  test('it needs the id of the run', async () => {
    expect(
      (await failureOf(harnessOf({ model: new ScriptedModel() }).run('Go.', { ifExists: 'continue' }))).message,
    ).toBe("`ifExists: 'continue'` needs the `runId` of the run that may exist.")
  })
})
