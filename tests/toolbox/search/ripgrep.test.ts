import { chmod, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { findProgram } from '#toolbox/process/find-program.js'
import type { SearchRequest } from '#toolbox/search/engine.js'
import { engineFor } from '#toolbox/search/choose-engine.js'
import { exclusionsOf } from '#toolbox/search/engine.js'
import { searchTool } from '#toolbox/search/search.js'
import { compilePattern } from '#toolbox/search/pattern.js'
import { ripgrepEngine, RipgrepUnavailable } from '#toolbox/search/ripgrep.js'
import { callTime } from '#toolbox/workspace/call-time.js'
import { call, folderWith, workspaceIn } from '../support.js'

/** A program that stands in for ripgrep. */
async function program(root: string, script: string): Promise<string> {
  const path = join(dirname(root), 'rg')
  await writeFile(path, `#!/bin/sh\n${script}\n`)
  await chmod(path, 0o755)
  return path
}

/** A program that writes counts and ends with a code. */
async function writing(
  root: string,
  counts: readonly (readonly [path: string, matches: number])[],
  code: number,
  errors = '',
): Promise<string> {
  const output = join(dirname(root), 'output')
  await writeFile(output, counts.map(([path, matches]) => `${path}\0${matches}\n`).join(''))
  return program(root, `cat '${output}'\nprintf '%s' '${errors}' >&2\nexit ${code}`)
}

async function requestFor(root: string, query: string, signal = new AbortController().signal): Promise<SearchRequest> {
  const compiled = await compilePattern(query, { scope: 'line' })
  if (!compiled.ok) throw new Error(compiled.problem)
  return {
    workspace: workspaceIn(root),
    starts: [root],
    query: { text: query, literal: false, caseSensitive: true },
    pattern: compiled.pattern,
    fileType: undefined,
    exclusions: exclusionsOf([]),
    time: callTime(20, signal),
  }
}

describe.skipIf(process.platform === 'win32')('a program in place of ripgrep', () => {
  test('FT-29 exit code 2 with matches is a success with a warning', async () => {
    const root = await folderWith({ 'a.txt': 'needle\n' })
    const ripgrep = await writing(root, [['a.txt', 1]], 2, `rg: ${'no such thing '.repeat(60)}`)
    const { ok, content, metadata } = await call(searchTool({ root, ripgrep }), { query: 'needle' })
    expect({ ok, metadata }).toMatchObject({
      ok: true,
      metadata: { returncode: 2, warning: 'the search is not complete' },
    })
    expect(metadata['warning_excerpt']).toMatch(/^rg: no such thing .{380,386}\.\.\.$/)
    expect(content).toContain('a.txt\n1: needle')
  })

  test('FT-30 files that arrive out of order are sorted, and their first matches are shown by line', async () => {
    const lines = Array.from({ length: 9 }, (_, index) => `needle ${index + 1}\n`).join('')
    const root = await folderWith({ 'a.txt': lines, 'b.txt': 'needle\n', 'c.txt': 'needle\n' })
    const ripgrep = await writing(
      root,
      [
        ['c.txt', 1],
        ['a.txt', 9],
        ['b.txt', 1],
      ],
      0,
    )
    const { content } = await call(searchTool({ root, ripgrep }), { query: 'needle', max_matches_per_file: 3 })
    expect(content.split('\n\n').slice(1)).toEqual([
      'a.txt\n1: needle 1\n2: needle 2\n3: needle 3\n... 6 more match(es)',
      'b.txt\n1: needle',
      'c.txt\n1: needle',
    ])
  })

  test('only lines of the file at its place inside the root are shown, and a file without any is left out', async () => {
    const root = await folderWith({ 'a.txt': 'hay\n', 'b.txt': 'x\nneedle inside\n', 'c.bin': '\0needle\n' })
    const ripgrep = await writing(
      root,
      [
        ['a.txt', 3],
        ['b.txt', 7],
        ['c.bin', 1],
        ['gone.txt', 2],
      ],
      0,
    )
    const { content } = await call(searchTool({ root, ripgrep }), { query: 'needle' })
    expect(content).toBe('[files: 1 total, 1 shown; matches: 1 shown, 0 omitted]\n\nb.txt\n2: needle inside')
  })

  test('counted matches in a line that is too long to be searched are reported', async () => {
    const root = await folderWith({ 'a.txt': `needle 1\n${'x'.repeat(2_000_000)} needle 2\n` })
    const ripgrep = await writing(root, [['a.txt', 2]], 0)
    const { content, metadata } = await call(searchTool({ root, ripgrep }), { query: 'needle \\d' })
    expect(content).toContain('a.txt\n1: needle 1\n... 1 more match(es)')
    expect(metadata).toMatchObject({
      returncode: 2,
      warning_excerpt: 'a.txt: only the beginning of a very long line was searched',
    })
    const shown = await call(searchTool({ root, ripgrep }), { query: 'needle \\d', max_matches_per_file: 1 })
    expect(shown.metadata).toEqual({ returncode: 0 })
  })

  test('a pattern that only the program refuses is searched by the built-in engine', async () => {
    const root = await folderWith({ 'a.txt': 'a{x}\n' })
    const ripgrep = await writing(root, [], 2, 'rg: regex parse error:\nerror: what is this')
    const { content } = await call(searchTool({ root, ripgrep }), { query: 'a{x}' })
    expect(content).toContain('a.txt\n1: a{x}')
  })

  test('the last line of a file, and those of files in other encodings, are found at their places', async () => {
    const root = await folderWith({
      'a.txt': 'hay\nneedle',
      'b.txt': '\ufeffhay\nneedle é\r\n',
      'c.txt': Buffer.from('\ufeffhay é\nneedle é\n', 'utf16le'),
      'd.txt': Buffer.from('hay\nneedle \xe9\n', 'latin1'),
    })
    for (const context_lines of [0, 1]) {
      const { content } = await call(searchTool({ root }), { query: 'needle', context_lines })
      expect(content).toContain('files: 4 total, 4 shown')
      expect(content.split('\n').filter((line) => /^\d: needle/.test(line))).toEqual([
        '2: needle',
        '2: needle é',
        '2: needle é',
        '2: needle \ufffd',
      ])
    }
  })

  test("of the program's complaints, only those about existing files in the scope count", async () => {
    const root = await folderWith({ 'a.txt': 'needle\n', 'b.txt': 'x' })
    const gone = 'rg: c/only-outside.txt: Permission denied (os error 13)'
    const elsewhere = 'rg: .gitignore: line 1: error parsing glob a line of elsewhere\nrg: ../x: Gone (os error 2)'
    const search = async (errors: string) => {
      const ripgrep = await writing(root, [['a.txt', 1]], 2, errors)
      const { ok, metadata } = await call(searchTool({ root, ripgrep }), { query: 'needle' })
      return [ok, metadata['returncode'], metadata['warning_excerpt']]
    }
    const there = 'rg: b.txt: Permission denied (os error 13)'
    expect(await search(`${gone}\n${there}\n${elsewhere}`)).toEqual([true, 2, there])
    expect(await search(gone)).toEqual([true, 0, undefined])
    expect(await search(`rg: ${'x'.repeat(3_000)}`)).toEqual([true, 2, ''])
  })

  test('matches in files that will not be shown are only counted', async () => {
    const files = Array.from({ length: 9 }, (_, index) => [`${index}.txt`, 'needle\n'.repeat(index + 1)] as const)
    const root = await folderWith(Object.fromEntries(files))
    const search = searchTool({ root })
    const { content } = await call(search, { query: 'needle', max_files: 1, max_matches_per_file: 2 })
    expect(content).toContain('files: 9 total, 1 shown; matches: 1 shown, 44 omitted]\n\n0.txt\n1: needle\n\nnote: 8')
  })

  test("FT-31 exit code 2 without matches is a failure with the code and the program's message", async () => {
    const root = await folderWith({ 'a.txt': 'needle\n' })
    const ripgrep = await writing(root, [], 2, 'rg: something broke')
    expect(await call(searchTool({ root, ripgrep }), { query: 'needle' })).toEqual({
      ok: false,
      content: 'ripgrep failed (rc=2): rg: something broke',
      metadata: {
        error_type: 'SearchFailed',
        returncode: 2,
      },
    })
  })

  test('FT-28 a program that does not end is stopped in time, even if it has started another', async () => {
    const root = await folderWith({ 'a.txt': 'needle\n' })
    const ripgrep = await program(root, 'sleep 30')
    const envelope = await call(searchTool({ root, ripgrep, searchTimeoutMs: 100 }), { query: 'needle' })
    expect(envelope).toMatchObject({
      ok: false,
      content: expect.stringContaining('ripgrep timed out after 0.1s') as unknown,
      metadata: { error_type: 'Timeout', timeout: 0.1 },
    })
  })

  test('an abort stops the program', async () => {
    const root = await folderWith({ 'a.txt': 'needle\n' })
    const controller = new AbortController()
    const path = await program(root, 'sleep 30')
    const request = await requestFor(root, 'needle', controller.signal)
    const search = ripgrepEngine(path).search(request, () => undefined)
    controller.abort(new Error('no longer wanted'))
    await expect(search).rejects.toThrow('no longer wanted')
  })

  test("FT-19 matches outside the root, in the harness's own folder, or in a link out of the root are not shown", async () => {
    const root = await folderWith({ 'a.txt': 'needle\n', '.thinharness/outputs/o.txt': 'needle\n' })
    const found = ['../b.txt', '/outside.txt', '.thinharness/outputs/o.txt', 'gone/c.txt', 'a.txt']
    const ripgrep = await writing(
      root,
      found.map((path) => [path, 1] as const),
      0,
    )
    const { content } = await call(searchTool({ root, ripgrep, readPaths: ['a.txt'] }), { query: 'needle' })
    expect(content).toContain('files: 1 total, 1 shown')
    expect(content).toMatch(/\n\na\.txt\n1: needle$/)
  })

  test('a program that cannot be started is a failure if it was named, and replaced if it was found', async () => {
    const root = await folderWith({ 'a.txt': 'needle\n' })
    const missing = join(dirname(root), 'missing')
    const request = await requestFor(root, 'needle')
    await expect(ripgrepEngine(missing).search(request, () => undefined)).rejects.toThrow(RipgrepUnavailable)
    const envelope = await call(searchTool({ root, ripgrep: missing }), { query: 'needle' })
    expect(envelope).toMatchObject({ ok: false, content: expect.stringContaining('cannot run ripgrep') as unknown })
    expect((await engineFor(false)).name).toBe('the built-in search')
    expect((await engineFor(missing)).name).toBe('ripgrep')
  })

  test('a program is found on PATH only if it is executable', async () => {
    const root = await folderWith({ 'bin/rg': '#!/bin/sh\n', 'other/x': '' })
    const folders = [join(root, 'other'), '', join(root, 'bin')].join(':')
    expect(await findProgram('rg', folders)).toBeUndefined()
    await chmod(join(root, 'bin', 'rg'), 0o755)
    expect(await findProgram('rg', folders)).toBe(join(root, 'bin', 'rg'))
  })
})

test.skipIf(process.platform === 'win32')(
  'counts are read whatever the chunks, names with line breaks included',
  async () => {
    const root = await folderWith({ 'a.txt': 'needle\n', 'b\nc.txt': 'needle\n' })
    const pieces = ['a.t', 'xt\\0', '1', '\\nb\\nc.txt\\0001\\n', '\\377\\0001\\n']
    const ripgrep = await program(root, pieces.map((piece) => `printf '${piece}'; sleep 0.05`).join('\n'))
    const found: unknown[] = []
    const end = await ripgrepEngine(ripgrep).search(await requestFor(root, 'needle'), (file) => found.push(file))
    expect([end.returncode, found]).toEqual([
      0,
      [
        { path: join(root, 'a.txt'), matches: 1 },
        { path: join(root, 'b\nc.txt'), matches: 1 },
      ],
    ])
  },
)
