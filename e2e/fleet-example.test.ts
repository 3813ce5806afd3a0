import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { temporaryFolder } from '../tests/support/folder.js'
import { startPostgres } from '../tests/support/postgres.js'
import type { PostgresServer } from '../tests/support/postgres.js'

const run = promisify(execFile)
let server: PostgresServer | null
beforeAll(async () => {
  server = await startPostgres()
})
afterAll(() => server?.stop())

async function fleet(databaseUrl: string, ...args: readonly string[]): Promise<string> {
  const folder = temporaryFolder()
  const env = { PATH: process.env['PATH'] ?? '', HOME: folder, EXAMPLE_FOLDER: folder, DATABASE_URL: databaseUrl }
  return (await run(process.execPath, ['.build/examples/run.js', 'fleet', ...args], { env })).stdout
}

test('fleet: each job is done once, although workers are killed in the middle', async ({ skip }) => {
  if (server === null) skip('This machine has no PostgreSQL.')
  const printed = await fleet(server?.url ?? '', '--jobs', '12', '--workers', '2', '--kills', '2')
  expect(printed).toMatch(/^kill -9 worker-1: another one starts$/m)
  expect(printed).toMatch(/^acme .* done 4 · working 0 · left by a dead worker 0 · waiting 0$/m)
  expect(printed).toMatch(/12 jobs, 2 workers killed, 12 reports delivered: each once\n$/)
})

test('fleet: without a database it says what it needs', async () => {
  expect(await fleet('')).toContain('This example needs PostgreSQL')
})
