import { existsSync } from 'node:fs'
import { readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { HarnessError } from '#contracts/errors.js'
import { PathValidationError } from '#toolbox/workspace/file-failure.js'
import { fileToolLimits } from '#toolbox/workspace/options.js'
import type { FileToolOptions } from '#toolbox/workspace/options.js'
import { workspaceOf } from '#toolbox/workspace/workspace.js'
import { folderWith } from '../support.js'

describe('the options of the file tools', () => {
  test('they have defaults', () => {
    expect(fileToolLimits({})).toEqual({
      requireRead: true,
      maxOutputFiles: 1_000,
      maxReadChars: 40_000,
      maxReadBytes: 1_000_000,
      maxToolChars: 40_000,
      maxSearchLineChars: 180,
      searchTimeoutMs: 30_000,
      excludeGlobs: [],
      ripgrep: undefined,
    })
  })

  test.each<[object, string]>([
    [{ readPath: ['a'] }, 'Unknown option of the file tools: `readPath`. Did you mean `readPaths`?'],
    [{ maxReadChars: 0 }, 'Expected `maxReadChars` of the file tools to be a whole number from 1 up, got `0`.'],
    [{ maxReadBytes: 1.5 }, 'Expected `maxReadBytes` of the file tools to be a whole number from 1 up, got `1.5`.'],
    [
      { maxToolChars: '9' },
      'Expected `maxToolChars` of the file tools to be a whole number from 1 up, got the string `9`.',
    ],
    [{ root: '' }, 'Expected `root` of the file tools to be a string that is not empty, got an empty string.'],
    [{ readPaths: 'a' }, 'Expected `readPaths` of the file tools to be a list of paths, got `a`.'],
    [{ writePaths: [1] }, 'Expected `writePaths[0]` of the file tools to be a string, got `1`.'],
    [
      { excludeGlobs: ['../x'] },
      'Expected `excludeGlobs` of the file tools to be a list of relative globs, got `../x`: glob must not contain `..`.',
    ],
    [
      { ripgrep: true },
      'Expected `ripgrep` of the file tools to be a string that is not empty or `false`, got `true`.',
    ],
  ])('%j is rejected', (options, message) => {
    expect(() => fileToolLimits(options)).toThrow(new HarnessError('invalid_options', message))
  })

  test.each<[FileToolOptions, string]>([
    [{ readPaths: [] }, 'Expected the read paths to have at least one path.'],
    [{ readPaths: ['..'] }, 'path escapes root: ..'],
    [{ writePaths: ['a', 'b/../../x'] }, 'path escapes root: b/../../x'],
    [{ outputDir: '../out' }, 'path escapes root: ../out'],
    [{ outputDir: 'a\0' }, 'path contains a NUL character: a\\u0000'],
  ])('FT-70 an output folder that leaves any root is rejected at once: %j', (options, message) => {
    expect(() => fileToolLimits(options)).toThrow(new PathValidationError(message))
  })
})

describe('a workspace', () => {
  test('it creates its root, follows links to it, and is created once', async () => {
    const base = await folderWith({ 'real/a.txt': '' })
    await symlink('real', join(base, 'link'))
    const options = {}
    const workspace = workspaceOf(options, join(base, 'link'))
    expect([workspace.root, workspace.outputDir]).toEqual([join(base, 'real'), join(base, 'real/.thinharness/outputs')])
    expect(workspaceOf(options, join(base, 'link'))).toBe(workspace)
    expect(workspaceOf({}, join(base, 'new/er')).root).toBe(join(base, 'new/er'))
    expect([existsSync(join(base, 'new/er')), existsSync(workspace.outputDir)]).toEqual([true, false])
  })

  test('the root of its options wins over the root of the call', async () => {
    const [own, other] = [await folderWith(), await folderWith()]
    expect(workspaceOf({ root: own }, other).root).toBe(own)
  })

  test('the number of remembered roots is bounded', async () => {
    const base = await folderWith()
    const options = {}
    const first = workspaceOf(options, join(base, '0'))
    for (let index = 1; index <= 64; index++) workspaceOf(options, join(base, String(index)))
    expect(workspaceOf(options, join(base, '0'))).not.toBe(first)
  })

  test('FT-70 an output folder or an allow-list that leaves the root is rejected, through a link too', async () => {
    const outside = await folderWith()
    const root = await folderWith()
    await symlink(outside, join(root, 'link'))
    for (const path of [outside, 'link', 'link/new']) {
      expect(() => workspaceOf({ outputDir: path }, root)).toThrow(PathValidationError)
      expect(() => workspaceOf({ readPaths: [path] }, root)).toThrow(PathValidationError)
      expect(() => workspaceOf({ writePaths: ['.', path] }, root)).toThrow(PathValidationError)
    }
  })

  test('a root that is a file is rejected', async () => {
    const root = await folderWith()
    await writeFile(join(root, 'a.txt'), '')
    expect(() => workspaceOf({}, join(root, 'a.txt'))).toThrow(HarnessError)
    expect(() => workspaceOf({}, join(root, 'a.txt/b'))).toThrow(HarnessError)
  })

  test('paths are shown as the model writes them', async () => {
    const root = await folderWith()
    const workspace = workspaceOf({}, root)
    const shown = [root, join(root, 'a/b'), join(root, 'a\nb')].map((path) => workspace.display(path))
    expect(shown).toEqual(['.', 'a/b', 'a\\u000ab'])
  })
})

test("FT-76 the repository ignores the harness's own folder", async () => {
  const rules = await readFile(new URL('../../../.gitignore', import.meta.url), 'utf8')
  expect(rules.split('\n')).toContain('.thinharness/')
})
