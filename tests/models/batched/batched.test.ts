import { afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { HarnessError, memoryLog } from 'thinharness'
import type { HarnessOptions, LogStore, Model } from 'thinharness'
import { batched, fallback } from 'thinharness/models'
import type { BatchedOptions } from 'thinharness/models'
import { anthropic, gemini, openai, openaiChat } from 'thinharness/providers'
import { ScriptedModel } from 'thinharness/testing'
import { collect } from '../../support/collect.js'
import { failureOf, harnessOf, ofKind } from '../../harness/support.js'
import { BatchServer } from './batch-server.js'

const MAKERS: Readonly<Record<string, (server: BatchServer) => Model>> = {
  responses: ({ fetch }) => openai('gpt-5.5', { apiKey: 'k', fetch, maxRetries: 0 }),
  chat: ({ fetch }) => openaiChat('gpt-4.1', { apiKey: 'k', fetch, maxRetries: 0 }),
  messages: ({ fetch }) => anthropic('claude-sonnet-5', { apiKey: 'k', fetch, maxRetries: 0 }),
}
const apis = Object.entries(MAKERS)
const PRICE = { inputPerMillion: 2, outputPerMillion: 10 }
const PRICES = { prices: { models: { 'gpt-5.5': PRICE, 'gpt-4.1': PRICE, 'claude-sonnet-5': PRICE } } }

/** Everything that is not waiting for a time has happened. */
async function settled(): Promise<void> {
  for (let round = 0; round < 100; round++) await new Promise(setImmediate)
}

async function elapse(seconds: number): Promise<void> {
  for (let second = 0; second < seconds; second++) {
    await settled()
    await vi.advanceTimersByTimeAsync(1_000)
  }
  await settled()
}

async function leap(ms: number): Promise<void> {
  await settled()
  await vi.advanceTimersByTimeAsync(ms)
  await settled()
}

function runsOf(model: Model, count: number, beside: Partial<HarnessOptions> = {}): Promise<string>[] {
  const harness = harnessOf({ model, ...PRICES, ...beside })
  return Array.from({ length: count }, async (_, index) => (await harness.run(`Prompt ${index}`)).text)
}

// What a run loads when it is first needed is loaded.
beforeAll(async () => {
  for (const [, make] of apis) {
    const server = new BatchServer()
    const model = batched(make(server), { maxWaitMs: 0 })
    const controller = new AbortController()
    const run = harnessOf({ model, ...PRICES })
      .run('Go.', { signal: controller.signal })
      .catch(() => undefined)
    await vi.waitFor(() => expect(server.batches.size).toBe(1), 20_000)
    controller.abort()
    await run
  }
})
beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] }))
afterEach(() => void vi.useRealTimers())

/** A run whose process ends while its batch is worked on. */
async function leftWaiting(
  make: (server: BatchServer) => Model,
): Promise<{ readonly log: LogStore; readonly server: BatchServer }> {
  const [log, server] = [memoryLog(), new BatchServer()]
  const leaving = new AbortController()
  const first = harnessOf({ model: batched(make(server)), log, ...PRICES })
  const left = failureOf(first.run('Prompt 7', { runId: 'r', signal: leaving.signal }))
  await leap(5_000)
  leaving.abort(new HarnessError('interrupted', 'The process ends.'))
  await leap(20_000)
  await left
  return { log, server }
}

