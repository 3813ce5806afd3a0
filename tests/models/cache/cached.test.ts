import { NO_TOKENS } from '#contracts/entry.js'
import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { HarnessError, memoryLog } from 'thinharness'
import type { HarnessOptions, Model, ModelTurn, RunOptions } from 'thinharness'
import { cached, fallback, limited, memoryCache, sqliteCache } from 'thinharness/models'
import type { CachedOptions, ReplyStore } from 'thinharness/models'
import { openai } from 'thinharness/providers'
import { ScriptedModel, scriptedProvider } from 'thinharness/testing'
import { collect } from '../../support/collect.js'
import { temporaryFolder } from '../../support/folder.js'
import { eventsOf, failureOf, harnessOf, ofKind, tool } from '../../harness/support.js'

const PRICE = { inputPerMillion: 100, outputPerMillion: 200 }

/** A model that gives its replies one after the other, and the last one again and again; what it was asked is counted. */
type Reply = Partial<ModelTurn['entry']> & Pick<Partial<ModelTurn>, 'refusal'>

function replying(...replies: readonly Reply[]): Model & {
  asked: number
} {
  const model = {
    ...{ provider: 'test', id: 'test-1', capabilities: {}, asked: 0 },
    openSession: (): ReturnType<Model['openSession']> => ({
      turn: (_view, _constants, { onDelta }) => {
        const { refusal, ...reply } = replies[Math.min(model.asked, replies.length - 1)] ?? {}
        model.asked += 1
        for (const text of ['An ', 'answer.']) onDelta?.({ kind: 'text_delta', text })
        const usage = { ...NO_TOKENS, inputTokens: 9, outputTokens: 4 }
        const native = { provider: 'test', data: { id: 'item_1' } }
        const said: ModelTurn['entry'] = {
          ...{ role: 'assistant', provider: 'test', model: 'test-1', finishReason: 'stop', usage },
          parts: [
            { type: 'reasoning', text: '', native },
            { type: 'text', text: 'An answer.', native },
          ],
          ...reply,
        }
        return Promise.resolve({ entry: said, responseId: 'r_1', ...(refusal !== undefined && { refusal }) })
      },
    }),
  }
  return model
}

const run = (model: Model, prompt = 'Go.', options: RunOptions = {}, beside: Partial<HarnessOptions> = {}) =>
  harnessOf({ model, ...beside }).run(prompt, options)

async function askedTwice(
  first: Parameters<typeof run>,
  second: Parameters<typeof run>,
  beside: Partial<CachedOptions> = {},
): Promise<number> {
  const inner = replying({})
  const model = cached(inner, { store: memoryCache(), ...beside })
  for (const [, ...rest] of [first, second]) await run(model, ...rest)
  return inner.asked
}
const any = replying({})

