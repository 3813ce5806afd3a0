import { execFile } from 'node:child_process'
import { relative } from 'node:path'
import { promisify } from 'node:util'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { walk } from '#toolbox/workspace/walk.js'
import { folderWith, workspaceIn } from '../support.js'
import { rounds, timeLimit } from '../../support/length.js'

const ripgrep = await import('@vscode/ripgrep').then(
  ({ rgPath }) => rgPath,
  () => undefined,
)
const run = promisify(execFile)

/** What ripgrep would search, with the root as its whole world, without hidden names whatever ignore files say. */
async function filesOfRipgrep(program: string, root: string): Promise<string[]> {
  const flags = ['--no-ignore-parent', '--no-ignore-global', '--no-ignore-exclude', '--no-require-git', '--glob=!.*']
  const { stdout } = await run(program, ['--files', '--no-config', ...flags, '.'], { cwd: root }).catch(
    (error: unknown) => error as { stdout: string },
  )
  return stdout
    .split('\n')
    .filter(Boolean)
    .map((path) => path.replace(/^\.\//, ''))
    .sort()
}

async function filesOfWalk(root: string): Promise<string[]> {
  const files: string[] = []
  for await (const { path, kind } of walk(workspaceIn(root), { start: root, signal: new AbortController().signal })) {
    if (kind === 'file') files.push(relative(root, path))
  }
  return files.sort()
}

// Names are ASCII: to ripgrep `?` is one byte, to us one character.
const name = fc.constantFrom('a', 'b', 'ab', 'a.md', 'b.md', 'a b', '.hidden', '.a.md', '[a]')
const path = fc.array(name, { minLength: 1, maxLength: 4 }).map((names) => names.join('/'))
const piece = fc.constantFrom('a', 'b', '*', '?', '**', '*.md', '[ab]', '[!a]', '\\[a\\]', '{a,b}', '.*', 'a**b')
const rule = fc
  .tuple(
    fc.constantFrom('', '!'),
    fc.constantFrom('', '/'),
    fc.array(piece, { minLength: 1, maxLength: 3 }),
    fc.constantFrom('', '/'),
  )
  .map(([negation, start, pieces, end]) => negation + start + pieces.join('/') + end)
interface IgnoreFile {
  readonly folder: string
  readonly file: string
  readonly rules: readonly string[]
}

const ignoreFile: fc.Arbitrary<IgnoreFile> = fc.record({
  folder: fc.constantFrom('', 'a/', 'b/', 'a/b/', 'ab/'),
  file: fc.constantFrom('.gitignore', '.ignore', '.rgignore'),
  rules: fc.array(rule, { minLength: 1, maxLength: 4 }),
})

/** A path cannot be a file and a folder at once: the first one wins. */
function treeOf(paths: readonly string[], ignoreFiles: readonly IgnoreFile[]): Record<string, string> {
  const tree = new Map<string, string>()
  const add = (path: string, content: string): void => {
    const parents = path.split('/').map((_, index, names) => names.slice(0, index).join('/'))
    const taken =
      parents.some((parent) => tree.has(parent)) || [...tree.keys()].some((key) => key.startsWith(`${path}/`))
    if (!taken) tree.set(path, content)
  }
  for (const path of paths) add(path, 'text\n')
  for (const { folder, file, rules } of ignoreFiles) add(folder + file, rules.join('\n'))
  return Object.fromEntries(tree)
}

test.skipIf(ripgrep === undefined)(
  'the walker finds the same files as ripgrep',
  { timeout: timeLimit(120_000) },
  async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(path, { minLength: 1, maxLength: 12 }),
        fc.array(ignoreFile, { maxLength: 3 }),
        async (paths, ignoreFiles) => {
          const root = await folderWith(treeOf(paths, ignoreFiles))
          expect(await filesOfWalk(root)).toEqual(await filesOfRipgrep(ripgrep ?? '', root))
        },
      ),
      rounds(30, 2_000),
    )
  },
)
