import fc from 'fast-check'
import { Agent } from 'undici'
import { expect, test, vi } from 'vitest'
import { defineTool, memoryLog } from 'thinharness'
import type { RunEvent } from 'thinharness'
import { fallback } from 'thinharness/models'
import { openai } from 'thinharness/providers'
import { rounds } from '../../support/length.js'
import { expectValidRequest } from '../../support/request-schemas.js'
import { expectedAt, SocketStage } from './socket-stage.js'
import type { Deed } from './socket-stage.js'

test('a run has one connection, and each request holds the new entries only', async () => {
  await using stage = await SocketStage.open(3)
  expect((await stage.harness().run('Go.')).text).toBe('Done.')

  const [first, second, third] = stage.requests.map(({ body }) => body)
  expect(first).toMatchObject({ type: 'response.create', model: 'gpt-5.5', store: false, input: [{ role: 'user' }] })
  expect(first).not.toHaveProperty('stream')
  expect(first).not.toHaveProperty('previous_response_id')
  expect(second).toMatchObject({ previous_response_id: 'resp_0001', input: [{ type: 'function_call_output' }] })
  expect(third).toMatchObject({ previous_response_id: 'resp_0002', input: [{ type: 'function_call_output' }] })
  expect(stage.requests.map(({ conversation }) => conversation)).toEqual([0, 1, 2].map(expectedAt))
  expect(stage.server.opened).toBe(1)
  await stage.server.idle()
  for (const {
    body: { type, ...body },
  } of stage.requests) {
    expect(type).toBe('response.create')
    expectValidRequest('openai-responses', body)
  }
})

test('replies are streamed to readers', async () => {
  await using stage = await SocketStage.open(2)
  const run = stage.harness().stream('Go.', { deltas: true })
  let text = ''
  for await (const event of run) if (event.kind === 'text_delta') text += event.text
  expect(text).toBe('Done.')
  expect(stage.requests.map(({ over }) => over)).toEqual(['websocket', 'websocket'])
})

test('turn 200 sends at most twice the bytes of turn 2', async () => {
  await using stage = await SocketStage.open(200)
  await stage.harness().run('Go.')
  const bytes = stage.requests.map((each) => each.bytes)
  expect(bytes).toHaveLength(200)
  expect(bytes[199]! / bytes[1]!).toBeLessThanOrEqual(2)
  expect(stage.server.opened).toBe(1)
})

test('a connection that is lost in mid-reply withdraws its text, and the whole conversation is sent over a new one', async () => {
  await using stage = await SocketStage.open(2, ['answers', 'cuts_midway'])
  const run = stage.harness().stream('Go.', { deltas: true })
  const events: RunEvent[] = []
  for await (const event of run) events.push(event)

  const retries = events.flatMap((event) => (event.kind === 'transport_retry' ? [event] : []))
  expect(retries).toMatchObject([{ failure: 'connection', status: null, withdrawn: true }])
  expect(events.filter(({ kind }) => kind === 'deltas_withdrawn')).toHaveLength(1)
  expect(stage.requests.map(({ conversation }) => conversation)).toEqual([0, 1, 1].map(expectedAt))
  expect(stage.requests[2]!.body).not.toHaveProperty('previous_response_id')
  expect(stage.server.opened).toBe(2)
  expect((await run.result).text).toBe('Done.')
})

test('a lost connection is `connection` for the caller when no retry is left', async () => {
  await using stage = await SocketStage.open(2, ['cuts_midway'])
  const failed = stage.harness({}, { maxRetries: 0 }).run('Go.')
  await expect(failed).rejects.toMatchObject({ code: 'provider_error', failure: 'connection', retryable: true })
})

test.each<[Deed, readonly string[]]>([
  ['forgets', ['websocket', 'websocket', 'websocket']],
  ['closes_after', ['websocket', 'websocket', 'websocket']],
  ['is_too_old', ['websocket', 'websocket', 'websocket', 'websocket']],
  ['is_full', ['websocket', 'websocket', 'websocket', 'websocket']],
])('a server that %s gets the whole conversation with the next request', async (deed, over) => {
  await using stage = await SocketStage.open(3, deed === 'closes_after' ? [deed] : ['answers', deed])
  const result = await stage.harness({}, { maxRetries: 1 }).run('Go.')
  expect(result.text).toBe('Done.')
  expect(stage.requests.map((each) => each.over)).toEqual(over)
  const answered = stage.requests.filter((each) => each.deed === 'answers' || each.deed === 'closes_after')
  expect(answered.map(({ conversation }) => conversation)).toEqual([0, 1, 2].map(expectedAt))
})

test('a server without WebSockets is asked over HTTP, for the whole run', async () => {
  await using stage = await SocketStage.open(3, [], 1)
  expect((await stage.harness().run('Go.')).text).toBe('Done.')
  expect(stage.requests.map(({ over }) => over)).toEqual(['http', 'http', 'http'])
  expect(stage.requests.map(({ conversation }) => conversation)).toEqual([0, 1, 2].map(expectedAt))
  for (const { body } of stage.requests) expectValidRequest('openai-responses', body)
})

