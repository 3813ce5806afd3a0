import { describe, expect, expectTypeOf, test, vi } from 'vitest'
import { z } from 'zod'
import { fileLog, memoryLog } from 'thinharness'
import type { HarnessOptions, Hook } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import type { HeardRequest } from 'thinharness/testing'
import { eventsIn, stored } from '../resume/pause-support.js'
import { eventsOf, failureOf, harnessOf, kinds, ofKind, output, tool } from '../../harness/support.js'
import { temporaryFolder } from '../../support/folder.js'
import { eventsOfRun } from '../../support/collect.js'

const answer = z.object({ answer: z.string() })
const FAILED = 'Validation of the structured output failed.'
const NATIVE = { supportsJsonSchemaOutput: true, defaultStructuredOutputMode: 'native' } as const

function toolsOffered({ constants }: HeardRequest): string[] {
  return constants.tools.map(({ name }) => name)
}

describe('a structured answer', () => {
  test('SO-07 SO-22 it is parsed and its text is kept; only the ordinary tools before it are counted and recorded', async () => {
    using model = new ScriptedModel().calls('a').calls('final_result', { answer: 'yes' }, { text: 'Here it is.' })
    const result = await harnessOf({ model, tools: [tool('a')], outputType: answer }).run('Go.')
    expectTypeOf(result.output).toEqualTypeOf<{ answer: string }>()
    expect(result).toMatchObject({ output: { answer: 'yes' }, text: 'Here it is.', stopReason: 'end_turn' })
    expect(result.usage).toMatchObject({ modelRequests: 2, toolCalls: 1, outputRetries: 0 })
    expect(result.toolCallRecords.map(({ call }) => call.name)).toEqual(['a'])
    expect(model.requests.map(toolsOffered)).toEqual([
      ['a', 'final_result'],
      ['a', 'final_result'],
    ])
  })

  test('SO-07 an answer by a call leaves a transcript that can be continued', async () => {
    using model = new ScriptedModel().calls('final_result', { answer: 'yes' })
    const result = await harnessOf({ model, outputType: answer }).run('Go.')
    expect(result.transcript.at(-1)).toMatchObject({ role: 'tool', callId: 'call_1', isError: false })
    expect(result.resumeState).toMatchObject({ phase: { at: 'ended', stopReason: 'end_turn' } })
    expect(JSON.parse(JSON.stringify(result.resumeState))).toMatchObject({ transcript: [{}, {}, { callId: 'call_1' }] })
  })

  test('SO-08 a capable model is asked natively, without a synthetic tool', async () => {
    using model = new ScriptedModel({ capabilities: NATIVE }).says('{"answer":"yes"}')
    const result = await harnessOf({ model, outputType: answer }).run('Go.')
    expect(result).toMatchObject({ output: { answer: 'yes' }, text: '{"answer":"yes"}' })
    expect(model.requests[0]?.constants).toMatchObject({
      tools: [],
      structuredOutput: { name: 'final_result', strict: true },
    })
  })

  test('SO-09 prompted mode strips a code fence, and puts the schema after the instructions', async () => {
    using model = new ScriptedModel().says('```json\n{"answer":"yes"}\n```')
    const harness = harnessOf({ model, outputType: answer, outputMode: 'prompted', instructions: 'Be brief.' })
    const result = await harness.run('Go.')
    expect(result).toMatchObject({ output: { answer: 'yes' }, text: '```json\n{"answer":"yes"}\n```' })
    expect(model.requests[0]?.constants.instructions).toMatch(/^Be brief\.\n\nGive the final answer as JSON only/)
  })

  test('SO-10 a list is wrapped for the model and unwrapped for the caller', async () => {
    using model = new ScriptedModel().calls('final_result', { value: ['a', 'b'] })
    expect((await harnessOf({ model, outputType: z.array(z.string()) }).run('Go.')).output).toEqual(['a', 'b'])
  })

  test('SO-24 a string type yields the text and needs no synthetic tool', async () => {
    using model = new ScriptedModel().says('yes')
    expect(await harnessOf({ model, outputType: z.string() }).run('Go.')).toMatchObject({ output: 'yes', text: 'yes' })
    expect(model.requests.map(toolsOffered)).toEqual([[]])
  })

  test('SO-07 the caller receives the parsed value, the log keeps JSON', async () => {
    const folder = temporaryFolder()
    const outputType = z.object({ n: z.string().transform((digits) => BigInt(digits)) })
    using model = new ScriptedModel().calls('final_result', { n: '12' })
    const log = fileLog(folder)
    const result = await harnessOf({ model, outputType, log }).run('Go.', { runId: 'run_big' })
    expect(result.output).toEqual({ n: 12n })
    const kept = await eventsOfRun(log, 'run_big')
    const replies = kept.filter((event) => event.kind === 'model_message')
    expect(replies.at(-1)).toMatchObject({ resolution: { kind: 'final', output: { n: '12' } } })
  })
})