describe.each(apis)('a batch of %s', (_, make) => {
  const given = (options: BatchedOptions = {}): { readonly server: BatchServer; readonly model: Model } => {
    const server = new BatchServer()
    return { server, model: batched(make(server), options) }
  }

  test('has the requests of concurrent runs, each of which gets its own answer, whatever their order', async () => {
    const { server, model } = given()
    const runs = Promise.all(runsOf(model, 5))
    await leap(5_000)
    await leap(15_000)
    expect(await runs).toEqual([0, 1, 2, 3, 4].map((index) => `Answer to Prompt ${index}`))
    const [batch] = server.batches.values()
    expect([server.batches.size, batch?.requests.length]).toEqual([1, 5])
    expect(batch?.requests.every(({ body }) => !('stream' in body) && typeof body['model'] === 'string')).toBe(true)
  })

  test('costs half, and a limit of money counts it as that', async () => {
    const { model } = given()
    const harness = harnessOf({ model, ...PRICES, limits: { costUsd: 1 } })
    const run = harness.run('Prompt 1')
    await leap(5_000)
    await leap(15_000)
    // 1,000 tokens at $2, 100 at $10 a million.
    expect((await run).usage.costUsd).toBe(0.0015)
    const batch = { inputPerMillion: 1, outputPerMillion: 1 }
    const own = harnessOf({ model, prices: { models: { [model.id]: { ...PRICE, batch } } }, limits: { costUsd: 1 } })
    const second = own.run('Prompt 1')
    await leap(5_000)
    await leap(15_000)
    expect((await second).usage.costUsd).toBe(0.0011)
  })

  test('is submitted at once when it is full, and asked for every 15 s at first, then less often', async () => {
    const { server, model } = given({ maxRequests: 2, maxWaitMs: 60_000 })
    server.questions = 12
    const runs = Promise.all(runsOf(model, 2))
    await settled()
    const begun = Date.now()
    await elapse(400)
    await runs
    const seconds = server.asked.map((at) => Math.round((at - begun) / 1_000))
    expect(seconds.slice(0, 8)).toEqual([15, 30, 45, 60, 75, 90, 105, 120])
    const waits = seconds.map((at, index) => at - (seconds[index - 1] ?? 0)).slice(7)
    expect(waits).toEqual([...waits].sort((a, b) => a - b))
    expect(waits.at(-1)).toBeGreaterThan(40)
  })

  test.each<[string, BatchServer['outcomes'][number][number], string | undefined]>([
    [
      'a request that was wrong',
      { refused: { status: 400, type: 'invalid_request_error', message: 'Wrong.' } },
      'invalid',
    ],
    ['too many requests', { refused: { status: 429, type: 'rate_limit_error', message: 'Slow.' } }, 'rate_limit'],
    ['an overloaded provider', { refused: { status: 529, type: 'overloaded_error', message: 'Busy.' } }, 'overloaded'],
    ['a provider that failed', { refused: { status: 500, type: 'api_error', message: 'Oops.' } }, 'server'],
    ['an expired batch', { end: 'expired' }, 'timeout'],
    ['a cancelled batch', { end: 'canceled' }, 'unknown'],
    ['a result that is missing', { end: 'missing' }, 'server'],
  ])('%s is a failure of that request alone', async (_case, outcome, failure) => {
    const { server, model } = given()
    server.outcomes.push([outcome])
    const [first, second] = runsOf(model, 2)
    const failed = failureOf(first ?? Promise.resolve())
    await leap(5_000)
    await leap(15_000)
    expect((await failed).failure).toBe(failure)
    expect(await second).toBe('Answer to Prompt 1')
  })

  test('an abort before it was submitted takes the request out, and one later cancels a batch that nobody waits for', async () => {
    const { server, model } = given()
    const harness = harnessOf({ model, ...PRICES })
    const [early, one, other] = [new AbortController(), new AbortController(), new AbortController()]
    const ended = [early, one, other].map(({ signal }, index) => failureOf(harness.run(`Prompt ${index}`, { signal })))
    await settled()
    early.abort()
    await leap(5_000)
    const [batch] = server.batches.values()
    expect(batch?.requests).toHaveLength(2)
    one.abort()
    await settled()
    expect(server.cancelled).toEqual([])
    other.abort()
    await settled()
    expect(server.cancelled).toEqual([...server.batches.keys()])
    expect((await Promise.all(ended)).map(({ code }) => code)).toEqual(['cancelled', 'cancelled', 'cancelled'])
    const asked = server.asked.length
    await leap(600_000)
    expect(server.asked).toHaveLength(asked)
  })

  test('a process may end: another one asks for the same batch, and submits nothing', async () => {
    const { log, server } = await leftWaiting(make)
    expect(server.cancelled).toEqual([])
    const events = await collect(log.read({ kind: 'run', id: 'r' }))
    const [submitted] = ofKind(events as never[], 'request_submitted' as never) as unknown as { readonly id: string }[]
    expect(submitted?.id).toMatch(/^batch_\d+\/r-/)
    const second = harnessOf({ model: batched(make(server)), log, ...PRICES }).recover('r')
    await leap(15_000)
    expect((await second).text).toBe('Answer to Prompt 7')
    expect(server.batches.size).toBe(1)
  })

  test('that the provider has no more is submitted again', async () => {
    const { log, server } = await leftWaiting(make)
    server.batches.clear()
    const second = harnessOf({ model: batched(make(server)), log, ...PRICES }).recover('r')
    await leap(15_000)
    await leap(5_000)
    await leap(15_000)
    expect((await second).text).toBe('Answer to Prompt 7')
  })

  test('a question that fails is asked again, and one that the provider refuses fails the requests', async () => {
    const { server, model } = given()
    const run = Promise.all(runsOf(model, 1))
    await leap(5_000)
    server.failures.push(Response.json({ error: { message: 'Oops.' } }, { status: 500 }))
    await leap(15_000)
    await leap(15_000)
    expect(await run).toEqual(['Answer to Prompt 0'])
    const refused = failureOf(runsOf(model, 1)[0] ?? Promise.resolve())
    await leap(5_000)
    server.failures.push(Response.json({ error: { message: 'No.', type: 'authentication_error' } }, { status: 401 }))
    await leap(15_000)
    expect((await refused).failure).toBe('auth')
  })

  test('that cannot be begun fails its requests with what the provider says', async () => {
    const { server, model } = given()
    server.failures.push(Response.json({ error: { message: 'No.', type: 'authentication_error' } }, { status: 401 }))
    const failed = Promise.all(runsOf(model, 2).map((run) => failureOf(run)))
    await leap(5_000)
    expect((await failed).map(({ failure }) => failure)).toEqual(['auth', 'auth'])
  })
})

