import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { defineTool, memoryLog } from 'thinharness'
import type { Answer, ResumeState } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { eventsIn, jsonCopy, pausedRun, payTool, reordered, stored, YES } from '../../../run/resume/pause-support.js'
import { failureOf, harnessOf, tool } from '../../../harness/support.js'

describe('answers', () => {
  test.each<[string, readonly unknown[], RegExp]>([
    ['AP-08 an empty list of answers', [], /No answer was given\. Waiting: `call_1` \(pay\)/],
    [
      'AP-08 an answer to an unknown call',
      [{ callId: 'call_9', approved: true }],
      /Nothing waits for an answer to `call_9`/,
    ],
    ['AP-08 two answers to one call', [YES, YES], /two answers to `call_1`/],
    [
      'AP-08 an answer that is not a boolean',
      [{ callId: 'call_1', approved: 'yes' }],
      /`approved` of the answer to `call_1` to be a boolean, got/,
    ],
    [
      'AP-08 a reason that is not a string',
      [{ ...YES, reason: 5 }],
      /`reason` of the answer to `call_1` to be a string, got `5`/,
    ],
    ['AP-08 an answer without a call id', [{ approved: true }], /an object with a `callId`/],
    ['AP-08 null', [null], /an object with a `callId`/],
    ['AP-08 an answer with an unknown field', [{ ...YES, because: 'x' }], /because/],
    [
      'AP-08 edited arguments of a rejected call',
      [{ callId: 'call_1', approved: false, editedArguments: {} }],
      /rejected/,
    ],
    [
      'AP-08 edited arguments that are not an object',
      [{ ...YES, editedArguments: [1] }],
      /`editedArguments` of the answer to `call_1` to be an object/,
    ],
    ['AP-08 edited arguments that are invalid', [{ ...YES, editedArguments: { amount: 'all' } }], /amount/],
    ['AP-08 an answer to a question', [{ callId: 'call_1', answer: 'yes' }], /answer/],
  ])('an invalid answer is rejected, and nothing has run or been stored: %s', async (_, answers, problem) => {
    const ran: unknown[] = []
    const pay = defineTool({
      name: 'pay',
      description: 'Pays.',
      parameters: z.object({ amount: z.number() }),
      requiresApproval: true,
      handler: (args) => void ran.push(args),
    })
    const log = memoryLog()
    const harness = harnessOf({ model: new ScriptedModel().calls('pay', { amount: 5 }), tools: [pay], log })
    const paused = await harness.run('Pay.')
    const before = await eventsIn(log, paused.runId)
    const failed = await failureOf(harness.resume(stored(paused), answers as Answer[]))
    expect(failed).toMatchObject({ code: 'invalid_answer', message: expect.stringMatching(problem) as string })
    expect(ran).toEqual([])
    expect(await eventsIn(log, paused.runId)).toEqual(before)
  })

  test('AP-08 a list of the wrong type is rejected', async () => {
    const { pay, state } = await pausedRun()
    const harness = harnessOf({ model: new ScriptedModel(), tools: [pay] })
    const failed = await failureOf(harness.resume(state, { call_1: true } as never))
    expect(failed).toMatchObject({
      code: 'invalid_answer',
      message: 'Expected the answers to be a list, got an object.',
    })
  })
})

describe('stored states', () => {
  type Change = (phase: { calls: Record<string, unknown>[] }, state: Record<string, unknown>) => void
  test.each<[string, Change, RegExp]>([
    ['AP-09 a removed approval', ({ calls }) => (calls[0]!['waiting'] = []), /is not the one that the log holds/],
    [
      'AP-09 an approval added to a call that needs none',
      ({ calls }) => (calls[1]!['waiting'] = jsonCopy(calls[0]!['waiting'])),
      /waits at call `call_2` for the answer to another/,
    ],
    [
      'AP-09 another call under the same id',
      ({ calls }) => (calls[2]!['arguments'] = '{"amount":900}'),
      /not those of the last/,
    ],
    ['AP-19 two calls with one id', ({ calls }) => (calls[1]!['callId'] = 'call_1'), /not those of the last reply/],
    ['AP-19 a missing call', ({ calls }) => void calls.pop(), /not those of the last reply/],
    ['AP-19 an additional call', ({ calls }) => void calls.push(jsonCopy(calls[0]!)), /not those of the last reply/],
    ['AP-21 another version', (_, state) => (state['version'] = 4), /^resume: it has version `4`/],
    ['AP-21 a state without a kind', (_, state) => delete state['kind'], /^resume: it is not a stored state of a run/],
  ])('a modified state is rejected, and no tool runs: %s', async (_, change, problem) => {
    const { pay, ran } = payTool()
    const model = new ScriptedModel().callsAll([{ name: 'pay' }, { name: 'look' }, { name: 'pay' }])
    const look = tool('look', () => void ran.push('look'))
    const harness = harnessOf({ model, tools: [pay, look] })
    const state = jsonCopy(stored(await harness.run('Go.'))) as Record<string, unknown> & ResumeState
    change(state['phase'] as Parameters<Change>[0], state)
    const approved = { callId: 'call_3', approved: true }
    const failed = await failureOf(harness.resume(state, [approved]))
    expect(failed).toMatchObject({ code: 'invalid_state', message: expect.stringMatching(problem) as string })
    expect(ran).toEqual([])
  })
})

