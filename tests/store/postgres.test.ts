import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { DurableEvent, RunLog } from 'thinharness'
import { postgresLog } from 'thinharness/store/postgres'
import type { PostgresLog } from 'thinharness/store/postgres'
import { runLogContract } from 'thinharness/testing'
import { event } from '../core/state/support.js'
import { WAITING } from '#store/sql-log.js'
import { startPostgres } from '../support/postgres.js'
import type { PostgresServer } from '../support/postgres.js'
import { eventsOfRun } from '../support/collect.js'

const server: PostgresServer | null = await startPostgres()
let admin: pg.Pool
let count = 0

const fresh = (): string => `t_${process.pid}_${(count += 1)}`
const open = (schema = fresh()): PostgresLog => {
  const log = postgresLog({ connectionString: named(server!.url), schema })
  schemas.set(log, schema)
  return log
}
const schemas = new WeakMap<RunLog, string>()
const begun = (runId: string): DurableEvent => ({ ...event('run_started', 1), runId })

/** So that the server tells the connections of these tests from all others. */
const NAME = `thinharness_test_${process.pid}`

function named(address: string): string {
  const url = new URL(address)
  url.searchParams.set('application_name', NAME)
  return url.href
}

/** Ends the connections of the logs that are tried. */
async function loseConnections(): Promise<void> {
  await admin.query('select pg_terminate_backend(pid) from pg_stat_activity where application_name = $1', [NAME])
}

