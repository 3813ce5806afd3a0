import { readdirSync, readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import { entries } from './scripts/entries.js'
import { isLong, timeLimit } from './tests/support/length.js'

const root = fileURLToPath(new URL('.', import.meta.url))

/**
 * Files that replace modules, count what happens in their process or leave listeners (Chromium's) get a process of their own. The others
 * share a few, in which the library is loaded once; `shared-process.ts` checks that each leaves its process as it was.
 */
const REPLACES_MODULES = /\bvi\.(mock|doMock|resetModules)\(/
const NEED_OWN = [
  'tests/structure/',
  'tests/harness/connections.test.ts',
  'e2e/chat-page.test.ts',
  'e2e/serve-page.test.ts',
  'e2e/site.test.ts',
  'e2e/viewer.test.ts',
  'e2e/viewer-live.test.ts',
]

const files = ['tests', 'e2e'].flatMap((folder) =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.test.ts'))
    .map((file) => `${folder}/${file.replaceAll('\\', '/')}`),
)
const alone = files.filter(
  (file) =>
    NEED_OWN.some((path) => file.startsWith(path)) || REPLACES_MODULES.test(readFileSync(join(root, file), 'utf8')),
)

const resolve = {
  alias: entries.map(({ specifier, source }) => ({
    find: new RegExp(`^${specifier}$`),
    replacement: join(root, source),
  })),
}
const isLonger = process.env['THINHARNESS_RUNS'] !== undefined || isLong
const setupFiles = [
  'tests/support/sent-requests.ts',
  'tests/support/replayed-runs.ts',
  ...(isLonger ? ['tests/support/more-cases.ts'] : []),
]
const shared = ['tests/support/shared-process.ts', ...setupFiles]
/** Long enough for a busy machine: no test measures speed. */
const common = {
  testTimeout: timeLimit(60_000),
  hookTimeout: timeLimit(60_000),
  expect: { poll: { timeout: 20_000 } },
  sequence: { shuffle: true },
}

export default defineConfig({
  resolve,
  test: {
    globalSetup: ['tests/support/build.ts', 'tests/support/checked-requests.ts'],
    // By itself vitest leaves one core free: on a machine with two that is half of the time.
    maxWorkers: Math.max(2, availableParallelism() - 1),
    projects: [
      { resolve, test: { ...common, name: 'own process', include: alone, setupFiles } },
      {
        resolve,
        test: {
          ...common,
          name: 'shared process',
          include: ['tests/**/*.test.ts', 'e2e/**/*.test.ts'],
          exclude: alone,
          isolate: false,
          setupFiles: shared,
        },
      },
    ],
  },
})
