import { getEventListeners } from 'node:events'
import { expect, onTestFinished, test, vi } from 'vitest'
import { EventStreams } from '#adapters/mcp/sdk/event-streams.js'

test('a stream that ends leaves no listener on the signal of its connection; one that brought nothing is opened again later each time', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] })
  onTestFinished(() => void vi.useRealTimers())
  const headers = { 'content-type': 'text/event-stream' }
  const streams = new EventStreams(() => Promise.resolve(new Response('retry: 0\n\n', { headers })))
  const { signal } = new AbortController()
  const waits: number[] = []
  for (let round = 0; round < 8; round++) {
    await (await streams.fetch('http://any.invalid/mcp', { signal })).text()
    const ended = Date.now()
    streams.reopen(() => void waits.push(Date.now() - ended), 0)
    await vi.advanceTimersToNextTimerAsync()
  }
  expect(getEventListeners(signal, 'abort')).toEqual([])
  expect(waits).toEqual([2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000])
})
