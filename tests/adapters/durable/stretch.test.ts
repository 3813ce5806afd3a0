import { describe, expect, test } from 'vitest'
import { HarnessError, memoryLog } from 'thinharness'
import type { DurableEvent, HarnessOptions, LogStore } from 'thinharness'
import { endingOf, endOfStretch, followLog, performStretch } from 'thinharness/durable'
import type { StretchWork } from 'thinharness/durable'
import { ask, playing } from '../../run/children/children-support.js'
import { eventsIn, logWith } from '../../run/resume/pause-support.js'
import { failureOf, gate, harnessOf, kinds, tool } from '../../harness/support.js'
import { collect } from '../../support/collect.js'

const PLAYS = {
  go: [['once', 'safe'], ['once'], 'Done.'],
  ask: [['once', 'ask'], ['ask'], 'Thank you.'],
  fail: [['once']],
  leave: [['leave'], 'I wait.', 'It is there.'],
  below: [['ask'], 'Thank you.'],
}
const begin = (prompt: string): StretchWork => ({ kind: 'begin', runId: 'run_a', prompt })

function harnessThat(ran: string[], more: HarnessOptions = {}) {
  const once = tool('once', (_, { callId }) => ran.push(callId))
  const safe = tool('safe', () => 'ok', { annotations: { readOnly: true } })
  return harnessOf({ model: playing(PLAYS), tools: [once, safe, { ...ask, annotations: { readOnly: true } }], ...more })
}

/** A log of which everything behind event `last` is lost, as when the process had ended then. */
const cutAt = (events: readonly DurableEvent[], last: number): Promise<LogStore> => logWith(events.slice(0, last))

