import { mkdir, readFile, readdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import fc from 'fast-check'
import { beforeAll, expect, test } from 'vitest'
import { callTool } from 'thinharness'
import type { ToolSpec } from 'thinharness'
import { fileTools, jsonlSearch } from 'thinharness/tools'
import { argumentsOf, expectSound, malformedJson, SECRET } from './support.js'
import { temporaryFolder } from '../support/folder.js'
import { rounds, timeLimit } from '../support/length.js'

const folder = temporaryFolder()
let root = ''

beforeAll(async () => {
  root = join(folder, 'root')
  const outside = join(folder, 'outside')
  for (const path of [root, outside]) await mkdir(path)
  await writeFile(join(outside, 'secret.txt'), SECRET)
  await writeFile(join(outside, 'secret.jsonl'), `{"secret":"${SECRET}"}\n`)
  await writeFile(join(root, 'a.txt'), 'one\ntwo\n')
  await writeFile(join(root, 'rows.jsonl'), '{"a":1}\nnot json\n{"a":12345678901234567890}\n')
  await symlink(outside, join(root, 'link'))
  await symlink(join(outside, 'secret.txt'), join(root, 'file-link'))
})

const TOOLS = ['read', 'write', 'edit', 'search', 'list', 'glob', 'jsonl_search', 'search, with ripgrep']

function toolNamed(title: string): ToolSpec {
  const engine = title.endsWith('ripgrep') ? {} : ({ ripgrep: false } as const)
  const options = { searchTimeoutMs: 2_000, ...engine }
  const found = [...fileTools(options), jsonlSearch(options)].find(({ name }) => name === title.split(',')[0])
  if (found === undefined) throw new Error(`There is no tool ${title}.`)
  return found
}

test.each(TOOLS)(
  'whatever `%s` is given, it stays in its root and gives a bounded result',
  async (name) => {
    const tool = toolNamed(name)
    await fc.assert(
      fc.asyncProperty(argumentsOf(tool), async (args) => {
        const { content } = expectSound(await callTool(tool, args, { root }))
        expect(content.length).toBeLessThan(60_000)
      }),
      rounds(name.endsWith('ripgrep') ? 25 : 80),
    )
    expect(await readdir(join(folder, 'outside'))).toEqual(['secret.jsonl', 'secret.txt'])
    expect(await readFile(join(folder, 'outside', 'secret.txt'), 'utf8')).toBe(SECRET)
  },
  timeLimit(300_000),
)

test.each(TOOLS.slice(0, 7))(
  'malformed JSON as the arguments of `%s` has an answer',
  async (name) => {
    const tool = toolNamed(name)
    await fc.assert(
      fc.asyncProperty(malformedJson, async (json) => {
        const { content } = expectSound(await callTool(tool, json, { root }))
        expect(content.length).toBeLessThan(60_000)
      }),
      rounds(60),
    )
  },
  timeLimit(300_000),
)
