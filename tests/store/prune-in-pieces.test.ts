import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { fileLog, memoryLog } from 'thinharness'
import type { LogStore } from 'thinharness'
import { sqliteLog } from 'thinharness/store/sqlite'
import { ScriptedModel } from 'thinharness/testing'
import { harnessOf } from '../harness/support.js'
import { temporaryFolder } from '../support/folder.js'
import { collect } from '../support/collect.js'

const STORES: readonly (readonly [string, () => LogStore])[] = [
  ['memory', () => memoryLog()],
  ['file', () => fileLog(temporaryFolder(), { fsync: 'never' })],
  [
    'SQLite',
    () => {
      const log = sqliteLog(join(temporaryFolder(), 'x.db'))
      onTestFinished(() => log.close())
      return log
    },
  ],
]

/** Copies an ended run under other ids. */
async function fill(log: LogStore, count: number): Promise<void> {
  const harness = harnessOf({ model: new ScriptedModel().says('Done.'), log })
  await harness.run('Go.', { runId: 'run_0' })
  const events = await collect(log.read({ kind: 'run', id: 'run_0' }))
  for (let index = 1; index < count; index += 1) {
    const runId = `run_${index}`
    await log.append(
      { kind: 'run', id: runId },
      events.map((event) => ({ ...event, runId })),
    )
  }
}

describe.each(STORES)('removing many logs from the %s log', (_name, open) => {
  test('leaves the process free for other work in between, and removes the same', async () => {
    const log = open()
    await fill(log, 320)
    let turns = 0
    let isOver = false
    const countTurns = async (): Promise<void> => {
      for (; !isOver; turns += 1) await new Promise((resolve) => setImmediate(resolve))
    }
    const counting = countTurns()
    expect(await log.prune({ keep: 20 })).toBe(300)
    isOver = true
    await counting
    // At least one for 32 runs that are listed, and one for 32 that are removed.
    expect(turns).toBeGreaterThanOrEqual(18)
    expect(await collect(log.list())).toHaveLength(20)
  })

  test.each([1, 4])('keeps a log that another one has come to need meanwhile (after %i breaks)', async (breaks) => {
    const log = open()
    await fill(log, 100)
    const pruning = log.prune({ keep: 0 })
    for (let turn = 0; turn < breaks; turn += 1) await new Promise((resolve) => setImmediate(resolve))
    const ref = { kind: 'thread', id: 't1' } as const
    const event = { kind: 'thread_opened', seq: 1, at: new Date().toISOString() }
    await log.append(ref, [event], { references: [{ kind: 'run', id: 'run_0' }] })
    await pruning
    expect(await log.inspect({ kind: 'run', id: 'run_0' })).not.toBeNull()
  })
})
