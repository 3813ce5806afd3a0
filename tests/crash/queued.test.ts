import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, expect, test } from 'vitest'
import { startPostgres } from '../support/postgres.js'

const rig = fileURLToPath(new URL('../../.build/rigs/queued.js', import.meta.url))
const server = await startPostgres()
afterAll(() => server?.stop())

/** The short form; `npm run test:long` is the long one. */
async function queued(...args: readonly string[]): Promise<string> {
  const seed = String(1 + Math.floor(Math.random() * 1e4))
  const given = [rig, '--seed', seed, '--runs', '40', '--processes', '2', ...args]
  return (await promisify(execFile)(process.execPath, given, { timeout: 590_000 })).stdout
}

test.each(['file', 'sqlite'])(
  'runs that wait are begun once by processes that are killed, and all of them end (%s)',
  async (store) => {
    expect(await queued('--store', store)).toMatch(/^40 runs, .* 0 problems\.\n$/)
  },
  600_000,
)

test.skipIf(server === null)(
  'runs that wait are begun once by processes that are killed, and all of them end (postgres)',
  async () => {
    expect(await queued('--store', 'postgres', '--url', server!.url)).toMatch(/^40 runs, .* 0 problems\.\n$/)
  },
  600_000,
)