describe.skipIf(server === null)('a log in PostgreSQL', () => {
  beforeAll(() => {
    admin = new pg.Pool({ connectionString: server!.url, max: 1 })
    admin.on('error', () => undefined)
  })

  afterAll(async () => {
    const { rows } = await admin.query<{ nspname: string }>(
      `select nspname from pg_namespace where nspname like 't\\_${process.pid}\\_%'`,
    )
    for (const { nspname } of rows) await admin.query(`drop schema "${nspname}" cascade`)
    await admin.end()
    server!.stop()
  }, 60_000)

  const laws = runLogContract({
    open: () => open(),
    reopen: (log: PostgresLog) => open(schemas.get(log)),
    kill: loseConnections,
    close: (log) => log.close(),
  })
  for (const { name, says, check } of laws) test(`160 the contract of a log holds: ${name}, ${says}`, check, 60_000)

  test('creates its tables once, when 16 do it at the same moment', async () => {
    const schema = fresh()
    const logs = Array.from({ length: 16 }, () => open(schema))
    await Promise.all(
      logs.map((log, index) => log.append({ kind: 'run', id: `run_${index}` }, [event('run_started', 1)])),
    )
    for (const [index, log] of logs.entries()) expect(await eventsOfRun(log, `run_${index}`)).toHaveLength(1)
    await Promise.all(logs.map((log) => log.close()))
  })

  test('an append whose transaction ends late is not missed, and holds up no other', async () => {
    const schema = fresh()
    await using log = open(schema)
    const pool = new pg.Pool({ connectionString: server!.url })
    const append = (to: PostgresLog, runId: string): Promise<void> =>
      to.append({ kind: 'run', id: runId }, [begun(runId)])
    const changes = async (after: string | null): Promise<[string[], string]> => {
      const found: string[] = []
      let cursor = after ?? ''
      for await (const summary of log.list({ changedAfter: after })) {
        found.push(summary.runId)
        ;({ cursor } = summary)
      }
      return [found, cursor]
    }
    await append(log, 'run_a')
    const clients = await Promise.all([pool.connect(), pool.connect()] as const)
    const [slow, slower] = clients
    const [late, later] = clients.map((client) =>
      postgresLog({ pool: { query: (text, values) => client.query(text, values) }, schema }),
    )
    for (const client of clients) await client.query('begin')
    await append(late!, 'run_late')
    await append(later!, 'run_later')
    await append(late!, 'run_late_too')
    await append(log, 'run_b')
    const [first, afterB] = await changes(null)
    expect(first).toEqual(['run_a', 'run_b'])
    expect((await changes(afterB))[0]).toEqual([])
    await append(log, 'run_c')
    const [second, afterC] = await changes(afterB)
    expect(second).toEqual(['run_c'])
    await slow.query('commit')
    const [third, afterLate] = await changes(afterC)
    expect(third).toEqual(['run_late', 'run_late_too'])
    expect((await changes(afterB))[0]).toEqual(['run_late', 'run_late_too', 'run_c'])
    expect((await changes(afterLate))[0]).toEqual([])
    await append(log, 'run_d')
    await slower.query('commit')
    const [fourth, afterLater] = await changes(afterLate)
    expect(fourth).toEqual(['run_later', 'run_d'])
    expect((await changes(afterLater))[0]).toEqual([])
    const rest: string[] = []
    for await (const { cursor } of log.list({ changedAfter: afterB })) rest.push((await changes(cursor))[0].join())
    // Logs of one transaction, which only a pool of the host's can bring about, come together.
    const all = 'run_late,run_late_too,run_later,run_c,run_d'
    expect(rest).toEqual([all, 'run_later,run_c,run_d', 'run_c,run_d', 'run_d', ''])
    for (const client of clients) client.release()
    await pool.end()
  })

  test('what waits and what has changed is found among many runs by an index', async () => {
    const schema = fresh()
    await using log = open(schema)
    await log.append({ kind: 'run', id: 'run_a' }, [begun('run_a')])
    await admin.query(`insert into "${schema}".runs (run_id, last_seq, phase, started_at, updated_at, changed)
      select 'ended_' || n, 2, 'completed', 'a' || n, 'a' || n, pg_current_xact_id() from generate_series(1, 20000) as n`)
    const plan = async (where: string): Promise<string> =>
      JSON.stringify((await admin.query(`explain select * from "${schema}".runs where ${where} limit 100`)).rows)
    expect(await plan(`${WAITING} order by started_at, run_id`)).toContain('runs_waiting')
    const later = `last_seq > 0 and (changed, run_id) > ('3'::xid8, '') order by runs.changed, run_id`
    expect(await plan(later)).toContain('runs_by_change')
    expect((await log.waiting()).map(({ runId }) => runId)).toEqual(['run_a'])
  })

  test('tables that were restored on another server list all changes', async () => {
    const schema = fresh()
    const before = open(schema)
    for (const runId of ['run_a', 'run_b']) await before.append({ kind: 'run', id: runId }, [begun(runId)])
    await admin.query(`update "${schema}".runs set changed = '900000000000'`)
    await before.close()
    await using log = open(schema)
    const listed = async (changedAfter: string | null): Promise<string[]> => {
      const found: string[] = []
      for await (const { runId } of log.list({ changedAfter })) found.push(runId)
      return found
    }
    expect(await listed(null)).toEqual(['run_a', 'run_b'])
    await log.append({ kind: 'run', id: 'run_c' }, [begun('run_c')])
    expect(await listed('900000000000::run_b')).toEqual(['run_a', 'run_b', 'run_c'])
  })

  test('160 an append whose response is lost was stored, and reports it', async () => {
    const pool = new pg.Pool({ connectionString: server!.url })
    const query = pool.query.bind(pool) as unknown as (text: string, values?: unknown[]) => Promise<pg.QueryResult>
    let losing = false
    const log = postgresLog({
      schema: fresh(),
      pool: {
        async query(text, values) {
          const answer = await query(text, values)
          if (losing && text.includes('insert into')) {
            losing = false
            throw new Error('Connection terminated unexpectedly')
          }
          return answer
        },
      },
    })
    await log.append({ kind: 'run', id: 'run_a' }, [event('run_started', 1)])
    losing = true
    await log.append({ kind: 'run', id: 'run_a' }, [event('hook_failed', 2)])
    expect(losing).toBe(false)
    await log.append({ kind: 'run', id: 'run_a' }, [event('hook_failed', 3)])
    expect((await eventsOfRun(log, 'run_a')).map(({ seq }) => seq)).toEqual([1, 2, 3])
    await log.close()
    await pool.end()
  })

  test('160 an append that arrives after it was given up is not stored', async () => {
    const pool = new pg.Pool({ connectionString: server!.url })
    const query = pool.query.bind(pool) as unknown as (text: string, values?: unknown[]) => Promise<pg.QueryResult>
    let late: (() => Promise<pg.QueryResult>) | null = null
    let losing = false
    const log = postgresLog({
      schema: fresh(),
      pool: {
        query(text, values) {
          if (!losing || !text.includes('insert into')) return query(text, values)
          losing = false
          late = () => query(text, values)
          return Promise.reject(new Error('Connection terminated unexpectedly'))
        },
      },
    })
    await log.append({ kind: 'run', id: 'run_a' }, [event('run_started', 1)])
    losing = true
    await expect(log.append({ kind: 'run', id: 'run_a' }, [event('hook_failed', 2)])).rejects.toMatchObject({
      code: 'store_failure',
      message: 'The log could not store an event of run `run_a`: Connection terminated unexpectedly',
    })
    expect((await late!()).rowCount).toBe(0)
    expect(await eventsOfRun(log, 'run_a')).toHaveLength(1)
    await log.append({ kind: 'run', id: 'run_a' }, [event('hook_failed', 2, { message: 'again' })])
    expect(await eventsOfRun(log, 'run_a')).toHaveLength(2)
    await log.close()
    await pool.end()
  })

  test.skipIf(server === null || server.crash === null)(
    '160 a server crash loses nothing that was stored',
    async () => {
      const log = open()
      const kept: number[] = []
      await log.append({ kind: 'run', id: 'run_a' }, [event('run_started', 1)])
      const writing = (async () => {
        for (let seq = 2; seq < 5000; seq++) {
          await log.append({ kind: 'run', id: 'run_a' }, [event('hook_failed', seq)])
          kept.push(seq)
        }
      })()
      while (kept.length < 20) await new Promise((resolve) => setTimeout(resolve, 5))
      server!.crash!()
      await writing.catch(() => undefined)
      const found = (await eventsOfRun(log, 'run_a')).map(({ seq }) => seq)
      expect(found).toEqual([1, ...kept])
      await log.close()
    },
    60_000,
  )

  test('161 tables of another version are rejected', async () => {
    const schema = fresh()
    await admin.query(`create schema "${schema}"; create table "${schema}".runs (run_id text);
      comment on table "${schema}".runs is 'thinharness store 3';`)
    await using log = open(schema)
    await expect(log.inspect({ kind: 'run', id: 'run_a' })).rejects.toMatchObject({
      code: 'store_failure',
      message: `Schema \`${schema}\` has a table \`runs\` that is not of this version of thinharness: give \`schema\`.`,
    })
  })

  test('a page of many runs uses an index', async () => {
    const log = open()
    await log.append({ kind: 'run', id: 'run_a' }, [event('run_started', 1)])
    const schema = schemas.get(log)!
    await admin.query(
      `insert into "${schema}".runs (run_id, last_seq, phase, started_at, updated_at, digest)
       select 'run_' || n, 1, 'completed', to_char(n, 'FM00000000'), '', (select digest from "${schema}".runs limit 1)
       from generate_series(1, 20000) n`,
    )
    await admin.query(`analyze "${schema}".runs`)
    const { rows } = await admin.query(
      `explain select digest from "${schema}".runs where last_seq > 0 and (phase is null or phase = any('{open,paused,completed}'))
       and (started_at, run_id) < ('00015000', '') order by started_at desc, run_id desc limit 100`,
    )
    expect(JSON.stringify(rows)).toContain('Index Scan using runs_by_start')
    await log.close()
  })
})

describe('options of a log in PostgreSQL', () => {
  test.each<[string, object, string]>([
    ['none', {}, 'Expected `postgresLog` to be given one of `connectionString` and `pool`.'],
    [
      'a schema that is none',
      { connectionString: 'postgres://x', schema: 'a"b' },
      'Expected `schema` of `postgresLog` to be a name of small letters, digits and `_`, got `a"b`.',
    ],
    [
      'an unknown one',
      { conectionString: 'x' },
      'Unknown option of `postgresLog`: `conectionString`. Did you mean `connectionString`?',
    ],
  ])('invalid options are rejected at once: %s', (_name, options, message) => {
    expect(() => postgresLog(options)).toThrow(expect.objectContaining({ code: 'invalid_options', message }))
  })

  test('160 a server that does not exist is a store failure', async () => {
    await using log = postgresLog({ connectionString: 'postgres://nobody@127.0.0.1:1/none' })
    await expect(log.append({ kind: 'run', id: 'run_a' }, [event('run_started', 1)])).rejects.toMatchObject({
      code: 'store_failure',
      message: expect.stringContaining('The log could not store an event of run `run_a`: ') as string,
    })
  })
})
