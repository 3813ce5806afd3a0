import { NO_TOKENS } from '#contracts/entry.js'
import { afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { HarnessError } from 'thinharness'
import type { Model, StreamEvent } from 'thinharness'
import { fallback, limited } from 'thinharness/models'
import type { LimitedOptions } from 'thinharness/models'
import { anthropic, openai } from 'thinharness/providers'
import { ScriptedModel } from 'thinharness/testing'
import { eventsOf, failureOf, harnessOf, ofKind, tool } from '../harness/support.js'

/** A model that answers when it is told to, and counts its requests. */
class Held implements Model {
  readonly provider = 'held'
  readonly id = 'held-1'
  readonly capabilities = {}
  active = 0
  most = 0
  readonly asked: string[] = []
  readonly at: number[] = []
  readonly #answers: (() => void)[] = []
  readonly #isHeld: boolean
  readonly #tokens: number

  constructor({ isHeld = false, tokens = 10 } = {}) {
    this.#isHeld = isHeld
    this.#tokens = tokens
  }

  openSession: Model['openSession'] = (run) => ({
    turn: async () => {
      this.asked.push(run?.labels['name'] ?? '')
      this.at.push(Date.now())
      this.active += 1
      this.most = Math.max(this.most, this.active)
      if (this.#isHeld) await new Promise<void>((resolve) => this.#answers.push(resolve))
      this.active -= 1
      const usage = {
        ...NO_TOKENS,
        inputTokens: this.#tokens,
      }
      const call = { type: 'tool_call', callId: `c${this.asked.length}`, name: 'look', arguments: '{}' } as const
      const isLast =
        run?.labels['turns'] === undefined ||
        this.asked.filter((name) => name === run.labels['name']).length >= Number(run.labels['turns'])
      const parts = isLast ? [{ type: 'text', text: 'Done.' } as const] : [call]
      const said = { provider: 'held', model: 'held-1', finishReason: isLast ? 'stop' : 'tool_calls', usage } as const
      return { entry: { role: 'assistant', parts, ...said } }
    },
  })

  answer(): void {
    this.#answers.shift()?.()
  }
}

/** Everything that is not waiting for a time has happened. */
async function settled(): Promise<void> {
  for (let round = 0; round < 50; round++) await new Promise(setImmediate)
}

async function elapse(ms: number): Promise<void> {
  await settled()
  await vi.advanceTimersByTimeAsync(ms)
  await settled()
}

// What a run loads when it is first needed is loaded.
beforeAll(async () => {
  const provider = answering([{ status: 429, headers: { 'retry-after': '0' } }])
  for (const make of [openai, anthropic]) await runOf(make('claude-sonnet-5', { apiKey: 'k', fetch: provider.fetch }))
  await eventsOf(
    harnessOf({ model: new ScriptedModel().calls('look').says('Done.'), tools: [tool('look')] }).stream('Go.'),
  )
})
beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] }))
afterEach(() => void vi.useRealTimers())

const runOf = (model: Model, labels: Record<string, string> = {}): Promise<unknown> =>
  harnessOf({ model, tools: [tool('look')] }).run('Go.', { labels })

