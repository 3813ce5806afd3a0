import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'
import { checkRequests } from '../../scripts/check-requests.js'

/** Before all tests, a folder for the requests that they send; behind them, all of these are to be valid. */
export function setup(project: TestProject): () => Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'thinharness-requests-'))
  project.provide('sentRequests', folder)
  return async () => {
    const result = await checkRequests(readdirSync(folder).map((file) => join(folder, file)))
    rmSync(folder, { recursive: true })
    const { refused = [] } = result ?? {}
    if (refused.length === 0) return
    process.exitCode = 1
    const shown = refused.slice(0, 10).map(({ place, errors }) => [place, ...errors].join('\n  '))
    throw new Error(`${refused.length} requests were sent that their API would refuse:\n${shown.join('\n')}`)
  }
}
