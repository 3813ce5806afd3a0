import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { NOT_FOUND } from '#toolbox/search/pattern/matcher.js'
import { compilePattern } from '#toolbox/search/pattern/pattern.js'
import type { Pattern, PatternOptions } from '#toolbox/search/pattern/pattern.js'

function patternOf(text: string, options: Partial<PatternOptions> = {}): Pattern {
  const compiled = compilePattern(text, { scope: 'line', ...options })
  if (!compiled.ok) throw new Error(compiled.problem)
  return compiled.pattern
}

function problemOf(text: string, options: Partial<PatternOptions> = {}): string | undefined {
  const compiled = compilePattern(text, { scope: 'line', ...options })
  return compiled.ok ? undefined : compiled.problem
}

/** The lines of a text in which the pattern is found. */
function linesFound(pattern: Pattern, text: string | Buffer): string[] {
  const bytes = Buffer.from(text)
  const end = bytes.at(-1) === 10 ? bytes.length - 1 : bytes.length
  const lines: string[] = []
  for (let at = 0; at <= end;) {
    let found = pattern.find(bytes, at, end)
    while (typeof found !== 'number') found = pattern.find(bytes, at, end, found)
    if (found === NOT_FOUND) break
    const start = found === 0 ? 0 : bytes.lastIndexOf(10, found - 1) + 1
    const lineEnd = bytes.indexOf(10, found) === -1 ? bytes.length : bytes.indexOf(10, found)
    lines.push(bytes.toString('latin1', start, lineEnd))
    at = lineEnd + 1
  }
  return lines
}

const noPause = (): void => undefined

