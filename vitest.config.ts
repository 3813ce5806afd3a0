import { defineConfig } from 'vitest/config'

const source = (path: string): string => new URL(`./src/${path}`, import.meta.url).pathname

export default defineConfig({
  resolve: {
    alias: [
      { find: /^thinharness$/, replacement: source('index.ts') },
      { find: /^thinharness\/providers$/, replacement: source('providers/index.ts') },
      { find: /^thinharness\/tools$/, replacement: source('toolbox/index.ts') },
      { find: /^thinharness\/testing$/, replacement: source('testing/index.ts') },
    ],
  },
  test: {
    globalSetup: ['tests/support/build.ts'],
    include: ['tests/**/*.test.ts', 'e2e/**/*.test.ts'],
    sequence: { shuffle: true },
    testTimeout: 20_000,
    typecheck: { enabled: false },
  },
})
