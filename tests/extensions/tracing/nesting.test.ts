import { context, trace } from '@opentelemetry/api'
import { describe, expect, test, vi } from 'vitest'
import { memoryLog } from 'thinharness'
import type { ResumeState, Tracing } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { localTraces, openTelemetry, traceLog } from 'thinharness/tracing'
import { eventsOf as toldBy, failureOf, gate, harnessOf, tool } from '../../harness/support.js'
import { begun, eventsIn, eventsOf, messagesOf, otel, recordsIn, recordTree, useContextManager } from './support.js'
import { temporaryFolder } from '../../support/folder.js'

describe('spans of the caller', () => {
  test('a run is nested in the active span, and spans of tools in that of their call', async () => {
    useContextManager()
    const traced = otel()
    const { tracer } = traced
    using model = new ScriptedModel().callsAll([{ name: 'a' }, { name: 'b' }]).says('Done.')
    const first = gate()
    const a = tool('a', async () => {
      // Both are under way at once, and the first to begin ends last.
      await first.opened
      tracer.startActiveSpan('query of a', (span) => span.end())
    })
    const b = tool('b', () => {
      tracer.startActiveSpan('query of b', (span) => span.end())
      first.open()
    })
    const harness = harnessOf({ model, tools: [a, b], tracing: [openTelemetry({ tracer })] })
    await tracer.startActiveSpan('request', async (span) => {
      await harness.run('Go.')
      span.end()
    })
    const parents = new Map(traced.spans.map((span) => [span.name, span.parentSpanContext?.spanId]))
    const idOf = (name: string): string => traced.named(name).spanContext().spanId
    expect(parents.get('invoke_agent thinharness')).toBe(idOf('request'))
    expect(parents.get('query of a')).toBe(idOf('execute_tool a'))
    expect(parents.get('query of b')).toBe(idOf('execute_tool b'))
    expect(parents.get('execute_tool a')).toBe(idOf('invoke_agent thinharness'))
    expect(new Set(traced.spans.map((span) => span.spanContext().traceId)).size).toBe(1)
  })

  test('a request to a model is nested in its own span, and nothing is active after a run', async () => {
    useContextManager()
    const traced = otel()
    const { tracer } = traced
    using model = new ScriptedModel().replies(() => {
      tracer.startSpan('HTTP POST').end()
      return 'Hi.'
    })
    await harnessOf({ model, tracing: [openTelemetry({ tracer })] }).run('Hi?')
    expect(traced.tree).toBe('invoke_agent thinharness\n  chat scripted-1\n    HTTP POST')
    expect(trace.getSpan(context.active())).toBeUndefined()
  })

  test('spans nest without a context manager too, as far as they are ours', async () => {
    const traced = otel()
    const { tracer } = traced
    using model = new ScriptedModel().calls('a').says('Done.')
    await harnessOf({ model, tools: [tool('a')], tracing: [openTelemetry({ tracer })] }).run('Go.')
    expect(traced.tree).toBe('invoke_agent thinharness\n  chat scripted-1\n  execute_tool a\n  chat scripted-1')
  })
})

describe('child runs', () => {
  test.each(['openTelemetry', 'localTraces'] as const)(
    'TC-06 TC-12 TC-14 child runs are nested in the call that started them, each with its own prompt, even if they run at once: %s',
    async (kind) => {
      const traced = otel()
      const dir = temporaryFolder()
      const { tracer } = traced
      const tracing = kind === 'localTraces' ? localTraces({ dir }) : openTelemetry({ tracer, captureContent: true })
      await twoChildren(tracing)
      const tree = kind === 'localTraces' ? recordTree(await recordsIn(dir)) : traced.tree
      expect(tree).toBe(
        [
          'invoke_agent thinharness',
          '  execute_tool subagent',
          '    invoke_agent subagent.one',
          '      chat scripted-1',
          '  execute_tool subagent',
          '    invoke_agent subagent.two',
          '      chat scripted-1',
        ].join('\n'),
      )
      const records = await recordsIn(dir)
      const attributes =
        kind === 'localTraces' ? records.map((each) => each.attributes) : traced.spans.map((each) => each.attributes)
      const runs = attributes.filter((each) => isChild(each['gen_ai.agent.name']))
      const said = runs.map((each) => [each['gen_ai.agent.name'], JSON.stringify(each['gen_ai.input.messages'])])
      expect(said).toEqual([
        ['subagent.two', expect.stringContaining('prompt of two')],
        ['subagent.one', expect.stringContaining('prompt of one')],
      ])
    },
  )
})

