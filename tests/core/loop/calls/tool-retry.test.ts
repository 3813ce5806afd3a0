import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { defineTool, Harness, ModelRetry, ToolResult } from 'thinharness'
import type { Hook } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { eventsOf, failureOf, harnessOf, ofKind, output, tool } from '../../../harness/support.js'
import { temporaryFolder } from '../../../support/folder.js'

const take = (handler: () => unknown = () => 'taken'): ReturnType<typeof defineTool> =>
  defineTool({
    name: 'take',
    description: 'Takes.',
    parameters: z.object({ n: z.number(), filters: z.array(z.object({ name: z.string() })).optional() }),
    handler,
  })

/** A tool that asks for a retry the first `times` times. */
function picky(times: number, beside: Parameters<typeof tool>[2] = {}): ReturnType<typeof tool> {
  let count = 0
  return tool(
    'picky',
    async () => {
      await Promise.resolve()
      if (count++ < times) throw new ModelRetry(`Say please (${count}).`)
      return 'thanks'
    },
    beside,
  )
}

describe('failures that the model may correct', () => {
  test('TR-01 TR-13 the message of a `ModelRetry` reaches the model, and the retry succeeds with a count of 1', async () => {
    using model = new ScriptedModel().calls('picky').calls('picky').says('Done.')
    const result = await harnessOf({ model, tools: [picky(1)] }).run('Go.')
    expect(model.heard.slice(1)).toEqual([
      {
        kind: 'tool_outputs',
        outputs: [output('call_1', 'Say please (1).\nCorrect this and call the tool again.', { ok: false })],
      },
      { kind: 'tool_outputs', outputs: [output('call_2', 'thanks')] },
    ])
    expect(result.usage.toolRetries).toEqual({ picky: 1 })
  })

  test('TR-02 a validation failure is retried, and the handler runs only with valid arguments', async () => {
    const handler = vi.fn(() => 'taken')
    using model = new ScriptedModel().calls('take', { n: 'two' }).calls('take', { n: 2 }).says('Done.')
    const result = await harnessOf({ model, tools: [take(handler)] }).run('Go.')
    expect(handler.mock.calls.map((args) => (args as unknown[])[0])).toEqual([{ n: 2 }])
    expect(result.usage).toMatchObject({ toolCalls: 2, toolRetries: { take: 1 } })
  })

  test('TR-03 TR-14 a validation error inside a handler, synchronous or not, is not a retry', async () => {
    const inside = (): unknown => z.string().parse(5)
    const tools = [tool('sync', inside), tool('async', async () => inside())]
    using model = new ScriptedModel().callsAll([{ name: 'sync' }, { name: 'async' }]).says('Done.')
    const result = await harnessOf({ model, tools, toolRetries: 0 }).run('Go.')
    expect(result.usage.toolRetries).toEqual({})
    const [, heard] = model.heard
    const outputs = heard?.kind === 'tool_outputs' ? heard.outputs : []
    expect(outputs).toMatchObject([
      { ok: false, content: expect.stringMatching(/^ZodError: /) as string },
      { ok: false, content: expect.stringMatching(/^ZodError: /) as string },
    ])
  })

  test('TR-04 a built-in tool with invalid arguments may be called again', async () => {
    const root = temporaryFolder()
    using model = new ScriptedModel().calls('read', { pat: 'a.txt' }).says('Done.')
    const result = await new Harness({ model, root, builtinTools: ['read'] }).run('Go.')
    expect(model.heard[1]).toMatchObject({
      outputs: [{ ok: false, content: expect.stringContaining('call `read` again') as string }],
    })
    expect(result.usage.toolRetries).toEqual({ read: 1 })
  })

  test('TR-05 malformed JSON is retried and counted', async () => {
    using model = new ScriptedModel().calls('take', '{"n":').calls('take', { n: 1 }).says('Done.')
    const result = await harnessOf({ model, tools: [take()] }).run('Go.')
    expect(result.usage.toolRetries).toEqual({ take: 1 })
  })

  test('TR-06 nested and root problems are reported with a dotted path and a root mark', async () => {
    using model = new ScriptedModel()
      .calls('take', { n: 1, filters: [{ name: 5 }] })
      .calls('take', '[1]')
      .says('Done.')
    await harnessOf({ model, tools: [take()], toolRetries: 2 }).run('Go.')
    const contents = model.heard.flatMap((heard) =>
      heard.kind === 'tool_outputs' ? heard.outputs.map(({ content }) => content) : [],
    )
    expect(contents[0]).toMatch(/^Invalid arguments: `take` was not run\.\n- filters\.0\.name: .+\(number\)/)
    expect(contents[1]).toMatch(/\n- <root>: arguments must be a JSON object/)
  })

  test('TR-17 after-hooks see the retry metadata of a validation failure', async () => {
    const seen: unknown[] = []
    const hook: Hook = { event: 'after_tool_call', handler: ({ envelope }) => void seen.push(envelope.metadata) }
    using model = new ScriptedModel().calls('take', {}).says('Done.')
    await harnessOf({ model, tools: [take()], hooks: [hook] }).run('Go.')
    expect(seen).toMatchObject([{ error_type: 'ValidationError', retry: true, tool: 'take' }])
  })
})

