import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { memoryLog } from 'thinharness'
import type { DurableEvent, PendingItem, RunSummary } from 'thinharness'
import { fold } from '#core/loop/apply.js'
import { digestOf, summaryOf } from '#core/log/run-summary.js'
import { StateAhead } from '#core/loop/run-context.js'
import { randomRun, play } from '../state/random-runs.js'
import { AT, Story, calls, event } from '../state/support.js'
import { rounds, timeLimit } from '../../support/length.js'

function summaryFrom(events: readonly DurableEvent[]): RunSummary {
  return summaryOf(digestOf(fold(structuredClone(events))!), false)
}

/** The summary that a log computes if its writer passes no digest. */
async function computed(events: readonly DurableEvent[]): Promise<RunSummary | null> {
  const log = memoryLog()
  const ref = { kind: 'run', id: events[0]?.runId ?? '' } as const
  await log.append(ref, events)
  return log.inspect(ref)
}

const item = (callId: string, toolName = 'a'): PendingItem => {
  return { kind: 'approval', callId, toolName, arguments: '{}', path: ['run_t'] }
}

describe('the summary of a run', () => {
  test(
    '161 a log computes the summary that its writer passes, at every event of random runs',
    async () => {
      await fc.assert(
        fc.asyncProperty(randomRun, async (run) => {
          const { log } = await play(run)
          for (let length = 1; length <= log.length; length++) {
            const events = log.slice(0, length)
            const state = fold(events)!
            const { usage, provider, model, seq, parent } = state
            expect(await computed(events)).toEqual(summaryOf(digestOf(state), false, expect.any(String) as string))
            expect(digestOf(state)).toMatchObject({ usage, provider, model, lastSeq: seq, parent })
          }
        }),
        rounds(30, 1_200),
      )
    },
    timeLimit(60_000),
  )

  test(
    '161 the digest that is passed with an append is that of the events so far',
    async () => {
      await fc.assert(
        fc.asyncProperty(randomRun, fc.integer({ min: 1, max: 4 }), async (run, together) => {
          const { log } = await play(run)
          const ahead = new StateAhead()
          for (let from = 0; from < log.length; from += together) {
            const state = fold(log.slice(0, from)) ?? null
            const events = log.slice(from, from + together)
            const expected = digestOf(fold(log.slice(0, from + together))!)
            ahead.fold(state, events, { entries: [] })
            expect(ahead.digest).toEqual(expected)
          }
        }),
        rounds(20, 800),
      )
    },
    timeLimit(60_000),
  )

  test('161 the digest of an append does not read the transcript again', () => {
    const { events } = new Story().asks().replies(calls('a')).starts('call_1').completes('call_1').asks()
    const ahead = new StateAhead()
    const first = fold(events.slice(0, 2))!
    ahead.fold(first, events.slice(2, 3), { entries: [] })
    for (let seq = 3; seq < events.length; seq++) {
      const state = fold(events.slice(0, seq))!
      const transcript = new Proxy(state.transcript, { get: () => expect.fail('The transcript was read.') })
      ahead.fold({ ...state, transcript }, events.slice(seq, seq + 1), { entries: [] })
      expect(ahead.digest.lastSeq).toBe(seq + 1)
    }
  })

  test('161 it lists pending items until they are answered, and not after', () => {
    const story = new Story().asks().replies(calls('a', 'b'))
    const pending = (): (string | undefined)[] => summaryFrom(story.events).pending.map(({ callId }) => callId)
    expect(pending()).toEqual([])
    story.then('approval_requested', { items: [item('call_1'), item('call_2')] })
    expect(pending()).toEqual(['call_1', 'call_2'])
    story.then('answer_received', { callId: 'call_1', answer: { callId: 'call_1', approved: true } })
    expect(pending()).toEqual(['call_2'])
    story.then('answer_received', { callId: 'call_2', answer: { callId: 'call_2', approved: true } })
    expect(pending()).toEqual([])
    story.starts('call_1')
    story.then('approval_requested', {
      callId: 'call_1',
      items: [item('call_1/call_9'), { ...item('call_1'), kind: 'question' }],
    })
    expect(pending()).toEqual(['call_1/call_9', 'call_1'])
    story.completes('call_1')
    expect(pending()).toEqual([])
  })

  test('161 a run is paused, continues, and ends', () => {
    const at = (seconds: number): { at: string } => ({ at: new Date(Date.parse(AT) + seconds * 1000).toISOString() })
    const { usage } = summaryFrom([event('run_started', 1)])
    const paused = { stopReason: 'approval_required', pending: ['call_1'], usage } as const
    const story = [event('run_started', 1), { ...event('run_completed', 2, paused), ...at(1) }] as DurableEvent[]
    expect(summaryFrom(story)).toMatchObject({ status: 'paused', stopReason: 'approval_required', endedAt: null })
    story.push({ ...event('run_started', 3, { begun: 'resumed' }), ...at(2) })
    expect(summaryFrom(story)).toMatchObject({ status: 'interrupted', stopReason: null, startedAt: AT })
    const told = { stopReason: 'cancelled', code: 'cancelled', message: 'Cancelled.', usage } as const
    story.push({ ...event('run_failed', 4, told), ...at(3) })
    expect(summaryFrom(story)).toMatchObject({
      status: 'cancelled',
      stopReason: 'cancelled',
      endedAt: at(3).at,
      updatedAt: at(3).at,
      pending: [],
      error: { code: 'cancelled', message: 'Cancelled.' },
    })
  })

  test.each<[string, (log: ReturnType<typeof memoryLog>) => Promise<unknown>, string]>([
    [
      'a status that is none',
      (log) =>
        log
          .list({ status: 'done' as never })
          [Symbol.asyncIterator]()
          .next(),
      'Expected `status` of `list` to be one of `queued`, `running`, `paused`, `interrupted`, `completed`, `failed`, `cancelled`, `unreadable` or a list, got `done`.',
    ],
    [
      'an unknown option of a list',
      (log) =>
        log
          .list({ statsu: 'paused' } as never)
          [Symbol.asyncIterator]()
          .next(),
      'Unknown option of `list`: `statsu`. Did you mean `status`?',
    ],
    [
      'a removal of everything that nobody asked for',
      (log) => log.prune({}),
      'Expected `prune` to be given `olderThanMs`, `keep` or `only`.',
    ],
    [
      'a removal of what runs',
      (log) => log.prune({ keep: 1, also: ['running' as never] }),
      'Expected `also[0]` of `prune` to be one of `paused`, `interrupted`, got `running`.',
    ],
    [
      'an age that is none',
      (log) => log.prune({ olderThanMs: -1 }),
      'Expected `olderThanMs` of `prune` to be a number from 0 to 100000000000000, got `-1`.',
    ],
    [
      'a claim without an owner',
      (log) => log.claim({ kind: 'run', id: 'run_a' }, '', 1),
      'Expected the owner of a claim to be a string that is not empty.',
    ],
    [
      'a claim without a time',
      (log) => log.claim({ kind: 'run', id: 'run_a' }, 'ann', Number.NaN),
      'Expected the time of a claim to be a number of ms from 0 up, got `NaN`.',
    ],
  ])('%s is rejected', async (_name, act, message) => {
    await expect(act(memoryLog())).rejects.toMatchObject({ code: 'invalid_options', message })
  })
})
