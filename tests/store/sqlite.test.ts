import { execFileSync } from 'node:child_process'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { sqliteLog } from 'thinharness/store/sqlite'
import { ScriptedModel } from 'thinharness/testing'
import { openDatabase } from '#store/sqlite-database.js'
import { harnessOf, tool } from '../harness/support.js'
import { event } from '../run/machine/support.js'
import { bundleStores } from '../support/store-bundle.js'
import { temporaryFolder } from '../support/folder.js'
import { collect, eventsOfRun } from '../support/collect.js'

let folder: string

beforeEach(() => void (folder = temporaryFolder()))

describe('a log in SQLite', () => {
  test('161 it stores the same run as memory', async () => {
    using model = new ScriptedModel().calls('a').says('Done.')
    await using log = sqliteLog(join(folder, 'deep', 'runs.db'))
    const stream = harnessOf({ model, tools: [tool('a')], log }).stream('Go.')
    const told = (await collect(stream)).filter((each) => each.durable)
    await stream.result
    expect(await eventsOfRun(log, stream.runId)).toEqual(JSON.parse(JSON.stringify(told)))
    expect(await log.inspect({ kind: 'run', id: stream.runId })).toMatchObject({
      status: 'completed',
      usage: { modelRequests: 2, toolCalls: 1 },
    })
  })

  test('161 it names an event that is missing or unreadable, and returns nothing after it', async () => {
    const path = join(folder, 'runs.db')
    await using log = sqliteLog(path)
    for (const runId of ['run_a', 'run_b'])
      await log.append(
        { kind: 'run', id: runId },
        [1, 2, 3].map((seq) => event('hook_failed', seq)),
      )
    const database = await openDatabase(path, 'normal')
    database.exec(`delete from events where run_id = 'run_a' and seq = 2;
      update events set event = '{"kind":' where run_id = 'run_b' and seq = 2`)
    database.close()
    const message = (runId: string, what: string): unknown =>
      expect.objectContaining({
        code: 'invalid_log',
        message: `The log of run \`${runId}\` is damaged: event 2 ${what}.`,
      })
    await expect(eventsOfRun(log, 'run_a')).rejects.toEqual(message('run_a', 'is missing'))
    await expect(eventsOfRun(log, 'run_b')).rejects.toEqual(message('run_b', 'cannot be read'))
  })

  test('160 SB-42 a message is stored once, and removed with the last log that has it', async () => {
    const path = join(folder, 'runs.db')
    await using log = sqliteLog(path)
    const database = await openDatabase(path, 'normal')
    onTestFinished(() => database.close())
    const counts = (): unknown => database.prepare('select count(*) as rows, sum(uses) as uses from contents').get()
    const content = [{ type: 'image', mediaType: 'image/png', data: 'x'.repeat(1_000_000) }] as const
    const message = { threadId: 't', durable: true, kind: 'message_queued', messageId: 'm', content, after: null }
    const queued = { ...message, by: null, mode: null, model: null, metadata: {}, at: '2026-01-01T00:00:00.000Z' }
    const thread = { kind: 'thread', id: 't' } as const
    await log.append(thread, [
      { ...queued, seq: 1 },
      { ...queued, seq: 2 },
    ]) // Twice: a message that is answered again.
    const metadata = { conversation_id: 't' }
    const started = { ...event('run_started', 1, { begun: 'fresh', prompt: content, metadata }), runId: 'run_a' }
    const [run, other] = [{ kind: 'run', id: 'run_a' } as const, { kind: 'run', id: 'run_b' } as const]
    await log.append(run, [started])
    const again = { ...started, runId: 'run_b' }
    await log.append(other, [again])
    expect(counts()).toMatchObject({ rows: 1, uses: 4 })
    expect(database.prepare('select sum(length(event)) as bytes from thread_events').get()).toMatchObject({
      bytes: expect.closeTo(300, -3) as number,
    })
    expect(await eventsOfRun(log, 'run_a')).toEqual([started])
    const read: unknown[] = []
    for await (const each of log.read(thread)) read.push(each)
    expect(read).toEqual([
      { ...queued, seq: 1 },
      { ...queued, seq: 2 },
    ])
    expect(await log.prune({ only: [thread, run], also: ['interrupted'] })).toBe(2)
    expect(counts()).toMatchObject({ rows: 1, uses: 1 })
    expect(await eventsOfRun(log, 'run_b')).toHaveLength(1)
    expect(await log.prune({ only: [other], also: ['interrupted'] })).toBe(1)
    expect(counts()).toMatchObject({ rows: 0 })
  })

  test('161 opens the file of an earlier version, with its runs', async () => {
    const path = join(folder, 'earlier.db')
    const database = await openDatabase(path, 'normal')
    for (const table of ['runs', 'events', 'threads', 'thread_events', 'log_references', 'posts', 'contents']) {
      database.exec(`drop table ${table}`)
    }
    database.exec(EARLIER_TABLES)
    const first = { ...event('run_started', 1), runId: 'run_a' }
    database.prepare('insert into events values (?, 1, ?)').run('run_a', JSON.stringify(first))
    const digest = { ...EARLIER_DIGEST, rules: null, batch: { open: 0, retries: [] } }
    database
      .prepare(`insert into runs values ('run_a', 1, 'open', ?, ?, null, ?, null, 0)`)
      .run(first.at, first.at, JSON.stringify(digest))
    database.exec('pragma user_version = 1')
    database.close()
    await using log = sqliteLog(path)
    const ref = { kind: 'run', id: 'run_a' } as const
    const { phase: _, ...fields } = EARLIER_DIGEST
    expect(await log.inspect(ref)).toEqual({ ...fields, status: 'interrupted' })
    const mine = log.list({ resourceId: 'user_7' })
    for await (const run of mine) expect(run.runId).toBe('run_a')
    await log.append(ref, [event('hook_failed', 2)])
    expect(await eventsOfRun(log, 'run_a')).toHaveLength(2)
    expect(await log.inspect(ref)).toMatchObject({ lastSeq: 2, usage: { hookFailures: 1 } })
    await log.append({ kind: 'thread', id: 'run_a' }, [{ kind: 'thread_opened', seq: 1, at: first.at }])
    expect(await log.inspect({ kind: 'thread', id: 'run_a' })).toMatchObject({ threadId: 'run_a', lastSeq: 1 })
  })

  test.skipIf(process.platform === 'win32')('160 a disk that fills up loses nothing that was stored', async () => {
    const bundle = await bundleStores()
    onTestFinished(() => rmSync(bundle, { recursive: true }))
    const path = join(folder, 'runs.db')
    const program = `
      import { sqliteLog } from ${JSON.stringify(join(bundle, 'store/sqlite.js'))}
      const log = sqliteLog(${JSON.stringify(path)})
      const base = ${JSON.stringify(event('hook_failed', 1))}
      const outcomes = []
      for (let seq = 1; seq <= 12; seq++) {
        const event = { ...base, seq, message: 'x'.repeat(50_000) }
        outcomes.push(await log.append({ kind: 'run', id: 'run_a' }, [event]).then(() => 'kept', ({ code }) => code))
        if (outcomes.at(-1) !== 'kept') break
      }
      console.log(outcomes.join())`
    // No file of the program may be longer than 300 blocks of 1024 bytes.
    const limited = ['-c', 'ulimit -f 300; exec "$0" --input-type=module -e "$1"', process.execPath, program]
    const outcomes = execFileSync('bash', limited, { encoding: 'utf8' }).trim().split(',')
    expect(outcomes.length).toBeGreaterThan(2)
    expect(outcomes.at(-1)).toBe('store_failure')
    await using log = sqliteLog(path)
    expect(await eventsOfRun(log, 'run_a')).toHaveLength(outcomes.length - 1)
    await log.append({ kind: 'run', id: 'run_a' }, [event('hook_failed', outcomes.length)])
    expect(await eventsOfRun(log, 'run_a')).toHaveLength(outcomes.length)
  })

  test('160 a file that is not a database, or of another version, is a store failure', async () => {
    writeFileSync(join(folder, 'text.db'), 'Not a database, but long enough to be read as one.'.repeat(50))
    await using text = sqliteLog(join(folder, 'text.db'))
    await expect(text.append({ kind: 'run', id: 'run_a' }, [event('run_started', 1)])).rejects.toMatchObject({
      code: 'store_failure',
      message: 'The log could not store an event of run `run_a`: file is not a database',
    })
    const path = join(folder, 'newer.db')
    const database = await openDatabase(path, 'normal')
    database.exec('pragma user_version = 9')
    database.close()
    await using newer = sqliteLog(path)
    await expect(newer.inspect({ kind: 'run', id: 'run_a' })).rejects.toMatchObject({
      code: 'store_failure',
      message: `The tables in \`${path}\` are of version 9: this version of thinharness reads up to 3.`,
    })
  })

  test.each<[string, unknown, object, string]>([
    [
      'a policy that is none',
      'runs.db',
      { synchronous: 'off' },
      'Expected `synchronous` of `sqliteLog` to be one of `normal`, `full`, got `off`.',
    ],
    ['an unknown option', 'runs.db', { sync: 'full' }, 'Unknown option of `sqliteLog`: `sync`.'],
    ['no path', '', {}, 'Expected the file of `sqliteLog` to be a path.'],
  ])('invalid options are rejected at once: %s', (_name, path, options, message) => {
    expect(() => sqliteLog(path as string, options)).toThrow(
      expect.objectContaining({ code: 'invalid_options', message }),
    )
  })

  test('a run is stored under each policy, and in memory', async () => {
    for (const [path, synchronous] of [
      [join(folder, 'full.db'), 'full'],
      [':memory:', 'normal'],
    ] as const) {
      await using log = sqliteLog(path, { synchronous })
      await log.append({ kind: 'run', id: 'run_a' }, [event('run_started', 1)])
      expect(await eventsOfRun(log, 'run_a')).toHaveLength(1)
    }
  })
})

const EARLIER_TABLES = `
create table runs (run_id text primary key, last_seq integer not null default 0, phase text, started_at text,
  updated_at text, parent_run_id text, digest text, owner text, owned_until integer not null default 0);
create index runs_by_start on runs (started_at desc, run_id desc);
create index runs_by_phase on runs (phase, started_at desc, run_id desc);
create index runs_by_parent on runs (parent_run_id, started_at desc, run_id desc);
create table events (run_id text not null, seq integer not null, event text not null, primary key (run_id, seq));`

const EARLIER_DIGEST = {
  runId: 'run_a',
  phase: 'open',
  stopReason: null,
  startedAt: '2026-01-01T00:00:00.000Z',
  updatedAt: '2026-01-01T00:00:00.000Z',
  endedAt: null,
  provider: 'p',
  model: 'm',
  metadata: { resourceId: 'user_7' },
  usage: { modelRequests: 0 },
  pending: [],
  parent: null,
  error: null,
  lastSeq: 1,
}