test('an expired request is asked for again in another batch as often as the model repeats, or by a fallback’s next', async () => {
  const server = new BatchServer()
  server.outcomes.push([{ end: 'expired' }])
  const model = batched(openai('gpt-5.5', { apiKey: 'k', fetch: server.fetch, maxRetries: 1 }), { maxWaitMs: 0 })
  const [run] = runsOf(model, 1)
  await leap(1_000)
  await leap(15_000)
  await leap(2_000)
  await leap(15_000)
  expect(await run).toBe('Answer to Prompt 0')
  expect(server.batches.size).toBe(2)
  server.outcomes.push([{ end: 'expired' }])
  const other = fallback([model, new ScriptedModel().says('At once.')], { retries: 0 })
  const [second] = runsOf(other, 1)
  await leap(1_000)
  await leap(15_000)
  expect(await second).toBe('At once.')
})

test.each([
  ['token_limit_exceeded', 'rate_limit'],
  ['invalid_json_line', 'invalid'],
])('a batch that OpenAI refuses as a whole (%s) is a failure `%s` of each request', async (code, failure) => {
  const server = new BatchServer()
  server.refusal = { code, message: 'Not this one.' }
  const model = batched(openai('gpt-5.5', { apiKey: 'k', fetch: server.fetch, maxRetries: 0 }))
  const failed = failureOf(runsOf(model, 1)[0] ?? Promise.resolve())
  await leap(5_000)
  await leap(15_000)
  const error = await failed
  expect([error.failure, error.message]).toEqual([failure, 'The provider has refused the batch: Not this one.'])
})

test('replies are streamed to readers as one delta', async () => {
  const server = new BatchServer()
  const model = batched(anthropic('claude-sonnet-5', { apiKey: 'k', fetch: server.fetch }))
  const events = collect(harnessOf({ model, ...PRICES }).stream('Prompt 3', { deltas: true }))
  await leap(5_000)
  await leap(15_000)
  const texts = (await events).flatMap((event) => (event.kind === 'text_delta' ? [event.text] : []))
  expect(texts).toEqual(['Answer to Prompt 3'])
})

test.each<[string, () => unknown, RegExp]>([
  ['a model of several', () => batched(fallback(['openai:gpt-5.5'])), /expected a model of `openai`/],
  ['a program', () => batched(new ScriptedModel()), /expected a model of `openai`/],
  [
    'an API without batches that are known',
    () => batched(gemini('gemini-3-pro', { apiKey: 'k' })),
    /its requests go to/,
  ],
  ['a client', () => batched(openai('gpt-5.5', { client: { responses: { create: () => undefined } } })), /`client`/],
  ['an unknown option', () => batched('openai:gpt-5.5', { maxWait: 1 } as never), /`maxWaitMs`/],
])('%s is refused', (_, make, message) => expect(make).toThrow(message))
