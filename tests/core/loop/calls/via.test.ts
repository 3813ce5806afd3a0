import { expect, test } from 'vitest'
import { z } from 'zod'
import { defineTool, memoryLog } from 'thinharness'
import type { Extension, Hook, JsonObject, RunEvent, ToolSpec } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { eventsOf, harnessOf, ofKind, tool } from '../../../harness/support.js'
import { eventsOfRun } from '../../../support/collect.js'

const callTool: ToolSpec = defineTool({
  name: 'call_tool',
  description: 'Calls a tool by its name.',
  parameters: z.object({ name: z.string(), arguments: z.record(z.string(), z.json()).default({}) }),
  resolve: (call) => call,
  handler: ({ name }) => `There is no tool \`${name}\` to be called like this.`,
})

function payTool(paid: unknown[] = []): ToolSpec {
  return defineTool({
    name: 'pay',
    description: 'Pays.',
    parameters: z.object({ amount: z.number() }),
    handler: ({ amount }) => {
      paid.push(amount)
      return { paid: amount }
    },
  })
}

const calling = (name: string, args: JsonObject = {}): ScriptedModel =>
  new ScriptedModel().calls('call_tool', { name, arguments: args }).says('Done.')

test('a call that stands for another is that call in events, hooks, policies and the record; the reply keeps what the model wrote', async () => {
  const asked: string[] = []
  const before: Hook = {
    event: 'before_tool_call',
    tools: ['pay'],
    handler: (call) => void asked.push(`hook ${call.toolName} ${call.arguments}`),
  }
  const policy: Extension = {
    name: 'watch',
    policy: (call, spec) => (asked.push(`policy ${call.name} ${spec.name} ${JSON.stringify(call.args)}`), null),
    wrapToolCall: (call, next) => (asked.push(`wrap ${call.tool.name} ${JSON.stringify(call.args)}`), next()),
  }
  const paid: unknown[] = []
  const log = memoryLog()
  const harness = harnessOf({
    model: calling('pay', { amount: 5 }),
    tools: [callTool, payTool(paid)],
    hooks: [before],
    use: [policy],
    log,
  })
  const stream = harness.stream('Pay.', { runId: 'run_v' })
  const events = await eventsOf(stream)
  const result = await stream.result
  expect(paid).toEqual([5])
  expect(asked).toEqual(['hook pay {"amount":5}', 'policy pay pay {"amount":5}', 'wrap pay {"amount":5}'])
  const named = { toolName: 'pay', via: 'call_tool' }
  for (const found of [events, await eventsOfRun(log, 'run_v')] as readonly (readonly RunEvent[])[]) {
    expect(ofKind(found, 'call_prepared')).toMatchObject([named])
    expect(ofKind(found, 'tool_call_started')).toMatchObject([{ ...named, arguments: '{"amount":5}' }])
    expect(ofKind(found, 'tool_call_completed')).toMatchObject([{ ...named, ok: true, value: { paid: 5 } }])
  }
  const [, reply, answer] = result.transcript
  expect(reply).toMatchObject({ parts: [{ type: 'tool_call', name: 'call_tool' }] })
  expect(answer).toMatchObject({ role: 'tool', name: 'pay' })
  expect(result.toolCallRecords).toMatchObject([{ call: { name: 'pay', arguments: '{"amount":5}', via: 'call_tool' } }])
})

test('the arguments are checked against the tool that is named, as those of a direct call', async () => {
  const answers = ['call_tool', 'pay'].map(async (name) => {
    const args = name === 'pay' ? { amount: 'five' } : { name: 'pay', arguments: { amount: 'five' } }
    const model = new ScriptedModel().calls(name, args).says('Done.')
    return (await harnessOf({ model, tools: [callTool, payTool()] }).run('Pay.')).toolCallRecords[0]?.output
  })
  const [through, direct] = await Promise.all(answers)
  expect(through).toContain('ValidationError')
  expect(through).toBe(direct)
})

