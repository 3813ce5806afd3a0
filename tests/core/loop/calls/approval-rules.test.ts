import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { defineTool } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { pausedRun, payTool, stored, YES } from '../../../run/resume/pause-support.js'
import { failureOf, harnessOf, output, told, tool, until } from '../../../harness/support.js'

describe('an approval that depends on the arguments', () => {
  const pay = (ran: unknown[], beside = {}) =>
    defineTool({
      name: 'pay',
      description: 'Pays.',
      parameters: z.object({ amount: z.number(), to: z.string().default('Ann') }),
      requiresApproval: ({ amount }) => amount > 100,
      preview: ({ amount, to }) => ({ says: `${amount} to ${to}` }),
      handler: (args, { idempotencyKey }) => void ran.push({ ...args, idempotencyKey }),
      ...beside,
    })

  test('asks only for the calls that the rule selects, with the preview of the tool', async () => {
    const ran: unknown[] = []
    const model = new ScriptedModel()
      .calls('pay', { amount: 50 })
      .callsAll([
        { name: 'pay', arguments: { amount: 5 } },
        { name: 'pay', arguments: { amount: 500 } },
      ])
      .says('Paid.')
    const harness = harnessOf({ model, tools: [pay(ran)] })
    const paused = await harness.run('Pay.', { runId: 'run_p' })
    expect(ran).toHaveLength(1)
    const others = [{ callId: 'call_2', toolName: 'pay', arguments: '{"amount":5}', when: 'before' }]
    expect(paused.pending).toEqual([
      {
        kind: 'approval',
        callId: 'call_3',
        toolName: 'pay',
        arguments: '{"amount":500}',
        payload: { says: '500 to Ann' },
        otherCalls: others,
        path: ['run_p'],
      },
    ])
    await harness.resume(stored(paused), [{ callId: 'call_3', approved: true }])
    expect(ran).toMatchObject([{ amount: 50 }, { amount: 5 }, { amount: 500, idempotencyKey: 'run_p:call_3' }])
  })

  test.each([
    ['a rule that throws is no leave', { requiresApproval: () => Promise.reject(new Error('No idea.')) }, 1],
    ['a rule that gives nothing is no leave', { requiresApproval: () => undefined as never }, 1],
    [
      'a preview that throws is left out',
      { requiresApproval: true, preview: () => Promise.reject(new Error('No.')) },
      1,
    ],
  ])('%s', async (_, beside, count) => {
    const ran: unknown[] = []
    const model = new ScriptedModel().calls('pay', { amount: 5 })
    const paused = await harnessOf({ model, tools: [pay(ran, beside)] }).run('Pay.')
    expect(paused.pending).toHaveLength(count)
    expect(ran).toEqual([])
  })

  test('a call that will be rejected anyway needs no approval', async () => {
    const ran: unknown[] = []
    using model = new ScriptedModel().calls('pay', { amount: 'much' }).says('Sorry.')
    const result = await harnessOf({ model, tools: [pay(ran)] }).run('Pay.')
    expect([result.text, ran]).toEqual(['Sorry.', []])
  })

  test('an abort during a rule or a preview ends the run, and nothing has run', async () => {
    const never = <T>(): Promise<T> => {
      asked += 1
      return new Promise<T>(() => undefined)
    }
    let asked = 0
    for (const beside of [{ requiresApproval: never<boolean> }, { requiresApproval: true, preview: never<string> }]) {
      asked = 0
      const ran: unknown[] = []
      const controller = new AbortController()
      const model = new ScriptedModel().calls('pay', { amount: 5 })
      const stream = harnessOf({ model, tools: [pay(ran, beside)] }).stream('Pay.', { signal: controller.signal })
      stream.result.catch(() => undefined)
      const reading = told(stream)
      await until(() => asked > 0)
      controller.abort(new Error('Enough.'))
      await reading
      expect((await failureOf(stream.result)).code).toBe('cancelled')
      expect(ran).toEqual([])
    }
  })
})

describe('edited arguments', () => {
  test('run in place of the model’s, which stay in the transcript; the model is informed', async () => {
    const { pay, ran, state } = await pausedRun()
    using model = new ScriptedModel().says('Paid three.')
    const answer = { ...YES, editedArguments: { amount: 3 } }
    const result = await harnessOf({ model, tools: [pay] }).resume(state, [answer])
    expect(ran).toEqual([{ amount: 3 }])
    expect(model.heard).toEqual([
      {
        kind: 'tool_outputs',
        outputs: [output('call_1', '[A person changed the arguments of this call to {"amount":3}]\npaid')],
      },
    ])
    expect(result.toolCallRecords).toMatchObject([
      { call: { arguments: '{"amount":5}' }, approval: { approved: true } },
    ])
  })

  test('apply whenever the handler is entered, even after a question that it asks', async () => {
    const entered: unknown[] = []
    const pay = tool(
      'pay',
      (args, context) => {
        entered.push(args)
        return context.ask('From which account?', z.string())
      },
      { requiresApproval: true },
    )
    const model = new ScriptedModel().calls('pay', { amount: 5 }).says('Paid.')
    const harness = harnessOf({ model, tools: [pay] })
    const approval = await harness.run('Pay.')
    const question = await harness.resume(stored(approval), [{ ...YES, editedArguments: { amount: 3 } }])
    expect(question.pending).toMatchObject([{ kind: 'question', callId: 'call_1', payload: 'From which account?' }])
    await expect(harness.resume(stored(question), [YES])).rejects.toThrow(/Unknown field of the answer/)
    const result = await harness.resume(stored(question), [{ callId: 'call_1', answer: 'savings' }])
    expect(entered).toEqual([{ amount: 3 }, { amount: 3 }])
    expect(result.toolCallRecords).toMatchObject([{ approval: { approved: true } }])
  })
})

describe('partial answers', () => {
  test('arrive in any order; the batch runs once all are given', async () => {
    const orders = [
      ['call_1', 'call_2', 'call_3'],
      ['call_3', 'call_1', 'call_2'],
      ['call_2', 'call_3', 'call_1'],
      ['call_3', 'call_2', 'call_1'],
    ]
    for (const order of orders) {
      const { pay, ran } = payTool()
      const model = new ScriptedModel()
        .callsAll([1, 2, 3].map((n) => ({ name: 'pay', arguments: { n } })))
        .says('Paid.')
      let result = await harnessOf({ model, tools: [pay] }).run('Pay.')
      for (const [index, callId] of order.entries()) {
        expect(ran).toEqual([])
        expect(result.pending.map((item) => item.callId)).toEqual([...order.slice(index)].sort())
        // Each time another process, which knows the state alone.
        result = await harnessOf({ model, tools: [pay] }).resume(stored(result), [{ callId, approved: true }])
      }
      expect(result.text).toBe('Paid.')
      expect(ran).toEqual([{ n: 1 }, { n: 2 }, { n: 3 }])
      expect(result.usage).toMatchObject({ toolCalls: 3, modelRequests: 2 })
    }
  })
})
