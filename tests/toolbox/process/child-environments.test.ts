import { chmod, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { callTool } from 'thinharness'
import type { JsonObject } from 'thinharness'
import { bash, fileTools } from 'thinharness/tools'
import { loadSkills } from '#toolbox/skills/load-skills.js'
import { call as callServer, oddServer, textOf } from '../../adapters/mcp/support.js'
import { folderWith } from '../support.js'

const env = { NAMED_KEY: 'for this one' }

/** Keys as hosts have them, none of them named for anybody. */
const SECRETS = [
  'OPENAI_API_KEY',
  'AWS_SECRET_ACCESS_KEY',
  'GITHUB_TOKEN',
  'DATABASE_URL',
  'NPM_CONFIG__AUTH',
  'LD_PRELOADED',
]

/** A program that writes down its environment where a test finds it, and stands in for another one. */
async function noting(root: string): Promise<{ readonly program: string; readonly noted: () => Promise<string> }> {
  const [program, notes] = [join(dirname(root), 'program'), join(dirname(root), 'notes')]
  await writeFile(program, `#!/bin/sh\nenv > '${notes}'\n`)
  await chmod(program, 0o755)
  return { program, noted: () => readFile(notes, 'utf8') }
}

async function skillRun(files: Record<string, string>, script: string, runners = {}): Promise<string> {
  const dir = await folderWith({ 'demo/SKILL.md': '---\nname: demo\ndescription: A demo.\n---\n', ...files })
  // The runner notes its environment outside the folder of the skill.
  const sandbox = Object.keys(runners).length > 0 ? 'off' : 'auto'
  const { tools } = await loadSkills({ dirs: [dir], env, runners, sandbox })
  const tool = tools.find(({ name }) => name === 'skill_run')
  if (tool === undefined) throw new Error('There is no `skill_run`.')
  return (await callTool(tool, { skill_name: 'demo', script })).content
}

const STARTED: Record<string, { readonly named: boolean; readonly environment: () => Promise<string> }> = {
  'a shell command': {
    named: true,
    environment: async () => (await callTool(bash({ root: await folderWith(), env }), { command: 'env' })).content,
  },
  'a script of a skill': { named: true, environment: () => skillRun({ 'demo/a.sh': 'env' }, 'a.sh') },
  'the runner of a script': {
    named: true,
    async environment() {
      const { program, noted } = await noting(await folderWith())
      await skillRun({ 'demo/a.odd': '' }, 'a.odd', { '.odd': [program] })
      return noted()
    },
  },
  'an MCP server': {
    named: true,
    async environment() {
      const list = `{ 'tools/list': () => ({ tools: [tool('env')] }), 'tools/call': () => text(Object.entries(process.env).join('\\n').replaceAll(',', '=')) }`
      const server = oddServer(list, { env })
      onTestFinished(() => server.close())
      return textOf(callServer(server, 'env'))
    },
  },
  ripgrep: {
    named: false,
    async environment() {
      const root = await folderWith({ 'a.txt': 'needle\n' })
      const { program, noted } = await noting(root)
      const search = fileTools({ root, ripgrep: program }).find(({ name }) => name === 'search')
      const args: JsonObject = { query: 'needle' }
      if (search !== undefined) await callTool(search, args)
      return noted()
    },
  },
}

describe.skipIf(process.platform === 'win32')('the environment of a process that a tool starts', () => {
  test.each(Object.entries(STARTED))(
    '%s holds the variables that were named, and no key of the host',
    async (_, { named, environment }) => {
      for (const name of SECRETS) vi.stubEnv(name, `secret-of-${name}`)
      onTestFinished(() => {
        vi.unstubAllEnvs()
      })
      const text = await environment()

      expect(text).toContain('PATH=')
      expect(text.includes('NAMED_KEY=for this one')).toBe(named)
      expect(SECRETS.filter((name) => text.includes(name))).toEqual([])
    },
  )
})
