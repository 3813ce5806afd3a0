import { describe, expect, test } from 'vitest'
import { Harness, toolCallsOf } from 'thinharness'
import { fromAiSdk } from 'thinharness/providers'
import type { AssistantPart, FinishReason } from '#contracts/entry.js'
import { errorOf, FakeLanguageModel, finished, own, reply, text, turnOf, VERSION_NAMES } from './support.js'
import type { VersionName } from './support.js'
import { UNREPORTED_USAGE } from '#contracts/entry.js'

const lookup = { type: 'tool-call', toolCallId: 'c1', toolName: 'lookup', input: '{"a":1}' }

describe('the parts of a reply', () => {
  const metadata = { acme: { id: 'x' } }
  const kept = own('acme.chat', { providerMetadata: metadata })
  const hosted = (fields: object, data: object): AssistantPart => ({
    type: 'hosted',
    callId: 'c1',
    name: 'lookup',
    source: { kind: 'server', name: 'lookup' },
    ...fields,
    ...own('acme.chat', { ...data }),
  })
  const opaque = (data: object): AssistantPart => ({ type: 'opaque', ...own('acme.chat', { ...data }) })

  test.each<[string, object, AssistantPart[]]>([
    ['text', text('Hm.'), [{ type: 'text', text: 'Hm.' }]],
    ['text with metadata', { ...text('Hm.'), providerMetadata: metadata }, [{ type: 'text', text: 'Hm.', ...kept }]],
    ['an empty text', text(''), []],
    ['reasoning', { type: 'reasoning', text: 'So.' }, [{ type: 'reasoning', text: 'So.', ...own('acme.chat', {}) }]],
    [
      'RF-02 sealed reasoning keeps its text and its provider data',
      { type: 'reasoning', text: 'So.', providerMetadata: metadata },
      [{ type: 'reasoning', text: 'So.', ...kept }],
    ],
    ['a call', lookup, [{ type: 'tool_call', callId: 'c1', name: 'lookup', arguments: '{"a":1}' }]],
    [
      'a call with metadata',
      { ...lookup, dynamic: true, providerMetadata: metadata },
      [{ type: 'tool_call', callId: 'c1', name: 'lookup', arguments: '{"a":1}', ...kept }],
    ],
    [
      'a call without arguments',
      { ...lookup, input: '' },
      [{ type: 'tool_call', callId: 'c1', name: 'lookup', arguments: '{}' }],
    ],
    [
      'a call whose input is no text',
      { ...lookup, input: { a: 1 } },
      [{ type: 'tool_call', callId: 'c1', name: 'lookup', arguments: '{"a":1}' }],
    ],
    [
      "a call of the provider's own",
      { ...lookup, providerExecuted: true },
      [hosted({ arguments: '{"a":1}' }, { ...lookup, providerExecuted: true })],
    ],
    [
      'its result',
      { type: 'tool-result', toolCallId: 'c1', toolName: 'lookup', result: { n: 1 } },
      [hosted({ result: '{"n":1}' }, { type: 'tool-result', toolCallId: 'c1', toolName: 'lookup', result: { n: 1 } })],
    ],
    ['a result that is to be replaced', { type: 'tool-result', toolCallId: 'c1', preliminary: true }, []],
    [
      'a file of bytes',
      { type: 'file', mediaType: 'image/png', data: new Uint8Array([1, 2, 3]) },
      [
        {
          type: 'image',
          data: 'AQID',
          mediaType: 'image/png',
          ...own('acme.chat', { type: 'file', mediaType: 'image/png' }),
        },
      ],
    ],
    [
      'a file elsewhere',
      { type: 'file', mediaType: 'image/png', data: { type: 'url', url: new URL('https://example.com/a.png') } },
      [
        {
          ...opaque({ type: 'file', mediaType: 'image/png', data: { type: 'url', url: 'https://example.com/a.png' } }),
          type: 'image',
          url: 'https://example.com/a.png',
        },
      ],
    ],
    [
      'a block that nobody knows, with what is no JSON',
      { type: 'x', at: new Date(0), n: NaN, big: 2n, not: undefined, call: () => 1, list: [null, true] },
      [opaque({ type: 'x', at: '1970-01-01T00:00:00.000Z', n: null, big: '2', list: [null, true] })],
    ],
  ])('%s', async (_name, content, expected) => {
    const { turn } = await turnOf(reply([content]))
    expect(turn.entry.parts).toEqual(expected)
  })

  test('missing and repeated call ids are replaced', async () => {
    const { turn } = await turnOf(reply([lookup, { ...lookup, input: '{"n":2}' }, { ...lookup, toolCallId: '' }]))
    expect(toolCallsOf(turn.entry.parts).map(({ callId }) => callId)).toEqual(['c1', 'call_2_2', 'call_2_3'])
  })

  test('a turn holds the metadata of the response; the request, which holds the conversation, is not kept', async () => {
    const answer = {
      ...reply([text('Hm.')]),
      warnings: [{ type: 'other', message: 'w' }],
      providerMetadata: { acme: { tier: 'x' } },
      request: { body: 'everything' },
      response: { id: 'r1', modelId: 'm-2', timestamp: new Date(0), headers: { a: 'b' }, body: { raw: true } },
    }
    const { turn } = await turnOf(answer)
    const rest: Record<string, unknown> = { ...answer }
    delete rest['request']
    expect(turn).toMatchObject({ responseId: 'r1', responseModel: 'm-2', nativeFinishReason: 'end' })
    expect(turn.entry).toMatchObject({ parts: [{ text: 'Hm.' }], provider: 'ai-sdk:acme.chat', model: 'm' })
    expect(turn.raw).toEqual(rest)
  })

  test('PR-32 a request to approve a call of the provider is an error that names it', async () => {
    const asking = reply([{ type: 'tool-approval-request', approvalId: 'a', toolCallId: 'c' }])
    const error = await errorOf(turnOf(asking))
    expect(error).toMatchObject({ code: 'unexpected_model_behavior', retryable: false })
    expect(error.message).toContain('`tool-approval-request`')
  })

  test('an invalid reply is an error', async () => {
    expect(await errorOf(turnOf({ text: 'Hm.' }))).toMatchObject({ code: 'provider_error', retryable: false })
  })
})

