// Bundles the compiled source into `dist`, or into the folder that is given: a file for each import path, and chunks for the
// modules that several share. To open a file costs Node about 1 ms of CPU, however short it is: `import 'thinharness'` loads three
// files and the first run five more, not one for each set of import paths that share modules (decision 17). Modules of Node are taken
// from the process: no bundler of a user follows them, and a program for browsers can contain all of it.
import { rmSync } from 'node:fs'
import { resolve } from 'node:path'
import { rollup } from 'rollup'
import { entries } from './entries.js'

/** The import paths, and the command. */
const paths = new Map(
  [...entries.map(({ name }) => name), 'command/main'].map((name) => [name, resolve(`.build/src/${name}.js`)]),
)
const main = paths.get('index')
const source = (name) => resolve(`.build/src/${name}.js`)
/** What a run loads when it begins, what tells it which model is meant, and what finds its price. */
const RUN = ['harness/launch/launcher', 'harness/map-rows', 'providers/infer-model', 'run/money/price-table'].map(
  source,
)
/** The formats of the providers, each loaded when one of its models is first asked. */
const FORMATS = ['ai-sdk', 'anthropic', 'chat', 'google', 'openai'].map((name) => source(`providers/${name}/request`))
const command = resolve('.build/src/command')
const helper = resolve('.build/src/util/platform/node.js')

const bundle = await rollup({
  input: Object.fromEntries(paths),
  // Packages and the modules of Node.
  external: (id) => !/^[./]/.test(id),
  plugins: [{ name: 'modules-of-node', transform: withoutNodeImports, renderChunk: withoutEmptyImports }],
  treeshake: { moduleSideEffects: false },
  onLog: (_level, { message }) => {
    throw new Error(message)
  },
})
const dir = process.argv[2] ?? 'dist'
rmSync(dir, { recursive: true, force: true })
let shared
await bundle.write({
  dir,
  chunkFileNames: ({ moduleIds }) =>
    moduleIds.every((id) => id.startsWith(command)) ? 'command/[name]-[hash].js' : '[name]-[hash].js',
  hoistTransitiveImports: false,
  manualChunks: (id, { getModuleInfo }) => {
    shared ??= sharedModules((each) => getModuleInfo(each).importedIds.filter((imported) => imported.startsWith('/')))
    return shared.get(id)
  },
})

/**
 * The modules of `import 'thinharness'`: `base` if a store loads them too, else `core`. Those that a run loads in
 * addition: `run` if no import path loads them at once, `base` for what everything rests on, `call` and `schema` for the rest.
 */
function sharedModules(importsOf) {
  const loaded = new Map([...paths].map(([name, path]) => [name, reachable(path, importsOf)]))
  const stores = [...loaded].flatMap(([name, modules]) => (name.startsWith('store/') ? [modules] : []))
  const own = [...loaded.get('index')].filter((id) => id !== main)
  const chunks = new Map(own.map((id) => [id, stores.some((modules) => modules.has(id)) ? 'base' : 'core']))
  for (const id of RUN.flatMap((path) => [...reachable(path, importsOf)])) {
    if (id === main || chunks.has(id)) continue
    const users = [...loaded].flatMap(([name, modules]) => (modules.has(id) ? [name] : []))
    if (users.length === 0) chunks.set(id, 'run')
    else if (/\/src\/(util|contracts)\//.test(id)) chunks.set(id, 'base')
    else chunks.set(id, 'schema')
  }
  const adapters = [...loaded.get('providers/index')].filter((id) => id !== paths.get('providers/index'))
  const formats = FORMATS.map((path) => reachable(path, importsOf))
  const common = [...new Set(formats.flatMap((modules) => [...modules]))].filter(
    (id) => formats.filter((modules) => modules.has(id)).length > 1,
  )
  for (const id of [...adapters, ...common]) if (!chunks.has(id)) chunks.set(id, 'wire')
  return chunks
}

/** `import { join as path } from 'node:path'` becomes `const { join: path } = moduleOrStub('node:path')`. */
function withoutNodeImports(code, id) {
  // A program runs in Node alone, and its help loads nothing else.
  if (id.startsWith(command)) return null
  const written = code
    .replace(
      /^import \{([^}]*)\} from ("node:[\w/]+");$/gm,
      (_, names, name) => `const {${names.replaceAll(' as ', ': ')}} = /* @__PURE__ */ moduleOrStub(${name});`,
    )
    .replace(/\bimport\(("node:[\w/]+")\)/g, (_, name) => `Promise.resolve(moduleOrStub(${name}))`)
  if (/\b(import|from)\b[^;]*"node:/.test(written)) throw new Error(`${id} imports a module of Node in another form.`)
  return written === code ? null : `import { moduleOrStub } from ${JSON.stringify(helper)};\n${written}`
}

/** A module without side effects that nothing is taken from: bundlers warn of such an import. */
function withoutEmptyImports(code) {
  return code.replace(/^import '\.[^']+';\n/gm, '')
}

function reachable(from, importsOf) {
  const found = new Set([from])
  // Modules that are added during the iteration are visited too.
  for (const id of found) for (const imported of importsOf(id)) found.add(imported)
  return found
}
