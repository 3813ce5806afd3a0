import { readFileSync, readdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import ts from 'typescript'
import { expect, test } from 'vitest'

const root = resolve(import.meta.dirname, '../..')
const CORE = ['core', 'harness', 'contracts']
/** Who may know a feature: the state of a run, the functions that change it, its log, and the port to it. */
const KNOWING = [
  'core/state/',
  'core/log/',
  'core/loop/apply.ts',
  'core/loop/decide.ts',
  'core/loop/limit-notices.ts',
  'core/loop/child-run.ts',
]
/** Of the core: its public options, and the places that put it into the plan of a run. */
const MOST_FILES = 3

/** The paths of the core, in `src`. */
const core = CORE.flatMap((folder) =>
  readdirSync(join(root, 'src', folder), { recursive: true, encoding: 'utf8' })
    .map((path) => `${folder}/${path}`)
    .filter((path) => path.endsWith('.ts') && !KNOWING.some((known) => path.startsWith(known))),
)

/** The text of a file without its strings: paths of imports, kinds of events. */
function withoutStrings(path: string): string {
  const text = readFileSync(join(root, 'src', path), 'utf8')
  const parts: string[] = []
  let end = 0
  const visit = (node: ts.Node): void => {
    if (!ts.isStringLiteralLike(node)) return ts.forEachChild(node, visit)
    parts.push(text.slice(end, node.getStart()))
    end = node.end
  }
  visit(ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true))
  return [...parts, text.slice(end)].join("''")
}

test.each(['background', 'provenance', 'stall'])('at most three files of the core name the feature `%s`', (word) => {
  const named = new RegExp(`\\b${word}`, 'i')
  const inName = word.charAt(0).toUpperCase() + word.slice(1)
  const files = core.filter((path) => {
    const text = withoutStrings(path)
    return named.test(text) || text.includes(inName)
  })
  expect(files.length).toBeGreaterThan(0)
  expect(files.length, files.join('\n')).toBeLessThanOrEqual(MOST_FILES)
})