describe('a hit', () => {
  test('costs nothing, is marked, and has no response id, no reasoning and one delta for its text', async () => {
    const inner = replying({})
    const harness = harnessOf({ model: cached(inner, { store: memoryCache() }), prices: { unknown: PRICE } })
    const first = await harness.run('Go.')
    expect(first.usage.costUsd).toBe(0.0017)
    const events = await eventsOf(harness.stream('Go.', { deltas: true }))
    const [message] = ofKind(events, 'model_message')
    expect(message).toMatchObject({ cached: true, responseId: null, cost: 0 })
    expect(message?.entry).toMatchObject({
      provider: 'test',
      model: 'test-1',
      usage: { inputTokens: 0, outputTokens: 0 },
    })
    expect(message?.entry.parts).toEqual([{ type: 'text', text: 'An answer.' }])
    expect(ofKind(events, 'text_delta').map(({ text }) => text)).toEqual(['An answer.'])
    expect(ofKind(events, 'run_completed')[0]?.usage).toMatchObject({ costUsd: 0, modelRequests: 1 })
    expect(inner.asked).toBe(1)
  })

  test('comes although nothing could be reserved for the request any more', async () => {
    const model = cached(replying({}), { store: memoryCache() })
    await run(model)
    const beside = { prices: { unknown: PRICE }, limits: { costUsd: 0.000_01 } }
    expect((await run(model, 'Go.', {}, beside)).usage.costUsd).toBe(0)
    expect((await failureOf(run(model, 'Something else.', {}, beside))).code).toBe('limit_reached')
  })

  test('is the same for whoever asked at the same time: one request is sent', async () => {
    const inner = replying({})
    const model = cached(inner, { store: memoryCache() })
    const texts = await Promise.all(
      ['Go.', 'Go.', 'Go.', 'Other.'].map(async (prompt) => (await run(model, prompt)).text),
    )
    expect([texts, inner.asked]).toEqual([['An answer.', 'An answer.', 'An answer.', 'An answer.'], 2])
  })

  test('whoever waits for a request of another run that fails asks by itself, and can be aborted', async () => {
    let fail = (): void => undefined
    const replies: Promise<ModelTurn>[] = [
      new Promise((_, reject) => (fail = () => reject(new HarnessError('provider_error', 'No.')))),
    ]
    const answering = replying({}).openSession()
    const turn: typeof answering.turn = (...given) => replies.shift() ?? answering.turn(...given)
    const model = cached({ ...any, openSession: () => ({ turn }) }, { store: memoryCache() })
    const first = failureOf(run(model))
    const second = run(model)
    const controller = new AbortController()
    const third = failureOf(run(model, 'Go.', { signal: controller.signal }))
    await vi.waitFor(() => expect(replies).toHaveLength(0))
    controller.abort()
    expect((await third).code).toBe('cancelled')
    fail()
    expect((await first).code).toBe('provider_error')
    expect((await second).text).toBe('An answer.')
  })
})

