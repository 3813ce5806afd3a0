import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { memoryLog } from 'thinharness'
import type { Answer } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { eventsIn, stored } from '../../../run/resume/pause-support.js'
import { eventsOf, failureOf, harnessOf, kinds, ofKind, output, tool } from '../../../harness/support.js'

/** A tool that asks for a color and gives it back, and how often it was entered. */
function askTool(name = 'ask') {
  const entered: string[] = []
  const ask = tool(name, async ({ about = null }, context) => {
    entered.push('entered')
    const answer = await context.ask({ about }, z.object({ color: z.string() }))
    entered.push(answer.color)
    return answer
  })
  return { ask, entered }
}

describe('a question to a person', () => {
  test('pauses the run with its content, and the handler is entered again with the answer', async () => {
    const { ask, entered } = askTool()
    using model = new ScriptedModel().calls('ask', { about: 'the roof' }, { text: 'Let me ask.' }).says('Red it is.')
    const harness = harnessOf({ model, tools: [ask] })
    const paused = await harness.run('Paint.', { runId: 'run_q' })
    expect(paused).toMatchObject({ stopReason: 'input_required', text: 'Let me ask.', usage: { toolCalls: 1 } })
    expect(paused.pending).toMatchObject([
      {
        kind: 'question',
        callId: 'call_1',
        toolName: 'ask',
        arguments: '{"about":"the roof"}',
        payload: { about: 'the roof' },
        answerSchema: { type: 'object', required: ['color'] },
        path: ['run_q'],
      },
    ])
    const stream = harness.streamResume(stored(paused), [{ callId: 'call_1', answer: { color: 'red' } }], {
      deltas: false,
    })
    const events = await eventsOf(stream)
    expect(kinds(events)).toBe(
      'run_started approval_resumed answer_received tool_call_started tool_call_completed model_request_started model_message run_completed',
    )
    // A reader that counts calls passes it over.
    expect(events[3]).toMatchObject({ kind: 'tool_call_started', callId: 'call_1', again: true })
    expect(entered).toEqual(['entered', 'entered', 'red'])
    expect(model.heard[1]).toEqual({ kind: 'tool_outputs', outputs: [output('call_1', '{"color":"red"}')] })
    expect((await stream.result).usage).toMatchObject({ toolCalls: 1, modelRequests: 2 })
  })

  test('CO-07 can be declined: the call fails without being entered again, and the model reads the reason', async () => {
    const { ask, entered } = askTool()
    using model = new ScriptedModel().calls('ask').says('Then I leave it.')
    const harness = harnessOf({ model, tools: [ask] })
    const paused = await harness.run('Paint.')
    const result = await harness.resume(stored(paused), [
      { callId: 'call_1', declined: true, reason: 'Not my house.', by: 'ann' },
    ])
    const content = 'The tool asked a question, and the person declined to answer it.\nReason: Not my house.'
    expect(model.heard[1]).toEqual({
      kind: 'tool_outputs',
      outputs: [output('call_1', content, { ok: false })],
    })
    expect(entered).toHaveLength(1)
    expect(result.text).toBe('Then I leave it.')
  })

  test.each<[string, unknown, RegExp]>([
    [
      'that declines with `false`',
      { callId: 'call_1', declined: false },
      /`declined` of the answer to `call_1` to be `true`/,
    ],
    ['of another type', { callId: 'call_1', answer: 'red' }, /`answer`/],
    ['with a field of another type', { callId: 'call_1', answer: { color: 3 } }, /`answer\.color`/],
    ['that is missing', { callId: 'call_1' }, /`answer` of the answer to `call_1` to be a value, got nothing/],
    ['that approves', { callId: 'call_1', approved: true }, /Unknown field of the answer/],
    ['with a word more', { callId: 'call_1', answer: { color: 'red' }, reason: 'x' }, /Unknown field of the answer/],
  ])('an answer %s is rejected before anything runs', async (_, answer, problem) => {
    const { ask, entered } = askTool()
    const log = memoryLog()
    const harness = harnessOf({ model: new ScriptedModel().calls('ask'), tools: [ask], log })
    const paused = await harness.run('Paint.')
    const before = await eventsIn(log, paused.runId)
    const failed = await failureOf(harness.resume(stored(paused), [answer as Answer]))
    expect(failed).toMatchObject({ code: 'invalid_answer', message: expect.stringMatching(problem) as string })
    expect(entered).toEqual(['entered'])
    expect(await eventsIn(log, paused.runId)).toEqual(before)
  })

  test('lets the others of its batch run to their end, once; any number may ask at once', async () => {
    const { ask } = askTool()
    const { ask: other } = askTool('other')
    let ran = 0
    const work = tool('work', () => ++ran)
    const orders = [
      ['call_1', 'call_3'],
      ['call_3', 'call_1'],
    ] as const
    for (const order of orders) {
      ran = 0
      const calls = [{ name: 'ask' }, { name: 'work' }, { name: 'other' }]
      using model = new ScriptedModel().callsAll(calls).says('Done.')
      const harness = harnessOf({ model, tools: [ask, work, other] })
      const paused = await harness.run('Go.')
      expect([ran, paused.pending.map(({ callId }) => callId)]).toEqual([1, ['call_1', 'call_3']])
      const [first, second] = order
      const half = await harness.resume(stored(paused), [{ callId: first, answer: { color: 'red' } }])
      expect(half.pending.map(({ callId }) => callId)).toEqual([second])
      const done = await harness.resume(stored(half), [{ callId: second, answer: { color: 'blue' } }])
      expect([ran, done.text]).toEqual([1, 'Done.'])
      expect(done.toolCallRecords.map(({ call }) => call.id)).toEqual(['call_1', 'call_2', 'call_3'])
      expect(done.usage).toMatchObject({ toolCalls: 3, modelRequests: 2 })
    }
  })

  test('may be followed by another of the same call', async () => {
    const steps: unknown[] = []
    const wizard = tool('wizard', async (_, context) => {
      steps.push('entered')
      steps.push((await context.ask('First?', z.object({ first: z.string() }))).first)
      steps.push(await context.ask('Second?', z.string()))
      return 'made'
    })
    const harness = harnessOf({ model: new ScriptedModel().calls('wizard').says('Done.'), tools: [wizard] })
    const first = await harness.run('Go.')
    const second = await harness.resume(stored(first), [{ callId: 'call_1', answer: { first: 'a' } }])
    expect(second.pending).toMatchObject([{ callId: 'call_1', payload: 'Second?' }])
    const done = await harness.resume(stored(second), [{ callId: 'call_1', answer: 'b' }])
    expect([done.text, steps.join(' ')]).toEqual(['Done.', 'entered entered a entered a b'])
  })

  test('has a key of its own, if the call asks several in any order', async () => {
    const order: string[] = ['size', 'color']
    const choose = tool('choose', async (_, context) => {
      const questions = order.map((key) => context.ask({ key }, z.string(), { key }))
      return (await Promise.all(questions)).join(' ')
    })
    using model = new ScriptedModel().calls('choose').says('Done.')
    const harness = harnessOf({ model, tools: [choose] })
    const first = await harness.run('Go.')
    expect(first.pending).toMatchObject([{ callId: 'call_1', key: 'size', payload: { key: 'size' } }])
    order.reverse()
    const second = await harness.resume(stored(first), [{ callId: 'call_1', answer: 'large' }])
    expect(second.pending).toMatchObject([{ callId: 'call_1', key: 'color', payload: { key: 'color' } }])
    await harness.resume(stored(second), [{ callId: 'call_1', answer: 'red' }])
    expect(model.heard[1]).toMatchObject({ outputs: [{ content: 'red large' }] })
  })

  test('an answer %s is rejected before anything runs', async () => {
    const answers: unknown[] = []
    const when = tool('when', async (_, context) => {
      answers.push(await context.ask('When?', z.object({ day: z.string(), hour: z.number().default(9) })))
    })
    const harness = harnessOf({ model: new ScriptedModel().calls('when').says('Done.'), tools: [when] })
    await harness.resume(stored(await harness.run('Go.')), [{ callId: 'call_1', answer: { day: 'Monday' } }])
    expect(answers).toEqual([{ day: 'Monday', hour: 9 }])
  })

  test('is also asked by a handler that catches the rejection of `ask`, if it rethrows it', async () => {
    const swallows = tool('swallows', async (_, context) => {
      try {
        await context.ask('Anyone?', z.string())
      } catch {
        return 'nobody asked'
      }
      return 'not reached'
    })
    using model = new ScriptedModel().calls('swallows').says('Done.')
    const result = await harnessOf({ model, tools: [swallows] }).run('Go.')
    expect(result).toMatchObject({ stopReason: 'end_turn', pending: [] })
  })

  test('with an invalid schema fails the call, not the run', async () => {
    const odd = tool('odd', (_, context) => context.ask('x', (() => undefined) as never))
    using model = new ScriptedModel().calls('odd').says('Done.')
    const result = await harnessOf({ model, tools: [odd] }).run('Go.')
    expect(result.text).toBe('Done.')
    expect(model.heard[1]).toMatchObject({ outputs: [{ ok: false }] })
  })

  test('of a stopped call is not asked: its time was up, or the run was aborted', async () => {
    const slow = tool(
      'slow',
      async (_, context) => {
        await new Promise((resolve) => context.signal.addEventListener('abort', resolve, { once: true }))
        await context.ask('Anyone?', z.string())
      },
      { timeoutMs: 5 },
    )
    using model = new ScriptedModel().calls('slow').says('Done.')
    const result = await harnessOf({ model, tools: [slow] }).run('Go.')
    expect(result.stopReason).toBe('end_turn')
    expect(model.heard[1]).toMatchObject({
      outputs: [{ ok: false, content: expect.stringContaining('was stopped') as string }],
    })
  })

  test('two hundred at once are one list, and are answered together', async () => {
    const { ask } = askTool()
    const calls = Array.from({ length: 200 }, (_, about) => ({ name: 'ask', arguments: { about } }))
    const harness = harnessOf({ model: new ScriptedModel().callsAll(calls).says('Done.'), tools: [ask] })
    const paused = await harness.run('Go.')
    expect(paused.pending.map(({ payload }) => payload)).toEqual(calls.map((call) => call.arguments))
    const answers = paused.pending.map(({ callId }) => ({ callId, answer: { color: callId } }))
    const stream = harness.streamResume(stored(paused), answers)
    expect(ofKind(await eventsOf(stream), 'tool_call_completed')).toHaveLength(200)
    expect((await stream.result).text).toBe('Done.')
  })
})