describe('patterns in lines', () => {
  test.each<[string, string, string[]]>([
    ['foo', 'a foo\nbar\nfood', ['a foo', 'food']],
    ['^foo$', 'foo\nfoo \n foo\nfoo', ['foo', 'foo']],
    ['foo$', 'foo\r\nfoo x\r\n', ['foo\r']],
    ['^$', 'a\n\nb\n\r\n', ['', '\r']],
    ['^b', 'a\rb\n\r\nab', ['a\rb']],
    ['a$', 'a\rb\nab', ['a\rb']],
    ['a.c', 'abc\nac\na\rc\na\tc', ['abc', 'a\tc']],
    ['(?s)a.c', 'a\nc\nabc', ['abc']],
    ['[^a]', 'a\n\nb', ['b']],
    ['a|b|', 'x\n', ['x']],
    ['x*', '\nq\n', ['', 'q']],
    ['(ab){2,3}c', 'abc\nababc\nababababc', ['ababc', 'ababababc']],
    ['^(ab){2,3}c', 'ababababc\nabababc', ['abababc']],
    ['a{0}b', 'b\n', ['b']],
    ['(?i)straSSe', 'STRASSE\nstraße', ['STRASSE']],
    ['(?i:k)', '\u212a\nK\n', [Buffer.from('\u212a').toString('latin1'), 'K']],
    ['a(?i)b|c', 'aB\nC\nA', ['aB', 'C']],
    ['(?-i)a', 'A\na', ['a']],
    ['\\bcat\\b', 'cat\nconcat\na cat.\ncats', ['cat', 'a cat.']],
    ['\\Bcat', 'cat\nconcat', ['concat']],
    ['\\<cat\\>', 'a cat\ncats', ['a cat']],
    ['\\b{start}cat', 'cats\nconcat', ['cats']],
    ['\\b{2}a', 'a', ['a']],
    ['[[:digit:]]+-[[:^digit:]]', '12-a\n12-3', ['12-a']],
    ['[a-z&&[^aeiou]]x', 'ax\nbx', ['bx']],
    ['[\\w--[ab]]z', 'az\ncz', ['cz']],
    ['[a-c~~b-d]!', 'a!\nb!\nd!', ['a!', 'd!']],
    ['[]a]', ']\nb', [']']],
    ['[a-]', '-\nb', ['-']],
    ['\\p{Greek}', 'x\nλ', [Buffer.from('λ').toString('latin1')]],
    ['\\p{lu}\\P{lu}', 'Ab\nAB\nab', ['Ab']],
    ['\\x41\\x{42}\\u0043\\U00000044', 'ABCD\nabcd', ['ABCD']],
    ['\\t\\.\\-\\ \\#', '\t.- #\nx', ['\t.- #']],
    ['(?P<year>\\d{4})-(?<month>\\d\\d)', '2024-05\n2024-5', ['2024-05']],
  ])('%j in %j', (pattern, text, lines) => {
    expect(linesFound(patternOf(pattern), text)).toEqual(lines)
  })

  test.each<[string, string]>([
    ['(', 'a group is not closed (at character 2)'],
    [')', 'a `)` closes no group (at character 1)'],
    ['[a', 'the pattern ends where a `]` was expected (at character 3)'],
    ['*a', 'a repetition follows nothing (at character 2)'],
    ['(?i)*', 'a repetition follows nothing (at character 5)'],
    ['a{1', 'the pattern ends where a `}` after a number of repetitions was expected (at character 4)'],
    ['a{,3}', 'a repetition in braces is written {n}, {n,} or {n,m} (at character 6)'],
    ['a{3,1}', 'the bounds of a repetition run backwards (at character 7)'],
    ['(?=a)', 'look-around is not supported (at character 3)'],
    ['(?<!a)b', 'look-around is not supported (at character 3)'],
    ['(?>a)', 'atomic groups are not supported (at character 3)'],
    ['(a)\\1', 'backreferences are not supported (at character 6)'],
    ['(?x)a', '`(?x` is not supported (at character 4)'],
    ['(?-u)a', 'the flag `u` cannot be switched off here (at character 5)'],
    ['\\q', '`\\q` is not a known escape (at character 3)'],
    ['\\p{Klingon}', '`Klingon` is not a known Unicode property (at character 12)'],
    ['[z-a]', 'a range in `[…]` runs backwards (at character 5)'],
    ['[a-\\d]', 'the ends of a range in `[…]` must be single characters (at character 6)'],
    ['[\\b]', 'anchors and word boundaries cannot stand in `[…]` (at character 4)'],
    ['a\\nb', 'each line is searched by itself: no match can hold a line break (at character 4)'],
    ['[\\r\\n]', 'each line is searched by itself: no match can hold a line break (at character 7)'],
    ['\\Afoo', 'each line is searched by itself: write `^` and `$` for its ends (at character 3)'],
    ['\\x{d800}', '`\\x` needs the hexadecimal number of a Unicode character (at character 9)'],
    ['(?<n>a)(?<n>b)', 'two groups have the same name (at character 13)'],
    ['(a{1000}){1000}', 'the pattern is too big: use smaller repetitions'],
    ['a*****+', 'too many repetitions in a row (at character 8)'],
    ['('.repeat(300), 'groups are nested deeper than 200 (at character 202)'],
    ['a'.repeat(10_001), 'the pattern is longer than 10000 characters'],
  ])('%j is rejected', (pattern, problem) => {
    expect(problemOf(pattern)).toBe(problem)
  })

  test('invalid UTF-8 matches nothing, and the text around it does', () => {
    const line = Buffer.from([0x61, 0xff, 0x62, 0x20, 0xe2, 0x82, 0x63])
    const found = (pattern: string): boolean => linesFound(patternOf(pattern), line).length === 1
    expect([found('a.b'), found('a[^x]b'), found('a'), found('\\bb\\b'), found('c$'), found('\\xff')]).toEqual([
      false,
      false,
      true,
      true,
      true,
      false,
    ])
  })

  test('a literal matches as written, whatever its characters mean elsewhere', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', minLength: 1 }), fc.string(), fc.string(), (text, before, after) => {
        fc.pre(!/[\r\n]/.test(before + text + after))
        const literal = patternOf(text, { literal: true })
        expect(linesFound(literal, before + text + after)).toHaveLength(1)
        expect(linesFound(literal, before + after)).toHaveLength((before + after).includes(text) ? 1 : 0)
      }),
    )
  })
})

