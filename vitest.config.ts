import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import { entries } from './scripts/entries.js'

const root = new URL('.', import.meta.url)

export default defineConfig({
  resolve: {
    alias: entries.map(({ specifier, source }) => ({
      find: new RegExp(`^${specifier}$`),
      replacement: fileURLToPath(new URL(source, root)),
    })),
  },
  test: {
    globalSetup: ['tests/support/build.ts', 'tests/support/checked-requests.ts'],
    setupFiles: ['tests/support/sent-requests.ts', 'tests/support/replayed-runs.ts'],
    include: ['tests/**/*.test.ts', 'e2e/**/*.test.ts'],
    sequence: { shuffle: true },
    testTimeout: 20_000,
    // By itself vitest leaves one core free: on a machine with two that is half of the time.
    maxWorkers: Math.max(2, availableParallelism() - 1),
    typecheck: { enabled: false },
  },
})
