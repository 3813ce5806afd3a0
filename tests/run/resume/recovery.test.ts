import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { HarnessError, memoryLog } from 'thinharness'
import type { DurableEvent, HarnessResult, ToolSpec } from 'thinharness'
import type { Verdict } from '#core/state/answers.js'
import { ScriptedModel } from 'thinharness/testing'
import { ask, delegateTool, playing } from '../children/children-support.js'
import { eventsIn, logWith, stored, watchedLog } from './pause-support.js'
import { eventsOf, failureOf, harnessOf, kinds, ofKind, told, tool } from '../../harness/support.js'

/** What the runs of a test may call; `ran` tells which calls were really run, by their key. */
function effectTools(ran: string[]): ToolSpec[] {
  const effect = (name: string, beside = {}): ToolSpec =>
    tool(
      name,
      (_, { idempotencyKey }) => {
        ran.push(idempotencyKey)
        return name
      },
      beside,
    )
  return [
    effect('once'),
    effect('safe', { annotations: { readOnly: true } }),
    effect('last', { sequential: true, annotations: { idempotent: true } }),
  ]
}

/** The calls of a log by what is known of them: started, and completed. */
function callsIn(events: readonly DurableEvent[]) {
  const started = new Set<string>()
  const completed = new Map<string, DurableEvent & { kind: 'tool_call_completed' }>()
  for (const event of events) {
    if (event.kind === 'tool_call_started') started.add(`${event.runId}:${event.callId}`)
    if (event.kind === 'tool_call_completed') completed.set(`${event.runId}:${event.callId}`, event)
  }
  return { started, completed }
}

const PLAYS = {
  go: [['once', 'safe', 'delegate', 'last', 'once'], ['safe'], 'All done.'],
  a: [['once', 'deeper'], 'A done.'],
  b: [['safe', 'once'], 'B done.'],
}

function treeTools(ran: string[]): ToolSpec[] {
  const effects = effectTools(ran)
  return [...effects, delegateTool('delegate', { a: [...effects, delegateTool('deeper', { b: effects })] })]
}

