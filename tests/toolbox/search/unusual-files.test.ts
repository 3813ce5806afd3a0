import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { searchTool } from '#toolbox/search/search.js'
import { findRipgrep } from '#toolbox/search/ripgrep.js'
import type { FileToolOptions } from '#toolbox/workspace/options.js'
import { call, folderWith } from '../support.js'

const ripgrep = await findRipgrep()

describe.each<[string, Pick<FileToolOptions, 'ripgrep'>]>([
  ['ripgrep', ripgrep === undefined ? {} : { ripgrep }],
  ['the built-in engine', { ripgrep: false }],
])('with %s', (name, engine) => {
  const it = test.skipIf(name === 'ripgrep' && ripgrep === undefined)
  const search = (root: string): ReturnType<typeof searchTool> => searchTool({ root, ...engine })

  it('a binary file is skipped; a text with a late NUL is searched only if it is named', async () => {
    const text = 'needle 0123456789\n'.repeat(5_000)
    const root = await folderWith({
      'early.bin': `needle\n\0needle\n`,
      'late.log': `${text}\0${text}`,
      'utf16.txt': Buffer.from(`\ufeffneedle\n`, 'utf16le'),
    })
    const { content } = await call(search(root), { query: 'needle', max_matches_per_file: 1 })
    expect(content).toMatch(/files: 1 total[^]*\n\nutf16\.txt\n/)
    const late = await call(search(root), { query: 'needle', path: 'late.log' })
    expect(late.content).toMatch(/\n1: needle[^]*... 9990\+ more match\(es\)/)
    expect((await call(search(root), { query: 'needle', path: 'early.bin' })).content).toContain('no matches')
  })

  it('a line of megabytes full of matches is one match, and is cut', async () => {
    const root = await folderWith({ 'one-line.json': `${'a'.repeat(5_000_000)}\nb\na\n` })
    const { content } = await call(search(root), { query: 'a', max_line_chars: 5 })
    expect(content).toContain('one-line.json\n1: aaaaa...\n3: a')
  })

  it('matches around a line of 70 MB are found', async () => {
    const root = await folderWith({ 'a.txt': 'needle 1\n' })
    const file = await open(join(root, 'a.txt'), 'r+')
    await file.write(Buffer.alloc(70_000_000, 'needle '), 0, 70_000_000, 9)
    await file.write('\nneedle 3\n', 70_000_009)
    await file.close()
    const { ok, content } = await call(search(root), { query: 'needle \\d?', max_matches_per_file: 3 })
    expect(ok).toBe(true)
    expect(content).toContain('a.txt\n1: needle 1\n3: needle 3')
  }, 60_000)
})

test('without ripgrep, `file_type` is rejected, and a regex on a very long line leaves a warning', async () => {
  const root = await folderWith({ 'a.txt': `needle 1\n${'x'.repeat(2_000_000)} needle 2\n` })
  const refused = await call(searchTool({ root, ripgrep: false }), { query: 'needle', file_type: 'md' })
  expect(refused).toMatchObject({ ok: false, metadata: { error_type: 'InvalidInput', retry: true } })
  expect(refused.content).toContain('`file_type` (`md`) needs ripgrep')
  const found = await call(searchTool({ root, ripgrep: false }), { query: 'needle \\d' })
  expect(found.content).toContain('a.txt\n1: needle 1')
  expect(found.metadata).toMatchObject({
    returncode: 2,
    warning_excerpt: 'a.txt: only the beginning of a very long line was searched',
  })
  expect((await call(searchTool({ root, ripgrep: false }), { query: 'needle 2' })).content).toMatch(
    /2: \.\.\.x+ needle 2/,
  )
})