describe('the finish reason', () => {
  test.each<[unknown, FinishReason, string | null]>([
    [{ unified: 'stop', raw: 'end_turn' }, 'stop', 'end_turn'],
    [{ unified: 'tool-calls', raw: 'tool_use' }, 'tool_calls', 'tool_use'],
    [{ unified: 'length', raw: 'max_tokens' }, 'length', 'max_tokens'],
    [{ unified: 'content-filter', raw: 'content_filter' }, 'content_filter', 'content_filter'],
    [{ unified: 'content-filter', raw: 'refusal' }, 'refusal', 'refusal'],
    [{ unified: 'stop', raw: 'pause_turn' }, 'pause', 'pause_turn'],
    [{ unified: 'other', raw: 'compaction' }, 'pause', 'compaction'],
    [{ unified: 'other', raw: 'new' }, 'other', 'new'],
    [{ unified: 'brand-new', raw: undefined }, 'other', null],
    ['stop', 'stop', null],
    ['content-filter', 'content_filter', null],
    ['unknown', 'other', null],
    [undefined, 'other', null],
  ])('%j is %s', async (finish, finishReason, nativeFinishReason) => {
    const { turn } = await turnOf({ ...reply([text('Hm.')]), finishReason: finish })
    expect(turn).toMatchObject({ nativeFinishReason, entry: { finishReason } })
  })

  test.each<[unknown]>([
    [{ unified: 'error', raw: undefined }],
    [{ unified: 'other', raw: 'error' }],
    [{ unified: 'other', raw: 'failed' }],
    ['error'],
  ])('PR-28 a reply that the provider ended in an error is an error, with calls and without: %j', async (finish) => {
    for (const content of [[text('Hm.')], [lookup]]) {
      const error = await errorOf(turnOf({ ...reply(content), finishReason: finish }))
      expect(error).toMatchObject({ code: 'provider_error', retryable: true })
    }
    const stream = [{ type: 'text-delta', id: '0', delta: 'Hm.' }, finished(finish)]
    const model = fromAiSdk(new FakeLanguageModel([stream]), { maxRetries: 0 })
    const run = new Harness({ model, builtinTools: [] }).stream('Go.')
    await expect(run.result).rejects.toMatchObject({ code: 'provider_error' })
  })

  test('a reply with tool calls has the finish reason for calls, whatever the label', async () => {
    const { turn } = await turnOf(reply([lookup], { unified: 'stop', raw: 'stop' }))
    expect(turn.entry.finishReason).toBe('tool_calls')
  })

  test.each<[string, string | undefined, FinishReason]>([
    ['openai.responses', undefined, 'refusal'],
    ['openai.chat', 'stop', 'refusal'],
    ['openai.chat', 'content_filter', 'content_filter'],
    ['acme.chat', undefined, 'content_filter'],
  ])('a filtered reply of `%s` with the word %s is %s', async (provider, raw, finishReason) => {
    const { turn } = await turnOf(reply([text('No.')], { unified: 'content-filter', raw }), { provider })
    expect(turn.entry.finishReason).toBe(finishReason)
  })
})

