// The import paths of the package are complete: every folder of `src` with an `index.ts` is in the `exports` of
// package.json, and the compiler finds the source of each path. `npm run check:build:package` checks the built files.
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import ts from 'typescript'
import { entries } from './entries.js'

const problems = [...forgottenSources(), ...pathProblems()]
if (problems.length === 0)
  console.log(`${entries.length} import paths: ${entries.map((each) => each.specifier).join(', ')}.`)
else {
  console.error(problems.join('\n'))
  process.exitCode = 1
}

/** A folder of the sources with an `index.ts` is meant to be imported, also one inside a suite of rooms. */
function forgottenSources() {
  const known = new Set(entries.map(({ source }) => source))
  const suites = ['src/extensions', 'src/adapters']
  return ['src', ...suites]
    .flatMap((folder) => foldersIn(folder))
    .filter((folder) => !suites.includes(folder))
    .map((folder) => `${folder}/index.ts`)
    .filter((source) => existsSync(source) && !known.has(source))
    .map((source) => `Expected \`${source}\` to be in the \`exports\` of package.json.`)
}

function foldersIn(folder) {
  const entries = readdirSync(folder, { withFileTypes: true })
  return entries.filter((each) => each.isDirectory()).map(({ name }) => `${folder}/${name}`)
}

function pathProblems() {
  const { paths } = ts.readConfigFile('tsconfig.json', (file) => readFileSync(file, 'utf8')).config.compilerOptions
  const expected = Object.fromEntries(entries.map(({ specifier, source }) => [specifier, [`./${source}`]]))
  return [...new Set([...Object.keys(expected), ...Object.keys(paths)])].flatMap((specifier) => {
    const [want, got] = [expected[specifier], paths[specifier]].map((each) => each?.join(', ') ?? 'nothing')
    return want === got ? [] : [`Expected \`paths\` of tsconfig.json to have ${want} for \`${specifier}\`, got ${got}.`]
  })
}
