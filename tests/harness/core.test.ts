import { resolve } from 'node:path'
import { describe, expect, expectTypeOf, test, vi } from 'vitest'
import { z } from 'zod'
import { defineTool, Harness } from 'thinharness'
import type { Hook, RequestConstants, TurnOptions } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { failureOf, harnessOf, output, tool, until } from './support.js'

describe('the request of a run', () => {
  test('HC-02 metadata of the host never reaches the model', async () => {
    using model = new ScriptedModel().says('One.').says('Two.')
    const harness = harnessOf({ model })
    await harness.run('Go.')
    await harness.run('Go.', { metadata: { tenant: 'acme-7' } })
    for (const { constants } of model.requests) {
      expect(constants).toEqual({ instructions: '', tools: [], structuredOutput: null, settings: {} })
    }
  })

  test('HC-15 a tool with a JSON Schema is offered with its schema unchanged, and an object that it returns reaches the model as JSON', async () => {
    const parameters = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] } as const
    const double = defineTool({
      name: 'double',
      description: 'Doubles.',
      parameters,
      handler: ({ n }) => ({ twice: Number(n) * 2, given: n }),
    })
    using model = new ScriptedModel().calls('double', { n: 4 }).says('8.')
    await harnessOf({ model, tools: [double] }).run('Double four.')
    expect(model.requests[0]?.constants.tools).toEqual([{ name: 'double', description: 'Doubles.', parameters }])
    expect(model.heard[1]).toEqual({
      kind: 'tool_outputs',
      outputs: [output('call_1', '{"twice":8,"given":4}')],
    })
  })

  test('HC-16 a typed tool offers its constraints, applies its defaults, and answers invalid arguments with a retryable failure', async () => {
    const seen: unknown[] = []
    const take = defineTool({
      name: 'take',
      description: 'Takes.',
      parameters: z.object({ n: z.number().int().min(1).max(9), unit: z.string().default('cm') }),
      handler: (args) => void seen.push(args),
    })
    using model = new ScriptedModel().calls('take', { n: 12 }).calls('take', { n: 2 }).says('Done.')
    await harnessOf({ model, tools: [take] }).run('Take.')
    expect(model.requests[0]?.constants.tools[0]?.parameters).toMatchObject({
      type: 'object',
      properties: { n: { type: 'integer', minimum: 1, maximum: 9 }, unit: { type: 'string', default: 'cm' } },
      required: ['n'],
      additionalProperties: false,
    })
    expect(seen).toEqual([{ n: 2, unit: 'cm' }])
    expect(model.heard[1]).toMatchObject({
      outputs: [{ ok: false, content: expect.stringContaining('Correct this and call `take` again') as string }],
    })
  })

  test('HC-17 malformed JSON arguments yield a retryable `InvalidArguments` failure', async () => {
    using model = new ScriptedModel().calls('take', '{"n": 1').says('Done.')
    await harnessOf({ model, tools: [tool('take')] }).run('Take.')
    expect(model.heard[1]).toMatchObject({
      outputs: [{ callId: 'call_1', ok: false, content: expect.stringContaining('again') as string }],
    })
  })

  test('HC-21 HC-25 HC-26 tool instructions follow the prompt and the root line, blank ones are omitted, and schemas are unchanged', async () => {
    const tools = [
      tool('a', undefined, { instructions: '  Use a first. \n' }),
      tool('b', undefined, { instructions: '   ' }),
      tool('c'),
      tool('d', undefined, { instructions: 'Use d last.' }),
    ]
    using model = new ScriptedModel().says('Done.')
    await harnessOf({ model, tools, root: '.', instructions: 'Be brief.' }).run('Go.')
    const constants = model.requests[0]?.constants
    expect(constants?.instructions).toBe(`Be brief.\n\nWorkspace root: ${resolve('.')}\n\nUse a first.\n\nUse d last.`)
    expect(constants?.tools.map(({ description, parameters }) => ({ description, parameters }))).toEqual(
      ['a', 'b', 'c', 'd'].map((name) => ({ description: `The tool ${name}.`, parameters: { type: 'object' } })),
    )
  })

  test('HC-22 tools of one run, and their instructions, are sent in that run only', async () => {
    using model = new ScriptedModel().says('One.').says('Two.')
    const harness = harnessOf({ model })
    await harness.run('Go.', { tools: [tool('guest', undefined, { instructions: 'Greet the guest.' })] })
    await harness.run('Go.')
    expect(model.requests.map(({ constants }) => [constants.instructions, constants.tools.length])).toEqual([
      ['Greet the guest.', 1],
      ['', 0],
    ])
  })

  test('HC-47 the type of the request constants is exported', () => {
    expectTypeOf<RequestConstants>().toHaveProperty('instructions').toEqualTypeOf<string>()
    expectTypeOf<TurnOptions>().toHaveProperty('signal').toEqualTypeOf<AbortSignal>()
  })
})

