// Bundles the compiled source into `dist`: a file for each import path, and chunks for the modules that several share. Node
// takes longer to open a file than to read it, so that `import 'thinharness'` loads three files, not one for each set of
// import paths that share modules.
import { rmSync } from 'node:fs'
import { resolve } from 'node:path'
import { rollup } from 'rollup'
import { entries } from './entries.js'

const paths = new Map(entries.map(({ name }) => [name, resolve(`.build/src/${name}.js`)]))
const main = paths.get('index')

const bundle = await rollup({
  input: Object.fromEntries(paths),
  // Packages and the modules of Node.
  external: (id) => !/^[./]/.test(id),
  treeshake: { moduleSideEffects: false },
  onLog: (_level, { message }) => {
    throw new Error(message)
  },
})
rmSync('dist', { recursive: true, force: true })
let shared
await bundle.write({
  dir: 'dist',
  chunkFileNames: '[name]-[hash].js',
  manualChunks: (id, { getModuleInfo }) => {
    shared ??= sharedModules((each) => getModuleInfo(each).importedIds.filter((imported) => imported.startsWith('/')))
    return shared.get(id)
  },
})

/** The modules of `import 'thinharness'`: `base` if another import path loads them without it, else `core`. */
function sharedModules(importsOf) {
  const loaded = new Map([...paths.values()].map((path) => [path, reachable(path, importsOf)]))
  const others = [...loaded.values()].filter((modules) => !modules.has(main))
  const own = [...loaded.get(main)].filter((id) => id !== main)
  return new Map(own.map((id) => [id, others.some((modules) => modules.has(id)) ? 'base' : 'core']))
}

function reachable(from, importsOf) {
  const found = new Set([from])
  // Modules that are added during the iteration are visited too.
  for (const id of found) for (const imported of importsOf(id)) found.add(imported)
  return found
}
