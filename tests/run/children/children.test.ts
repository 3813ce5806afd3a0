import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { HarnessError, memoryLog } from 'thinharness'
import type { Answer, HarnessResult, Hook } from 'thinharness'
import { ask, delegateTool, playing } from './children-support.js'
import { eventsIn, stored, watchedLog } from '../resume/pause-support.js'
import { eventsOf, failureOf, gate, harnessOf, ofKind, told, tool, until } from '../../harness/support.js'

describe('a run that a tool starts', () => {
  test('it is nested in the events, usage and log of its parent, under a stable id of its own', async () => {
    const look = tool('look')
    const tools = [delegateTool('delegate', { a: [look] })]
    const ids: string[] = []
    for (let round = 0; round < 2; round++) {
      const log = memoryLog()
      const model = playing({ go: [['delegate'], 'All done.'], a: [['look'], 'A done.'] })
      const stream = harnessOf({ model, tools, log }).stream('go', { runId: 'run_p', deltas: false })
      const events = await eventsOf(stream)
      const childId = events.find(({ runId }) => runId !== 'run_p')?.runId ?? ''
      ids.push(childId)
      const own = events.filter(({ runId }) => runId === childId)
      const [first] = own
      expect(first).toMatchObject({ parentRunId: 'run_p', parentToolCallId: 'call_1', agentName: 'default', seq: 1 })
      expect(own.map(({ kind }) => kind)).toContain('tool_call_completed')
      expect(await eventsIn(log, childId)).toHaveLength(own.length)
      const result = await stream.result
      expect(result.usage).toMatchObject({ modelRequests: 2, toolCalls: 1, inputTokens: 40 })
      expect(result.usage.children).toEqual({ modelRequests: 2, toolCalls: 1 })
    }
    expect(ids[0]).toMatch(/^run_[0-9a-f]{32}$/)
    expect(ids[0]).toBe(ids[1])
  })

  test('it pauses the call that started it, at any depth and in any number; answers arrive in parts, in any order', async () => {
    const plays = {
      go: [['delegate', 'ask'], 'All done.'],
      a: [['deeper'], 'A done.'],
      b: [['ask'], 'B done.'],
      c: [['ask', 'pay'], 'C done.'],
    }
    const paid: unknown[] = []
    const pay = tool('pay', () => void paid.push(1), { requiresApproval: true })
    const deeper = delegateTool('deeper', { c: [ask, pay] })
    const tools = [delegateTool('delegate', { a: [deeper], b: [ask] }), ask]
    const harness = () => harnessOf({ model: playing(plays), tools })
    const expected = ['call_1/a/call_1/c/call_2', 'call_1/b/call_1', 'call_2']
    for (const order of [expected, [...expected].reverse(), [expected[1]!, expected[2]!, expected[0]!]]) {
      paid.length = 0
      let result: HarnessResult = await harness().run('go', { runId: 'run_p' })
      expect(result.pending.map(({ callId, kind, path }) => [callId, kind, path.length])).toEqual([
        [expected[0], 'approval', 3],
        [expected[1], 'question', 2],
        [expected[2], 'question', 1],
      ])
      expect(result.stopReason).toBe('approval_required')
      for (const callId of order) {
        const answer = callId.endsWith('c/call_2') ? { callId, approved: true } : { callId, answer: 'this' }
        result = await harness().resume(stored(result), [answer])
      }
      // The batch of `c` was held by its approval: its question is asked behind that.
      expect(result.pending.map(({ callId }) => callId)).toEqual(['call_1/a/call_1/c/call_1'])
      result = await harness().resume(stored(result), [{ callId: 'call_1/a/call_1/c/call_1', answer: 'that' }])
      expect(result.text).toBe('All done.')
      expect(paid).toHaveLength(1)
      expect(result.usage).toMatchObject({
        modelRequests: 2,
        toolCalls: 2,
        children: { modelRequests: 6, toolCalls: 4 },
      })
    }
  })

  test('a finished one is not run again, even if the call is entered again without its log', async () => {
    const ran: string[] = []
    const effect = tool('effect', (_, { runId }) => void ran.push(runId))
    const children = Object.fromEntries(Array.from({ length: 24 }, (_, index) => [`n${index}`, [effect]]))
    const plays = Object.fromEntries(Object.keys(children).map((key) => [key, [['effect'], `${key} done.`]]))
    const tools = [delegateTool('delegate', { ...children, asks: [ask] })]
    const model = () => playing({ ...plays, go: [['delegate'], 'All done.'], asks: [['ask'], 'Asked.'] })
    for (const inSameProcess of [true, false]) {
      ran.length = 0
      const harness = harnessOf({ model: model(), tools })
      const paused = await harness.run('go')
      expect(ran).toHaveLength(24)
      const next = inSameProcess ? harness : harnessOf({ model: model(), tools })
      const done = await next.resume(stored(paused), [{ callId: 'call_1/asks/call_1', answer: 'x' }])
      expect(ran).toHaveLength(24)
      expect(done.toolCallRecords[0]?.output).toContain('n23 done.')
      expect(done.usage.children).toEqual({ modelRequests: 50, toolCalls: 25 })
    }
  })

  test('AP-12 one without a request left ends once it is answered, and its question is not asked again', async () => {
    const paid: unknown[] = []
    const pay = tool('pay', () => void paid.push(1), { requiresApproval: true })
    const delegate = tool(
      'delegate',
      async (_, { spawn }) => {
        const ends = await Promise.allSettled([
          spawn({ prompt: 'poor', key: 'poor', tools: [pay], limits: { modelRequests: 1 } }).result,
          spawn({ prompt: 'slow', key: 'slow', tools: [ask] }).result,
        ])
        const paused = ends.find((end) => end.status === 'rejected' && !(end.reason instanceof HarnessError))
        if (paused?.status === 'rejected') throw paused.reason
        const said = ends.map((end) =>
          end.status === 'fulfilled' ? end.value.text : (end.reason as HarnessError).code,
        )
        return said.join(', ')
      },
      { onUnknownOutcome: 'retry' },
    )
    const log = memoryLog()
    const plays = { go: [['delegate'], 'Done.'], poor: [['pay']], slow: [['ask'], ['ask'], 'Slow.'] }
    const harness = () => harnessOf({ model: playing(plays), tools: [delegate], log })
    let result: HarnessResult = await harness().run('go', { runId: 'run_p' })
    let answer: Answer = { callId: 'call_1/poor/call_1', approved: true }
    for (const callId of ['call_1/slow/call_1', 'call_1/slow/call_2']) {
      result = await harness().resume(stored(result), [answer])
      expect(result.pending.map((item) => item.callId)).toEqual([callId])
      answer = { callId, answer: 'this' }
    }
    result = await harness().resume(stored(result), [answer])
    expect(result.toolCallRecords[0]?.output).toContain('limit_reached, Slow.')
    expect(paid).toEqual([])
  })

  test('a finished one yields the same answer or failure if the call is entered again', async () => {
    const outputType = z.object({ n: z.number().transform((n) => n * 2) })
    const seen: unknown[] = []
    const delegate = tool(
      'delegate',
      async (_, context) => {
        const typed = context.spawn({ prompt: 'typed', key: 'typed', outputType, outputMode: 'prompted' })
        const fails = context.spawn({ prompt: 'fails', key: 'fails', limits: { modelRequests: 0 } })
        const asks = context.spawn({ prompt: 'asks', key: 'asks', tools: [ask] })
        const failure = await failureOf(fails.result)
        seen.push([(await typed.result).output, failure.code, failure.run.stopReason])
        return (await asks.result).text
      },
      { onUnknownOutcome: 'retry' },
    )
    const plays = { go: [['delegate'], 'Done.'], typed: ['{"n":4}'], asks: [['ask'], 'Asked.'] }
    const harness = () => harnessOf({ model: playing(plays), tools: [delegate] })
    const paused = await harness().run('go')
    const done = await harness().resume(stored(paused), [{ callId: 'call_1/asks/call_1', answer: 'x' }])
    expect(done.text).toBe('Done.')
    expect(seen).toEqual([
      [{ n: 8 }, 'limit_reached', 'limit_reached'],
      [{ n: 8 }, 'limit_reached', 'limit_reached'],
    ])
  })

  test('one that waits when the time of its call is up is given up with it', async () => {
    const quiet = gate()
    const late = tool('late', () => quiet.opened)
    const tools = [delegateTool('delegate', { a: [ask], b: [late] }, { timeoutMs: 30 })]
    const plays = { go: [['delegate'], 'Done.'], a: [['ask']], b: [['late'], 'Late.'] }
    const result = await harnessOf({ model: playing(plays), tools }).run('go')
    quiet.open()
    expect(result).toMatchObject({ stopReason: 'end_turn', text: 'Done.' })
    expect(result.toolCallRecords[0]?.output).toContain('Timeout')
  })

  test('it ends with its parent on an abort or when the harness is closed; both ends are reported, and nothing is left', async () => {
    for (const stop of ['abort', 'close'] as const) {
      const begun = gate()
      const aborted: string[] = []
      const slow = tool('slow', async (_, { signal }) => {
        begun.open()
        await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
        aborted.push('slow')
      })
      const log = watchedLog()
      const controller = new AbortController()
      const plays = { go: [['delegate'], 'Done.'], a: [['deeper']], b: [['slow']] }
      const tools = [delegateTool('delegate', { a: [delegateTool('deeper', { b: [slow] })] })]
      const harness = harnessOf({ model: playing(plays), tools, log })
      const reading = told(harness.stream('go', { signal: controller.signal, runId: 'run_p' }))
      await begun.opened
      if (stop === 'abort') controller.abort(new Error('Enough.'))
      else await harness.close()
      const { events, thrown } = await reading
      expect(thrown).toMatchObject({ code: 'cancelled' })
      const failed = ofKind(events, 'run_failed').map(({ runId }) => runId)
      expect([failed.length, failed.at(-1), aborted]).toEqual([3, 'run_p', ['slow']])
      const kept = log.kept.length
      await until(() => true)
      expect(log.kept).toHaveLength(kept)
    }
  })

  test('one that its call has not awaited ends with the call; the handler may catch a failure', async () => {
    const begun = gate()
    const slow = tool('slow', async (_, { signal }) => {
      begun.open()
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
    })
    const delegate = tool('delegate', async (_, context) => {
      context.spawn({ prompt: 'slow', key: 'slow', tools: [slow] })
      const { message } = await failureOf(
        context.spawn({ prompt: 'fails', key: 'fails', limits: { modelRequests: 0 } }).result,
      )
      await begun.opened
      return message
    })
    const plays = { go: [['delegate'], 'Done.'], slow: [['slow']] }
    const stream = harnessOf({ model: playing(plays), tools: [delegate] }).stream('go')
    const failed = ofKind(await eventsOf(stream), 'run_failed')
    expect(failed.map(({ code }) => code).sort()).toEqual(['cancelled', 'limit_reached'])
    expect((await stream.result).toolCallRecords[0]?.output).toContain('max_model_requests=0')
  })

  test.each([
    ['a key that was used', (spawn: Spawn) => [spawn('a'), spawn('a')], /the key `a` already/],
    ['a key with a slash', (spawn: Spawn) => [spawn('a/b')], /Expected `key`/],
    ['an unknown option', (spawn: Spawn) => [spawn('a', { promt: 'x' })], /promt/],
  ])('it is rejected for %s, in the handler', async (_, start, problem) => {
    const delegate = tool('delegate', async (__, context) => {
      const runs = start((key, more = {}) => context.spawn({ prompt: 'a', key, ...more }))
      return Promise.all(runs.map((run) => run.result))
    })
    const plays = { go: [['delegate'], 'Done.'], a: ['A done.'] }
    const result = await harnessOf({ model: playing(plays), tools: [delegate] }).run('go')
    expect(result.toolCallRecords[0]?.output).toMatch(problem)
  })

  test('only the hooks for its agent see it', async () => {
    const heard: string[] = []
    const hooks: Hook[] = [undefined, ['reader'], ['*']].map((agents) => ({
      event: 'run_start',
      handler: ({ prompt }) => void heard.push(`${String(agents)}: ${JSON.stringify(prompt)}`),
      ...(agents !== undefined && { agents }),
    }))
    const delegate = tool('delegate', async (_, context) => {
      await context.spawn({ prompt: 'a', agentName: 'reader' }).result
    })
    const plays = { go: [['delegate'], 'Done.'], a: ['A done.'] }
    await harnessOf({ model: playing(plays), tools: [delegate], hooks }).run('go')
    expect(heard).toEqual(expect.arrayContaining(['undefined: "go"', 'reader: "a"', '*: "a"']))
    expect(heard).not.toContain('undefined: "a"')
  })
})