test('AP-09 a call whose approval was removed from the state asks for it again, and no tool runs', async () => {
  const { pay, ran } = payTool()
  const model = new ScriptedModel().callsAll([{ name: 'pay' }, { name: 'pay' }])
  const harness = harnessOf({ model, tools: [pay] })
  const state = jsonCopy(stored(await harness.run('Go.'))) as ResumeState & {
    phase: { calls: { waiting: unknown[] }[] }
  }
  state.phase.calls[0]!.waiting = []
  // Its log does not know the run: the state is all there is.
  const elsewhere = harnessOf({ model, tools: [pay] })
  const again = await elsewhere.resume(state, [{ callId: 'call_2', approved: true }])
  expect([again.pending.map(({ callId }) => callId), ran]).toEqual([['call_1'], []])
})

describe('the counters of a stored run', () => {
  const change = (state: ResumeState, field: string, value: unknown): ResumeState => {
    const copy = jsonCopy(state) as ResumeState & Record<string, Record<string, unknown>>
    const [part = '', name = ''] = field.split('.')
    if (name === '') (copy as Record<string, unknown>)[part] = value
    else copy[part]![name] = value
    return jsonCopy(copy)
  }

  test('AP-29 AP-38 AP-43 they are the same after a JSON round trip, in any order of keys', async () => {
    const { pay } = payTool()
    const model = new ScriptedModel().calls('pay', {}, { usage: { inputTokens: 7 } }).says('Paid.')
    const harness = harnessOf({ model, tools: [pay], limits: { toolCalls: 1 } })
    const paused = await harness.run('Pay.')
    const state = reordered(stored(paused))
    expect(state).toMatchObject({ usage: paused.usage, told: ['limit_warning:tool_calls:1'] })
    const { usage } = await harness.resume(state, [YES])
    expect({ ...usage, byModel: {} }).toEqual({
      ...{ ...paused.usage, byModel: {} },
      ...{ modelRequests: 2, inputTokens: 17, outputTokens: 10 },
    })
  })

  test.each([
    [
      'AP-30 a state with a missing counter',
      'usage.toolCalls',
      undefined,
      'Expected `usage.toolCalls` of the state to be ',
    ],
    [
      'AP-31 a state with a counter that is not a number',
      'usage.toolCalls',
      '1',
      'Expected `usage.toolCalls` of the state to be a whole number from 0 up',
    ],
    [
      'AP-31 a state with a counter that is not an integer',
      'usage.modelRequests',
      1.5,
      'Expected `usage.modelRequests` of the state to be a whole',
    ],
    [
      'AP-31 a state with a counter below 0',
      'usage.modelRequests',
      -1,
      'Expected `usage.modelRequests` of the state to be a whole number',
    ],
    [
      'AP-32 a state with a usage that is not an object',
      'usage',
      [],
      'Expected `usage` of the state to be an object, got an empty list',
    ],
    [
      'AP-33 a state without retries by tool',
      'usage.toolRetries',
      undefined,
      'Expected `usage.toolRetries` of the state to be ',
    ],
    [
      'AP-34 a state with retries that are not numbers',
      'usage.toolRetries',
      { pay: 'two' },
      'Expected `usage.toolRetries.pay` of the state to be a whole',
    ],
    ['AP-35 a state with an unknown counter', 'usage.coffees', 3, 'Unknown field of the state: `usage.coffees`'],
    [
      'AP-36 a state without tokens',
      'usage.inputTokens',
      undefined,
      'Expected `usage.inputTokens` of the state to be ',
    ],
    [
      'AP-37 a state with tokens that are not numbers',
      'usage.inputTokens',
      'many',
      'Expected `usage.inputTokens` of the state to be a whole number',
    ],
    [
      'AP-39 a state with notices that are not a list',
      'told',
      {},
      'Expected `told` of the state to be a list, got an object',
    ],
    [
      'AP-40 a state with a notice about an unknown limit',
      'told',
      ['limit_warning:coffee:1'],
      'Expected `told[0]` of the state to be the key of a notice, such as `limit_warning:tool_calls:1`, got `limit_warning:coffee:1`',
    ],
  ])(
    'AP-41 a state with an invalid counter is rejected, and the error names the field: %s',
    async (_, field, value, problem) => {
      const { pay, ran, state } = await pausedRun()
      const harness = harnessOf({ model: new ScriptedModel(), tools: [pay] })
      const failed = await failureOf(harness.resume(change(state, field, value), [YES]))
      expect(failed.code).toBe('invalid_state')
      expect(failed.message).toContain(`resume: ${problem}`)
      expect(ran).toEqual([])
    },
  )
})
