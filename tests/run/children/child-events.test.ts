import { expect, test } from 'vitest'
import { z } from 'zod'
import { Harness, ModelRetry } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import type { SubagentSpec } from 'thinharness/tools'
import { envelopeIn } from './subagents-support.js'
import { eventsOf, harnessOf, tool } from '../../harness/support.js'

const READER: SubagentSpec = { name: 'reader', description: 'Reads.', tools: [] }

function handing(agent = 'reader'): ScriptedModel {
  return new ScriptedModel().calls('subagent', { task: 'Read.', agent }, { callId: 'call_p' }).says('Done.')
}

test('ST-09 events of a child carry the ids of its parent, and each run numbers its own without gaps', async () => {
  using model = handing()
  using child = new ScriptedModel().calls('look').says('Read.')
  const agents = [{ ...READER, model: child, tools: [tool('look')] }]
  const events = await eventsOf(harnessOf({ model, subagents: agents }).stream('Go.', { runId: 'run_p' }))
  const inner = events.filter((event) => event.runId !== 'run_p')
  expect(
    new Set(
      inner.map(({ parentRunId, parentToolCallId, agentName }) => [parentRunId, parentToolCallId, agentName].join()),
    ),
  ).toEqual(new Set(['run_p,call_p,reader']))
  for (const run of [inner, events.filter((event) => event.runId === 'run_p')]) {
    expect(run.filter(({ durable }) => durable).map(({ seq }) => seq)).toEqual(
      run.filter(({ durable }) => durable).map((_, index) => index + 1),
    )
  }
  const at = events.findIndex((event) => event.runId !== 'run_p')
  expect(events.slice(0, at).at(-1)).toMatchObject({ kind: 'tool_call_started', callId: 'call_p' })
})

test('ST-10 events of children can be left out, and nothing else changes', async () => {
  const run = async (includeSubagents: boolean) => {
    using model = handing()
    using child = new ScriptedModel().says('Read.')
    const harness = harnessOf({ model, subagents: [{ ...READER, model: child }] })
    const stream = harness.stream('Go.', { runId: 'run_p', includeSubagents })
    const events = await eventsOf(stream)
    return { kinds: events.map(({ runId, kind }) => [runId === 'run_p', kind].join()), result: await stream.result }
  }
  const [shown, hidden] = [await run(true), await run(false)]
  expect(hidden.kinds).toEqual(shown.kinds.filter((kind) => kind.startsWith('true')))
  expect(hidden.kinds.length).toBeLessThan(shown.kinds.length)
  expect(hidden.result.usage).toEqual(shown.result.usage)
  expect(hidden.result.toolCallRecords.map(({ output }) => output)).toEqual(
    shown.result.toolCallRecords.map(({ output }) => output),
  )
})

test("SO-35 SO-36 SO-37 an agent's own output type is serialized for the parent; an agent without one answers in text, whatever its parent has", async () => {
  using model = new ScriptedModel()
    .calls('subagent', { task: 'Count.', agent: 'counter' })
    .calls('subagent', { task: 'Read.', agent: 'reader' })
    .calls('final_result', { answer: 'yes' })
  using counter = new ScriptedModel().calls('final_result', { count: 3 })
  using reader = new ScriptedModel().says('Plain words.')
  const harness = new Harness({
    model,
    builtinTools: [],
    outputType: z.object({ answer: z.string() }),
    outputMode: 'tool',
    subagents: [
      { ...READER, name: 'counter', model: counter, outputType: z.object({ count: z.number() }), outputMode: 'tool' },
      { ...READER, model: reader },
    ],
  })
  const result = await harness.run('Go.')
  expect(result.output).toEqual({ answer: 'yes' })
  expect(result.toolCallRecords.map(envelopeIn)).toMatchObject([
    { ok: true, content: '{"count":3}', metadata: { structured_output: true } },
    { ok: true, content: 'Plain words.', metadata: { structured_output: false } },
  ])
  expect(reader.requests[0]?.constants.tools.map(({ name }) => name)).not.toContain('final_result')
})

test('SO-38 a native schema of the parent does not affect a child that answers by a tool', async () => {
  using model = new ScriptedModel({ capabilities: { supportsJsonSchemaOutput: true } })
    .calls('subagent', { task: 'Count.', agent: 'counter' })
    .says('{"answer":"yes"}')
  using counter = new ScriptedModel().calls('final_result', { count: 3 })
  const harness = new Harness({
    model,
    builtinTools: [],
    outputType: z.object({ answer: z.string() }),
    outputMode: 'native',
    subagents: [
      { ...READER, name: 'counter', model: counter, outputType: z.object({ count: z.number() }), outputMode: 'tool' },
    ],
  })
  expect((await harness.run('Go.')).output).toEqual({ answer: 'yes' })
  expect(model.requests[0]?.constants.structuredOutput).not.toBeNull()
  expect(counter.requests[0]?.constants.structuredOutput).toBeNull()
})

test('TR-19 an agent has its own retry limit, or that of the harness', async () => {
  const failing = tool('look', () => {
    throw new ModelRetry('Again.')
  })
  const requests = async (agent: Partial<SubagentSpec>): Promise<number> => {
    using model = handing()
    const child = new ScriptedModel().calls('look').calls('look').calls('look').calls('look')
    const subagents = [{ ...READER, ...agent, model: child, tools: [failing] }]
    const { toolCallRecords } = await harnessOf({ model, subagents, toolRetries: 2 }).run('Go.')
    expect(toolCallRecords.map(envelopeIn)).toMatchObject([{ ok: false }])
    return child.requests.length
  }
  expect(await requests({})).toBe(3)
  expect(await requests({ toolRetries: 0 })).toBe(1)
})