function isChild(name: unknown): boolean {
  return typeof name === 'string' && name.startsWith('subagent.')
}

/** Two runs under two calls of one, their events mixed. */
async function twoChildren(tracing: Tracing): Promise<void> {
  const calls = [{ name: 'subagent' }, { name: 'subagent' }]
  const parent = await eventsOf(new ScriptedModel().callsAll(calls).says('Done.'), 'Go.')
  const one = await eventsOf(new ScriptedModel().says('One.'), 'prompt of one')
  const two = await eventsOf(new ScriptedModel().says('Two.'), 'prompt of two')
  await tracing.load?.()
  const outer = begun(tracing, parent, {})
  const started = parent.filter(({ kind }) => kind === 'run_started' || kind === 'tool_call_started')
  for (const event of started) outer.event(event)
  const traces = [
    begun(tracing, one, { parentRunId: 'parent', parentToolCallId: 'call_1', agentName: 'one' }),
    begun(tracing, two, { parentRunId: 'parent', parentToolCallId: 'call_2', agentName: 'two' }),
  ] as const
  for (const event of one.slice(0, -1)) traces[0].event(event)
  for (const event of two) traces[1].event(event)
  for (const event of one.slice(-1)) traces[0].event(event)
  for (const event of parent)
    if (event.kind === 'tool_call_completed' || event.kind === 'run_completed') outer.event(event)
  await tracing.flush?.()
}

test('TC-12 a child that a tool starts is nested in its call, with the spans of its own tools', async () => {
  useContextManager()
  const traced = otel()
  const { tracer } = traced
  const inner = tool('inner', () => tracer.startSpan('query').end())
  const outer = tool('outer', async (_args, context) => {
    const child = context.spawn({ prompt: 'Look.', agentName: 'scout', tools: [inner] })
    return (await child.result).text
  })
  using model = new ScriptedModel().calls('outer').calls('inner').says('Seen.').says('Done.')
  await harnessOf({ model, tools: [outer], tracing: [openTelemetry({ tracer })] }).run('Go.')
  expect(traced.tree).toBe(
    [
      'invoke_agent thinharness',
      '  chat scripted-1',
      '  execute_tool outer',
      '    invoke_agent subagent.scout',
      '      chat scripted-1',
      '      execute_tool inner',
      '        query',
      '      chat scripted-1',
      '  chat scripted-1',
    ].join('\n'),
  )
})