describe('an invalid answer', () => {
  test('SO-12 it is corrected once; requests, retries and both raw replies are reported', async () => {
    using model = new ScriptedModel({ capabilities: NATIVE }).says('{"answer":5}').says('{"answer":"yes"}')
    const result = await harnessOf({ model, outputType: answer }).run('Go.')
    expect(result.output).toEqual({ answer: 'yes' })
    expect(result.usage).toMatchObject({ modelRequests: 2, outputRetries: 1 })
    expect(result.responses).toHaveLength(2)
  })

  test('SO-13 an answer by a call is corrected in the result of that call, not by a message', async () => {
    using model = new ScriptedModel().calls('final_result', { answer: 5 }).calls('final_result', { answer: 'yes' })
    await harnessOf({ model, outputType: answer }).run('Go.')
    const content = `${FAILED}\n\n- answer: Invalid input: expected string, received number\n\nCall \`final_result\` again with valid arguments.`
    expect(model.heard[1]).toEqual({
      kind: 'tool_outputs',
      outputs: [output('call_1', content, { ok: false })],
    })
  })

  test.each<[string, string, z.ZodType]>([
    ['no JSON', '{"answer":', answer],
    ['no object', '"yes"', answer],
    // What the history shows of arguments that are no JSON is an object: it must not be taken for the answer.
    ['no JSON, for a type that takes every object', '{"a":"x"', z.record(z.string(), z.string())],
  ])('SO-13 invalid arguments are corrected, never accepted: %s', async (_name, args, outputType) => {
    const good = outputType === answer ? { answer: 'yes' } : { a: 'x' }
    using model = new ScriptedModel().calls('final_result', args).calls('final_result', good)
    const result = await harnessOf<unknown>({ model, outputType }).run('Go.')
    expect(result.output).toEqual(good)
    expect(result.usage.outputRetries).toBe(1)
    expect(model.heard[1]).toMatchObject({
      outputs: [{ ok: false, content: expect.stringContaining('Call `final_result` again') as string }],
    })
    expect(result.transcript[1]).toMatchObject({ parts: [{ arguments: JSON.stringify({ invalid_arguments: args }) }] })
  })

  test('SO-14 text in place of final_result is corrected by a message', async () => {
    using model = new ScriptedModel().says('Yes.').calls('final_result', { answer: 'yes' })
    const result = await harnessOf({ model, outputType: answer }).run('Go.')
    expect(model.heard[1]).toEqual({
      kind: 'correction',
      prompt: `${FAILED}\n\nCall \`final_result\` with the final answer.`,
    })
    expect(result.transcript[2]).toMatchObject({ role: 'user', notice: true })
  })

  test('SO-15 the run fails when no retry is left, and `run_end` receives the reason and zero retries', async () => {
    const ends: unknown[] = []
    const hook: Hook = {
      event: 'run_end',
      handler: ({ stopReason, usage }) => void ends.push([stopReason, usage.outputRetries]),
    }
    using model = new ScriptedModel().calls('final_result', { answer: 5 })
    const error = await failureOf(harnessOf({ model, outputType: answer, outputRetries: 0, hooks: [hook] }).run('Go.'))
    expect(error).toMatchObject({ code: 'output_validation_failed', run: { stopReason: 'output_validation_failed' } })
    expect(error.message).toMatch(
      /^The final answer did not fit after 0 corrective requests: Validation of the structured/,
    )
    expect(ends).toEqual([['output_validation_failed', 0]])
  })

  test('SO-16 HC-05 a retry that the request limit forbids is not counted', async () => {
    using model = new ScriptedModel().calls('final_result', { answer: 5 })
    const error = await failureOf(harnessOf({ model, outputType: answer, limits: { modelRequests: 1 } }).run('Go.'))
    expect(error).toMatchObject({ code: 'limit_reached', run: { usage: { outputRetries: 0, modelRequests: 1 } } })
  })

  test('SO-17 a notice is not repeated with a correction', async () => {
    using model = new ScriptedModel().says('Yes.').calls('final_result', { answer: 'yes' })
    const stream = harnessOf({ model, outputType: answer, limits: { toolCalls: 0 } }).stream('Go.')
    expect(kinds(await eventsOf(stream)).match(/limit_warning/g)).toHaveLength(1)
    expect(model.heard[1]).toEqual({
      kind: 'correction',
      prompt: `${FAILED}\n\nCall \`final_result\` with the final answer.`,
    })
  })

  test('SO-18 SO-19 a correction carries a notice that is due, in the wording of its mode, and counts no tool call', async () => {
    using model = new ScriptedModel().calls('final_result', { answer: 5 }).calls('final_result', { answer: 'yes' })
    const result = await harnessOf({
      model,
      outputType: answer,
      outputRetries: 5,
      limits: { modelRequests: 2, toolCalls: 9 },
    }).run('Go.')
    const notice =
      'This is the final model request of this run: give the final answer now by calling `final_result`, and request no other tools.'
    expect(model.heard[1]).toMatchObject({
      kind: 'tool_outputs',
      prompt: `<harness_notice kind="limit_warning">\n${notice}\n</harness_notice>`,
    })
    expect(result.usage).toMatchObject({ toolCalls: 0, outputRetries: 1 })
  })
})

