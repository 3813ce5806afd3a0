import { describe, expect, test } from 'vitest'
import { memoryLog } from 'thinharness'
import type { Harness, HarnessStream, RunLog } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { eventsOf, failureOf, gate, harnessOf, tool, until } from './support.js'

type Method = 'append' | 'claim' | 'read'

interface SilentLog extends RunLog {
  /** How often the silent method was called. */
  readonly asked: () => number
  /** Lets the log answer, late: with its answer, or with an error. */
  readonly answer: (how: 'as asked' | 'with an error') => void
  readonly claims: readonly number[]
}

/** A log in memory that does not answer calls of `method`, from call number `from` on. */
function silent(method: Method, from: number): SilentLog {
  const inner = memoryLog()
  const late = gate<'as asked' | 'with an error'>()
  const claims: number[] = []
  let asked = 0
  const quiet = async (called: Method): Promise<void> => {
    if (called !== method || ++asked < from) return
    if ((await late.opened) === 'with an error') throw new Error('The disk is gone.')
  }
  return {
    claims,
    asked: () => asked,
    answer: (how) => late.open(how),
    append: async (ref, events, options) => {
      await quiet('append')
      await inner.append(ref, events, options)
    },
    claim: async (ref, owner, ttlMs) => {
      claims.push(ttlMs)
      if (ttlMs > 0) await quiet('claim')
      return inner.claim(ref, owner, ttlMs)
    },
    async *read(ref, options) {
      await quiet('read')
      yield* inner.read(ref, options)
    },
  }
}

interface Begun {
  readonly harness: Harness
  readonly stream: HarnessStream
  readonly controller: AbortController
}

/** Ways to end a run, and the code of its error. */
const WAYS: readonly [string, string, (begun: Begun) => unknown][] = [
  ['the signal', 'cancelled', ({ controller }) => controller.abort()],
  ['`limits.timeMs`', 'limit_reached', () => undefined],
  ['`stream.close()`', 'cancelled', ({ stream }) => stream.close()],
  ['`stream.cancel()`', 'cancelled', ({ stream }) => stream.cancel()],
  ['`harness.close()`', 'cancelled', ({ harness }) => harness.close()],
  ['`harness.close()` that leaves', 'interrupted', ({ harness }) => harness.close({ runs: 'leave', timeoutMs: 20 })],
]

describe.each([
  { method: 'append', from: 1, what: 'the first append' },
  { method: 'append', from: 4, what: 'the append before a call' },
  { method: 'claim', from: 1, what: 'the claim' },
  { method: 'read', from: 1, what: 'the first read of a run to recover' },
] as const)('a log that does not answer can be abandoned: $what', ({ method, from }) => {
  test.concurrent.each(WAYS)('%s ends the run', async (way, code, end) => {
    const log = silent(method, from)
    const ran: string[] = []
    const model = new ScriptedModel().calls('look').says('Done.')
    const timeMs = way.includes('timeMs') ? 20 : null
    const harness = harnessOf({ model, tools: [tool('look', () => void ran.push('look'))], log, limits: { timeMs } })
    const controller = new AbortController()
    const options = { signal: controller.signal }
    const stream =
      method === 'read'
        ? harness.streamRecover('run_1', options)
        : harness.stream('Go.', { runId: 'run_1', ...options })
    const failed = failureOf(stream.result)
    const reading = eventsOf(stream)
    // The time may be up before.
    if (timeMs === null) await until(() => log.asked() >= from)
    await end({ harness, stream, controller })
    expect((await failed).code).toBe(code)
    await reading
    log.answer(way.includes('close') ? 'with an error' : 'as asked')
    await new Promise((resolve) => setImmediate(resolve))
    expect(ran).toEqual([])
    expect(model.requests.length).toBeLessThanOrEqual(from === 4 ? 1 : 0)
  })
})

test('a claim that comes after the run was abandoned is released', async () => {
  const log = silent('claim', 1)
  const controller = new AbortController()
  const run = failureOf(harnessOf({ log, model: new ScriptedModel() }).run('Go.', { signal: controller.signal }))
  await until(() => log.asked() === 1)
  controller.abort()
  expect((await run).code).toBe('cancelled')
  log.answer('as asked')
  await until(() => log.claims.length === 2)
  expect(log.claims[1]).toBe(0)
})

test('an append that takes a moment when the run is cancelled is waited for, and the end is stored', async () => {
  const log = silent('append', 4)
  const controller = new AbortController()
  const harness = harnessOf({ log, tools: [tool('look')], model: new ScriptedModel().calls('look') })
  const run = failureOf(harness.run('Go.', { runId: 'run_1', signal: controller.signal }))
  await until(() => log.asked() === 4)
  controller.abort()
  log.answer('as asked')
  expect((await run).code).toBe('cancelled')
  const kinds: string[] = []
  for await (const { kind } of log.read({ kind: 'run', id: 'run_1' })) kinds.push(kind)
  expect(kinds.at(-1)).toBe('run_failed')
})
