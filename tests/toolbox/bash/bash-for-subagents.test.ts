import { expect, test } from 'vitest'
import { Harness, HarnessError } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { bash } from 'thinharness/tools'
import { envelopeIn } from '../../run/children/subagents-support.js'
import { folderWith } from '../support.js'

const COMMAND = { name: 'bash', arguments: { command: 'echo ran' } }

/** A run that hands a task to an agent, which tries a command. */
function asking(agent: string, args: object = {}): ScriptedModel {
  return new ScriptedModel().always(({ messages, turn }) => {
    if (turn > 0) return 'Done.'
    const isTask = messages.some((each) => each.role === 'user' && String(each.content).startsWith('Try it.'))
    return { calls: [isTask ? COMMAND : { name: 'subagent', arguments: { task: 'Try it.', agent, ...args } }] }
  })
}

test('BA-13 a subagent has `bash` only if its host passes it; it cannot get it by name or from a caller without it', async () => {
  const root = await folderWith()
  const helper = { name: 'helper', description: 'Helps.' }
  const byName: unknown = [{ ...helper, tools: ['bash'] }]
  expect(() => new Harness({ subagents: byName as [] })).toThrow(HarnessError)

  const agents = { inherits: 'inherit', none: [], given: [bash()] } as const
  const told: Record<string, unknown> = {}
  for (const [name, tools] of Object.entries(agents)) {
    const harness = new Harness({ model: asking(name), root, subagents: [{ ...helper, name, tools }] })
    for await (const event of harness.stream('Go.')) {
      if (event.kind !== 'run_completed' || event.agentName !== name) continue
      told[name] = envelopeIn(event.result.toolCallRecords[0]).content.split(/[.\n]/)[0]
    }
    await harness.close()
  }
  expect(told).toEqual({ inherits: 'unknown tool bash', none: 'unknown tool bash', given: 'stdout:' })
})

test('BA-13 the arguments of the subagent tool cannot add `bash`', async () => {
  const model = asking('inherits', { tools: ['bash'] })
  const subagents = [{ name: 'inherits', description: 'Helps.', tools: 'inherit' }] as const
  const harness = new Harness({ model, root: await folderWith(), subagents })

  const { toolCallRecords } = await harness.run('Go.')

  expect(envelopeIn(toolCallRecords[0])).toMatchObject({ ok: false, metadata: { error_type: 'ValidationError' } })
  await harness.close()
})