describe('limit notices', () => {
  const yes = '{"answer":"yes"}'
  test.each<[string, object, ScriptedModel, boolean]>([
    [
      'tool',
      { outputType: answer, outputMode: 'tool' },
      new ScriptedModel().calls('final_result', { answer: 'yes' }),
      true,
    ],
    ['native', { outputType: answer }, new ScriptedModel({ capabilities: NATIVE }).says(yes), false],
    ['prompted', { outputType: answer, outputMode: 'prompted' }, new ScriptedModel().says(yes), false],
    ['text', { outputType: z.string() }, new ScriptedModel().says(yes), false],
    ['no', {}, new ScriptedModel().says(yes), false],
  ])('SO-20 they mention final_result only in tool mode: %s', async (_name, options, model, mentions) => {
    for (const toolCalls of [0, 1]) {
      const script = new ScriptedModel({ capabilities: model.capabilities }).replies(() =>
        mentions ? { calls: [{ name: 'final_result', arguments: { answer: 'yes' } }] } : yes,
      )
      await harnessOf<unknown>({ model: script, ...options, limits: { modelRequests: 1, toolCalls } }).run('Go.')
      const told = JSON.stringify(script.heard)
      expect(told.match(/harness_notice kind/g)).toHaveLength(2)
      expect(told.match(/final_result/g)?.length ?? 0).toBe(mentions ? 2 : 0)
    }
  })
})

