import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const rig = fileURLToPath(new URL('../../.build/rigs/sim/run.js', import.meta.url))

/** The short form lives the same lives each time; `npm run test:long` and `npm run sim` live others. */
test('lives of conversations keep every promise, whatever stores, providers, processes and people do; the same seed gives the same life', async () => {
  const seed = '1000000'
  const run = promisify(execFile)(process.execPath, [rig, '--lives', '200', '--seed', seed], { timeout: 590_000 })
  const { stdout, stderr } = await run.catch((error: unknown) => error as { stdout: string; stderr: string })
  expect(stderr).toBe('')
  expect(stdout).toMatch(/^From seed 1000000: 200 lives, .* 0 problems\.\n$/)
}, 600_000)
