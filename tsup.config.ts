import { readdirSync } from 'node:fs'
import { dirname, relative, resolve } from 'node:path'
import { defineConfig } from 'tsup'

const shared = { format: 'esm', target: 'node20', platform: 'node', dts: false, clean: true } as const

/** Every file of the other examples is a program or a part of one, and keeps its place. */
const examples = readdirSync('examples', { encoding: 'utf8', recursive: true })
  .filter((path) => path.endsWith('.ts') && !path.startsWith('quickstart') && !path.includes('/page/'))
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
    entry: { quickstart: 'examples/quickstart/main.ts', ...Object.fromEntries(examples) },
    ...shared,
    outDir: '.build/examples',
    external: [/^thinharness/, 'esbuild'],
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
