import { cpSync, mkdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { fileLog } from 'thinharness'
import type { LogStore } from 'thinharness'
import { Sessions } from 'thinharness/session'
import { sqliteLog } from 'thinharness/store/sqlite'
import { ScriptedModel } from 'thinharness/testing'
import { failureOf, harnessOf, tool } from '../harness/support.js'
import { temporaryFolder } from '../support/folder.js'

/** What somebody does to the files of a log while a process lives. `data` is the folder of the log. */
const FOLDER_CHANGES: Readonly<Record<string, (data: string) => void>> = {
  'its folder is removed': (data) => rmSync(data, { recursive: true }),
  'its folder is moved': (data) => renameSync(data, `${data}-moved`),
  'its folder is replaced by an empty one': (data) => {
    renameSync(data, `${data}-moved`)
    mkdirSync(data)
  },
  'its folder is replaced by a copy of it': (data) => {
    cpSync(data, `${data}-copy`, { recursive: true })
    renameSync(data, `${data}-moved`)
    renameSync(`${data}-copy`, data)
  },
}

const SQLITE_CHANGES: Readonly<Record<string, (data: string) => void>> = {
  ...FOLDER_CHANGES,
  'its file is removed': (data) => rmSync(join(data, 'x.db')),
  'its file is moved': (data) => renameSync(join(data, 'x.db'), join(data, 'y.db')),
  'its file is replaced by a copy of itself': (data) => {
    cpSync(join(data, 'x.db'), join(data, 'y.db'))
    renameSync(join(data, 'y.db'), join(data, 'x.db'))
  },
  'its write-ahead log is removed': (data) => {
    for (const name of ['x.db-wal', 'x.db-shm']) rmSync(join(data, name))
  },
  'all its files are removed': (data) => {
    for (const name of ['x.db', 'x.db-wal', 'x.db-shm']) rmSync(join(data, name))
  },
}

const openSqlite = (data: string): LogStore => {
  mkdirSync(data, { recursive: true })
  const log = sqliteLog(join(data, 'x.db'))
  onTestFinished(() => log.close())
  return log
}

const CASES: readonly (readonly [string, string, (data: string) => LogStore, (data: string) => void])[] = [
  ...Object.entries(SQLITE_CHANGES).map(([name, change]) => ['SQLite', name, openSqlite, change] as const),
  ...Object.entries(FOLDER_CHANGES).map(
    ([name, change]) => ['file', name, (data: string) => fileLog(data), change] as const,
  ),
]

describe.skipIf(process.platform === 'win32').each(CASES)(
  'a %s log, when %s while the process lives',
  (_store, _name, open, change) => {
    test('fails the run that is in progress, and is opened again by the next one: what is told is what the next process finds', async () => {
      const data = join(temporaryFolder(), 'data')
      const log = open(data)
      const erase = tool('erase', () => change(data))
      const model = new ScriptedModel().calls('erase').always('Done.')
      const harness = harnessOf({ model, log, tools: [erase] })
      const error = await failureOf(harness.run('Go.', { runId: 'run_a' }))
      expect(error).toMatchObject({ code: 'store_failure', run: { runId: 'run_a' } })
      expect(error.message).toMatch(/removed, moved or replaced|is gone|was replaced/)
      expect((await harness.run('Go on.', { runId: 'run_b' })).text).toBe('Done.')
      expect(await open(data).inspect({ kind: 'run', id: 'run_b' })).toMatchObject({ status: 'completed' })
    })

    test('fails the message that is being answered; each later one is in the transcript, or is told to have failed', async () => {
      const data = join(temporaryFolder(), 'data')
      const log = open(data)
      const harness = harnessOf({ model: new ScriptedModel().always('Done.'), log })
      const sessions = new Sessions({ log, harness })
      onTestFinished(() => sessions.close())
      const chat = await sessions.open('t1')
      await (
        await chat.send('One.')
      ).done
      change(data)
      const told: string[] = []
      for (const text of ['Two.', 'Three.', 'Four.']) {
        const opened = await sessions.open('t1').catch(() => null)
        const sent = await opened?.send(text).catch(() => null)
        if ((await sent?.done)?.status === 'completed') told.push(text)
      }
      expect(told).toContain('Four.')
      const next = new Sessions({ log: open(data), harness })
      onTestFinished(() => next.close())
      const stored = JSON.stringify(await next.messages('t1'))
      for (const text of told) expect(stored).toContain(text)
    })
  },
)
