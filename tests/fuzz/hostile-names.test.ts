import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { fileTools, jsonlSearch } from 'thinharness/tools'
import { call, folderWith } from '../toolbox/support.js'
import { rounds, timeLimit } from '../support/length.js'

/** Names as nobody gives them to files: lines, orders to terminals, options, texts that run backwards, very long ones. */
const name = fc.oneof(
  fc.constantFrom(
    'a\nb',
    'file a.txt',
    '\u001b[2J',
    '\u001b]0;x\u0007',
    '\r',
    '\t',
    '\u0085',
    '\u2028',
    '\u202Etxt.exe',
  ),
  fc.constantFrom(
    '-rf',
    '--pre=sh',
    '--',
    ' ',
    '  a',
    'a ',
    'a.',
    '...',
    '"',
    "'",
    '`x`',
    '$(x)',
    '#',
    '!',
    '&;|',
    '\u007f',
  ),
  fc.constantFrom(
    'x'.repeat(255),
    'é'.repeat(127),
    'e\u0301',
    '\u200b',
    '\ufeff',
    'CON',
    'nul.txt',
    'a:b',
    'a*b',
    '[a]',
    '{a}',
    '~',
  ),
  fc.string({ unit: 'binary', minLength: 1, maxLength: 20 }),
)
/** Those that a file system takes as one name: the folder itself, what is hidden and what is no text left out. */
const visible = name
  .map((drawn) => drawn.replace(/[/\0\\]/g, '_').replace(/^[.~]+/, '_'))
  .filter((each) => each !== '' && Buffer.byteLength(each) <= 255 && !/\p{Surrogate}/u.test(each))

// What starts a line of its own in a terminal or a listing, or moves about in one.
const CONTROLS = /[\p{Cc}\u2028\u2029]/u

test(
  'files of any name are found by every tool, each on a line of its own without control characters, and read by their name',
  async () => {
    await fc.assert(
      fc.asyncProperty(fc.uniqueArray(visible, { minLength: 1, maxLength: 6 }), async (names) => {
        const root = await folderWith({ 'plain.txt': 'x\n' })
        const made: string[] = []
        for (const [index, each] of names.entries()) {
          const path = join(index % 2 === 0 ? each : 'folder', each)
          await mkdir(dirname(join(root, path)), { recursive: true })
          await writeFile(join(root, path), `content ${index}\n`)
          made.push(path)
        }
        // A name that is no UTF-8 cannot be asked for; nothing breaks because of it.
        const odd = Buffer.concat([Buffer.from(join(root, 'odd-')), Buffer.from([0xff, 0xc0])])
        await writeFile(odd, 'odd\n').catch(() => undefined)
        const tools = new Map([...fileTools({ root }), jsonlSearch({ root })].map((tool) => [tool.name, tool]))
        const use = (tool: string, args: Parameters<typeof call>[1]) => call(tools.get(tool)!, args)

        for (const [index, path] of made.entries()) {
          expect(await use('read', { path: `./${path}` })).toMatchObject({
            ok: true,
            content: expect.stringContaining(`content ${index}`) as unknown,
          })
          const edits = [{ path: `./${path}`, old_string: 'content', new_string: 'CONTENT' }]
          expect((await use('edit', { edits })).ok).toBe(true)
        }
        const listed = (await use('list', { recursive: true })).content.split('\n')
        const globbed = (await use('glob', { pattern: '**' })).content.split('\n')
        const searched = (await use('search', { query: '^CONTENT' })).content.split('\n')
        expect(listed.filter((line) => line.startsWith('file ') && !line.includes('odd-'))).toHaveLength(
          made.length + 1,
        )
        expect(globbed.filter((line) => !line.startsWith('odd-'))).toHaveLength(made.length + 1)
        expect(searched.filter((line) => /^1: CONTENT \d$/.test(line))).toHaveLength(made.length)
        expect([...listed, ...globbed, ...searched].filter((line) => CONTROLS.test(line))).toEqual([])
        expect((await use('jsonl_search', {})).ok).toBe(true)
      }),
      rounds(15, 600),
    )
  },
  timeLimit(300_000),
)
