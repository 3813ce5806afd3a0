import { SpanKind, SpanStatusCode } from '@opentelemetry/api'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { HarnessError, ModelRetry, ToolResult } from 'thinharness'
import type { JsonObject } from 'thinharness'
import { policy } from 'thinharness/policy'
import { ScriptedModel } from 'thinharness/testing'
import { openTelemetry } from 'thinharness/tracing'
import { eventsOf, failureOf, harnessOf, ofKind, tool } from '../../harness/support.js'
import { allTextOf, answeringAs, messagesOf, otel } from './support.js'

const text = (content: string) => ({ type: 'text', content })

function failed(content: string, metadata: JsonObject): ToolResult {
  return new ToolResult({ ok: false, content, metadata })
}

describe('the spans of a run', () => {
  test('TC-01 a run has one span, with those of its requests and calls nested in it, and attributes of known families only', async () => {
    const traced = otel()
    const { tracer } = traced
    using model = new ScriptedModel().calls('lookup', { id: 7 }, { text: 'Let me see.' }).says('Late.')
    const lookup = tool('lookup', () => 'in Hamburg')
    const tracing = openTelemetry({ tracer, captureContent: true, agentDescription: 'Knows orders.' })
    const harness = harnessOf({ model, tools: [lookup], instructions: 'Be brief.', tracing: [tracing] })
    await harness.run('Where is it?', { runId: 'run_1', metadata: { conversation_id: 'chat_9' } })

    expect(traced.tree).toBe('invoke_agent thinharness\n  chat scripted-1\n  execute_tool lookup\n  chat scripted-1')
    const families = /^(gen_ai\.|thinharness\.|subagent\.|mcp\.|error\.type$)/
    const names = traced.spans.flatMap(({ attributes }) => Object.keys(attributes))
    expect(names.filter((name) => !families.test(name))).toEqual([])
    expect(traced.named('invoke_agent thinharness')).toMatchObject({
      kind: SpanKind.INTERNAL,
      attributes: {
        'gen_ai.operation.name': 'invoke_agent',
        'gen_ai.agent.name': 'thinharness',
        'gen_ai.agent.description': 'Knows orders.',
        'gen_ai.conversation.id': 'chat_9',
        'gen_ai.provider.name': 'scripted',
        'gen_ai.request.model': 'scripted-1',
        'gen_ai.system_instructions': '[{"type":"text","content":"Be brief."}]',
        'thinharness.run.id': 'run_1',
        'thinharness.run.stop_reason': 'end_turn',
        'thinharness.run.model_requests': 2,
        'thinharness.run.tool_calls': 1,
      },
    })
    expect(traced.named('execute_tool lookup')).toMatchObject({
      kind: SpanKind.INTERNAL,
      attributes: {
        'gen_ai.operation.name': 'execute_tool',
        'gen_ai.tool.name': 'lookup',
        'gen_ai.tool.type': 'function',
        'gen_ai.tool.call.id': 'call_1',
        'gen_ai.tool.description': 'The tool lookup.',
        'gen_ai.tool.call.arguments': '{"id":7}',
        'gen_ai.tool.call.result': '{"ok":true,"content":"in Hamburg","metadata":{}}',
      },
    })
    const [first, second] = traced.turns
    expect(first?.kind).toBe(SpanKind.CLIENT)
    expect(messagesOf(first)).toEqual({
      input: [{ role: 'user', parts: [text('Where is it?')] }],
      output: [
        {
          role: 'assistant',
          parts: [text('Let me see.'), { type: 'tool_call', id: 'call_1', name: 'lookup', arguments: { id: 7 } }],
          finish_reason: 'tool_call',
        },
      ],
    })
    const response = { ok: true, content: 'in Hamburg', metadata: {} }
    expect(messagesOf(second)).toEqual({
      input: [{ role: 'tool', parts: [{ type: 'tool_call_response', id: 'call_1', response }] }],
      output: [{ role: 'assistant', parts: [text('Late.')], finish_reason: 'stop' }],
    })
  })

  test('TC-09 they hold no content unless it is enabled, including the error messages of tools and models', async () => {
    const traced = otel()
    const { tracer } = traced
    using model = new ScriptedModel()
      .calls('a', { secret: 'SECRET' })
      .replies({ refusal: 'SECRET is not for you.', finishReason: 'refusal' })
    const failing = tool('a', () => failed('SECRET not found', { error_type: 'NotFound' }))
    const tracing = openTelemetry({ tracer })
    const harness = harnessOf({ model, tools: [failing], instructions: 'SECRET', tracing: [tracing] })
    await failureOf(harness.run('SECRET'))
    expect(traced.spans).toHaveLength(4)
    expect(allTextOf(traced.spans)).not.toContain('SECRET')
    expect(traced.named('invoke_agent thinharness').status).toEqual({
      code: SpanStatusCode.ERROR,
      message: 'unexpected_model_behavior',
    })
  })

  test('TC-09 each kind of content is captured separately', async () => {
    const traced = otel()
    const { tracer } = traced
    using model = new ScriptedModel().calls('a', { x: 'ARGUMENT' }).says('REPLY')
    const tracing = openTelemetry({ tracer, captureContent: { messages: true } })
    await harnessOf({ model, tools: [tool('a', () => 'RESULT')], tracing: [tracing] }).run('PROMPT')
    const told = allTextOf(traced.spans)
    expect(['PROMPT', 'REPLY', 'ARGUMENT', 'RESULT'].filter((word) => told.includes(word))).toEqual(['PROMPT', 'REPLY'])
  })

  test('TC-02 absent values have no attribute', async () => {
    const traced = otel()
    const { tracer } = traced
    using model = new ScriptedModel().says('Hi.', { usage: null })
    await harnessOf({ model, tracing: [openTelemetry({ tracer, captureContent: true })] }).run('Hi?')
    const [turn] = traced.turns
    expect(Object.keys(turn?.attributes ?? {}).filter((name) => name.includes('usage'))).toEqual([])
    const values = traced.spans.flatMap(({ attributes }) => Object.values(attributes))
    expect(values.filter((value) => value === undefined || value === 'null' || value === 'undefined')).toEqual([])
  })

  test('TC-13 a harness without tracing creates no spans', async () => {
    const traced = otel()
    const { tracer } = traced
    using model = new ScriptedModel().says('Hi.')
    openTelemetry({ tracer })
    await harnessOf({ model }).run('Hi?')
    expect(traced.spans).toEqual([])
  })
})

