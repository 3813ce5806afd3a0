import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { defineExtension, fileLog, Harness, memoryLog } from 'thinharness'
import type { LogStore } from 'thinharness'
import { sqliteLog } from 'thinharness/store/sqlite'
import { ScriptedModel } from 'thinharness/testing'
import { temporaryFolder } from '../support/folder.js'
import { eventsOfRun } from '../support/collect.js'
import { isLong, timeLimit } from '../support/length.js'
import { harnessOf, tool } from './support.js'

const STORES: readonly [string, () => LogStore][] = [
  ['memory', () => memoryLog()],
  ['files', () => fileLog(join(temporaryFolder(), 'runs'), { fsync: 'never' })],
  [
    'SQLite',
    () => {
      const log = sqliteLog(join(temporaryFolder(), 'runs.db'))
      onTestFinished(() => log.close())
      return log
    },
  ],
]

const run = (id: string): { readonly kind: 'run'; readonly id: string } => ({ kind: 'run', id })

describe.each(STORES)('a run that waits in a log in %s', (_name, openLog) => {
  test('is listed as queued with what is known of it, and begins by `recover`, once', async () => {
    const log = openLog()
    const labels = { tenant: 'acme', agent: 'support' }
    const host = new Harness({ log })
    const metadata = { order: 7 }
    const options = { runId: 'run_q', agent: 'support', labels, by: 'ann', metadata }
    expect(await host.queue('Where is my order?', options)).toEqual({ runId: 'run_q' })
    const queued = await log.inspect(run('run_q'))
    expect(queued).toMatchObject({ status: 'queued', stopReason: null, provider: null, labels, metadata, lastSeq: 1 })
    expect((await log.waiting()).map(({ runId }) => runId)).toEqual(['run_q'])
    const [event] = await eventsOfRun(log, 'run_q')
    expect(event).toMatchObject({ kind: 'run_queued', agent: 'support', prompt: 'Where is my order?', by: 'ann' })

    using model = new ScriptedModel().says('On its way.')
    const worker = harnessOf({ model, log })
    expect((await worker.recover('run_q')).text).toBe('On its way.')
    expect(model.heard).toEqual([{ kind: 'start', prompt: 'Where is my order?' }])
    expect(await log.inspect(run('run_q'))).toMatchObject({ status: 'completed', labels, metadata })
    expect((await worker.recover('run_q')).text).toBe('On its way.')
    expect(await log.waiting()).toEqual([])
    const [, started] = await eventsOfRun(log, 'run_q')
    expect(started).toMatchObject({
      kind: 'run_started',
      begun: 'fresh',
      prompt: 'Where is my order?',
      metadata,
      labels,
    })
    expect((await worker.replay(log.read(run('run_q')))).text).toBe('On its way.')
  })

  test('is refused if there is a run of its id', async () => {
    const log = openLog()
    const host = new Harness({ log })
    await host.queue('Go.', { runId: 'run_q' })
    await expect(host.queue('Go again.', { runId: 'run_q' })).rejects.toMatchObject({ code: 'run_exists' })
    using model = new ScriptedModel()
    await expect(harnessOf({ model, log }).run('Go.', { runId: 'run_q' })).rejects.toMatchObject({ code: 'run_exists' })
    await log.claim(run('run_q'), 'ann', 60_000)
    await expect(host.queue('Go again.', { runId: 'run_q' })).rejects.toMatchObject({ code: 'run_exists' })
    expect(await eventsOfRun(log, 'run_q')).toHaveLength(1)
  })

  test('ends by `cancel`, and is not begun after that', async () => {
    const log = openLog()
    const host = new Harness({ log })
    await host.queue('Go.', { runId: 'run_q' })
    expect(await host.cancel('run_q')).toBe(true)
    expect(await host.cancel('run_q')).toBe(false)
    expect(await log.inspect(run('run_q'))).toMatchObject({ status: 'cancelled' })
    using model = new ScriptedModel()
    await expect(harnessOf({ model, log }).recover('run_q')).rejects.toMatchObject({ code: 'cancelled' })
    expect(await log.waiting()).toEqual([])
  })

  test('goes on waiting if it cannot begin', async () => {
    const log = openLog()
    await new Harness({ log }).queue('Go.', { runId: 'run_q' })
    const failing = defineExtension({
      name: 'failing',
      forRun: () => {
        throw new Error('Not today.')
      },
    })
    using unasked = new ScriptedModel()
    await expect(harnessOf({ model: unasked, log, use: [failing] }).recover('run_q')).rejects.toThrow()
    expect(await log.inspect(run('run_q'))).toMatchObject({ status: 'queued', lastSeq: 1 })
    using model = new ScriptedModel().says('Done.')
    expect((await harnessOf({ model, log }).recover('run_q')).text).toBe('Done.')
  })

  test('gets the labels and the instructions that extensions have for a run that begins', async () => {
    const log = openLog()
    await new Harness({ log }).queue('Go.', { runId: 'run_q', labels: { agent: 'support' } })
    const seen: unknown[] = []
    const versioned = defineExtension({
      name: 'versioned',
      forRun: ({ begun, labels }) => {
        seen.push([begun, labels])
        return { labels: { 'prompt.support': '2', agent: 'other' }, instructions: 'Be brief.' }
      },
    })
    using model = new ScriptedModel().says('Done.')
    await harnessOf({ model, log, use: [versioned] }).recover('run_q')
    expect(seen).toEqual([['fresh', { agent: 'support' }]])
    const summary = await log.inspect(run('run_q'))
    expect(summary?.labels).toEqual({ agent: 'support', 'prompt.support': '2' })
  })

  test(
    'is begun once by ten workers that are killed now and then, and none is left',
    async () => {
      const log = openLog()
      const count = isLong ? 2000 : 120
      const host = new Harness({ log })
      for (let index = 0; index < count; index++)
        await host.queue(`Job ${index}.`, { runId: `run_${index}`, labels: { tenant: `t_${index % 3}` } })
      const done: string[] = []
      const work = async (worker: number): Promise<void> => {
        for (let round = 0; ; round++) {
          const waiting = await log.waiting({ limit: 20, perTenant: 10 })
          if (waiting.length === 0) return
          const { runId } = waiting[(worker * 7 + round) % waiting.length]!
          // Every fifth life ends in the middle: the run is left, and the next worker goes on with it.
          const dies = (worker + round) % 5 === 0
          const job = tool('job', () => {
            if (!dies) done.push(runId)
            return 'Done.'
          })
          const model = new ScriptedModel().calls('job', '{}').says('Done.')
          const harness = harnessOf({ model, log, tools: [job] })
          const running = harness.recover(runId).catch(() => undefined)
          if (dies) await harness.close({ runs: 'leave' })
          await running
          await harness.close()
        }
      }
      await Promise.all(Array.from({ length: 10 }, (_, worker) => work(worker)))
      const statuses = new Set<string>()
      let ended = 0
      for await (const { status } of log.list()) {
        statuses.add(status)
        ended += 1
      }
      expect([[...statuses], ended]).toEqual([['completed'], count])
      const beginnings = await Promise.all(
        Array.from({ length: count }, async (_, index) => {
          const events = await eventsOfRun(log, `run_${index}`)
          return events.filter((event) => event.kind === 'run_started' && event.begun === 'fresh').length
        }),
      )
      expect(new Set(beginnings)).toEqual(new Set([1]))
      expect(new Set(done).size).toBe(done.length)
    },
    timeLimit(120_000),
  )
})

test.each([
  ['an unknown option', { agents: 'sql' }],
  ['too many labels', { labels: Object.fromEntries(Array.from({ length: 17 }, (_, index) => [`l${index}`, 'x'])) }],
  ['an agent without a name', { agent: '' }],
])('a run that is to wait is refused for %s', async (_name, options) => {
  const log = memoryLog()
  await expect(new Harness({ log }).queue('Go.', options as object)).rejects.toMatchObject({ code: 'invalid_options' })
  expect(await log.waiting()).toEqual([])
})