describe('tools of a harness', () => {
  test('HC-32 a duplicate tool name is rejected at construction, by `addTool` and by a run', () => {
    const twice = { code: 'invalid_options', message: 'Two tools have the name `a`; each needs a name of its own.' }
    expect(() => harnessOf({ tools: [tool('a'), tool('a')] })).toThrow(expect.objectContaining(twice))
    const harness = harnessOf({ model: new ScriptedModel(), tools: [tool('a')] })
    expect(() => harness.addTool(tool('a'))).toThrow(expect.objectContaining(twice))
    expect(() => harness.stream('Go.', { tools: [tool('a')] })).toThrow(expect.objectContaining(twice))
    expect(() => new Harness({ root: '.', tools: [tool('read')] })).toThrow('Two tools have the name `read`')
  })

  test('HC-33 the `after_tool_call` hook sees a handler that throws, with its error type', async () => {
    const seen: unknown[] = []
    using model = new ScriptedModel().calls('bad').says('Done.')
    const bad = tool('bad', () => {
      throw new RangeError('Too far.')
    })
    const hook: Hook = { event: 'after_tool_call', handler: ({ envelope }) => void seen.push(envelope) }
    await harnessOf({ model, tools: [bad], hooks: [hook] }).run('Go.')
    const envelope = { ok: false, content: 'RangeError: Too far.', metadata: { error_type: 'RangeError' } }
    expect(seen).toEqual([envelope])
    expect(model.heard[1]).toEqual({
      kind: 'tool_outputs',
      outputs: [output('call_1', 'RangeError: Too far.', { ok: false })],
    })
  })

  class Counting {
    count = 0
    async call(): Promise<string> {
      this.count += 1
      await Promise.resolve()
      return `call ${this.count}`
    }
  }

  test('HC-34 HC-35 HC-36 HC-37 asynchronous handlers, including bound ones, are awaited and called exactly once', async () => {
    const counting = new Counting()
    const plain = vi.fn(() => 'plain')
    using model = new ScriptedModel().callsAll([{ name: 'bound' }, { name: 'plain' }]).says('Done.')
    const tools = [tool('bound', counting.call.bind(counting)), tool('plain', plain)]
    await harnessOf({ model, tools }).run('Go.')
    expect(counting.count).toBe(1)
    expect(plain).toHaveBeenCalledTimes(1)
    expect(model.heard[1]).toEqual({
      kind: 'tool_outputs',
      outputs: [output('call_1', 'call 1'), output('call_2', 'plain')],
    })
  })

  test('HC-38 an asynchronous handler that rejects becomes a structured failure', async () => {
    using model = new ScriptedModel().calls('bad').says('Done.')
    await harnessOf({ model, tools: [tool('bad', () => Promise.reject(new TypeError('No.')))] }).run('Go.')
    expect(model.heard[1]).toEqual({
      kind: 'tool_outputs',
      outputs: [output('call_1', 'TypeError: No.', { ok: false })],
    })
  })

  test('HC-40 HK-01 a handler receives its call in its context, and there is no ambient context', async () => {
    const seen: unknown[] = []
    const look = tool('look', (_args, { signal, ...context }) => {
      seen.push({ ...context, aborted: signal.aborted })
    })
    using model = new ScriptedModel().calls('look', {}, { callId: 'mine' }).says('Done.')
    await harnessOf({ model, tools: [look], root: '/nowhere/at/all' }).run('Go.', {
      runId: 'run_a',
      metadata: { tenant: 7 },
    })
    expect(seen).toEqual([
      {
        runId: 'run_a',
        callId: 'mine',
        toolName: 'look',
        root: resolve('/nowhere/at/all'),
        sandbox: 'auto',
        idempotencyKey: 'run_a:mine',
        metadata: { tenant: 7 },
        depth: 0,
        aborted: false,
        spawn: expect.any(Function) as unknown,
        ask: expect.any(Function) as unknown,
        decide: expect.any(Function) as unknown,
        progress: expect.any(Function) as unknown,
        results: expect.any(Function) as unknown,
        transcript: expect.any(Array) as unknown,
        tools: expect.any(Map) as unknown,
        requestsLeft: expect.any(Function) as unknown,
      },
    ])
  })

  test('HC-48 HC-49 a tool added during a run is unknown in that run, and available in the next', async () => {
    const added = vi.fn(() => 'late')
    const adding = tool('adding', () => harness.addTool(tool('added', added)))
    using model = new ScriptedModel()
      .calls('adding')
      .calls('added')
      .says('One.')
      .calls('added', {}, { callId: 'x' })
      .says('Two.')
    const harness = harnessOf({ model, tools: [adding] })
    await harness.run('Go.')
    expect(added).not.toHaveBeenCalled()
    expect(model.heard[2]).toMatchObject({
      outputs: [{ ok: false, content: expect.stringContaining('unknown tool') as string }],
    })
    await harness.run('Go.')
    expect(added).toHaveBeenCalledTimes(1)
    expect(model.heard[4]).toEqual({ kind: 'tool_outputs', outputs: [output('x', 'late')] })
    const offered = model.requests.map(({ constants }) => constants.tools.map(({ name }) => name))
    expect(offered).toEqual([['adding'], ['adding'], ['adding'], ['adding', 'added'], ['adding', 'added']])
    // One object for all requests of a run, so that an adapter encodes it once.
    expect(new Set(model.requests.map(({ constants }) => constants)).size).toBe(2)
  })

  test('HC-48 a tool added after the start of a run reaches it neither before nor in its first hook', async () => {
    const hook: Hook = { event: 'run_start', handler: () => harness.addTool(tool('in_hook')) }
    using model = new ScriptedModel().says('Done.')
    const harness = harnessOf({ model, hooks: [hook] })
    const running = harness.run('Go.')
    harness.addTool(tool('behind'))
    await running
    expect(model.requests[0]?.constants.tools).toEqual([])
  })
})

