// What the package weighs: the budget of each import path (.size-limit.js), and the table of docs/performance.md, which may differ from what is
// measured by 5 %. With `--write`, the table gets the measured values.
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import * as prettier from 'prettier'
import { manifest } from './entries.js'

const PAGE = 'docs/performance.md'
const MOST = 0.05
const SEARCH = ['@vscode/ripgrep', '@vscode/ripgrep-linux-x64']
const isWriting = process.argv.includes('--write')
const problems = []

if (!existsSync('dist/index.d.ts')) throw new Error('Run `npm run build` first: types are part of the package.')
const imports = importSizes()
const dependencies = Object.keys(manifest.dependencies)
/** What dependencies depend on: only the questions of the command do, and they are loaded when somebody is asked. */
const further = furtherDependencies()
const { size: tarball, unpackedSize } = packed()
/** By row: how it begins, the words that follow, and the values in bytes. */
const rows = [
  ["`import 'thinharness'`", ', minified and compressed', [imports[0].size]],
  ['the package with its docs', ': tarball, installed', [tarball, unpackedSize]],
  [
    'its ',
    `${dependencies.length} dependencies, installed (with the ${further.length} of @clack/prompts)`,
    [sum([...dependencies, ...further].map(installed))],
  ],
  // It has a package for each platform; the table shows Linux.
  ...(SEARCH.every((name) => existsSync(`node_modules/${name}`))
    ? [['optional: ripgrep', ', for faster search', [sum(SEARCH.map(installed))]]]
    : []),
]
const page = readFileSync(PAGE, 'utf8')
const written = rows.reduce(withRow, page)
if (isWriting) {
  const options = await prettier.resolveConfig(PAGE)
  writeFileSync(PAGE, await prettier.format(written, { ...options, filepath: PAGE }))
}

if (problems.length === 0) console.log(`${imports.length} import paths and the sizes in ${PAGE}.`)
else {
  console.error(problems.join('\n'))
  process.exitCode = 1
}

/** The compressed size of each import path, in the order of the package's exports. */
function importSizes() {
  const { stdout, stderr } = spawnSync('node_modules/.bin/size-limit', ['--json'], { encoding: 'utf8' })
  if (!stdout.startsWith('[')) throw new Error(`size-limit: ${stderr}${stdout}`)
  const sizes = JSON.parse(stdout)
  for (const { name, passed, size, sizeLimit } of sizes)
    if (passed !== true) problems.push(`${name}: ${shown(size, 'kB', 2)}; its budget is ${shown(sizeLimit, 'kB', 2)}.`)
  return sizes
}

function packed() {
  const options = { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }
  return JSON.parse(execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], options))[0]
}

function furtherDependencies() {
  const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8'))
  const found = new Set()
  const visit = (name) => {
    for (const each of Object.keys(packages[`node_modules/${name}`]?.dependencies ?? {})) {
      if (dependencies.includes(each) || found.has(each)) continue
      found.add(each)
      visit(each)
    }
  }
  for (const name of dependencies) {
    const before = found.size
    visit(name)
    if (found.size > before && name !== '@clack/prompts')
      problems.push(`${PAGE} says that only @clack/prompts has further dependencies; ${name} has some.`)
  }
  return [...found]
}

/** The page with the measured values in a row. A row that is missing, or whose values differ by too much, is a problem. */
function withRow(text, [start, words, bytes]) {
  const line = text.split('\n').find((candidate) => candidate.startsWith(`| ${start}`))
  const [, label = '', cell = ''] = line?.split('|').map((part) => part.trim()) ?? []
  const claimed = [...cell.matchAll(/([\d.]+) (kB|MB)/g)]
  const units = claimed.map(([, , unit]) => unit)
  const values = bytes.map((value, index) => shown(value, units[index] ?? 'MB', 1)).join(', ')
  if (line !== undefined && isWriting) return text.replace(line, () => `| ${start}${words} | ${values} |`)
  const isNear = ([, number, unit], index) =>
    Math.abs(Number(number) * factor(unit) - bytes[index]) <= MOST * bytes[index]
  if (label !== start + words || claimed.length !== bytes.length || !claimed.every(isNear))
    problems.push(
      `${PAGE} has no row \`${start}${words}\` with ${values}: run \`npm run check:build:size -- --write\`.`,
    )
  return text
}

function installed(name) {
  const folder = join('node_modules', name)
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  return sum(files.map((entry) => statSync(join(entry.parentPath, entry.name)).size))
}

function shown(bytes, unit, digits) {
  return `${(bytes / factor(unit)).toFixed(digits)} ${unit}`
}

function factor(unit) {
  return unit === 'kB' ? 1e3 : 1e6
}

function sum(values) {
  return values.reduce((total, value) => total + value, 0)
}
