import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { globTool } from '#toolbox/files/glob.js'
import { jsonlSearch } from '#toolbox/jsonl/jsonl-search.js'
import { listTool } from '#toolbox/files/list.js'
import { findRipgrep } from '#toolbox/search/ripgrep.js'
import { searchTool } from '#toolbox/search/search.js'
import { call, folderWith } from '../support.js'
import { rounds, timeLimit } from '../../support/length.js'

const ripgrep = await findRipgrep()

// Names that programs trip over: they look like options, patterns, rules, lines of a listing; some are no text at all.
const name = fc.constantFrom(
  ...['a', 'b.md', 'C.MD', 'a b', '-rf', '--files', '[a]', '{a,b}', '#x', '!x', 'a\nb', 'a\tb', '\u001b[31m', '~'],
  ...[
    '\u202Etxt',
    'é',
    'e\u0301',
    '中.jsonl',
    'r.jsonl',
    'R.JSONL',
    '.hidden',
    '.h.jsonl',
    'x'.repeat(200),
    'a\\b',
    '%2e',
  ],
)
const path = fc.array(name, { minLength: 1, maxLength: 3 }).map((names) => names.join('/'))

const content = fc.constantFrom<string | Buffer>(
  ...['needle\n', 'hay\n', '{"a":"needle"}\n', 'needle', '\n\nneedle\r\nneedle\r\n', 'x\u2028needle\u2028x\n'],
  ...[`${'x'.repeat(100_000)}needle${'y'.repeat(100_000)}\nneedle\n`, 'hay\n'.repeat(50_000) + 'needle\n'],
  ...[Buffer.from('\ufeffneedle\nhay\nneedle\n', 'utf16le'), Buffer.from('\ufeffneedle\nhay\n')],
  ...[Buffer.from('needle\n\0needle\n'), Buffer.concat([Buffer.from([0xff, 0x80]), Buffer.from('needle\n')])],
)

const piece = fc.constantFrom('a', '*.md', '*', '**', '[a]', '\\#x', '\\!x', '{a,b}.md', 'r.jsonl', '*\\ b', '中*')
const rule = fc
  .tuple(fc.constantFrom('', '', '!'), fc.constantFrom('', '/'), fc.array(piece, { minLength: 1, maxLength: 2 }))
  .map(([negation, start, pieces]) => negation + start + pieces.join('/'))
const ignoreFile = fc.record({
  folder: fc.constantFrom('', 'a/', '-rf/', '[a]/'),
  file: fc.constantFrom('.gitignore', '.ignore', '.rgignore'),
  rules: fc.array(rule, { minLength: 1, maxLength: 3 }),
})

const tree = fc.record({
  files: fc.uniqueArray(fc.tuple(path, content), { selector: ([each]) => each, minLength: 1, maxLength: 8 }),
  ignoreFiles: fc.array(ignoreFile, { maxLength: 2 }),
})

/** Writes what fits: a path cannot be a file and a folder at once, and the first one wins. */
async function made({
  files,
  ignoreFiles,
}: typeof tree extends fc.Arbitrary<infer Tree> ? Tree : never): Promise<string> {
  const root = await folderWith()
  const outside = await folderWith({ 'needle.md': 'needle outside\n', 'r.jsonl': '{"a":"needle outside"}\n' })
  const rules = ignoreFiles.map(({ folder, file, rules }) => [folder + file, rules.join('\n')] as const)
  for (const [at, text] of [...files, ...rules]) {
    await mkdir(dirname(join(root, at)), { recursive: true })
      .then(() => writeFile(join(root, at), text))
      .catch(() => undefined)
  }
  await symlink(outside, join(root, 'link-outside'))
  await symlink(join(outside, 'needle.md'), join(root, 'link-file.md'))
  await symlink('.', join(root, 'link-loop'))
  // A name that is no UTF-8, where the file system takes it.
  await writeFile(Buffer.concat([Buffer.from(`${root}/`), Buffer.from([0xff, 0xfe])]), 'needle\n').catch(
    () => undefined,
  )
  return root
}

const timeout = timeLimit(120_000)

test.skipIf(ripgrep === undefined)(
  'both engines give the same results in trees with odd names, ignore rules, links and binary files',
  { timeout },
  async () => {
    const how = fc.record({
      query: fc.constantFrom('needle', '^needle$', 'x+needle', 'NEEDLE|hay'),
      case_sensitive: fc.boolean(),
      max_files: fc.constantFrom(1, 3, 100),
      max_matches_per_file: fc.constantFrom(1, 100),
      context_lines: fc.constantFrom(0, 1),
    })
    const excludeGlobs = fc.constantFrom([], ['*.md'], ['a/**', '!-rf'])
    await fc.assert(
      fc.asyncProperty(tree, how, excludeGlobs, async (drawn, args, excluded) => {
        const root = await made(drawn)
        const options = { root, excludeGlobs: excluded }
        const [theirs, ours] = await Promise.all([
          call(searchTool({ ...options, ripgrep: ripgrep ?? '' }), args),
          call(searchTool({ ...options, ripgrep: false }), args),
        ])
        expect(ours).toEqual(theirs)
        expect(ours.content).not.toContain('outside')
      }),
      rounds(15, 1_000),
    )
  },
)

test('`search`, `glob`, `list` and `jsonl_search` see the same files', { timeout }, async () => {
  await fc.assert(
    fc.asyncProperty(tree, async ({ files, ignoreFiles }) => {
      const root = await made({ files: files.map(([at]) => [at, '{"a":1}\n']), ignoreFiles })
      const most = { max_results: 1_000 }
      const [searched, globbed, listed, rows] = await Promise.all([
        call(searchTool({ root, ripgrep: false }), { query: '"a"', max_files: 1_000 }),
        call(globTool({ root }), { pattern: '**', ...most }),
        call(listTool({ root }), { recursive: true, ...most }),
        call(jsonlSearch({ root }), { max_files: 1_000 }),
      ])
      const found = namesIn(searched.content, /^(?!\d+: |\.\.\. |\[files: |note:|no matches|query:|scope:|hint:)(.+)$/)
      expect(namesIn(globbed.content, /^(?!link-|no files|\ufffd)(.+)$/)).toEqual(found)
      expect(namesIn(listed.content, /^file (?!link-|\ufffd)(.+)$/)).toEqual(found)
      expect(namesIn(rows.content, /^(?!\s|summary:)(.+)$/)).toEqual(found.filter((each) => /\.jsonl$/i.test(each)))
    }),
    rounds(15, 1_000),
  )
})

function namesIn(content: string, line: RegExp): string[] {
  return (
    content
      .split('\n')
      .flatMap((each) => line.exec(each)?.[1] ?? [])
      // They are files as well, shown where a rule brings them back, with no row in them.
      .filter((each) => !/\.(?:git|rg)?ignore$/.test(each))
      .sort()
  )
}