describe('the span of a request', () => {
  test('TC-03 TC-04 it shows the notices in the text of the prompt and after results, and names them', async () => {
    const traced = otel()
    const { tracer } = traced
    using model = new ScriptedModel().calls('a').says('Done.')
    const tracing = openTelemetry({ tracer, captureContent: true })
    const limits = { toolCalls: 1, modelRequests: 2 }
    await harnessOf({ model, tools: [tool('a')], limits, tracing: [tracing] }).run('Go.')
    const [first, second] = traced.turns
    expect(messagesOf(first).input).toEqual([
      { role: 'user', parts: [text(expect.stringMatching(/^Go\.\n\n.*One tool call remains/s) as string)] },
    ])
    expect(first?.attributes['thinharness.model.notices']).toEqual(['limit_warning:tool_calls:1'])
    expect(messagesOf(second).input).toEqual([
      { role: 'tool', parts: [expect.objectContaining({ type: 'tool_call_response', id: 'call_1' })] },
      { role: 'user', parts: [text(expect.stringContaining('final model request') as string)] },
    ])
    expect(second?.attributes['thinharness.model.notices']).toContain('limit_warning:model_requests:1')
    expect(second?.events.map(({ name }) => name)).toContain('thinharness.limit_warning')
  })

  test('TC-11 it shows the text and the calls that the stream emits', async () => {
    const traced = otel()
    const { tracer } = traced
    using model = new ScriptedModel()
      .replies({ text: 'Two calls.', calls: [{ name: 'a' }, { name: 'b' }] })
      .says('Done.')
    const tracing = openTelemetry({ tracer, captureContent: true })
    const stream = harnessOf({ model, tools: [tool('a'), tool('b')], tracing: [tracing] }).stream('Go.')
    const told = ofKind(await eventsOf(stream), 'model_message').map(({ text: content, toolCalls }) => [
      content,
      ...toolCalls,
    ])
    const shown = traced.turns.map((turn) => {
      const [message] = messagesOf(turn).output as {
        parts: { type: string; content: string; id: string; name: string }[]
      }[]
      const parts = message?.parts ?? []
      const calls = parts.filter(({ type }) => type === 'tool_call').map(({ id, name }) => ({ id, name }))
      return [
        parts
          .filter(({ type }) => type === 'text')
          .map(({ content }) => content)
          .join(''),
        ...calls,
      ]
    })
    expect(shown).toEqual(told)
  })

  test('TC-15 it names the kind of the request, and shows only the content new to the model', async () => {
    const traced = otel()
    const { tracer } = traced
    using model = new ScriptedModel().says('not json').calls('final_result', { n: 'x' }).calls('final_result', { n: 1 })
    const tracing = openTelemetry({ tracer, captureContent: true })
    const options = { outputType: z.object({ n: z.number() }), outputMode: 'tool', outputRetries: 2 } as const
    await harnessOf({ model, ...options, tracing: [tracing] }).run('Go.')
    expect(traced.turns.map(({ attributes }) => attributes['thinharness.model.request.kind'])).toEqual([
      'start',
      'correction',
      'output_retry_tool',
    ])
    expect(traced.turns.map((turn) => (messagesOf(turn).input as { role: string }[]).map(({ role }) => role))).toEqual([
      ['user'],
      ['user'],
      ['tool'],
    ])
  })

  test('SO-33 SO-34 a request that settles a structured output carries its mode; a corrected one and the run do not', async () => {
    const traced = otel()
    const { tracer } = traced
    using model = new ScriptedModel().calls('final_result', { n: 'x' }).calls('final_result', { n: 1 })
    const options = { outputType: z.object({ n: z.number() }), outputMode: 'tool' } as const
    await harnessOf({ model, ...options, tracing: [openTelemetry({ tracer })] }).run('Go.')
    const marks = traced.spans.map(({ name, attributes }) => [
      name,
      attributes['thinharness.output.mode'],
      attributes['gen_ai.output.finalized'],
    ])
    expect(marks).toEqual([
      ['chat scripted-1', undefined, undefined],
      ['chat scripted-1', 'tool', true],
      ['invoke_agent thinharness', undefined, undefined],
    ])
  })

  test.each([
    [
      'TC-16 TC-17 it has all token counts and their sum',
      { inputTokens: 100, outputTokens: 20, cacheReadTokens: 80, cacheWriteTokens: 10, reasoningTokens: 5 },
      120,
    ],
    [
      'TC-18 it has no sum of partial counts',
      { inputTokens: 100, outputTokens: null, cacheReadTokens: null, cacheWriteTokens: null, reasoningTokens: null },
      undefined,
    ],
  ])('%s', async (_title, usage, total) => {
    const traced = otel()
    const { tracer } = traced
    using model = new ScriptedModel().says('Hi.', { usage })
    await harnessOf({ model, tracing: [openTelemetry({ tracer })] }).run('Hi?')
    const [turn] = traced.turns
    const value = (name: string): unknown => turn?.attributes[`gen_ai.usage.${name}`]
    expect([value('input_tokens'), value('output_tokens'), value('total_tokens')]).toEqual([
      usage.inputTokens,
      usage.outputTokens ?? undefined,
      total,
    ])
    expect(value('cache_read.input_tokens')).toBe(usage.cacheReadTokens ?? undefined)
    expect(value('cache_creation.input_tokens')).toBe(usage.cacheWriteTokens ?? undefined)
    expect(value('reasoning.output_tokens')).toBe(usage.reasoningTokens ?? undefined)
    expect(turn?.attributes['gen_ai.response.finish_reasons']).toEqual(['stop'])
  })

  test('TC-16 TC-19 it names the model that answered and the id of its reply, for a custom model too', async () => {
    const traced = otel()
    const { tracer } = traced
    await harnessOf({ model: answeringAs('scripted-1-2026', 'resp_1'), tracing: [openTelemetry({ tracer })] }).run(
      'Hi?',
    )
    expect(traced.turns[0]?.attributes).toMatchObject({
      'gen_ai.response.model': 'scripted-1-2026',
      'gen_ai.response.id': 'resp_1',
    })
  })

  test('TC-20 a failed request keeps its input, has no reply and is marked, and so is the run', async () => {
    const traced = otel()
    const { tracer } = traced
    using model = new ScriptedModel().fails(
      new HarnessError('provider_error', 'The provider is down.', { status: 429 }),
    )
    await failureOf(harnessOf({ model, tracing: [openTelemetry({ tracer, captureContent: true })] }).run('Hi?'))
    const [turn] = traced.turns
    expect(messagesOf(turn)).toEqual({ input: [{ role: 'user', parts: [text('Hi?')] }], output: undefined })
    for (const span of traced.spans) {
      expect(span.status).toEqual({ code: SpanStatusCode.ERROR, message: 'The provider is down.' })
      expect(span.attributes).toMatchObject({ 'error.type': 'provider_error', 'thinharness.failure': 'rate_limit' })
      expect(span.events.map(({ name, attributes }) => [name, attributes])).toEqual([
        ['exception', { 'exception.type': 'provider_error', 'exception.message': 'The provider is down.' }],
      ])
    }
  })

  test('it reports each retry of the transport', async () => {
    const traced = otel()
    const { tracer } = traced
    const retry = { attempt: 1, delayMs: 250, reason: 'status 529', status: 529, withdrawn: false }
    using model = new ScriptedModel().replies(({ options }) => {
      options.onRetry?.(retry)
      return 'Hi.'
    })
    await harnessOf({ model, tracing: [openTelemetry({ tracer })] }).run('Hi?')
    expect(traced.turns[0]?.events.map(({ name, attributes }) => [name, attributes])).toEqual([
      [
        'thinharness.transport_retry',
        { attempt: 1, delay_ms: 250, reason: 'status 529', status: 529, withdrawn: false },
      ],
    ])
  })

  test('RF-19 it shows reasoning as text and first, without any provider data', async () => {
    const traced = otel()
    const { tracer } = traced
    using model = new ScriptedModel().replies({
      parts: [
        { type: 'reasoning', text: 'Hm.' },
        { type: 'reasoning', text: '' },
        { type: 'text', text: 'Yes.' },
      ],
    })
    await harnessOf({ model, tracing: [openTelemetry({ tracer, captureContent: true })] }).run('Well?')
    expect(messagesOf(traced.turns[0]).output).toEqual([
      { role: 'assistant', parts: [{ type: 'reasoning', content: 'Hm.' }, text('Yes.')], finish_reason: 'stop' },
    ])
  })

  test('it describes images and files, but never holds their bytes', async () => {
    const traced = otel()
    const { tracer } = traced
    using model = new ScriptedModel().says('A cat.')
    const prompt = [
      { type: 'text', text: 'What is this?' },
      { type: 'image', data: 'QUJDREVG', mediaType: 'image/png' },
      { type: 'image', url: 'https://example.com/cat.png' },
      { type: 'image', url: 'data:image/gif;base64,QUJDREVG' },
      { type: 'file', data: 'QUJDREVG', mediaType: 'application/pdf' },
    ] as const
    await harnessOf({ model, tracing: [openTelemetry({ tracer, captureContent: true })] }).run(prompt)
    expect(allTextOf(traced.spans)).not.toContain('QUJDREVG')
    const [message] = messagesOf(traced.turns[0]).input as { parts: unknown[] }[]
    expect(message?.parts).toEqual([
      text('What is this?'),
      { type: 'blob_left_out', modality: 'image', mime_type: 'image/png', characters: 8 },
      { type: 'uri', modality: 'image', uri: 'https://example.com/cat.png' },
      { type: 'blob_left_out', modality: 'image', mime_type: 'image/gif', characters: 30 },
      { type: 'blob_left_out', modality: 'document', mime_type: 'application/pdf', characters: 8 },
    ])
  })
})

