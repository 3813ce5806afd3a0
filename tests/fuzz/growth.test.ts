import { readdir } from 'node:fs/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, test } from 'vitest'
import type { JsonObject, ToolSpec } from 'thinharness'
import { bash, fileTools, jsonlSearch } from 'thinharness/tools'
import { loadSkills } from '#toolbox/skills/load-skills.js'
import { oddServer, toolsOf } from '../adapters/mcp/support.js'
import { call, folderWith } from '../toolbox/support.js'
import { INJECTIONS } from './support.js'
import { times, timeLimit } from '../support/length.js'

const ROUNDS = times(12, 1_000)
const WARM_UP = 10
const MB = 1 << 20

async function usedBytes(): Promise<number> {
  setFlagsFromString('--expose_gc')
  const collect = runInNewContext('gc') as () => void
  // What the last calls left is let go of in the turns that follow.
  for (let turn = 0; turn < 3; turn++) {
    collect()
    await new Promise(setImmediate)
  }
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

async function openDescriptors(): Promise<number> {
  return process.platform === 'linux' ? (await readdir('/proc/self/fd')).length : 0
}

test('any number of calls leaves no memory and no open file', { timeout: timeLimit(600_000) }, async () => {
  const long = `${'x'.repeat(300_000)}\n`
  const root = await folderWith({
    'a.txt': long,
    'b.jsonl': `{"a":"${'y'.repeat(300_000)}"}\n{"a":1}\n`,
    'c/d.txt': 'needle\n',
  })
  const skills = await folderWith({
    'demo/SKILL.md': '---\nname: demo\ndescription: A demo.\n---\n',
    'demo/a.sh': 'echo a',
  })
  const server = oddServer(
    `{ 'tools/list': () => ({ tools: [tool('echo')] }), 'tools/call': () => text('z'.repeat(300000)) }`,
  )
  const loaded = await loadSkills({ dirs: [skills] })
  const options = { root, maxOutputFiles: 5 }
  const all: readonly ToolSpec[] = [
    ...[...fileTools(options), jsonlSearch(options), bash({ root }), ...loaded.tools],
    ...(await toolsOf(server)),
  ]
  const tools = new Map(all.map((tool) => [tool.name, tool]))
  const once = async (round: number, withPrograms: boolean): Promise<void> => {
    const text = INJECTIONS[round % INJECTIONS.length] ?? ''
    const calls: [string, JsonObject][] = [
      ['read', { path: 'a.txt' }],
      ['read', { path: `${text}-${round}` }],
      ['write', { path: 'c/e.txt', content: `${long}${round}` }],
      ['edit', { edits: [{ path: 'c/d.txt', old_string: 'needle', new_string: 'needle' }] }],
      ['search', { query: `x{10}|needle|${round}` }],
      ['search', { query: `(${text}` }],
      ['list', { recursive: true }],
      ['glob', { pattern: `**/*${round}*` }],
      ['jsonl_search', { where: [{ field: 'a', op: 'contains', value: `y${round}` }] }],
      ['jsonl_search', { query: 'y' }],
      ['echo', { text: `${text}${round}` }],
      ['skill_read', { skill_name: `demo${round % 2 === 0 ? '' : round}` }],
    ]
    if (withPrograms)
      calls.push(['bash', { command: 'yes | head -c 300000' }], ['skill_run', { skill_name: 'demo', script: 'a.sh' }])
    for (const [name, args] of calls) await call(tools.get(name)!, args)
  }
  for (let round = 0; round < WARM_UP; round++) await once(round, round % 5 === 0)
  const before = { bytes: await usedBytes(), descriptors: await openDescriptors() }
  for (let round = WARM_UP; round < WARM_UP + ROUNDS; round++) await once(round, round % 5 === 0)
  const grownBytes = (await usedBytes()) - before.bytes

  // A few per cent of what went through; the caches of the engine itself are not still.
  expect(grownBytes).toBeLessThan(8 * MB)
  expect(await openDescriptors()).toBeLessThanOrEqual(before.descriptors + 1)
  await server.close()
})