describe('final_result', () => {
  const yes = { name: 'final_result', arguments: { answer: 'yes' } }
  const no = { name: 'final_result', arguments: { answer: 'no' } }

  test('SO-21 next to other calls it is not accepted: they run, and the answer is requested again', async () => {
    const log = memoryLog()
    using model = new ScriptedModel().callsAll([yes, { name: 'a' }]).calls('final_result', { answer: 'no' })
    const harness = harnessOf({ model, tools: [tool('a')], outputType: answer, outputRetries: 0, log })
    const result = await harness.run('Go.', { runId: 'run_1' })
    expect(result.output).toEqual({ answer: 'no' })
    expect(result.usage).toMatchObject({ modelRequests: 2, toolCalls: 1, outputRetries: 0, toolRetries: {} })
    expect(result.toolCallRecords.map(({ call }) => call.name)).toEqual(['a'])
    expect(model.heard[1]).toMatchObject({
      kind: 'tool_outputs',
      outputs: [
        {
          ok: false,
          content: expect.stringMatching(/Read their results, then .* call `final_result` alone\./) as string,
        },
        { ok: true },
      ],
    })
    const events = await eventsIn(log, 'run_1')
    expect(ofKind(events, 'tool_call_started').map(({ toolName }) => toolName)).toEqual(['a'])
    expect((await harness.replay(events)).output).toEqual({ answer: 'no' })
    using other = new ScriptedModel().calls('final_result', { answer: 'forked' })
    const forked = await harness.fork(events, { afterTurn: 1 }, { model: other })
    expect(forked.output).toEqual({ answer: 'forked' })
    expect(other.heard[0]).toMatchObject({ kind: 'tool_outputs', outputs: [{ ok: false }, { ok: true }] })
  })

  test('SO-21 the other calls may need an approval, and count against the limit without the answer', async () => {
    const ran = vi.fn(() => 'ran')
    using model = new ScriptedModel().callsAll([{ name: 'a' }, yes]).calls('final_result', { answer: 'no' })
    const tools = [tool('a', ran, { requiresApproval: true })]
    const harness = harnessOf({ model, tools, outputType: answer, limits: { toolCalls: 1 } })
    const paused = await harness.run('Go.')
    expect(paused.pending).toMatchObject([{ callId: 'call_1', toolName: 'a' }])
    const result = await harness.resume(stored(paused), [{ callId: 'call_1', approved: true }])
    expect(result.output).toEqual({ answer: 'no' })
    expect(ran).toHaveBeenCalledTimes(1)
  })

  test.each<[string, Pick<HarnessOptions, 'limits' | 'onLimit'>]>([
    ['the last request of the limit', { limits: { modelRequests: 1 } }],
    ['the request that asks for an answer', { limits: { modelRequests: 2 }, onLimit: 'answer' }],
  ])('SO-21 in %s it is accepted, and the other calls do not run', async (_name, budgets) => {
    const ran = vi.fn(() => 'ran')
    const model = new ScriptedModel()
    if (budgets.onLimit !== undefined) model.calls('b')
    using script = model.callsAll([yes, { name: 'a' }])
    const tools = [tool('a', ran), tool('b')]
    const harness = harnessOf({ model: script, tools, outputType: answer, ...budgets })
    const result = await harness.run('Go.')
    expect(result.output).toEqual({ answer: 'yes' })
    expect(ran).not.toHaveBeenCalled()
    expect(result.transcript.slice(-2)).toMatchObject([
      { role: 'tool', name: 'final_result', isError: false },
      { role: 'tool', name: 'a', isError: true },
    ])
  })

  test('SO-23 two answers are unexpected behavior, unless other calls are made with them', async () => {
    using model = new ScriptedModel().callsAll([yes, no])
    const error = await failureOf(harnessOf({ model, outputType: answer }).run('Go.'))
    expect(error).toMatchObject({
      code: 'unexpected_model_behavior',
      message: 'The model called `final_result` more than once in a reply.',
      run: { usage: { modelRequests: 1, toolCalls: 0 } },
    })
    expect(error.run.transcript.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'tool'])
    using again = new ScriptedModel().callsAll([yes, no, { name: 'a' }]).calls('final_result', { answer: 'no' })
    const result = await harnessOf({ model: again, tools: [tool('a')], outputType: answer }).run('Go.')
    expect(result.output).toEqual({ answer: 'no' })
  })

  test('SO-25 SO-26 it is rejected as a tool name if there is an output type, whenever it is added, and free otherwise', async () => {
    const taken = 'With an `outputType` no tool can be called `final_result`: the model gives its answer by that name.'
    const own = tool('final_result', () => 'mine')
    expect(() => harnessOf({ outputType: answer, tools: [own] })).toThrow(taken)
    const harness = harnessOf({ model: new ScriptedModel(), outputType: answer })
    expect(() => harness.addTool(own)).toThrow(taken)
    expect(() => harness.stream('Go.', { tools: [own] })).toThrow(taken)
    using model = new ScriptedModel().calls('final_result').says('Done.')
    const result = await harnessOf({ model, tools: [own] }).run('Go.')
    expect(result).toMatchObject({ text: 'Done.', usage: { toolCalls: 1 } })
    expect(result.toolCallRecords.map(({ call }) => call.name)).toEqual(['final_result'])
  })

  test('SO-27 a hook filtered to it is allowed and never fires', async () => {
    const fired = vi.fn()
    const hook: Hook = { event: 'before_tool_call', tools: ['final_result'], handler: fired }
    using model = new ScriptedModel().calls('final_result', { answer: 'yes' })
    await harnessOf({ model, outputType: answer, hooks: [hook] }).run('Go.')
    expect(fired).not.toHaveBeenCalled()
  })

  test("SO-28 a mode that the model does not support is a construction error, or an error at once for a run's own model", () => {
    const message =
      '`outputMode` cannot be `native`: the model cannot be held to a JSON Schema by its provider; use `tool` or `prompted`.'
    const options = { outputType: answer, outputMode: 'native' } as const
    expect(() => harnessOf({ model: new ScriptedModel(), ...options })).toThrow(message)
    const harness = harnessOf({ model: new ScriptedModel({ capabilities: NATIVE }), ...options, log: memoryLog() })
    expect(() => harness.stream('Go.', { model: new ScriptedModel() })).toThrow(message)
    expect(() => harnessOf({ outputType: z.date() })).toThrow('`outputType` cannot be given to a model')
  })
})
