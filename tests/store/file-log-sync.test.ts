import type * as Fs from 'node:fs'
import type * as FsPromises from 'node:fs/promises'
import { beforeEach, expect, test, vi } from 'vitest'
import { join } from 'node:path'
import { fileLog } from 'thinharness'
import type { LogStore } from 'thinharness'
import type { FileLogOptions } from '#store/file-log.js'
import { ScriptedModel } from 'thinharness/testing'
import { harnessOf, tool } from '../harness/support.js'
import { temporaryFolder } from '../support/folder.js'

const synced = vi.hoisted(() => {
  // The package was loaded before this file, with the true `fdatasync`.
  vi.resetModules()
  return { times: 0, file: null as string | null, folder: null as string | null }
})

vi.mock('node:fs', async (importOriginal) => {
  const fs = await importOriginal<typeof Fs>()
  const fdatasync = (fd: number, done: (error: Error | null) => void): void => {
    synced.times += 1
    if (synced.file === null) fs.fdatasync(fd, done)
    else done(failure(synced.file))
  }
  const fsync = (fd: number, done: (error: Error | null) => void): void => {
    if (synced.file === null) fs.fsync(fd, done)
    else done(failure(synced.file))
  }
  const fsyncSync = (fd: number): void => {
    if (synced.file !== null) throw failure(synced.file)
    fs.fsyncSync(fd)
  }
  return { ...fs, fdatasync, fsync, fsyncSync }
})

vi.mock('node:fs/promises', async (importOriginal) => {
  const fs = await importOriginal<typeof FsPromises>()
  const open: typeof fs.open = async (...args) => {
    const file = await fs.open(...args)
    const { folder: code } = synced
    return code === null ? file : Object.assign(file, { sync: () => Promise.reject(failure(code)) })
  }
  return { ...fs, open }
})

function failure(code: string): Error {
  return Object.assign(new Error(`${code}: fsync`), { code })
}

let folder: string

beforeEach(async () => {
  folder = temporaryFolder()
  Object.assign(synced, { times: 0, file: null, folder: null })
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

test.each(['EINVAL', 'ENOTSUP', 'ENOSYS', 'EPERM'])(
  'a folder that its file system cannot sync (%s) is passed over, whatever is promised for files',
  async (code) => {
    synced.folder = code
    for (const fsync of ['always', 'interval', 'never'] as const) await ended({ fsync })
  },
)

test.each(['EINVAL', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS'])(
  'where files cannot be synced (%s), runs end as ever, after one warning that names what to pass',
  async (code) => {
    synced.file = synced.folder = code
    const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined)
    const log = fileLog(folder)
    for (const runId of ['run_1', 'run_2']) await ended({ log, runId })
    expect(await log.claim({ kind: 'run', id: 'run_1' }, 'ann', 1000)).toBe(true)
    expect(warned.mock.calls.map(([text]) => String(text))).toEqual([expect.stringContaining("`fsync: 'never'`")])
    warned.mockRestore()
  },
)

test.each([
  ['always', 'EINVAL'],
  ['always', 'EIO'],
  ['interval', 'EIO'],
] as const)(
  'with `%s`, a file that cannot be synced (%s) fails the run before anything is done',
  async (fsync, code) => {
    synced.file = code
    const log = fileLog(folder, { fsync })
    const unasked = new ScriptedModel()
    const failing = harnessOf({ model: unasked, log }).run('Go.', { runId: 'run_1' })
    await expect(failing).rejects.toMatchObject({ code: 'store_failure' })
    synced.file = null
    await ended({ log })
    expect((await log.inspect({ kind: 'run', id: 'run_1' }))?.status).toBe('completed')
  },
)

test('an end that cannot be synced is not stored: the log says as little as the run', async () => {
  const log = fileLog(folder)
  await ended({ log })
  synced.file = 'EIO'
  await expect(ended({ log, runId: 'run_2' })).rejects.toMatchObject({ code: 'store_failure' })
  synced.file = null
  expect((await log.inspect({ kind: 'run', id: 'run_2' }))?.status).toBe('interrupted')
})

async function ended({
  log,
  runId = 'run_1',
  fsync,
}: FileLogOptions & { readonly log?: LogStore; readonly runId?: string }): Promise<void> {
  using model = new ScriptedModel().says('Done.')
  const harness = harnessOf({ model, log: log ?? fileLog(join(folder, fsync ?? ''), { fsync }) })
  expect((await harness.run('Go.', { runId })).text).toBe('Done.')
}

async function paused(options: FileLogOptions): Promise<void> {
  using model = new ScriptedModel().calls('refund', '{}')
  const refund = tool('refund', () => 'Done.', { requiresApproval: true })
  const { stopReason } = await harnessOf({ model, tools: [refund], log: fileLog(folder, options) }).run('Go.')
  expect(stopReason).toBe('approval_required')
}
