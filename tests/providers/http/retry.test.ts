import { HarnessError } from 'thinharness'
import type { TransportRetry } from 'thinharness'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { NO_TOKENS } from '#contracts/entry.js'
import { withRetries } from '#providers/http/retry.js'
import type { RetriedAttempt } from '#providers/http/retry.js'

const DONE = { usage: NO_TOKENS }
type Reply = typeof DONE

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

function failure(details: { retryable?: boolean; retryAfterMs?: number; status?: number } = {}): HarnessError {
  return new HarnessError('provider_error', 'Overloaded', { retryable: true, ...details })
}

/** Fails with these, one after the other, then succeeds. */
function failing(...errors: readonly Error[]): {
  ask: (attempt: RetriedAttempt) => Promise<Reply>
  asked: () => number
} {
  let count = 0
  return {
    async ask() {
      const error = errors[count++]
      if (error !== undefined) throw error
      return DONE
    },
    asked: () => count,
  }
}

async function run(
  ask: (attempt: RetriedAttempt) => Promise<Reply>,
  maxRetries = 2,
): Promise<{ result: unknown; retries: TransportRetry[]; waitedMs: number }> {
  const retries: TransportRetry[] = []
  const from = Date.now()
  const { signal } = new AbortController()
  const asking = withRetries(ask, { maxRetries, signal, onRetry: (retry) => retries.push(retry) })
  const progress = { isOver: false }
  const settled = asking.catch((error: unknown) => error).finally(() => (progress.isOver = true))
  await vi.advanceTimersByTimeAsync(0)
  while (!progress.isOver) await vi.advanceTimersToNextTimerAsync()
  return { result: await settled, retries, waitedMs: Date.now() - from }
}

test('a first success reports nothing', async () => {
  expect(await run(failing().ask)).toEqual({ result: DONE, retries: [], waitedMs: 0 })
})

test('SB-77 each retry is reported before it starts, and waits twice as long', async () => {
  const { result, retries, waitedMs } = await run(failing(failure({ status: 529 }), failure(), failure()).ask, 3)
  expect(result).toBe(DONE)
  expect(retries).toMatchObject([
    { attempt: 1, reason: 'Overloaded', status: 529, withdrawn: false },
    { attempt: 2, reason: 'Overloaded', status: null, withdrawn: false },
    { attempt: 3, reason: 'Overloaded', status: null, withdrawn: false },
  ])
  for (const [index, least] of [500, 1000, 2000].entries()) {
    expect(retries[index]?.delayMs).toBeGreaterThanOrEqual(least)
    expect(retries[index]?.delayMs).toBeLessThanOrEqual(least * 1.25)
  }
  expect(waitedMs).toBe(retries.reduce((sum, { delayMs }) => sum + delayMs, 0))
})

test('the delays differ between runs, and are at most 30 s', async () => {
  const delays = new Set<number>()
  for (let count = 0; count < 20; count++) {
    const { retries } = await run(failing(...Array.from({ length: 10 }, () => failure())).ask, 10)
    delays.add(retries[0]?.delayMs ?? 0)
    expect(retries.at(-1)?.delayMs).toBeGreaterThanOrEqual(30_000)
    expect(retries.at(-1)?.delayMs).toBeLessThanOrEqual(37_500)
  }
  expect(delays.size).toBeGreaterThan(5)
})

test('the delay that a server asks for is respected', async () => {
  const { retries } = await run(failing(failure({ retryAfterMs: 7000 }), failure({ retryAfterMs: 0 })).ask)
  expect(retries[0]?.delayMs).toBeGreaterThanOrEqual(7000)
  expect(retries[0]?.delayMs).toBeLessThanOrEqual(7700)
  expect(retries[1]?.delayMs).toBe(0)
})

test('a server that asks for more than two minutes is not retried', async () => {
  const error = failure({ retryAfterMs: 120_001 })
  expect(await run(failing(error).ask)).toEqual({ result: error, retries: [], waitedMs: 0 })
})

test('once the retries are used up, the last error is thrown', async () => {
  const errors = [failure(), failure(), failure()]
  const { ask, asked } = failing(...errors)
  const { result, retries } = await run(ask)
  expect([result, retries.length, asked()]).toEqual([errors[2], 2, 3])
})

test.each<[string, Error, number]>([
  ['an error that would come again', failure({ retryable: false }), 2],
  ['an error that is not ours', new TypeError('x'), 2],
  ['any error, where no repetition is allowed', failure(), 0],
])('not retried: %s', async (_name, error, maxRetries) => {
  const { ask, asked } = failing(error)
  expect(await run(ask, maxRetries)).toEqual({ result: error, retries: [], waitedMs: 0 })
  expect(asked()).toBe(1)
})

test('deltas of a failed attempt are reported as withdrawn; each attempt counts for itself', async () => {
  let count = 0
  const { retries } = await run(async (attempt) => {
    count += 1
    if (count === 1) attempt.hasEmitted = true
    if (count < 3) throw failure()
    return DONE
  })
  expect(retries.map((retry) => retry.withdrawn)).toEqual([true, false])
})

test('an abort ends the delay at once, with its reason', async () => {
  const abort = new AbortController()
  const { ask, asked } = failing(failure({ retryAfterMs: 60_000 }))
  const asking = withRetries(ask, { maxRetries: 2, signal: abort.signal, onRetry: undefined })
  const settled = asking.catch((error: unknown) => error)
  await vi.advanceTimersByTimeAsync(1000)
  const reason = new Error('Enough.')
  abort.abort(reason)
  expect(await settled).toBe(reason)
  expect(asked()).toBe(1)
})

test('a listener for retries may abort', async () => {
  const abort = new AbortController()
  const reason = new Error('Enough.')
  const { ask, asked } = failing(failure())
  const onRetry = (): void => abort.abort(reason)
  await expect(withRetries(ask, { maxRetries: 2, signal: abort.signal, onRetry })).rejects.toBe(reason)
  expect([asked(), vi.getTimerCount()]).toEqual([1, 0])
})

test('an abort wins over the error of the attempt', async () => {
  const abort = new AbortController()
  const reason = new Error('Enough.')
  const ask = async (): Promise<Reply> => {
    abort.abort(reason)
    throw failure({ retryable: false })
  }
  await expect(withRetries(ask, { maxRetries: 2, signal: abort.signal, onRetry: undefined })).rejects.toBe(reason)
})