describe('a reply is asked for again when something differs that shapes it', () => {
  const look = tool('look')
  test.each<[string, Parameters<typeof run>, number]>([
    ['nothing but ids and times', [any, 'Go.'], 1],
    ['the prompt', [any, 'Go!'], 2],
    ['the instructions', [any, 'Go.', { instructions: 'Be brief.' }], 2],
    ['the tools', [any, 'Go.', {}, { tools: [look] }], 2],
    ['a setting', [any, 'Go.', {}, { settings: { temperature: 0 } }], 2],
    ['the tenant', [any, 'Go.', { labels: { tenant: 'a' } }], 2],
    ['whose conversation it is', [any, 'Go.', { metadata: { resourceId: 'u1' } }], 2],
    ['a label that is no tenant', [any, 'Go.', { labels: { team: 'a' } }], 1],
  ])('%s', async (_, second, count) => {
    expect(await askedTwice([any], second).catch((error: unknown) => (error as HarnessError).code)).toBe(count)
  })

  test('the schema of the answer, and the choice of tools', async () => {
    const inner = replying({})
    const session = cached(inner, { store: memoryCache() }).openSession()
    const view = [{ id: 'e1', at: '', role: 'user' as const, content: [{ type: 'text' as const, text: 'Go.' }] }]
    const constants = { instructions: '', tools: [], structuredOutput: null, settings: {} }
    const structuredOutput = { name: 'answer', schema: { type: 'object' }, strict: false }
    const options = { signal: new AbortController().signal, generation: 0 }
    await session.turn(view, constants, options)
    await session.turn(view, { ...constants, structuredOutput }, options)
    await session.turn(view, constants, { ...options, toolChoice: 'none' })
    await session.turn(view, { ...constants, structuredOutput }, { ...options, maxOutputTokens: 50 })
    expect(inner.asked).toBe(3)
  })

  test('the conversation before, but not the ids of its calls', async () => {
    const inner = replying({})
    const model = cached(inner, { store: memoryCache() })
    const history = (callId: string, result: string) => [
      {
        id: 'e1',
        at: '2026-01-01T00:00:00.000Z',
        role: 'user' as const,
        content: [{ type: 'text' as const, text: 'Look.' }],
      },
      {
        ...{ id: 'e2', at: '2026-01-01T00:00:00.000Z', role: 'assistant' as const, provider: 'x', model: callId },
        parts: [{ type: 'tool_call' as const, callId, name: 'look', arguments: '{}' }],
        ...{
          finishReason: 'tool_calls' as const,
          usage: { ...NO_TOKENS, inputTokens: 1, outputTokens: 1 },
        },
      },
      {
        id: 'e3',
        at: '2026-01-01T00:00:00.000Z',
        role: 'tool' as const,
        callId,
        name: 'look',
        content: result,
        isError: false,
      },
      {
        ...{
          id: 'e4',
          at: '2026-01-01T00:00:00.000Z',
          role: 'assistant' as const,
          provider: 'x',
          model: 'x',
          parts: [{ type: 'text' as const, text: 'So.' }],
        },
        ...{
          finishReason: 'stop' as const,
          usage: { ...NO_TOKENS, inputTokens: 1, outputTokens: 1 },
        },
      },
    ]
    const result = (content: string): string => JSON.stringify({ ok: true, content, metadata: {} })
    await run(model, 'Go.', { history: history('call_1', result('Rain')) })
    await run(model, 'Go.', { history: history('call_abc', result('Rain')) })
    expect(inner.asked).toBe(1)
    await run(model, 'Go.', { history: history('call_1', result('Sun')) })
    expect(inner.asked).toBe(2)
  })

  test('the options that a model was made with, also inside of others', async () => {
    await using provider = await scriptedProvider()
    const store = memoryCache()
    const options = { apiKey: 'any', baseUrl: provider.url.responses }
    const models = [
      openai('gpt-4.1', options),
      openai('gpt-4.1', options),
      openai('gpt-4.1', { ...options, temperature: 0 }),
      openai('gpt-4.1-mini', options),
      fallback([openai('gpt-4.1', options), openai('gpt-4.1', { ...options, temperature: 0 })]),
      fallback([openai('gpt-4.1', options), openai('gpt-4.1', { ...options, temperature: 1 })]),
      limited(openai('gpt-4.1', { ...options, temperature: 0 })),
    ]
    for (const text of ['a', 'c', 'd', 'e', 'f']) provider.says(text)
    const texts: string[] = []
    for (const model of models) texts.push((await run(cached(model, { store }))).text)
    expect(texts).toEqual(['a', 'a', 'c', 'd', 'e', 'f', 'c'])
  })

  test('the scope that a host gives', async () => {
    const scope = ({ labels }: { readonly labels: Readonly<Record<string, string>> }): string => labels['team'] ?? ''
    const team = (name: string): Parameters<typeof run> => [any, 'Go.', { labels: { team: name } }]
    expect(await askedTwice(team('a'), team('b'), { scope })).toBe(2)
    expect(await askedTwice(team('a'), team('a'), { scope })).toBe(1)
  })
})

describe('what is kept', () => {
  const call = { type: 'tool_call', callId: 'c1', name: 'look', arguments: '{}' } as const
  test.each<[string, Reply]>([
    ['a refusal', { refusal: 'I may not.' }],
    ['a refusal by its reason', { finishReason: 'refusal' }],
    ['a reply that was cut', { finishReason: 'length' }],
    ['a filtered one', { finishReason: 'content_filter' }],
    ['an unknown end', { finishReason: 'other' }],
  ])('not %s', async (_, reply) => {
    const inner = replying(reply)
    const model = cached(inner, { store: memoryCache() })
    await run(model).catch(() => undefined)
    const asked = inner.asked
    await run(model).catch(() => undefined)
    expect(inner.asked).toBe(asked * 2)
  })

  test('not an error, and not an empty reply', async () => {
    const inner = new ScriptedModel().fails('No.').says('').says('Yes.').says('Once more.')
    const model = cached(inner, { store: memoryCache() })
    await failureOf(run(model))
    // The empty reply was asked for again.
    expect((await run(model)).text).toBe('Yes.')
    expect((await run(model)).text).toBe('Once more.')
    expect((await run(model)).text).toBe('Once more.')
    inner.assertDone()
  })

  test('calls only if they are asked for: then the tools run again', async () => {
    const called: string[] = []
    const look = tool('look', () => (called.push('look'), 'Rain.'))
    const replies = [{ parts: [call], finishReason: 'tool_calls' as const }, {}]
    const without = replying(...replies, ...replies)
    const model = cached(without, { store: memoryCache() })
    for (const prompt of ['Go.', 'Go.']) await run(model, prompt, {}, { tools: [look] })
    // The second reply of the run is the same in both.
    expect([without.asked, called.length]).toEqual([3, 2])
    const inner = replying(...replies)
    const all = cached(inner, { store: memoryCache(), toolCalls: true })
    for (const prompt of ['Go.', 'Go.']) expect((await run(all, prompt, {}, { tools: [look] })).text).toBe('An answer.')
    expect([inner.asked, called.length]).toEqual([2, 4])
  })

  test('for as long as `ttlMs` says', async () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    try {
      const inner = replying({})
      const model = cached(inner, { store: memoryCache(), ttlMs: 1_000 })
      for (const wait of [0, 999, 1]) {
        vi.setSystemTime(Date.now() + wait)
        await run(model)
      }
      expect(inner.asked).toBe(2)
    } finally {
      vi.useRealTimers()
    }
  })

  test('as far as there is room: those that were used longest ago go first', async () => {
    const inner = replying({})
    const model = cached(inner, { store: memoryCache({ entries: 2 }) })
    for (const prompt of ['a', 'b', 'a', 'c', 'a', 'b']) await run(model, prompt)
    expect(inner.asked).toBe(4)
  })
})

