import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { temporaryFolder } from '../tests/support/folder.js'

const run = promisify(execFile)
const COUNT = 150

interface Ended {
  readonly stdout: string
  readonly code?: number | null
  readonly signal?: string | null
}

test('records: ends when the money is used up, goes on after `kill -9`, and asks about no record twice', async () => {
  const folder = temporaryFolder()
  const env = { PATH: process.env['PATH'] ?? '', HOME: folder, EXAMPLE_FOLDER: folder }
  const records = (...args: readonly string[]): Promise<Ended> =>
    run(process.execPath, ['.build/examples/run.js', 'records', '--count', String(COUNT), ...args], { env }).catch(
      (error: unknown) => error as Ended,
    )

  const poor = await records('--cost', '0.02')
  const [, labelled = ''] = /(\d+) of 150 records are labelled/.exec(poor.stdout) ?? []
  const [, spent = ''] = /requests in all, \$([\d.]+) of \$0\.02/.exec(poor.stdout) ?? []
  expect(Number(labelled)).toBeGreaterThan(20)
  expect(Number(labelled)).toBeLessThan(COUNT)
  expect(Number(spent)).toBeLessThanOrEqual(0.02)
  expect(poor).toMatchObject({ code: 1, stdout: expect.stringContaining('The money is used up.') as string })

  const dead = await records('--die', String(Number(labelled) + 20))
  expect(dead).toMatchObject({ signal: 'SIGKILL', stdout: `${labelled} records were labelled before, for $${spent}\n` })

  const { stdout, code } = await records()
  expect(code).toBeUndefined()
  const [, before = ''] = /^(\d+) records were labelled before/.exec(stdout) ?? []
  expect(Number(before)).toBeGreaterThanOrEqual(Number(labelled) + 20)
  expect(stdout).toContain('150 of 150 records are labelled')
  const labels = readFileSync(join(folder, 'labels.jsonl'), 'utf8').trimEnd().split('\n')
  const ids = labels.map((line) => (JSON.parse(line) as { id: number }).id)
  expect(ids).toEqual(Array.from({ length: COUNT }, (_, index) => index + 1))
  // A correction is a request too; a request whose answer a crash lost is made again: at most one for each of 16 runs.
  const [, requests = ''] = /(\d+) requests in all/.exec(stdout) ?? []
  expect(Number(requests)).toBeGreaterThanOrEqual(COUNT)
  expect(Number(requests)).toBeLessThanOrEqual(COUNT + 5)
  // Once more: every answer is in the log.
  expect((await records()).stdout).toContain(`${requests} requests in all`)
})
