import { defineConfig } from 'tsup'

/** One entry for each import path of the package; what several share becomes a chunk that is loaded with the first of them. */
export default defineConfig({
  entry: {
    index: 'src/index.ts',
    'providers/index': 'src/providers/index.ts',
    'toolbox/index': 'src/toolbox/index.ts',
    'testing/index': 'src/testing/index.ts',
  },
  format: 'esm',
  target: 'node20',
  platform: 'node',
  splitting: true,
  treeshake: true,
  clean: true,
  dts: false,
})
