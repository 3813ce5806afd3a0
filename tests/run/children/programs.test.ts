import { expect, test } from 'vitest'
import { memoryLog } from 'thinharness'
import type { Extension, HarnessOptions, ModelTurn, ResumeState, RunEvent, ToolSpec } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { eventsOf, failureOf, harnessOf, ofKind, tool } from '../../harness/support.js'
import { eventsOfRun } from '../../support/collect.js'
import { NO_REPORT, program, runScript } from './program-support.js'
import type { Script } from './program-support.js'

const square = tool('square', ({ n }) => ({ n: Number(n) ** 2 }))

const hundred: Script = async (call) => {
  let sum = 0
  for (let n = 1; n <= 100; n++) sum += ((await call('square', { n })) as { n: number }).n
  return sum
}

test('the turns of a program are steps: no requests, no tokens, no price, no limit of requests', async () => {
  const harness = harnessOf({ model: program(hundred), tools: [square], limits: { modelRequests: 5, costUsd: 0.01 } })
  const { text, usage } = await harness.run('Go.')
  expect(text).toBe('338350')
  expect(usage).toMatchObject({ modelRequests: 0, scriptSteps: 101, toolCalls: 100, inputTokens: 0, byModel: {} })
  expect(usage.costUsd).toBeNull()
})

test('a program has at most 10,000 steps', async () => {
  let step = 0
  const turn = (): Promise<ModelTurn> => Promise.resolve(oneCall(`step_${(step += 1)}`, step === 1 ? 'pay' : 'square'))
  const model = { ...program(hundred), openSession: () => ({ turn }) }
  const tools = [square, tool('pay', () => 'paid', { requiresApproval: true })]
  const { resumeState, pending } = await harnessOf({ model, tools }).run('Go.')
  const late = JSON.parse(JSON.stringify(resumeState).replace('"scriptSteps":1', '"scriptSteps":9998')) as ResumeState
  const run = harnessOf({ model, tools }).resume(late, [{ callId: pending[0]!.callId, approved: true }])
  const failed = await failureOf(run)
  expect(failed).toMatchObject({
    code: 'limit_reached',
    message: expect.stringContaining('script_steps=10000') as string,
  })
  expect(failed.run.usage).toMatchObject({ scriptSteps: 10_000, toolCalls: 3 })
})

function oneCall(callId: string, name: string): ModelTurn {
  return {
    entry: {
      role: 'assistant' as const,
      provider: 'test',
      model: 'program',
      parts: [{ type: 'tool_call' as const, callId, name, arguments: '{"n":1}' }],
      finishReason: 'tool_calls' as const,
      usage: NO_REPORT,
    },
  }
}

test('middleware of requests, views and spans of requests have nothing to do with the turns of a program', async () => {
  const asked: string[] = []
  const spans: string[] = []
  const watching: Extension = {
    name: 'watching',
    wrapModelCall: (call, next) => (asked.push('wrap'), next(call)),
    view: () => (asked.push('view'), null),
    tracing: {
      startRun: () => ({ event: () => undefined, within: (scope, work) => (spans.push(scope.kind), work()) }),
    },
  }
  await harnessOf({ model: program(async (call) => call('square', { n: 2 })), tools: [square], use: [watching] }).run(
    'Go.',
  )
  expect(asked).toEqual([])
  expect(spans).toEqual(['tool'])
})

const big = Array.from({ length: 60_000 }, (_, index) => ({ index, text: 'a row of a table' }))

test('a program gets values whole, however long; its entries and events keep the bounded text', async () => {
  const rows = tool('rows', () => big, { maxOutputChars: 1_000 })
  const text = tool('text', () => 'x'.repeat(100_000))
  const script: Script = async (call) => {
    const [all, long] = await Promise.all([call('rows'), call('text')])
    return [(all as unknown[]).length, (all as { index: number }[]).at(-1)?.index, JSON.stringify(long).length - 2]
  }
  const result = await harnessOf({ model: program(script), tools: [rows, text] }).run('Go.')
  expect(result.text).toBe('[60000,59999,100000]')
  expect(result.toolCallRecords[0]?.output.length).toBeLessThan(2_000)
})

