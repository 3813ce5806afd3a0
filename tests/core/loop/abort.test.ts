import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { z } from 'zod'
import { defineTool, memoryLog } from 'thinharness'
import type { Harness, HarnessOptions, Hook, HookEvent, Model, ModelDelta, TranscriptEntry } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { chatServer } from '../../harness/chat-server.js'
import { eventsOf, failureOf, gate, harnessOf, kinds, ofKind, ticks, told, tool, until } from '../../harness/support.js'
import { eventsOfRun } from '../../support/collect.js'

const NEVER = new Promise<never>(() => undefined)
const CUT_SHORT = {
  ok: false,
  content: 'The run was cancelled before this call had ended.',
  metadata: { error_type: 'Cancelled' },
}

/** What the model is told by a tool entry. */
function envelopeIn(entry: TranscriptEntry): unknown {
  return entry.role === 'tool' && typeof entry.content === 'string' ? JSON.parse(entry.content) : entry
}

function timed(start: number): number {
  return performance.now() - start
}

describe('an aborted run', () => {
  test('before its start it calls no model and no hook except `run_end`, and reports its end', async () => {
    const fired: string[] = []
    const hooks = (['run_start', 'user_prompt_submit', 'run_end'] as const).map((event): Hook => ({
      event,
      handler: () => void fired.push(event),
    }))
    using model = new ScriptedModel()
    const reason = new Error('Too late.')
    const stream = harnessOf({ model, hooks }).stream('Go.', { signal: AbortSignal.abort(reason) })
    const { events, thrown } = await told(stream)
    expect(kinds(events)).toBe('run_started run_failed')
    expect(events.at(-1)).toMatchObject({ stopReason: 'cancelled', code: 'cancelled', errorType: 'AbortError' })
    expect(thrown).toMatchObject({
      name: 'AbortError',
      code: 'cancelled',
      cause: reason,
      run: { stopReason: 'cancelled', transcript: [{ role: 'user', content: [{ type: 'text', text: 'Go.' }] }] },
    })
    expect(fired).toEqual(['run_end'])
  })

  test('in a model call it ends, with everything before in `error.run`', async () => {
    using model = new ScriptedModel().calls('a').waits(NEVER).says('Never.')
    const controller = new AbortController()
    const stream = harnessOf({ model, tools: [tool('a')] }).stream('Go.', { signal: controller.signal })
    const events = eventsOf(stream)
    await until(() => model.heard.length === 2)
    controller.abort()
    expect(kinds(await events)).toMatch(/model_request_started run_failed$/)
    const error = await failureOf(stream.result)
    expect(error.run).toMatchObject({
      runId: stream.runId,
      stopReason: 'cancelled',
      usage: { modelRequests: 1, toolCalls: 1 },
      toolCallRecords: [{ call: { id: 'call_1' } }],
      resumeState: { kind: 'run_state', phase: { at: 'ended', stopReason: 'cancelled' } },
    })
    expect(error.run.responses).toHaveLength(1)
    expect(error.run.transcript.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool'])
  })

  test('in a batch it completes the started calls as cancelled, starts no others, and answers every call in the transcript', async () => {
    const started = gate()
    const waiting = tool('waiting', (_args, { signal }) => {
      started.open()
      return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)))
    })
    const never = vi.fn()
    using model = new ScriptedModel().callsAll([{ name: 'a' }, { name: 'waiting' }, { name: 'never' }])
    const harness = harnessOf({ model, tools: [tool('a'), waiting, tool('never', never, { sequential: true })] })
    const controller = new AbortController()
    const stream = harness.stream('Go.', { signal: controller.signal })
    const reading = eventsOf(stream)
    await started.opened
    controller.abort()
    const events = await reading
    expect(ofKind(events, 'tool_call_completed').map(({ callId, cancelled, ok }) => [callId, cancelled, ok])).toEqual([
      ['call_1', false, true],
      ['call_2', true, false],
    ])
    expect(never).not.toHaveBeenCalled()
    const error = await failureOf(stream.result)
    expect(error.run.usage).toMatchObject({ toolCalls: 3, cancelledToolCalls: 1 })
    expect(error.run.transcript.slice(2).map(envelopeIn)).toEqual([
      { ok: true, content: 'ok', metadata: {} },
      CUT_SHORT,
      {
        ok: false,
        content: 'The run ended before this call was made: it had no effect.',
        metadata: { error_type: 'Cancelled' },
      },
    ])
  })

  test.each<HookEvent>(['run_start', 'user_prompt_submit', 'before_tool_call', 'after_tool_call'])(
    'in a %s hook that never ends it does not wait for the hook, and starts nothing after it',
    async (event) => {
      const inHook = gate()
      const ran = vi.fn()
      const hook = {
        event,
        handler: () => {
          inHook.open()
          return NEVER
        },
      } as Hook
      const model = new ScriptedModel().calls('a').always('Never.')
      const controller = new AbortController()
      const harness = harnessOf({ model, tools: [tool('a', ran)], hooks: [hook] })
      const stream = harness.stream('Go.', { signal: controller.signal })
      const reading = eventsOf(stream)
      await inHook.opened
      const [requests, calls] = [model.heard.length, ran.mock.calls.length]
      controller.abort()
      const error = await failureOf(stream.result)
      expect(error.code).toBe('cancelled')
      expect([model.heard.length, ran.mock.calls.length]).toEqual([requests, calls])
      const events = await reading
      expect(ofKind(events, 'hook_failed')).toMatchObject([
        { hookEvent: event, message: 'It had not ended when the run was aborted.' },
      ])
      expect(ofKind(events, 'tool_call_completed')).toHaveLength(ofKind(events, 'tool_call_started').length)
    },
  )

  test('during a `before_tool_call` hook that succeeds it does not run the tool', async () => {
    const ran = vi.fn()
    const controller = new AbortController()
    const hook: Hook = {
      event: 'before_tool_call',
      handler: () => {
        controller.abort()
      },
    }
    using model = new ScriptedModel().calls('a')
    const error = await failureOf(
      harnessOf({ model, tools: [tool('a', ran)], hooks: [hook] }).run('Go.', { signal: controller.signal }),
    )
    expect(error.code).toBe('cancelled')
    expect(ran).not.toHaveBeenCalled()
    expect(error.run.toolCallRecords).toMatchObject([{ output: expect.stringContaining('it had no effect') as string }])
  })

  test('between its stored request and the model it does not call the model', async () => {
    const controller = new AbortController()
    const inner = memoryLog()
    const log = {
      ...inner,
      append: async (...[runId, events]: Parameters<typeof inner.append>) => {
        await inner.append(runId, events)
        if (events.some(({ kind }) => kind === 'model_request_started')) controller.abort()
      },
    }
    const turn = vi.fn(() => NEVER)
    const model: Model = { provider: 'p', id: 'm', capabilities: {}, openSession: () => ({ turn }) }
    const error = await failureOf(harnessOf({ model, log }).run('Go.', { signal: controller.signal }))
    expect(error.code).toBe('cancelled')
    expect(turn).not.toHaveBeenCalled()
  })

  test('a run that aborts itself keeps that reason if its caller aborts a moment later', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    const controller = new AbortController()
    const slow = tool('slow', (_args, { signal }) => {
      const stopped = new Promise((_, reject) =>
        signal.addEventListener('abort', () => {
          controller.abort()
          reject(new Error('Stopped.'))
        }),
      )
      vi.advanceTimersByTime(60_000)
      return stopped
    })
    using model = new ScriptedModel().calls('slow')
    const harness = harnessOf({ model, tools: [slow], limits: { timeMs: 60_000 } })
    const error = await failureOf(harness.run('Go.', { signal: controller.signal }))
    expect(controller.signal.aborted).toBe(true)
    expect(error).toMatchObject({ code: 'limit_reached', run: { stopReason: 'limit_reached' } })
  })

  test('once its answer has arrived it still returns it', async () => {
    const controller = new AbortController()
    const hook: Hook = { event: 'run_end', handler: () => controller.abort() }
    using model = new ScriptedModel().says('Done.')
    const result = await harnessOf({ model, hooks: [hook] }).run('Go.', { signal: controller.signal })
    expect(result.text).toBe('Done.')
  })

  test('a signal that aborts after the run has ended does nothing, and the run has let go of it', async () => {
    const controller = new AbortController()
    const remove = vi.spyOn(controller.signal, 'removeEventListener')
    using model = new ScriptedModel().says('Done.')
    const result = await harnessOf({ model }).run('Go.', { signal: controller.signal })
    controller.abort()
    expect(result.text).toBe('Done.')
    expect(remove).toHaveBeenCalledTimes(1)
  })
})

