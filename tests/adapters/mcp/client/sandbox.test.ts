import { spawnSync } from 'node:child_process'
import { readdir, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, test, vi } from 'vitest'
import type { McpStdioOptions } from '#adapters/mcp/index.js'
import { findProgram } from '#toolbox/process/find-program.js'
import { folderWith } from '../../../toolbox/support.js'
import { FORMS, formsHere, onlyPath } from '../../../toolbox/sandbox/support.js'
import { call, oddCommand, oddServer, textOf, toolsOf } from '../support.js'

const here = await formsHere()

const LOOK = `{
  'tools/list': () => ({ tools: [tool('look')] }),
  'tools/call': ({ arguments: { path } }) => {
    const fs = require('node:fs')
    const look = (use) => { try { return use() } catch (error) { return error.code } }
    return text([
      look(() => fs.readFileSync(path, 'utf8')),
      look(() => fs.readdirSync('/proc').filter((name) => /^[0-9]+$/.test(name)).length < 10),
      look(() => fs.writeFileSync('made', 'x') ?? 'made'),
      process.env.KEY,
    ].join(' '))
  },
}`

test.for(FORMS)('MC-45 a server on this machine can run in a sandbox: $form', async ({ form, only }, { skip }) => {
  if (!here.some((each) => each.form === form)) skip()
  const [cwd, outside] = [await folderWith(), await folderWith({ 'a.txt': 'secret' })]
  const options: Partial<McpStdioOptions> = { cwd, env: { KEY: 'named' }, sandbox: 'required', ...only }
  await using server = oddServer(LOOK, options)
  expect(await textOf(call(server, 'look', { path: `${outside}/a.txt` }))).toBe('ENOENT true made named')
  expect(await readdir(cwd)).toEqual(['made'])
})

test('MC-45 `required` does not start a server without one; the default is no sandbox', async () => {
  const [cwd, outside] = [await folderWith(), await folderWith({ 'a.txt': 'secret' })]
  await using open = oddServer(LOOK, { cwd })
  expect(await textOf(call(open, 'look', { path: `${outside}/a.txt` }))).toMatch(/^secret /)
  onlyPath(await folderWith())
  await using required = oddServer(LOOK, { cwd, sandbox: 'required' })
  await expect(toolsOf(required)).rejects.toThrow('This machine has no sandbox')
  const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined)
  await using auto = oddServer(LOOK, { cwd, sandbox: 'auto' })
  await toolsOf(auto)
  expect(warn.mock.calls[0]?.[0]).toContain('This machine has no sandbox')
  warn.mockRestore()
})

test('MC-45 rules of a sandbox that is off are rejected', () => {
  expect(() => oddServer(LOOK, { network: ['a.test'] })).toThrow('is a rule of the sandbox, which is off')
})

test.for(FORMS)(
  'a server in a sandbox does not see a protected file that is replaced: $form',
  async ({ form, only }, { skip }) => {
    if (!here.some((each) => each.form === form)) skip()
    const cwd = await folderWith({ '.env': 'old secret', 'new.env': 'new secret' })
    await using server = oddServer(LOOK, { cwd, sandbox: 'required', ...only })
    const look = async (): Promise<string> => textOf(call(server, 'look', { path: '.env' })).catch(() => 'ended')
    expect(await look()).not.toContain('secret')
    await rename(join(cwd, 'new.env'), join(cwd, '.env'))
    await new Promise((resolve) => setTimeout(resolve, 200))
    for (let count = 0; count < 3; count++) expect(await look()).not.toContain('secret')
  },
)

const AT_TERMINAL = `{
  'tools/list': () => ({ tools: [tool('look')] }),
  'tools/call': () => {
    const fs = require('node:fs')
    const terminal = fs.readFileSync('/proc/self/stat', 'utf8').split(') ').at(-1).split(' ')[4]
    try { fs.openSync('/dev/tty', 'r+'); return text('it has a terminal: ' + terminal) } catch (error) { return text(terminal + ' ' + error.code) }
  },
}`

test.for(FORMS)(
  'a server in a sandbox has no terminal that it could type into: $form',
  async ({ form, only }, { skip }) => {
    if (!here.some((each) => each.form === form) || (await findProgram('script')) === undefined) skip()
    const cwd = await folderWith()
    const at = (path: string): string => pathToFileURL(join(process.cwd(), '.build/src', path)).href
    const { command, args } = oddCommand(AT_TERMINAL)
    const host = await folderWith({
      'host.mjs': `import { mcpStdio } from '${at('adapters/mcp/index.js')}'; import { callTool } from '${at('index.js')}'
      const server = mcpStdio(${JSON.stringify({ command, args, cwd, sandbox: 'required', ...only })})
      const [tool] = await server.tools({ roots: [], warn: () => {} }, new AbortController().signal)
      const { readFileSync, openSync } = await import('node:fs'); openSync('/dev/tty', 'r+')
      console.log('answer:', (await callTool(tool, {})).content); process.exit()`,
    })
    const { stdout } = spawnSync('script', ['-qec', `'${process.execPath}' '${join(host, 'host.mjs')}'`, '/dev/null'], {
      encoding: 'utf8',
      timeout: 60_000,
    })
    expect(stdout).toMatch(/answer: 0 E[A-Z]+/)
  },
)
