import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { compileGlob, globProblem } from '#util/glob.js'
import type { GlobState } from '#util/glob.js'
import { rounds } from '../support/length.js'

function stateFor(pattern: string, path: string, namedOnly = false): GlobState {
  const glob = compileGlob(pattern)
  return path.split('/').reduce((state, name) => glob.step(state, name, namedOnly), glob.start)
}

describe('the glob dialect', () => {
  test.each<[string, readonly string[], readonly string[]]>([
    // pattern, what it matches, what it does not
    ['*.md', ['a.md', '.md', 'ä.md'], ['a.mdx', 'x/a.md', 'a']],
    ['**/*.md', ['a.md', 'x/a.md', 'x/y/a.md'], ['a.txt', 'a.md/x']],
    ['docs/**', ['docs/a', 'docs/x/y'], ['docs', 'x/docs/a']],
    ['**', ['a', 'a/b/c'], []],
    ['a/**/b', ['a/b', 'a/x/b', 'a/x/y/b'], ['a', 'ab', 'a/x']],
    ['**/a/**/b', ['a/b', 'x/a/y/b', 'a/a/b/b'], ['b', 'a']],
    ['a?c', ['abc', 'a😀c'], ['ac', 'abbc', 'a/c']],
    ['[a-c]x', ['ax', 'cx'], ['dx', 'x']],
    ['[!a-c]x', ['dx'], ['ax', 'x']],
    ['[^a]x', ['bx'], ['ax']],
    ['[]]x', [']x'], ['x']],
    ['[a', ['[a'], ['a']],
    // A path that is there under just this name is meant too.
    ['[slug].tsx', ['s.tsx', '[slug].tsx'], ['l.txt']],
    ['\\[slug\\].tsx', ['[slug].tsx'], ['s.tsx']],
    ['*.{ts,tsx}', ['a.ts', 'a.tsx', 'a.{ts,tsx}'], ['a.js']],
    ['{src,test/deep}/*.ts', ['src/a.ts', 'test/deep/a.ts'], ['test/a.ts']],
    ['{a,b{c,d}}', ['a', 'bc', 'bd'], ['b', 'b{c,d}']],
    ['a{b', ['a{b'], ['ab']],
    ['\\{a,b}', ['{a,b}'], ['a', 'b']],
    ['./a/./b', ['a/b'], ['a']],
    ['a//b', ['a/b'], ['ab']],
    ['a**b', ['ab', 'axxb'], ['a/b']],
    ['a\\b', ['a/b'], ['ab']],
    ['*a*b*', ['ab', 'xaxbx', 'aab'], ['ba', 'a', 'b']],
    ['*', ['a', '.a'], ['a/b']],
  ])('%s', (pattern, matching, others) => {
    expect(globProblem(pattern)).toBeUndefined()
    expect(matching.filter((path) => !stateFor(pattern, path).matched)).toEqual([])
    expect(others.filter((path) => stateFor(pattern, path).matched)).toEqual([])
  })

  test.each<[string, readonly string[], readonly string[]]>([
    ['*', ['a'], ['.a']],
    ['**', ['a/b'], ['.a', 'a/.b', '.a/b']],
    ['.*', ['.a'], ['a']],
    ['**/.a/*', ['.a/b', 'x/.a/b'], ['.x/.a/b', '.a/.b']],
    ['{.a,b}', ['.a', 'b'], []],
    ['[.]a', [], ['.a']],
  ])('a leading dot matches only an explicit dot: %s', (pattern, matching, others) => {
    expect(matching.filter((path) => !stateFor(pattern, path, true).matched)).toEqual([])
    expect(others.filter((path) => stateFor(pattern, path, true).matched)).toEqual([])
  })

  test.each<[string, string, Pick<GlobState, 'open' | 'named'>]>([
    ['a/b/*.ts', 'a', { open: true, named: true }],
    ['a/b/*.ts', 'a/b', { open: true, named: true }],
    ['a/b/*.ts', 'a/b/c.ts', { open: false, named: false }],
    ['a/b/*.ts', 'x', { open: false, named: false }],
    ['a/**', 'a', { open: true, named: true }],
    ['a/**', 'a/b', { open: true, named: false }],
    ['**/a', 'a', { open: true, named: false }],
    ['a/b', 'a/b', { open: false, named: true }],
    ['{a,b*}/c', 'a/c', { open: false, named: true }],
    ['{a,b*}/c', 'b/c', { open: false, named: false }],
  ])('%s at %s', (pattern, path, expected) => {
    expect(stateFor(pattern, path)).toMatchObject(expected)
  })

  test.each<[string, string]>([
    ['', 'glob is empty'],
    ['/etc/*', 'glob must be relative'],
    ['\\\\server\\*', 'glob must be relative'],
    ['C:\\*', 'glob must be relative'],
    ['../*', 'glob must not contain `..`'],
    ['a/../../b', 'glob must not contain `..`'],
    ['a\\..\\b', 'glob must not contain `..`'],
    ['a\0', 'glob contains a NUL character'],
    ['a'.repeat(1_001), 'glob is longer than 1000 characters'],
    ['{a,b}'.repeat(9), 'glob has too many alternatives in braces'],
  ])('FT-20 an absolute, escaping or malformed pattern is rejected: %j', (selector, problem) => {
    expect(globProblem(selector)).toBe(problem)
  })

  test('no pattern takes long, however many stars it has', () => {
    const started = performance.now()
    expect(stateFor(`${'*a'.repeat(400)}b`, 'a'.repeat(255)).matched).toBe(false)
    expect(stateFor(`${'**/a/'.repeat(150)}b`, Array(400).fill('a').join('/')).matched).toBe(false)
    expect(globProblem('{'.repeat(1_000))).toBeUndefined()
    expect(performance.now() - started).toBeLessThan(30_000)
  })

  test('agrees with the plain definition', () => {
    const segments = (names: readonly string[]): fc.Arbitrary<string> =>
      fc.array(fc.constantFrom(...names), { minLength: 1, maxLength: 5 }).map((parts) => parts.join('/'))
    const patterns = segments(['a', 'b', '*', '**', '?', 'a*', '*b', '*a*b', '[ab]', '.a'])
    const paths = segments(['a', 'b', 'ab', 'aab', 'ba', '.a', '.b'])
    fc.assert(
      fc.property(patterns, paths, fc.boolean(), (pattern, path, namedOnly) => {
        const expected = defined(pattern.split('/'), path.split('/'), namedOnly)
        expect(stateFor(pattern, path, namedOnly).matched).toBe(expected)
      }),
      rounds(2_000, 100_000),
    )
  })
})

/** What a pattern means, tried in every way. */
function defined(pattern: readonly string[], path: readonly string[], namedOnly: boolean): boolean {
  const [first, ...rest] = pattern
  const [name, ...names] = path
  if (first === undefined) return name === undefined
  if (first === '**') {
    const canTake = name !== undefined && !(namedOnly && name.startsWith('.'))
    if (rest.length === 0) return canTake && (names.length === 0 || defined(pattern, names, namedOnly))
    return defined(rest, path, namedOnly) || (canTake && defined(pattern, names, namedOnly))
  }
  if (name === undefined || (namedOnly && name.startsWith('.') && !first.startsWith('.'))) return false
  const test = new RegExp(`^${first.replaceAll('.', '\\.').replaceAll('*', '.*').replaceAll('?', '.')}$`)
  return test.test(name) && defined(rest, names, namedOnly)
}
