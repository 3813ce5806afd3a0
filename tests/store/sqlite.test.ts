import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { sqliteLog } from 'thinharness/store/sqlite'
import { ScriptedModel } from 'thinharness/testing'
import { openDatabase } from '#store/sqlite.js'
import { harnessOf, tool } from '../harness/support.js'
import { Events } from '#testing/log-contract/story.js'
import { event } from '../core/state/support.js'
import { bundleStores } from '../support/store-bundle.js'
import { temporaryFolder } from '../support/folder.js'
import { collect, eventsOfRun } from '../support/collect.js'

let folder: string

beforeEach(() => void (folder = temporaryFolder()))

describe('a log in SQLite', () => {
  test('161 it stores the same run as memory', async () => {
    using model = new ScriptedModel().calls('a').says('Done.')
    await using log = sqliteLog(join(folder, 'runs.db'))
    const stream = harnessOf({ model, tools: [tool('a')], log }).stream('Go.')
    const told = (await collect(stream)).filter((each) => each.durable)
    await stream.result
    expect(await eventsOfRun(log, stream.runId)).toEqual(JSON.parse(JSON.stringify(told)))
    expect(await log.inspect({ kind: 'run', id: stream.runId })).toMatchObject({
      status: 'completed',
      usage: { modelRequests: 2, toolCalls: 1 },
    })
  })

  test('an event of a run that goes on is written with its row and the order of changes, and no other index', async () => {
    const path = join(folder, 'runs.db')
    await using log = sqliteLog(path)
    const story = new Events('run_a', { afterMs: 1 })
    await log.append(story.ref, story.made.slice(), { digest: story.digest })
    const before = statSync(`${path}-wal`).size
    await log.append(story.ref, [story.note('One more.')], { digest: story.digest })
    // The pages of: events, their key, runs, their changes. A page has a head of 24 bytes.
    expect((statSync(`${path}-wal`).size - before) / (4096 + 24)).toBe(4)
  })

  test('a file in a folder that does not exist is an error that names the folder, and creates nothing', async () => {
    const missing = join(folder, 'typo')
    await using log = sqliteLog(join(missing, 'x.db'))
    const first = log.inspect({ kind: 'run', id: 'run_1' })
    await expect(first).rejects.toMatchObject({
      ...{ code: 'invalid_options', message: expect.stringContaining(`\`${missing}\``) as unknown },
    })
    expect(existsSync(missing)).toBe(false)
    mkdirSync(missing)
    expect(await log.inspect({ kind: 'run', id: 'run_1' })).toBeNull()
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
    const path = join(folder, 'other.db')
    const database = await openDatabase(path, 'normal')
    database.exec('pragma user_version = 3')
    database.close()
    await using other = sqliteLog(path)
    await expect(other.inspect({ kind: 'run', id: 'run_a' })).rejects.toMatchObject({
      code: 'store_failure',
      message: `The tables in \`${path}\` are of version 3: this version of thinharness reads version 5.`,
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
