import { readdirSync } from 'node:fs'
import { readFile, rename, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { copyOfScript } from '#toolbox/skills/run-script.js'
import { folderWith } from '../support.js'
import { formsHere, onlyPath } from '../sandbox/support.js'
import { callSkill, skillsWith, skillText } from './support.js'

const SKILL = skillText('demo')
const forms = await formsHere()

describe('the script that `skill_run` checked', () => {
  test('SK-05 is the one that runs, whatever takes its place', async () => {
    const { dir } = await skillsWith({ 'demo/SKILL.md': SKILL, 'demo/scripts/a.sh': 'echo checked' })
    const skill = join(dir, 'demo')
    const copy = await copyOfScript(skill, 'scripts/a.sh')
    await rename(join(skill, 'scripts'), join(skill, 'old'))
    await symlink(await folderWith({ 'a.sh': 'echo swapped' }), join(skill, 'scripts'))
    expect(await readFile(copy.path, 'utf8')).toBe('echo checked')
    await copy.remove()
    expect(readdirSync(tmpdir())).not.toContain(copy.folder.split('/').at(-1))
  })

  test('SK-05 is not a link out of the skill', async () => {
    const loaded = await skillsWith({ 'demo/SKILL.md': SKILL })
    await symlink(join(await folderWith({ 'a.sh': 'echo outside' }), 'a.sh'), join(loaded.dir, 'demo/a.sh'))
    const result = await callSkill(loaded, 'skill_run', { skill_name: 'demo', script: 'a.sh' })
    expect(result).toMatchObject({ ok: false, metadata: { error_type: 'PathValidationError' } })
  })

  test.each(['off', 'auto'] as const)(
    'SK-05 finds its neighbours, its modules and its arguments: sandbox `%s`',
    async (sandbox) => {
      const loaded = await skillsWith(
        {
          'package.json': '{ "type": "module" }',
          'node_modules/dep/package.json': '{ "name": "dep", "type": "module", "exports": "./index.js" }',
          'node_modules/dep/index.js': 'export const dep = "from above"',
          'demo/SKILL.md': SKILL,
          'demo/data/a.txt': 'data',
          'demo/scripts/lib/helper.py': 'text = "helped"',
          'demo/scripts/run.py':
            'import sys, os; from lib import helper; print(helper.text, open(os.path.join(os.path.dirname(__file__), "../data/a.txt")).read(), sys.argv[1])',
          'demo/scripts/run.sh': 'cat "$(dirname "$0")/../data/a.txt"; pwd',
          'demo/scripts/help.js': 'export const help = "helped"',
          'demo/scripts/run.js': 'import { help } from "./help.js"; import { dep } from "dep"; console.log(help, dep)',
        },
        { sandbox, runners: { '.py': ['python3', '-B'] } },
      )
      const run = async (script: string): Promise<string> => {
        const { content } = await callSkill(
          loaded,
          'skill_run',
          { skill_name: 'demo', script, args: ['x'] },
          { root: loaded.dir },
        )
        return content
      }
      expect(await run('scripts/run.py')).toBe('exit_code: 0\nhelped data x\n')
      expect(await run('scripts/run.sh')).toBe(`exit_code: 0\ndata${join(loaded.dir, 'demo')}\n`)
      expect(await run('scripts/run.js')).toBe('exit_code: 0\nhelped from above\n')
    },
  )
})

describe('the sandbox of `skill_run`', () => {
  test.skipIf(forms.length === 0)(
    'SK-06 is on by default: the workspace is writable, the skill and the rest are not',
    async () => {
      const [root, outside] = [await folderWith(), await folderWith({ 'secret.txt': 'secret' })]
      const script = `echo x > ${root}/made; cat ${outside}/secret.txt; echo y > "$PWD/made" || echo refused; cat /proc/$PPID/environ | tr '\\0' '\\n'`
      const loaded = await skillsWith({ 'demo/SKILL.md': SKILL, 'demo/a.sh': script }, { sandbox: undefined })
      process.env['FAKE_API_KEY'] = 'sk-of-the-host'
      const { content, metadata } = await callSkill(
        loaded,
        'skill_run',
        { skill_name: 'demo', script: 'a.sh' },
        { root },
      )
      delete process.env['FAKE_API_KEY']
      expect(metadata['sandbox']).toBe(forms[0]?.form)
      expect(content).toContain('refused')
      expect(content).not.toMatch(/^secret|sk-of-the-host/m)
      expect(await readFile(join(root, 'made'), 'utf8')).toBe('x\n')
    },
  )

  test('SK-06 `required` refuses a script without one', async () => {
    const root = await folderWith()
    onlyPath(await folderWith())
    const files = { 'demo/SKILL.md': SKILL, 'demo/a.sh': 'touch made' }
    const loaded = await skillsWith(files, { sandbox: undefined })
    const args = { skill_name: 'demo', script: 'a.sh' }
    const result = await callSkill(loaded, 'skill_run', args, { root, sandbox: 'required' })
    expect(result).toMatchObject({ ok: false, metadata: { error_type: 'SandboxUnavailable' } })
  })
})
