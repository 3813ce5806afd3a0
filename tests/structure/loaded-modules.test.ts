import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import ts from 'typescript'
import { expect, test } from 'vitest'
import { entries } from '../../scripts/entries.js'

const root = resolve(import.meta.dirname, '../..')

/** The modules of the source that each import path may load at once, and their bytes, in KiB. */
const MOST: Readonly<Record<string, readonly [modules: number, kib: number]>> = {
  thinharness: [107, 562],
  'thinharness/providers': [66, 346],
  'thinharness/tools': [130, 501],
  'thinharness/models': [81, 475],
  'thinharness/mcp': [75, 334],
  'thinharness/testing': [148, 717],
  'thinharness/tracing': [121, 560],
  'thinharness/store/sqlite': [34, 187],
  'thinharness/store/postgres': [35, 191],
  'thinharness/durable': [108, 502],
  'thinharness/durable/dbos': [116, 538],
  'thinharness/session': [148, 812],
  'thinharness/policy': [129, 577],
  'thinharness/context': [203, 938],
  'thinharness/memory': [128, 612],
  'thinharness/ui': [172, 794],
  'thinharness/ui/client': [12, 53],
  'thinharness/ui/store': [14, 75],
  'thinharness/ui/react': [18, 82],
  'thinharness/viewer': [40, 200],
  'thinharness/acp': [169, 829],
}

/** The modules that a file imports by value; what is imported when first used is not among them. */
function importsOf(path: string): string[] {
  const file = ts.createSourceFile(path, readFileSync(path, 'utf8'), ts.ScriptTarget.Latest)
  return file.statements.flatMap((statement) => {
    if (!ts.isImportDeclaration(statement) && !ts.isExportDeclaration(statement)) return []
    const { moduleSpecifier: specifier } = statement
    const isType = ts.isExportDeclaration(statement)
      ? statement.isTypeOnly
      : statement.importClause?.phaseModifier === ts.SyntaxKind.TypeKeyword
    if (isType || specifier === undefined || !ts.isStringLiteral(specifier)) return []
    const found = fileOf(specifier.text, path)
    return found === undefined ? [] : [found]
  })
}

/** A module of the source; none for packages and modules of Node. */
function fileOf(specifier: string, from: string): string | undefined {
  const isOurs = specifier.startsWith('#') || specifier.startsWith('.')
  const path = specifier.startsWith('#')
    ? join(root, 'src', specifier.slice(1))
    : specifier === 'thinharness'
      ? join(root, 'src/index.js')
      : resolve(dirname(from), specifier)
  if (!isOurs && specifier !== 'thinharness') return undefined
  const file = path.replace(/\.js$/, '.ts')
  if (!existsSync(file)) throw new Error(`Expected the module \`${specifier}\` of ${from}.`)
  return file
}

function loadedBy(entry: string): readonly string[] {
  const loaded = new Set([join(root, entry)])
  // Modules that are added during the iteration are visited too.
  for (const path of loaded) for (const imported of importsOf(path)) loaded.add(imported)
  return [...loaded]
}

test.each(entries)('`import $specifier` loads no more modules and source than its bound', ({ specifier, source }) => {
  const modules = loadedBy(source)
  const kib = modules.reduce((sum, path) => sum + readFileSync(path).length, 0) / 1024
  const [mostModules, mostKib] = MOST[specifier] ?? [0, 0]
  const shown = `${modules.length} modules, ${kib.toFixed(0)} KiB`
  expect(modules.length, shown).toBeGreaterThan(5)
  expect(modules.length, shown).toBeLessThanOrEqual(mostModules)
  expect(kib, shown).toBeLessThanOrEqual(mostKib)
})
