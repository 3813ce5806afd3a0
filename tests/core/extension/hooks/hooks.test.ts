import { describe, expect, test, vi } from 'vitest'
import { HarnessError } from 'thinharness'
import type { Hook, HookContext, HookEvent, JsonObject } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { eventsOf, failureOf, harnessOf, kinds, ofKind, output, tool } from '../../../harness/support.js'

describe('the end of a run', () => {
  /** What `run_end` was told, as far as it can be compared. */
  function ends(list: unknown[]): Hook {
    return {
      event: 'run_end',
      handler: ({ result, error, stopReason, usage }) =>
        void list.push({ stopReason, text: result?.text, code: error?.code, requests: usage.modelRequests }),
    }
  }

  test.each<[string, Error, string]>([
    ['a plain error', new TypeError('No session.'), 'error'],
    ['a provider error', new HarnessError('provider_error', 'No session.'), 'provider_error'],
  ])(
    'HK-04 HK-05 a failure while a session is created ends the run, and `run_end` receives it: %s',
    async (_name, thrown, code) => {
      const list: unknown[] = []
      const openSession = (): never => {
        throw thrown
      }
      const model = { provider: 'p', id: 'm', capabilities: {}, openSession }
      const error = await failureOf(harnessOf({ model, hooks: [ends(list)] }).run('Go.'))
      expect(error).toMatchObject({ code, run: { stopReason: code } })
      expect(error.cause).toBe(thrown)
      expect(list).toEqual([{ stopReason: code, text: undefined, code, requests: 0 }])
    },
  )

  test.each<[string, Error, string]>([
    ['a plain error', new RangeError('Broken.'), 'error'],
    ['a provider error', new HarnessError('provider_error', 'Down.', { status: 503 }), 'provider_error'],
  ])('HK-06 `run_end` reports the failure of a turn with its stop reason: %s', async (_name, thrown, code) => {
    const list: unknown[] = []
    using model = new ScriptedModel().calls('a').fails(thrown)
    const error = await failureOf(harnessOf({ model, tools: [tool('a')], hooks: [ends(list)] }).run('Go.'))
    expect(error.code).toBe(code)
    expect(list).toEqual([{ stopReason: code, text: undefined, code, requests: 1 }])
  })

  test('HK-21 a harness error of a session has the stop reason `error`', async () => {
    const list: unknown[] = []
    using model = new ScriptedModel().fails(new HarnessError('missing_key', 'No key.'))
    const error = await failureOf(harnessOf({ model, hooks: [ends(list)] }).run('Go.'))
    expect(error).toMatchObject({ code: 'missing_key', message: 'No key.' })
    expect(list).toEqual([{ stopReason: 'error', text: undefined, code: 'missing_key', requests: 0 }])
  })

  test('HK-07 a `run_end` hook that fails closed fails the run, is not called again, and the harness can run again', async () => {
    const handler = vi.fn(() => {
      if (handler.mock.calls.length === 1) throw new Error('Full.')
    })
    using model = new ScriptedModel().says('One.').says('Two.')
    const harness = harnessOf({ model, hooks: [{ event: 'run_end', handler, failMode: 'closed' }] })
    const stream = harness.stream('Go.', { deltas: false })
    const events = await eventsOf(stream)
    const error = await failureOf(stream.result)
    expect(error).toMatchObject({ code: 'hook_failed', message: 'A `run_end` hook failed: Full.' })
    expect(error.run).toMatchObject({ stopReason: 'error', usage: { modelRequests: 1 } })
    expect(kinds(events)).toBe('run_started model_request_started model_message hook_failed run_failed')
    expect(handler).toHaveBeenCalledTimes(1)
    expect((await harness.run('Go.')).text).toBe('Two.')
  })

  test('HC-04 the first error of a run stays its error if a hook that fails closed fails later', async () => {
    const failing = (event: 'limit_reached' | 'run_end'): Hook => ({
      event,
      failMode: 'closed',
      handler: () => Promise.reject(new Error(`${event} is full.`)),
    })
    const harness = harnessOf({
      model: new ScriptedModel(),
      limits: { modelRequests: 0 },
      hooks: [failing('limit_reached'), failing('run_end')],
    })
    const stream = harness.stream('Go.')
    const events = await eventsOf(stream)
    const error = await failureOf(stream.result)
    expect(error).toMatchObject({ code: 'limit_reached', run: { stopReason: 'limit_reached' } })
    expect(ofKind(events, 'hook_failed').map(({ hookEvent, message }) => [hookEvent, message])).toEqual([
      ['limit_reached', 'limit_reached is full.'],
      ['run_end', 'run_end is full.'],
    ])
    expect(error.run.usage.hookFailures).toBe(2)
  })
})