test('after random losses each request that is answered continues the right conversation', async () => {
  const deed = fc.constantFrom<Deed>(
    ...(['answers', 'answers', 'cuts_before', 'cuts_midway', 'closes_after'] as const),
    ...(['forgets', 'is_full', 'is_too_old', 'refuses_next'] as const),
  )
  const { numRuns, ...seed } = rounds(16)
  // Each cut in a row waits twice as long.
  const deeds = fc.array(deed, { minLength: 4, maxLength: 7 }).filter((each) => !/cuts\w+,cuts/.test(each.join()))
  const schedules = fc.sample(deeds, { numRuns, ...seed })
  await Promise.all(
    schedules.map(async (deeds, index) => {
      await using stage = await SocketStage.open(5, deeds)
      const run = stage.harness().stream('Go.', { deltas: index % 2 === 0 })
      const told = deeds.join(', ')
      expect((await run.result).text, told).toBe('Done.')
      const turns = stage.requests.map(({ conversation }) => (conversation.length - 1) / 2)
      for (const [at, { conversation }] of stage.requests.entries())
        expect(conversation, `${told}: request ${at + 1}`).toEqual(expectedAt(turns[at]!))
      // A request is repeated or the next one: no turn is left out.
      expect([...new Set(turns)], told).toEqual([0, 1, 2, 3, 4])
      await stage.server.idle()
    }),
  )
})

test('an aborted request closes its connection', async () => {
  await using stage = await SocketStage.open(2, ['answers'])
  const controller = new AbortController()
  stage.onRequest = () => controller.abort()
  await expect(stage.harness().run('Go.', { signal: controller.signal })).rejects.toMatchObject({ code: 'cancelled' })
  await stage.server.idle()
})

test('a run that waits for a person holds no connection', async () => {
  await using stage = await SocketStage.open(2)
  const lookup = defineTool({
    name: 'lookup',
    description: 'Looks it up.',
    parameters: { type: 'object' },
    requiresApproval: true,
    handler: () => 'found',
  })
  const harness = stage.harness({ tools: [lookup], log: memoryLog() })
  const paused = await harness.run('Go.')
  if (paused.status !== 'paused') return expect.fail('The run must wait for an approval.')
  await stage.server.idle()
  const done = await harness.resume(paused.resumeState, [{ callId: paused.pending[0].callId, approved: true }])
  expect(done.text).toBe('Done.')
  expect(stage.requests.map(({ conversation }) => conversation)).toEqual([0, 1].map(expectedAt))
  expect(stage.server.opened).toBe(2)
  await stage.server.idle()
})

test('a server that says nothing is a timeout, and its connection is closed', async () => {
  await using stage = await SocketStage.open(2, ['is_silent'])
  const failed = stage.harness({}, { maxRetries: 0, timeouts: { firstByteMs: 30 } }).run('Go.')
  await expect(failed).rejects.toMatchObject({ code: 'provider_error', failure: 'timeout' })
  await stage.server.idle()
})

test('a connection that is nearly an hour old is replaced before the next request', async () => {
  await using stage = await SocketStage.open(3)
  const now = performance.now.bind(performance)
  let offset = 0
  vi.spyOn(performance, 'now').mockImplementation(() => now() + offset)
  const lookup = defineTool({
    name: 'lookup',
    description: 'Looks it up.',
    parameters: { type: 'object' },
    handler: () => {
      offset = 56 * 60_000
      return 'found'
    },
  })
  await stage.harness({ tools: [lookup] }).run('Go.')
  vi.restoreAllMocks()
  expect(stage.requests.map(({ conversation }) => conversation)).toEqual([0, 1, 2].map(expectedAt))
  expect(stage.server.opened).toBe(2)
})

test('the handshake goes over the dispatcher of the caller', async () => {
  await using stage = await SocketStage.open(1)
  const agent = new Agent()
  const dispatch = vi.spyOn(agent, 'dispatch')
  await stage.harness({}, { dispatcher: agent }).run('Go.')
  expect(dispatch).toHaveBeenCalledOnce()
  expect(stage.requests.map(({ over }) => over)).toEqual(['websocket'])
  await agent.close()
})

test('as a candidate of a fallback it is asked again after a lost connection, and gives it back at the end', async () => {
  await using stage = await SocketStage.open(3, ['answers', 'cuts_midway'])
  const result = await stage.harness({ model: fallback([stage.model()]) }).run('Go.')
  expect(result.text).toBe('Done.')
  expect(stage.requests.map(({ conversation }) => conversation)).toEqual([0, 1, 1, 2].map(expectedAt))
  await stage.server.idle()
})

test('`connect` opens one connection, which the first run takes', async () => {
  await using stage = await SocketStage.open(2)
  const harness = stage.harness()
  await harness.connect()
  expect([stage.server.opened, stage.requests.length]).toEqual([1, 0])
  await harness.run('Go.')
  expect(stage.server.opened).toBe(1)
  await stage.server.idle()
  await harness.run('Go.')
  expect(stage.server.opened).toBe(2)
})

test('a connection that was opened ahead is closed if no run takes it', async () => {
  await using stage = await SocketStage.open(2)
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  await stage.harness().connect()
  expect(stage.server.open).toBe(1)
  vi.advanceTimersByTime(60_000)
  vi.useRealTimers()
  await stage.server.idle()
})

test.each(['client', 'fetch'] as const)('`transport` excludes `%s`', (name) => {
  const client = { responses: { create: () => Promise.resolve({}) } }
  const other = name === 'client' ? { client } : { fetch: globalThis.fetch }
  expect(() => openai('gpt-5.5', { transport: 'websocket', ...other })).toThrow(`without \`${name}\``)
})
