import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { memoryLog, ModelRetry } from 'thinharness'
import type { Hook, HookContext } from 'thinharness'
import type { TracedRun } from '#core/extension/run-tracer.js'
import { ScriptedModel } from 'thinharness/testing'
import { eventsIn, pausedRun, payTool, stored, YES } from '../../../run/resume/pause-support.js'
import { eventsOf, failureOf, harnessOf, kinds, ofKind, output, tool } from '../../../harness/support.js'

describe('a call that needs approval', () => {
  test('AP-01 it pauses the run before anything in its batch runs, after its hooks; the result lists the pending approvals', async () => {
    const { pay, ran } = payTool()
    const asked: string[] = []
    const ends: HookContext<'run_end'>[] = []
    const hooks: Hook[] = [
      { event: 'before_tool_call', handler: ({ toolName }) => void asked.push(toolName) },
      { event: 'run_end', handler: (context) => void ends.push(context) },
    ]
    using model = new ScriptedModel().calls('pay', '{"amount": 5}', { text: 'I will pay.' })
    const result = await harnessOf({ model, tools: [pay], hooks }).run('Pay five.', { runId: 'run_pay' })
    expect(result).toMatchObject({ stopReason: 'approval_required', text: 'I will pay.', toolCallRecords: [] })
    expect(result.pending).toEqual([
      { kind: 'approval', callId: 'call_1', toolName: 'pay', arguments: '{"amount": 5}', path: ['run_pay'] },
    ])
    expect(result.usage).toMatchObject({ modelRequests: 1, toolCalls: 1 })
    expect(result.responses).toHaveLength(1)
    expect(stored(result)).toMatchObject({
      kind: 'run_state',
      version: 3,
      phase: { at: 'batch', calls: [{ callId: 'call_1', name: 'pay', started: false }] },
    })
    expect([ran, asked]).toEqual([[], ['pay']])
    expect(ends).toMatchObject([{ stopReason: 'approval_required', error: null, result: { pending: [{}] } }])
  })

  test('AP-02 AP-03 once approved it runs once with its own arguments, in another harness, from a copy of the state', async () => {
    const { pay, ran, state } = await pausedRun()
    using model = new ScriptedModel().says('Paid.')
    const result = await harnessOf({ model, tools: [pay] }).resume(state, [YES])
    expect(ran).toEqual([{ amount: 5 }])
    expect(result).toMatchObject({ runId: 'run_pay', text: 'Paid.', stopReason: 'end_turn', pending: [] })
    expect(result.usage).toMatchObject({ modelRequests: 2, toolCalls: 1 })
    expect(result.responses).toHaveLength(2)
    expect(result.toolCallRecords).toEqual([
      {
        call: { id: 'call_1', name: 'pay', arguments: '{"amount":5}' },
        output: '{"ok":true,"content":"paid","metadata":{}}',
        approval: { approved: true },
      },
    ])
    expect(model.heard).toEqual([{ kind: 'tool_outputs', outputs: [output('call_1', 'paid')] }])
  })

  test.each([
    ['AP-04 with a reason', 'Too much.', 'Reason: Too much.'],
    ['AP-05 without a reason', undefined, null],
  ])(
    'a rejected call fails with `ApprovalRejected` without running or firing `after_tool_call`, and uses no retry: %s',
    async (_, reason, line) => {
      const { pay, ran, state } = await pausedRun()
      using model = new ScriptedModel().says('Then not.')
      const answer = { callId: 'call_1', approved: false, ...(reason !== undefined && { reason }) }
      const after: string[] = []
      const hooks: Hook[] = [{ event: 'after_tool_call', handler: ({ toolName }) => void after.push(toolName) }]
      const result = await harnessOf({ model, tools: [pay], toolRetries: 0, hooks }).resume(state, [answer], {
        configPolicy: 'any',
      })
      expect([ran, after]).toEqual([[], []])
      expect(model.heard).toMatchObject([
        { outputs: [{ ok: false, content: expect.stringContaining('rejected') as string }] },
      ])
      const [told] = model.heard[0]?.kind === 'tool_outputs' ? model.heard[0].outputs : []
      expect(told?.content.split('\n').slice(1)).toEqual(line === null ? [] : [line])
      expect(result.usage.toolRetries).toEqual({})
      expect(result.toolCallRecords.map(({ approval }) => ({ callId: 'call_1', ...approval }))).toEqual([answer])
    },
  )

  test('AP-06 it holds its whole batch, whose hooks are asked once; the other calls run after the answer, in model order', async () => {
    const { pay, ran } = payTool()
    const order: string[] = []
    const look = tool('look', () => void order.push('look'))
    const hooks: Hook[] = [
      { event: 'before_tool_call', handler: ({ toolName, toolIndex }) => void order.push(`${toolName} ${toolIndex}`) },
    ]
    using model = new ScriptedModel().callsAll([{ name: 'pay' }, { name: 'look' }]).says('Done.')
    const harness = harnessOf({ model, tools: [pay, look], hooks })
    const paused = await harness.run('Go.')
    expect(paused.pending.map(({ callId }) => callId)).toEqual(['call_1'])
    expect(order).toEqual(['pay 0', 'look 1'])
    const result = await harness.resume(stored(paused), [{ callId: 'call_1', approved: false }])
    expect([ran, order]).toEqual([[], ['pay 0', 'look 1', 'look']])
    expect(result.toolCallRecords.map(({ call, approval }) => [call.name, approval?.approved])).toEqual([
      ['pay', false],
      ['look', undefined],
    ])
    expect(model.heard[1]).toMatchObject({ outputs: [{ callId: 'call_1' }, { callId: 'call_2', ok: true }] })
  })

  test('AP-07 the trace of a resumed run has the stored metadata and trace context', async () => {
    const { pay, state } = await pausedRun()
    const runs: TracedRun[] = []
    const trace = { event: () => undefined, traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' }
    const tracing = [{ startRun: (run: TracedRun) => (runs.push(run), trace) }]
    const model = new ScriptedModel().says('Paid.')
    const from = { ...state, traceparent: trace.traceparent }
    await harnessOf({ model, tools: [pay], tracing }).resume(from, [YES])
    expect(runs).toMatchObject([
      { runId: 'run_pay', metadata: { order: 7 }, resumed: true, traceparent: trace.traceparent },
    ])
  })

  test('AP-10 a hook can still cancel it once it is approved: it counts as cancelled, and the record shows both', async () => {
    const { pay, ran, state } = await pausedRun()
    const hooks: Hook[] = [{ event: 'before_tool_call', handler: () => ({ cancel: 'Not today.' }) }]
    const model = new ScriptedModel().says('Then not.')
    const result = await harnessOf({ model, tools: [pay], hooks }).resume(state, [YES])
    expect(ran).toEqual([])
    expect(result.usage).toMatchObject({ toolCalls: 1, cancelledToolCalls: 1 })
    expect(result.toolCallRecords).toMatchObject([{ cancelled: true, approval: { approved: true } }])
  })

  test('AP-11 a retryable failure of an approved call counts, and the next attempt waits for approval again', async () => {
    const pay = tool('pay', () => Promise.reject(new ModelRetry('Say the currency.')), { requiresApproval: true })
    const model = new ScriptedModel().calls('pay').calls('pay')
    const harness = harnessOf({ model, tools: [pay], toolRetries: 1 })
    const again = await harness.resume(stored(await harness.run('Pay.')), [YES])
    expect(again).toMatchObject({
      stopReason: 'approval_required',
      pending: [{ callId: 'call_2' }],
      usage: { toolCalls: 2, toolRetries: { pay: 1 } },
    })
    const failed = await failureOf(harness.resume(stored(again), [{ callId: 'call_2', approved: true }]))
    expect(failed).toMatchObject({ code: 'tool_retries_exceeded', run: { usage: { toolRetries: { pay: 2 } } } })
  })

  test('AP-12 an approved call does not run if no request is left to report its result; the run stays paused', async () => {
    const { pay, ran, state } = await pausedRun()
    const log = memoryLog()
    const harness = harnessOf({ model: new ScriptedModel(), tools: [pay], limits: { modelRequests: 1 }, log })
    const failed = await failureOf(harness.resume(state, [YES]))
    expect(failed).toMatchObject({ code: 'limit_reached', run: { usage: { modelRequests: 1 } } })
    expect(ran).toEqual([])
    expect(await eventsIn(log, 'run_pay')).toEqual([])
    const model = new ScriptedModel().says('Paid.')
    expect((await harnessOf({ model, tools: [pay], log }).resume(state, [YES])).text).toBe('Paid.')
  })

  test('AP-13 a batch over its limit fails instead of asking for approval', async () => {
    const { pay, ran } = payTool()
    const model = new ScriptedModel().callsAll([{ name: 'pay' }, { name: 'pay' }])
    const harness = harnessOf({ model, tools: [pay], limits: { toolCalls: 1 } })
    expect(await failureOf(harness.run('Pay.'))).toMatchObject({
      code: 'limit_reached',
      run: { usage: { toolCalls: 0 } },
    })
    expect(ran).toEqual([])
  })

  test('AP-17 a structured answer by tool may follow, and the run can be continued from it', async () => {
    const { pay, state } = await pausedRun()
    const outputType = z.object({ paid: z.boolean() })
    using model = new ScriptedModel().calls('final_result', { paid: true }).says('{"paid":false}')
    const harness = harnessOf({ model, tools: [pay], outputType, outputMode: 'tool' })
    const result = await harness.resume(state, [YES])
    expect(result.output).toEqual({ paid: true })
    const next = harnessOf({ model, tools: [pay] })
    expect((await next.run('And now?', { history: stored(result) })).text).toBe('{"paid":false}')
  })

  test.each([
    ['new metadata', { tenant: 'b' }, { tenant: 'b' }],
    ['omitted metadata', undefined, { order: 7 }],
  ])(
    'AP-18 metadata passed on resume replaces the stored metadata as a whole, and omitted metadata keeps it: %s',
    async (_, metadata, expected) => {
      const { state } = await pausedRun()
      const seen: unknown[] = []
      const pay = tool('pay', (__, context) => void seen.push(context.metadata), { requiresApproval: true })
      const model = new ScriptedModel().says('Paid.')
      await harnessOf({ model, tools: [pay] }).resume(state, [YES], metadata === undefined ? {} : { metadata })
      expect(seen).toEqual([expected])
    },
  )

  test('AP-22 notices that were sent before the pause are not sent again', async () => {
    const { pay } = payTool()
    using model = new ScriptedModel().calls('pay').says('Paid.')
    const harness = harnessOf({ model, tools: [pay], limits: { toolCalls: 1 } })
    const stream = harness.stream('Pay.')
    expect(ofKind(await eventsOf(stream), 'limit_warning')).toMatchObject([{ limitKind: 'tool_calls', remaining: 1 }])
    const resumed = await eventsOf(harness.streamResume(stored(await stream.result), [YES]))
    expect(ofKind(resumed, 'limit_warning')).toMatchObject([{ limitKind: 'tool_calls', remaining: 0 }])
  })

  test('AP-26 a closed harness rejects `resume` and `streamResume`', async () => {
    const { pay, state } = await pausedRun()
    const harness = harnessOf({ model: new ScriptedModel(), tools: [pay] })
    await harness.close()
    expect((await failureOf(harness.resume(state, [YES]))).code).toBe('closed')
    expect(() => harness.streamResume(state, [YES])).toThrow(expect.objectContaining({ code: 'closed' }) as Error)
  })

  test('AP-26 invalid arguments are thrown by `streamResume` at once, and reject `resume`', async () => {
    const { pay, ran, state } = await pausedRun()
    const harness = harnessOf({ model: new ScriptedModel(), tools: [pay] })
    const cases: [unknown, unknown, object][] = [
      [state, 'yes', { code: 'invalid_answer', message: 'Expected the answers to be a list, got `yes`.' }],
      [state, [{ ...YES, callId: 'call_9' }], { code: 'invalid_answer' }],
      [
        state,
        [{ ...YES, reason: 1n }],
        { code: 'invalid_answer', message: 'The answer to `call_1` is not plain JSON.' },
      ],
      [{ ...state, version: 9 }, [YES], { code: 'invalid_state' }],
      [5, [YES], { code: 'invalid_state' }],
      ['', [YES], { code: 'invalid_options' }],
      ['run_p', [{}], { code: 'invalid_answer' }],
      ['run_p', [YES, YES], { code: 'invalid_answer', message: 'There are two answers to `call_1`.' }],
    ]
    for (const [given, answers, refusal] of cases) {
      const resume = [given as string, answers as []] as const
      expect(() => harness.streamResume(...resume)).toThrow(expect.objectContaining(refusal) as Error)
      expect(await failureOf(harness.resume(...resume))).toMatchObject(refusal)
    }
    const stream = harness.streamResume('run_unknown', [YES])
    expect((await failureOf(stream.result)).code).toBe('run_not_found')
    expect(ran).toEqual([])
  })

  test('AP-27 the stream of a resumed run emits its start, the decisions, the tools, a request of its kind and the end', async () => {
    const { pay, state } = await pausedRun()
    const model = new ScriptedModel().says('Paid.')
    const stream = harnessOf({ model, tools: [pay] }).streamResume(state, [YES], { deltas: false })
    const events = await eventsOf(stream)
    expect(kinds(events)).toBe(
      'run_started approval_resumed answer_received tool_call_started tool_call_completed model_request_started model_message run_completed',
    )
    const [started, resumed, received] = events
    expect(started).toMatchObject({ begun: 'resumed', prompt: null, history: [], metadata: { order: 7 } })
    expect(resumed).toMatchObject({ decisions: [YES] })
    expect(received).toMatchObject({ callId: 'call_1', answer: YES })
    expect(ofKind(events, 'model_request_started')).toMatchObject([{ requestKind: 'approval_resume' }])
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => Number(state['seq']) + index + 1))
  })

  test('AP-28 a state passed to the wrong one of `resume` and `history` is rejected with the right one, before any hook', async () => {
    const { pay, state } = await pausedRun()
    const hooks: Hook[] = [{ event: 'run_start', handler: () => expect.fail('No hook may be asked.') }]
    const harness = harnessOf({ model: new ScriptedModel(), tools: [pay], hooks })
    await expect(harness.run('And now?', { history: state })).rejects.toThrow(/call `harness.resume` with them/)
    const ended = stored(await harnessOf({ model: new ScriptedModel().says('Hello.') }).run('Hi.'))
    await expect(harness.resume(ended, [YES])).rejects.toThrow(/pass it as `history` with a new prompt/)
  })

  test('AP-44 tokens add up over the paused turn, the resumed one and a correction', async () => {
    const { pay } = payTool()
    const usage = (inputTokens: number) => ({ usage: { inputTokens, outputTokens: 1 } })
    using model = new ScriptedModel()
      .calls('pay', {}, usage(100))
      .says('Paid.', usage(20))
      .calls('final_result', { paid: true }, usage(3))
    const outputType = z.object({ paid: z.boolean() })
    const harness = harnessOf({ model, tools: [pay], outputType, outputMode: 'tool' })
    const result = await harness.resume(stored(await harness.run('Pay.')), [YES])
    expect(result.usage).toMatchObject({ modelRequests: 3, inputTokens: 123, outputTokens: 3, outputRetries: 1 })
  })
})