describe('the prompt', () => {
  test('HK-08 hook context follows the prompt in its own block, in order; start and end hooks fire once', async () => {
    const fired: string[] = []
    const hooks: Hook[] = [
      {
        event: 'run_start',
        handler: ({ prompt, maxModelRequests }) => void fired.push(`${JSON.stringify(prompt)} ${maxModelRequests}`),
      },
      { event: 'user_prompt_submit', handler: ({ prompt }) => ({ context: `You said ${JSON.stringify(prompt)}.` }) },
      { event: 'user_prompt_submit', handler: async () => ({ context: ['It is noon.', 'It rains.'] }) },
      { event: 'user_prompt_submit', handler: () => undefined },
      { event: 'run_end', handler: ({ stopReason, usage }) => void fired.push(`${stopReason} ${usage.modelRequests}`) },
    ]
    using model = new ScriptedModel().says('Done.')
    const events = await eventsOf(harnessOf({ model, hooks }).stream('Go.'))
    expect(model.heard).toEqual([
      {
        kind: 'start',
        prompt: 'Go.\n\n<hook_context>\nYou said "Go.".\n\nIt is noon.\n\nIt rains.\n</hook_context>',
      },
    ])
    expect(events[0]).toMatchObject({ kind: 'run_started', prompt: 'Go.' })
    expect(fired).toEqual(['"Go." 64', 'end_turn 1'])
  })

  test.each<[string | true, string]>([
    ['Not on Sundays.', 'run blocked by hook: Not on Sundays.'],
    ['', 'run blocked by hook: unspecified'],
    [true, 'run blocked by hook: unspecified'],
  ])('HK-09 a prompt hook can cancel before any request: %j', async (cancel, message) => {
    const fired: unknown[] = []
    const hooks: Hook[] = [
      { event: 'user_prompt_submit', handler: () => ({ cancel }) },
      { event: 'user_prompt_submit', handler: () => void fired.push('the second hook') },
      { event: 'run_end', handler: ({ stopReason }) => void fired.push(stopReason) },
    ]
    using model = new ScriptedModel()
    const error = await failureOf(harnessOf({ model, hooks }).run('Go.'))
    expect(error).toMatchObject({ code: 'cancelled_by_hook', message, run: { stopReason: 'cancelled_by_hook' } })
    expect(fired).toEqual(['cancelled_by_hook'])
    expect(error.run.transcript).toEqual([])
  })

  test('HK-10 a hook may start a run of its own harness: runs are independent', async () => {
    using model = new ScriptedModel().says('Inner.').says('Outer.')
    let depth = 0
    const hook: Hook = {
      event: 'user_prompt_submit',
      handler: async ({ prompt }) => {
        if (depth++ > 0) return undefined
        const inner = await harness.run(`Check: ${JSON.stringify(prompt)}`)
        return { context: inner.text }
      },
    }
    const harness = harnessOf({ model, hooks: [hook] })
    expect((await harness.run('Go.')).text).toBe('Outer.')
    expect(model.heard).toEqual([
      { kind: 'start', prompt: 'Check: "Go."' },
      { kind: 'start', prompt: 'Go.\n\n<hook_context>\nInner.\n</hook_context>' },
    ])
  })
})

