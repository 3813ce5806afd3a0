import { defineConfig } from 'tsup'
import { entries, manifest } from './scripts/entries.js'

const shared = { format: 'esm', target: 'node20', platform: 'node', dts: false, clean: true } as const

export default defineConfig([
  {
    // One entry for each import path of the package; what several share becomes a chunk, loaded with the first of them.
    entry: Object.fromEntries(entries.map(({ name, source }) => [name, source])),
    ...shared,
    splitting: true,
    external: Object.keys(manifest.optionalDependencies),
    treeshake: true,
  },
  {
    // The examples use the package as its users do: by its name.
    entry: { quickstart: 'examples/quickstart/main.ts' },
    ...shared,
    outDir: '.build/examples',
    external: [/^thinharness/],
  },
])
