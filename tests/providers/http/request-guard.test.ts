import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { RequestGuard } from '#providers/http/request-guard.js'
import { timeLimitsOf } from '#providers/http/options.js'
import type { Timeouts } from '#providers/http/options.js'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

function guardWith(timeouts: Timeouts = {}, signal = new AbortController().signal): RequestGuard {
  return new RequestGuard({ signal }, timeLimitsOf(timeouts))
}

const never = (): Promise<never> => new Promise(() => undefined)
const messageOf = (work: Promise<unknown>): Promise<string> =>
  work.then(String, (error: unknown) => (error instanceof Error ? error.message : 'no error'))

test('the limits have defaults; null disables one', () => {
  expect(timeLimitsOf()).toEqual({ connectMs: 10_000, firstByteMs: 300_000, idleMs: 300_000, totalMs: null })
  expect(timeLimitsOf({ connectMs: null, totalMs: 5 })).toMatchObject({
    connectMs: null,
    firstByteMs: 300_000,
    totalMs: 5,
  })
})

test('each phase has its own time, from its start', async () => {
  const guard = guardWith({ connectMs: 100, firstByteMs: 50 })
  const failure = messageOf(guard.wait('connectMs', never))
  await vi.advanceTimersByTimeAsync(90)
  guard.enter('firstByteMs')
  await vi.advanceTimersByTimeAsync(49)
  expect(vi.getTimerCount()).toBe(1)
  await vi.advanceTimersByTimeAsync(2)
  expect(await failure).toBe('No answer from the provider within 50 ms (`timeouts.firstByteMs`).')
  expect(vi.getTimerCount()).toBe(0)
})

test('time passes only while a reader waits', async () => {
  const guard = guardWith({ idleMs: 100 })
  expect(await guard.wait('idleMs', () => Promise.resolve('bytes'))).toBe('bytes')
  await vi.advanceTimersByTimeAsync(1000)
  guard.throwIfFailed()
  const failure = messageOf(guard.wait('idleMs', never))
  await vi.advanceTimersByTimeAsync(101)
  expect(await failure).toContain('`timeouts.idleMs`')
})

test('a stream of many chunks uses one timer', async () => {
  const made = vi.fn(setTimeout)
  vi.stubGlobal('setTimeout', made)
  const guard = guardWith()
  try {
    for (let chunk = 0; chunk < 1000; chunk++) await guard.wait('idleMs', () => Promise.resolve())
  } finally {
    vi.unstubAllGlobals()
  }
  expect(made).toHaveBeenCalledTimes(1)
  guard.release()
  expect(vi.getTimerCount()).toBe(0)
})

test('the time of the whole attempt passes whether or not a reader waits', async () => {
  const guard = guardWith({ totalMs: 100 })
  await guard.wait('idleMs', () => Promise.resolve())
  await vi.advanceTimersByTimeAsync(150)
  expect(await messageOf(guard.wait('idleMs', never))).toContain('`timeouts.totalMs`')
})

test('a request is stopped once: when the guard fails, or is released', async () => {
  const stop = vi.fn()
  const abort = new AbortController()
  const failed = guardWith({}, abort.signal)
  failed.onStop(stop)
  abort.abort(new Error('Enough.'))
  failed.release()
  expect(stop).toHaveBeenCalledOnce()

  const released = guardWith()
  released.onStop(stop)
  released.release()
  released.release()
  expect(stop).toHaveBeenCalledTimes(2)

  const late = guardWith({}, abort.signal)
  late.onStop(stop)
  expect(stop).toHaveBeenCalledTimes(3)
})

test('a request that has ended is not stopped', () => {
  const stop = vi.fn()
  const guard = guardWith()
  guard.onStop(stop)
  guard.finish()
  guard.release()
  expect(stop).not.toHaveBeenCalled()
})

test('the error is the guard’s own reason, not a consequence of stopping', async () => {
  const abort = new AbortController()
  const reason = new Error('Enough.')
  const guard = guardWith({}, abort.signal)
  let fail: (error: Error) => void = () => undefined
  const work = new Promise<never>((_resolve, reject) => (fail = reject))
  guard.onStop(() => fail(new Error('The socket was destroyed.')))
  const failure = guard.wait('idleMs', () => work)
  abort.abort(reason)
  await expect(failure).rejects.toBe(reason)
  await expect(guard.wait('idleMs', () => Promise.resolve())).rejects.toBe(reason)
  expect(() => guard.throwIfFailed()).toThrow(reason)
})

test('a late event of the request starts no timer', () => {
  const guard = guardWith()
  guard.release()
  guard.enter('firstByteMs')
  expect(vi.getTimerCount()).toBe(0)
})

test('once hurried, silence is short', async () => {
  const guard = guardWith({ idleMs: null })
  guard.hurry(100)
  const failure = messageOf(guard.wait('idleMs', never))
  await vi.advanceTimersByTimeAsync(101)
  expect(await failure).toContain('100 ms')
})
