// Calls that read real trees: the sources of packages, copied from node_modules.
import { cp, readdir, stat } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, extname, join, relative } from 'node:path'
import type { ScriptedCall } from 'thinharness/testing'
import { randomBy } from '../thread-shapes.js'

export const PACKAGES = ['typescript', '@types/node', 'zod'] as const

/** Names that occur in the packages. */
const WORDS = ['readonly', 'interface', 'createServer', 'ZodType', 'deprecated', 'AbortSignal', 'flatMap', 'TODO']
const TEXTS = new Set(['.ts', '.js', '.mts', '.mjs', '.md', '.json'])
/** Bytes of a file for one line, as a rule. */
const LINE = 40

export interface Tree {
  readonly root: string
  readonly files: readonly { readonly path: string; readonly bytes: number }[]
  readonly folders: readonly string[]
}

/** Copies packages into a folder. */
export async function plantTree(root: string, packages: readonly string[] = PACKAGES): Promise<Tree> {
  const { resolve } = createRequire(import.meta.url)
  for (const name of packages)
    await cp(dirname(resolve(`${name}/package.json`)), join(root, name), { recursive: true, dereference: true })
  const entries = await readdir(root, { recursive: true, withFileTypes: true })
  const paths = entries.map((entry) => ({ entry, path: relative(root, join(entry.parentPath, entry.name)) }))
  const files = paths.filter(({ entry, path }) => entry.isFile() && TEXTS.has(extname(path)))
  return {
    root,
    files: await Promise.all(files.map(async ({ path }) => ({ path, bytes: (await stat(join(root, path))).size }))),
    folders: paths.filter(({ entry }) => entry.isDirectory()).map(({ path }) => path),
  }
}

/** One to three calls of `read`, `search` and `list`, the same for the same turn. */
export function callsOf({ files, folders }: Tree, turn: number): readonly ScriptedCall[] {
  const random = randomBy(turn)
  const oneOf = <Item>(list: readonly Item[]): Item => {
    const item = list[Math.floor(random() * list.length)]
    if (item === undefined) throw new RangeError('Expected packages with files and folders.')
    return item
  }
  return Array.from({ length: 1 + Math.floor(random() ** 2 * 3) }, (): ScriptedCall => {
    const kind = random()
    if (kind < 0.2) {
      const path = oneOf(folders)
      return { name: 'search', arguments: { query: oneOf(WORDS), path, literal: true, max_chars: 8000 } }
    }
    if (kind < 0.35) return { name: 'list', arguments: { path: oneOf(folders) } }
    const { path, bytes } = oneOf(files)
    const offset = 1 + Math.floor((random() * bytes) / LINE / 2)
    const limit = 20 + Math.floor(random() ** 3 * 400)
    return { name: 'read', arguments: { path, offset, limit } }
  })
}
