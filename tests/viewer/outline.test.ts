import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { defineTool, memoryLog } from 'thinharness'
import type { Answer, DurableEvent, Harness, LogStore, RunEvent, ToolSpec } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { callDetail } from '#viewer/finding/call-detail.js'
import { problemsOf } from '#viewer/finding/problems.js'
import { seriesOf, totalsOf } from '#viewer/finding/series.js'
import { skim } from '#viewer/reading/skim.js'
import { harnessOf, told, tool } from '../harness/support.js'
import { collect, eventsOfRun } from '../support/collect.js'
import { rounds } from '../support/length.js'
import { bookOf, textOf } from './support.js'

/** A run whose call waits for approval, is edited, and starts a run that starts a run. */
async function approvedRun(): Promise<{ readonly log: LogStore; readonly runId: string }> {
  const log = memoryLog()
  const deep: ToolSpec = defineTool({
    name: 'deep',
    description: 'Starts a run.',
    parameters: z.object({ n: z.number() }),
    handler: async ({ n }, { spawn }): Promise<string> => {
      const model =
        n > 0 ? new ScriptedModel().calls('deep', { n: n - 1 }).says(`level ${n}`) : new ScriptedModel().says('end')
      return (await spawn({ prompt: `Level ${n}.`, agentName: `agent ${n}`, model, tools: [deep] }).result).text
    },
  })
  const gated = { ...deep, name: 'start', requiresApproval: true }
  const model = new ScriptedModel().calls('start', { n: 5 }).says('Done.')
  const harness: Harness = harnessOf({ log, model, tools: [gated] })
  const { runId, pending } = await harness.run('Go deep.')
  const answers: Answer[] = pending.map(({ callId }) => ({
    ...{ callId, approved: true, by: 'Ada', editedArguments: { n: 2 } },
  }))
  await harness.resume(runId, answers)
  return { log, runId }
}

describe('the outline', () => {
  test('VW-11 has turns, calls, people and child runs at any depth', async () => {
    const { log, runId } = await approvedRun()
    const book = await bookOf(log, { runId })
    const run = book.run(runId)
    expect(run).toMatchObject({
      state: 'completed',
      prompt: 'Go deep.',
      begun: 'resumed',
      model: 'scripted:scripted-1',
    })
    expect(run?.pauses).toEqual([
      expect.objectContaining({ reason: 'approval_required', to: expect.any(Number) as number }),
    ])
    const [turn, last] = run?.turns ?? []
    expect(turn?.calls).toMatchObject([
      { toolName: 'start', state: 'completed', argument: '{"n":5}', starts: [expect.any(Number)] },
    ])
    expect(turn?.calls[0]?.waits).toHaveLength(1)
    expect(last).toMatchObject({ text: 'Done.', resolution: 'final', tokens: { input: 10, output: 5, cached: 0 } })
  })

  test('VW-14 has child runs below the call that started them', async () => {
    const { log, runId } = await approvedRun()
    const book = await bookOf(log, { runId })
    const names: (string | null)[] = []
    let [node] = book.childrenOf(runId, 'call_1')
    while (node !== undefined) {
      names.push(node.agentName)
      node = book.childrenOf(node.runId)[0]
    }
    expect(names).toEqual(['agent 2', 'agent 1', 'agent 0'])
    expect(book.childrenOf(runId, 'call_9')).toEqual([])
  })

  test('VW-06 parses no event in full, and one event to show it', async () => {
    const { log, runId } = await approvedRun()
    const book = await bookOf(log, { runId })
    for (const id of book.runIds) book.run(id)
    expect(book.parsed).toBe(0)
    expect(book.event({ runId, seq: 1 })).toMatchObject({ kind: 'run_started', prompt: 'Go deep.' })
    expect(book.parsed).toBe(1)
  })

  test('VW-11 has what each event of a live stream says of retries and withdrawn attempts', async () => {
    const model = new ScriptedModel().always(({ options }) => {
      options.onDelta?.({ kind: 'text', text: 'Half' } as never)
      options.onRetry?.({ attempt: 1, delayMs: 5, reason: 'Overloaded.', status: 529, withdrawn: true })
      return 'Whole.'
    })
    const { events } = await told(harnessOf({ model }).stream('Go.', { deltas: true }))
    const book = await bookOf(events as RunEvent[])
    const [turn] = book.run(events[0]?.runId ?? '')?.turns ?? []
    expect(turn?.firstDeltaAt).not.toBeNull()
    expect(turn?.attempts).toMatchObject([{ status: 529, withdrawn: true, failure: 'Overloaded.' }])
    expect(turn?.marks.map(({ kind }) => kind)).toContain('transport_retry')
  })

  test('VW-14 of a background run names where it was left and where it reported', async () => {
    const log = memoryLog()
    const model = new ScriptedModel()
      .calls('subagent', { agent: 'clerk', task: 'Count.' })
      .says('Waiting.')
      .says('Done.')
    const clerk = {
      name: 'clerk',
      description: 'Counts.',
      background: true,
      tools: [],
      model: new ScriptedModel().says('Three.'),
    }
    const { runId } = await harnessOf({ log, model, subagents: [clerk] }).run('Go.')
    const book = await bookOf(log, { runId })
    const [call] = book.run(runId)?.turns[0]?.calls ?? []
    const [child] = book.childrenOf(runId)
    expect(call?.background).toEqual([
      { runId: child?.runId, agent: 'clerk', task: 'Count.', reportSeq: expect.any(Number) as number },
    ])
    expect(book.event({ runId, seq: call?.background[0]?.reportSeq ?? 0 })).toMatchObject({
      kind: 'background_reported',
    })
    expect(child).toMatchObject({ agentName: 'clerk', state: 'completed' })
  })
})