describe('usage', () => {
  const nested = (raw?: object): object => ({
    inputTokens: { total: 30, noCache: 20, cacheRead: 10, cacheWrite: 0 },
    outputTokens: { total: 5, text: 5, reasoning: 0 },
    raw,
  })
  const flat = { inputTokens: 30, outputTokens: 5, totalTokens: 35, cachedInputTokens: 10, reasoningTokens: 2 }

  test.each<
    [
      string,
      VersionName,
      object | undefined,
      [number | null, number | null, number | null, number | null, number | null],
    ]
  >([
    [
      'all that was reported',
      'v3',
      nested({ cached: 10, cache_creation: 0, details: { reasoning: 0 } }),
      [30, 5, 10, 0, 0],
    ],
    [
      'PR-21 a zero that the API did not report is absent',
      'v4',
      nested({ cached_tokens: 10 }),
      [30, 5, 10, null, null],
    ],
    ["zeros, where the API's own words are not there", 'v3', nested(), [30, 5, 10, 0, 0]],
    ['what is missing', 'v3', { inputTokens: {}, outputTokens: { total: 5 } }, [null, 5, null, null, null]],
    [
      'what is no count',
      'v3',
      { inputTokens: { total: NaN }, outputTokens: { total: -1 } },
      [null, null, null, null, null],
    ],
    ['in one level', 'v2', flat, [30, 5, 10, null, 2]],
    ['none', 'v3', undefined, [null, null, null, null, null]],
  ])(
    '%s (%s)',
    async (_name, version, usage, [inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens, reasoningTokens]) => {
      const { turn } = await turnOf({ ...reply([text('Hm.')]), usage }, { version })
      const counts = { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens, reasoningTokens }
      expect(turn.entry.usage).toEqual({ ...UNREPORTED_USAGE, ...counts })
    },
  )

  test("PR-18 Anthropic's input tokens of v2 exclude the cache, which is added", async () => {
    const usage = { inputTokens: 20, outputTokens: 5, totalTokens: 25, cachedInputTokens: 10 }
    const providerMetadata = { anthropic: { cacheCreationInputTokens: 7 } }
    const { turn } = await turnOf({ ...reply([text('Hm.')]), usage, providerMetadata }, { version: 'v2' })
    expect(turn.entry.usage).toMatchObject({ inputTokens: 37, cacheReadTokens: 10, cacheWriteTokens: 7 })
  })

  test("PR-18 Anthropic's tokens with a cache lifetime of one hour are counted separately, in every version", async () => {
    const raw = { cache_creation_input_tokens: 7, cache_creation: { ephemeral_1h_input_tokens: 4 } }
    const written = { inputTokens: { total: 30, cacheWrite: 7 }, outputTokens: { total: 5 }, raw }
    const v3 = await turnOf({ ...reply([text('Hm.')]), usage: written }, { version: 'v3' })
    const providerMetadata = { anthropic: { cacheCreationInputTokens: 7, usage: raw } }
    const usage = { inputTokens: 20, outputTokens: 5, totalTokens: 25 }
    const v2 = await turnOf({ ...reply([text('Hm.')]), usage, providerMetadata }, { version: 'v2' })
    for (const { turn } of [v2, v3]) {
      expect(turn.entry.usage).toMatchObject({ cacheWriteTokens: 7, longCacheWriteTokens: 4 })
    }
  })
})

