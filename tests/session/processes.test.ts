import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, describe, expect, test } from 'vitest'
import { startPostgres } from '../support/postgres.js'

const server = await startPostgres()

afterAll(() => server?.stop())

async function play(rig: string, ...args: readonly string[]): Promise<string> {
  const path = fileURLToPath(new URL(`../../.build/rigs/sessions/${rig}.js`, import.meta.url))
  const run = promisify(execFile)(process.execPath, [path, ...args], { timeout: 290_000 })
  const { stdout, stderr } = await run.catch((error: unknown) => error as { stdout: string; stderr: string })
  return stderr + stdout
}

/** The short form: `npm run race:sessions` is the long one. */
function race(...args: readonly string[]): Promise<string> {
  return play('race', '--rounds', '8', ...args)
}

/** The short form: `npm run crash:sessions` is the long one. */
function crash(kills: number, ...args: readonly string[]): Promise<string> {
  return play('crash', '--kills', String(kills), '--seed', String(1 + Math.floor(Math.random() * 1e6)), ...args)
}

describe('two processes that open and write one new thread at the same moment', () => {
  test.each(['file', 'sqlite'])(
    'SB-22 have one owner and one log, and the other one follows and misses nothing (%s)',
    async (store) => {
      expect(await race('--store', store)).toBe(`8 rounds of two processes (${store}): 0 problems.\n`)
    },
    300_000,
  )

  test.skipIf(server === null)(
    'SB-22 have one owner and one log, and the other one follows and misses nothing (postgres)',
    async () => {
      expect(await race('--store', 'postgres', '--url', server!.url)).toBe(
        '8 rounds of two processes (postgres): 0 problems.\n',
      )
    },
    300_000,
  )
})

describe('processes that are killed at random moments while people send, steer, interrupt, cancel, answer, switch and fork', () => {
  test.each(['file', 'sqlite'])(
    'SB-84 SB-92 lose no message, read none twice, run no refused call, and leave histories that every wire accepts (%s)',
    async (store) => {
      expect(await crash(8, '--store', store, '--sessions', '2')).toMatch(
        /^\S+ seed \d+: 8 kills of processes, .* 0 problems\.\n/,
      )
    },
    300_000,
  )

  test.skipIf(server === null)(
    'SB-84 SB-92 lose no message, read none twice, run no refused call, and leave histories that every wire accepts (postgres)',
    async () => {
      expect(await crash(4, '--store', 'postgres', '--url', server!.url, '--sessions', '2')).toMatch(
        /: 4 kills of processes, .* 0 problems\.\n$/,
      )
    },
    300_000,
  )
})