describe('the trace of a resumed run', () => {
  const asking = tool('a', () => 'ok', { requiresApproval: true })
  const approval = [{ callId: 'call_1', approved: true }]
  const conversation = { metadata: { conversation_id: 'chat_9' } }

  test('AP-07 a pause is recorded with its reason; a held call has no span', async () => {
    const traced = otel()
    using model = new ScriptedModel().calls('a', {}, { text: 'May I?' })
    await harnessOf({ model, tools: [asking], tracing: [openTelemetry({ tracer: traced.tracer })] }).run('Go.')
    expect(traced.tree).toBe('invoke_agent thinharness\n  chat scripted-1')
    expect(traced.named('invoke_agent thinharness').attributes).toMatchObject({
      'thinharness.approval.paused': true,
      'thinharness.approval.pending_call_ids': ['call_1'],
      'thinharness.run.stop_reason': 'approval_required',
    })
  })

  test('AP-07 TC-15 a resumed run continues the trace of its first part, linked to it, in the same conversation, with the new content only', async () => {
    const traced = otel()
    // As in another process: nothing is known but the state.
    const tracing = () => [openTelemetry({ tracer: traced.tracer, captureContent: true })]
    using model = new ScriptedModel().calls('a').says('Done.')
    const paused = await harnessOf({ model, tools: [asking], tracing: tracing() }).run('Go.', conversation)
    const state = JSON.parse(JSON.stringify(paused.resumeState)) as ResumeState
    await harnessOf({ model, tools: [asking], tracing: tracing() }).resume(state, approval)
    const [one, two] = traced.spans.filter(({ name }) => name === 'invoke_agent thinharness')
    expect(two?.spanContext().traceId).toBe(one?.spanContext().traceId)
    expect(two?.parentSpanContext?.spanId).toBe(one?.spanContext().spanId)
    expect(two?.links.map(({ context: { spanId } }) => spanId)).toEqual([one?.spanContext().spanId])
    expect(two?.attributes).toMatchObject({
      'thinharness.run.resumed': true,
      'gen_ai.conversation.id': 'chat_9',
      'thinharness.run.stop_reason': 'end_turn',
    })
    const last = traced.turns.at(-1)
    expect(last?.attributes['thinharness.model.request.kind']).toBe('approval_resume')
    expect(messagesOf(last).input).toEqual([{ role: 'tool', parts: [expect.objectContaining({ id: 'call_1' })] }])
  })

  test('it continues in its local trace too', async () => {
    const dir = temporaryFolder()
    using model = new ScriptedModel().calls('a').says('Done.')
    const first = harnessOf({ model, tools: [asking], tracing: [localTraces({ dir })] })
    const paused = await first.run('Go.')
    await first.close()
    const second = harnessOf({ model, tools: [asking], tracing: [localTraces({ dir })] })
    await second.resume(paused.resumeState!, approval)
    await second.close()
    const records = await recordsIn(dir)
    expect(new Set(records.map(({ traceId }) => traceId)).size).toBe(1)
    expect(records.map(({ name }) => name)).toEqual([
      'chat scripted-1',
      'invoke_agent thinharness',
      'execute_tool a',
      'chat scripted-1',
      'invoke_agent thinharness',
    ])
  })

  test('after a crash it continues in the trace that its log names; an ended run is not traced again', async () => {
    const traced = otel()
    const log = memoryLog()
    using model = new ScriptedModel().calls('a').says('Done.')
    const options = { model, tools: [tool('a', () => 'ok', { annotations: { readOnly: true } })] }
    const tracing = () => [openTelemetry({ tracer: traced.tracer })]
    await harnessOf({ ...options, log, tracing: tracing() }).run('Go.', { runId: 'run_1' })
    const events = await eventsIn(log, 'run_1')
    const started = events.findIndex(({ kind }) => kind === 'tool_call_started')
    const crashed = memoryLog()
    await crashed.append({ kind: 'run', id: 'run_1' }, events.slice(0, started + 1))
    const again = harnessOf({ ...options, model: new ScriptedModel().says('Done.'), log: crashed, tracing: tracing() })
    expect((await again.recover('run_1')).text).toBe('Done.')
    const [one, two, ...others] = traced.spans.filter(({ name }) => name === 'invoke_agent thinharness')
    expect(two?.spanContext().traceId).toBe(one?.spanContext().traceId)
    expect(two?.attributes['thinharness.run.resumed']).toBe(true)
    expect(others).toEqual([])
    const spans = traced.spans.length
    await again.recover('run_1')
    expect(traced.spans).toHaveLength(spans)
  })

  test('it is nested in the span of its caller if there is one, and is linked to its first part', async () => {
    useContextManager()
    const traced = otel()
    const tracing = openTelemetry({ tracer: traced.tracer })
    const events = await eventsOf(new ScriptedModel().says('Hi.'), 'Hi?')
    await tracing.load?.()
    let traceparent: string | null = null
    for (const part of ['first request', 'second request']) {
      traced.tracer.startActiveSpan(part, (span) => {
        const run = begun(tracing, events, { resumed: traceparent !== null, traceparent })
        traceparent = run.traceparent ?? null
        for (const event of events) run.event(event)
        span.end()
      })
    }
    const [one, two] = traced.spans.filter(({ name }) => name === 'invoke_agent thinharness')
    expect(two?.parentSpanContext?.spanId).toBe(traced.named('second request').spanContext().spanId)
    expect(two?.links.map(({ context: { spanId } }) => spanId)).toEqual([one?.spanContext().spanId])
  })
})

