import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, expect, test } from 'vitest'
import { startPostgres } from '../support/postgres.js'

const rig = fileURLToPath(new URL('../../.build/rigs/crash/run.js', import.meta.url))
const server = await startPostgres()
afterAll(() => server?.stop())

/** The short form; `npm run test:long` is the long one. */
async function crash(...args: readonly string[]): Promise<string> {
  const seed = String(1 + Math.floor(Math.random() * 1e6))
  return (await promisify(execFile)(process.execPath, [rig, '--seed', seed, ...args], { timeout: 590_000 })).stdout
}

test.each([
  ['file', '3'],
  ['sqlite', '2'],
])(
  '159 runs in processes that are killed at appends and at random times finish: nothing is done twice, nothing is lost (%s)',
  async (store, kills) => {
    expect(await crash('--store', store, '--kills', kills)).toMatch(/ 0 problems\.\n$/)
  },
  600_000,
)

test.skipIf(server === null)(
  '159 runs in processes that are killed at appends and at random times finish: nothing is done twice, nothing is lost (postgres)',
  async () => {
    expect(await crash('--store', 'postgres', '--kills', '2', '--url', server!.url)).toMatch(/ 0 problems\.\n$/)
  },
  600_000,
)
