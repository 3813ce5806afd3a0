import { DBOS } from '@dbos-inc/dbos-sdk'
import pg from 'pg'
import { afterAll, describe, expect, test } from 'vitest'
import { dbosRuns } from 'thinharness/durable/dbos'
import { postgresLog } from 'thinharness/store/postgres'
import { playing } from '../../run/children/children-support.js'
import { gate, harnessOf, tool } from '../../harness/support.js'
import { engineDatabase } from './support.js'

const database = await engineDatabase()

afterAll(() => database?.drop(), 60_000)

describe.skipIf(database === null)('runs that launch DBOS themselves', () => {
  test('DU-28 they work, and shut it down when they are closed, after the runs in progress', async () => {
    const [began, opened] = [gate(), gate()]
    const wait = tool('wait', async () => {
      began.open()
      await opened.opened
      return 'ok'
    })
    const url = database!.url
    const log = postgresLog({ connectionString: url })
    const harness = harnessOf({ model: playing({ go: [['wait'], 'Done.'] }), tools: [wait] })
    const runs = await dbosRuns({ harness, log, launch: { databaseUrl: url }, queue: { pollMs: 50 }, name: 'own' })
    expect(await runs.takeOver()).toEqual([])
    const { runId } = await runs.start('go')
    await began.opened
    const closing = runs.close({ waitMs: 10_000 })
    opened.open()
    await closing
    expect(DBOS.isInitialized()).toBe(false)
    expect((await log.inspect({ kind: 'run', id: runId }))?.status).toBe('completed')
    const closed = { code: 'closed', message: 'These runs are closed.' }
    await expect(runs.start('go')).rejects.toMatchObject(closed)
    await expect(runs.get(runId)).rejects.toMatchObject(closed)
    await log.close()
  }, 60_000)

  test('a process that waits for the launch of another has no transaction open, for which an index would have to wait', async () => {
    const url = database!.url
    const other = new pg.Client({ connectionString: url })
    await other.connect()
    await other.query(`select pg_advisory_lock(hashtext('thinharness'), hashtext('dbos'))`)
    const log = postgresLog({ connectionString: url })
    const launching = dbosRuns({ harness: harnessOf({}), log, launch: { databaseUrl: url }, name: 'late' })
    const stateOf = async (): Promise<unknown> => {
      const sql = `select state from pg_stat_activity where datname = current_database() and query = 'rollback'`
      return (await other.query<{ state: string }>(sql)).rows[0]?.state
    }
    await expect.poll(stateOf, { interval: 7 }).toBe('idle')
    await other.end()
    await (await launching).close()
    await log.close()
  }, 60_000)

  test('DU-29 they name the missing options before DBOS is launched', async () => {
    const runs = await dbosRuns({
      harness: harnessOf({}),
      log: postgresLog({ connectionString: database!.url }),
      name: 'x',
    })
    await expect(runs.start('go')).rejects.toMatchObject({
      code: 'invalid_state',
      message: 'DBOS is not launched: call `DBOS.launch()`, or pass `launch` to `dbosRuns`.',
    })
    await runs.close()
  })
})
