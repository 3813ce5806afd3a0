import { execFileSync } from 'node:child_process'
import { chmod, mkdir, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { jsonlSearch } from '#toolbox/jsonl/jsonl-search.js'
import type { FileToolOptions } from '#toolbox/workspace/options.js'
import { findRipgrep } from '#toolbox/search/ripgrep.js'
import { searchTool } from '#toolbox/search/search.js'
import { canLoseRights, withoutRights } from '../jsonl/support.js'
import { call, folderWith, textOf } from '../support.js'

const ripgrep = await findRipgrep()

const DOCUMENTS = {
  'guide.md': 'Intro\nThe needle is here.\nEnd\n',
  'docs/b.txt': 'one needle\ntwo\nNEEDLE three\n',
  'docs/a.md': 'needle 1\nneedle 2\nneedle 3\n',
  'data/rows.csv': 'id,word\n1,hay\n',
}

describe('search', () => {
  describe.each<[string, Pick<FileToolOptions, 'ripgrep'>]>([
    ['ripgrep', ripgrep === undefined ? {} : { ripgrep }],
    ['the built-in engine', { ripgrep: false }],
  ])('with %s', (name, engine) => {
    const isAbsent = name === 'ripgrep' && ripgrep === undefined
    const it = test.skipIf(isAbsent)
    const search = (root: string, options: FileToolOptions = {}): ReturnType<typeof searchTool> =>
      searchTool({ root, ...engine, ...options })

    it('FT-22 matches are grouped by file and sorted by path and line, with counts; no command line and no path of this machine is shown', async () => {
      const root = await folderWith(DOCUMENTS)
      const { ok, content, metadata } = await call(search(root), { query: 'needle' })
      expect({ ok, content }).toEqual({
        ok: true,
        content: [
          '[files: 3 total, 3 shown; matches: 5 shown, 0 omitted]',
          '',
          'docs/a.md',
          '1: needle 1',
          '2: needle 2',
          '3: needle 3',
          '',
          'docs/b.txt',
          '1: one needle',
          '',
          'guide.md',
          '2: The needle is here.',
        ].join('\n'),
      })
      expect(metadata).toEqual({ returncode: 0 })
    })

    it('FT-23 a search without matches is a success that names the scope', async () => {
      const root = await folderWith(DOCUMENTS)
      const { ok, content, metadata } = await call(search(root), { query: 'absent', path: 'docs' })
      expect({ ok, lines: content.split('\n'), metadata }).toMatchObject({
        ok: true,
        lines: ['no matches', 'query: absent', 'scope: path=docs', expect.stringContaining('hint: ')],
        metadata: { matches: 0, returncode: 1 },
      })
    })

    it.each([
      ['(', 'missing closing \\): `\\(`\\. To search for the text as it is, set `literal`\\.'],
      ['(?=x)', 'look-around.* is not supported'],
      ['(x)\\1', 'backreferences are not supported'],
      ['a\\nb', 'lines are searched one by one'],
      ['a\nb', 'lines are searched one by one'],
      ['(a{1000}){1000}{1000}', 'invalid (?:nested )?repe'],
      ['[a-z&&[^b]]', '`&&` cannot stand in `\\[…\\]`'],
      ['a'.repeat(10_001), 'it is longer than 10000 characters'],
    ])('FT-24 an invalid regex is a failure with return code 2: %j', async (query, problem) => {
      const root = await folderWith(DOCUMENTS)
      const { ok, content, metadata } = await call(search(root), { query })
      expect({ ok, metadata }).toEqual({
        ok: false,
        metadata: { error_type: 'InvalidInput', retry: true, returncode: 2 },
      })
      expect(content).toMatch(new RegExp(`^invalid query: ${problem}`))
    })

    it('an empty query is a failure that cannot be retried', async () => {
      const root = await folderWith(DOCUMENTS)
      expect(await call(search(root), { query: '' })).toEqual({
        ok: false,
        content: 'query is empty',
        metadata: { error_type: 'InvalidInput' },
      })
    })

    it('FT-25 long lines are cut, but never within a character', async () => {
      const root = await folderWith({ 'long.txt': `needle ${'😀'.repeat(300)}\n` })
      const { content } = await call(search(root, { maxSearchLineChars: 20 }), { query: 'needle' })
      expect(content).toContain(`1: needle ${'😀'.repeat(13)}...\n`.trimEnd())
      const shorter = await call(search(root), { query: 'needle', max_line_chars: 3 })
      expect(shorter.content).toContain('1: nee...')
    })

    it('of a long line, the part around its first match is shown, and further matches are counted', async () => {
      const root = await folderWith({
        'a.txt': `${'a'.repeat(3_000)}needle${'b'.repeat(3_000)}\r\n`,
        'b.txt': `${'é'.repeat(500)}needle`,
        'c.txt': `needle ${'x'.repeat(1_000)} needle needle`,
      })
      for (const args of [{ query: 'needle' }, { query: 'ne+dle' }, { query: 'NEEDLE', case_sensitive: false }]) {
        const { content } = await call(search(root, { maxSearchLineChars: 20 }), args)
        expect(content).toContain(`1: ...${'a'.repeat(7)}needle${'b'.repeat(7)}...\n`)
        expect(content).toContain(`1: ...${'é'.repeat(14)}needle\n`)
        expect(content).toContain(`1: needle ${'x'.repeat(13)}...\n... 2 more match(es) in line 1`)
        const around = await call(search(root, { maxSearchLineChars: 20 }), { ...args, context_lines: 1 })
        expect(around.content).toContain(`1: ...${'a'.repeat(7)}needle${'b'.repeat(7)}...\n`)
      }
    })

    it('FT-26 exclusions of the host hide files, folders and patterns, and are reported', async () => {
      const root = await folderWith({ ...DOCUMENTS, 'old/x/a.md': 'needle\n', 'a.log': 'needle\n', '#odd': 'needle\n' })
      const excludeGlobs = ['old/', '!*.log', 'docs/*.txt', '#odd']
      const { content } = await call(search(root, { excludeGlobs }), { query: 'needle' })
      expect(content).toContain('scope: exclude=old/, exclude=!*.log, exclude=docs/*.txt, exclude=#odd')
      expect(filesIn(content)).toEqual(['docs/a.md', 'guide.md'])
    })

    it('FT-27 omitted matches and files are counted, per file and in total', async () => {
      const root = await folderWith({ 'a.md': 'x\n'.repeat(5), 'b.md': 'x\n'.repeat(3), 'c.md': 'x\n' })
      const { content } = await call(search(root), { query: 'x', max_files: 2, max_matches_per_file: 2 })
      expect(content).toBe(
        [
          '[files: 3 total, 2 shown; matches: 4 shown, 5 omitted]',
          'a.md\n1: x\n2: x\n... 3 more match(es)',
          'b.md\n1: x\n2: x\n... 1 more match(es)',
          'note: 1 more file(s) omitted',
        ].join('\n\n'),
      )
    })

    it('FT-74 FT-75 by default 50 files with 10 matches each are shown', async () => {
      const files = Array.from({ length: 51 }, (_, index) => [`f${index + 100}.txt`, 'x\n'.repeat(11)])
      const root = await folderWith(Object.fromEntries(files) as Record<string, string>)
      const { content } = await call(search(root), { query: 'x' })
      expect(content).toContain('files: 51 total, 50 shown; matches: 500 shown, 61 omitted')
      const few = await folderWith(
        Object.fromEntries(files.slice(0, 11).map(([path]) => [path, 'x\n'.repeat(4)])) as Record<string, string>,
      )
      expect((await call(search(few), { query: 'x' })).content).toContain(
        'files: 11 total, 11 shown; matches: 44 shown, 0 omitted',
      )
    })

    it('FT-19 only files in the read paths are found', async () => {
      const root = await folderWith({ ...DOCUMENTS, 'docs/deep/c.md': 'needle\n' })
      const readPaths = ['docs/deep', 'guide.md', 'docs/b.txt']
      const { content } = await call(search(root, { readPaths }), { query: 'needle' })
      expect(filesIn(content)).toEqual(['docs/b.txt', 'docs/deep/c.md', 'guide.md'])
      const inDocs = await call(search(root, { readPaths }), { query: 'needle', path: 'docs' })
      expect(filesIn(inDocs.content)).toEqual(['docs/b.txt', 'docs/deep/c.md'])
    })

    it('FT-19 a read path inside another does not show its files twice', async () => {
      const root = await folderWith(DOCUMENTS)
      const { content } = await call(search(root, { readPaths: ['.', 'docs', 'docs/a.md'] }), { query: 'needle' })
      expect(filesIn(content)).toEqual(['docs/a.md', 'docs/b.txt', 'guide.md'])
      expect(content).toContain('matches: 5 shown, 0 omitted')
    })

    it('FT-73 read paths that do not exist give an empty success with return code 1', async () => {
      const root = await folderWith(DOCUMENTS)
      const envelope = await call(search(root, { readPaths: ['missing'] }), { query: 'needle' })
      expect(envelope).toMatchObject({ ok: true, metadata: { matches: 0, returncode: 1 } })
      expect(envelope.metadata).not.toHaveProperty('cmd')
    })

    it('FT-20 a path outside the root is rejected, and so is a link that leads there', async () => {
      const root = await folderWith(DOCUMENTS)
      await writeFile(join(dirname(root), 'outside.txt'), 'needle\n')
      await symlink(join(dirname(root), 'outside.txt'), join(root, 'link.txt'))
      for (const path of ['..', '../outside.txt', 'link.txt']) {
        const envelope = await call(search(root), { query: 'needle', path })
        expect(envelope).toMatchObject({ ok: false, metadata: { error_type: 'PathValidationError' } })
      }
      expect((await call(search(root), { query: 'needle' })).content).not.toContain('outside')
    })

    it('a path that does not exist is a failure', async () => {
      const root = await folderWith(DOCUMENTS)
      expect(await call(search(root), { query: 'needle', path: 'nowhere' })).toEqual({
        ok: false,
        content: 'path not found: nowhere',
        metadata: { error_type: 'NotFound' },
      })
    })

    test.skipIf(process.platform === 'win32' || isAbsent)('a pipe is rejected and does not hang', async () => {
      const root = await folderWith(DOCUMENTS)
      execFileSync('mkfifo', [join(root, 'pipe')])
      const envelope = await call(search(root), { query: 'needle', path: 'pipe' })
      expect(envelope).toMatchObject({ ok: false, metadata: { error_type: 'PathTypeError' } })
      expect((await call(search(root), { query: 'needle' })).ok).toBe(true)
    })

    test.skipIf(isAbsent || !canLoseRights)(
      'FT-29 FT-31 a file that cannot be read leaves a warning, or a failure if it was the only one',
      async () => {
        const root = await folderWith({ 'a.txt': 'needle\n', 'b.txt': 'needle\n' })
        await chmod(join(root, 'a.txt'), 0)
        const tool = search(root)
        const all = await withoutRights(root, () => call(tool, { query: 'needle' }))
        expect(all).toMatchObject({ ok: true, metadata: { returncode: 2, warning: 'the search is not complete' } })
        expect(all.metadata['warning_excerpt']).toMatch(/a\.txt.*denied|denied.*a\.txt/i)
        expect(filesIn(all.content)).toEqual(['b.txt'])
        const alone = await withoutRights(root, () => call(tool, { query: 'needle', path: 'a.txt' }))
        expect(alone).toMatchObject({ ok: false, metadata: { error_type: 'SearchFailed', returncode: 2 } })
        expect(alone.content).toContain('failed (rc=2): ')
      },
    )

    it('lines with Unicode line separators, invalid UTF-8, and empty lines are found', async () => {
      const root = await folderWith({
        'separators.txt': 'a\u2028needle\nb\u2029needle\nc\u0085needle\nd\fneedle\n',
        'latin1.txt': Buffer.from('caf\xe9 needle\nplain\n', 'latin1'),
        'empty.txt': 'x\n\ny\n',
      })
      const { content } = await call(search(root), { query: 'needle|^$' })
      expect(content).toContain('empty.txt\n2: \n')
      expect(content).toContain('latin1.txt\n1: caf\ufffd needle')
      expect(content).toContain('1: a\u2028needle\n2: b\u2029needle\n3: c\u0085needle\n4: d\fneedle')
    })

    it('`$` matches the end of a line that ends in CR LF', async () => {
      const root = await folderWith({ 'dos.txt': 'the total\r\ntotals\r\n\r\n', 'unix.txt': 'total\n' })
      const { content } = await call(search(root), { query: 'total$|^$' })
      expect(content).toContain('dos.txt\n1: the total\n3: \n\nunix.txt\n1: total')
    })

    it('`literal` matches the query as written', async () => {
      const root = await folderWith({ 'a.txt': 'f(x) = [1]\nfx = 1\n' })
      const { content } = await call(search(root), { query: 'f(x) = [', literal: true })
      expect(content).toContain('a.txt\n1: f(x) = [1]')
      expect(content).toContain('matches: 1 shown')
    })

    it('`case_sensitive` is on unless it is switched off', async () => {
      const root = await folderWith(DOCUMENTS)
      const exact = await call(search(root), { query: 'NEEDLE', path: 'docs/b.txt' })
      const folded = await call(search(root), { query: 'NEEDLE', path: 'docs/b.txt', case_sensitive: false })
      expect([exact, folded].map(({ content }) => /matches: \d+/.exec(content)?.[0])).toEqual([
        'matches: 1',
        'matches: 2',
      ])
    })

    it('`context_lines` shows the lines around matches, each once, with gaps marked', async () => {
      const lines = ['1', '2 x', '3', '4 x', '5', '6', '7', '8 x', '9']
      const root = await folderWith({ 'a.txt': lines.join('\r\n') })
      const { content } = await call(search(root), { query: 'x', context_lines: 1 })
      const shown = ['1- 1', '2: 2 x', '3- 3', '4: 4 x', '5- 5', '--', '7- 7', '8: 8 x', '9- 9']
      expect(content).toContain(['a.txt', ...shown.map((line) => line)].join('\n'))
    })

    it('hidden and ignored files are skipped, even if the ignore file is above the start folder', async () => {
      const root = await folderWith({
        ...DOCUMENTS,
        '.gitignore': 'b.txt\n*.tmp\n',
        '.hidden/a.md': 'needle\n',
        'docs/x.tmp': 'needle\n',
        'docs/deep/b.txt': 'needle\n',
        '.thinharness/outputs/o.txt': 'needle\n',
      })
      expect(filesIn((await call(search(root), { query: 'needle' })).content)).toEqual(['docs/a.md', 'guide.md'])
      expect(filesIn((await call(search(root), { query: 'needle', path: 'docs' })).content)).toEqual(['docs/a.md'])
      const named = await call(search(root), { query: 'needle', path: 'docs/b.txt' })
      expect(filesIn(named.content)).toEqual(['docs/b.txt'])
    })

    it('ignore files above the root do not count', async () => {
      const root = await folderWith({
        ...DOCUMENTS,
        'docs/c.md': 'needle\n',
        'docs/.ignore': 'b.txt\n',
        '.gitignore': 'c.md\n',
      })
      await writeFile(join(dirname(root), '.gitignore'), '*.md\n')
      expect(filesIn((await call(search(root), { query: 'needle' })).content)).toEqual(['docs/a.md', 'guide.md'])
      expect(filesIn((await call(search(root), { query: 'needle', path: 'docs' })).content)).toEqual(['docs/a.md'])
    })

    test.skipIf(isAbsent || name !== 'ripgrep')(
      '`file_type` names a type of ripgrep; an unknown one is a failure that suggests a similar one',
      async () => {
        const root = await folderWith({ ...DOCUMENTS, Makefile: 'needle\n', '.zshrc': 'needle\n' })
        const markdown = await call(search(root), { query: 'needle', file_type: 'markdown' })
        expect(filesIn(markdown.content)).toEqual(['docs/a.md', 'guide.md'])
        expect(filesIn((await call(search(root), { query: 'needle', file_type: 'make' })).content)).toEqual([
          'Makefile',
        ])
        expect((await call(search(root), { query: 'needle', file_type: 'zsh' })).content).toContain('no matches')
        const unknown = await call(search(root), { query: 'needle', file_type: 'markdwon' })
        expect(unknown).toMatchObject({ ok: false, metadata: { error_type: 'InvalidInput', retry: true } })
        expect(unknown.content).toContain('Did you mean `markdown`?')
        expect((await call(search(root), { query: 'needle', file_type: '*.md' })).ok).toBe(false)
        // Ignore files above the root and above the place: the built-in engine searches.
        await writeFile(join(dirname(root), '.gitignore'), '')
        await writeFile(join(root, '.gitignore'), '')
        const above = await call(search(root), { query: 'needle', file_type: 'markdown', path: 'docs' })
        expect(filesIn(above.content)).toEqual(['docs/a.md'])
      },
    )

    it('counting ends at 10,000 matching lines of a file, and the result reports it', async () => {
      const root = await folderWith({ 'many.txt': 'x\n'.repeat(25_000) })
      const { content } = await call(search(root), { query: 'x' })
      expect(content).toContain('matches: 10 shown, 9990+ omitted')
      expect(content).toContain('... 9990+ more match(es)')
    })

    it('FT-67 a long result is saved to a file, which can be searched in turn', async () => {
      const root = await folderWith({ 'a.txt': 'needle in a long line\n'.repeat(30) })
      const tool = search(root, { maxToolChars: 300 })
      const { ok, content, metadata } = await call(tool, { query: 'needle', max_matches_per_file: 30 })
      expect({ ok, metadata }).toMatchObject({ ok: true, metadata: { truncated: true, returncode: 0 } })
      expect(content).toContain('Call `read` with path')
      const saved = metadata['saved_to_display'] as string
      expect(saved).toMatch(/^\.thinharness\/outputs\/search-\d+-[0-9a-f]{8}\.txt$/)
      expect(await textOf(root, saved)).toContain('30: needle in a long line')
      const inside = await call(tool, { query: '^30: ', path: saved })
      expect(inside.content).toContain('matches: 1 shown')
    })

    it('names with odd characters are found, and cannot add lines of their own', async () => {
      const root = await folderWith({
        '-e': 'needle\n',
        'a\nb.txt': 'needle\n',
        'ü ß.md': 'needle\n',
        '[x]{y}': 'needle\n',
      })
      const { content } = await call(search(root), { query: 'needle' })
      expect(filesIn(content)).toEqual(['-e', '[x]{y}', 'a\\u000ab.txt', 'ü ß.md'])
      expect(filesIn((await call(search(root), { query: 'needle', path: '-e' })).content)).toEqual(['-e'])
    })

    it('an aborted call rejects with the reason of its signal', async () => {
      const root = await folderWith(DOCUMENTS)
      const context = { signal: AbortSignal.abort(new Error('stop it')) }
      await expect(
        searchTool({ root, ...engine }).call({ query: 'x' }, { ...outside(root), ...context }),
      ).rejects.toThrow('stop it')
    })
  })

  test('FT-28 a search that takes too long is a failure that names the time limit', async () => {
    const root = await folderWith()
    // Many small files: each is a chance to look at the clock.
    await mkdir(join(root, 'many'))
    for (let index = 0; index < 300; index++) await writeFile(join(root, 'many', `${index}.txt`), 'hay\n'.repeat(100))
    const envelope = await call(searchTool({ root, ripgrep: false, searchTimeoutMs: 1 }), { query: 'needle' })
    expect(envelope).toMatchObject({
      ok: false,
      content: expect.stringContaining('the built-in search timed out after 0.001s') as unknown,
      metadata: { error_type: 'Timeout', timeout: 0.001 },
    })
  })

  test('FT-20 optional arguments are not required and have no default; `path` is the only scope', () => {
    for (const { parameters, pathFields } of [searchTool(), jsonlSearch()]) {
      const properties = parameters['properties'] as Readonly<Record<string, Readonly<Record<string, unknown>>>>
      expect(parameters['additionalProperties']).toBe(false)
      expect(Object.values(properties).filter((property) => 'default' in property)).toEqual([])
      expect(Object.keys(properties).filter((field) => /path|root|dir|glob/.test(field))).toEqual(['path'])
      expect(pathFields).toEqual(['path'])
    }
    expect(searchTool().parameters['required']).toEqual(['query'])
    expect(jsonlSearch().parameters['required']).toBeUndefined()
  })
})

/** The paths in a result. */
function filesIn(content: string): string[] {
  return content
    .split('\n\n')
    .slice(1)
    .map((block) => block.split('\n')[0] ?? '')
    .filter((line) => !line.startsWith('note: '))
}

function outside(root: string): Parameters<ReturnType<typeof searchTool>['call']>[1] {
  return {
    runId: 'run_1',
    callId: 'call_1',
    toolName: 'search',
    root,
    depth: 0,
    idempotencyKey: 'run_1:call_1',
    metadata: {},
    deps: undefined,
    signal: new AbortController().signal,
    progress: () => undefined,
    ask: () => {
      throw new Error('There is nobody to ask.')
    },
    decide: () => Promise.reject(new Error('There is no model.')),
    spawn: () => {
      throw new Error('No run is started here.')
    },
  }
}