describe('a call', () => {
  test('VW-13 has its arguments in all their forms, who decided what, envelope and times', async () => {
    const { log, runId } = await approvedRun()
    const book = await bookOf(log, { runId })
    const detail = callDetail(book, { runId, callId: 'call_1' })
    expect(detail).toMatchObject({
      rawArguments: '{"n":5}',
      repairedArguments: null,
      editedArguments: '{"n":2}',
      usedArguments: '{"n":2}',
      envelope: { ok: true, content: 'level 2' },
      idempotencyKey: `${runId}:call_1`,
      source: { kind: 'agent' },
      interrupted: [],
    })
    expect(detail?.asked).toMatchObject([
      { kind: 'approval', callId: 'call_1', answers: [{ by: 'Ada', verdict: 'approved', reason: null }] },
    ])
    expect(detail?.begun).toHaveLength(1)
    expect(detail?.childUsage).toMatchObject({ children: { modelRequests: 5 } })
    expect(callDetail(book, { runId, callId: 'call_9' })).toBeNull()
  })

  test('VW-13 that a hook changed has what the hook wrote, and broken JSON as it was repaired', async () => {
    const log = memoryLog()
    const model = new ScriptedModel().calls('look', '{"a": 1,').says('Done.')
    const harness = harnessOf({
      ...{ log, model, tools: [tool('look', (args) => JSON.stringify(args))] },
      hooks: [{ event: 'before_tool_call', handler: () => ({ args: { a: 2 } }) }],
    })
    const { runId } = await harness.run('Go.')
    const detail = callDetail(await bookOf(log, { runId }), { runId, callId: 'call_1' })
    expect(detail).toMatchObject({
      hookArguments: '{"a":2}',
      usedArguments: '{"a":2}',
      envelope: { content: '{"a":2}' },
    })
  })
})

describe('problems', () => {
  test('VW-15 are failed calls, loops and the failure of the run, those of child runs too', async () => {
    const log = memoryLog()
    const model = new ScriptedModel().always(({ transcript }) => {
      const results = transcript.filter(({ role }) => role === 'tool').length
      if (results === 4) throw new Error('Down.')
      return { calls: [{ name: results === 0 ? 'fail' : 'look', arguments: {} }] }
    })
    const fail = tool('fail', () => {
      throw new Error('No such file.')
    })
    const harness = harnessOf({ log, model, tools: [fail, tool('look', () => 'the same')] })
    await expect(harness.run('Go.', { runId: 'run_1' })).rejects.toThrow('Down.')
    const book = await bookOf(log, { runId: 'run_1' })
    const problems = problemsOf(book, 'run_1')
    expect(problems.map(({ kind, turn, isGrave }) => [kind, turn, isGrave])).toEqual([
      ['failed_call', 1, false],
      ['loop', 4, true],
      ['failed_run', null, true],
    ])
    expect(problems[1]?.text).toBe('look was called 3 times with the same arguments and the same result.')
    expect(book.event(problems[0] ?? { runId: '', seq: 0 })).toMatchObject({ kind: 'tool_call_completed', ok: false })
    expect(totalsOf(book.run('run_1') ?? expect.fail())).toMatchObject({
      turns: 5,
      calls: 4,
      failedCalls: 1,
      input: 40,
    })
  })

  test('VW-16 plots have a point for each turn, and say why a cache was lost', async () => {
    const usage = (cached: number, write: number) => ({
      ...{ inputTokens: 5000, outputTokens: 10, cacheReadTokens: cached, cacheWriteTokens: write, reasoningTokens: 0 },
    })
    const log = memoryLog()
    const model = new ScriptedModel()
    for (const [cached, write] of [
      [0, 4000],
      [4000, 900],
      [0, 4900],
    ] as const)
      model.replies({ calls: [{ name: 'look', arguments: {} }], usage: usage(cached, write) })
    model.says('Done.')
    const { runId } = await harnessOf({
      log,
      model,
      tools: [tool('look')],
    }).run('Go.')
    const points = seriesOf((await bookOf(log, { runId })).run(runId) ?? expect.fail())
    expect(points.map(({ turn, fresh, cached, lostCache }) => [turn, fresh, cached, lostCache])).toEqual([
      [1, 5000, 0, null],
      [2, 1000, 4000, null],
      [3, 5000, 0, 'The cause is not known.'],
      [4, 10, 0, 'The cause is not known.'],
    ])
  })
})

