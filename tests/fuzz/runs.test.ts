import { mkdir, readFile, readdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import fc from 'fast-check'
import { beforeAll, expect, test } from 'vitest'
import { Harness } from 'thinharness'
import type { Envelope, HarnessOptions } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { parallelLlm, subagent } from 'thinharness/tools'
import { argumentsOf, expectSound, malformedJson, naughtyText, SECRET } from './support.js'
import { temporaryFolder } from '../support/folder.js'
import { rounds, timeLimit } from '../support/length.js'

const folder = temporaryFolder()
let root = ''

beforeAll(async () => {
  root = join(folder, 'root')
  const outside = join(folder, 'outside')
  for (const path of [root, outside]) await mkdir(path)
  await writeFile(join(outside, 'secret.txt'), SECRET)
  await writeFile(join(outside, 'prompts.json'), JSON.stringify([SECRET]))
  await writeFile(join(root, 'prompts.json'), '["one","two"]')
  await symlink(outside, join(root, 'link'))
})

const prompts = fc.array(naughtyText, { maxLength: 3 })
const path = fc.oneof(fc.constantFrom('prompts.json', '../outside/prompts.json', 'link/prompts.json'), naughtyText)
const source = fc.oneof(
  fc.record({ kind: fc.constant('inline'), prompts }),
  fc.record({ kind: fc.constant('file'), path }),
  naughtyText,
)
const agent = fc.option(fc.oneof({ weight: 3, arbitrary: fc.constantFrom('default', 'helper') }, naughtyText), {
  nil: undefined,
})

/** Tools whose calls start runs: they are called in one. */
const ROWS = {
  parallel_llm: {
    tool: parallelLlm(),
    drawn: argumentsOf(parallelLlm(), { source }),
    options: () => ({ tools: [parallelLlm()] }),
  },
  subagent: {
    tool: subagent(),
    drawn: fc.record({ task: naughtyText, agent }),
    options: () => ({ subagents: [{ name: 'helper', description: 'Helps.', tools: [] }] }),
  },
} satisfies Record<string, { tool: unknown; drawn: fc.Arbitrary<unknown>; options: () => HarnessOptions }>

test.each(Object.keys(ROWS) as (keyof typeof ROWS)[])(
  'whatever `%s` receives in a run, every call has a valid answer and the run continues',
  async (name) => {
    const { drawn, options } = ROWS[name]
    const call = fc.oneof({ weight: 4, arbitrary: drawn.map((args) => JSON.stringify(args)) }, malformedJson)
    let succeeded = 0
    await fc.assert(
      fc.asyncProperty(fc.array(call, { minLength: 1, maxLength: 6 }), async (calls) => {
        const model = new ScriptedModel().always(({ messages, turn }) => {
          const isTop = messages.some((each) => each.role === 'user' && each.content === 'Begin the test.')
          return isTop && turn === 0 ? { calls: calls.map((args) => ({ name, arguments: args })) } : 'Answered.'
        })
        await using harness = new Harness({ model, root, builtinTools: [], toolRetries: 20, ...options() })
        const result = await harness.run('Begin the test.')

        expect(result.text).toBe('Answered.')
        expect(result.toolCallRecords).toHaveLength(calls.length)
        for (const { output } of result.toolCallRecords) if (expectSound(JSON.parse(output) as Envelope).ok) succeeded++
        expect(JSON.stringify(model.requests)).not.toContain(SECRET)
      }),
      rounds(20),
    )
    expect(succeeded).toBeGreaterThan(0)
    expect((await readdir(join(folder, 'outside'))).sort()).toEqual(['prompts.json', 'secret.txt'])
    expect(await readFile(join(folder, 'outside', 'prompts.json'), 'utf8')).toBe(JSON.stringify([SECRET]))
  },
  timeLimit(300_000),
)
