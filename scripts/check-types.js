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
  mistakes({ ...forNode, module: 'node16', moduleResolution: 'node16' })
  if (process.exitCode === undefined)
    console.log(`The types of ${entries.length} import paths compile under the strictest flags.`)
} finally {
  rmSync(folder, { recursive: true })
}

/** The compiler says of each mistake what it is: an overload would hide that. */
function mistakes(options) {
  const made = {
    "new Harness({ modle: 'openai:gpt-5' })": "Did you mean to write 'model'?",
    'new Harness({ model: 5 })': "Type 'number' is not assignable to type 'ModelRef | Model | undefined'.",
    'new Harness({ limits: { modelRequest: 3 } })': "Did you mean to write 'modelRequests'?",
    "new Harness({ tools: [{ name: 'x' }] })": 'is missing the following properties from type',
    "new Harness({ outputType: { type: 'string' }, toolz: [] })": "Did you mean to write 'tools'?",
  }
  const lines = Object.keys(made)
  writeFileSync(join(folder, 'mistakes.ts'), ["import { Harness } from 'thinharness'", ...lines].join('\n'))
  const compilerOptions = { ...strictest, ...options, skipLibCheck: true, target: 'es2022', noEmit: true }
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['mistakes.ts'] }))
  const { stdout } = spawnSync(process.execPath, [tsc, '-p', folder, '--pretty', 'false'], { encoding: 'utf8' })
  for (const [index, [line, expected]] of Object.entries(made).entries()) {
    const told = stdout.split('\n').filter((each) => each.includes(`mistakes.ts(${index + 2},`))
    if (told.length === 1 && told[0].includes(expected)) continue
    console.error(`\`${line}\` is to be told as: … ${expected}\n${told.join('\n') || stdout}`)
    process.exitCode = 1
  }
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
