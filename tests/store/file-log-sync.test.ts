import type * as Fs from 'node:fs'
import { beforeEach, expect, test, vi } from 'vitest'
import { fileLog } from 'thinharness'
import type { FileLogOptions } from '#store/file-log.js'
import { ScriptedModel } from 'thinharness/testing'
import { harnessOf, tool } from '../harness/support.js'
import { temporaryFolder } from '../support/folder.js'

const synced = vi.hoisted(() => {
  // The package was loaded before this file, with the true `fdatasync`.
  vi.resetModules()
  return { times: 0 }
})

vi.mock('node:fs', async (importOriginal) => {
  const fs = await importOriginal<typeof Fs>()
  const fdatasync = (fd: number, done: (error: Error | null) => void): void => {
    synced.times += 1
    fs.fdatasync(fd, done)
  }
  return { ...fs, fdatasync }
})

let folder: string

beforeEach(async () => {
  folder = temporaryFolder()
  synced.times = 0
})

test.each([
  ['interval', 1],
  ['never', 0],
] as const)(
  '158 a run that pauses is on disk when its result is returned, as its log promises (%s)',
  async (fsync, times) => {
    await paused({ fsync })
    expect(synced.times).toBe(times)
  },
)

test('158 with `always` each append is on disk before anything depends on it', async () => {
  await paused({ fsync: 'always' })
  expect(synced.times).toBeGreaterThan(1)
})

async function paused(options: FileLogOptions): Promise<void> {
  using model = new ScriptedModel().calls('refund', '{}')
  const refund = tool('refund', () => 'Done.', { requiresApproval: true })
  const { stopReason } = await harnessOf({ model, tools: [refund], log: fileLog(folder, options) }).run('Go.')
  expect(stopReason).toBe('approval_required')
}
