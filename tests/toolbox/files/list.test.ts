import { execFileSync } from 'node:child_process'
import { symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { listTool } from '#toolbox/files/list.js'
import { call, folderWith } from '../support.js'

const TREE = {
  'b.txt': '',
  'A.md': '',
  'docs/a.md': '',
  'docs/deep/b.md': '',
  'Zoo/c.txt': '',
  '.hidden/d.txt': '',
  '.env': '',
  '.thinharness/outputs/x.txt': '',
  'ignored/e.txt': '',
  '.ignore': 'ignored/\n',
}

async function listed(root: string, args: Record<string, string | boolean | number> = {}): Promise<unknown> {
  return (await call(listTool({ root }), args)).content.split('\n')
}

describe('list', () => {
  test('directories come first, then files, by name regardless of case', async () => {
    const root = await folderWith(TREE)
    expect(await call(listTool({ root }), {})).toEqual({
      ok: true,
      content: 'dir  docs\ndir  Zoo\nfile A.md\nfile b.txt',
      metadata: { total: 4, returned: 4 },
    })
  })

  test.each<[string, Record<string, string | boolean | number>, string[]]>([
    ['a directory', { path: 'docs' }, ['dir  docs/deep', 'file docs/a.md']],
    [
      'FT-03 all entries below with `recursive`',
      { recursive: true },
      [
        'dir  docs',
        'dir  docs/deep',
        'dir  Zoo',
        'file A.md',
        'file b.txt',
        'file docs/a.md',
        'file docs/deep/b.md',
        'file Zoo/c.txt',
      ],
    ],
    ['what matches', { glob: '*.md' }, ['file A.md']],
    [
      'what matches, at any depth',
      { glob: '*.md', recursive: true },
      ['file A.md', 'file docs/a.md', 'file docs/deep/b.md'],
    ],
    ['what matches in a directory', { path: 'docs', glob: '**/*.md' }, ['file docs/a.md', 'file docs/deep/b.md']],
    ['nothing', { glob: '*.rs' }, ['no files']],
    ['a file itself', { path: 'docs/a.md' }, ['file docs/a.md']],
    ['a file itself, with a glob', { path: 'docs/a.md', glob: '*.md', recursive: true }, ['file docs/a.md']],
    ['no file that the glob does not match', { path: 'docs/a.md', glob: '*.txt' }, ['no files']],
    ['hidden entries when the glob spells the dot out', { glob: '.*' }, ['dir  .hidden', 'file .env', 'file .ignore']],
    ['a hidden directory that is named', { path: '.hidden' }, ['file .hidden/d.txt']],
    ['an ignored directory that is named', { path: 'ignored' }, ['file ignored/e.txt']],
    ['an ignored directory that the glob names', { glob: 'ignored/*' }, ['file ignored/e.txt']],
    ["nothing of the harness's own folder", { path: '.thinharness', recursive: true }, ['no files']],
    ["nothing of the harness's own folder by glob", { glob: '.thinharness/**' }, ['no files']],
  ])('the listing shows %s', async (_name, args, lines) => {
    expect(await listed(await folderWith(TREE), args)).toEqual(lines)
  })

  test('entries are sorted before the list is cut', async () => {
    const files = Object.fromEntries(
      Array.from({ length: 30 }, (_, index) => [`f${String(29 - index).padStart(2, '0')}`, '']),
    )
    const root = await folderWith(files)
    expect(await call(listTool({ root }), { max_results: 2 })).toEqual({
      ok: true,
      content: 'file f00\nfile f01\n... 28 more result(s) omitted',
      metadata: { total: 30, returned: 2 },
    })
  })

  test.each<[string, object, string, string]>([
    ['a missing path', { path: 'missing' }, 'NotFound', 'path not found: missing'],
    ['a missing path with a glob', { path: 'missing', glob: '*' }, 'NotFound', 'path not found: missing'],
    ['a path below a file', { path: 'b.txt/x' }, 'NotFound', 'path not found: b.txt/x'],
    ['FT-20 an escaping path', { path: '..' }, 'PathValidationError', 'path escapes root: ..'],
    ['FT-20 an escaping glob', { glob: '../*' }, 'PathValidationError', 'glob must not contain `..`: ../*'],
    ['FT-20 an absolute glob', { glob: '/etc/*' }, 'PathValidationError', 'glob must be relative: /etc/*'],
  ])('an invalid path or glob fails with its error type: %s', async (_name, args, errorType, content) => {
    const root = await folderWith(TREE)
    const result = await call(listTool({ root }), args as Record<string, string>)
    expect(result).toEqual({ ok: false, content, metadata: { error_type: errorType } })
  })

  test('FT-19 each entry is checked against the read paths', async () => {
    const root = await folderWith({ 'docs/a.txt': '', 'docs/b.txt': '', 'other/c.txt': '', 'd.txt': '' })
    const list = listTool({ root, readPaths: ['docs/a.txt', 'd.txt'] })
    expect((await call(list, { recursive: true })).content).toBe('file d.txt\nfile docs/a.txt')
    expect((await call(list, { path: 'docs' })).content).toBe('file docs/a.txt')
    expect(await call(list, { path: 'other' })).toMatchObject({
      ok: false,
      metadata: { error_type: 'PathValidationError' },
    })
  })

  test('a link shows its target, and a link that leaves the root is hidden', async () => {
    const outside = await folderWith({ 'secret.txt': '' })
    const root = await folderWith({ 'docs/a.txt': '', 'hidden-target/.keep': '' })
    await symlink('docs', join(root, 'to-docs'))
    await symlink('docs/a.txt', join(root, 'to-a'))
    await symlink(outside, join(root, 'to-outside'))
    await symlink(join(outside, 'secret.txt'), join(root, 'to-secret'))
    await symlink('nowhere', join(root, 'dangling'))
    await symlink('.', join(root, 'self'))
    expect(await listed(root, { recursive: true })).toEqual([
      'dir  docs',
      'dir  hidden-target',
      'dir  self',
      'dir  to-docs',
      'file docs/a.txt',
      'file to-a',
    ])
  })

  test.skipIf(process.platform === 'win32')('pipes are hidden, and a name cannot add lines of its own', async () => {
    const root = await folderWith({ 'a\nfile b': '' })
    execFileSync('mkfifo', [join(root, 'pipe')])
    expect(await listed(root)).toEqual(['file a\\u000afile b'])
    expect(await listed(root, { path: 'pipe' })).toEqual(['no files'])
  })
})