describe('work that ignores the signal', () => {
  test('SB-65 a tool is abandoned after a moment, and its later output is ignored', async () => {
    const controller = new AbortController()
    const stuck = gate()
    let progress: (update: number) => void = () => undefined
    const deaf = tool('deaf', (_args, context) => {
      progress = (update) => context.progress(update)
      stuck.open()
      return NEVER
    })
    using model = new ScriptedModel().callsAll([{ name: 'deaf' }, { name: 'a' }])
    const stream = harnessOf({ model, tools: [deaf, tool('a')] }).stream('Go.', { signal: controller.signal })
    const reading = eventsOf(stream)
    await stuck.opened
    const start = performance.now()
    controller.abort()
    progress(99)
    const error = await failureOf(stream.result)
    progress(100)
    expect(timed(start)).toBeLessThan(30_000)
    expect(error.run.toolCallRecords.map(({ output: text, cancelled }) => [text, cancelled])).toEqual([
      [JSON.stringify(CUT_SHORT), true],
      ['{"ok":true,"content":"ok","metadata":{}}', undefined],
    ])
    const events = await reading
    expect(ofKind(events, 'tool_progress')).toEqual([])
    expect(events.at(-1)?.kind).toBe('run_failed')
  })

  test.each<[string, (stuck: () => Promise<never>) => HarnessOptions<unknown>, ScriptedModel]>([
    [
      'a rule for approvals',
      (stuck) => ({ tools: [tool('a', undefined, { requiresApproval: stuck })] }),
      new ScriptedModel().calls('a'),
    ],
    [
      'a schema of arguments',
      (stuck) => {
        const parameters = z.object({ n: z.number().optional() }).refine(stuck)
        return { tools: [defineTool({ name: 'a', description: 'A.', parameters, handler: () => 'ok' })] }
      },
      new ScriptedModel().calls('a'),
    ],
    [
      'a schema of the answer',
      (stuck) => ({ outputType: z.object({ n: z.number() }).refine(stuck) }),
      new ScriptedModel().calls('final_result', { n: 1 }),
    ],
  ])('%s is abandoned after a moment', async (_name, options, model) => {
    const inIt = gate()
    const controller = new AbortController()
    const stuck = (): Promise<never> => {
      inIt.open()
      return NEVER
    }
    const running = harnessOf<unknown>({ model, ...options(stuck) }).run('Go.', { signal: controller.signal })
    await inIt.opened
    controller.abort()
    expect((await failureOf(running)).code).toBe('cancelled')
  })

  test('a tool that still ends within that moment has its result stored', async () => {
    const controller = new AbortController()
    const late = tool('late', async (_args, { signal }) => {
      controller.abort()
      await until(() => signal.aborted)
      return 'written'
    })
    using model = new ScriptedModel().calls('late')
    const error = await failureOf(harnessOf({ model, tools: [late] }).run('Go.', { signal: controller.signal }))
    expect(error.run.toolCallRecords).toEqual([
      {
        call: { id: 'call_1', name: 'late', arguments: '{}' },
        output: '{"ok":true,"content":"written","metadata":{}}',
      },
    ])
  })

  test('a model is abandoned after a moment; its later deltas and events are ignored', async () => {
    const asked = gate()
    let say: (delta: ModelDelta) => void = () => undefined
    let bust: () => void = () => undefined
    const model: Model = {
      provider: 'deaf',
      id: 'deaf-1',
      capabilities: {},
      openSession: () => ({
        turn: (_transcript, _constants, { onDelta, onCacheBust }) => {
          say = onDelta ?? say
          bust = () => onCacheBust?.({ path: '$', cause: 'entry_changed' })
          asked.open()
          return NEVER
        },
      }),
    }
    const log = memoryLog()
    const controller = new AbortController()
    const stream = harnessOf({ model, log }).stream('Go.', { signal: controller.signal, deltas: true })
    const reading = eventsOf(stream)
    await asked.opened
    say({ kind: 'text_delta', text: 'heard' })
    controller.abort()
    expect((await failureOf(stream.result)).code).toBe('cancelled')
    say({ kind: 'text_delta', text: 'unheard' })
    bust()
    expect(ofKind(await reading, 'text_delta').map(({ text }) => text)).toEqual(['heard'])
    const kept = await eventsOfRun(log, stream.runId)
    expect(kinds(kept)).toBe('run_started model_request_started model_message run_failed')
  })
})

