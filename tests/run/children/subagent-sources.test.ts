import { afterEach, describe, expect, test, vi } from 'vitest'
import { ScriptedModel } from 'thinharness/testing'
import { fileTools } from 'thinharness/tools'
import { folderWith } from '../../toolbox/support.js'
import { HEADING, skillText } from '../../toolbox/skills/support.js'
import { envelopeIn, handing } from './subagents-support.js'
import { harnessOf } from '../../harness/support.js'

afterEach(() => void vi.unstubAllEnvs())

describe('the tools and settings of a subagent', () => {
  test("SU-07 SU-08 a subagent that inherits tools has its caller's skills and their summary; another has none", async () => {
    const dir = await folderWith({ 'sums/SKILL.md': skillText('sums', 'Adds.', 'Add them up.') })
    const plays = { a: [{ calls: [{ name: 'skill_read', arguments: { skill_name: 'sums' } }] }, 'Read.'], b: ['B.'] }
    const model = handing([{ task: 'a' }, { task: 'b', agent: 'bare' }], plays)
    const subagents = [{ name: 'bare', description: 'Has nothing.', tools: [] }]
    const result = await harnessOf({ model, skills: { dirs: [dir] }, subagents, toolExecution: 'sequential' }).run(
      'Go.',
    )
    expect(result.toolCallRecords.map((record) => envelopeIn(record).content)).toEqual(['Read.', 'B.'])
    const [, first, read, bare] = model.requests
    expect(first?.constants.tools.map(({ name }) => name)).toEqual(['skill_read', 'skill_run'])
    expect(first?.constants.instructions).toContain(`${HEADING}\n- sums - Adds.`)
    expect(JSON.stringify(read?.heard)).toContain('Add them up.')
    expect([bare?.constants.tools, bare?.constants.instructions]).toEqual([[], ''])
  })

  test('SU-09 SU-01 a subagent uses the tools that were created for it', async () => {
    const root = await folderWith({ 'a.txt': 'A' })
    const own = await folderWith({ 'a.txt': 'its own text' })
    const plays = { a: [{ calls: [{ name: 'read', arguments: { path: 'a.txt' } }] }, 'Read.'] }
    const model = handing([{ task: 'a', agent: 'own' }], plays)
    const tools = fileTools({ root: own })
    await harnessOf({ model, root, subagents: [{ name: 'own', description: 'Elsewhere.', tools }] }).run('Go.')
    expect(JSON.stringify(model.requests[2]?.heard)).toContain('its own text')
  })

  test("SU-10 a subagent's model uses the key of its own provider, never that of its caller’s model", async () => {
    vi.stubEnv('ANTHROPIC_API_KEY', '')
    vi.stubEnv('OPENAI_API_KEY', 'a-key-of-another-provider')
    const agent = { name: 'other', description: 'Other.', tools: [], model: 'anthropic:claude-sonnet-5' }
    const model = new ScriptedModel().calls('subagent', { task: 'a', agent: 'other' }).says('Done.')
    const result = await harnessOf({ model, subagents: [agent] }).run('Go.')
    expect(envelopeIn(result.toolCallRecords[0])).toMatchObject({ ok: false, metadata: { error_type: 'missing_key' } })
  })
})