describe('a limit', () => {
  test('of requests at once lets the next one through when one has ended', async () => {
    const inner = new Held({ isHeld: true })
    const model = limited(inner, { concurrency: 2 })
    const runs = ['a', 'b', 'c', 'd', 'e'].map((name) => runOf(model, { name }))
    await settled()
    expect([inner.active, inner.asked.length]).toEqual([2, 2])
    for (let round = 0; round < 5; round++) {
      inner.answer()
      await settled()
    }
    await Promise.all(runs)
    expect([inner.most, inner.asked]).toEqual([2, ['a', 'b', 'c', 'd', 'e']])
  })

  test('of requests per minute holds in every minute, whatever its beginning', async () => {
    const inner = new Held()
    const model = limited(inner, { requestsPerMinute: 3 })
    const began = Date.now()
    const runs = Promise.all(Array.from({ length: 8 }, () => runOf(model)))
    await elapse(180_000)
    await runs
    const seconds = inner.at.map((at) => Math.floor((at - began) / 1000))
    expect(seconds).toEqual([0, 0, 0, 60, 60, 60, 120, 120])
  })

  test('of tokens per minute counts what replies have used, and lets a request that is larger through alone', async () => {
    const inner = new Held({ tokens: 900 })
    const model = limited(inner, { tokensPerMinute: 1000, concurrency: 1 })
    const began = Date.now()
    const runs = Promise.all([runOf(model), runOf(model), runOf(model)])
    await elapse(180_000)
    await runs
    expect(inner.at.map((at) => Math.round((at - began) / 1000))).toEqual([0, 60, 120])
    const large = limited(inner, { tokensPerMinute: 1 })
    await runOf(large)
    expect(inner.asked).toHaveLength(4)
  })

  test('is shared fairly: a run that comes later does not wait for all turns of the others', async () => {
    const inner = new Held({ isHeld: true })
    const model = limited(inner, { concurrency: 1 })
    const runs = [runOf(model, { name: 'a', turns: '4' }), runOf(model, { name: 'b', turns: '4' })]
    await settled()
    runs.push(runOf(model, { name: 'c' }))
    await settled()
    for (let round = 0; round < 9; round++) {
      inner.answer()
      await settled()
    }
    await Promise.all(runs)
    expect(inner.asked.slice(0, 3).sort()).toEqual(['a', 'b', 'c'])
    expect(inner.asked.filter((name) => name === 'a')).toHaveLength(4)
  })

  test('a wait is told to readers with its reason and how long it takes, and an abort ends it', async () => {
    const inner = new Held({ isHeld: true })
    const model = limited(inner, { requestsPerMinute: 1 })
    const first = runOf(model)
    await settled()
    const controller = new AbortController()
    const stream = harnessOf({ model }).stream('Go.', { signal: controller.signal })
    const events: StreamEvent[] = []
    const reading = (async () => {
      for await (const event of stream) events.push(event)
    })().catch((error: unknown) => error)
    await settled()
    expect(ofKind(events, 'request_waiting')).toMatchObject([{ reason: 'rate_limit', ms: 60_000 }])
    controller.abort(new Error('Enough.'))
    await elapse(1_000)
    expect(await reading).toBeInstanceOf(Error)
    inner.answer()
    await first
    expect(inner.asked).toHaveLength(1)
    // Who has gone takes no place.
    await elapse(60_000)
    const third = runOf(model)
    await settled()
    inner.answer()
    await third
  })

  test('a request that would wait for longer than `maxWaitMs` fails, and a fallback goes on', async () => {
    const inner = new Held()
    const model = limited(inner, { requestsPerMinute: 1, maxWaitMs: 1_000 })
    await runOf(model)
    const error = await failureOf(harnessOf({ model }).run('Go.'))
    expect([error.failure, error.retryAfterMs]).toEqual(['rate_limit', 60_000])
    const other = new ScriptedModel().says('Other.')
    expect((await harnessOf({ model: fallback([model, other]) }).run('Go.')).text).toBe('Other.')
  })
})

/** `rate-limiter-flexible`: counts points per key, and rejects with the time until there are more. */
class Points {
  readonly taken = new Map<string, number>()
  readonly #points: number
  readonly #durationMs: number

  constructor(points: number, durationMs: number) {
    this.#points = points
    this.#durationMs = durationMs
  }