describe('usage', () => {
  test('HC-50 partial token reports add only the reported numbers', async () => {
    using model = new ScriptedModel()
      .calls('a', {}, { usage: { inputTokens: 7, outputTokens: null, cacheReadTokens: 3 } })
      .calls('a', {}, { usage: null })
      .says('Done.', { usage: { inputTokens: null, outputTokens: 2, reasoningTokens: 1, cacheWriteTokens: 4 } })
    const result = await harnessOf({ model, tools: [tool('a')] }).run('Go.')
    const tokens = { inputTokens: 7, outputTokens: 2, cacheReadTokens: 3, cacheWriteTokens: 4, reasoningTokens: 1 }
    expect(result.usage).toEqual({
      modelRequests: 3,
      toolCalls: 2,
      cancelledToolCalls: 0,
      outputRetries: 0,
      toolRetries: {},
      hookFailures: 0,
      children: { modelRequests: 0, toolCalls: 0 },
      ...tokens,
      costUsd: null,
      byModel: { 'scripted:scripted-1': { modelRequests: 3, ...tokens, costUsd: null } },
    })
  })
})

describe('the lifetime of a harness', () => {
  test('HC-43 a model that was passed in is never closed', async () => {
    const close = vi.fn(() => Promise.resolve())
    const model = Object.assign(new ScriptedModel().says('Done.').says('Done.'), { close })
    {
      await using harness = harnessOf({ model })
      await harness.run('Go.')
      await harness.run('Go.', { model })
    }
    expect(close).not.toHaveBeenCalled()
  })

  test('HC-44 a run that is cancelled from outside fires `run_end` once, with `cancelled`, and the harness can run again', async () => {
    const ends: unknown[] = []
    const hook: Hook = {
      event: 'run_end',
      handler: ({ stopReason, result, error }) => void ends.push([stopReason, result?.text, error?.code, error?.name]),
    }
    using model = new ScriptedModel()
      .waits(new Promise(() => undefined))
      .says('Never.')
      .says('Again.')
    const harness = harnessOf({ model, hooks: [hook] })
    const controller = new AbortController()
    const reason = new Error('The user left.')
    const running = harness.run('Go.', { signal: controller.signal })
    await until(() => model.heard.length === 1)
    controller.abort(reason)
    const error = await failureOf(running)
    expect(error).toMatchObject({ code: 'cancelled', name: 'AbortError', message: 'The run was cancelled.' })
    expect(error.cause).toBe(reason)
    expect(error.run).toMatchObject({ stopReason: 'cancelled', usage: { modelRequests: 0 } })
    expect((await harness.run('Go.')).text).toBe('Again.')
    expect(ends).toEqual([
      ['cancelled', undefined, 'cancelled', 'AbortError'],
      ['end_turn', 'Again.', undefined, undefined],
    ])
  })

  test('HC-45 the `after_tool_call` hook does not fire for a call during which the run was cancelled', async () => {
    const fired: string[] = []
    const controller = new AbortController()
    const hooks: Hook[] = [
      { event: 'before_tool_call', handler: () => void fired.push('before') },
      { event: 'after_tool_call', handler: () => void fired.push('after') },
      { event: 'run_end', handler: () => void fired.push('end') },
    ]
    const slow = tool('slow', (_args, { signal }) => {
      controller.abort()
      signal.throwIfAborted()
    })
    using model = new ScriptedModel().calls('slow')
    const running = harnessOf({ model, tools: [slow], hooks }).run('Go.', { signal: controller.signal })
    expect((await failureOf(running)).code).toBe('cancelled')
    expect(fired).toEqual(['before', 'end'])
  })

  test('HC-46 `toolExecution` is `auto` by default and accepts `sequential`', () => {
    expect(() => harnessOf({ toolExecution: 'sequential' })).not.toThrow()
    expect(() => harnessOf({ toolExecution: 'parallel' as never })).toThrow(
      'Expected `toolExecution` of `Harness` to be one of `auto`, `sequential`, got `parallel`.',
    )
  })

  test('a closed harness rejects `run`, `stream` and `connect`, and still accepts tools', async () => {
    const harness = harnessOf({ model: new ScriptedModel() })
    await harness.close()
    const closed = expect.objectContaining({ code: 'closed' }) as Error
    expect(() => harness.stream('Go.')).toThrow(closed)
    await expect(harness.run('Go.')).rejects.toEqual(closed)
    await expect(harness.connect()).rejects.toEqual(closed)
    expect(() => harness.addTool(tool('a'))).not.toThrow()
    await harness.close()
  })
})
