import { expect, onTestFinished, test, vi } from 'vitest'
import { memoryLog } from 'thinharness'
import { Sessions } from 'thinharness/session'
import { ScriptedModel } from 'thinharness/testing'
import { createHandlers, toSse } from 'thinharness/ui'
import type { HandlerOptions } from 'thinharness/ui'
import { followRun, reduceChat } from 'thinharness/ui/client'
import type { ChatSnapshot } from 'thinharness/ui/client'
import { sseBody } from '#adapters/ui/http/sse-body.js'
import { harnessOf } from '../../harness/support.js'
import { gate } from '../../session/support.js'
import { collect } from '../../support/collect.js'

const URL_OF_RUN = 'http://localhost/api/runs/r1/events'

/** A run whose reply waits in its middle until `release`, followed by handlers. */
async function halfRun(options: Partial<HandlerOptions> = {}) {
  const { opened, open: release } = gate()
  const { opened: reached, open: reach } = gate()
  const log = memoryLog()
  const model = new ScriptedModel().replies(async (request) => {
    request.options.onDelta?.({ kind: 'text_delta', text: 'One ' })
    reach()
    await opened
    return 'Two.'
  })
  const harness = harnessOf({ model, log })
  onTestFinished(() => harness.close())
  const handlers = createHandlers({ harness, log, ...options })
  const stream = harness.stream('Hi.', { runId: 'r1', metadata: { conversation_id: 't1' } })
  return { log, harness, release, reached, stream, ...handlers }
}

test('SS-17 a stream begins with the time of reconnecting; a comment is sent when nothing comes', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
  onTestFinished(() => void vi.useRealTimers())
  const never = { next: () => new Promise<IteratorResult<string>>(() => undefined) }
  const reader = sseBody(never, { preamble: 'retry: 2000\n: thinharness\n\n' }).getReader()
  const decoder = new TextDecoder()
  const next = async (): Promise<string> => decoder.decode((await reader.read()).value)
  expect(await next()).toBe('retry: 2000\n: thinharness\n\n')
  let comment: string | null = null
  const waiting = next().then((text) => (comment = text))
  await vi.advanceTimersByTimeAsync(14_999)
  expect(comment).toBe(null)
  await vi.advanceTimersByTimeAsync(1)
  await waiting
  expect(comment).toBe(': alive\n\n')
})

test('SS-20 ?wait= answers with what there is as JSON, and waits if there is nothing', async () => {
  const { events, stream, reached, release, log } = await halfRun()
  const done = collect(stream)
  await reached
  // A store takes its time.
  const read = log.read.bind(log)
  vi.spyOn(log, 'read').mockImplementation(async function* (...place) {
    await new Promise((resolve) => setTimeout(resolve, 3))
    for await (const event of read(...place)) yield event
  })
  const first = await events(new Request(`${URL_OF_RUN}?wait=0`))
  expect(first.headers.get('x-cursor')).toBe('2')
  expect(first.headers.get('x-end')).toBe(null)
  expect(await first.json()).toMatchObject([{ kind: 'run_started' }, { kind: 'model_request_started' }])
  const nothing = await events(new Request(`${URL_OF_RUN}?wait=0&after=2`))
  expect([nothing.headers.get('x-cursor'), await nothing.json()]).toEqual(['2', []])
  release()
  await done
  const rest = await events(new Request(`${URL_OF_RUN}?wait=10&after=2`))
  expect([rest.headers.get('x-cursor'), rest.headers.get('x-end')]).toEqual(['4', 'completed'])
  expect(await rest.json()).toMatchObject([{ kind: 'model_message' }, { kind: 'run_completed' }])
  const refused = await events(new Request(`${URL_OF_RUN}?wait=x`))
  expect([refused.status, await refused.json()]).toMatchObject([400, { code: 'invalid_request' }])
})

test('SS-20 ?wait= holds the answer until something comes', async () => {
  const { harness, log } = await halfRun()
  const model = new ScriptedModel().says('Hello.')
  const sessions = new Sessions({ log, harness: harnessOf({ model }) })
  onTestFinished(() => sessions.close())
  const { events, requests } = createHandlers({ sessions })
  const body = JSON.stringify({ text: 'Hi.', messageId: 'm1' })
  const sent = await requests(new Request('http://localhost/api/threads/t2/messages', { method: 'POST', body }))
  const { runId } = (await sent.json()) as { readonly runId: string }
  const seen: unknown[] = []
  let [cursor, asked] = ['0', 0]
  for (let end: string | null = null; end === null; asked++) {
    const answer = await events(new Request(`http://localhost/api/runs/${runId}/events?wait=20&after=${cursor}`))
    if (answer.status === 204) break
    cursor = answer.headers.get('x-cursor') ?? cursor
    end = answer.headers.get('x-end')
    seen.push(...((await answer.json()) as unknown[]))
  }
  const kinds = seen.map((event) => (event as { readonly kind: string }).kind)
  expect(kinds).toEqual(['run_started', 'model_request_started', 'model_message', 'run_completed'])
  // No answer without an event: a client does not ask in circles while a reply arrives.
  expect(asked).toBeLessThanOrEqual(5)
  await harness.close()
})

test('SS-21 a connection is closed after maxStreamMs, and its client loses nothing by it', async () => {
  const { events, stream, release, reached } = await halfRun({ maxStreamMs: 30 })
  const done = collect(stream)
  await reached
  let asked = 0
  const fetched = ((url: string, init?: RequestInit) => {
    asked += 1
    if (asked === 2) release()
    return events(new Request(url, init))
  }) as typeof fetch
  let snapshot: ChatSnapshot | undefined
  for await (const event of followRun(URL_OF_RUN, { fetch: fetched })) snapshot = reduceChat(snapshot, event)
  await done
  expect(asked).toBeGreaterThan(1)
  expect(snapshot?.runs[0]).toMatchObject({ status: 'completed', entries: [{ role: 'assistant' }] })
})

test('XL-05 a stream whose source breaks off does not end cleanly', async () => {
  const { stream, release } = await halfRun()
  release()
  const all = await collect(stream)
  async function* broken() {
    yield* all.slice(0, 2)
    await Promise.resolve()
    throw new Error('The disk is full.')
  }
  await expect(new Response(toSse(broken())).text()).rejects.toThrow('The disk is full.')
  const text = await new Response(toSse(all)).text()
  expect(text.match(/^event: end$/gm)).toHaveLength(1)
  expect(text.trimEnd().split('\n\n').at(-1)).toMatch(/^event: end\n/)
})
