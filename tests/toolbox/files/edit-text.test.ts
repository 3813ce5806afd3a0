import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { changedLines, lineNumbers, nearestLines, smallDiff, replaceText } from '#toolbox/files/edit/replace-text.js'
import type { Replaced, Replacement } from '#toolbox/files/edit/replace-text.js'

describe('replacing text', () => {
  const plan = (from: string, to: string, more: Partial<Replacement> = {}): Replacement => ({
    oldText: from,
    newText: to,
    replaceAll: false,
    expected: undefined,
    ...more,
  })
  const all = { replaceAll: true }
  const text = (text: string, count = 1, repaired = false): Partial<Replaced> => ({
    kind: 'replaced',
    text,
    count,
    repaired,
  })

  test.each<[string, string, Replacement, Partial<Replaced>]>([
    ['one match', 'a b c', plan('b', 'x'), text('a x c')],
    ['a deletion', 'a b c', plan(' b', ''), text('a c')],
    ['what looks like a replacement pattern', 'a b c', plan('b', '$& $1 $$'), text('a $& $1 $$ c')],
    ['none', 'a b c', plan('x', 'y'), { kind: 'not_found' }],
    ['none, for all', 'a b c', plan('x', 'y', all), { kind: 'not_found' }],
    ['other spaces are other text', 'a  b', plan('a b', 'x'), { kind: 'not_found' }],
    ['three', 'b b b', plan('b', 'x'), { kind: 'ambiguous', count: 3, offsets: [0, 2, 4] }],
    ['three, for all', 'b b b', plan('b', 'xx', all), text('xx xx xx', 3)],
    ['matches that overlap count once', 'aaaa', plan('aa', 'b', all), text('bb', 2)],
    ['nothing to change', 'a', plan('a', 'a'), { kind: 'equal' }],
    [
      'FT-10 the expected count with `all` replaces every match',
      'b b',
      plan('b', 'x', { ...all, expected: 2 }),
      text('x x', 2),
    ],
    [
      'FT-10 the expected count without `all` is ambiguous',
      'b b',
      plan('b', 'x', { expected: 2 }),
      { kind: 'ambiguous', count: 2, offsets: [0, 2] },
    ],
    [
      'FT-10 an unexpected count replaces nothing',
      'b b',
      plan('b', 'x', { ...all, expected: 3 }),
      { kind: 'unexpected_count', count: 2, expected: 3 },
    ],
    ['LF in a CRLF file', 'a\r\nb\r\n', plan('a\nb', 'x\ny\nz'), text('x\r\ny\r\nz\r\n')],
    ['CRLF in a CRLF file', 'a\r\nb\r\n', plan('a\r\nb', 'x\r\ny'), text('x\r\ny\r\n')],
    ['a line added in a CRLF file', 'a\r\nb\r\n', plan('a', 'a\nx'), text('a\r\nx\r\nb\r\n')],
    ['LF in a file with both', 'a\r\nb\nc\n', plan('b\nc', 'x'), text('a\r\nx\n')],
    ['LF for CRLF in a file with both', 'a\r\nb\nc\n', plan('a\nb', 'x'), text('x\nc\n')],
    ['lines that stay in a file with both', 'a\r\nb\nc\r\n', plan('a\nb\nc', 'a\nx\ny\nc'), text('a\r\nx\r\ny\nc\r\n')],
    ['a line added after one with CRLF', 'a\nb\r\nc\n', plan('b\n', 'b\nx\n'), text('a\nb\r\nx\r\nc\n')],
    ['a line added before one with CRLF', 'a\nb\r\nc\n', plan('b', 'x\nb'), text('a\nx\nb\r\nc\n')],
    ['a line added at the end', 'a\r\nb', plan('b', 'b\nx'), text('a\r\nb\r\nx')],
    ['CRLF in an LF file', 'a\nb\n', plan('a\r\nb', 'x\r\ny'), text('x\ny\n')],
    ['a lone CR, which ends no line', '10%\r50%\r\nb\n', plan('10%\r50%\nb', 'x'), text('x\n')],
    ['a byte order mark before the match', '\uFEFFa', plan('a', 'b'), text('\uFEFFb')],
    [
      'escaped once too often',
      'say "a"\n\tb',
      plan('say \\"a\\"\\n\\tb', 'say \\"x\\"\\n'),
      text('say "x"\n', 1, true),
    ],
    ['escaped, with a text that is not', 'a\tb', plan('a\\tb', 'x\ny\\n'), text('x\ny\\n', 1, true)],
    ['escaped, in a CRLF file', 'a\r\nb\r\n', plan('a\\nb', 'x\\ny'), text('x\r\ny\r\n', 1, true)],
    ['escaped, and twice there, for all', 'a\tb a\tb', plan('a\\tb', 'x', all), { kind: 'not_found' }],
    ['escaped, and exact', 'a\\tb a\tb', plan('a\\tb', 'x'), text('x a\tb')],
    ['escaped to nothing new', 'a\tb', plan('a\\tb', 'a\\u0009b'), { kind: 'equal' }],
    [
      'escaped, another count',
      'a\tb',
      plan('a\\tb', 'x', { expected: 2 }),
      { kind: 'unexpected_count', count: 1, expected: 2 },
    ],
    ['no JSON escape', 'a b', plan('a\\ b', 'x'), { kind: 'not_found' }],
  ])(
    '155 156 one match is replaced, missing and ambiguous ones are reported, and over-escaped strings are repaired: %s',
    (_name, before, replacement, expected) => {
      expect(replaceText(before, replacement)).toMatchObject(expected)
    },
  )

  test('only replaced text differs, whatever the text', () => {
    const texts = fc.string({ unit: fc.constantFrom('a', 'b', '\n', '\r\n', '\\n', '"', ' '), maxLength: 20 })
    fc.assert(
      fc.property(texts, texts, texts, texts, (before, after, from, to) => {
        fc.pre(from !== '' && from.replaceAll('\r\n', '\n') !== to.replaceAll('\r\n', '\n'))
        const whole = before + from + after
        const result = replaceText(whole, plan(from, to, all))
        expect(result.kind).toBe('replaced')
        if (result.kind !== 'replaced' || result.repaired) return
        const plain = (text: string): string => text.replaceAll('\r\n', '\n')
        expect(plain(result.text)).toBe(plain(whole).split(plain(from)).join(plain(to)))
        let [oldTo, newTo] = [0, 0]
        for (const { oldAt, oldLength, newAt, newLength } of result.changes) {
          expect(plain(whole.slice(oldAt, oldAt + oldLength))).toBe(plain(from))
          expect(plain(result.text.slice(newAt, newAt + newLength))).toBe(plain(to))
          expect(result.text.slice(newTo, newAt)).toBe(whole.slice(oldTo, oldAt))
          ;[oldTo, newTo] = [oldAt + oldLength, newAt + newLength]
        }
        const ends = new Set(whole.match(/\r?\n/g))
        if (ends.size === 1) expect(new Set(result.text.match(/\r?\n/g)).size).toBeLessThan(2)
      }),
    )
  })
})

