import { defineConfig } from 'tsup'

const shared = { format: 'esm', target: 'node20', platform: 'node', dts: false, clean: true } as const

export default defineConfig([
  {
    // One entry for each import path of the package; what several share becomes a chunk, loaded with the first of them.
    entry: {
      index: 'src/index.ts',
      'providers/index': 'src/providers/index.ts',
      'toolbox/index': 'src/toolbox/index.ts',
      'testing/index': 'src/testing/index.ts',
    },
    ...shared,
    splitting: true,
    external: ['@vscode/ripgrep', 'undici', '@cfworker/json-schema'],
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
