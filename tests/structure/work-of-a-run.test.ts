import { expect, test, vi } from 'vitest'
import { Harness, defineTool } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'

const hashed: string[] = []
vi.mock(import('#util/platform/sha256.js'), async (load) => {
  const { sha256, ...others } = await load()
  const counting = (text: string): string => {
    hashed.push(text)
    return sha256(text)
  }
  return { ...others, sha256: counting }
})

const look = defineTool({
  name: 'look',
  description: 'Looks something up.',
  parameters: { type: 'object', properties: {}, additionalProperties: false },
  handler: () => 'Found.',
})

test('the configuration of a harness is hashed by its first run only', async () => {
  using model = new ScriptedModel().says('One.').says('Two.')
  const harness = new Harness({ model, tools: [look], instructions: 'Hash me once.' })
  await harness.run('First.')
  expect(hashed.some((text) => text.includes('Hash me once.'))).toBe(true)
  hashed.length = 0
  await harness.run('Second.')
  expect(hashed).toEqual([])
})