describe('an interrupted run', () => {
  test('continues from the end of its log to the same end; only repeatable calls run twice, none is lost silently', async () => {
    const log = watchedLog()
    const reference = await harnessOf({ model: playing(PLAYS), tools: treeTools([]), log }).run('go', {
      runId: 'run_r',
    })
    expect(log.kept.length).toBeGreaterThan(30)
    for (let cut = 1; cut <= log.kept.length; cut++) {
      const before = log.kept.slice(0, cut)
      const left = await logWith(before)
      const ran: string[] = []
      const known = callsIn(before)
      const stream = harnessOf({ model: playing(PLAYS), tools: treeTools(ran), log: left }).streamRecover('run_r')
      const result = await stream.result
      expect([cut, result.text, result.usage.toolCalls]).toEqual([cut, reference.text, reference.usage.toolCalls])
      expect(result.usage.children.toolCalls).toBe(reference.usage.children.toolCalls)
      // What had ended is kept as it was.
      expect(ran.filter((key) => known.completed.has(key))).toEqual([])
      const after: DurableEvent[] = []
      for (const runId of new Set(log.kept.map((event) => event.runId))) after.push(...(await eventsIn(left, runId)))
      for (const [key, { toolName, errorType }] of callsIn(after).completed) {
        if (!['once', 'safe', 'last'].includes(toolName) || known.completed.has(key)) continue
        const isUnknown = toolName === 'once' && known.started.has(key)
        expect([key, ran.filter((each) => each === key).length, errorType]).toEqual(
          isUnknown ? [key, 0, 'UnknownOutcome'] : [key, 1, null],
        )
      }
    }
  })

  test('its stream reports the recovery, and the outcome of each call that was in progress', async () => {
    const log = watchedLog()
    const run = { model: playing(PLAYS), log }
    await harnessOf({ ...run, tools: treeTools([]) }).run('go', { runId: 'run_r', metadata: { tenant: 'a' } })
    const cut = log.kept.findIndex(({ kind }) => kind === 'tool_call_completed')
    const left = await logWith(log.kept.slice(0, cut))
    const stream = harnessOf({ model: playing(PLAYS), tools: treeTools([]), log: left }).streamRecover('run_r')
    const events = (await eventsOf(stream)).filter(({ runId }) => runId === 'run_r')
    expect(events[0]).toMatchObject({
      kind: 'run_started',
      begun: 'recovered',
      prompt: null,
      metadata: { tenant: 'a' },
    })
    expect(ofKind(events, 'tool_call_interrupted').map(({ toolName, settledBy }) => [toolName, settledBy])).toEqual([
      ['once', 'report'],
      ['safe', 'retry'],
      ['delegate', 'retry'],
    ])
    expect((await eventsIn(left, 'run_r')).map(({ seq }) => seq)).toEqual(
      Array.from({ length: (await eventsIn(left, 'run_r')).length }, (_, index) => index + 1),
    )
  })

  test('161 its final transcript is the fold of its log, and the next run continues from it', async () => {
    const log = memoryLog()
    const harness = harnessOf({ model: playing({ ...PLAYS, more: ['More.'] }), tools: treeTools([]), log })
    const result = await harness.run('go', { runId: 'run_r' })
    const folded = await harnessOf({ model: new ScriptedModel(), tools: [], log }).recover('run_r')
    expect(folded.transcript).toEqual(JSON.parse(JSON.stringify(stored(result)['transcript'])))
    expect(folded).toMatchObject({ text: result.text, output: result.output, usage: result.usage })
    expect(folded.toolCallRecords).toEqual(result.toolCallRecords)
  })

  test('returns its pending items if it waited for people, and accepts answers', async () => {
    const log = memoryLog()
    const model = () => new ScriptedModel().always(({ turn }) => (turn === 0 ? { calls: [{ name: 'ask' }] } : 'Done.'))
    const first = await harnessOf({ model: model(), tools: [ask], log }).run('go', { runId: 'run_q' })
    const before = await eventsIn(log, 'run_q')
    const harness = harnessOf({ model: model(), tools: [ask], log })
    const again = await harness.recover('run_q')
    expect(again).toMatchObject({ stopReason: 'input_required', text: first.text, pending: first.pending })
    expect(await eventsIn(log, 'run_q')).toEqual(before)
    expect((await harness.resume(stored(again), [{ callId: 'call_1', answer: 'x' }])).text).toBe('Done.')
  })

  test('keeps answers that it had not used yet', async () => {
    const log = watchedLog()
    const model = () => new ScriptedModel().always(({ turn }) => (turn === 0 ? { calls: [{ name: 'pay' }] } : 'Done.'))
    const ran: unknown[] = []
    const pay = tool('pay', (args) => void ran.push(args), { requiresApproval: true })
    const paused = await harnessOf({ model: model(), tools: [pay], log }).run('go', { runId: 'run_p' })
    const pausedAt = log.kept.length
    await harnessOf({ model: model(), tools: [pay], log }).resume(stored(paused), [
      { callId: 'call_1', approved: true, editedArguments: { n: 3 } },
    ])
    for (let cut = pausedAt + 1; cut <= log.kept.length; cut++) {
      ran.length = 0
      const left = await logWith(log.kept.slice(0, cut))
      const harness = harnessOf({ model: model(), tools: [pay], log: left })
      const result = await harness.recover('run_p')
      const last = log.kept[cut - 1]!.kind
      const early = last === 'run_started' || last === 'approval_resumed'
      expect([last, result.pending.length]).toEqual([last, early ? 1 : 0])
      expect(ran).toEqual(last === 'answer_received' ? [{ n: 3 }] : [])
    }
  })
})

