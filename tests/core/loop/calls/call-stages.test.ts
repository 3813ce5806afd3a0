import { describe, expect, test } from 'vitest'
import { memoryLog } from 'thinharness'
import type { Hook, JsonObject } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { eventsOf, harnessOf, ofKind, tool } from '../../../harness/support.js'

/** A tool that notes the arguments of its calls, and needs approval from 100 up. */
function payTool() {
  const ran: JsonObject[] = []
  const spec = tool('pay', (args) => void ran.push(args), {
    requiresApproval: (args) => Number(args['amount']) >= 100,
  })
  return { pay: spec, ran }
}

const raise: Hook = {
  event: 'before_tool_call',
  tools: ['pay'],
  handler: ({ arguments: text }) => ({ args: { amount: Number((JSON.parse(text) as JsonObject)['amount']) * 100 } }),
}

describe('the stages of a call', () => {
  test('AP-01 approval is decided by the arguments that will run, after the hooks', async () => {
    const { pay, ran } = payTool()
    using model = new ScriptedModel().calls('pay', { amount: 5 }).says('Paid.')
    const harness = harnessOf({ model, tools: [pay], hooks: [raise] })
    const paused = await harness.run('Pay.')
    expect(paused.pending).toMatchObject([{ kind: 'approval', arguments: '{"amount":500}' }])
    expect(ran).toEqual([])
    const { resumeState } = paused
    if (resumeState === null) throw new Error('Expected a state.')
    await harness.resume(resumeState, [{ callId: 'call_1', approved: true }])
    expect(ran).toEqual([{ amount: 500 }])
  })

  test('HK-11 hooks are asked once: their answers are stored, and hold after a pause in another harness', async () => {
    const { pay, ran } = payTool()
    const log = memoryLog()
    const asked: string[] = []
    const noting: Hook = { event: 'before_tool_call', handler: ({ toolName }) => void asked.push(toolName) }
    using model = new ScriptedModel()
      .callsAll([
        { name: 'pay', arguments: { amount: 5 } },
        { name: 'pay', arguments: { amount: 0 } },
      ])
      .says('Paid.')
    const options = { model, tools: [pay], hooks: [raise, noting], log }
    const stream = harnessOf(options).stream('Pay.', { runId: 'run_pay' })
    const events = await eventsOf(stream)
    expect(ofKind(events, 'call_prepared')).toMatchObject([
      { callId: 'call_1', arguments: '{"amount":500}' },
      { callId: 'call_2', arguments: '{"amount":0}' },
    ])
    const { resumeState } = await stream.result
    if (resumeState === null) throw new Error('Expected a state.')
    await harnessOf(options).resume(resumeState, [{ callId: 'call_1', approved: true }])
    expect(asked).toEqual(['pay', 'pay'])
    expect(ran).toEqual([{ amount: 500 }, { amount: 0 }])
  })

  test('AP-12 arguments that a person edits run instead of those of a hook', async () => {
    const { pay, ran } = payTool()
    using model = new ScriptedModel().calls('pay', { amount: 5 }).says('Paid.')
    const harness = harnessOf({ model, tools: [pay], hooks: [raise] })
    const { resumeState } = await harness.run('Pay.')
    if (resumeState === null) throw new Error('Expected a state.')
    const edited = { callId: 'call_1', approved: true, editedArguments: { amount: 7 } }
    await harness.resume(resumeState, [edited])
    expect(ran).toEqual([{ amount: 7 }])
  })

  test('HK-11 a call that a hook cancels asks nobody for approval', async () => {
    const { pay, ran } = payTool()
    const cancels: Hook = { event: 'before_tool_call', handler: () => ({ cancel: 'Not now.' }) }
    using model = new ScriptedModel().calls('pay', { amount: 500 }).says('Then not.')
    const result = await harnessOf({ model, tools: [pay], hooks: [cancels] }).run('Pay.')
    expect([result.text, result.pending, ran]).toEqual(['Then not.', [], []])
  })
})

describe('a sequential call that asks', () => {
  test('holds the calls after it in its batch until it has ended', async () => {
    const order: string[] = []
    const note = (name: string) => tool(name, () => void order.push(name))
    const asking = tool(
      's',
      async (_args, context) => {
        await context.ask('Sure?', { type: 'string' })
        order.push('s')
      },
      { sequential: true },
    )
    using model = new ScriptedModel().callsAll([{ name: 'a' }, { name: 's' }, { name: 'b' }]).says('Done.')
    const harness = harnessOf({ model, tools: [note('a'), asking, note('b')] })
    const paused = await harness.run('Go.')
    expect(order).toEqual(['a'])
    const { resumeState } = paused
    if (resumeState === null) throw new Error('Expected a state.')
    const result = await harness.resume(resumeState, [{ callId: 'call_2', answer: 'Yes.' }])
    expect([result.text, order]).toEqual(['Done.', ['a', 's', 'b']])
  })

  test('waits for a call before it that asks', async () => {
    const order: string[] = []
    const asking = tool('x', async (_args, context) => {
      await context.ask('Sure?', { type: 'string' })
      order.push('x')
    })
    const alone = tool('s', () => void order.push('s'), { sequential: true })
    const other = tool('b', () => void order.push('b'))
    using model = new ScriptedModel()
      .callsAll([{ name: 'x' }, { name: 'b' }, { name: 's' }, { name: 'b' }])
      .says('Done.')
    const harness = harnessOf({ model, tools: [asking, alone, other] })
    const { resumeState } = await harness.run('Go.')
    expect(order).toEqual(['b'])
    if (resumeState === null) throw new Error('Expected a state.')
    await harness.resume(resumeState, [{ callId: 'call_1', answer: 'Yes.' }])
    expect(order).toEqual(['b', 'x', 's', 'b'])
  })
})