test('what a hook has left of a result is what a program gets of it, also behind the bound of the text', async () => {
  const secret = { rows: 'x'.repeat(80_000), key: 'sk-secret' }
  const hide = {
    event: 'after_tool_call',
    handler: ({ output }: { output: string }) => ({ output: output.replace('sk-secret', '[key]') }),
  } as const
  const script: Script = (call) => call('rows')
  const { text } = await harnessOf({ model: program(script), tools: [tool('rows', () => secret)], hooks: [hide] }).run(
    'Go.',
  )
  expect(JSON.parse(text)).toEqual({ ...secret, key: '[key]' })
})

test('a program can change nothing in the values that its run keeps', async () => {
  const script: Script = async (call) => {
    const value = (await call('square', { n: 2 })) as { n: number }
    value.n += 1
    return value
  }
  await expect(harnessOf({ model: program(script), tools: [square] }).run('Go.')).rejects.toThrow(/read only/)
})

test('a program that was killed goes on from its recorded values, of more than a megabyte too, and its log stands alone', async () => {
  const times = { rows: 0 }
  const tools = [tool('rows', () => (times.rows++, big)), tool('last', () => 'end', RETRY)]
  const script: Script = async (call) => {
    const all = (await call('rows')) as unknown[]
    return [all.length, await call('last')]
  }
  const first = memoryLog()
  await harnessOf({ model: program(script), tools, log: first }).run('Go.', { runId: 'run_p' })
  const events = await eventsOfRun(first, 'run_p')
  const killed = events.findIndex((event) => event.kind === 'tool_call_started' && event.toolName === 'last')
  const log = memoryLog()
  await log.append({ kind: 'run', id: 'run_p' }, events.slice(0, killed + 1))
  const again = harnessOf({ model: program(script), tools, log })
  expect((await again.recover('run_p')).text).toBe('[60000,"end"]')
  expect(times.rows).toBe(1)
  const exported: RunEvent[] = []
  for await (const event of log.export('run_p')) exported.push(JSON.parse(JSON.stringify(event)) as RunEvent)
  using nobody = new ScriptedModel()
  const { text, usage } = await harnessOf({ model: nobody, tools }).replay(exported)
  expect({ text, usage }).toMatchObject({ text: '[60000,"end"]', usage: { scriptSteps: 3, modelRequests: 0 } })
})

const RETRY = { onUnknownOutcome: 'retry' } as const

/** A run whose model runs a script, and then answers. */
function scripted(script: Script, options: Partial<HarnessOptions> & { readonly tools: readonly ToolSpec[] }) {
  const model = new ScriptedModel().calls('run_script').says('Done.')
  return harnessOf({ model, ...options, tools: [runScript(script), ...options.tools] })
}

test('the calls of a program are calls of its run: they count there, and its steps too', async () => {
  const { usage, toolCallRecords } = await scripted(hundred, { tools: [square], toolRetries: 0 }).run('Go.')
  expect(usage).toMatchObject({ modelRequests: 2, toolCalls: 101, scriptSteps: 101 })
  expect(usage.children).toEqual({ modelRequests: 0, toolCalls: 0 })
  expect(toolCallRecords).toMatchObject([{ call: { name: 'run_script' } }])
  expect(toolCallRecords[0]?.output).toContain('338350')
})

test('failures that a program catches count against no budget; one that leaves it is one failed call', async () => {
  const picky = tool('picky', () => 'ok', { maxRetries: 0 })
  const strict: ToolSpec = {
    ...picky,
    parameters: { type: 'object', required: ['n'], properties: { n: { type: 'number' } } },
  }
  const catches: Script = async (call) => {
    const failed: string[] = []
    for (let time = 0; time < 5; time++)
      await call('picky').catch((error: unknown) => failed.push((error as Error).message))
    return failed.length
  }
  expect((await scripted(catches, { tools: [strict] }).run('Go.')).toolCallRecords[0]?.output).toContain('5')
  const result = await scripted((call) => call('picky'), { tools: [strict], toolRetries: 0 }).run('Go.')
  expect(result).toMatchObject({ text: 'Done.' })
  expect(JSON.parse(result.toolCallRecords[0]!.output)).toMatchObject({ ok: false })
})

test('two programs of one reply are together under the limit of calls', async () => {
  const four: Script = async (call) => {
    for (let n = 1; n <= 4; n++) await call('square', { n })
    return 'four'
  }
  const model = (): ScriptedModel =>
    new ScriptedModel().replies({ calls: [{ name: 'run_script' }, { name: 'run_script' }] }).says('Done.')
  const tools = [runScript(four), square]
  const enough = await harnessOf({ model: model(), tools, limits: { toolCalls: 10 } }).run('Go.')
  expect(enough.usage.toolCalls).toBe(10)
  const failed = await failureOf(harnessOf({ model: model(), tools, limits: { toolCalls: 9 } }).run('Go.'))
  expect(failed).toMatchObject({
    code: 'limit_reached',
    message: expect.stringContaining('max_tool_calls=9') as string,
  })
})

