// The type declarations of the built package, for the strictest users: every import path under all strict flags, without
// `skipLibCheck`, for both ways in which TypeScript resolves packages.
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { entries, manifest } from './entries.js'

const root = fileURLToPath(new URL('..', import.meta.url))
const tsc = join(root, 'node_modules/typescript/bin/tsc')
const strictest = {
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  noPropertyAccessFromIndexSignature: true,
  noImplicitOverride: true,
  noImplicitReturns: true,
  isolatedModules: true,
  verbatimModuleSyntax: true,
  skipLibCheck: false,
}
const lib = ['es2023', 'dom', 'dom.iterable']
const forNode = { lib, types: ['node'], typeRoots: [join(root, 'node_modules/@types')] }
/** What a page imports needs no types of Node. */
const forBrowsers = { lib: [...lib, 'esnext.disposable'], types: [] }
const folder = mkdtempSync(join(tmpdir(), 'thinharness-types-'))
try {
  mkdirSync(join(folder, 'node_modules'))
  symlinkSync(root, join(folder, 'node_modules', manifest.name), 'dir')
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ type: 'module' }))
  const all = entries.map(({ specifier }) => specifier)
  compile(all, { ...forNode, module: 'node16', moduleResolution: 'node16' })
  compile(all, { ...forNode, module: 'esnext', moduleResolution: 'bundler' })
  const forPages = ['ui/client', 'ui/store', 'ui/react'].map((path) => `${manifest.name}/${path}`)
  compile(forPages, { ...forBrowsers, module: 'esnext', moduleResolution: 'bundler' })
  if (process.exitCode === undefined)
    console.log(`The types of ${entries.length} import paths compile under the strictest flags.`)
} finally {
  rmSync(folder, { recursive: true })
}

function compile(specifiers, options) {
  const imports = specifiers.map((specifier, index) => `import * as e${index} from '${specifier}'`)
  const names = specifiers.map((_, index) => `e${index}`).join(', ')
  writeFileSync(join(folder, 'all.ts'), `${imports.join('\n')}\nexport const all: readonly object[] = [${names}]\n`)
  const compilerOptions = { ...strictest, ...options, target: 'es2022', noEmit: true }
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['all.ts'] }))
  const { status } = spawnSync(process.execPath, [tsc, '-p', folder], { stdio: 'inherit' })
  if (status !== 0) process.exitCode = 1
}
