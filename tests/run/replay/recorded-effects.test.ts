import fc from 'fast-check'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { defineTool, memoryLog, ToolResult } from 'thinharness'
import type { Harness, HarnessOptions, HarnessResult, JsonObject, ToolSpec } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { harnessOf, tool } from '../../harness/support.js'
import { eventsOfRun } from '../../support/collect.js'
import { rounds } from '../../support/length.js'

type Calls = readonly (readonly [name: string, args: JsonObject])[]

/** Says one call after another, and then that it is done. */
function calling(calls: Calls): ScriptedModel {
  const next = calls.values()
  return new ScriptedModel().always(() => {
    const call = next.next().value
    return call === undefined ? 'Done.' : { calls: [{ name: call[0], arguments: call[1] }] }
  })
}

interface Recorded {
  readonly tools: readonly ToolSpec[]
  readonly options?: Partial<HarnessOptions>
  readonly first: Calls
  readonly then: Calls
  readonly afterTurn?: number
  readonly fork?: Parameters<Harness['fork']>[2]
}

/** A run, and a fork of it with recorded effects in which the model does something else. */
async function forked({
  tools,
  options = {},
  first,
  then,
  afterTurn = 0,
  fork = {},
}: Recorded): Promise<HarnessResult & { readonly answers: readonly string[] }> {
  const log = memoryLog()
  await harnessOf({ ...options, model: calling(first), tools, log }).run('Go.', { runId: 'run_r' })
  const events = await eventsOfRun(log, 'run_r')
  const other = calling(then)
  const again = harnessOf({ ...options, model: other, tools, log })
  const result = await again.fork(events, { afterTurn, prompt: 'Again.' }, { effects: 'recorded', ...fork })
  const answers = result.toolCallRecords.map(({ output }) => (JSON.parse(output) as { content: string }).content)
  return Object.assign(result, { answers })
}

/** A tool that gives another answer each time, and says how often it ran. */
function counter(name: string, beside: Partial<ToolSpec> = {}): ToolSpec & { readonly ran: () => number } {
  let count = 0
  return { ...tool(name, () => `${name} ${(count += 1)}`), ...beside, ran: () => count }
}

test('a fork with recorded effects gives a call that the recording has its result, each result once, and runs nothing', async () => {
  const [look, pay] = [counter('look'), counter('pay')]
  const first: Calls = [
    ['look', { a: 1, b: { c: 2, d: 3 } }],
    ['look', { a: 1, b: { c: 2, d: 3 } }],
    ['pay', { amount: 5 }],
  ]
  const same = { b: { d: 3, c: 2 }, a: 1 }
  const then: Calls = [
    ['pay', { amount: 5 }],
    ['look', same],
    ['look', same],
    ['look', same],
    ['pay', { amount: 6 }],
  ]
  const { answers, usage } = await forked({ tools: [look, pay], first, then })
  expect(answers.slice(0, 3)).toEqual(['pay 1', 'look 1', 'look 2'])
  expect(answers[3]).toContain('`look` was not run')
  expect(answers[4]).toContain('`pay` was not run')
  expect(usage).toMatchObject({ unrecorded: 2, toolCalls: 5 })
  expect([look.ran(), pay.ran()]).toEqual([2, 1])
})

test('all that is recorded leaves nothing unrecorded; a tool that only reads runs for any other call, and is counted', async () => {
  const look = counter('look', { annotations: { readOnly: true } })
  expect((await forked({ tools: [look], first: [['look', {}]], then: [['look', {}]] })).usage.unrecorded).toBe(0)
  const { answers, usage } = await forked({ tools: [look], first: [['look', {}]], then: [['look', { other: 1 }]] })
  expect(answers).toEqual(['look 3'])
  expect(usage.unrecorded).toBe(1)
})

test('results from before the point of the fork come last', async () => {
  const look = counter('look')
  const first: Calls = [['look', {}], ['look', {}], ['look', {}]] // prettier-ignore
  const { answers } = await forked({ tools: [look], first, then: first, afterTurn: 1 })
  expect(answers).toEqual(['look 2', 'look 3', 'look 1'])
})

