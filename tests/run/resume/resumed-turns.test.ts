import { expect, test } from 'vitest'
import { z } from 'zod'
import type { Hook, JsonObject } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { jsonCopy, payTool, stored } from './pause-support.js'
import { eventsOf, failureOf, harnessOf, kinds, ofKind, tool } from '../../harness/support.js'

test('TM-08 ST-14 a run that continues a conversation sends a first request of kind `resume`, with its prompt as text', async () => {
  const state = stored(await harnessOf({ model: new ScriptedModel().says('Hello.') }).run('Hi.'))
  const stream = harnessOf({ model: new ScriptedModel().says('More.') }).stream('And now?', { history: state })
  const [request] = ofKind(await eventsOf(stream), 'model_request_started')
  expect(request).toMatchObject({ requestKind: 'resume', entries: [] })
  expect((await stream.result).transcript[2]).toMatchObject({
    role: 'user',
    content: [{ type: 'text', text: 'And now?' }],
  })
})

test('TM-09 an approved batch is neither checked for approval nor counted again', async () => {
  let asked = 0
  const pay = tool('pay', () => 'paid', { requiresApproval: () => ++asked > 0 })
  using model = new ScriptedModel().callsAll([{ name: 'pay' }, { name: 'pay' }]).says('Paid.')
  const harness = harnessOf({ model, tools: [pay], limits: { toolCalls: 2 } })
  const paused = await harness.run('Pay.')
  const answers = paused.pending.map(({ callId }) => ({ callId, approved: true }))
  const result = await harness.resume(stored(paused), answers)
  expect([asked, result.usage.toolCalls, result.text]).toEqual([2, 2, 'Paid.'])
})

test('TM-10 of an answered batch only the allowed calls run; rejected and cancelled ones are reported and counted', async () => {
  const { pay, ran } = payTool()
  const hooks: Hook[] = [
    {
      event: 'before_tool_call',
      handler: ({ arguments: text }) =>
        (JSON.parse(text) as JsonObject)['n'] === 2 ? { cancel: 'Not two.' } : undefined,
    },
  ]
  const calls = [1, 2, 3].map((n) => ({ name: 'pay', arguments: { n } }))
  const harness = harnessOf({ model: new ScriptedModel().callsAll(calls).says('Done.'), tools: [pay], hooks })
  const paused = await harness.run('Pay.')
  const answers = paused.pending.map(({ callId }) => ({ callId, approved: callId !== 'call_3' }))
  const stream = harness.streamResume(stored(paused), answers)
  const events = await eventsOf(stream)
  expect(ran).toEqual([{ n: 1 }])
  expect((await stream.result).usage).toMatchObject({ toolCalls: 3, cancelledToolCalls: 1 })
  const completed = ofKind(events, 'tool_call_completed')
  expect(completed.map(({ callId, errorType }) => `${callId} ${String(errorType)}`).sort()).toEqual([
    'call_1 null',
    'call_2 ToolCallCancelled',
    'call_3 ApprovalRejected',
  ])
})

test('TM-11 a correction after a resume continues the same conversation', async () => {
  const { pay } = payTool()
  const outputType = z.object({ paid: z.boolean() })
  using model = new ScriptedModel().calls('pay').says('no JSON').says('{"paid":true}')
  const harness = harnessOf({ model, tools: [pay], outputType, outputMode: 'prompted' })
  const stream = harness.streamResume(stored(await harness.run('Pay.')), [{ callId: 'call_1', approved: true }])
  const events = await eventsOf(stream)
  expect(kinds(ofKind(events, 'model_request_started'))).toBe('model_request_started model_request_started')
  expect((await stream.result).output).toEqual({ paid: true })
  expect(model.requests.map(({ transcriptLength }) => transcriptLength)).toEqual([1, 3, 5])
})

test('RF-15 RF-16 a state with reasoning survives a JSON round trip; other versions of a state are rejected', async () => {
  const model = new ScriptedModel().replies({ reasoning: 'Hm.', text: 'Yes.' }).says('More.')
  const harness = harnessOf({ model })
  const result = await harness.run('Hi.')
  const state = stored(result)
  expect(state['transcript']).toEqual(jsonCopy(result.transcript))
  await harness.run('And?', { history: state })
  expect(model.requests[1]?.transcriptLength).toBe(3)
  expect(result.transcript[1]).toMatchObject({
    parts: [
      { type: 'reasoning', text: 'Hm.' },
      { type: 'text', text: 'Yes.' },
    ],
  })
  for (const version of [0, 99, '1']) {
    const failed = await failureOf(harness.run('And?', { history: { ...state, version: version as number } }))
    expect(failed).toMatchObject({ code: 'invalid_state', message: expect.stringContaining('version') as string })
  }
})