describe('a run that cannot be recovered', () => {
  test('returns its stored result if it has ended, runs nothing and stores nothing', async () => {
    const outputType = z.object({ n: z.number().transform((n) => n + 1) })
    const log = memoryLog()
    const model = new ScriptedModel().says('{"n":1}')
    const options = { outputType, outputMode: 'prompted', log } as const
    const result = await harnessOf({ ...options, model }).run('go', { runId: 'run_d' })
    const before = await eventsIn(log, 'run_d')
    const stream = harnessOf({ ...options, model: new ScriptedModel() }).streamRecover('run_d')
    expect(kinds(await eventsOf(stream))).toBe('run_completed')
    expect((await stream.result).output).toEqual({ n: 2 })
    expect((await stream.result).usage).toEqual(result.usage)
    expect(await eventsIn(log, 'run_d')).toEqual(before)
  })

  test('because it has failed rejects with the error it had', async () => {
    const log = memoryLog()
    const failed = await failureOf(
      harnessOf({ model: new ScriptedModel().fails('Down.'), log }).run('go', { runId: 'run_f' }),
    )
    const { events, thrown } = await told(harnessOf({ model: new ScriptedModel(), log }).streamRecover('run_f'))
    expect(kinds(events)).toBe('run_failed')
    expect(thrown).toBeInstanceOf(HarnessError)
    expect(thrown).toMatchObject({ code: failed.code, message: failed.message, run: { usage: failed.run.usage } })
  })

  test('is rejected if it is unknown or its id is invalid', async () => {
    const harness = harnessOf({ model: new ScriptedModel(), log: memoryLog() })
    expect((await failureOf(harness.recover('run_nobody'))).code).toBe('run_not_found')
    expect(() => harness.streamRecover('../etc')).toThrow(expect.objectContaining({ code: 'invalid_options' }) as Error)
  })

  test('is rejected with `run_owned` while it is in progress, which continues undisturbed', async () => {
    const log = memoryLog()
    let refused: unknown
    const other = harnessOf({ model: new ScriptedModel(), log })
    const look = tool('look', async () => void (refused = await failureOf(other.recover('run_o'))))
    const model = new ScriptedModel().calls('look').says('Done.')
    const result = await harnessOf({ model, tools: [look], log }).run('go', { runId: 'run_o' })
    expect(refused).toMatchObject({ code: 'run_owned', retryable: true })
    expect(result.text).toBe('Done.')
  })

  test('fails with its limit if that is below its usage, and continues with a higher one', async () => {
    const log = watchedLog()
    const model = () => playing({ go: [['safe', 'safe'], 'Done.'] })
    const tools = effectTools([])
    await failureOf(harnessOf({ model: model(), tools, log, limits: { toolCalls: 1 } }).run('go', { runId: 'run_l' }))
    const left = () => logWith(log.kept.filter(({ kind }) => kind !== 'run_failed'))
    const less = harnessOf({ model: model(), tools, log: await left(), limits: { toolCalls: 1 } })
    expect(await failureOf(less.recover('run_l'))).toMatchObject({ code: 'limit_reached' })
    const more = harnessOf({ model: model(), tools, log: await left(), limits: { toolCalls: 2 } })
    expect(await more.recover('run_l')).toMatchObject({ text: 'Done.', usage: { toolCalls: 2 } })
  })
})