describe('tool hooks', () => {
  test('HK-11 TM-07 hooks filter, cancel and rewrite single calls; indices keep model order; cancelled calls are counted and recorded', async () => {
    const fired: unknown[] = []
    const ran: string[] = []
    const tools = ['a', 'b', 'c'].map((name) => tool(name, () => void ran.push(name)))
    const note = ({
      event,
      toolName,
      toolIndex,
      callId,
    }: HookContext<'before_tool_call' | 'after_tool_call'>): undefined =>
      void fired.push([event, toolName, toolIndex, callId])
    const hooks: Hook[] = [
      { event: 'before_tool_call', tools: ['b'], handler: () => ({ cancel: 'Not b.' }) },
      { event: 'before_tool_call', handler: note },
      { event: 'after_tool_call', handler: note },
      { event: 'after_tool_call', tools: ['c'], handler: () => ({ output: '{"ok":true,"content":"rewritten"}' }) },
    ]
    using model = new ScriptedModel().callsAll([{ name: 'a' }, { name: 'b' }, { name: 'c' }]).says('Done.')
    const harness = harnessOf({ model, tools, hooks, toolExecution: 'sequential' })
    const result = await harness.run('Go.')
    const blocked = { ok: false, content: 'Tool execution blocked by hook: Not b.' }
    expect(ran).toEqual(['a', 'c'])
    expect(fired).toEqual([
      // A hook that cancels is the last that is asked, so the second one does not fire for b.
      ['before_tool_call', 'a', 0, 'call_1'],
      ['before_tool_call', 'c', 2, 'call_3'],
      ['after_tool_call', 'a', 0, 'call_1'],
      ['after_tool_call', 'b', 1, 'call_2'],
      ['after_tool_call', 'c', 2, 'call_3'],
    ])
    expect(model.heard[1]).toMatchObject({
      outputs: [
        output('call_1', 'The tool ran and returned nothing.'),
        { callId: 'call_2', ...blocked },
        output('call_3', 'rewritten'),
      ],
    })
    expect(result.usage).toMatchObject({ toolCalls: 3, cancelledToolCalls: 1, toolRetries: {} })
    expect(result.toolCallRecords).toEqual([
      {
        call: { id: 'call_1', name: 'a', arguments: '{}' },
        output: '{"ok":true,"content":"The tool ran and returned nothing.","metadata":{}}',
      },
      {
        call: { id: 'call_2', name: 'b', arguments: '{}' },
        output: JSON.stringify({ ...blocked, metadata: { error_type: 'ToolCallCancelled' } }),
        cancelled: true,
      },
      { call: { id: 'call_3', name: 'c', arguments: '{}' }, output: '{"ok":true,"content":"rewritten"}' },
    ])
  })

  test('HK-11 before-hooks replace arguments one after the other, and the result is validated like the model’s', async () => {
    const seen: unknown[] = []
    const strict = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] }
    const hooks: Hook[] = [
      {
        event: 'before_tool_call',
        handler: ({ arguments: text }) => ({ args: { ...(JSON.parse(text) as JsonObject), n: 2 } }),
      },
      { event: 'before_tool_call', handler: async ({ arguments: text }) => void seen.push(text) },
      {
        event: 'before_tool_call',
        tools: ['bad'],
        handler: () => ({ args: { n: 'two' } }),
      },
    ]
    const take = { ...tool('take', (args) => void seen.push(args)), parameters: strict }
    const bad = { ...tool('bad', (args) => void seen.push(args)), parameters: strict }
    using model = new ScriptedModel().calls('take', { n: 1 }).calls('bad', { n: 1 }).says('Done.')
    const result = await harnessOf({ model, tools: [take, bad], hooks }).run('Go.')
    expect(seen).toEqual(['{"n":2}', { n: 2 }, '{"n":2}'])
    expect(model.heard[2]).toMatchObject({
      outputs: [{ ok: false, content: expect.stringContaining('again') as string }],
    })
    // The model's own words stay in the history.
    expect(result.toolCallRecords.map(({ call }) => call.arguments)).toEqual(['{"n":1}', '{"n":1}'])
  })

  test('HK-12 each firing of a hook gets its own copy of the metadata', async () => {
    const seen: unknown[] = []
    const spoil = ({ metadata }: { readonly metadata: JsonObject }): undefined => {
      seen.push(structuredClone(metadata))
      Object.assign(metadata, { tenant: 'spoilt' })
      Object.assign(metadata['nested'] ?? {}, { deep: 'spoilt' })
      return undefined
    }
    const events: HookEvent[] = ['run_start', 'user_prompt_submit', 'before_tool_call', 'after_tool_call', 'run_end']
    using model = new ScriptedModel().calls('a').says('Done.')
    const metadata = { tenant: 'acme', nested: { deep: 1 } }
    const hooks = events.map((event) => ({ event, handler: spoil }))
    await harnessOf({ model, tools: [tool('a')], hooks }).run('Go.', { metadata })
    expect(seen).toEqual(events.map(() => ({ tenant: 'acme', nested: { deep: 1 } })))
    expect(metadata).toEqual({ tenant: 'acme', nested: { deep: 1 } })
  })

  test('HK-13 HK-14 HK-16 text and envelope stay in step between after-hooks, which return changes and never modify in place', async () => {
    const seen: unknown[] = []
    const look = ({ output: text, envelope, originalOutput }: HookContext<'after_tool_call'>): undefined =>
      void seen.push({ text, envelope, same: originalOutput === '{"ok":true,"content":"ok","metadata":{}}' })
    const made = { ok: true, content: 'made', metadata: { by: 'hook' } }
    const hooks: Hook[] = [
      { event: 'after_tool_call', handler: () => ({ output: 'no JSON' }) },
      { event: 'after_tool_call', handler: look },
      { event: 'after_tool_call', handler: () => ({ envelope: made }) },
      { event: 'after_tool_call', handler: look },
      { event: 'after_tool_call', handler: () => ({ output: '{"ok":true}', envelope: made }) },
      { event: 'after_tool_call', handler: look },
    ]
    using model = new ScriptedModel().calls('a').says('Done.')
    const events = await eventsOf(harnessOf({ model, tools: [tool('a')], hooks }).stream('Go.'))
    const invalid = { ok: false, content: 'no JSON', metadata: { error_type: 'InvalidToolOutput' } }
    expect(seen).toEqual([
      { text: 'no JSON', envelope: invalid, same: true },
      { text: JSON.stringify(made), envelope: made, same: true },
      { text: '{"ok":true}', envelope: { ok: true, content: '{"ok":true}', metadata: {} }, same: true },
    ])
    expect(ofKind(events, 'tool_call_completed')).toMatchObject([{ ok: true, output: '{"ok":true}', errorType: null }])
  })

  test('HK-15 HK-17 HK-18 a `before_tool_call` hook that fails prevents its call; the others run, and the run continues', async () => {
    const ran = vi.fn()
    const handler = (): never => {
      throw new RangeError('Out of paper.')
    }
    using model = new ScriptedModel().callsAll([{ name: 'a' }, { name: 'b' }]).says('Done.')
    const hooks: Hook[] = [{ event: 'before_tool_call', tools: ['a'], handler }]
    const stream = harnessOf({ model, tools: [tool('a', ran), tool('b')], hooks }).stream('Go.')
    const events = await eventsOf(stream)
    const message = 'A `before_tool_call` hook failed: Out of paper.'
    expect(ran).not.toHaveBeenCalled()
    expect((await stream.result).usage).toMatchObject({ toolCalls: 2, hookFailures: 1, cancelledToolCalls: 1 })
    expect(ofKind(events, 'call_prepared')).toMatchObject([{ callId: 'call_1', cancelled: message }])
    expect(model.heard[1]).toMatchObject({
      outputs: [{ callId: 'call_1', ok: false, content: `Tool execution blocked by hook: ${message}` }, { ok: true }],
    })
  })

  test('HK-15 HK-17 HK-18 a `before_tool_call` hook that takes too long prevents its call', async () => {
    const ran = vi.fn()
    using model = new ScriptedModel().calls('a').says('Done.')
    const hooks: Hook[] = [{ event: 'before_tool_call', timeoutMs: 5, handler: () => new Promise(() => undefined) }]
    const result = await harnessOf({ model, tools: [tool('a', ran)], hooks }).run('Go.')
    expect(ran).not.toHaveBeenCalled()
    expect(result.usage).toMatchObject({ hookFailures: 1, cancelledToolCalls: 1 })
  })

  test('ST-17 the result of a call is withheld when an `after_tool_call` hook fails', async () => {
    const handler = (): never => {
      throw new RangeError('Out of paper.')
    }
    using model = new ScriptedModel().calls('a').says('Done.')
    const hooks: Hook[] = [{ event: 'after_tool_call', handler }]
    await harnessOf({ model, tools: [tool('a', () => 'key-123')], hooks }).run('Go.')
    const content = 'The call was made, and its result is withheld: A `after_tool_call` hook failed: Out of paper.'
    expect(model.heard[1]).toMatchObject({ outputs: [{ ok: false, content }] })
  })

  test('a hook that fails open is reported and skipped', async () => {
    const hooks: Hook[] = [
      { event: 'before_tool_call', failMode: 'open', handler: () => Promise.reject(new Error('Before.')) },
      { event: 'after_tool_call', failMode: 'open', handler: () => Promise.reject(new Error('After.')) },
    ]
    using model = new ScriptedModel().calls('a').says('Done.')
    const result = await harnessOf({ model, tools: [tool('a', () => 'A.')], hooks }).run('Go.')
    expect(result.usage).toMatchObject({ hookFailures: 2, cancelledToolCalls: 0 })
    expect(model.heard[1]).toMatchObject({ outputs: [{ ok: true, content: 'A.' }] })
  })
})