test('with `onLimit: answer` a program hears that its calls were refused, and the run answers', async () => {
  const heard: string[] = []
  const tries: Script = async (call) => {
    for (let n = 1; n <= 4; n++)
      await call('square', { n }).catch((error: unknown) => heard.push((error as Error).message))
    return heard.length
  }
  const result = await scripted(tries, { tools: [square], limits: { toolCalls: 3 }, onLimit: 'answer' }).run('Go.')
  expect(result.usage.toolCalls).toBe(3)
  expect(heard.at(-1)).toContain('was not run')
})

test('a program that waits for a person goes on in another process, and counts there', async () => {
  const log = memoryLog()
  const pay = tool('pay', () => 'paid', { requiresApproval: true })
  const times = { square: 0 }
  const counting = tool('square', ({ n }) => (times.square++, { n: Number(n) ** 2 }))
  const script: Script = async (call) => [await call('square', { n: 3 }), await call('pay')]
  const harness = () =>
    scripted(script, {
      tools: [pay, counting],
      log,
      model: new ScriptedModel().always(({ turn }) => (turn === 0 ? { calls: [{ name: 'run_script' }] } : 'Done.')),
    })
  const paused = await harness().run('Go.', { runId: 'run_p' })
  expect(paused.pending).toMatchObject([{ kind: 'approval', toolName: 'pay' }])
  const { callId } = paused.pending[0]!
  const result = await harness().resume(paused.resumeState!, [{ callId, approved: true }])
  expect(result.toolCallRecords[0]?.output).toContain('paid')
  expect(times.square).toBe(1)
  expect(result.usage).toMatchObject({ toolCalls: 3, scriptSteps: 3 })
})

test('a program cannot be given what would make it another run', async () => {
  const model = program(async () => 1)
  for (const [options, problem] of [
    [{ model: new ScriptedModel() }, /computed/],
    [{ model, history: 'inherit' }, /history/],
    [{ model, background: true }, /background/],
    [{ model, limits: { toolCalls: 5 } }, /limits/],
  ] as const) {
    const start = tool(
      'start',
      async (_, { spawn }) => (await spawn({ prompt: 'Go.', as: 'self', ...options }).result).text,
      RETRY,
    )
    const { toolCallRecords } = await harnessOf({
      model: new ScriptedModel().calls('start').says('Done.'),
      tools: [start],
    }).run('Go.')
    expect(toolCallRecords[0]?.output).toMatch(problem)
  }
})

test('hooks about runs are not asked about a program, and its events have the name of no agent of the run', async () => {
  const asked: string[] = []
  const hooks = (
    ['run_start', 'run_end', 'user_prompt_submit', 'before_subagent_run', 'after_subagent_run'] as const
  ).map((event) => ({ event, agents: ['*'], handler: () => void asked.push(event) }))
  const log = memoryLog()
  const own = hooks.map(({ event, handler }) => ({ event, handler }))
  await scripted((call) => call('square', { n: 2 }), { tools: [square], hooks: own, log }).run('Go.', {
    runId: 'run_p',
  })
  expect(asked).toEqual(['run_start', 'user_prompt_submit', 'run_end'])
  expect(ofKind(await eventsOfRun(log, 'run_p'), 'tool_call_completed')[0]?.childUsage).toMatchObject({
    toolCalls: 1,
    scriptSteps: 2,
  })
})

test('a tool that a program calls knows how many requests are left to the run', async () => {
  const asks = tool('asks', (_, { requestsLeft }) => ({ left: requestsLeft?.() }))
  const { toolCallRecords } = await scripted((call) => call('asks'), {
    tools: [asks],
    limits: { modelRequests: 5 },
  }).run('Go.')
  expect(toolCallRecords[0]?.output).toContain('4')
})

test('the events of a program come with those of its run', async () => {
  const events = await eventsOf(scripted((call) => call('square', { n: 2 }), { tools: [square] }).stream('Go.'))
  const [started] = ofKind(events, 'run_started').filter(({ parentRunId }) => parentRunId !== null)
  expect(started).toMatchObject({ rules: { computed: true }, agentName: 'self' })
})