describe('the description of a change', () => {
  const changed = (before: string, oldText: string, newText: string): { lines: unknown; diff: string } => {
    const result = replaceText(before, { oldText, newText, replaceAll: true, expected: undefined })
    if (result.kind !== 'replaced') throw new Error(result.kind)
    return { lines: changedLines(result.text, result.changes), diff: smallDiff(before, result.text, result.changes) }
  }

  test.each<[string, string, string, string, unknown, string]>([
    ['within a line', 'a\nb c\nd', 'b', 'x', [[2, 2]], '@@ line 2 @@\n-b c\n+x c'],
    [
      'twice within a line',
      'b b\nc',
      'b',
      'x',
      [
        [1, 1],
        [1, 1],
      ],
      '@@ line 1 @@\n-b b\n+x x',
    ],
    [
      'in two lines',
      'b\nb',
      'b',
      'x',
      [
        [1, 1],
        [2, 2],
      ],
      '@@ line 1 @@\n-b\n+x\n@@ line 2 @@\n-b\n+x',
    ],
    ['lines added', 'a\nd', 'a\n', 'a\nb\nc\n', [[1, 3]], '@@ line 2 @@\n+b\n+c'],
    ['a line removed', 'a\nb\nc', 'b\n', '', [[2, 2]], '@@ line 2 @@\n-b'],
    ['all removed', 'a', 'a', '', [[1, 1]], '@@ line 1 @@\n-a'],
    ['CRLF', 'a\r\nb\r\nc', 'a\nb', 'a\nx', [[1, 2]], '@@ line 2 @@\n-b\n+x'],
  ])('%s', (_name, before, from, to, lines, diff) => {
    expect(changed(before, from, to)).toEqual({ lines, diff })
  })

  test('a diff is bounded', () => {
    const { diff } = changed('x\n'.repeat(1_000), 'x', 'y'.repeat(1_000))
    expect(diff.length).toBeLessThan(1_000)
  })

  test('lines are numbered by LF and CRLF; a lone CR ends none', () => {
    expect(lineNumbers('a\nb\r\nc\rd\u2028e', [0, 2, 5, 7, 9])).toEqual([1, 2, 3, 3, 3])
  })

  test('up to three lines that resemble the first one are suggested', () => {
    const text = 'const total = 1\nfoo()\n  const totals = 1\nconst totel = 1\nconst total = 10'
    expect(nearestLines(text, '\n const total = 1;\n more')).toEqual([
      { line: 1, text: 'const total = 1' },
      { line: 3, text: 'const totals = 1' },
      { line: 5, text: 'const total = 10' },
    ])
    expect(nearestLines(text, 'something else')).toEqual([])
    expect(nearestLines(text, ' \n ')).toEqual([])
  })
})
