import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { HarnessError } from 'thinharness'
import type { ToolSpec } from 'thinharness'
import { fetchUrl, fileTools, subagent } from 'thinharness/tools'
import { ScriptedModel } from 'thinharness/testing'
import { checkGrants } from '#run/children/child-approvals.js'
import { harnessOf, tool } from '../../harness/support.js'
import { rounds } from '../../support/length.js'

const asks = (): boolean => true
const approvals = [false, true, 'always', asks] as const
const toolSets = fc
  .uniqueArray(fc.record({ name: fc.constantFrom('a', 'b', 'c'), requiresApproval: fc.constantFrom(...approvals) }), {
    selector: ({ name }) => name,
  })
  .map((options) => options.map(({ name, requiresApproval }) => tool(name, undefined, { requiresApproval })))
const byName = (tools: readonly ToolSpec[]): ReadonlyMap<string, ToolSpec> =>
  new Map(tools.map((each) => [each.name, each]))

/** Whether a person may be asked less often by the first rule than by the second. */
function asksLess(rule: ToolSpec['requiresApproval'], other: ToolSpec['requiresApproval']): boolean {
  if (other === false) return false
  if (other === 'always') return rule !== 'always'
  if (other === true) return rule === false || typeof rule === 'function'
  return rule === false
}

describe('the tools of a child run', () => {
  test("require no less approval than its parent's of the same name, or the child is rejected", () => {
    const seen = { allowed: 0, refused: 0 }
    fc.assert(
      fc.property(toolSets, toolSets, (parent, child) => {
        const above = byName(parent)
        const isLess = child.some(({ name, requiresApproval }) => {
          const other = above.get(name)
          return other !== undefined && asksLess(requiresApproval, other.requiresApproval)
        })
        if (isLess) expect(() => checkGrants(child, above)).toThrow(HarnessError)
        else expect(() => checkGrants(child, above)).not.toThrow()
        seen[isLess ? 'refused' : 'allowed'] += 1
      }),
      rounds(2_000),
    )
    expect(Math.min(seen.allowed, seen.refused)).toBeGreaterThan(100)
  })

  test("are never rejected if they are some of its parent's own tools", () => {
    fc.assert(
      fc.property(
        toolSets.chain((parent) => fc.tuple(fc.constant(parent), fc.subarray([...parent]))),
        ([parent, child]) => checkGrants(child, byName(parent)),
      ),
    )
  })

  const reading = fileTools().slice(0, 1)

  test('of an agent with its own tools are those that `describe` lists', async () => {
    const search = fetchUrl({ allowHosts: ['docs.test'] })
    const agent = { name: 'searcher', description: 'Searches.', tools: [search] }
    const model = new ScriptedModel()
      .calls('subagent', { task: 'Search.', agent: 'searcher' })
      .says('Found.')
      .says('Done.')
    await using harness = harnessOf({ model, tools: reading, subagents: [agent] })

    const description = await harness.describe()

    expect((await harness.run('Go.')).text).toBe('Done.')
    expect(model.heard.at(-1)).toMatchObject({ outputs: [{ ok: true, content: 'Found.' }] })
    expect(description.tools.map(({ name, reach }) => [name, reach])).toEqual([
      ['subagent', { hosts: ['docs.test'] }],
      ['read', { reads: ['.'] }],
    ])
    expect(description.agents).toMatchObject([{ name: 'searcher', tools: [{ name: 'fetch_url', approval: 'never' }] }])
    expect(String(description).split('\n').slice(-3)).toEqual([
      'agent     searcher',
      expect.stringMatching(/^tool {6}fetch_url: own, without approval, /),
      '          hosts docs.test',
    ])
    const inner = { name: 'odd', description: 'Says nothing.', tools: [tool('own')] }
    expect(subagent({ agents: [agent, inner] })).not.toHaveProperty('reach')
    expect(subagent({ agents: [{ name: 'heir', description: 'Inherits.', tools: 'inherit' }] }).reach).toEqual({})
  })
})
