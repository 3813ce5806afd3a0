import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { DurableEvent, RunLog } from 'thinharness'
import type { LogEvent } from '#run/log/log.js'
import { postgresLog } from 'thinharness/store/postgres'
import type { PostgresLog } from 'thinharness/store/postgres'
import { runLogContract } from 'thinharness/testing'
import { event } from '../run/machine/support.js'
import { startPostgres } from '../support/postgres.js'
import type { PostgresServer } from '../support/postgres.js'
import { collect, eventsOfRun } from '../support/collect.js'
import { timeLimit, times } from '../support/length.js'

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

const THREAD = { kind: 'thread', id: 't' } as const

const runNamed = (id: string) => ({ kind: 'run', id }) as const

function picture(pixel: string) {
  return [{ type: 'image', mediaType: 'image/png', data: pixel.repeat(1_000_000) }] as const
}

function queued(content: ReturnType<typeof picture>, seq: number): LogEvent {
  const message = {
    threadId: 't',
    durable: true,
    messageId: 'm',
    content,
    after: null,
    by: null,
    mode: null,
    model: null,
  }
  const said = { ...message, metadata: {} }
  return { ...said, kind: 'message_queued', at: '2026-01-01T00:00:00.000Z', seq }
}

function started(runId: string, prompt: ReturnType<typeof picture>): DurableEvent {
  const metadata = { conversation_id: 't' }
  return { ...event('run_started', 1, { begun: 'fresh', prompt, metadata }), runId }
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

  test('SB-42 a large attachment is stored once, and removed with the last log that has it', async () => {
    await using log = open()
    const schema = schemas.get(log)!
    const contents = async (): Promise<unknown> =>
      (await admin.query(`select length(body) > 1000000 as whole from "${schema}".contents`)).rows
    const content = picture('x')
    await log.append(THREAD, [queued(content, 1), queued(content, 2)]) // Twice: a message that is answered again.
    await log.append(runNamed('run_a'), [started('run_a', content)])
    await log.append(runNamed('run_b'), [started('run_b', content)])
    expect(await contents()).toEqual([{ whole: true }])
    const { rows } = await admin.query(`select sum(length(event))::integer as bytes from "${schema}".thread_events`)
    expect(rows).toEqual([{ bytes: expect.closeTo(400, -3) as number }])
    expect(await eventsOfRun(log, 'run_a')).toEqual([started('run_a', content)])
    expect(await collect(log.read<LogEvent>(THREAD))).toEqual([queued(content, 1), queued(content, 2)])
    expect(await log.prune({ only: [THREAD, runNamed('run_a')], also: ['interrupted'] })).toBe(2)
    expect(await contents()).toEqual([{ whole: true }])
    expect(await eventsOfRun(log, 'run_b')).toEqual([started('run_b', content)])
    expect(await log.prune({ only: [runNamed('run_b')], also: ['interrupted'] })).toBe(1)
    expect(await contents()).toEqual([])
  })

  test(
    'SB-42 content that one process removes while others store it again is lost for none of them',
    async () => {
      const schema = fresh()
      const logs = Array.from({ length: 4 }, () => open(schema))
      const [remover, ...writers] = logs
      for (let round = 0; round < times(8, 100); round++) {
        const content = picture(String(round % 2))
        const [old, ...ids] = [0, 1, 2, 3].map((index) => `run_${round}_${index}`) as [string, ...string[]]
        await remover!.append(runNamed(old), [started(old, content)])
        await Promise.all([
          remover!.prune({ only: [runNamed(old)], also: ['interrupted'] }),
          ...writers.map((log, index) => log.append(runNamed(ids[index]!), [started(ids[index]!, content)])),
        ])
        for (const id of ids) expect(await eventsOfRun(remover!, id)).toEqual([started(id, content)])
        await remover!.prune({ only: ids.map(runNamed), also: ['interrupted'] })
      }
      const { rows } = await admin.query(`select count(*)::integer as contents from "${schema}".contents`)
      expect(rows).toEqual([{ contents: 0 }])
      for (const log of logs) await log.close()
    },
    timeLimit(60_000),
  )

  test('161 the tables of an earlier version are extended, with their runs', async () => {
    const schema = fresh()
    const first = { ...event('run_started', 1), runId: 'run_a' }
    await admin.query(`create schema "${schema}";
      create table "${schema}".runs (run_id text collate "C" primary key, version integer not null default 1,
        last_seq integer not null default 0, phase text, started_at text collate "C", updated_at text collate "C",
        parent_run_id text collate "C", digest text, owner text, owned_until timestamptz);
      create table "${schema}".events (run_id text collate "C" not null, seq integer not null, event text not null,
        primary key (run_id, seq));
      comment on table "${schema}".runs is 'thinharness store 1';`)
    await admin.query(`insert into "${schema}".events values ('run_a', 1, $1)`, [JSON.stringify(first)])
    await admin.query(
      `insert into "${schema}".runs (run_id, last_seq, phase, started_at, updated_at) values ('run_a', 1, 'open', $1, $1)`,
      [first.at],
    )
    const logs = [open(schema), open(schema)]
    const ref = { kind: 'run', id: 'run_a' } as const
    const summaries = await Promise.all(logs.map((log) => log.inspect(ref)))
    for (const summary of summaries) expect(summary).toMatchObject({ status: 'interrupted', lastSeq: 1 })
    const [log] = logs
    await log!.append(ref, [event('hook_failed', 2)])
    expect(await eventsOfRun(log!, 'run_a')).toHaveLength(2)
    await log!.append({ kind: 'thread', id: 'run_a' }, [{ kind: 'thread_opened', seq: 1, at: first.at }])
    expect(await log!.inspect({ kind: 'thread', id: 'run_a' })).toMatchObject({ threadId: 'run_a', lastSeq: 1 })
    for (const each of logs) await each.close()
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
