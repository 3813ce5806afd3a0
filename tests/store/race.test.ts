import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, describe, expect, test } from 'vitest'
import { startPostgres } from '../support/postgres.js'

const script = fileURLToPath(new URL('../../.build/rigs/race.js', import.meta.url))
const server = await startPostgres()

afterAll(() => server?.stop())

/** The short form: `node .build/rigs/race.js` without arguments is the long one. */
async function race(...args: readonly string[]): Promise<string> {
  const command = [script, '--processes', '8', '--rounds', '20', ...args]
  return (await promisify(execFile)(process.execPath, command, { timeout: 290_000 })).stdout
}

describe('many processes that take over one run', () => {
  test.each(['file', 'sqlite'])(
    '160 one wins and the log is intact (%s)',
    async (store) => {
      expect(await race('--store', store)).toContain(`20 rounds of 8 processes (${store}): one won each`)
    },
    300_000,
  )

  test.skipIf(server === null)(
    '160 one wins and the log is intact (postgres)',
    async () => {
      expect(await race('--store', 'postgres', '--url', server!.url)).toContain('20 rounds of 8 processes (postgres)')
    },
    300_000,
  )
})
