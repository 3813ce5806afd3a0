import { mkdir, symlink } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { PathValidationError } from '#toolbox/workspace/file-failure.js'
import { pathProblem, shownPath } from '#toolbox/workspace/path-text.js'
import { containedPath, PathPolicy } from '#toolbox/workspace/path-policy.js'
import { folderWith } from '../support.js'
import { rounds } from '../../support/length.js'

describe('the syntax check of a path', () => {
  const NO_WINDOWS = 'path is a Windows path, which this system does not have'
  test.each<[string, string | undefined, string | undefined]>([
    // path, on Linux, on Windows
    ['a/b.txt', undefined, undefined],
    ['./a', undefined, undefined],
    ['../a', undefined, undefined],
    ['', 'path is empty', 'path is empty'],
    ['a\0b', 'path contains a NUL character', 'path contains a NUL character'],
    ['x'.repeat(4_097), 'path is longer than 4096 characters', 'path is longer than 4096 characters'],
    ['C:\\x', NO_WINDOWS, undefined],
    ['c:/x', NO_WINDOWS, undefined],
    ['C:x', undefined, 'path is relative to a drive'],
    ['\\\\server\\share', NO_WINDOWS, 'network and device paths are not allowed'],
    ['//server/share', undefined, 'network and device paths are not allowed'],
    ['\\\\?\\C:\\x', NO_WINDOWS, 'network and device paths are not allowed'],
    ['\\\\.\\pipe\\x', NO_WINDOWS, 'network and device paths are not allowed'],
    ['a\\..\\..\\b', 'path escapes root', undefined],
    ['NUL', undefined, 'path names a device'],
    ['a/con.txt', undefined, 'path names a device'],
    ['com1', undefined, 'path names a device'],
    ['lpt9.x.y', undefined, 'path names a device'],
    ['conin$', undefined, 'path names a device'],
    ['aux .c', undefined, 'path names a device'],
    ['console.log', undefined, undefined],
    ['community', undefined, undefined],
    ['a.txt:hidden', undefined, 'path names an alternate data stream'],
    ['a.txt::$DATA', undefined, 'path names an alternate data stream'],
    ['a./b', undefined, 'a part of the path ends in a dot or a space'],
    ['a.txt.', undefined, 'a part of the path ends in a dot or a space'],
    ['a ', undefined, 'a part of the path ends in a dot or a space'],
    ['a?', undefined, 'path contains a character that Windows does not allow'],
    ['a\nb', undefined, 'path contains a character that Windows does not allow'],
  ])('%j', (path, onLinux, onWindows) => {
    expect([pathProblem(path, 'linux'), pathProblem(path, 'win32')]).toEqual([onLinux, onWindows])
  })

  test('a path in a message is one line and bounded', () => {
    expect(shownPath(`a\nb\u2028${'c'.repeat(300)}`)).toBe(`a\\u000ab\\u2028${'c'.repeat(196)}…`)
  })
})

