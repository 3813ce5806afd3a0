import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, describe, expect, test } from 'vitest'
import { startPostgres } from '../support/postgres.js'

const rig = fileURLToPath(new URL('../../.build/rigs/sessions/race.js', import.meta.url))
const server = await startPostgres()

afterAll(() => server?.stop())

/** The short form: `npm run race:sessions` is the long one. */
async function race(...args: readonly string[]): Promise<string> {
  const run = promisify(execFile)(process.execPath, [rig, '--rounds', '8', ...args], { timeout: 100_000 })
  const { stdout, stderr } = await run.catch((error: unknown) => error as { stdout: string; stderr: string })
  return stderr + stdout
}

describe('two processes that open and write one new thread at the same moment', () => {
  test.each(['file', 'sqlite'])(
    'have one owner and one log, and the other one follows and misses nothing (%s)',
    async (store) => {
      expect(await race('--store', store)).toBe(`8 rounds of two processes (${store}): 0 problems.\n`)
    },
    120_000,
  )

  test.skipIf(server === null)(
    'have one owner and one log, and the other one follows and misses nothing (postgres)',
    async () => {
      expect(await race('--store', 'postgres', '--url', server!.url)).toBe(
        '8 rounds of two processes (postgres): 0 problems.\n',
      )
    },
    120_000,
  )
})
