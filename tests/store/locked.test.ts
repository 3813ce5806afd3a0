import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { fileLog } from 'thinharness'
import type { LogStore, RunLog } from 'thinharness'
import { sqliteLog } from 'thinharness/store/sqlite'
import { ScriptedModel } from 'thinharness/testing'
import { failureOf, harnessOf } from '../harness/support.js'
import { temporaryFolder } from '../support/folder.js'

const STORES: readonly (readonly [string, () => LogStore])[] = [
  [
    'SQLite',
    () => {
      const log = sqliteLog(join(temporaryFolder(), 'x.db'))
      onTestFinished(() => log.close())
      return log
    },
  ],
  ['file', () => fileLog(temporaryFolder())],
]

test.each(STORES)(
  'a run whose %s log was locked by another process when it ended is recovered in its process as soon as the log is free',
  async (_name, open) => {
    const store = open()
    let isLocked = false
    const whenFree = async <T>(work: () => Promise<T>): Promise<T> => {
      if (isLocked) throw new Error('database is locked')
      return work()
    }
    const log: RunLog = {
      append: (...given) => whenFree(() => store.append(...given)),
      claim: (...given) => whenFree(() => store.claim(...given)),
      read: (...given) => store.read(...given),
    }
    const model = new ScriptedModel().replies(() => ((isLocked = true), 'Lost.')).says('Done.')
    const harness = harnessOf({ model, log })
    expect((await failureOf(harness.run('Go.', { runId: 'run_1' }))).code).toBe('store_failure')
    isLocked = false
    expect((await harness.recover('run_1')).text).toBe('Done.')
  },
)
