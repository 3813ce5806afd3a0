import { symlink, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { globTool } from '#toolbox/files/glob.js'
import { call, folderWith } from '../support.js'

/** Files that were changed one after the other, the last one last. */
async function filesInTime(...paths: readonly string[]): Promise<string> {
  const root = await folderWith(Object.fromEntries(paths.map((path) => [path, ''])))
  for (const [index, path] of paths.entries()) await utimes(join(root, path), 1_000 + index, 1_000 + index)
  return root
}

describe('glob', () => {
  test('files come newest first', async () => {
    const root = await filesInTime('b.md', 'docs/a.md', 'c.md', 'd.txt')
    expect(await call(globTool({ root }), { pattern: '**/*.md' })).toEqual({
      ok: true,
      content: 'c.md\ndocs/a.md\nb.md',
      metadata: { total: 3, returned: 3 },
    })
  })

  test('the list is cut after sorting, and the number of omitted files is reported', async () => {
    const root = await filesInTime('a', 'b', 'c', 'd', 'e', 'f')
    expect(await call(globTool({ root }), { pattern: '*', max_results: 2 })).toEqual({
      ok: true,
      content: 'f\ne\n... 4 more result(s) omitted',
      metadata: { total: 6, returned: 2 },
    })
  })

  test.each<[string, Record<string, string | boolean>, string]>([
    ['directly in the directory', { pattern: '*.md' }, 'a.md'],
    ['from a path', { pattern: '*.md', path: 'docs' }, 'docs/b.md'],
    ['directories on request', { pattern: '*', include_dirs: true, path: 'docs' }, 'docs/deep/\ndocs/b.md'],
    ['alternatives', { pattern: '{docs,x}/*.md' }, 'docs/b.md'],
    ['nothing', { pattern: '*.rs' }, 'no files'],
    ['no hidden names by wildcard', { pattern: '**/*.yml' }, 'no files'],
    ['hidden names that are spelled out', { pattern: '.github/**' }, '.github/x.yml'],
  ])('it finds %s', async (_name, args, content) => {
    const root = await filesInTime('a.md', 'docs/b.md', 'docs/deep/c.txt', '.github/x.yml')
    await utimes(join(root, 'docs/deep'), 9_000, 9_000)
    expect((await call(globTool({ root }), args)).content).toBe(content)
  })

  test.each<[object, string, string]>([
    [{ pattern: '../*' }, 'PathValidationError', 'glob must not contain `..`: ../*'],
    [{ pattern: 'a\0' }, 'PathValidationError', 'glob contains a NUL character: a\\u0000'],
    [{ pattern: '*', path: '..' }, 'PathValidationError', 'path escapes root: ..'],
    [{ pattern: '*', path: 'missing' }, 'NotFound', 'path not found: missing'],
    [{ pattern: '*', path: 'a.md' }, 'PathTypeError', 'path is not a directory: a.md'],
  ])('FT-20 an escaping or invalid pattern fails with its error type: %j, %s', async (args, errorType, content) => {
    const root = await folderWith({ 'a.md': '' })
    const result = await call(globTool({ root }), args as Record<string, string>)
    expect(result).toEqual({ ok: false, content, metadata: { error_type: errorType } })
  })

  test('a link is found but not followed', async () => {
    const outside = await folderWith({ 'secret.md': '' })
    const root = await filesInTime('docs/a.md')
    await symlink('docs', join(root, 'to-docs'))
    await symlink(outside, join(root, 'to-outside'))
    expect((await call(globTool({ root }), { pattern: '**/*.md' })).content).toBe('docs/a.md')
    expect((await call(globTool({ root }), { pattern: '*', include_dirs: true })).metadata).toMatchObject({ total: 2 })
  })

  test('an abort stops it', async () => {
    const root = await filesInTime('a.md')
    const result = await call(globTool({ root }), { pattern: '**' }, { signal: AbortSignal.abort() })
    expect(result).toMatchObject({ ok: false, metadata: { error_type: 'AbortError' } })
  })
})

test('a pattern that names an existing path means that path too', async () => {
  const root = await folderWith({
    ...{
      'app/[id]/page.tsx': '',
      'app/i/page.tsx': '',
      'app/(a)/{b}.ts': '',
      'app/b.ts': '',
      'what?.md': '',
      'whats.md': '',
    },
    ...{ 'app/[...rest]/x.ts': '', '.[id]/a': '' },
  })
  const found = async (pattern: string): Promise<string[]> =>
    (await call(globTool({ root }), { pattern })).content.split('\n').sort()
  expect(await found('app/[id]/page.tsx')).toEqual(['app/[id]/page.tsx', 'app/i/page.tsx'])
  expect(await found('app/[id]/*.tsx')).toEqual(['app/[id]/page.tsx', 'app/i/page.tsx'])
  expect(await found('app/(a)/{b}.ts')).toEqual(['app/(a)/{b}.ts'])
  expect(await found('app/[...rest]/x.ts')).toEqual(['app/[...rest]/x.ts'])
  expect(await found('what?.md')).toEqual(['what?.md', 'whats.md'])
  expect(await found('app/\\[id\\]/page.tsx')).toEqual(['app/[id]/page.tsx'])
  expect(await found('.[id]/a')).toEqual(['.[id]/a'])
})