test.each(VERSION_NAMES)('a stream ends in the same turn as the whole reply (%s)', async (version) => {
  const metadata = { acme: { signature: 'c2ln' } }
  const finish = version === 'v2' ? 'tool-calls' : { unified: 'tool-calls', raw: 'tools' }
  const source = { type: 'source', sourceType: 'url', id: 's1', url: 'https://example.com' }
  const whole = {
    ...reply(
      [
        { type: 'reasoning', text: 'So it is.', providerMetadata: metadata },
        { type: 'text', text: 'I look.' },
        source,
        { type: 'tool-call', toolCallId: 'c1', toolName: 'lookup', input: '{"a":1}' },
        { type: 'tool-call', toolCallId: 'c2', toolName: 'lookup', input: '{}' },
      ],
      finish,
    ),
    response: { id: 'r1', modelId: 'm-2' },
  }
  const stream = [
    { type: 'stream-start', warnings: [] },
    { type: 'response-metadata', id: 'r1' },
    { type: 'ping' },
    { type: 'reasoning-start', id: '0' },
    { type: 'reasoning-delta', id: '0', delta: 'So it ' },
    { type: 'reasoning-delta', id: '0', delta: 'is.' },
    { type: 'reasoning-delta', id: '0', delta: '', providerMetadata: metadata },
    { type: 'reasoning-end', id: '0' },
    { type: 'text-start', id: '0' },
    { type: 'text-delta', id: '0', delta: 'I ' },
    { type: 'tool-input-start', id: 'c1', toolName: 'lookup' },
    { type: 'text-delta', id: '0', delta: 'look.' },
    { type: 'text-end', id: '0' },
    source,
    { type: 'tool-input-delta', id: 'c1', delta: '{"a"' },
    { type: 'tool-input-start', id: 'c2', toolName: 'lookup' },
    { type: 'tool-input-delta', id: 'c1', delta: ':1}' },
    { type: 'tool-input-end', id: 'c1' },
    { type: 'tool-call', toolCallId: 'c1', toolName: 'lookup', input: '{"a":1}' },
    { type: 'tool-call', toolCallId: 'c2', toolName: 'lookup', input: '{}' },
    { type: 'raw', rawValue: 1 },
    { type: 'brand-new', x: 1 },
    { type: 'response-metadata', id: undefined, modelId: 'm-2' },
    { type: 'finish', finishReason: finish, usage: {} },
  ]
  const unstreamed = await turnOf(whole, { version })
  const streamed = await turnOf(stream, { version, streamed: true })
  expect(streamed.turn).toEqual({ ...unstreamed.turn, raw: { ...(unstreamed.turn.raw as object) } })
  expect(streamed.deltas).toEqual([
    { kind: 'reasoning_delta', text: 'So it ' },
    { kind: 'reasoning_delta', text: 'is.' },
    { kind: 'text_delta', text: 'I ' },
    { kind: 'text_delta', text: 'look.' },
    { kind: 'tool_input_delta', text: '{"a"', callId: 'c1', toolName: 'lookup' },
    { kind: 'tool_input_delta', text: ':1}', callId: 'c1', toolName: 'lookup' },
    { kind: 'tool_input_delta', text: '{}', callId: 'c2', toolName: 'lookup' },
  ])
})

test('parts after the finish of a stream are still read, and the last finish counts', async () => {
  const { turn } = await turnOf(
    [finished({ unified: 'length', raw: 'x' }), { type: 'text-delta', id: '0', delta: 'Hm.' }, finished()],
    { streamed: true },
  )
  expect(turn).toMatchObject({ entry: { parts: [{ text: 'Hm.' }], finishReason: 'stop' } })
})

describe('a summary that the provider made of the conversation', () => {
  const providerMetadata = { anthropic: { type: 'compaction' } }
  const whole = reply([{ type: 'text', text: 'So far: hello.', providerMetadata }, text('Done.')])
  const streamed = [
    { type: 'text-start', id: '0', providerMetadata },
    { type: 'text-delta', id: '0', delta: 'So far: hello.' },
    { type: 'text-end', id: '0' },
    { type: 'text-delta', id: '1', delta: 'Done.' },
    finished(),
  ]
  const provider = 'anthropic.messages'

  test.each([
    ['whole', whole],
    ['streamed', streamed],
  ])('PR-29 it is not part of the answer, and is sent back to the provider as it was (%s)', async (how, answer) => {
    const model = new FakeLanguageModel([answer, reply([text('More.')])], { provider })
    const harness = new Harness({ model: fromAiSdk(model), builtinTools: [] })
    const run = harness.stream('Go.', { deltas: how === 'streamed' })
    const shown: string[] = []
    for await (const event of run) if (event.kind === 'text_delta') shown.push(event.text)
    const { text: answered, resumeState } = await run.result
    await harness.run('And?', { history: resumeState! })

    expect(answered).toBe('Done.')
    if (how === 'streamed') expect(shown.join('')).toBe('Done.')
    expect(model.calls[1]).toMatchObject({
      prompt: [
        { role: 'user' },
        {
          role: 'assistant',
          content: [{ type: 'text', text: 'So far: hello.', providerOptions: providerMetadata }, { text: 'Done.' }],
        },
        { role: 'user' },
      ],
    })
  })
})
