import { join } from 'node:path'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { memoryLog } from 'thinharness'
import type { LogStore } from 'thinharness'
import { sqliteLog } from 'thinharness/store/sqlite'
import { openDatabase } from '#store/sqlite.js'
import { Events, queuedStory } from '#testing/log-contract/story.js'
import { temporaryFolder } from '../support/folder.js'
import { timeLimit } from '../support/length.js'

const IDLE = 20_000

const STORES: readonly [string, () => Promise<LogStore>][] = [
  ['memory', () => filled(memoryLog())],
  [
    'SQLite',
    async () => {
      const path = join(temporaryFolder(), 'runs.db')
      const log = sqliteLog(path)
      onTestFinished(() => log.close())
      await filled(log)
      return log
    },
  ],
]

/** Runs that have ended. */
async function filled(log: LogStore): Promise<LogStore> {
  for (let index = 0; index < IDLE; index++) {
    const story = new Events(`run_${index}`, { afterMs: index })
    story.completes()
    await log.append(story.ref, story.made, { digest: story.digest })
  }
  return log
}

describe.each(STORES)('20,000 idle logs in %s', (_name, openLog) => {
  test(
    'cost a follower nothing, and a worker that looks for what waits',
    async () => {
      const log = await openLog()
      let last = ''
      for await (const { cursor } of log.list({ changedAfter: null })) last = cursor
      const reads = vi.spyOn(log, 'read')
      const seen: string[] = []
      for (let round = 0; round < 3; round++)
        for await (const { runId } of log.list({ changedAfter: last })) seen.push(runId)
      expect(await log.waiting()).toEqual([])
      expect([seen, reads.mock.calls.length]).toEqual([[], 0])
      const { ref, made, digest } = queuedStory('run_q', { afterMs: 1 })
      await log.append(ref, made, { digest })
      for await (const { runId } of log.list({ changedAfter: last })) seen.push(runId)
      expect(seen).toEqual(['run_q'])
      expect((await log.waiting()).map(({ runId }) => runId)).toEqual(['run_q'])
      expect(reads.mock.calls.length).toBeLessThan(5)
    },
    timeLimit(60_000),
  )
})

test('lists of runs in SQLite by label and by change go along an index', async () => {
  const database = await openDatabase(join(temporaryFolder(), 'runs.db'), 'normal')
  const plan = (sql: string): string => JSON.stringify(database.prepare(`explain query plan ${sql}`).all())
  expect(plan('select * from runs where last_seq > 0 and changed > 5 order by changed limit 100')).toContain(
    'runs_by_change',
  )
  const labelled = `select * from run_labels as labelled cross join runs on runs.run_id = labelled.run_id
    where last_seq > 0 and labelled.name = 'agent' and labelled.value = 'sql'
    order by labelled.started_at desc, labelled.run_id desc limit 100`
  expect(plan(labelled)).toContain('run_labels_by_value')
  expect(plan(labelled)).not.toContain('TEMP B-TREE')
  database.close()
})