describe('a step of a run', () => {
  test('DU-01 it starts a run and completes it; repeated, it does nothing', async () => {
    const ran: string[] = []
    const [harness, log] = [harnessThat(ran), memoryLog()]
    const ending = await performStretch(begin('go'), { harness, log })
    const { lastSeq } = (await log.inspect({ kind: 'run', id: 'run_a' }))!
    expect(ending).toEqual({ kind: 'ended', seq: lastSeq })
    expect(await performStretch(begin('go'), { harness, log })).toEqual(ending)
    expect([ran.length, (await log.inspect({ kind: 'run', id: 'run_a' }))?.lastSeq]).toEqual([2, lastSeq])
    expect(await endingOf({ harness, log }, 'run_a', lastSeq)).toMatchObject({ text: 'Done.' })
  })

  test('DU-02 it continues from wherever the previous process ended; no call is executed twice', async () => {
    const whole = memoryLog()
    await performStretch(begin('go'), { harness: harnessThat([]), log: whole })
    const events = await eventsIn(whole, 'run_a')
    for (let last = 1; last < events.length; last++) {
      const log = await cutAt(events, last)
      const started = events.slice(0, last).flatMap((event) => (event.kind === 'tool_call_started' ? [event] : []))
      const ran: string[] = []
      const ending = await performStretch(begin('go'), { harness: harnessThat(ran), log })
      expect([last, ending]).toEqual([
        last,
        { kind: 'ended', seq: (await log.inspect({ kind: 'run', id: 'run_a' }))?.lastSeq },
      ])
      expect(ran.filter((callId) => started.some((event) => event.callId === callId))).toEqual([])
      expect(await endingOf({ harness: harnessThat([]), log }, 'run_a', (ending as { seq: number }).seq)).toMatchObject(
        { text: 'Done.' },
      )
    }
  })

  test('DU-03 it accepts answers once, wherever the previous process ended', async () => {
    const whole = memoryLog()
    const paused = await performStretch(begin('ask'), { harness: harnessThat([]), log: whole })
    const after = (paused as { seq: number }).seq
    const [item] = (await whole.inspect({ kind: 'run', id: 'run_a' }))!.pending
    const answers = [{ callId: item!.callId, answer: 'This one.' }]
    const work: StretchWork = { kind: 'answer', runId: 'run_a', answers, after }
    await performStretch(work, { harness: harnessThat([]), log: whole })
    const events = await eventsIn(whole, 'run_a')
    expect(await endOfStretch(whole, begin('ask'))).toBe(after)
    expect(await endOfStretch(whole, work)).toBe(events.length)
    for (let last = after; last <= events.length; last++) {
      const log = await cutAt(events, last)
      const ending = await performStretch(work, { harness: harnessThat([]), log })
      const now = await eventsIn(log, 'run_a')
      const given = now.filter((event) => event.kind === 'answer_received')
      expect([last, ending, given.length]).toEqual([last, { kind: 'ended', seq: now.length }, 1])
      // The second question has taken the place of the first.
      expect((await log.inspect({ kind: 'run', id: 'run_a' }))?.pending.map(({ callId }) => callId)).toEqual(['call_3'])
    }
  })

  test('DU-04 it lasts until background work has ended or has a question', async () => {
    const leave = tool(
      'leave',
      (_, context) => context.spawn({ prompt: 'below', background: true, tools: [ask] }).runId,
      { onUnknownOutcome: 'retry' },
    )
    const log = memoryLog()
    const harness = () => harnessThat([], { tools: [leave] })
    const paused = await performStretch(begin('leave'), { harness: harness(), log })
    const after = (paused as { seq: number }).seq
    const [item] = (await log.inspect({ kind: 'run', id: 'run_a' }))!.pending
    const work: StretchWork = {
      kind: 'answer',
      runId: 'run_a',
      answers: [{ callId: item!.callId, answer: 'x' }],
      after,
    }
    const events = await eventsIn(log, 'run_a')
    const ending = await performStretch(work, { harness: harness(), log })
    const { seq } = ending as { seq: number }
    expect(await endingOf({ harness: harness(), log }, 'run_a', seq)).toMatchObject({ text: 'It is there.' })
    const cut = await cutAt(await eventsIn(log, 'run_a'), events.length + 3)
    expect(await performStretch(work, { harness: harness(), log: cut })).toMatchObject({ kind: 'ended' })
    expect((await cut.inspect({ kind: 'run', id: 'run_a' }))?.status).toBe('completed')
  })

  test('DU-05 it waits while another process owns the run, and returns that outcome', async () => {
    const log = memoryLog()
    const [working, opened] = [gate(), gate()]
    const slow = tool('once', async () => {
      working.open()
      await opened.opened
      return 'ok'
    })
    const first = performStretch(begin('go'), { harness: harnessThat([], { tools: [slow, tool('safe')] }), log })
    await working.opened
    const ran: string[] = []
    const second = performStretch(begin('go'), { harness: harnessThat(ran), log })
    opened.open()
    expect(await second).toEqual(await first)
    expect(ran).toEqual([])
  })

  test('DU-06 it ends with the run’s own failure, which its result rejects with', async () => {
    const [harness, log] = [harnessThat([]), memoryLog()]
    const ending = await performStretch(begin('fail'), { harness, log })
    expect(ending).toEqual({ kind: 'ended', seq: (await log.inspect({ kind: 'run', id: 'run_a' }))?.lastSeq })
    const error = await failureOf(endingOf({ harness, log }, 'run_a', (ending as { seq: number }).seq))
    expect(error.run.toolCallRecords).toHaveLength(1)
  })

  test.each<[string, StretchWork, string]>([
    ['answers for a run that nobody knows', { kind: 'answer', runId: 'run_a', answers: [], after: 1 }, 'run_not_found'],
    ['a prompt that is none', { kind: 'begin', runId: 'run_a', prompt: 7 as unknown as string }, 'invalid_options'],
  ])('DU-07 it rejects invalid work (%s)', async (_name, work, code) => {
    const ending = await performStretch(work, { harness: harnessThat([]), log: memoryLog() })
    expect(ending).toMatchObject({ kind: 'refused', code })
  })

  test('DU-08 it rejects answers that the harness rejects, and leaves the run as it is', async () => {
    const [harness, log] = [harnessThat([]), memoryLog()]
    const { seq: after } = (await performStretch(begin('ask'), { harness, log })) as { seq: number }
    const answers = [{ callId: 'call_2', answer: 7 }]
    const ending = await performStretch({ kind: 'answer', runId: 'run_a', answers, after }, { harness, log })
    expect(ending).toMatchObject({ kind: 'refused', code: 'invalid_answer' })
    expect(await log.inspect({ kind: 'run', id: 'run_a' })).toMatchObject({ status: 'paused', lastSeq: after })
  })

  test('DU-09 it does nothing once it was cancelled', async () => {
    const log = memoryLog()
    const means = { harness: harnessThat([]), log, signal: AbortSignal.abort() }
    expect(await performStretch(begin('go'), means)).toMatchObject({ kind: 'refused', code: 'cancelled' })
    expect(await log.inspect({ kind: 'run', id: 'run_a' })).toBeNull()
  })

  test('DU-10 it continues when the log is available again', async () => {
    const log = memoryLog()
    let lost = 1
    const failing = withAppend(log, (append) => {
      if (lost-- > 0) return Promise.reject(new HarnessError('store_failure', 'No connection.'))
      return append()
    })
    const ran: string[] = []
    const ending = await performStretch(begin('go'), { harness: harnessThat(ran), log: failing })
    expect([ending.kind, ran.length]).toEqual(['ended', 2])
  })

  test('DU-11 it gives up a run that ends its process again and again', async () => {
    const whole = memoryLog()
    await performStretch(begin('go'), { harness: harnessThat([]), log: whole })
    const [started] = await eventsIn(whole, 'run_a')
    const again = Array.from({ length: 10 }, (_, index) => ({ ...started!, begun: 'recovered', seq: index + 2 }))
    const log = await cutAt([started!, ...again] as DurableEvent[], 11)
    expect(await performStretch(begin('go'), { harness: harnessThat([]), log })).toEqual({
      kind: 'refused',
      code: 'error',
      message: 'Run `run_a` was interrupted 10 times without progress: it is not tried again.',
    })
  })
})

describe('following a run', () => {
  test('DU-12 it yields stored and new events, and ends with the run', async () => {
    const [harness, log] = [harnessThat([]), memoryLog()]
    const following = collect(followLog(log, 'run_a', { isIdle: () => Promise.resolve(false) }))
    await performStretch(begin('go'), { harness, log })
    const events = await following
    expect(events.map(({ seq }) => seq)).toEqual((await eventsIn(log, 'run_a')).map(({ seq }) => seq))
    expect(
      kinds(await collect(followLog(log, 'run_a', { after: events.length - 1, isIdle: () => Promise.resolve(false) }))),
    ).toBe('run_completed')
  })

  test('DU-13 it ends if nobody will continue the run, and when it is closed', async () => {
    const log = memoryLog()
    expect(await collect(followLog(log, 'run_a', { isIdle: () => Promise.resolve(true) }))).toEqual([])
    const options = { signal: AbortSignal.timeout(50), isIdle: () => Promise.resolve(false) }
    expect(await collect(followLog(log, 'run_a', options))).toEqual([])
  })
})

/** The log, with something before its appends. */
function withAppend(log: LogStore, through: (append: () => Promise<void>) => Promise<void>): LogStore {
  const append: LogStore['append'] = (...args) => through(() => log.append(...args))
  return new Proxy(log, {
    get(target, name) {
      const member: unknown = name === 'append' ? append : Reflect.get(target, name)
      return typeof member === 'function' ? (member.bind(target) as unknown) : member
    },
  })
}
