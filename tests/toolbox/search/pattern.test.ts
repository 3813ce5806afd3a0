import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { compilePattern } from '#toolbox/search/pattern.js'
import type { Pattern, PatternOptions } from '#toolbox/search/pattern.js'
import { rounds } from '../../support/length.js'

async function patternOf(text: string, options: Partial<PatternOptions> = {}): Promise<Pattern> {
  const compiled = await compilePattern(text, { scope: 'line', ...options })
  if (!compiled.ok) throw new Error(compiled.problem)
  return compiled.pattern
}

describe('patterns in lines', () => {
  test.each<[string, readonly string[], readonly string[]]>([
    // a pattern, lines that it matches, lines that it does not
    ['foo', ['a foo', 'food'], ['bar']],
    ['^foo$', ['foo'], ['foo ', ' foo']],
    ['^$', [''], [' ']],
    ['a.c', ['abc', 'a\tc', 'aéc', 'a😀c'], ['ac']],
    ['a|b|', ['x'], []],
    ['^(ab){2,3}c', ['abababc'], ['ababababc', 'abc']],
    ['a{0}b', ['b'], ['a']],
    ['\\w+fé', ['café', 'Éfé', '中fé', '٣fé', '_fé'], ['fé', ' fé']],
    ['^\\W$', ['-', ' ', '€', '\u2028'], ['é', '_', '5', '中']],
    ['^\\d+$', ['12', '٣'], ['½', 'a']],
    ['^\\D$', ['a', '½'], ['1', '٣']],
    ['a\\sb', ['a b', 'a\u00a0b', 'a\u2003b', 'a\u0085b', 'a\tb'], ['a\u200bb', 'ab']],
    ['^\\S+$', ['aé\u200b😀'], ['a b', 'a\u3000b']],
    ['^[\\w-]+$', ['a-é'], ['a b']],
    ['^[^\\w]$', [' '], ['é']],
    ['^[\\W_]+$', ['-_'], ['é']],
    ['^[\\s\\S]+$', ['a b\u2003é😀'], ['']],
    ['^[\\D]$', ['a'], ['5']],
    ['[[:digit:]]+-[[:^digit:]]', ['12-a'], ['12-3', '٣-a']],
    ['[]a]', [']', 'a'], ['b']],
    ['[a-]', ['-', 'a'], ['b']],
    ['[^\\n]', ['x'], ['']],
    ['(?i)straSSe', ['STRASSE'], ['straße']],
    ['(?i:k)É', ['\u212aÉ', 'KÉ'], ['ké']],
    ['\\bcat\\b', ['cat', 'a cat.'], ['concat', 'cats']],
    // ripgrep sees a word here: `\\b` is ASCII.
    ['\\bcaf\\b', ['café'], ['cafe']],
    // Not next to another letter.
    ['\\bÜber\\b|für\\b', ['Über uns', 'das Über', 'für', 'für uns'], ['xÜber', 'eÜber', 'fürx']],
    ['\\b(?:слово)\\b', ['слово', 'и слово.'], ['слова', 'сслово', 'слово_']],
    ['\\p{Greek}', ['λ'], ['x']],
    ['\\p{Lu}\\PL', ['A1'], ['Ab', 'a1']],
    ['\\x41\\x{42}\\u0043\\u{44}\\U00000045', ['ABCDE'], ['abcde']],
    ['\\t\\.\\-\\ \\#', ['\t.- #'], ['x']],
    ['a{x}&&--', ['a{x}&&--'], ['a']],
    ['(?P<year>\\d{4})-(?<month>\\d\\d)', ['2024-05'], ['2024-5']],
    ['needles?!', ['needle!', 'needles!'], ['needl!']],
    ['ab{0}c', ['ac'], ['abc']],
  ])('%j', async (pattern, matching, others) => {
    const compiled = await patternOf(pattern)
    const lines = [...matching, ...others]
    expect(lines.filter((line) => compiled.test(Buffer.from(line)))).toEqual(matching)
    expect(lines.filter((line) => compiled.test(line))).toEqual(matching)
    expect(matching.filter((line) => !line.includes(compiled.literal?.toString() ?? ''))).toEqual([])
  })

  test.each<[string, string]>([
    ['(', 'missing closing ): `(`'],
    [')', 'unexpected ): `)`'],
    ['[a', 'missing closing ]: `[a`'],
    ['*a', 'missing argument to repetition operator: `*`'],
    ['a{3,1}', 'invalid repeat count: `{3,1}`'],
    ['a{1001}', 'invalid repeat count: `{1001}`'],
    ['(a{1000}){1000}', 'invalid repeat count: `{1000}`'],
    ['a++', 'invalid nested repetition operator: `++`'],
    ['(?=a)', 'look-around is not supported'],
    ['(?!a)b', 'look-around is not supported'],
    ['(?<=a)b', 'look-around is not supported'],
    ['(?<!a)b', 'look-around is not supported'],
    ['(a)\\1', 'backreferences are not supported'],
    ['(?>a)', 'invalid or unsupported Perl syntax: `(?>`'],
    ['(?x)a', 'invalid or unsupported Perl syntax: `(?x`'],
    ['\\q', 'invalid escape sequence: `\\q`'],
    ['\\Qa\\E', '`\\Q` is not supported'],
    ['\\<a', '`\\<` is not supported: write `\\b` for a word boundary'],
    ['\\b{start}a', '`\\b{…}` is not supported: write `\\b`'],
    ['\\p{Klingon}', 'invalid character class range: `\\p{Klingon}`'],
    ['[z-a]', 'invalid character class range: `z-a`'],
    ['[a-z&&[^b]]', '`&&` cannot stand in `[…]`: nested classes and set operations are not supported'],
    ['[\\w--a]', '`--` cannot stand in `[…]`'],
    ['[[a]b]', '`[` cannot stand in `[…]`'],
    ['a\\nb', 'lines are searched one by one: no match can contain a line break'],
    ['a\nb', 'lines are searched one by one: no match can contain a line break'],
    ['(?<n>a)(?<n>b)', 'duplicate capture group name: `n`'],
    ['('.repeat(1_001) + ')'.repeat(1_001), 'expression nests too deeply'],
    ['a'.repeat(10_001), 'the pattern is longer than 10000 characters'],
  ])('%j is rejected', async (pattern, problem) => {
    const compiled = await compilePattern(pattern, { scope: 'line' })
    expect(compiled).toEqual({ ok: false, problem: expect.stringContaining(problem) as unknown })
    expect(compiled.ok ? 0 : compiled.problem.length).toBeLessThanOrEqual(250)
  })

  test('a line with invalid UTF-8 is searched too', async () => {
    const line = Buffer.from([0x61, 0xff, 0x62, 0x20, 0xe2, 0x82, 0x63])
    for (const pattern of ['a', '\\bb\\b', 'c$', '^a']) expect((await patternOf(pattern)).test(line)).toBe(true)
    for (const pattern of ['\\xff', 'ab', '€']) expect((await patternOf(pattern)).test(line)).toBe(false)
  })

  test('a literal matches as written, whatever its characters mean elsewhere', async () => {
    const text = fc.string({ unit: 'grapheme' }).filter((each) => !/[\r\n]/.test(each))
    await fc.assert(
      fc.asyncProperty(text, text, text, fc.boolean(), async (needle, before, after, caseSensitive) => {
        fc.pre(needle !== '')
        const literal = await patternOf(needle, { literal: true, caseSensitive })
        expect(literal.test(Buffer.from(before + needle + after))).toBe(true)
        if (caseSensitive) expect(literal.test(before + after)).toBe((before + after).includes(needle))
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
    ['a.b', 'a\nb', false],
    ['a(?s:.)b', 'a\nb', true],
    ['a\\nb', 'a\nb', true],
    ['\\Aa\\s+b\\z', 'a\n\n b', true],
    ['', '', true],
    ['^$', '', true],
    ['a', '', false],
  ])('%j in %j: %s', async (pattern, text, matches) => {
    expect((await patternOf(pattern, { scope: 'text' })).test(text)).toBe(matches)
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
      fc.tuple(atom, fc.constantFrom('*', '+', '?', '{2}', '{1,3}', '+?')).map((parts) => parts.join('')),
    ),
  })).node
  const text = fc
    .array(fc.constantFrom('a', 'b', 'é', '😀', '.', '1', ' ', '\n'), { maxLength: 8 })
    .map((all) => all.join(''))

  test('they match the same as in JavaScript, and contain the literal', async () => {
    await fc.assert(
      fc.asyncProperty(expression, text, fc.boolean(), async (source, subject, caseSensitive) => {
        // A repetition of an anchor is no JavaScript.
        fc.pre(!/(?:\^|\$|\\b)[*+?{]/.test(source))
        // Beside a letter such as é, `\b` is a boundary of words of any language here; in JavaScript, of ASCII alone.
        fc.pre(!source.includes('\\b') || !/[^\x20-\x7e]/.test(source))
        const expected = new RegExp(source, caseSensitive ? 'u' : 'iu').test(subject)
        const pattern = await patternOf(source, { scope: 'text', caseSensitive })
        expect(pattern.test(subject)).toBe(expected)
        expect(pattern.test(Buffer.from(subject))).toBe(expected)
        if (expected && pattern.literal !== undefined) expect(subject).toContain(pattern.literal.toString())
      }),
      rounds(500),
    )
  })
})

describe('no pattern runs away', () => {
  test.each([
    ['(a+)+$', `${'a'.repeat(100_000)}b`],
    ['(a|aa)+$', `${'a'.repeat(100_000)}b`],
    ['(.*a){12}$', `${'a'.repeat(100_000)}b`],
    ['(?:(?:a*)*)*b$', 'a'.repeat(100_000)],
  ])('%s is done with 100,000 characters', async (pattern, subject) => {
    const compiled = await patternOf(pattern, { scope: 'text' })
    expect(compiled.test(subject)).toBe(false)
    expect(compiled.reach).toBeGreaterThan(subject.length)
  })

  test('only the beginning of a string that is too long for the pattern is searched; plain text is found anywhere', async () => {
    const text = `${'a'.repeat(2_000_000)}needle 1`
    const small = await patternOf('needle \\d')
    const large = await patternOf('(?:(a|b)*){900}needle \\d')
    expect([small.test(text), large.test(text), (await patternOf('needle 1')).test(text)]).toEqual([false, false, true])
    expect(small.reach).toBeGreaterThan(400_000)
    expect(large.reach).toBeLessThan(20_000)
    expect(small.test(text.slice(-400_000))).toBe(true)
  })
})