describe('a cache that fails', () => {
  const broken = (beside: Partial<ReplyStore>): ReplyStore => ({
    ...memoryCache(),
    get: () => Promise.resolve(null),
    set: () => Promise.resolve(),
    ...beside,
  })
  test.each<[string, CachedOptions, RegExp]>([
    [
      'when it is read',
      { store: broken({ get: () => Promise.reject(new Error('Disk full.')) }) },
      /so the model is asked: Disk full/,
    ],
    [
      'when it is written',
      { store: broken({ set: () => Promise.reject(new Error('Disk full.')) }) },
      /The cache failed: Disk full/,
    ],
    [
      'by giving something else',
      { store: broken({ get: () => Promise.resolve('{"entry":7}') }) },
      /something else than a reply/,
    ],
    [
      'in its scope',
      {
        store: memoryCache(),
        scope: () => {
          throw new Error('No scope.')
        },
      },
      /`scope` failed: No scope/,
    ],
  ])('%s lets the request through, with a warning', async (_, options, message) => {
    const events = await eventsOf(harnessOf({ model: cached(replying({}), options) }).stream('Go.'))
    expect(ofKind(events, 'warning').map((each) => each.message)).toEqual([expect.stringMatching(message)])
    expect(ofKind(events, 'run_completed')).toHaveLength(1)
  })

  test('with `semantic` an embedder or a confirming model that fails lets it through too', async () => {
    const embed = vi.fn(() => Promise.reject(new Error('No vectors.')))
    const inner = replying({})
    const confirm = new ScriptedModel()
    const model = cached(inner, { store: memoryCache(), semantic: { embed, confirm } })
    const harness = harnessOf({ model })
    const first = ofKind(await eventsOf(harness.stream('Go.')), 'warning')
    expect(first.map(({ message }) => message)).toEqual(['The cache failed: No vectors.'])
    // What is the same by bytes needs no vector.
    await harness.run('Go.')
    expect([inner.asked, embed.mock.calls.length]).toEqual([1, 1])
  })
})

