import { expect, test } from 'vitest'
import { Harness } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { tool } from '../../../harness/support.js'

test('a call that has to be alone is refused together with others, which run; the model can call it again', async () => {
  const ran: string[] = []
  const plan = tool('plan', () => void ran.push('plan'), { sequential: 'alone' })
  const look = tool('look', () => void ran.push('look'))
  const model = new ScriptedModel()
    .callsAll([
      { name: 'plan', arguments: {} },
      { name: 'look', arguments: {} },
    ])
    .calls('plan')
    .says('Done.')
  // A tool in `use` is a tool of the run.
  await using harness = new Harness({ model, tools: [look], use: [plan] })
  const { transcript } = await harness.run('Go.')
  expect(ran).toEqual(['look', 'plan'])
  const refused = transcript.find((entry) => entry.role === 'tool' && entry.name === 'plan')
  expect(refused).toMatchObject({ isError: true })
  expect(JSON.stringify(refused)).toContain('has to be the only call of a reply')
})
