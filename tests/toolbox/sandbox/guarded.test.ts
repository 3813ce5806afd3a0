import { execFileSync } from 'node:child_process'
import { readdir, readFile, rename, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { bash } from '#toolbox/bash/bash.js'
import type { BashOptions } from '#toolbox/bash/options.js'
import { FileGuard } from '#toolbox/sandbox/guarded-files.js'
import { call, folderWith } from '../support.js'
import { formsHere, FORMS } from './support.js'

const here = await formsHere()

const GIT_ENVIRONMENT = {
  PATH: process.env['PATH'],
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_CONFIG_GLOBAL: '/dev/null',
  ...{ GIT_AUTHOR_NAME: 'a', GIT_AUTHOR_EMAIL: 'a@a.test', GIT_COMMITTER_NAME: 'a', GIT_COMMITTER_EMAIL: 'a@a.test' },
}

function git(cwd: string, ...args: readonly string[]): string {
  return execFileSync('git', args, { cwd, env: GIT_ENVIRONMENT, encoding: 'utf8', stdio: 'pipe' })
}

describe.for(FORMS)('protected files in the form $form', ({ form, only }) => {
  const works = here.some((each) => each.form === form)

  async function run(root: string, command: string, options: BashOptions = {}): Promise<string> {
    const { content, metadata } = await call(bash({ root, sandbox: 'required', ...only, ...options }), { command })
    expect(metadata['sandbox'], content).toBe(form)
    return content
  }

  test.skipIf(!works)('every `.git` is read-only as a whole, however it is reached or made to look', async () => {
    const root = await folderWith({
      '.git/HEAD': 'ref: refs/heads/main\n',
      '.git/config': '[core]',
      '.git/modules/part/hooks/post-checkout': 'exit',
      'part/.git': 'gitdir: ../.git/modules/part\n',
      'a/b/c/d/e/.git/config': '[core]',
      'apart/.git': 'gitdir: ../store\n',
      'store/config': '[core]',
    })
    await run(root, `mkdir -p deep/$(seq -s/ 50); mkdir many; cd many; mkdir $(seq 1050)`)
    const command = `mv .git moved; rm -rf .git; echo x > .git/commondir; echo x > .git/config.worktree; mkdir -p .git/hooks
      echo x > .git/HEAD; echo x > .git/modules/part/hooks/post-checkout; echo x > part/.git; rm part/.git; mv part/.git old
      for at in a/b/c/d/e/.git store; do echo x > $at/config; mkdir $at/hooks; mv $at $at.old; done; rm -rf a/b/c/d/e/.git apart/.git`
    await run(root, command)
    const texts = [
      '.git/HEAD',
      '.git/config',
      '.git/modules/part/hooks/post-checkout',
      'part/.git',
      'a/b/c/d/e/.git/config',
      'store/config',
    ]
    expect(await Promise.all(texts.map((path) => readFile(join(root, path), 'utf8')))).toEqual([
      ...['ref: refs/heads/main\n', '[core]', 'exit', 'gitdir: ../.git/modules/part\n', '[core]', '[core]'],
    ])
    expect((await readdir(join(root, '.git'))).sort()).toEqual(['HEAD', 'config', 'modules'])
    expect(await readdir(join(root, 'store'))).toEqual(['config'])
    expect(await readFile(join(root, 'apart/.git'), 'utf8')).toContain('store')
  })

  test.skipIf(!works)(
    'with `gitWrite` a command commits, and changes nothing that makes git run a program',
    async () => {
      const root = await folderWith({ 'a.txt': 'a' })
      git(root, 'init', '-q', '-b', 'main')
      git(root, 'add', '.')
      git(root, 'commit', '-qm', 'first')
      const before = await readFile(join(root, '.git/config'), 'utf8')
      const env = {
        GIT_AUTHOR_NAME: 'a',
        GIT_AUTHOR_EMAIL: 'a@a.test',
        GIT_COMMITTER_NAME: 'a',
        GIT_COMMITTER_EMAIL: 'a@a.test',
      }
      const content = await run(
        root,
        `echo b > b.txt; git add b.txt && git commit -qm second && git switch -qc other && echo c > c.txt && git add c.txt; git log --format=%s
      git config core.fsmonitor ./x; echo '[core]' > .git/config.worktree; echo x > .git/commondir; mkdir .git/hooks/x; echo x > .git/hooks/pre-commit
      ln -s ../hooks/pre-push .git/logs/link; ln -s ../config .git/refs/link; mv .git gone; rm -rf .git/hooks`,
        { gitWrite: true, env },
      )
      expect(content).toContain('second\nfirst\n')
      expect(git(root, 'log', '--format=%s')).toBe('second\nfirst\n')
      expect(git(root, 'branch', '--show-current')).toBe('other\n')
      expect(git(root, 'status', '--short')).toBe('A  c.txt\n')
      expect(await readFile(join(root, '.git/config'), 'utf8')).toBe(before)
      const names = await readdir(join(root, '.git'))
      for (const name of ['config.worktree', 'commondir', 'index.lock', 'HEAD.lock']) expect(names).not.toContain(name)
      expect(await readdir(join(root, '.git/hooks'))).not.toContain('pre-commit')
      expect(await readdir(join(root, '.git/logs'))).not.toContain('link')
      expect(await readdir(join(root, '.git/refs'))).not.toContain('link')
    },
  )

  test.skipIf(!works)(
    'a protected file is hidden at every depth, in any folder, and behind a link in the root',
    async () => {
      const places = [
        'dist/.env',
        'target/x/.env',
        '.venv/lib/.env',
        'node_modules/a/b/c/d/.npmrc',
        'a/b/c/d/e/f/.env',
        '.vscode/.env',
        '1/2/3/4/key.pem',
      ]
      const root = await folderWith(
        Object.fromEntries([...places, 'plain.txt'].map((path) => [path, `secret of ${path}`])),
      )
      await symlink('plain.txt', join(root, '.env'))
      await run(root, 'mkdir many; cd many; mkdir $(seq 1100)')
      const content = await run(
        root,
        `cat ${places.join(' ')} plain.txt .env; cat $(find . -name .env -o -name '*.pem'); mv a moved; cat moved/b/c/d/e/f/.env`,
      )
      expect(content).not.toContain('secret of')
    },
  )

  test.skipIf(!works)(
    'a folder that cannot be listed is hidden, so that a later command cannot open it',
    async ({ skip }) => {
      if (process.getuid?.() === 0) skip()
      const root = await folderWith({ 'certs/key.pem': 'secret' })
      await run(root, 'chmod 000 certs')
      expect(await run(root, 'chmod 700 certs; cat certs/key.pem')).not.toContain('secret')
    },
  )

  test.skipIf(!works)('`.git` below a writable path outside the root is read-only too', async () => {
    const [root, shared] = [await folderWith(), await folderWith({ 'repo/.git/config': '[core]', '.env': 'plain' })]
    const command = `cd ${shared}; echo x > repo/.git/config; mkdir repo/.git/hooks; mv repo/.git x; cat .env; echo new > new.txt`
    expect(await run(root, command, { writePaths: [shared, join(shared, 'missing')] })).toContain('plain')
    expect(await readFile(join(shared, 'repo/.git/config'), 'utf8')).toBe('[core]')
    expect((await readdir(shared)).sort()).toEqual(['.env', 'new.txt', 'repo'])
    expect(await readdir(join(shared, 'repo/.git'))).toEqual(['config'])
  })

  test.skipIf(!works)('a command that waits until an editor saves a protected file does not see it', async () => {
    for (const [path, made] of [
      ['.env', 'a/.env.new'],
      ['a/.env.local', 'a/new'],
    ] as const) {
      const root = await folderWith({ [path]: 'KEY=old', [made]: 'KEY=secret' })
      const tool = bash({
        root,
        sandbox: 'required',
        ...only,
        protect: { read: ['.env', '.env.local', '.env.new', 'new'], write: [] },
      })
      const running = call(tool, {
        command: `touch ready; while [ ! -e go ]; do sleep 0.02; done; sleep 0.2; cat ${path}; cp ${path} leaked`,
      })
      await vi.waitFor(async () => expect(await readdir(root)).toContain('ready'), { timeout: 20_000 })
      await rename(join(root, made), join(root, path))
      await writeFile(join(root, 'go'), '')
      const { ok, content } = await running
      expect(content).not.toContain('secret')
      expect(ok).toBe(false)
      expect(content).toContain('was replaced by another program while it ran')
      expect(await readdir(root)).not.toContain('leaked')
    }
  })

  test.skipIf(!works)(
    '1,500 protected files stop no command, in the root or below it',
    async () => {
      const keys = Array.from({ length: 1_500 }, (_, index) => [
        `${index % 2 === 0 ? '' : 'certs/'}${'k'.repeat(80)}${index}.pem`,
        'secret',
      ])
      const root = await folderWith(Object.fromEntries(keys) as Record<string, string>)
      const content = await run(root, 'echo works; cat *.pem certs/*.pem 2>/dev/null; echo new > new.txt; cat new.txt')
      expect(content).toBe('stdout:\nworks\nnew\n')
    },
    60_000,
  )
})

test('of very many protected files, those of the fullest folders are hidden with their folder', async () => {
  const keys = Array.from({ length: 2_500 }, (_, index) => [
    `${index % 10 === 0 ? '' : 'certs/'}${index}.pem`,
    'secret',
  ])
  const root = await folderWith(Object.fromEntries(keys) as Record<string, string>)
  const files = await new FileGuard({}).filesIn(root)
  expect(files).toHaveLength(251)
  expect(files).toContainEqual({ path: join(root, 'certs'), how: 'hide', isFolder: true })
})