describe('a trace of a log', () => {
  test('has the spans and times of the run itself', async () => {
    const dir = temporaryFolder()
    const events = await eventsOf(new ScriptedModel().calls('subagent').says('Done.'), 'Go.')
    await traceLog(localTraces({ dir }), events)
    const records = await recordsIn(dir)
    expect(recordTree(records)).toBe(
      'invoke_agent thinharness\n  chat scripted-1\n  execute_tool subagent\n  chat scripted-1',
    )
    const run = records.find(({ parentSpanId }) => parentSpanId === null)
    expect([run?.startedAt, run?.endedAt]).toEqual([events[0]?.at, events.at(-1)?.at])
  })

  test('it accepts the events of a stream, including children', async () => {
    const dir = temporaryFolder()
    const outer = tool('outer', async (_args, context) => (await context.spawn({ prompt: 'Look.' }).result).text)
    using model = new ScriptedModel().calls('outer').says('Seen.').says('Done.')
    const told = await toldBy(harnessOf({ model, tools: [outer] }).stream('Go.'))
    await traceLog(localTraces({ dir }), told)
    expect(recordTree(await recordsIn(dir))).toBe(
      [
        'invoke_agent thinharness',
        '  chat scripted-1',
        '  execute_tool outer',
        '    invoke_agent subagent.default',
        '      chat scripted-1',
        '  chat scripted-1',
      ].join('\n'),
    )
  })

  test('it shows the calls in progress at a crash as interrupted', async () => {
    const dir = temporaryFolder()
    const events = await eventsOf(new ScriptedModel().calls('subagent').says('Done.'), 'Go.')
    const cut = events.findIndex(({ kind }) => kind === 'tool_call_started') + 1
    await traceLog(localTraces({ dir }), events.slice(0, cut))
    const records = await recordsIn(dir)
    expect(records.map(({ name, status, error }) => [name, status, error?.type])).toEqual([
      ['chat scripted-1', 'ok', undefined],
      ['execute_tool subagent', 'error', 'Interrupted'],
      ['invoke_agent thinharness', 'error', 'Interrupted'],
    ])
  })
})

describe('tracing that fails', () => {
  const broken = (): never => {
    throw new Error('The tracer is broken.')
  }

  test.each<[string, Tracing]>([
    ['at the start of a run', { startRun: broken }],
    ['at every event', { startRun: () => ({ event: broken, constants: broken, within: broken }) }],
    [
      'behind the work of a span',
      { startRun: () => ({ event: () => undefined, within: (_scope, work) => (work(), broken()) }) },
    ],
  ])('%s harms no run, repeats no work, and is reported once', async (_title, tracing) => {
    const warned = vi.spyOn(process, 'emitWarning').mockReturnValue()
    let calls = 0
    using model = new ScriptedModel().calls('a').says('Done.')
    const harness = harnessOf({ model, tools: [tool('a', () => String((calls += 1)))], tracing: [tracing] })
    const result = await harness.run('Go.')
    await harness.close()
    expect([result.text, calls]).toEqual(['Done.', 1])
    expect(warned.mock.calls.map(([message]) => message)).toEqual([
      'Tracing failed, and the run continues without it: The tracer is broken.',
    ])
    warned.mockRestore()
  })

  test('leaves other sinks intact', async () => {
    const warned = vi.spyOn(process, 'emitWarning').mockReturnValue()
    const traced = otel()
    using model = new ScriptedModel().calls('a').says('Done.')
    const tracing = [{ startRun: () => ({ event: broken, within: broken }) }, openTelemetry({ tracer: traced.tracer })]
    await harnessOf({ model, tools: [tool('a')], tracing }).run('Go.')
    warned.mockRestore()
    expect(traced.tree).toBe('invoke_agent thinharness\n  chat scripted-1\n  execute_tool a\n  chat scripted-1')
  })

  test('an error of the work inside a span stays the error of the work', async () => {
    const traced = otel()
    using model = new ScriptedModel().fails('Down.')
    const harness = harnessOf({ model, tracing: [openTelemetry({ tracer: traced.tracer })] })
    expect((await failureOf(harness.run('Go.'))).message).toBe('Down.')
  })

  test('that cannot load fails the run with its own error', async () => {
    const load = (): Promise<void> => Promise.reject(new Error('no such package'))
    const harness = harnessOf({ model: new ScriptedModel(), tracing: [{ load, startRun: broken }] })
    expect((await failureOf(harness.run('Go.'))).message).toContain('no such package')
  })
})
