import fc from 'fast-check'
import { expect, test } from 'vitest'
import { searchTool } from '#toolbox/search/search.js'
import { findRipgrep } from '#toolbox/search/ripgrep.js'
import { call, folderWith } from '../support.js'
import { rounds, timeLimit } from '../../support/length.js'

const ripgrep = await findRipgrep()

// Pieces of text that the engines could see differently: line ends of other kinds, marks, cases. Bytes that are no UTF-8
// and a CR within a line are left out: without ripgrep, `.` matches them.
const piece = fc.constantFrom(
  ...[
    'a',
    'b',
    'A',
    ' ',
    '.',
    '-',
    '_',
    '1',
    'k',
    '\u212a',
    's',
    'ſ',
    'é',
    'É',
    'ß',
    'ẞ',
    'σ',
    'ς',
    '中',
    '😀',
    '\u0301',
  ],
  ...['\n', '\n', '\n', '\r\n', '\t', '\f', '\u0085', '\u2028', '\u2029'],
)
const content = fc.array(piece, { maxLength: 40 }).map((pieces) => Buffer.from(pieces.join('')))
const file = fc.record({
  path: fc.constantFrom(
    'a.md',
    'b.txt',
    'c/d.md',
    'c/e/f.json',
    '.hidden',
    '.git/x',
    'c/.h.md',
    'B.md',
    'ignored/i.md',
  ),
  content,
  form: fc.constantFrom('plain', 'plain', 'plain', 'bom', 'utf16le', 'utf16be', 'binary'),
})

function encoded(bytes: Buffer, form: string): Buffer {
  switch (form) {
    case 'bom':
      return Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), bytes])
    case 'utf16le':
      return Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from(bytes.toString(), 'utf16le')])
    case 'utf16be':
      return Buffer.concat([Buffer.from([0xfe, 0xff]), Buffer.from(bytes.toString(), 'utf16le').swap16()])
    case 'binary':
      return Buffer.concat([bytes, Buffer.from([0]), bytes])
    default:
      return bytes
  }
}

// Without `\b`, which is ASCII in one of them, and without what only ripgrep has.
const atom = fc.constantFrom(
  ...['a', 'b', 'A', 'k', 's', 'é', 'ß', 'σ', '中', '1', '_', '.', '\\.', '\\w', '\\d', '\\s', '\\W', '\\S', '\\D'],
  ...['\\p{Lu}', '\\pL', '\\P{L}', '\\p{Greek}', '^', '$', '\\x{e9}', '\\u2028'],
  ...[
    '[ab]',
    '[^ab]',
    '[\\W_]',
    '[\\s\\S]',
    '[^\\W\\d]',
    '[[:alpha:]]',
    '[[:^alpha:]_]',
    '[a-é]',
    '[^\\s]',
    '[]a]',
    '[a-]',
  ],
)
const expression = fc.letrec<{ node: string }>((tie) => ({
  node: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    atom,
    fc.tuple(tie('node'), tie('node')).map(([left, right]) => left + right),
    fc.tuple(tie('node'), tie('node')).map(([left, right]) => `${left}|${right}`),
    fc
      .tuple(fc.constantFrom('(', '(?:', '(?i:', '(?s:', '(?<n>'), tie('node'))
      .map(([open, inner]) => `${open}${inner})`),
    fc
      .tuple(tie('node'), fc.constantFrom('*', '+', '?', '{2}', '{0,2}', '{1,}', '*?'))
      .map(([inner, repetition]) => `(?:${inner})${repetition}`),
    tie('node').map((inner) => `(?i)${inner}`),
  ),
})).node

const query = fc.oneof(
  expression
    .filter((text) => (text.match(/\(\?<n>/g) ?? []).length < 2)
    .map((text) => ({ query: text, literal: false })),
  fc
    .constantFrom('a', 'a.', '[', '(a', 'é', ' ', '\\w', '^', 'a|b', '#', '~', '&&')
    .map((text) => ({ query: text, literal: true })),
)

test.skipIf(ripgrep === undefined)(
  'the built-in engine finds the same files, lines and text as ripgrep, in the same order',
  { timeout: timeLimit(300_000) },
  async () => {
    const both = [searchTool({ ripgrep: ripgrep ?? '' }), searchTool({ ripgrep: false })]
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(file, { selector: ({ path }) => path, minLength: 1, maxLength: 6 }),
        query,
        fc.record({
          case_sensitive: fc.boolean(),
          context_lines: fc.constantFrom(0, 0, 1, 2),
          max_matches_per_file: fc.constantFrom(1, 3, 100),
          path: fc.constantFrom('.', '.', 'c', 'a.md'),
        }),
        async (files, what, how) => {
          const root = await folderWith({
            '.gitignore': 'ignored/\n',
            'c/keep': 'a\n',
            'a.md': 'a\n',
            ...Object.fromEntries(files.map(({ path, content, form }) => [path, encoded(content, form)])),
          })
          const [found, expected] = await Promise.all(
            both.toReversed().map((spec) => call(spec, { ...what, ...how }, { root })),
          )
          expect(found).toEqual(expected)
        },
      ),
      rounds(30, 2_000),
    )
  },
)