describe('a call with an unknown outcome', () => {
  /** A run of one call of `pay` whose process ended under the call. */
  async function interrupted(beside: Partial<ToolSpec>) {
    const log = watchedLog()
    const ran: string[] = []
    const pay = tool('pay', (_, { idempotencyKey }) => (ran.push(idempotencyKey), 'paid'), beside)
    const model = () => playing({ go: [['pay'], 'Done.'] })
    await harnessOf({ model: model(), tools: [pay], log }).run('go', { runId: 'run_u' })
    const cut = log.kept.findIndex(({ kind }) => kind === 'tool_call_completed')
    const left = await logWith(log.kept.slice(0, cut))
    ran.length = 0
    const harness = harnessOf({ model: model(), tools: [pay], log: left })
    return { ran, left, harness, model, pay }
  }

  const happened = { outcome: 'happened', result: 'paid before' } as const
  test.each<[string, Partial<ToolSpec>, number, RegExp, string]>([
    ['is reported by default', {}, 0, /UnknownOutcome/, 'report'],
    ['is reported', { onUnknownOutcome: 'report' }, 0, /UnknownOutcome/, 'report'],
    ['is run again', { onUnknownOutcome: 'retry' }, 1, /"paid"/, 'retry'],
    ['is run again when it only reads', { annotations: { readOnly: true } }, 1, /"paid"/, 'retry'],
    ['is run again when it may be', { annotations: { idempotent: true } }, 1, /"paid"/, 'retry'],
    [
      'is reported when its tool says so, though it only reads',
      { annotations: { readOnly: true }, onUnknownOutcome: 'report' },
      0,
      /UnknownOutcome/,
      'report',
    ],
    ['is what `reconcile` found', { reconcile: async () => happened }, 0, /"paid before"/, 'reconcile'],
    [
      'is run when `reconcile` found nothing done',
      { reconcile: async () => ({ outcome: 'did_not_happen' }) },
      1,
      /"paid"/,
      'retry',
    ],
    [
      'is reported when `reconcile` cannot say',
      { reconcile: async () => ({ outcome: 'unknown' }) },
      0,
      /UnknownOutcome/,
      'report',
    ],
    [
      'is run again when `reconcile` cannot say and it may be',
      { reconcile: async () => ({ outcome: 'unknown' }), onUnknownOutcome: 'retry' },
      1,
      /"paid"/,
      'retry',
    ],
    [
      'is reported when `reconcile` fails',
      { reconcile: () => Promise.reject(new Error('No idea.')) },
      0,
      /UnknownOutcome/,
      'report',
    ],
    [
      'is reported when `reconcile` does not end',
      { reconcile: () => new Promise<never>(() => undefined), timeoutMs: 20 },
      0,
      /UnknownOutcome/,
      'report',
    ],
  ])('%s', async (_, beside, times, heard, settledBy) => {
    const { ran, harness } = await interrupted(beside)
    const stream = harness.streamRecover('run_u')
    const [event] = ofKind(await eventsOf(stream), 'tool_call_interrupted')
    const result = await stream.result
    expect([ran.length, event?.settledBy, result.text]).toEqual([times, settledBy, 'Done.'])
    expect(result.toolCallRecords[0]?.output).toMatch(heard)
    expect(ran.every((key) => key === 'run_u:call_1')).toBe(true)
  })

  test('`reconcile` receives the key of the call and its arguments', async () => {
    const asked: unknown[] = []
    const reconcile = async (...given: unknown[]) => (asked.push(given), happened)
    const { harness } = await interrupted({ reconcile })
    await harness.recover('run_u')
    expect(asked).toEqual([['run_u:call_1', {}]])
  })

  test.each<[string, Verdict, number, RegExp]>([
    ['it happened, with a result', happened, 0, /"paid before"/],
    ['it happened', { outcome: 'happened' }, 0, /"ok":true/],
    ['it did not happen', { outcome: 'did_not_happen' }, 0, /DidNotHappen/],
    ['it is to be run again', { outcome: 'run_again' }, 1, /"paid"/],
  ])('waits for a person, who decides that %s', async (_, answer, times, heard) => {
    const { ran, harness, model, pay, left } = await interrupted({ onUnknownOutcome: 'pause' })
    const paused = await harness.recover('run_u')
    expect(paused).toMatchObject({
      stopReason: 'input_required',
      pending: [{ kind: 'unknown_outcome', callId: 'call_1', toolName: 'pay', arguments: '{}', path: ['run_u'] }],
    })
    const next = harnessOf({ model: model(), tools: [pay], log: left })
    const result: HarnessResult = await next.resume(stored(paused), [{ callId: 'call_1', answer }])
    expect([ran.length, result.text]).toEqual([times, 'Done.'])
    expect(result.toolCallRecords[0]?.output).toMatch(heard)
  })

  test.each<[string, unknown, RegExp]>([
    ['of no kind', { outcome: 'maybe' }, /`answer.outcome` of the answer to `call_1` to be one of/],
    [
      'with a result of nothing',
      { outcome: 'run_again', result: 1 },
      /Unknown field of the answer to `call_1`: `answer.result`/,
    ],
    ['with a word more', { outcome: 'happened', because: 1 }, /because/],
    ['that is a string', 'happened', /`answer` of the answer to `call_1` to be an object/],
  ])('a verdict %s is rejected', async (_, answer, problem) => {
    const { ran, harness } = await interrupted({ onUnknownOutcome: 'pause' })
    const paused = await harness.recover('run_u')
    const failed = await failureOf(harness.resume(stored(paused), [{ callId: 'call_1', answer: answer as never }]))
    expect(failed).toMatchObject({ code: 'invalid_answer', message: expect.stringMatching(problem) as string })
    expect(ran).toEqual([])
  })

  test('of a missing tool is reported', async () => {
    const { left, model } = await interrupted({ onUnknownOutcome: 'retry' })
    const harness = harnessOf({ model: model(), log: left })
    const refused = await failureOf(harness.recover('run_u'))
    expect(refused).toMatchObject({
      code: 'invalid_state',
      message: expect.stringContaining('`pay` is gone') as string,
    })
    const result = await harness.recover('run_u', { configPolicy: 'any' })
    expect(result.toolCallRecords[0]?.output).toContain('UnknownOutcome')
  })

  test('holds the rest of its batch while a person is asked about it', async () => {
    const log = watchedLog()
    const ran: string[] = []
    const tools = [
      tool('pay', () => void ran.push('pay'), { onUnknownOutcome: 'pause' }),
      tool('late', () => void ran.push('late'), { sequential: true }),
    ]
    const model = () => playing({ go: [['pay', 'late'], 'Done.'] })
    await harnessOf({ model: model(), tools, log }).run('go', { runId: 'run_u' })
    const cut = log.kept.findIndex(({ kind }) => kind === 'tool_call_completed')
    ran.length = 0
    const harness = harnessOf({ model: model(), tools, log: await logWith(log.kept.slice(0, cut)) })
    const paused = await harness.recover('run_u')
    expect([paused.pending.length, ran]).toEqual([1, []])
    await harness.resume(stored(paused), [{ callId: 'call_1', answer: { outcome: 'happened' } }])
    expect(ran).toEqual(['late'])
  })
})
