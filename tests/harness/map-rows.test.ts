import { fork } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { fileLog, memoryLog } from 'thinharness'
import type { BatchProgress, MappedRow } from '#harness/map-rows.js'
import { ScriptedModel } from 'thinharness/testing'
import { temporaryFolder } from '../support/folder.js'
import { gate, harnessOf, ticks, tool, until } from './support.js'

async function all<Item>(rows: AsyncIterable<MappedRow<Item>>): Promise<MappedRow<Item>[]> {
  const found: MappedRow<Item>[] = []
  for await (const row of rows) found.push(row)
  return found
}

const numbers = (count: number): number[] => Array.from({ length: count }, (_, index) => index)

/** Each as `item:status:text`, by item. */
function outcomes(rows: readonly MappedRow<number>[]): string[] {
  return [...rows]
    .sort((a, b) => a.item - b.item)
    .map((row) => `${row.item}:${row.status}:${row.status === 'failed' ? row.error.code : row.result.text}`)
}

/** Repeats the prompt; prompts in `wrong` fail. */
function echo(wrong: readonly string[] = []): ScriptedModel {
  return new ScriptedModel().always(({ heard }) => {
    const prompt = heard.kind === 'start' ? String(heard.prompt) : 'more'
    if (wrong.includes(prompt)) throw new Error('Down.')
    return prompt
  })
}

describe('map runs a prompt for each row', () => {
  test('and yields outcomes as runs end: completed, paused and failed', async () => {
    const model = new ScriptedModel().always(({ heard }) => {
      if (heard.kind !== 'start') return 'after'
      if (heard.prompt === '1') throw new Error('Down.')
      return heard.prompt === '2' ? { calls: [{ name: 'pay', arguments: {} }] } : String(heard.prompt)
    })
    const harness = harnessOf({ model, tools: [tool('pay', () => 'ok', { requiresApproval: true })] })
    const rows = await all(harness.map([0, 1, 2], (item, index) => ({ prompt: `${item}`, metadata: { index } })))
    expect(outcomes(rows)).toEqual(['0:completed:0', '1:failed:error', '2:paused:'])
    const paused = rows.find(({ status }) => status === 'paused')
    if (paused?.status !== 'paused') throw new Error('Expected a paused row.')
    const [{ callId }] = paused.result.pending
    expect((await harness.resume(paused.runId, [{ callId, approved: true }])).text).toBe('after')
  })

  test.each([
    ['an iterable', () => new Set([1, 2])],
    [
      'an async iterable',
      async function* () {
        yield 1
        await ticks(1)
        yield 2
      },
    ],
  ])('of %s', async (_name, rows) => {
    const harness = harnessOf({ model: echo() })
    expect(outcomes(await all(harness.map(rows(), (item) => ({ prompt: `${item}` }))))).toEqual([
      '1:completed:1',
      '2:completed:2',
    ])
  })

  test('of 10,000 rows with a bounded number of live runs, which a slow reader holds', async () => {
    let [pulled, live, most, read] = [0, 0, 0, 0]
    function* rows(): Generator<number> {
      for (let row = 0; row < 10_000; row++) {
        pulled += 1
        yield row
      }
    }
    const model = new ScriptedModel().always(async () => {
      live += 1
      most = Math.max(most, live)
      await Promise.resolve()
      live -= 1
      return 'Done.'
    })
    let furthest = 0
    let last: BatchProgress | undefined
    const onProgress = (progress: BatchProgress): void => void (last = progress)
    const harness = harnessOf({ model, prices: false })
    for await (const { status } of harness.map(rows(), () => ({ prompt: 'Go.' }), { concurrency: 8, onProgress })) {
      expect(status).toBe('completed')
      if (read % 1000 === 0) await ticks(3)
      read += 1
      furthest = Math.max(furthest, pulled - read)
    }
    expect([read, pulled]).toEqual([10_000, 10_000])
    expect(most).toBeLessThanOrEqual(8)
    expect(furthest).toBeLessThanOrEqual(8)
    expect(last).toMatchObject({ done: 10_000, failed: 0, running: 0, stopped: null })
    expect(last).not.toHaveProperty('total')
  }, 120_000)

  test('begins nothing until it is read, and no more than its reader has room for', async () => {
    const begun: number[] = []
    const rows = harnessOf({ model: echo() }).map(numbers(9), (item) => (begun.push(item), { prompt: `${item}` }), {
      concurrency: 2,
    })
    await ticks()
    expect(begun).toEqual([])
    const reader = rows[Symbol.asyncIterator]()
    await reader.next()
    await ticks()
    expect(begun).toEqual([0, 1, 2])
    await reader.return?.()
  })
})

