import { cpSync, readdirSync } from 'node:fs'
import { dirname, relative, resolve } from 'node:path'
import { defineConfig } from 'tsup'

const shared = { format: 'esm', target: 'node20', platform: 'node', dts: false, clean: true } as const

const files = readdirSync('examples', { encoding: 'utf8', recursive: true }).filter(
  (path) => !path.startsWith('quickstart'),
)
/** Every file of the other examples is a program or a part of one, and keeps its place. */
const examples = files
  .filter((path) => path.endsWith('.ts') && !path.includes('/page/'))
  .map((path) => [path.slice(0, -'.ts'.length), `examples/${path}`] as const)

/** In files that stay separate, `#core/…` becomes a path to the compiled source: the `imports` of package.json name the source itself. */
const rooms = {
  name: 'rooms',
  renderChunk: (code: string, { path }: { readonly path: string }) => ({
    code: code.replace(/(from |import\()"#([\w./-]+)"/g, (_, before: string, target: string) => {
      const found = relative(dirname(resolve(path)), resolve('.build/src', target)).replaceAll('\\', '/')
      return `${before}"${found.startsWith('.') ? found : `./${found}`}"`
    }),
  }),
}

/** Files that stay separate. */
const programs = (folder: string, from = folder) => ({
  entry: [`${from}/**/*.ts`],
  ...shared,
  outDir: `.build/${folder}`,
  bundle: false,
  plugins: [rooms],
})

export default defineConfig([
  // Bundled by `scripts/bundle.js`.
  programs('src'),
  {
    // The examples use the package as its users do: by its name.
    entry: Object.fromEntries(examples),
    ...shared,
    // Built at the same time, into the same folder.
    clean: ['!quickstart.js', '!chunk-*.js'],
    outDir: '.build/examples',
    bundle: false,
    // Pages are beside the programs that serve them, as in a copy that `init` makes; these bundle them when they start.
    onSuccess: async () => {
      for (const path of files.filter((each) => /\/page\b/.test(each)))
        cpSync(`examples/${path}`, `.build/examples/${path}`, { recursive: true })
    },
  },
  {
    entry: { quickstart: 'examples/quickstart/main.ts' },
    ...shared,
    clean: false,
    outDir: '.build/examples',
    external: [/^thinharness/],
  },
  programs('bench', 'e2e/bench'),
  programs('rigs', 'e2e/rigs'),
  // For `scripts/test-long.js`.
  { entry: ['tests/support/postgres.ts'], ...shared, outDir: '.build/support' },
  {
    // The client under test uses internal modules: they are bundled.
    entry: ['e2e/conformance/run.ts', 'e2e/conformance/client.ts'],
    ...shared,
    outDir: '.build/conformance',
    skipNodeModulesBundle: true,
    noExternal: [/^#/],
  },
])