describe('the retry limit', () => {
  test('TR-07 exceeding the limit counts the last failure, sends no output for it and fires the limit hook; `run_end` has no result', async () => {
    const fired: unknown[] = []
    const hooks: Hook[] = [
      {
        event: 'limit_reached',
        handler: ({ limitKind, limitValue, currentCount }) => void fired.push([limitKind, limitValue, currentCount]),
      },
      { event: 'run_end', handler: ({ stopReason, result }) => void fired.push([stopReason, result]) },
    ]
    using model = new ScriptedModel().calls('picky').calls('picky')
    const stream = harnessOf({ model, tools: [picky(9)], hooks, toolRetries: 1 }).stream('Go.')
    const events = await eventsOf(stream)
    const error = await failureOf(stream.result)
    expect(error).toMatchObject({
      code: 'tool_retries_exceeded',
      message: 'Tool `picky` failed in 2 turns in a row; its budget is 1 retry.',
      run: {
        stopReason: 'tool_retries_exceeded',
        usage: { modelRequests: 2, toolCalls: 2, toolRetries: { picky: 2 } },
      },
    })
    expect(fired).toEqual([
      ['tool_retries', 1, 2],
      ['tool_retries_exceeded', null],
    ])
    expect(ofKind(events, 'model_retry').map(({ callId }) => callId)).toEqual(['call_1'])
  })

  test('TR-08 a limit of 0 fails at the first failure', async () => {
    using model = new ScriptedModel().calls('picky')
    const error = await failureOf(harnessOf({ model, tools: [picky(9, { maxRetries: 0 })] }).run('Go.'))
    expect(error.message).toBe('Tool `picky` failed in 1 turn; its budget is 0 retries.')
  })

  test('TR-09 a limit of a tool wins over that of the harness', async () => {
    using model = new ScriptedModel().calls('picky').calls('picky').calls('picky').says('Done.')
    const result = await harnessOf({ model, tools: [picky(2, { maxRetries: 2 })], toolRetries: 0 }).run('Go.')
    expect(result.text).toBe('Done.')
  })

  test('TR-10 the failures of a tool in one batch are one failure in a row: the model has seen none of them before', async () => {
    const three = [{ name: 'picky' }, { name: 'picky' }, { name: 'picky' }]
    using model = new ScriptedModel().callsAll(three).calls('picky').says('Done.')
    const result = await harnessOf({ model, tools: [picky(3)], toolRetries: 1 }).run('Go.')
    expect(result.usage).toMatchObject({ modelRequests: 3, toolRetries: { picky: 3 } })
    using again = new ScriptedModel().callsAll(three).callsAll(three)
    const error = await failureOf(harnessOf({ model: again, tools: [picky(9)], toolRetries: 1 }).run('Go.'))
    expect(error.message).toBe('Tool `picky` failed in 2 turns in a row; its budget is 1 retry.')
    expect(error.run.usage.toolRetries).toEqual({ picky: 6 })
  })

  test('TR-10 a batch in which the last call of a tool succeeds is no failure in a row', async () => {
    using model = new ScriptedModel().callsAll([{ name: 'picky' }, { name: 'picky' }]).says('Done.')
    const result = await harnessOf({ model, tools: [picky(1, { sequential: true })], toolRetries: 0 }).run('Go.')
    expect(result.usage.toolRetries).toEqual({ picky: 1 })
  })

  test('TR-07 the default is three failed turns in a row; the fourth ends the run', async () => {
    const failing = (times: number): ScriptedModel => {
      const model = new ScriptedModel()
      for (let turn = 0; turn < times; turn++) model.calls('picky')
      return model
    }
    using model = failing(4).says('Done.')
    expect((await harnessOf({ model, tools: [picky(3)] }).run('Go.')).text).toBe('Done.')
    using other = failing(4)
    const error = await failureOf(harnessOf({ model: other, tools: [picky(9)] }).run('Go.'))
    expect(error).toMatchObject({ code: 'tool_retries_exceeded', run: { usage: { modelRequests: 4 } } })
  })

  test('TR-04 an `edit` whose text is not found or not unique is an ordinary failure, like a missing file', async () => {
    const root = temporaryFolder()
    writeFileSync(join(root, 'a.txt'), 'one\ntwo\ntwo\n')
    const edit = (old_string: string, path = 'a.txt') => ({ edits: [{ path, old_string, new_string: 'x' }] })
    using model = new ScriptedModel()
      .calls('edit', edit('none'))
      .calls('edit', edit('two'))
      .calls('edit', edit('a', 'b.txt'))
    const result = await new Harness({ model: model.says('Done.'), root, builtinTools: ['edit'], toolRetries: 0 }).run(
      'Go.',
    )
    expect(result.usage.toolRetries).toEqual({})
    expect(result.toolCallRecords.map(({ output }) => (JSON.parse(output) as { content: string }).content)).toEqual([
      expect.stringMatching(/old_string not found in a\.txt\. The nearest lines are/),
      expect.stringMatching(/old_string matches 2 times, in lines 2, 3/),
      expect.stringMatching(/file not found: b\.txt/),
    ])
  })

  test('TR-11 cancelled calls do not count', async () => {
    const hook: Hook = { event: 'before_tool_call', tools: ['picky'], handler: () => ({ cancel: 'No.' }) }
    using model = new ScriptedModel().calls('picky').says('Done.')
    const result = await harnessOf({ model, tools: [picky(9)], hooks: [hook], toolRetries: 0 }).run('Go.')
    expect(result.usage).toMatchObject({ toolRetries: {}, toolCalls: 1, cancelledToolCalls: 1 })
  })

  test('a tool that does not exist counts by its name, like one that fails', async () => {
    const model = new ScriptedModel()
    for (let turn = 0; turn < 63; turn++) model.calls('ghost')
    const error = await failureOf(harnessOf({ model, tools: [picky(9)] }).run('Go.'))
    expect(error).toMatchObject({ code: 'tool_retries_exceeded', run: { usage: { toolRetries: { ghost: 4 } } } })
    expect(error.message).toBe('Tool `ghost` failed in 4 turns in a row; its budget is 3 retries.')
  })

  test('a model that corrects the name of a tool goes on', async () => {
    using model = new ScriptedModel().callsAll([{ name: 'ghost' }, { name: 'picky' }]).says('Done.')
    const result = await harnessOf({ model, tools: [picky(0)], toolRetries: 1 }).run('Go.')
    expect(result.usage.toolRetries).toEqual({ ghost: 1 })
    expect(model.heard[1]).toMatchObject({
      outputs: [
        { ok: false, content: expect.stringMatching(/^unknown tool ghost\. Available: picky\./) as string },
        { ok: true },
      ],
    })
  })

  test('TR-12 a mixed concurrent batch keeps its order and counts one retry', async () => {
    using model = new ScriptedModel().callsAll([{ name: 'a' }, { name: 'picky' }, { name: 'b' }]).says('Done.')
    const result = await harnessOf({ model, tools: [tool('a'), picky(1), tool('b')] }).run('Go.')
    expect(result.toolCallRecords.map(({ call }) => call.name)).toEqual(['a', 'picky', 'b'])
    expect(result.usage.toolRetries).toEqual({ picky: 1 })
  })

  test('TR-09 consecutive failures count: a success resets the count', async () => {
    let count = 0
    const moody = tool('moody', () => {
      if (count++ % 2 === 0) throw new ModelRetry('Not now.')
      return 'fine'
    })
    const model = new ScriptedModel()
    for (let index = 0; index < 6; index++) model.calls('moody')
    const result = await harnessOf({ model: model.says('Done.'), tools: [moody] }).run('Go.')
    expect(result.usage.toolRetries).toEqual({ moody: 3 })
    model.assertDone()
  })

  test.each<[string, () => unknown, string]>([
    [
      'a harness',
      () => new Harness({ toolRetries: -1 }),
      'Expected `toolRetries` of `Harness` to be a whole number from 0 up, got `-1`.',
    ],
    [
      'a harness, for outputs',
      () => new Harness({ outputRetries: -1 }),
      'Expected `outputRetries` of `Harness` to be a whole number from 0 up, got `-1`.',
    ],
    [
      'a tool',
      () => tool('a', undefined, { maxRetries: -1 }),
      'Expected `maxRetries` of tool `a` to be a whole number from 0 up, got `-1`.',
    ],
  ])('TR-15 a negative limit is rejected: %s', (_name, make, message) => {
    expect(make).toThrow(message)
  })

  test('TR-16 an after-hook can neither evade the limit by writing garbage nor use it up by forging a retry', async () => {
    const garbage: Hook = { event: 'after_tool_call', tools: ['picky'], handler: () => ({ output: 'garbage' }) }
    const forged: Hook = {
      event: 'after_tool_call',
      tools: ['fine'],
      handler: () => ({ envelope: { ok: false, content: 'x', metadata: { error_type: 'Mine', retry: true } } }),
    }
    using model = new ScriptedModel().callsAll([{ name: 'fine' }, { name: 'picky' }]).calls('picky')
    const hooks = [garbage, forged]
    const harness = harnessOf({ model, tools: [picky(9), tool('fine')], hooks, toolRetries: 1 })
    const stream = harness.stream('Go.')
    const events = await eventsOf(stream)
    expect((await failureOf(stream.result)).run.usage.toolRetries).toEqual({ picky: 2 })
    expect(
      ofKind(events, 'tool_call_completed').map(({ toolName, retryKind, errorType }) => [
        toolName,
        retryKind,
        errorType,
      ]),
    ).toEqual([
      ['fine', null, 'Mine'],
      ['picky', 'ModelRetry', 'InvalidToolOutput'],
      ['picky', 'ModelRetry', 'InvalidToolOutput'],
    ])
  })

  test('TR-01 a failed result that a handler returns counts if it is marked as a retry', async () => {
    const failing = (retry: boolean): ReturnType<typeof tool> =>
      tool(
        retry ? 'again' : 'over',
        () => new ToolResult({ ok: false, content: 'No.', metadata: { error_type: 'Mine', retry } }),
      )
    using model = new ScriptedModel().callsAll([{ name: 'again' }, { name: 'over' }]).says('Done.')
    const result = await harnessOf({ model, tools: [failing(true), failing(false)] }).run('Go.')
    expect(result.usage.toolRetries).toEqual({ again: 1 })
  })
})