describe('a path policy', () => {
  const policyFor = async (): Promise<{ root: string; outside: string; policy: PathPolicy }> => {
    const outside = await folderWith({ 'secret.txt': 'secret', 'deep/secret.txt': 'secret' })
    const root = await folderWith({ 'a.txt': '', 'docs/b.txt': '', 'docs/deep/c.txt': '' })
    await symlink(join(root, 'docs'), join(root, 'to-docs'))
    await symlink('docs/b.txt', join(root, 'to-b'))
    await symlink(outside, join(root, 'to-outside'))
    await symlink('later.txt', join(root, 'to-later'))
    await symlink(join(outside, 'later.txt'), join(root, 'to-later-outside'))
    await symlink('loop', join(root, 'loop'))
    return { root, outside, policy: new PathPolicy(root, undefined, { label: 'read paths' }) }
  }

  test.each<[string, string]>([
    ['.', ''],
    ['./', ''],
    ['a.txt', '/a.txt'],
    ['./docs/../a.txt', '/a.txt'],
    ['docs//b.txt', '/docs/b.txt'],
    ['to-docs/b.txt', '/docs/b.txt'],
    ['to-docs/deep/../b.txt', '/docs/b.txt'],
    ['to-b', '/docs/b.txt'],
    ['to-later', '/later.txt'],
    ['missing/deep/x.txt', '/missing/deep/x.txt'],
    ['missing/../x.txt', '/x.txt'],
    ['a.txt/x', '/a.txt/x'],
    ['~x', '/~x'],
  ])('FT-18 a valid path resolves inside the root: %j', async (raw, expected) => {
    const { root, policy } = await policyFor()
    expect(await policy.resolve(raw)).toBe(root + expected)
    expect(containedPath(root, raw)).toBe(root + expected)
  })

  test.each<[string, string]>([
    ['..', 'path escapes root: ..'],
    ['../x', 'path escapes root: ../x'],
    ['docs/../../x', 'path escapes root: docs/../../x'],
    ['missing/../../x', 'path escapes root: missing/../../x'],
    // `..` behind a link is the folder above its target.
    ['to-outside/..', 'path escapes root: to-outside/..'],
    ['to-outside', 'path escapes root: to-outside'],
    ['to-outside/secret.txt', 'path escapes root: to-outside/secret.txt'],
    ['to-outside/deep/../secret.txt', 'path escapes root: to-outside/deep/../secret.txt'],
    ['to-outside/new.txt', 'path escapes root: to-outside/new.txt'],
    ['to-later-outside', 'path escapes root: to-later-outside'],
    ['to-later-outside/x', 'path escapes root: to-later-outside/x'],
    ['loop', 'path has too many links: loop'],
    ['loop/x', 'path has too many links: loop/x'],
    ['/', 'path escapes root: /'],
    ['~', 'path escapes root: ~'],
    ['~/x', 'path escapes root: ~/x'],
    ['', 'path is empty: '],
    ['a\0b', 'path contains a NUL character: a\\u0000b'],
    ['C:\\x', 'path is a Windows path, which this system does not have: C:\\x'],
  ])('FT-18 an escaping path is rejected: %j', async (raw, message) => {
    const { root, policy } = await policyFor()
    await expect(policy.resolve(raw)).rejects.toThrow(new PathValidationError(message))
    expect(() => containedPath(root, raw)).toThrow(new PathValidationError(message))
  })

  test('absolute paths inside the root are accepted, and `~` is the home folder', async () => {
    const { root, outside, policy } = await policyFor()
    expect(await policy.resolve(join(root, 'to-docs/b.txt'))).toBe(join(root, 'docs/b.txt'))
    await expect(policy.resolve(join(outside, 'secret.txt'))).rejects.toThrow(PathValidationError)
    await expect(policy.resolve(`${root}-sibling/x`)).rejects.toThrow('path escapes root')
    expect(containedPath(homedir(), '~/x')).toBe(join(containedPath(homedir(), '~'), 'x'))
  })

  test('FT-19 an allow-list admits only its files, and its folders with everything below', async () => {
    const { root } = await policyFor()
    const policy = new PathPolicy(root, ['a.txt', 'docs/deep', 'docs', 'docs', 'not-yet'], { label: 'read paths' })
    const verdicts = [
      'a.txt',
      'a.txt/x',
      'docs',
      'docs/deep/c.txt',
      'to-docs/b.txt',
      'not-yet/x',
      'docs2',
      '.',
      'b.txt',
    ]
    expect(await Promise.all(verdicts.map((path) => isAllowed(policy, path)))).toEqual([
      true,
      false,
      true,
      true,
      true,
      true,
      false,
      false,
      false,
    ])
    await expect(policy.resolve('b.txt')).rejects.toThrow('path is not in the read paths: b.txt')
    expect(await policy.resolveScope('.')).toBe(root)
    await expect(policy.resolveScope('missing')).rejects.toThrow('path is not in the read paths: missing')
    expect(await policy.existingRoots()).toEqual([join(root, 'a.txt'), join(root, 'docs')])
  })

  test('an allow-list must have an entry, and none outside the root', async () => {
    const { root, outside } = await policyFor()
    expect(() => new PathPolicy(root, [], { label: 'read paths' })).toThrow(PathValidationError)
    for (const entry of ['..', outside, 'to-outside', 'to-later-outside', '']) {
      expect(() => new PathPolicy(root, ['.', entry], { label: 'read paths' })).toThrow(PathValidationError)
    }
  })

  test('a reserved folder is allowed only if it is named', async () => {
    const { root } = await policyFor()
    const verdicts = (policy: PathPolicy): boolean[] =>
      ['own', 'own/x', 'own/sub/x', 'other'].map((path) => policy.covers(join(root, path)))
    expect(verdicts(new PathPolicy(root, undefined, { label: 'write paths', reserved: join(root, 'own') }))).toEqual([
      false,
      false,
      false,
      true,
    ])
    expect(verdicts(new PathPolicy(root, ['own/sub'], { label: 'write paths', reserved: join(root, 'own') }))).toEqual([
      false,
      false,
      true,
      false,
    ])
  })

  test('whatever the input, the resolved path is in the root', async () => {
    const { root, policy } = await policyFor()
    await mkdir(join(root, 'docs/deep/er'))
    await symlink('../../..', join(root, 'docs/deep/up'))
    const names = [
      '..',
      '.',
      '',
      'docs',
      'deep',
      'er',
      'up',
      'to-docs',
      'to-outside',
      'to-later-outside',
      'new',
      'a.txt',
    ]
    const paths = fc.array(fc.constantFrom(...names), { minLength: 1, maxLength: 8 }).map((parts) => parts.join('/'))
    await fc.assert(
      fc.asyncProperty(paths, async (raw) => {
        const resolved = await policy.resolve(raw).catch((error: unknown) => {
          if (error instanceof PathValidationError) return root
          throw error
        })
        expect(resolved === root || resolved.startsWith(`${root}/`)).toBe(true)
        expect(await policy.resolve(resolved)).toBe(resolved)
      }),
      rounds(500),
    )
  })
})

async function isAllowed(policy: PathPolicy, path: string): Promise<boolean> {
  return policy.resolve(path).then(
    () => true,
    () => false,
  )
}
