import { chmod, link, lstat, mkdir, readdir, readlink, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { writeTool } from '#toolbox/files/write.js'
import { call, folderWith, textOf } from '../support.js'

test('FT-03 `write` creates a file and its parent folders', async () => {
  const root = await folderWith()
  expect(await call(writeTool({ root }), { path: 'a/b/c.txt', content: 'grün\n' })).toEqual({
    ok: true,
    content: 'wrote 6 bytes to a/b/c.txt',
    metadata: { path: join(root, 'a/b/c.txt') },
  })
  expect(await textOf(root, 'a/b/c.txt')).toBe('grün\n')
  expect(await readdir(join(root, 'a/b'))).toEqual(['c.txt'])
})

test('`write` overwrites, appends, and creates a file when it appends', async () => {
  const root = await folderWith({ 'a.txt': 'a long old text' })
  const write = writeTool({ root })
  await call(write, { path: 'a.txt', content: 'new' })
  expect(await call(write, { path: 'a.txt', content: ' ✓', append: true })).toMatchObject({
    ok: true,
    content: 'appended 4 bytes to a.txt',
  })
  await call(write, { path: 'b.txt', content: 'b', append: true })
  expect([await textOf(root, 'a.txt'), await textOf(root, 'b.txt')]).toEqual(['new ✓', 'b'])
})

test('overwriting and appending keep the mode bits; a new file has the usual ones', async () => {
  const root = await folderWith({ 'a.sh': 'old', 'b.sh': 'old' })
  await chmod(join(root, 'a.sh'), 0o751)
  await chmod(join(root, 'b.sh'), 0o751)
  const write = writeTool({ root })
  await call(write, { path: 'a.sh', content: 'new' })
  await call(write, { path: 'b.sh', content: 'new', append: true })
  await call(write, { path: 'c.sh', content: 'new' })
  await writeFile(join(root, 'd.sh'), 'new')
  const newFileMode = (await stat(join(root, 'd.sh'))).mode & 0o777
  const modes = await Promise.all(
    ['a.sh', 'b.sh', 'c.sh'].map(async (name) => (await stat(join(root, name))).mode & 0o777),
  )
  expect(modes).toEqual([0o751, 0o751, newFileMode])
})

test.each<[string, string, string]>([
  ['../x', 'PathValidationError', 'path escapes root: ../x'],
  ['.', 'PathTypeError', 'path is a directory: .'],
  ['docs', 'PathTypeError', 'path is a directory: docs'],
  ['new/', 'PathTypeError', 'path is a directory: new/'],
  ['a.txt/x', 'PathTypeError', 'path is not a directory: a.txt'],
  ['read-only.txt', 'EACCES', 'file is read-only: read-only.txt'],
  ['.thinharness/runs/x.jsonl', 'PathValidationError', 'path is not in the write paths: .thinharness/runs/x.jsonl'],
  ['x'.repeat(300), 'ENAMETOOLONG', `name too long (ENAMETOOLONG): ${'x'.repeat(200)}…`],
])(
  'FT-18 writing to a path that escapes, is not a file or is read-only fails with its error type: %j, %s',
  async (path, errorType, content) => {
    const root = await folderWith({ 'docs/b.txt': 'b', 'a.txt': 'a', 'read-only.txt': 'a' })
    await chmod(join(root, 'read-only.txt'), 0o444)
    for (const append of [false, true]) {
      const result = await call(writeTool({ root }), { path, content: 'new', append })
      expect(result).toEqual({ ok: false, content, metadata: { error_type: errorType } })
    }
    expect([await readdir(root), await readdir(join(root, 'docs'))]).toEqual([
      ['a.txt', 'docs', 'read-only.txt'],
      ['b.txt'],
    ])
    expect([await textOf(root, 'a.txt'), await textOf(root, 'read-only.txt')]).toEqual(['a', 'a'])
  },
)

test('FT-18 an absolute path is written inside the root and rejected outside', async () => {
  const outside = await folderWith()
  const root = await folderWith()
  const write = writeTool({ root })
  expect(await call(write, { path: join(root, 'a.txt'), content: 'x' })).toMatchObject({ ok: true })
  expect(await call(write, { path: join(outside, 'a.txt'), content: 'x' })).toMatchObject({
    ok: false,
    metadata: { error_type: 'PathValidationError' },
  })
  expect(await readdir(outside)).toEqual([])
})

test('FT-19 only files within the write paths can be written', async () => {
  const root = await folderWith({ 'docs/a.txt': 'a', 'b.txt': 'b' })
  const write = writeTool({ root, writePaths: ['docs'] })
  expect(await call(write, { path: 'docs/new/a.txt', content: 'x' })).toMatchObject({ ok: true })
  expect(await call(write, { path: 'b.txt', content: 'x' })).toEqual({
    ok: false,
    content: 'path is not in the write paths: b.txt',
    metadata: { error_type: 'PathValidationError' },
  })
  expect(await textOf(root, 'b.txt')).toBe('b')
})

test('a link inside the root is written through, and stays a link', async () => {
  const root = await folderWith({ 'docs/a.txt': 'old' })
  await symlink('docs/a.txt', join(root, 'link'))
  await call(writeTool({ root }), { path: 'link', content: 'new' })
  expect([await textOf(root, 'docs/a.txt'), await readlink(join(root, 'link'))]).toEqual(['new', 'docs/a.txt'])
})

test('a second name of a file outside the root keeps its content', async () => {
  const outside = await folderWith({ 'a.txt': 'outside', 'b.txt': 'outside' })
  const root = await folderWith()
  for (const name of ['a.txt', 'b.txt']) await link(join(outside, name), join(root, name))
  const write = writeTool({ root })
  await call(write, { path: 'a.txt', content: 'new' })
  await call(write, { path: 'b.txt', content: ' and more', append: true })
  expect([await textOf(root, 'a.txt'), await textOf(root, 'b.txt')]).toEqual(['new', 'outside and more'])
  expect([await textOf(outside, 'a.txt'), await textOf(outside, 'b.txt')]).toEqual(['outside', 'outside'])
})

test('a string that has no UTF-8 form is rejected', async () => {
  const root = await folderWith()
  expect(await call(writeTool({ root }), { path: 'a.txt', content: 'half \ud83d of a pair' })).toEqual({
    ok: false,
    content: '`content` has half of a surrogate pair, which cannot be encoded in UTF-8.',
    metadata: { error_type: 'InvalidInput', retry: true },
  })
  expect(await readdir(root)).toEqual([])
})

test('an aborted call writes nothing and leaves no files', async () => {
  const root = await folderWith({ 'a.txt': 'old' })
  const abort = new AbortController()
  abort.abort()
  const result = await call(writeTool({ root }), { path: 'a.txt', content: 'new' }, { signal: abort.signal })
  expect(result).toMatchObject({ ok: false, metadata: { error_type: 'AbortError' } })
  expect([await readdir(root), await textOf(root, 'a.txt')]).toEqual([['a.txt'], 'old'])
})

test('concurrent writes to one file leave one of the strings, complete', async () => {
  const root = await folderWith()
  const write = writeTool({ root })
  const texts = Array.from({ length: 20 }, (_, index) => String(index).repeat(10_000))
  await Promise.all(texts.map((content) => call(write, { path: 'a.txt', content })))
  expect(texts).toContain(await textOf(root, 'a.txt'))
  expect(await readdir(root)).toEqual(['a.txt'])
})

test('concurrent appends to one file are all kept', async () => {
  const root = await folderWith()
  const write = writeTool({ root })
  const lines = Array.from({ length: 50 }, (_, index) => `line ${index}\n`)
  await Promise.all(lines.map((content) => call(write, { path: 'a.txt', content, append: true })))
  expect((await textOf(root, 'a.txt')).split('\n').sort()).toEqual(['', ...lines.map((line) => line.trimEnd())].sort())
})

test('a folder in the place of the file is never replaced', async () => {
  const root = await folderWith()
  await mkdir(join(root, 'a.txt'))
  await call(writeTool({ root }), { path: 'a.txt', content: 'new' })
  expect((await lstat(join(root, 'a.txt'))).isDirectory()).toBe(true)
})
