// The import paths of the package are complete and the same everywhere: in the `exports` of package.json, in the sources,
// in the build and in the paths by which the compiler finds them in this project.
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import ts from 'typescript'
import { entries, manifest } from './entries.js'

const problems = [...entries.flatMap(entryProblems), ...forgottenSources(), ...pathProblems()]
if (problems.length === 0)
  console.log(`${entries.length} import paths: ${entries.map((each) => each.specifier).join(', ')}.`)
else {
  console.error(problems.join('\n'))
  process.exitCode = 1
}

function entryProblems({ specifier, source, output }) {
  const path = specifier.replace(manifest.name, '.')
  const types = `./${output.replace(/\.js$/, '.d.ts')}`
  return [
    ...(manifest.exports[path].types === types
      ? []
      : [
          `Expected \`types\` of \`${path}\` in the exports to be \`${types}\`, got \`${manifest.exports[path].types}\`.`,
        ]),
    ...[source, output, types].flatMap((file) =>
      existsSync(file) ? [] : [`\`${specifier}\` is in the exports, but there is no \`${file}\`.`],
    ),
  ]
}

/** A folder of the sources with an `index.ts` is there to be imported. */
function forgottenSources() {
  const known = new Set(entries.map(({ source }) => source))
  return readdirSync('src', { withFileTypes: true })
    .filter((each) => each.isDirectory())
    .map(({ name }) => `src/${name}/index.ts`)
    .filter((source) => existsSync(source) && !known.has(source))
    .map((source) => `\`${source}\` is in no \`exports\` of package.json.`)
}

function pathProblems() {
  const { paths } = ts.readConfigFile('tsconfig.json', (file) => readFileSync(file, 'utf8')).config.compilerOptions
  const expected = Object.fromEntries(entries.map(({ specifier, source }) => [specifier, [`./${source}`]]))
  return [...new Set([...Object.keys(expected), ...Object.keys(paths)])].flatMap((specifier) => {
    const [want, got] = [expected[specifier], paths[specifier]].map((each) => each?.join(', ') ?? 'nothing')
    return want === got ? [] : [`Expected \`paths\` of tsconfig.json to have ${want} for \`${specifier}\`, got ${got}.`]
  })
}