test('arguments are compared as the tool gets them: with defaults, after hooks, before middleware', async () => {
  const paid: unknown[] = []
  const pay = defineTool({
    name: 'pay',
    description: 'Pays.',
    parameters: z.object({ amount: z.number(), currency: z.string().default('EUR') }),
    handler: (args) => (paid.push(args), `paid ${paid.length}`),
  })
  const options: Partial<HarnessOptions> = {
    hooks: [
      {
        event: 'before_tool_call',
        handler: ({ arguments: text }) => ({ args: { ...(JSON.parse(text) as JsonObject), amount: 1 } }),
      },
    ],
    wrapToolCall: [(call, next) => next({ ...call.args, currency: `secret ${Math.random()}` })],
  }
  const first: Calls = [['pay', { amount: 5 }]]
  const { answers, usage } = await forked({
    tools: [pay],
    options,
    first,
    then: [['pay', { amount: 7, currency: 'EUR' }]],
  })
  expect(answers).toEqual(['paid 1'])
  expect(usage.unrecorded).toBe(0)
  expect(paid).toHaveLength(1)
})

test('a failure is a result too; a call that a policy or a hook stopped has none', async () => {
  const bad = tool('bad', () => new ToolResult({ ok: false, content: 'no', metadata: { error_type: 'Bad' } }))
  const failed = await forked({ tools: [bad], first: [['bad', {}]], then: [['bad', {}]] })
  expect(JSON.parse(failed.toolCallRecords[0]!.output)).toMatchObject({ ok: false, metadata: { error_type: 'Bad' } })
  expect(failed.usage.unrecorded).toBe(0)
  let denies = true
  const rules = { name: 'rules', policy: () => (denies ? ('deny' as const) : null) }
  const pay = counter('pay')
  const log = memoryLog()
  await harnessOf({ model: calling([['pay', {}]]), tools: [pay], use: [rules], log }).run('Go.', { runId: 'run_r' })
  denies = false
  const fork = harnessOf({ model: calling([['pay', {}]]), tools: [pay], use: [rules], log }).fork(
    await eventsOfRun(log, 'run_r'),
    { afterTurn: 0, prompt: 'Again.' },
    { effects: 'recorded' },
  )
  expect((await fork).usage.unrecorded).toBe(1)
  expect(pay.ran()).toBe(0)
})

test('a mock comes before the recording, and a call by a program or for another tool is found as well', async () => {
  const look = counter('look')
  const mocks = { look: () => 'mocked' }
  const mocked = await forked({ tools: [look], first: [['look', {}]], then: [['look', {}]], fork: { mocks } })
  expect(mocked).toMatchObject({ answers: ['mocked'], usage: { unrecorded: 0 } })
  const callTool = defineTool({
    name: 'call_tool',
    description: 'Calls a tool.',
    parameters: z.object({ name: z.string() }),
    resolve: ({ name }) => ({ name, arguments: {} }),
    handler: () => 'This is not reached.',
  })
  const tools = [counter('look'), callTool]
  const through = await forked({ tools, first: [['look', {}]], then: [['call_tool', { name: 'look' }]] })
  expect(through).toMatchObject({ answers: ['look 1'], usage: { unrecorded: 0 } })
})

test('whatever was called, a fork that calls the same in another order gets the recorded results, in the order of each', async () => {
  const call = fc.tuple(fc.constantFrom('look', 'pay'), fc.record({ n: fc.integer({ min: 0, max: 2 }) }))
  const cases = fc
    .array(call, { minLength: 1, maxLength: 8 })
    .chain((first) => fc.tuple(fc.constant(first), fc.shuffledSubarray(first, { minLength: 1 })))
  await fc.assert(
    fc.asyncProperty(cases, async ([first, then]) => {
      const tools = [counter('look'), counter('pay')]
      const { answers, usage } = await forked({ tools, first, then })
      const results = new Map<string, string[]>()
      const counts = { look: 0, pay: 0 }
      for (const [name, args] of first) {
        const key = JSON.stringify([name, args])
        results.set(key, [...(results.get(key) ?? []), `${name} ${(counts[name as 'look'] += 1)}`])
      }
      expect(answers).toEqual(then.map((made) => results.get(JSON.stringify(made))?.shift()))
      expect(usage.unrecorded).toBe(0)
    }),
    rounds(15, 500),
  )
})
