import { readdir } from 'node:fs/promises'
import { expect, test, vi } from 'vitest'
import type { McpStdioOptions } from '#adapters/mcp/index.js'
import { folderWith } from '../../../toolbox/support.js'
import { FORMS, formsHere, onlyPath } from '../../../toolbox/sandbox/support.js'
import { call, oddServer, textOf, toolsOf } from '../support.js'

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
