import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { HarnessError, ModelRetry } from 'thinharness'
import type { HarnessStream, Hook, RunEvent } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { eventsOf, failureOf, harnessOf, kinds, ofKind, told, tool } from '../../harness/support.js'

/** An event without what every event has. */
function payload({ runId, seq, at, durable, parentRunId, parentToolCallId, agentName, ...rest }: RunEvent): unknown {
  expect(at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  expect({ parentRunId, parentToolCallId, agentName }).toEqual({
    parentRunId: null,
    parentToolCallId: null,
    agentName: null,
  })
  return [`${durable ? '' : '~'}${seq}`, runId, rest]
}

const USAGE = { inputTokens: 10, outputTokens: 5, cacheReadTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 }
const NO_LIMITS = {
  modelRequests: 64,
  toolCalls: null,
  inputTokens: null,
  outputTokens: null,
  timeMs: null,
  costUsd: null,
}

describe('the events of a stream', () => {
  test('ST-03 ST-04 ST-05 a run with one tool emits eight events in order, with prompt, text, arguments and output', async () => {
    using model = new ScriptedModel().calls('add', { a: 1 }, { text: 'Let me add.' }).says('2.')
    const harness = harnessOf({ model, tools: [tool('add', () => '2')], root: '/w', limits: { toolCalls: null } })
    const stream = harness.stream('What is 1 + 1?', { runId: 'run_x', metadata: { tenant: 7 }, deltas: false })
    const events = await eventsOf(stream)
    const result = await stream.result
    const [started, asked, replied, call, ended, again, answered, completed] = events.map(payload)
    const name = { provider: 'scripted', model: 'scripted-1' }
    const at = expect.any(String) as string
    const user = { role: 'user', id: 'e1', at, content: [{ type: 'text', text: 'What is 1 + 1?' }] }
    const native = { nativeFinishReason: 'tool_calls', responseId: 'response_1', responseModel: 'scripted-1' }
    expect(events).toHaveLength(8)
    expect(started).toEqual([
      '1',
      'run_x',
      {
        kind: 'run_started',
        version: 3,
        begun: 'fresh',
        prompt: 'What is 1 + 1?',
        root: '/w',
        ...name,
        maxModelRequests: 64,
        maxToolCalls: null,
        metadata: { tenant: 7 },
        rules: { limits: NO_LIMITS, outputRetries: 1, toolRetries: 3, toolRetryBudgets: {}, answersByTool: false },
        history: [],
      },
    ])
    expect(asked).toEqual([
      '2',
      'run_x',
      {
        kind: 'model_request_started',
        requestKind: 'start',
        ...name,
        entries: [],
        notices: [],
        config: expect.objectContaining({ limits: expect.any(String) as unknown }) as unknown,
      },
    ])
    const parts = [
      { type: 'text', text: 'Let me add.' },
      { type: 'tool_call', callId: 'call_1', name: 'add', arguments: '{"a":1}' },
    ]
    const entry = { role: 'assistant', id: 'e2', at, parts, ...name, finishReason: 'tool_calls', usage: USAGE }
    expect(replied).toEqual([
      '3',
      'run_x',
      {
        kind: 'model_message',
        finalizedOutputMode: null,
        entry,
        resolution: { kind: 'continue' },
        ...native,
      },
    ])
    const about = { callId: 'call_1', toolName: 'add', toolIndex: 0 }
    expect(call).toEqual(['4', 'run_x', { kind: 'tool_call_started', ...about, arguments: '{"a":1}' }])
    const envelope = '{"ok":true,"content":"2","metadata":{}}'
    expect(ended).toEqual([
      '5',
      'run_x',
      {
        kind: 'tool_call_completed',
        ...about,
        ok: true,
        cancelled: false,
        retryKind: null,
        errorType: null,
        message: null,
        durationMs: expect.any(Number) as number,
        output: envelope,
      },
    ])
    expect(again).toEqual([
      '6',
      'run_x',
      { kind: 'model_request_started', requestKind: 'tool_outputs', ...name, entries: [], notices: [] },
    ])
    expect(answered).toMatchObject(['7', 'run_x', { kind: 'model_message', resolution: { kind: 'final', mode: null } }])
    expect(ofKind(events, 'model_message').map(({ text, toolCalls }) => [text, toolCalls])).toEqual([
      ['Let me add.', [{ id: 'call_1', name: 'add' }]],
      ['2.', []],
    ])
    expect(completed).toMatchObject(['8', 'run_x', { kind: 'run_completed' }])
    expect(result.transcript).toEqual([
      user,
      entry,
      { role: 'tool', id: 'e3', at, callId: 'call_1', name: 'add', content: envelope, isError: false },
      expect.objectContaining({ role: 'assistant', id: 'e4', parts: [{ type: 'text', text: '2.' }] }),
    ])
  })

  test('ST-01 ST-04 a stream ends with one `run_completed` that holds the result with its raw replies; no other event has them', async () => {
    using model = new ScriptedModel().calls('a').says('Done.')
    const stream = harnessOf({ model, tools: [tool('a')] }).stream('Go.', { deltas: false })
    const events = await eventsOf(stream)
    const result = await stream.result
    const completed = ofKind(events, 'run_completed')
    expect(completed).toHaveLength(1)
    expect(events.at(-1)).toBe(completed[0])
    expect(completed[0]?.result).toBe(result)
    expect(result.responses).toHaveLength(2)
    // As JSON, in a log or on a wire, the raw replies are left out everywhere.
    const written = JSON.parse(JSON.stringify(events)) as RunEvent[]
    expect(JSON.stringify(written)).not.toContain('"raw"')
    // The answer is in the last reply: it is written once.
    expect(written.at(-1)).toMatchObject({ kind: 'run_completed', stopReason: 'end_turn', pending: [] })
    expect(written.at(-1)).not.toHaveProperty('result')
    expect(JSON.stringify(written).split('Done.')).toHaveLength(2)
  })

  test('ST-02 `run` and a consumed stream yield the same result', async () => {
    const script = (): ScriptedModel =>
      new ScriptedModel()
        .callsAll([{ name: 'a' }, { name: 'b' }])
        .calls('a')
        .says('Done.')
    const plain = (value: object): unknown =>
      JSON.parse(
        JSON.stringify(value, (key, member: unknown) =>
          ['at', 'startedAt', 'begunAt', 'updatedAt', 'runId'].includes(key) ? undefined : member,
        ),
      )
    using first = script()
    using second = script()
    const tools = [tool('a'), tool('b', () => Promise.reject(new Error('No.')))]
    const ran = await harnessOf({ model: first, tools }).run('Go.')
    const stream = harnessOf({ model: second, tools }).stream('Go.')
    await eventsOf(stream)
    expect(plain(await stream.result)).toEqual(plain(ran))
    expect(stream.runId).toMatch(/^run_[0-9a-f]{32}$/)
    expect(ran.runId).toMatch(/^run_[0-9a-f]{32}$/)
  })

  test('ST-06 limit warnings repeat the content of the notice and the remaining count', async () => {
    using model = new ScriptedModel().says('Done.')
    const events = await eventsOf(
      harnessOf({ model, limits: { modelRequests: 1, toolCalls: 0 } }).stream('Go.', { deltas: false }),
    )
    expect(kinds(events)).toBe(
      'run_started model_request_started limit_warning limit_warning model_message run_completed',
    )
    const said = JSON.stringify(model.heard)
    for (const { content } of ofKind(events, 'limit_warning')) expect(said).toContain(content)
    expect(ofKind(events, 'limit_warning').map(({ limitKind, remaining }) => [limitKind, remaining])).toEqual([
      ['model_requests', 1],
      ['tool_calls', 0],
    ])
  })

  test('ST-07 the completion of a failed call has its content', async () => {
    using model = new ScriptedModel().calls('bad').says('Done.')
    const bad = tool('bad', () => Promise.reject(new RangeError('Too far.')))
    const events = await eventsOf(harnessOf({ model, tools: [bad] }).stream('Go.'))
    expect(ofKind(events, 'tool_call_completed')).toMatchObject([
      { ok: false, errorType: 'RangeError', message: 'RangeError: Too far.', retryKind: null },
    ])
  })

  test('ST-08 a failing run emits one `run_failed` with the error’s name, and then throws it', async () => {
    const cause = new HarnessError('provider_error', 'Down.', { status: 503, retryable: true, retryAfterMs: 5 })
    using model = new ScriptedModel().fails(cause)
    const stream = harnessOf({ model }).stream('Go.')
    const { events, thrown } = await told(stream)
    expect(kinds(events)).toBe('run_started model_request_started run_failed')
    expect(events.at(-1)).toMatchObject({
      stopReason: 'provider_error',
      code: 'provider_error',
      errorType: 'HarnessError',
      message: 'Down.',
      durable: true,
      usage: { modelRequests: 0 },
    })
    expect(thrown).toBeInstanceOf(HarnessError)
    expect(thrown).toMatchObject({ code: 'provider_error', status: 503, retryable: true, retryAfterMs: 5, cause })
    expect(await failureOf(stream.result)).toBe(thrown)
  })

  test('ST-11 leaving the scope of a stream early cancels its run, and the harness can run again', async () => {
    using model = new ScriptedModel()
      .waits(new Promise(() => undefined))
      .says('Never.')
      .says('Again.')
    const harness = harnessOf({ model })
    let left: HarnessStream
    {
      await using stream = harness.stream('Go.')
      left = stream
      for await (const event of stream) if (event.kind === 'model_request_started') break
    }
    const error = await failureOf(left.result)
    expect(error).toMatchObject({ code: 'cancelled', name: 'AbortError', run: { stopReason: 'cancelled' } })
    expect((await harness.run('Go.')).text).toBe('Again.')
  })

  test('ST-12 TM-03 a retry of a structured output is emitted before its request, with the call id; the request is a tool-output retry', async () => {
    using model = new ScriptedModel().calls('final_result', { answer: 5 }).calls('final_result', { answer: 'yes' })
    const stream = harnessOf({ model, outputType: z.object({ answer: z.string() }) }).stream('Go.', { deltas: false })
    const events = await eventsOf(stream)
    expect(kinds(events)).toBe(
      'run_started model_request_started model_message model_retry model_request_started model_message run_completed',
    )
    expect(ofKind(events, 'model_retry')).toMatchObject([{ retryKind: 'structured_output', callId: 'call_1' }])
    expect(ofKind(events, 'model_request_started').map(({ requestKind }) => requestKind)).toEqual([
      'start',
      'output_retry_tool',
    ])
    expect((await stream.result).output).toEqual({ answer: 'yes' })
  })

  test('ST-13 a tool retry within its limit is emitted, with the call id', async () => {
    using model = new ScriptedModel().callsAll([{ name: 'a' }, { name: 'picky' }]).says('Done.')
    const picky = tool('picky', () => Promise.reject(new ModelRetry('Say please.')))
    const events = await eventsOf(harnessOf({ model, tools: [tool('a'), picky] }).stream('Go.', { deltas: false }))
    expect(ofKind(events, 'model_retry')).toMatchObject([
      {
        retryKind: 'tool_retry',
        callId: 'call_2',
        message: '`picky` failed with ModelRetry; the model may try again.',
      },
    ])
    expect(kinds(events)).toContain('tool_call_completed model_retry model_request_started')
  })

  test.each<[string, object, string]>([
    ['an unknown option', { signals: 1 }, 'Unknown option of a run: `signals`. Did you mean `signal`?'],
    [
      'a run id that is none',
      { runId: 'a b' },
      'Expected `runId` of a run to be 1 to 128 letters, digits, `_`, `-`, `.` or `:`, got `a b`.',
    ],
    [
      'metadata that are no object',
      { metadata: ['x'] },
      'Expected `metadata` of a run to be an object of plain JSON, got a list.',
    ],
    [
      'metadata that are no JSON',
      { metadata: { n: 1n } },
      'Expected `metadata` of a run to be an object of plain JSON',
    ],
    [
      'a model that is none',
      { model: {} },
      'Expected `model` of a run to be a reference such as `openai:gpt-5.5`, or an object with `openSession()`, got an object.',
    ],
    [
      'a model without provider',
      { model: 'gpt-5.5' },
      'Expected a model as `provider:model`, such as `anthropic:claude-sonnet-5`, got `gpt-5.5`.',
    ],
  ])(
    'ST-15 invalid arguments are thrown by `stream()` at once, and reject `run()`: %s',
    async (_name, options, message) => {
      const harness = harnessOf({ model: new ScriptedModel() })
      const refusal = expect.objectContaining({
        code: 'invalid_options',
        message: expect.stringContaining(message) as string,
      }) as Error
      expect(() => harness.stream('Go.', options)).toThrow(refusal)
      await expect(harness.run('Go.', options)).rejects.toEqual(refusal)
      await harness.close()
    },
  )

  test.each<[string, unknown, string]>([
    ['nothing', undefined, 'got nothing.'],
    ['a number', 5, 'got `5`.'],
    ['an empty list', [], 'got an empty list.'],
    ['a list of texts', ['Go.'], 'got a list.'],
  ])('ST-15 an invalid prompt is rejected at once: %s', (_name, prompt, got) => {
    const harness = harnessOf({ model: new ScriptedModel() })
    expect(() => harness.stream(prompt as string)).toThrow(
      `Expected the prompt to be a string or a list of content parts, ${got}`,
    )
  })

  test('ST-15 a harness without a model explains how to choose one', () => {
    const chosen = process.env['THINHARNESS_MODEL']
    delete process.env['THINHARNESS_MODEL']
    try {
      expect(() => harnessOf({}).stream('Go.')).toThrow(expect.objectContaining({ code: 'missing_model' }))
    } finally {
      if (chosen !== undefined) process.env['THINHARNESS_MODEL'] = chosen
    }
  })
})

describe('deltas', () => {
  const script = (): ScriptedModel =>
    new ScriptedModel().calls('a', { n: 1 }, { text: 'One moment.', reasoning: 'Think.' }).says('All done.')

  test('arrive between the durable events of a stream, and add up', async () => {
    using model = script()
    const events = await eventsOf(harnessOf({ model, tools: [tool('a')] }).stream('Go.'))
    const joined = (kind: 'text_delta' | 'reasoning_delta' | 'tool_input_delta'): string =>
      ofKind(events, kind)
        .map(({ text }) => text)
        .join('')
    expect([joined('reasoning_delta'), joined('text_delta'), joined('tool_input_delta')]).toEqual([
      'Think.',
      'One moment.All done.',
      '{"n":1}',
    ])
    const deltas = events.filter(({ durable }) => !durable)
    expect(new Set(deltas.map(({ seq }) => seq))).toEqual(new Set([2, 6]))
    expect(ofKind(events, 'tool_input_delta').every(({ callId }) => callId === 'call_1')).toBe(true)
    expect(model.requests.map(({ streamed }) => streamed)).toEqual([true, true])
  })

  test('are neither requested nor emitted without a listener', async () => {
    using model = script()
    const events = await eventsOf(harnessOf({ model, tools: [tool('a')] }).stream('Go.', { deltas: false }))
    expect(events.filter(({ durable }) => !durable)).toEqual([])
    expect(model.requests.map(({ streamed }) => streamed)).toEqual([false, false])
  })

  test('progress of a tool is emitted while its call is open, and not later', async () => {
    let late: (update: string) => void = () => undefined
    const working = tool('working', async (_args, context) => {
      context.progress({ done: 1, of: 2 })
      late = (update) => context.progress(update)
    })
    const after: Hook = {
      event: 'after_tool_call',
      handler: () => {
        late('too late')
      },
    }
    using model = new ScriptedModel().calls('working').says('Done.')
    const events = await eventsOf(harnessOf({ model, tools: [working], hooks: [after] }).stream('Go.'))
    late('much too late')
    expect(ofKind(events, 'tool_progress')).toMatchObject([
      { callId: 'call_1', toolName: 'working', update: { done: 1, of: 2 }, durable: false, seq: 4 },
    ])
  })

  test('retries of the transport are emitted, together with withdrawn deltas', async () => {
    const retry = { attempt: 1, delayMs: 5, reason: 'reset', status: null }
    using model = new ScriptedModel().replies(({ options }) => {
      options.onDelta?.({ kind: 'text_delta', text: 'Wro' })
      options.onRetry?.({ ...retry, withdrawn: true })
      options.onRetry?.({ ...retry, attempt: 2, withdrawn: false })
      return 'Right.'
    })
    const events = await eventsOf(harnessOf({ model }).stream('Go.', { deltas: true }))
    expect(events.filter(({ durable }) => !durable).map((event) => payload(event))).toMatchObject([
      ['~2', expect.any(String), { kind: 'text_delta', text: 'Wro' }],
      ['~2', expect.any(String), { kind: 'transport_retry', ...retry, withdrawn: true }],
      ['~2', expect.any(String), { kind: 'deltas_withdrawn', attempt: 1 }],
      ['~2', expect.any(String), { kind: 'transport_retry', attempt: 2, withdrawn: false }],
      ['~2', expect.any(String), { kind: 'text_delta', text: 'Right.' }],
    ])
  })
})