describe('closing the harness', () => {
  test('it cancels every run, waits for them, and rejects new ones meanwhile', async () => {
    let started = 0
    let cleanedUp = 0
    const slow = tool('slow', async (_args, { signal }) => {
      started += 1
      await until(() => signal.aborted)
      cleanedUp += 1
    })
    const model = new ScriptedModel().always({ calls: [{ name: 'slow' }] })
    const harness = harnessOf({ model, tools: [slow] })
    const streams = Array.from({ length: 5 }, () => harness.stream('Go.'))
    const read = Promise.all(streams.map((stream) => eventsOf(stream)))
    await until(() => started === 5)
    const closing = harness.close()
    expect(() => harness.stream('Go.')).toThrow(expect.objectContaining({ code: 'closed' }))
    await Promise.all([closing, harness.close()])
    expect(cleanedUp).toBe(5)
    for (const events of await read)
      expect(events.at(-1)).toMatchObject({ kind: 'run_failed', stopReason: 'cancelled' })
    for (const { result } of streams) {
      expect((await failureOf(result)).cause).toMatchObject({ code: 'closed', message: 'The harness was closed.' })
    }
  })

  const handlers: [string, (harness: () => Harness) => { tools?: ReturnType<typeof tool>[]; hooks?: Hook[] }][] = [
    ['a tool', (harness) => ({ tools: [tool('a', () => harness().close())] })],
    ...(['run_start', 'user_prompt_submit', 'before_tool_call', 'after_tool_call', 'run_end'] as const).map(
      (event): (typeof handlers)[number] => [
        `a ${event} hook`,
        (harness) => ({ tools: [tool('a')], hooks: [{ event, handler: () => harness().close() } as Hook] }),
      ],
    ),
  ]

  test.each(handlers)('from within %s it ends the run and completes', async (where, parts) => {
    const model = new ScriptedModel().calls('a').always('Done.')
    const harness: Harness = harnessOf({ model, ...parts(() => harness) })
    const start = performance.now()
    const [ended] = await Promise.allSettled([harness.run('Go.')])
    await harness.close()
    const end: unknown = ended.status === 'fulfilled' ? ended.value : ended.reason
    expect(end).toMatchObject(where === 'a run_end hook' ? { stopReason: 'end_turn' } : { code: 'cancelled' })
    expect(timed(start)).toBeLessThan(30_000)
  })

  test('it succeeds even if a model could not be loaded, which the next run tries again', async () => {
    await using server = await chatServer()
    const before = process.env['THINHARNESS_LOCAL_URL']
    const harness = harnessOf({ model: 'local:tiny' })
    const other = harnessOf({ model: 'local:tiny' })
    try {
      process.env['THINHARNESS_LOCAL_URL'] = 'no address'
      expect((await failureOf(harness.run('Go.'))).code).toBe('invalid_options')
      expect((await failureOf(other.run('Go.'))).code).toBe('invalid_options')
      process.env['THINHARNESS_LOCAL_URL'] = server.url
      expect((await harness.run('Go.')).text).toBe('Hello.')
    } finally {
      if (before === undefined) delete process.env['THINHARNESS_LOCAL_URL']
      else process.env['THINHARNESS_LOCAL_URL'] = before
      await Promise.all([harness.close(), other.close()])
    }
  })
})

test('sixteen concurrent calls may listen for the abort of their run without a warning of the platform', async () => {
  const warnings: string[] = []
  const warned = (warning: Error): void => void warnings.push(warning.name)
  process.on('warning', warned)
  try {
    const listens = tool('listens', async (_, { signal }) => {
      signal.addEventListener('abort', () => undefined)
      await ticks(2)
    })
    const calls = Array.from({ length: 16 }, () => ({ name: 'listens' }))
    using model = new ScriptedModel().replies({ calls }).says('Done.')
    await harnessOf({ model, tools: [listens] }).run('Go.')
    await ticks(2)
    expect(warnings).toEqual([])
  } finally {
    process.off('warning', warned)
  }
})
