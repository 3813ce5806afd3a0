import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { onTerminal, project, shell } from '../tests/command/shell.js'

/** The example as `init` makes it. */
async function codingAgent(): Promise<string> {
  const folder = project({ config: null })
  expect((await shell(['init', 'coder', '--example', 'coding-agent'], { folder })).code).toBe(0)
  return join(folder, 'coder')
}

const source = (folder: string): string => readFileSync(join(folder, 'project', 'slug.mjs'), 'utf8')

test('coding-agent: in the terminal it plans, shows the diff of its edit, and tests', async () => {
  const folder = await codingAgent()
  const before = source(folder)
  const { press, ended } = onTerminal(['chat'], { folder })
  await press('› ', 'Make the tests pass.\r')
  await press('carry it out, in mode build', '\r')
  await press('y allow', 'n\r')
  await press('Why not?', 'Not today.\r')
  await press('I have changed nothing', 'Now do it.\r')
  expect(source(folder)).toBe(before)
  await press('y allow', 'y\r')
  await press('Both tests pass now.', '/exit\r')
  const { code, stdout } = await ended
  expect(code).toBe(0)
  expect(stdout).toContain('- return title')
  expect(source(folder)).not.toBe(before)
})

test('coding-agent: a program of its own with the same agent asks nobody, and tells whether the tests pass', async () => {
  const folder = await codingAgent()
  const { status, stdout } = spawnSync(process.execPath, ['ci.js'], { cwd: folder, encoding: 'utf8' })
  expect(stdout).toMatch(/Both tests pass now\.\nThe tests pass\.\n$/)
  expect(status).toBe(0)
  expect(stdout).toContain('→ bash {"command":"node --test"}')
})

test('coding-agent: without a terminal the plan waits, and nothing is changed', async () => {
  const folder = await codingAgent()
  const before = source(folder)
  const { code } = await shell(['chat'], { folder, input: 'Make the tests pass.\n' })
  expect([code, source(folder)]).toEqual([3, before])
})