test('a call of a tool that does not exist is answered like a direct one', async () => {
  const [through] = (await harnessOf({ model: calling('pays'), tools: [callTool, payTool()] }).run('Pay.'))
    .toolCallRecords
  const model = new ScriptedModel().calls('pays').says('Done.')
  const [direct] = (await harnessOf({ model, tools: [callTool, payTool()] }).run('Pay.')).toolCallRecords
  expect(through?.output).toBe(direct?.output)
})

test('a call stands for itself when it names itself, the final answer, or nothing that can be understood', async () => {
  const broken = { ...callTool, resolve: () => expect.fail('This cannot be resolved.') }
  for (const [spec, name] of [
    [callTool, 'call_tool'],
    [callTool, 'final_result'],
    [broken, 'pay'],
  ] as const) {
    const paid: unknown[] = []
    const result = await harnessOf({ model: calling(name), tools: [spec, payTool(paid)] }).run('Pay.')
    expect(result.toolCallRecords).toMatchObject([{ call: { name: 'call_tool' } }])
    expect(result.toolCallRecords[0]?.output).toContain(`There is no tool`)
    expect(paid).toEqual([])
  }
})

test('a call that waits for an approval in another process is still the call that it stands for', async () => {
  const log = memoryLog()
  const pay = tool('pay', () => 'paid', { requiresApproval: true })
  const model = calling('pay', { amount: 5 })
  const paused = await harnessOf({ model, tools: [callTool, pay], log }).run('Pay.', { runId: 'run_v' })
  expect(paused.pending).toMatchObject([{ kind: 'approval', toolName: 'pay', arguments: '{"amount":5}' }])
  const stored = JSON.parse(JSON.stringify(paused.resumeState)) as NonNullable<typeof paused.resumeState>
  const again = harnessOf({ model, tools: [callTool, pay], log })
  const { callId } = paused.pending[0]!
  const result = await again.resume(stored, [{ callId, approved: true }])
  expect(result.toolCallRecords).toMatchObject([
    { call: { name: 'pay', via: 'call_tool' }, approval: { approved: true } },
  ])
  using nobody = new ScriptedModel()
  const replayed = await harnessOf({ model: nobody, tools: [callTool, pay] }).replay(await eventsOfRun(log, 'run_v'))
  expect(replayed.toolCallRecords).toEqual(result.toolCallRecords)
})

test('failures count against the budget of the tool that is named', async () => {
  const broken = tool('pay', (_, { callId }) => Promise.reject(new TypeError(callId)), { maxRetries: 0 })
  const refused = defineTool({ ...payOf(), maxRetries: 0 })
  const run = harnessOf({ model: calling('pay', { amount: 'five' }), tools: [callTool, refused], toolRetries: 5 }).run(
    'Pay.',
  )
  await expect(run).rejects.toMatchObject({
    code: 'tool_retries_exceeded',
    message: expect.stringContaining('`pay`') as string,
  })
  const result = await harnessOf({ model: calling('pay'), tools: [callTool, broken] }).run('Pay.')
  expect(result.toolCallRecords[0]?.output).toContain('TypeError')
})

function payOf() {
  const parameters = z.object({ amount: z.number() })
  return { name: 'pay', description: 'Pays.', parameters, handler: () => 'paid' }
}

test('a run whose calls stand for others is found to go in circles', async () => {
  const model = new ScriptedModel().always(({ turn }) =>
    turn > 20 ? 'Done.' : { calls: [{ name: 'call_tool', arguments: { name: 'pay', arguments: { amount: 5 } } }] },
  )
  const run = harnessOf({ model, tools: [callTool, payTool()], stall: { stopAfter: 4 } }).run('Pay.')
  await expect(run).rejects.toMatchObject({
    code: 'limit_reached',
    message: expect.stringContaining('nothing new') as string,
  })
})