type Spawn = (key: string, more?: object) => { readonly result: Promise<unknown> }

describe('deep trees', () => {
  test('a question six runs down is answered from the top, in another process each time', async () => {
    const depth = 6
    let inner = ask
    const plays: Record<string, (string | string[])[]> = { d0: [['ask'], 'Bottom.'] }
    for (let level = 1; level <= depth; level++) {
      inner = delegateTool(`go${level}`, { [`d${level - 1}`]: [inner] })
      plays[`d${level}`] = [[`go${level}`], `Level ${level}.`]
    }
    const harness = () => harnessOf({ model: playing(plays), tools: [inner] })
    const paused = await harness().run(`d${depth}`)
    const [item] = paused.pending
    expect(item?.path).toHaveLength(depth + 1)
    const result = await harness().resume(stored(paused), [{ callId: item!.callId, answer: 'deep' }])
    expect(result.text).toBe(`Level ${depth}.`)
    expect(result.usage.children).toEqual({ modelRequests: 2 * depth, toolCalls: depth })
  })

  test('the events of a run and its descendants are in one stream, each with its own numbers', async () => {
    const plays = { go: [['delegate'], 'Done.'], a: ['A.'], b: ['B.'] }
    const tools = [delegateTool('delegate', { a: [], b: [] })]
    const events = await eventsOf(harnessOf({ model: playing(plays), tools }).stream('go', { deltas: false }))
    const runIds = new Set(events.map(({ runId }) => runId))
    for (const each of runIds) {
      const own = events.filter(({ runId }) => runId === each)
      expect(own.map(({ seq }) => seq)).toEqual(own.map((_, index) => index + 1))
    }
    expect(runIds.size).toBe(3)
  })
})