  async consume(key: string, points = 1): Promise<{ readonly msBeforeNext: number; readonly remainingPoints: number }> {
    const taken = (this.taken.get(key) ?? 0) + points
    if (taken === points) setTimeout(() => this.taken.delete(key), this.#durationMs)
    this.taken.set(key, taken)
    const answer = { msBeforeNext: this.#durationMs, remainingPoints: Math.max(0, this.#points - taken) }
    // It rejects with an object that is no error.
    if (taken > this.#points) throw answer as unknown as Error
    return Promise.resolve(answer)
  }
}

describe('a shared store of limits', () => {
  test('counts over all that use it, and a request waits as long as it says', async () => {
    const [inner, store] = [new Held(), new Points(2, 10_000)]
    const [one, two] = [limited(inner, { store }), limited(inner, { store })]
    const runs = Promise.all([runOf(one), runOf(two), runOf(one)])
    await settled()
    expect(inner.asked).toHaveLength(2)
    await elapse(10_000)
    await runs
    expect([...store.taken.keys()]).toEqual(['held:held-1:requests'])
  })

  test('has one for requests and one for tokens', async () => {
    const store = { requests: new Points(9, 1_000), tokens: new Points(1_000_000, 1_000) }
    await runOf(limited(new Held(), { store }))
    expect([...store.requests.taken.values()]).toEqual([1])
    expect([...store.tokens.taken.values()][0]).toBeGreaterThan(200)
  })

  test('that fails lets requests through, with a warning', async () => {
    const store = { consume: () => Promise.reject(new Error('ECONNREFUSED')) }
    const model = limited(new ScriptedModel().says('Done.'), { store })
    const events = await eventsOf(harnessOf({ model }).stream('Go.'))
    expect(ofKind(events, 'warning')[0]?.message).toContain('so requests are not counted: ECONNREFUSED')
    expect(ofKind(events, 'run_completed')).toHaveLength(1)
  })
})

/** A provider that answers with these headers. */
function answering(replies: readonly { readonly status?: number; readonly headers: Record<string, string> }[]): {
  readonly fetch: typeof fetch
  readonly at: number[]
} {
  const at: number[] = []
  const answer = (): Promise<Response> => {
    const { status = 200, headers } = replies[at.length] ?? { headers: {} }
    at.push(Date.now())
    const body = {
      ...{ id: 'r', object: 'response', status: 'completed', model: 'gpt-5.5', type: 'message', role: 'assistant' },
      output: [
        {
          type: 'message',
          id: 'm',
          role: 'assistant',
          status: 'completed',
          content: [{ type: 'output_text', text: 'Done.', annotations: [] }],
        },
      ],
      content: [{ type: 'text', text: 'Done.' }],
      stop_reason: 'end_turn',
      usage: { input_tokens: 10, output_tokens: 5, total_tokens: 15 },
    }
    const error = { error: { message: 'Slow down.', type: 'rate_limit_error' } }
    return Promise.resolve(Response.json(status === 200 ? body : error, { status, headers }))
  }
  return { fetch: answer, at }
}

describe('what a provider tells of its limits', () => {
  test.each<[string, (options: { apiKey: string; fetch: typeof fetch }) => Model, Record<string, string>, number]>([
    [
      'OpenAI: a duration',
      (options) => openai('gpt-5.5', options),
      {
        ...{
          'x-ratelimit-limit-requests': '60',
          'x-ratelimit-remaining-requests': '0',
          'x-ratelimit-reset-requests': '1m0s',
        },
      },
      1,
    ],
    [
      'OpenAI: tokens',
      (options) => openai('gpt-5.5', options),
      {
        ...{
          'x-ratelimit-limit-tokens': '1000',
          'x-ratelimit-remaining-tokens': '0',
          'x-ratelimit-reset-tokens': '100s',
        },
      },
      28,
    ],
    [
      'Anthropic: a time',
      (options) => anthropic('claude-sonnet-5', options),
      {
        ...{
          'anthropic-ratelimit-requests-limit': '50',
          'anthropic-ratelimit-requests-remaining': '0',
          'anthropic-ratelimit-requests-reset': '2026-01-01T00:00:50Z',
        },
      },
      1,
    ],
    [
      'without a limit the whole time is waited for',
      (options) => openai('gpt-5.5', options),
      {
        ...{ 'x-ratelimit-remaining-requests': '0', 'x-ratelimit-reset-requests': '7s' },
      },
      7,
    ],
    [
      'nothing that is understood',
      (options) => openai('gpt-5.5', options),
      { 'x-ratelimit-remaining-requests': 'none' },
      0,
    ],
  ])('%s', async (_, make, headers, seconds) => {
    vi.setSystemTime('2026-01-01T00:00:00Z')
    const provider = answering([{ headers }])
    const model = limited(make({ apiKey: 'k', fetch: provider.fetch }))
    await runOf(model)
    const second = runOf(model)
    await elapse(120_000)
    await second
    const [first = 0, next = 0] = provider.at
    expect(Math.round((next - first) / 1000)).toBe(seconds)
  })

  test('after a refusal nobody else asks until the provider wants to be asked again', async () => {
    const provider = answering([{ status: 429, headers: { 'retry-after': '20' } }])
    const model = limited(openai('gpt-5.5', { apiKey: 'k', fetch: provider.fetch, maxRetries: 0 }), { concurrency: 1 })
    const [first, second] = [failureOf(runOf(model)), runOf(model)]
    await settled()
    expect((await first).failure).toBe('rate_limit')
    await elapse(19_000)
    expect(provider.at).toHaveLength(1)
    await elapse(2_000)
    await second
    expect(provider.at).toHaveLength(2)
  })

  test('a repetition of a request counts as one', async () => {
    const provider = answering([{ status: 500, headers: {} }])
    const model = limited(openai('gpt-5.5', { apiKey: 'k', fetch: provider.fetch }), { requestsPerMinute: 1 })
    const run = runOf(model)
    await elapse(61_000)
    await run
    const [first = 0, next = 0] = provider.at
    expect(next - first).toBeGreaterThanOrEqual(60_000)
  })
})

test.each<[string, LimitedOptions, RegExp]>([
  ['an unknown option', { requestPerMinute: 1 } as never, /`requestsPerMinute`/],
  ['a limit of nothing', { concurrency: 0 }, /concurrency/],
  ['a store without `consume`', { store: 7 as never }, /store/],
])('%s is refused', (_, options, message) => {
  expect(() => limited(new ScriptedModel(), options)).toThrow(HarnessError)
  expect(() => limited(new ScriptedModel(), options)).toThrow(message)
})