describe('a log that is not whole', () => {
  async function events(): Promise<readonly DurableEvent[]> {
    const log = memoryLog()
    const model = new ScriptedModel().calls('look', {}).says('Done.')
    await harnessOf({ log, model, tools: [tool('look')] }).run('Go.', { runId: 'run_1' })
    return eventsOfRun(log, 'run_1')
  }

  test('VW-07 whose last line is cut, whose middle is broken, or of an unknown kind or a later format is shown as far as it goes', async () => {
    const all = await events()
    const lines = textOf(all).trimEnd().split('\n')
    const changed = (index: number, line: string): string => lines.with(index, line).join('\n')
    const later = changed(0, (lines[0] ?? '').replace('"version":3', '"version":9'))
    const cases: readonly (readonly [text: string, damage: object])[] = [
      [lines.join('\n').slice(0, -20), { kind: 'cut', line: lines.length }],
      [`${changed(3, '{"kind":"tool_call_')}\n`, { kind: 'broken', line: 4 }],
      [
        changed(3, '{"kind":"wonder","runId":"run_1","seq":4,"at":"2026-01-01T00:00:00.000Z"}'),
        { kind: 'unknown_kind', line: 4 },
      ],
      [later, { kind: 'later_format' }],
      [lines.toSpliced(3, 1).join('\n'), { kind: 'missing', line: 4 }],
    ]
    for (const [text, damage] of cases) {
      const run = (await bookOf(text)).run('run_1')
      expect(run?.damage).toContainEqual(expect.objectContaining(damage))
      expect(run?.damage.every(({ message }) => message.length > 10)).toBe(true)
      expect(run?.turns.length).toBe(2)
    }
  })

  test('never makes the outline fail, whatever is cut or exchanged in it', async () => {
    const text = textOf(await events())
    await fc.assert(
      fc.asyncProperty(fc.nat(text.length), fc.nat(60), fc.string(), async (at, length, other) => {
        const broken = text.slice(0, at) + other + text.slice(at + length)
        const book = await bookOf(broken).catch(() => null)
        for (const runId of book?.runIds ?? []) expect(book?.run(runId)?.runId).toBe(runId)
      }),
      rounds(150),
    )
  })

  test('skimmed JSON is the same value, cut; and JSON that ends early is refused', () => {
    fc.assert(
      fc.property(
        fc.dictionary(
          fc.string({ minLength: 1 }).map((name) => `_${name}`),
          fc.jsonValue({ maxDepth: 3 }),
        ),
        fc.nat(),
        (value, cut) => {
          const text = JSON.stringify(value)
          // A member of that name could change the object: it is left out.
          const safe: unknown = JSON.parse(text, (name, member: unknown) => (name === '__proto__' ? undefined : member))
          expect(skim(text)).toEqual(safe)
          expect(() => skim(text.slice(0, cut % text.length))).toThrow(SyntaxError)
        },
      ),
      rounds(300),
    )
    const long = skim(JSON.stringify({ text: 'a"\\\n'.repeat(500), native: { deep: [1, '}', { x: ']' }] }, z: 1 }))
    expect(long['text']).toMatch(/^a"\\\n.{100,}…$/s)
    expect(long).toMatchObject({ z: 1 })
    expect(long).not.toHaveProperty('native')
  })
})

describe('a run that goes on', () => {
  test('VW-23 is the same book, event by event, as the page of all events', async () => {
    const { log, runId } = await approvedRun()
    const whole = await bookOf(log, { runId })
    const ids = whole.runIds
    const all = (await Promise.all(ids.map((id) => collect(log.export(id)))))
      .flat()
      .sort((one, other) => (one.at < other.at ? -1 : 1))
    const book = await bookOf(all.filter((event) => event.runId === runId).slice(0, 1))
    for (const id of ids)
      for (const event of all.filter((each) => each.runId === id)) {
        const isNew = !(id === runId && event.seq === 1)
        expect(book.append(event as never)).toBe(isNew)
        expect(book.append(event as never)).toBe(false)
      }
    for (const id of ids) {
      expect(book.run(id)).toEqual(whole.run(id))
      expect(book.bytesOf(id)).toEqual(whole.bytesOf(id))
    }
    expect(book.cursorOf(runId)).toBe(whole.cursorOf(runId))
  })
})
