import { closeSync, existsSync, openSync, readdirSync, readlinkSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { fileLog } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { failureOf, gate, harnessOf, tool, until } from '../harness/support.js'
import { temporaryFolder } from '../support/folder.js'

const place = temporaryFolder()
/** More descriptors than this are not taken: then the limit of this machine cannot be reached. */
const MOST = 60_000
const taken: number[] = []

/** Takes the descriptors of this process, but for so many. False if there are too many of them. */
function takeAllBut(count: number): boolean {
  try {
    while (taken.length < MOST) taken.push(openSync('/dev/null', 'r'))
    return false
  } catch {
    for (const fd of taken.splice(-count)) closeSync(fd)
    return true
  }
}

afterEach(() => {
  for (const fd of taken.splice(0)) closeSync(fd)
})

function openIn(folder: string): readonly string[] {
  return readdirSync('/proc/self/fd').flatMap((fd) => {
    try {
      const target = readlinkSync(`/proc/self/fd/${fd}`)
      return target.startsWith(folder) ? [target] : []
    } catch {
      return []
    }
  })
}

describe.skipIf(!existsSync('/proc/self/fd'))('descriptors of a log in a folder', () => {
  test('a run in progress has one at most', async () => {
    const folder = join(place, 'one')
    const opened = gate()
    const model = new ScriptedModel().always(async () => (await opened.opened, 'Done.'))
    const harness = harnessOf({ model, log: fileLog(folder) })
    const runs = Array.from({ length: 10 }, () => harness.run('Go.'))
    await until(() => model.requests.length === 10)
    expect(openIn(folder)).toHaveLength(10)
    opened.open()
    await Promise.all(runs)
    expect(openIn(folder)).toEqual([])
  })

  test.each(['never', 'interval', 'always'] as const)(
    'at the limit of the process, runs wait for a free one (fsync: %s)',
    async (fsync) => {
      const log = fileLog(join(place, fsync), { fsync })
      const model = new ScriptedModel().always(({ turn }) => (turn === 0 ? { calls: [{ name: 'look' }] } : 'Done.'))
      const harness = harnessOf({ model, tools: [tool('look')], log })
      // Everything is loaded.
      await harness.run('Go.')
      if (!takeAllBut(4)) return
      const results = await Promise.all(Array.from({ length: 40 }, () => harness.run('Go.')))
      expect(results.map(({ text }) => text)).toEqual(results.map(() => 'Done.'))
      const recovered = await Promise.all(results.map(({ runId }) => harness.recover(runId)))
      expect(recovered.map(({ text }) => text)).toEqual(results.map(() => 'Done.'))
    },
  )

  test('a run that waits for a descriptor can be cancelled', async () => {
    const controller = new AbortController()
    const harness = harnessOf({ model: new ScriptedModel().always('Done.'), log: fileLog(join(place, 'cancel')) })
    await harness.run('Go.')
    if (!takeAllBut(0)) return
    const run = failureOf(harness.run('Go.', { signal: controller.signal }))
    controller.abort()
    expect((await run).code).toBe('cancelled')
  })

  test('a file that gave up its descriptor and was removed is noticed', async () => {
    const folder = join(place, 'removed')
    const opened = gate()
    const model = new ScriptedModel().always(async () => (await opened.opened, 'Done.'))
    const harness = harnessOf({ model, log: fileLog(folder, { fsync: 'never' }) })
    const run = failureOf(harness.run('Go.', { runId: 'run_1' }))
    await until(() => model.requests.length === 1)
    if (!takeAllBut(0)) return
    const other = harnessOf({ model: new ScriptedModel().says('Done.'), log: fileLog(folder) })
    expect((await other.run('Go.')).text).toBe('Done.')
    rmSync(join(folder, 'run_1.jsonl'))
    opened.open()
    expect((await run).message).toMatch(/its file `.*run_1\.jsonl` is gone during the run/)
  })
})
