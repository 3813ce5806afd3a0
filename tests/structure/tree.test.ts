import { readFileSync, readdirSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import ts from 'typescript'
import { describe, expect, test } from 'vitest'

const root = resolve(import.meta.dirname, '../..')
const MOST_FILES = 20

interface Folder {
  readonly path: string
  readonly files: readonly string[]
}

/** The folders below `path` that contain files, with the files in each. */
function foldersBelow(path: string): Folder[] {
  const entries = readdirSync(join(root, path), { withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile()).map(({ name }) => `${path}/${name}`)
  const below = entries.filter((entry) => entry.isDirectory()).flatMap(({ name }) => foldersBelow(`${path}/${name}`))
  return files.length === 0 ? below : [{ path, files }, ...below]
}

const source = foldersBelow('src')
const text = (path: string): string => readFileSync(join(root, path), 'utf8')

describe('the source tree', () => {
  test('a folder has at most 20 files', () => {
    const crowded = source.filter(({ files }) => files.length > MOST_FILES)
    expect(crowded.map(({ path, files }) => `${path}: ${files.length} files`)).toEqual([])
  })

  test('only index.ts lies in the root of src', () => {
    expect(source.find(({ path }) => path === 'src')?.files).toEqual(['src/index.ts'])
  })

  test('docs/architecture.md has one line for each folder', () => {
    const [, tree = ''] = /```text\nsrc\/\n([\s\S]*?)```/.exec(text('docs/architecture.md')) ?? []
    const folders = source.map(({ path }) => path.slice('src/'.length)).filter((path) => path !== '')
    const parents = folders.filter((path) => path.includes('/')).map((path) => dirname(path))
    expect([...listedFolders(tree)].sort()).toEqual([...new Set([...folders, ...parents])].sort())
  })

  test('fields of a context are readonly: it is complete when it is created', () => {
    expect(['src/core/loop/run-context.ts'].flatMap(writableFields)).toEqual([])
  })
})

/** Paths in a tree that is drawn with two spaces of indentation per level. */
function listedFolders(tree: string): Set<string> {
  const above: string[] = []
  const listed = new Set<string>()
  for (const line of tree.split('\n')) {
    const [, indent = '', name] = /^( *)([\w-]+)\//.exec(line) ?? []
    if (name === undefined) continue
    above.length = indent.length / 2 - 1
    above.push(name)
    listed.add(above.join('/'))
  }
  return listed
}

function writableFields(path: string): string[] {
  const file = ts.createSourceFile(path, text(path), ts.ScriptTarget.Latest, true)
  const fields: string[] = []
  const visit = (node: ts.Node): void => {
    if (ts.isPropertyDeclaration(node) && !ts.isPrivateIdentifier(node.name)) {
      const isReadonly = node.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ReadonlyKeyword) === true
      if (!isReadonly) fields.push(`${path}: ${node.name.getText()}`)
    }
    ts.forEachChild(node, visit)
  }
  visit(file)
  return fields
}

describe('references', () => {
  /** Documents and ids that are not in the repository. */
  const absent = /\bspec §|\bH-\d\d\b|\b(?:harness|session|operations|interface)-behaviour\b|\bfindings?\.md\b/
  const pages = ['README.md', 'CONTEXT.md', 'CHANGELOG.md']
  const searched = [...['src', 'tests', 'e2e', 'docs', 'examples'].flatMap(foldersBelow)]

  test('name only what a reader of the repository can open', () => {
    const files = [...pages, ...searched.flatMap(({ files: each }) => each)].filter((path) => /\.(ts|md)$/.test(path))
    const found = files
      .filter((path) => path !== relative(root, import.meta.filename))
      .flatMap((path) =>
        text(path)
          .split('\n')
          .flatMap((line, index) => (absent.test(line) ? [`${path}:${index + 1} ${line.trim()}`] : [])),
      )
    expect(found).toEqual([])
  })
})