describe('a batch ends early', () => {
  test('when its reader leaves: runs in progress are cancelled, rows are let go of', async () => {
    const log = memoryLog()
    const model = new ScriptedModel().replies('First.').always(() => new Promise(() => undefined))
    let isClosed = false
    function* rows(): Generator<number> {
      try {
        for (let row = 0; ; row++) yield row
      } finally {
        isClosed = true
      }
    }
    const harness = harnessOf({ model, log })
    for await (const row of harness.map(rows(), (item) => ({ prompt: 'Go.', runId: `row_${item}` }))) {
      expect(row.item).toBe(0)
      break
    }
    expect(isClosed).toBe(true)
    const statuses: string[] = []
    for await (const { status } of log.list()) statuses.push(status)
    expect([...new Set(statuses)].sort()).toEqual(['cancelled', 'completed'])
  })

  test('by its signal: the runs in progress end as cancelled, and the iteration throws', async () => {
    const controller = new AbortController()
    const model = new ScriptedModel().always(() => new Promise(() => undefined))
    const seen: MappedRow<number>[] = []
    const reading = (async () => {
      const { signal } = controller
      const options = { concurrency: 2, signal }
      for await (const row of harnessOf({ model }).map(numbers(5), () => ({ prompt: 'Go.' }), options)) seen.push(row)
    })()
    await until(() => model.heard.length === 2)
    controller.abort(new Error('Enough.'))
    await expect(reading).rejects.toMatchObject({ code: 'cancelled' })
    expect(outcomes(seen)).toEqual(['0:failed:cancelled', '1:failed:cancelled'])
  })

  test.each([
    ['its rows', (): BatchProgress | undefined => undefined],
    [
      '`onProgress`',
      (): never => {
        throw new Error('Broken.')
      },
    ],
  ])('when %s throw', async (name, onProgress) => {
    function* rows(): Generator<number> {
      yield 0
      if (name === 'its rows') throw new Error('Broken.')
    }
    const harness = harnessOf({ model: echo() })
    await expect(all(harness.map(rows(), () => ({ prompt: 'Go.' }), { onProgress }))).rejects.toThrow('Broken.')
  })

  test('when its harness is closed', async () => {
    const opened = gate()
    const model = new ScriptedModel().always(async () => (await opened.opened, 'Late.'))
    const harness = harnessOf({ model })
    const reading = all(harness.map(numbers(100), () => ({ prompt: 'Go.' }), { concurrency: 2 }))
    const ended = expect(reading).rejects.toMatchObject({ code: 'closed' })
    await until(() => model.heard.length === 2)
    await harness.close()
    await ended
  })
})

describe('a row that fails', () => {
  test('in its function is an outcome, and the others run', async () => {
    const harness = harnessOf({ model: echo() })
    const rows = await all(
      harness.map(numbers(4), (item) => {
        if (item === 1) throw new Error('No such ticket.')
        if (item === 2) return Promise.reject(new RangeError('Too far.'))
        return item === 3 ? ({ text: 'x' } as never) : { prompt: 'Go.' }
      }),
    )
    expect(outcomes(rows)).toEqual(['0:completed:Go.', '1:failed:error', '2:failed:error', '3:failed:invalid_options'])
    expect(rows.flatMap((row) => (row.status === 'failed' ? [row.error.message] : [])).sort()).toEqual([
      'Expected the function of `map` to return { prompt, … } for row 3, got an object.',
      'The function of `map` failed for row 1: No such ticket.',
      'The function of `map` failed for row 2: Too far.',
    ])
  })

  test('counts in the progress', async () => {
    const seen: BatchProgress[] = []
    const harness = harnessOf({ model: echo(['1']), prices: { unknown: { inputPerMillion: 1, outputPerMillion: 1 } } })
    await all(
      harness.map(numbers(3), (item) => ({ prompt: `${item}` }), {
        concurrency: 1,
        onProgress: (now) => seen.push(now),
      }),
    )
    const common = { paused: 0, total: 3, stopped: null }
    expect(seen.at(0)).toEqual({ ...common, done: 0, failed: 0, running: 1, costUsd: 0 })
    expect(seen.at(-1)).toEqual({ ...common, done: 3, failed: 1, running: 0, costUsd: 0.00003 })
  })
})

describe('a batch is repeated by the ids of its runs', () => {
  test('completed rows are not asked again, failed ones only with `retry`', async () => {
    const log = memoryLog()
    const rows = numbers(4)
    const toRun = (item: number) => ({ prompt: `${item}`, runId: `row_${item}` })
    await all(harnessOf({ model: echo(['2']), log }).map(rows, toRun))
    const model = echo()
    const again = harnessOf({ model, log })
    expect(outcomes(await all(again.map(rows, toRun)))[2]).toBe('2:failed:error')
    expect(model.heard).toHaveLength(0)
    expect(outcomes(await all(again.map(rows, toRun, { ifExists: 'retry' })))[2]).toBe('2:completed:2')
    expect(model.heard).toHaveLength(1)
    expect(outcomes(await all(again.map([0], toRun, { ifExists: 'fail' })))).toEqual(['0:failed:run_exists'])
  })

  test('after a kill, no answered request is made again', async () => {
    const folder = temporaryFolder()
    const rig = fileURLToPath(new URL('../../.build/rigs/batch-worker.js', import.meta.url))
    const worker = fork(rig, ['--folder', folder, '--rows', '8', '--replies', '5'])
    const [, signal] = (await once(worker, 'exit')) as [number | null, string | null]
    expect(signal).toBe('SIGKILL')
    const answered = readFileSync(join(folder, 'requests'), 'utf8').trim().split('\n')
    const read = existsSync(join(folder, 'rows')) ? readFileSync(join(folder, 'rows'), 'utf8').trim().split('\n') : []
    expect(answered).toHaveLength(5)
    expect(read.length).toBeGreaterThan(0)
    const model = echo()
    const harness = harnessOf({ model, log: fileLog(join(folder, 'runs')) })
    const rows = await all(
      harness.map(numbers(8), (item) => ({ prompt: `Row ${item}`, runId: `row_${item}` }), { concurrency: 2 }),
    )
    expect(rows.map(({ status }) => status)).toEqual(Array.from({ length: 8 }, () => 'completed'))
    const before = rows.filter((row) => row.status === 'completed' && row.result.text === 'Done.')
    expect(before.length).toBeGreaterThanOrEqual(read.length)
    expect(model.heard).toHaveLength(8 - before.length)
  })
})
