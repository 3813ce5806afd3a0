import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, expect, test } from 'vitest'
import { engineDatabase } from './support.js'
import { isLong } from '../../support/length.js'

const rig = fileURLToPath(new URL('../../../.build/rigs/crash/run.js', import.meta.url))
/** Each kill costs the start of an engine: `take-over.test.ts` is the short form. */
const database = isLong ? await engineDatabase() : null

afterAll(() => database?.drop(), 60_000)

test.skipIf(database === null)(
  '159 runs on DBOS in processes that are killed finish in others: nothing is done twice, nothing is lost',
  async () => {
    const seed = String(1 + Math.floor(Math.random() * 1e6))
    const args = [rig, '--seed', seed, '--store', 'dbos', '--kills', '40', '--lanes', '2', '--url', database!.url]
    const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: 590_000 })
    expect(stdout).toMatch(/ 0 problems\.\n$/)
  },
  600_000,
)