describe('patterns in strings', () => {
  test.each<[string, string, boolean]>([
    ['^b', 'a\nb', false],
    ['(?m)^b', 'a\nb', true],
    ['a$', 'a\nb', false],
    ['(?m)a$', 'a\nb', true],
    ['(?m)a$', 'a\r\nb', false],
    ['(?mR)a$', 'a\r\nb', true],
    ['a.b', 'a\nb', false],
    ['a(?s:.)b', 'a\nb', true],
    ['a\\nb', 'a\nb', true],
    ['\\Aa\\s+b\\z', 'a\n\n b', true],
    ['', '', true],
    ['^$', '', true],
    ['a', '', false],
  ])('%j in %j: %s', (pattern, text, matches) => {
    expect(patternOf(pattern, { scope: 'text' }).test(text, noPause)).toBe(matches)
  })

  // On what both dialects mean alike, JavaScript's own expressions are the judge.
  const atom = fc.constantFrom('a', 'b', 'é', '😀', '.', '[ab]', '[^a]', '\\b', '\\d', '^', '$', '\\.', '[a-é]')
  const expression = fc.letrec<{ node: string }>((tie) => ({
    node: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      atom,
      fc.tuple(tie('node'), tie('node')).map(([left, right]) => left + right),
      fc.tuple(tie('node'), tie('node')).map(([left, right]) => `(?:${left}|${right})`),
      fc
        .tuple(tie('node'), fc.constantFrom('*', '+', '?', '{2}', '{1,3}', '+?'))
        .map(([inner, repetition]) => `(?:${inner})${repetition}`),
    ),
  })).node
  const text = fc
    .array(fc.constantFrom('a', 'b', 'é', '😀', '.', '1', ' ', '\n'), { maxLength: 8 })
    .map((all) => all.join(''))

  test('they match the same as in JavaScript', () => {
    fc.assert(
      fc.property(expression, text, fc.boolean(), (source, subject, caseSensitive) => {
        // `\b` sees letters beyond ASCII here, and `.` the other line ends of Unicode.
        fc.pre(!(source.includes('\\b') && subject.includes('é')))
        const expected = new RegExp(source, caseSensitive ? 'u' : 'iu').test(subject)
        expect(patternOf(source, { scope: 'text', caseSensitive }).test(subject, noPause)).toBe(expected)
      }),
      { numRuns: 500 },
    )
  })
})

describe('no pattern runs away', () => {
  test.each([
    ['(a+)+$', 'a'.repeat(100_000) + 'b'],
    ['(a|aa)+$', 'a'.repeat(100_000) + 'b'],
    ['(.*a){12}$', 'a'.repeat(100_000) + 'b'],
    ['(?:(?:a*)*)*b$', 'a'.repeat(100_000)],
  ])('%s finishes with 100,000 characters', (pattern, subject) => {
    let pauses = 0
    const found = patternOf(pattern, { scope: 'text' }).test(subject, () => pauses++)
    expect({ found, isSoon: pauses < 50 }).toEqual({ found: false, isSoon: true })
  })

  test('a pattern with more states than fit pauses, and continues from the same point', () => {
    const pattern = patternOf('[ab]*a[ab]{16}c')
    // A text whose windows are all different, so that states are hardly ever met twice.
    let seed = 1
    const letters = Array.from({ length: 60_000 }, () => ((seed = (seed * 48_271) % 2_147_483_647) & 64 ? 'a' : 'b'))
    const bytes = Buffer.from(`${letters.join('')}a${'b'.repeat(16)}c`)
    let found = pattern.find(bytes, 0, bytes.length)
    let pauses = 0
    while (typeof found !== 'number') {
      pauses++
      found = pattern.find(bytes, 0, bytes.length, found)
    }
    expect({ found, hasPaused: pauses > 0 }).toEqual({ found: bytes.length, hasPaused: true })
  })

  test('a callback at a pause can end the search', () => {
    const pattern = patternOf('(a|b)*a(a|b){500}c', { scope: 'text' })
    let seed = 1
    const subject = Array.from({ length: 20_000 }, () =>
      (seed = (seed * 48_271) % 2_147_483_647) & 64 ? 'a' : 'b',
    ).join('')
    expect(() =>
      pattern.test(subject, () => {
        throw new Error('enough')
      }),
    ).toThrow('enough')
  })
})
