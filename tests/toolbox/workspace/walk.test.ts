import { execFileSync } from 'node:child_process'
import { chmod, rm, symlink } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { describe, expect, test } from 'vitest'
import { DeadlinePassed } from '#toolbox/workspace/file-failure.js'
import { ignoreVerdict, parseIgnoreFile } from '#toolbox/workspace/ignore-rules.js'
import { walk } from '#toolbox/workspace/walk.js'
import type { WalkOptions } from '#toolbox/workspace/walk.js'
import type { Workspace } from '#toolbox/workspace/workspace.js'
import { folderWith, workspaceIn } from '../support.js'

const signal = new AbortController().signal

async function met(workspace: Workspace, options: Partial<WalkOptions> = {}): Promise<string[]> {
  const paths: string[] = []
  for await (const { path, kind, link } of walk(workspace, { start: workspace.root, signal, ...options })) {
    paths.push(`${relative(workspace.root, path)}${kind === 'folder' ? '/' : ''}${link ? '@' : ''}`)
  }
  return paths
}

describe('the walker', () => {
  test('it lists a folder by name, then continues folder by folder', async () => {
    const root = await folderWith({ 'b/x': '', 'a/y': '', 'a/b/z': '', ab: '', c: '' })
    expect(await met(workspaceIn(root))).toEqual(['a/', 'ab', 'b/', 'c', 'a/b/', 'a/y', 'a/b/z', 'b/x'])
  })

  test('it skips hidden names unless asked', async () => {
    const root = await folderWith({ '.a/x': '', '.b': '', 'c/.d': '' })
    expect(await met(workspaceIn(root))).toEqual(['c/'])
    expect(await met(workspaceIn(root), { includeHidden: true })).toEqual(['.a/', '.b', 'c/', '.a/x', 'c/.d'])
    expect(await met(workspaceIn(root), { glob: 'c/.*' })).toEqual(['c/.d'])
  })

  test('it applies the ignore files of the folders above its start, except to the start itself', async () => {
    const root = await folderWith({
      '.gitignore': '*.log\nbuild/\n',
      'build/.gitignore': '!keep.log\n',
      'build/a.log': '',
      'build/keep.log': '',
      'build/b.txt': '',
      'build/build/c.txt': '',
    })
    expect(await met(workspaceIn(root))).toEqual([])
    expect(await met(workspaceIn(root), { start: join(root, 'build') })).toEqual(['build/b.txt', 'build/keep.log'])
    expect(await met(workspaceIn(root), { glob: 'build/*' })).toEqual(['build/b.txt', 'build/keep.log'])
  })

  test('it ignores the ignore files above the root', async () => {
    const around = await folderWith({ '.ignore': '*\n', '.gitignore': '*\n', 'root/a': '' })
    expect(await met(workspaceIn(join(around, 'root')))).toEqual(['a'])
  })

  test('it reports links with their targets, follows none, and omits those without a readable target', async () => {
    const outside = await folderWith({ x: '' })
    const root = await folderWith({ 'a/x': '', 'private/x': '', '.thinharness/x': '' })
    const links = {
      one: 'a',
      two: 'a/x',
      out: outside,
      gone: 'nowhere',
      loop: 'loop',
      hidden: 'private/x',
      own: '.thinharness/x',
    }
    for (const [name, target] of Object.entries(links)) await symlink(target, join(root, 'a', name))
    await rm(join(root, 'a/one'))
    await symlink('.', join(root, 'a/one'))
    await rm(join(root, 'a/two'))
    await symlink('x', join(root, 'a/two'))
    expect(await met(workspaceIn(root, { readPaths: ['a'] }))).toEqual(['a/', 'a/one/@', 'a/two@', 'a/x'])
  })

  test.skipIf(process.platform === 'win32')('it skips pipes and folders that it may not read', async () => {
    const root = await folderWith({ 'a/x': '', 'b/y': '' })
    execFileSync('mkfifo', [join(root, 'pipe')])
    await chmod(join(root, 'a'), 0o000)
    const paths = await met(workspaceIn(root))
    await chmod(join(root, 'a'), 0o755)
    // The superuser may read it.
    expect(paths.filter((path) => path !== 'a/x')).toEqual(['a/', 'b/', 'b/y'])
  })

  test('it skips a folder that has disappeared', async () => {
    const root = await folderWith({ 'a/x': '', 'b/y': '' })
    const paths: string[] = []
    for await (const { path } of walk(workspaceIn(root), { start: root, signal })) {
      paths.push(relative(root, path))
      if (paths.length === 1) await rm(join(root, 'a'), { recursive: true })
    }
    expect(paths).toEqual(['a', 'b', 'b/y'])
  })

  test('it stops at its deadline and when aborted', async () => {
    const root = await folderWith({ a: '', b: '' })
    await expect(met(workspaceIn(root), { deadline: Date.now() - 1 })).rejects.toThrow(DeadlinePassed)
    await expect(met(workspaceIn(root), { signal: AbortSignal.abort(new Error('enough')) })).rejects.toThrow('enough')
    const abort = new AbortController()
    const walking = walk(workspaceIn(root), { start: root, signal: abort.signal, glob: '**' })
    await walking.next()
    abort.abort(new Error('enough'))
    await expect(walking.next()).rejects.toThrow('enough')
  })

  test('an ignore file that is a link, a folder or huge holds no rules', async () => {
    const outside = await folderWith({ rules: '*' })
    const root = await folderWith({
      'a/x': '',
      'b/.ignore/y': '',
      'c/.ignore': `*\n${'#'.repeat(1_000_001)}`,
      'c/z': '',
    })
    await symlink(join(outside, 'rules'), join(root, 'a/.ignore'))
    expect((await met(workspaceIn(root))).filter((path) => !path.endsWith('/'))).toEqual(['a/x', 'c/z'])
  })
})

