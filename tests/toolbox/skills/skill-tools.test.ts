import { chmod, readFile, rename, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { runnerFor } from '#toolbox/skills/run-script.js'
import { folderWith } from '../support.js'
import { callSkill, skillsWith, skillText } from './support.js'

const SKILL = skillText('demo', 'Shows.', 'Run `scripts/hello.sh`.\n')
const NODE = { '.js': [process.execPath] }

describe('skill_read', () => {
  test('SK-01 the instructions are returned with the tree of files', async () => {
    const loaded = await skillsWith({
      'demo/SKILL.md': SKILL,
      'demo/b.md': 'b',
      'demo/a/z.md': 'z',
      'demo/.git/config': '',
      'demo/__pycache__/x.pyc': '',
      'demo/.venv/x': '',
    })
    expect(await callSkill(loaded, 'skill_read', { skill_name: 'demo' })).toEqual({
      ok: true,
      content: `# Skill: demo\n\n## Files\nSKILL.md\na/z.md\nb.md\n\n## SKILL.md\n${SKILL}`,
      metadata: { skill: 'demo', path: 'SKILL.md' },
    })
    const other = await callSkill(loaded, 'skill_read', { skill_name: 'demo', path: 'a/z.md' })
    expect(other.content.endsWith('\n\n## a/z.md\nz')).toBe(true)
  })

  test('a skill is read whatever its parent folders are called', async () => {
    const loaded = await skillsWith({ 'x/SKILL.md': SKILL })
    const moved = await folderWith({ '.venv/keep': '' })
    await rename(join(loaded.dir, 'x'), join(moved, '.venv', 'demo'))
    const again = await skillsWith({}, { dirs: [join(moved, '.venv', 'demo')] })
    expect((await callSkill(again, 'skill_read', { skill_name: 'demo' })).content).toContain('## Files\nSKILL.md\n')
  })

  test('a long file keeps both ends, a long tree its beginning', async () => {
    const many = Object.fromEntries(Array.from({ length: 250 }, (_, index) => [`demo/f/${index + 100}.txt`, '']))
    const loaded = await skillsWith({ 'demo/SKILL.md': SKILL, 'demo/long.md': 'ab'.repeat(500), ...many })
    const { content, metadata } = await callSkill(loaded, 'skill_read', {
      skill_name: 'demo',
      path: 'long.md',
      max_chars: 10,
    })
    expect(content).toContain(
      '(only the first 200 are listed)\n\n## long.md\nababa\n[… 990 of 1000 characters left out …]\nbabab',
    )
    expect(content.split('\n').filter((line) => line.startsWith('f/'))).toHaveLength(199)
    expect(metadata).toEqual({ skill: 'demo', path: 'long.md', truncated: true, chars: 1_000 })
  })

  test('no path leads out of the skill', async () => {
    const loaded = await skillsWith({
      'demo/SKILL.md': SKILL,
      'secret.txt': 'secret',
      'demo/sub/a.md': 'a',
      'other/SKILL.md': skillText('other'),
    })
    const demo = join(loaded.dir, 'demo')
    await symlink('../secret.txt', join(demo, 'link.md'))
    await symlink('..', join(demo, 'up'))
    const paths = [
      '../secret.txt',
      join(loaded.dir, 'secret.txt'),
      'link.md',
      'up/secret.txt',
      'sub/../../secret.txt',
      '../other/SKILL.md',
      '~/x',
      'a\0b',
      '..\\secret.txt',
    ]
    for (const path of paths) {
      const result = await callSkill(loaded, 'skill_read', { skill_name: 'demo', path })
      expect(result).toMatchObject({ ok: false, metadata: { error_type: 'PathValidationError' } })
      expect(result.content).not.toContain('secret\n')
      const run = await callSkill(loaded, 'skill_run', { skill_name: 'demo', script: path })
      expect(run).toMatchObject({ ok: false, metadata: { error_type: 'PathValidationError' } })
    }
    expect((await callSkill(loaded, 'skill_read', { skill_name: 'demo', path: join(demo, 'sub/a.md') })).ok).toBe(true)
  })

  test('any string as name, path or script yields a result, and shows nothing from outside', async () => {
    const loaded = await skillsWith({ 'demo/SKILL.md': SKILL, 'secret.txt': 'top secret' })
    await symlink('../secret.txt', join(loaded.dir, 'demo', 'link'))
    const part = fc.constantFrom(
      '..',
      '.',
      '',
      'link',
      'secret.txt',
      'demo',
      'SKILL.md',
      '~',
      'C:',
      '\\\\host',
      '\u202e',
      '%2e%2e',
      '\0',
    )
    const path = fc.oneof(
      fc.array(part, { minLength: 1, maxLength: 5 }).map((parts) => parts.join('/')),
      fc.string({ unit: 'binary', minLength: 1 }),
    )
    await fc.assert(
      fc.asyncProperty(path, async (text) => {
        const results = await Promise.all([
          callSkill(loaded, 'skill_read', { skill_name: 'demo', path: text }),
          callSkill(loaded, 'skill_read', { skill_name: text }),
          callSkill(loaded, 'skill_run', { skill_name: 'demo', script: `${text}/nothing.sh` }),
        ])
        for (const { content } of results) expect(content).not.toMatch(/top secret|\n {4}at /)
      }),
    )
  })

  test('a missing file, a path that is not a file, and an unknown skill are failures', async () => {
    const loaded = await skillsWith({
      'demo/SKILL.md': SKILL,
      'demo/sub/a.md': 'a',
      'other/SKILL.md': skillText('other'),
    })
    const read = async (args: { skill_name: string; path?: string }): Promise<unknown> => {
      const { ok, content, metadata } = await callSkill(loaded, 'skill_read', args)
      return [ok, content, metadata['error_type']]
    }
    expect(await read({ skill_name: 'demo', path: 'no.md' })).toEqual([false, 'file not found: no.md', 'NotFound'])
    expect(await read({ skill_name: 'demo', path: 'sub' })).toEqual([
      false,
      'path is a directory: sub',
      'PathTypeError',
    ])
    expect(await read({ skill_name: 'x\ny' })).toEqual([
      false,
      'unknown skill: x\\u000ay; available: demo, other',
      'NotFound',
    ])
  })
})

describe('skill_run', () => {
  test('SK-01 a Python script runs through its interpreter', async () => {
    const loaded = await skillsWith(
      { 'demo/SKILL.md': SKILL, 'demo/run.py': 'import sys, os\nprint(sys.argv[1:], os.path.basename(os.getcwd()))' },
      { runners: { '.py': ['python3', '-B'] } },
    )
    const result = await callSkill(loaded, 'skill_run', { skill_name: 'demo', script: 'run.py', args: ['a b', '"c"'] })
    expect(result).toEqual({
      ok: true,
      content: `exit_code: 0\n['a b', '"c"'] demo\n`,
      metadata: {
        returncode: 0,
        cmd: ['python3', '-B', 'run.py', 'a b', '"c"'],
        duration_ms: expect.any(Number) as number,
        sandbox: 'none',
      },
    })
  })

  test('SK-02 a shell script runs without an executable bit, with its arguments and both streams merged', async () => {
    const loaded = await skillsWith({
      'demo/SKILL.md': SKILL,
      'demo/scripts/hello.sh': 'echo "hello $1"; echo oops >&2; exit $2',
    })
    const run = (args: string[]): ReturnType<typeof callSkill> =>
      callSkill(loaded, 'skill_run', { skill_name: 'demo', script: 'scripts/hello.sh', args })
    expect(await run(['you; $(me)', '0'])).toMatchObject({
      ok: true,
      content: 'exit_code: 0\nhello you; $(me)\noops\n',
      metadata: { returncode: 0, cmd: ['bash', 'scripts/hello.sh', 'you; $(me)', '0'] },
    })
    expect(await run(['you', '3'])).toMatchObject({
      ok: false,
      content: 'exit_code: 3\nhello you\noops\n',
      metadata: { error_type: 'NonZeroExit', returncode: 3 },
    })
  })

  test('a JavaScript script runs, and so does an executable', async () => {
    const loaded = await skillsWith(
      {
        'demo/SKILL.md': SKILL,
        'demo/a.js': 'console.log(process.argv.slice(2).join())',
        'demo/tool': '#!/bin/sh\necho tool $1',
        'demo/plain': '#!/bin/sh\n',
      },
      { runners: NODE },
    )
    await chmod(join(loaded.dir, 'demo', 'tool'), 0o755)
    const run = (script: string): ReturnType<typeof callSkill> =>
      callSkill(loaded, 'skill_run', { skill_name: 'demo', script, args: ['x'] })
    expect(await run('a.js')).toMatchObject({ ok: true, content: 'exit_code: 0\nx\n' })
    expect(await run('tool')).toMatchObject({
      ok: true,
      content: 'exit_code: 0\ntool x\n',
      metadata: { cmd: ['tool', 'x'] },
    })
    expect(await run('plain')).toMatchObject({
      ok: false,
      content:
        'The script could not be started (EACCES): it is not executable, and there is no runner for its extension.',
    })
  })

  test('SK-03 the interpreter depends on the file extension, and a missing one is reported', async () => {
    const folder = await folderWith()
    const programs = ['uv', 'python3', 'bash', 'sh', 'node', 'tsx', 'bun', 'go']
    for (const name of programs) await writeFile(join(folder, name), '#!/bin/sh\n', { mode: 0o755 })
    const runner = async (script: string, PATH = folder): Promise<readonly string[]> =>
      runnerFor(script, undefined, { PATH })
    const at = (name: string): string => join(folder, name)
    expect(await runner('a.py')).toEqual([at('uv'), 'run'])
    expect([await runner('a.sh'), await runner('a.bash')]).toEqual([[at('bash')], [at('bash')]])
    expect([await runner('a.js'), await runner('a.mjs')]).toEqual([[at('node')], [at('node')]])
    expect(await runner('a.go')).toEqual([at('go'), 'run'])
    expect([await runner('tool'), await runner('a.rb')]).toEqual([[], []])
    const knows = Boolean(Reflect.get(process.features, 'typescript'))
    expect(await runner('a.ts')).toEqual([knows ? process.execPath : at('tsx')])
    expect(await runnerFor('a.py', { '.py': ['python3', '-B'] }, { PATH: folder })).toEqual([at('python3'), '-B'])
    await expect(runner('a.go', '/nonexistent')).rejects.toThrow(
      '`.go` scripts cannot be run on this machine: install `go`.',
    )
    await expect(runner('a.PY', '/nonexistent')).rejects.toMatchObject({
      errorType: 'RunnerMissing',
      message: '`.py` scripts cannot be run on this machine: install `uv` or `python3` or `python`.',
    })
  })

  test('SK-04 a script that takes too long is a failure, and its children are killed', async () => {
    const loaded = await skillsWith({
      'demo/SKILL.md': SKILL,
      'demo/slow.sh': 'sh -c "sleep 1.5; touch late" & echo begun; sleep 30',
    })
    const result = await callSkill(loaded, 'skill_run', { skill_name: 'demo', script: 'slow.sh', timeout: 1 })
    expect(result).toEqual({
      ok: false,
      content: 'skill script timed out after 1s\nbegun\n',
      metadata: { error_type: 'Timeout', timeout: 1, cmd: ['bash', 'slow.sh'], sandbox: 'none' },
    })
    await new Promise((resolve) => setTimeout(resolve, 800))
    await expect(readFile(join(loaded.dir, 'demo', 'late'))).rejects.toThrow('ENOENT')
  })

  test('the time of a call is capped at the limit, and so is its output', async () => {
    const loaded = await skillsWith(
      { 'demo/SKILL.md': SKILL, 'demo/slow.sh': 'printf 0123456789; sleep 30' },
      { maxTimeoutMs: 300 },
    )
    const result = await callSkill(loaded, 'skill_run', {
      skill_name: 'demo',
      script: 'slow.sh',
      timeout: 9,
      max_chars: 5,
    })
    expect(result).toMatchObject({
      content: 'skill script timed out after 0.3s\n0\n[… 5 of 10 characters left out …]\n6789',
      metadata: { truncated: true },
    })
  })

  test('an abort ends a script, and lines are emitted while it runs', async () => {
    const loaded = await skillsWith({ 'demo/SKILL.md': SKILL, 'demo/slow.sh': 'echo begun; sleep 30' })
    const abort = new AbortController()
    const seen: unknown[] = []
    const result = await callSkill(
      loaded,
      'skill_run',
      { skill_name: 'demo', script: 'slow.sh' },
      {
        signal: abort.signal,
        progress: (update) => {
          seen.push(update)
          abort.abort()
        },
      },
    )
    expect(result).toMatchObject({ ok: false, metadata: { error_type: 'Cancelled' } })
    expect(result.content).toBe('The script was cancelled and killed.\nbegun\n')
    expect(seen).toEqual([{ kind: 'shell_output', stream: 'stdout', output: 'begun\n' }])
  })

  test('the environment of a script holds no key that was not named', async () => {
    vi.stubEnv('FAKE_API_KEY', 'sk-from-the-process')
    onTestFinished(() => {
      vi.unstubAllEnvs()
    })
    const loaded = await skillsWith({ 'demo/SKILL.md': SKILL, 'demo/env.sh': 'env' }, { env: { NAMED_KEY: 'named' } })
    const { content } = await callSkill(loaded, 'skill_run', { skill_name: 'demo', script: 'env.sh' })
    expect(content).toContain('NAMED_KEY=named\n')
    expect(content).not.toContain('FAKE_API_KEY')
  })

  test('a missing script, a folder, invalid arguments, and a missing interpreter are failures', async () => {
    const loaded = await skillsWith(
      { 'demo/SKILL.md': SKILL, 'demo/sub/a.sh': '', 'demo/a.odd': '' },
      { runners: { '.odd': ['/nonexistent/odd'] } },
    )
    const run = async (args: { script: string; args?: string[] }): Promise<unknown> => {
      const { content, metadata } = await callSkill(loaded, 'skill_run', { skill_name: 'demo', ...args })
      return [metadata['error_type'], content]
    }
    expect(await run({ script: 'no.sh' })).toEqual(['NotFound', 'script not found: no.sh'])
    expect(await run({ script: 'sub' })).toEqual(['PathTypeError', 'path is a directory: sub'])
    expect(await run({ script: 'sub/a.sh', args: ['\0'] })).toEqual([
      'InvalidInput',
      'An argument contains a NUL character, which no program accepts.',
    ])
    expect(await run({ script: 'a.odd' })).toEqual([
      'RunnerMissing',
      '`.odd` scripts cannot be run on this machine: install `/nonexistent/odd`.',
    ])
    expect(dirname(loaded.dir)).not.toBe('/')
  })
})