describe('the span of a tool call', () => {
  test('says what the policies decided, and by which rule; without an opinion it says nothing', async () => {
    const decide = policy([
      { decision: 'deny', tool: 'pay', id: 'no-money' },
      { decision: 'allow', tool: 'look' },
    ])
    for (const [use, expected] of [
      [
        [decide],
        [
          ['deny', 'no-money'],
          ['allow', '2'],
        ],
      ],
      [
        [],
        [
          [undefined, undefined],
          [undefined, undefined],
        ],
      ],
    ] as const) {
      const traced = otel()
      const { tracer } = traced
      const model = new ScriptedModel().calls('pay').calls('look').says('Done.')
      const tools = [tool('pay'), tool('look')]
      await harnessOf({ model, tools, use, tracing: [openTelemetry({ tracer })] }).run('Go.')
      const said = traced.spans
        .filter(({ name }) => name.startsWith('execute_tool'))
        .map(({ attributes }) => [attributes['thinharness.policy.decision'], attributes['thinharness.policy.rule']])
      expect(said).toEqual(expected)
    }
  })

  test.each([
    ['TC-10 that fails', () => failed('No such file.', { error_type: 'NotFound' }), 'ToolExecutionError', 'NotFound'],
    [
      'TC-10 that the model may repeat',
      () => {
        throw new ModelRetry('Try 1 to 3.')
      },
      'ModelRetry',
      'ModelRetry',
    ],
  ])('a call %s has the class of its error', async (_title, handler, type, own) => {
    const traced = otel()
    const { tracer } = traced
    using model = new ScriptedModel().calls('a').says('Done.')
    const tracing = openTelemetry({ tracer, captureContent: true })
    await harnessOf({ model, tools: [tool('a', handler)], tracing: [tracing] }).run('Go.')
    const span = traced.named('execute_tool a')
    expect(span.status).toMatchObject({ code: SpanStatusCode.ERROR })
    expect(span.attributes).toMatchObject({ 'error.type': type, 'thinharness.tool.error_type': own })
    expect(traced.named('invoke_agent thinharness').status.code).toBe(SpanStatusCode.UNSET)
  })

  test('TR-18 it reports the error from before a hook rewrote the result', async () => {
    const traced = otel()
    const { tracer } = traced
    using model = new ScriptedModel().calls('a').says('Done.')
    const failing = tool('a', () => {
      throw new ModelRetry('Again.')
    })
    const hooks = [
      { event: 'after_tool_call', handler: () => ({ output: '{"ok":true,"content":"fine","metadata":{}}' }) },
    ] as const
    await harnessOf({ model, tools: [failing], hooks, tracing: [openTelemetry({ tracer })] }).run('Go.')
    expect(traced.named('execute_tool a').attributes['error.type']).toBe('ModelRetry')
  })

  test('TC-12 the span of a subagent call names the agent and its tools, as described by the tool', async () => {
    const traced = otel()
    using model = new ScriptedModel().calls('subagent').says('Done.')
    const metadata = { agent: 'scout', tool_mode: 'explicit', tools: ['read', 'list'] }
    const subagent = tool('subagent', () => new ToolResult({ content: 'Seen.', metadata }))
    await harnessOf({ model, tools: [subagent], tracing: [openTelemetry({ tracer: traced.tracer })] }).run('Go.')
    expect(traced.named('execute_tool subagent').attributes).toMatchObject({
      'subagent.name': 'scout',
      'subagent.tool_mode': 'explicit',
      'subagent.tools': ['read', 'list'],
    })
  })

  test('TC-21 the span of a call to an unknown subagent is failed, and has no tool mode', async () => {
    const traced = otel()
    const { tracer } = traced
    using model = new ScriptedModel().calls('subagent', { agent: 'nobody' }).says('Done.')
    const subagent = tool('subagent', () =>
      failed('unknown agent', { error_type: 'UnknownSubAgent', agent: 'nobody', available: ['a'] }),
    )
    await harnessOf({ model, tools: [subagent], tracing: [openTelemetry({ tracer })] }).run('Go.')
    const { attributes, status } = traced.named('execute_tool subagent')
    expect(status.code).toBe(SpanStatusCode.ERROR)
    expect(Object.entries(attributes).filter(([name]) => name.startsWith('subagent.'))).toEqual([
      ['subagent.name', 'nobody'],
    ])
  })
})