describe('the rules of an ignore file', () => {
  const verdict = (rules: string, path: string): string | undefined => {
    const scope = { parent: undefined, depth: 0, rules: { '.ignore': parseIgnoreFile(rules) } }
    return ignoreVerdict(scope, path.replace(/\/$/, '').split('/'), path.endsWith('/'))
  }

  test.each<[string, readonly string[], readonly string[]]>([
    // rules, what they ignore, what not
    ['a', ['a', 'a/', 'x/a'], ['ab', 'b']],
    ['/a', ['a'], ['x/a']],
    ['a/', ['a/', 'x/a/'], ['a']],
    ['a/b', ['a/b'], ['x/a/b', 'b']],
    ['a/*', ['a/b'], ['a/', 'a/b/c']],
    ['a/**', ['a/b', 'a/b/c'], ['a/']],
    ['**/a/b', ['a/b', 'x/a/b'], ['a/x/b']],
    ['*.log', ['x.log', 'a/.log'], ['x.logs']],
    ['*.log\n!x.log', ['y.log'], ['x.log']],
    ['!x.log\n*.log', ['x.log'], []],
    ['# a\n\na', ['a'], ['# a']],
    ['\\#a', ['#a'], ['a']],
    ['\\!a', ['!a'], ['a']],
    ['a  \t', ['a'], ['a  ']],
    ['a\\ ', ['a '], ['a']],
    ['\uFEFFa\r\nb\r\n', ['a', 'b'], []],
    ['/', [], ['a', 'a/']],
    ['!', [], ['a']],
  ])('%j', (rules, ignored, others) => {
    expect(ignored.filter((path) => verdict(rules, path) !== 'ignored')).toEqual([])
    expect(others.filter((path) => verdict(rules, path) === 'ignored')).toEqual([])
  })

  test('they take no long time, whatever they are', () => {
    const started = performance.now()
    const lines = [
      `a${' '.repeat(500_000)}b`,
      '/'.repeat(500_000),
      '{'.repeat(1_000),
      `${'*a'.repeat(2_000)}b`,
      'a/'.repeat(2_000),
    ]
    expect(verdict(lines.join('\n'), 'a'.repeat(255))).toBe(undefined)
    expect(performance.now() - started).toBeLessThan(30_000)
  })
})
