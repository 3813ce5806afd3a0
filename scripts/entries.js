import { readFileSync } from 'node:fs'

export const manifest = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))

/** The import paths of the package as its `exports` name them; builds, tests and checks follow this list. */
export const entries = Object.entries(manifest.exports).flatMap(([path, target]) =>
  typeof target === 'string' ? [] : [entryOf(path, target.default)],
)

function entryOf(path, output) {
  const name = output.replace(/^\.\/dist\//, '').replace(/\.js$/, '')
  return { specifier: manifest.name + path.slice(1), name, source: `src/${name}.ts`, output: `dist/${name}.js` }
}