describe('a cache by meaning', () => {
  const embed = Object.assign((texts: readonly string[]) => Promise.resolve(texts.map(() => [1, 0])), { model: 'same' })

  test('pays for the confirmation in the run that asks, and serves the confirmed reply', async () => {
    const confirm = new ScriptedModel({ id: 'small' }).says('{"choice":"yes"}').says('{"choice":"no"}')
    const inner = replying({})
    const model = cached(inner, { store: memoryCache(), semantic: { embed, confirm } })
    const beside = { prices: { unknown: PRICE }, limits: { costUsd: 9 } }
    await run(model, 'What is the capital of France?', {}, beside)
    const hit = await run(model, 'Name the capital of France', {}, beside)
    // "Name" may be a name.
    expect(inner.asked).toBe(2)
    expect(hit.usage.costUsd).toBe(0.0017)
    const confirmed = await run(model, 'Please, what is the capital of France?', {}, beside)
    expect([inner.asked, confirmed.usage.costUsd]).toEqual([2, 0.002])
    const denied = await run(model, 'And what is the capital of France?', {}, beside)
    expect([inner.asked, denied.usage.costUsd]).toEqual([3, 0.0037])
    confirm.assertDone()
  })

  test('is for a first question without history only, and never across scopes', async () => {
    const confirm = new ScriptedModel()
    const inner = replying({})
    const model = cached(inner, { store: memoryCache(), semantic: { embed, confirm } })
    const { transcript } = await run(model, 'What is the capital of France?')
    await run(model, 'what is the capital of France?', { labels: { tenant: 'b' } })
    await run(model, 'what is the capital of France?', { history: transcript })
    expect([inner.asked, confirm.requests.length]).toEqual([3, 0])
  })
})

describe('recorded runs', () => {
  test('a replay asks neither, and a fork asks the model', async () => {
    const inner = replying({})
    const get = vi.fn(() => Promise.resolve(null))
    const log = memoryLog()
    const harness = harnessOf({
      model: cached(inner, { store: { ...memoryCache(), get, set: () => Promise.resolve() } }),
      log,
    })
    const { runId } = await harness.run('Go.')
    const events = await collect(log.read({ kind: 'run', id: runId }))
    await harness.replay(events as never)
    expect([inner.asked, get.mock.calls.length]).toEqual([1, 1])
    await harness.fork(events as never, { afterTurn: 0 })
    await harness.fork(events as never, { afterTurn: 0, prompt: 'Go.' })
    expect([inner.asked, get.mock.calls.length]).toEqual([3, 1])
  })
})

describe('a cache in a file', () => {
  test('serves another process, keeps to its size and forgets what has expired', async () => {
    const path = join(temporaryFolder(), 'cache.db')
    const inner = replying({})
    {
      await using store = sqliteCache(path)
      await run(cached(inner, { store }), 'Go.')
    }
    await using store = sqliteCache(path, { entries: 3 })
    await run(cached(inner, { store }), 'Go.')
    expect(inner.asked).toBe(1)
    const forever = { expiresAt: null, group: 'g' }
    for (let index = 0; index < 205; index++) await store.set(`key ${index}`, `${index}`, forever)
    await store.set('gone', 'x', { expiresAt: Date.now() - 1, group: 'g' })
    expect([await store.get('key 0'), await store.get('key 204'), await store.get('gone')]).toEqual([null, '204', null])
    expect(await store.group?.('g', 2)).toEqual(['204', '203'])
    await store.set('key 204', 'new', forever)
    expect(await store.get('key 204')).toBe('new')
  })

  test('that cannot be opened lets requests through, with a warning', async () => {
    const path = join(temporaryFolder(), 'missing', 'cache.db')
    const events = await eventsOf(
      harnessOf({ model: cached(replying({}), { store: sqliteCache(path) }) }).stream('Go.'),
    )
    expect(ofKind(events, 'warning')).toHaveLength(2)
    expect(ofKind(events, 'run_completed')).toHaveLength(1)
  })
})

test.each<[string, () => unknown, RegExp]>([
  ['no store', () => cached(any, {} as never), /store/],
  ['a store that is none', () => cached(any, { store: {} as never }), /a store of replies/],
  ['an unknown option', () => cached(any, { store: memoryCache(), ttl: 5 } as never), /`ttlMs`/],
  [
    '`semantic` without a confirming model',
    () => cached(any, { store: memoryCache(), semantic: { embed: () => [] } as never }),
    /confirm/,
  ],
  [
    '`semantic` with a store that has no groups',
    () =>
      cached(any, {
        store: { get: () => Promise.resolve(null), set: () => Promise.resolve() },
        semantic: { embed: (() => []) as never, confirm: any },
      }),
    /group/,
  ],
  ['a file without a name', () => sqliteCache(''), /to be a path/],
])('%s is refused', (_, make, message) => expect(make).toThrow(message))
