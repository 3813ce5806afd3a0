import { expect, test } from 'vitest'
import { Harness, defineTool } from 'thinharness'
import type { Extension, Hook } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'

const look = (done: string[]) =>
  defineTool({
    name: 'look',
    description: 'Looks.',
    parameters: { type: 'object', properties: {} },
    handler: () => {
      done.push('looked')
      return 'Found.'
    },
  })

test.each([' look', 'look\n', '\tlook ', 'functions.look', ' functions.look ', 'functions.look:0'])(
  'a name of a tool in the spelling of a model is that tool, for everything that looks at the call: %j',
  async (name) => {
    const done: string[] = []
    const seen: string[] = []
    const hook: Hook = {
      event: 'before_tool_call',
      tools: ['look'],
      handler: ({ toolName }) => void seen.push(toolName),
    }
    const policy: Extension = { name: 'watch', policy: ({ name: called }) => (seen.push(called), null) }
    using model = new ScriptedModel().calls(name).says('Done.')
    const harness = new Harness({ model, tools: [look(done)], builtinTools: [], hooks: [hook], use: [policy] })
    const stream = harness.stream('Go.')
    for await (const event of stream) if (event.kind === 'tool_call_started') seen.push(event.toolName)
    const { toolCallRecords, transcript } = await stream.result
    expect([done, seen]).toEqual([['looked'], ['look', 'look', 'look']])
    expect(toolCallRecords[0]?.call.name).toBe('look')
    expect(JSON.stringify(transcript)).not.toContain(JSON.stringify(name))
  },
)

test('a denied tool is denied in every spelling', async () => {
  const done: string[] = []
  const deny: Extension = {
    name: 'no',
    policy: ({ name }) => (name === 'look' ? { decision: 'deny', reason: 'No.' } : null),
  }
  using model = new ScriptedModel().calls(' functions.look ').says('Done.')
  await new Harness({ model, tools: [look(done)], builtinTools: [], use: [deny] }).run('Go.')
  expect(done).toEqual([])
})

test('an answer under a name in such a spelling is the answer', async () => {
  using model = new ScriptedModel().calls('functions.final_result', { n: 1 })
  const outputType = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] } as const
  const harness = new Harness({ model, outputType, outputMode: 'tool', builtinTools: [] })
  expect((await harness.run('Go.')).output).toEqual({ n: 1 })
})
