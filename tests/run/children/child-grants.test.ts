import { resolve } from 'node:path'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { HarnessError } from 'thinharness'
import type { ToolReach, ToolSpec } from 'thinharness'
import { fetchUrl, fileTools, subagent } from 'thinharness/tools'
import { ScriptedModel } from 'thinharness/testing'
import { checkGrants } from '#run/children/grants.js'
import { harnessOf, tool } from '../../harness/support.js'
import { rounds } from '../../support/length.js'

const ROOT = '/work/space'

/** Things of the world that a tool may touch, and what authors write for them. */
const WORLD: Readonly<
  Record<keyof ToolReach, { readonly things: readonly string[]; readonly names: readonly string[] }>
> = {
  reads: {
    things: ['/work/space/a', '/work/space/a/b', '/work/spaces', '/etc/keys'],
    names: ['.', 'a', './a/b', '/', '/work', '/etc', '../spaces'],
  },
  writes: { things: ['/work/space/a', '/etc/keys'], names: ['.', 'a', '/', '/work/space/a/', 'a/../..'] },
  hosts: {
    things: ['example.com', 'a.example.com', 'evilexample.com', 'b.a.example.com'],
    names: ['*', '*.example.com', 'example.com', 'A.example.com', '*.a.example.com'],
  },
  programs: { things: ['git', 'bash'], names: ['*', 'git', 'bash'] },
  secrets: { things: ['KEY', 'TOKEN'], names: ['KEY', 'TOKEN'] },
}
const KINDS = Object.keys(WORLD) as (keyof ToolReach)[]

/** What names mean, written down without the code under test. */
const TOUCHES: Readonly<Record<keyof ToolReach, (name: string, thing: string) => boolean>> = {
  reads: below,
  writes: below,
  hosts: (name, thing) =>
    name === '*' || (name.startsWith('*.') ? thing.endsWith(name.slice(1)) : thing === name.toLowerCase()),
  programs: (name, thing) => name === '*' || name === thing,
  secrets: (name, thing) => name === thing,
}

function below(name: string, thing: string): boolean {
  const folder = resolve(ROOT, name)
  return folder === '/' || thing === folder || thing.startsWith(`${folder}/`)
}

const reaches: fc.Arbitrary<ToolReach> = fc.record(
  Object.fromEntries(KINDS.map((kind) => [kind, fc.subarray([...WORLD[kind].names], { maxLength: 2 })])),
  { requiredKeys: [] },
)
const asks = (): boolean => true
const tools = fc.record({
  name: fc.constantFrom('a', 'b', 'c', 'd'),
  reach: fc.option(reaches, { nil: undefined, freq: 5 }),
  requiresApproval: fc.constantFrom(false, true, asks),
})
const toolSets = fc
  .uniqueArray(tools, { selector: ({ name }) => name, maxLength: 4 })
  .map((given) => given.map(({ name, reach, requiresApproval }) => toolWith(name, reach, requiresApproval)))

function toolWith(name: string, reach: ToolReach | undefined, requiresApproval: boolean | (() => boolean)): ToolSpec {
  return tool(name, undefined, { requiresApproval, ...(reach !== undefined && { reach }) })
}

/** Each thing that a set of tools can touch without asking anybody, and each that it can touch at all. */
function grantsOf(set: readonly ToolSpec[]): {
  readonly freely: ReadonlySet<string>
  readonly atAll: ReadonlySet<string>
} {
  const things = (given: readonly ToolSpec[]): ReadonlySet<string> =>
    new Set(
      KINDS.flatMap((kind) =>
        WORLD[kind].things
          .filter((thing) =>
            given.some(({ reach }) => reach === undefined || reach[kind]?.some((name) => TOUCHES[kind](name, thing))),
          )
          .map((thing) => `${kind} ${thing}`),
      ),
    )
  return { freely: things(set.filter((each) => (each.requiresApproval ?? false) === false)), atAll: things(set) }
}

describe('the capabilities of a child run', () => {
  test("are a subset of its parent's, with and without a person: whatever it is given, or it is rejected", () => {
    const told = { allowed: 0, refused: 0 }
    fc.assert(
      fc.property(toolSets, toolSets, (parent, child) => {
        try {
          checkGrants(child, { tools: new Map(parent.map((each) => [each.name, each])), root: ROOT })
        } catch (error) {
          expect(error).toBeInstanceOf(HarnessError)
          told.refused += 1
          return
        }
        told.allowed += 1
        const [above, given] = [grantsOf(parent), grantsOf(child)]
        expect([...given.freely].filter((thing) => !above.freely.has(thing))).toEqual([])
        expect([...given.atAll].filter((thing) => !above.atAll.has(thing))).toEqual([])
      }),
      rounds(2_000),
    )
    expect(Math.min(told.allowed, told.refused)).toBeGreaterThan(100)
  })

  test("are never rejected if they are some of its parent's own tools", () => {
    fc.assert(
      fc.property(
        toolSets.chain((parent) => fc.tuple(fc.constant(parent), fc.subarray([...parent]))),
        ([parent, child]) => {
          checkGrants(child, { tools: new Map(parent.map((each) => [each.name, each])), root: ROOT })
        },
      ),
    )
  })

  const reading = fileTools().slice(0, 1)
  const spawner = (given: readonly ToolSpec[], reach?: ToolReach): ToolSpec =>
    tool('start', async (_args, { spawn }) => (await spawn({ prompt: 'Below.', tools: given }).result).text, {
      ...(reach !== undefined && { reach }),
    })
  const byPrompt = (): ScriptedModel =>
    ScriptedModel.each(({ transcript }) =>
      JSON.stringify(transcript).includes('Below.')
        ? new ScriptedModel().says('Child.')
        : new ScriptedModel().calls('start').says('Done.'),
    )

  test.each<[string, ToolSpec, string]>([
    [
      'within what the tool that starts it states',
      spawner([fetchUrl({ allowHosts: ['a.test'] })], { hosts: ['*.test'] }),
      'Child.',
    ],
    ['of a tool that states nothing', spawner([fetchUrl()]), 'Child.'],
    [
      'beyond it',
      spawner([fetchUrl({ allowHosts: ['b.example'] })], { hosts: ['*.test'] }),
      'A child run cannot have `fetch_url`, which reaches `b.example` (hosts): no tool of its parent does',
    ],
    [
      'and states nothing itself',
      spawner([tool('own')], { hosts: ['*.test'] }),
      'A child run cannot have `own`, which does not state its `reach`: no tool of its parent does',
    ],
  ])('are reported: %s', async (_name, start, expected) => {
    await using harness = harnessOf({ model: byPrompt(), tools: [...reading, start] })

    const { transcript } = await harness.run('Go.')

    expect(JSON.stringify(transcript.filter(({ role }) => role === 'tool'))).toContain(expected)
  })

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
