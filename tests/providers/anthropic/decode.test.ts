import { expect, test } from 'vitest'
import type { AssistantPart, FinishReason, TokenUsage } from '#contracts/entry.js'
import { UNREPORTED_USAGE } from '#contracts/entry.js'
import type { JsonObject } from '#util/json.js'
import { decoded, errorOf } from './support.js'

const usage = { input_tokens: 3, output_tokens: 2 }

function message(content: readonly unknown[], more: JsonObject = {}): unknown {
  return {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'claude-x',
    content,
    stop_reason: 'end_turn',
    usage,
    ...more,
  }
}

const native = (data: JsonObject): { native: { provider: string; data: JsonObject } } => ({
  native: { provider: 'anthropic', data },
})

test('PR-18 a whole reply is decoded into parts, finish reason, usage, id and model, and its body is kept', () => {
  const raw = message([{ type: 'text', text: 'Hello.' }])

  expect(decoded(raw)).toEqual({
    parts: [{ type: 'text', text: 'Hello.' }],
    finishReason: 'stop',
    nativeFinishReason: 'end_turn',
    usage: { inputTokens: 3, outputTokens: 2, cacheReadTokens: null, cacheWriteTokens: null, reasoningTokens: null },
    responseId: 'msg_1',
    responseModel: 'claude-x',
    raw,
  })
})

test.each<[string, JsonObject, AssistantPart[]]>([
  ['a text', { type: 'text', text: 'a', citations: null }, [{ type: 'text', text: 'a' }]],
  ['an empty text', { type: 'text', text: '' }, []],
  [
    'citations',
    { type: 'text', text: 'a', citations: [{ type: 'page_location', cited_text: 'b' }] },
    [
      {
        type: 'text',
        text: 'a',
        annotations: [{ quote: 'b', from: 0, to: 1 }],
        ...native({ citations: [{ type: 'page_location', cited_text: 'b' }] }),
      },
    ],
  ],
  [
    'a signed thought',
    { type: 'thinking', thinking: 'Hm.', signature: 'sig' },
    [{ type: 'reasoning', text: 'Hm.', ...native({ type: 'thinking', signature: 'sig' }) }],
  ],
  [
    'a thought that is not shown',
    { type: 'thinking', thinking: '', signature: 'sig' },
    [{ type: 'reasoning', text: '', ...native({ type: 'thinking', signature: 'sig' }) }],
  ],
  [
    'a thought that was cut off',
    { type: 'thinking', thinking: 'Hm', signature: '' },
    [{ type: 'reasoning', text: 'Hm' }],
  ],
  [
    'a redacted thought',
    { type: 'redacted_thinking', data: 'xyz' },
    [{ type: 'reasoning', text: '', ...native({ type: 'redacted_thinking', data: 'xyz' }) }],
  ],
  [
    'a call',
    { type: 'tool_use', id: 'toolu_1', name: 'read', input: { path: 'a' } },
    [{ type: 'tool_call', callId: 'toolu_1', name: 'read', arguments: '{"path":"a"}' }],
  ],
  [
    'a call by code',
    { type: 'tool_use', id: 'toolu_1', name: 'read', input: {}, caller: { type: 'direct' } },
    [
      {
        type: 'tool_call',
        callId: 'toolu_1',
        name: 'read',
        arguments: '{}',
        ...native({ caller: { type: 'direct' } }),
      },
    ],
  ],
  [
    'a call whose input is text',
    { type: 'tool_use', id: 'toolu_1', name: 'read', input: '{"path"' },
    [{ type: 'tool_call', callId: 'toolu_1', name: 'read', arguments: '{"path"' }],
  ],
  [
    'a server tool',
    { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'a' } },
    [
      {
        type: 'hosted',
        callId: 'srvtoolu_1',
        name: 'web_search',
        source: { kind: 'web', name: 'web_search' },
        arguments: '{"query":"a"}',
        ...native({ type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'a' } }),
      },
    ],
  ],
  [
    'a block of the future',
    { type: 'hologram', cube: [1] },
    [{ type: 'opaque', ...native({ type: 'hologram', cube: [1] }) }],
  ],
])('RF-02 a content block becomes parts, with the thinking text and its signature: %s', (_name, block, parts) => {
  expect(decoded(message([block])).parts).toEqual(parts)
})

test('a call without an id, and one with a repeated id, get ids of their own', () => {
  const call = (id?: string, input: JsonObject = { n: 1 }): JsonObject => ({
    type: 'tool_use',
    name: 'read',
    input,
    ...(id !== undefined && { id }),
  })

  const { parts } = decoded(message([call('a'), call(), call('a', { n: 2 }), call('')]))

  expect(parts.map((part) => (part.type === 'tool_call' ? part.callId : ''))).toEqual([
    'a',
    'call_9_2',
    'call_9_3',
    'call_9_4',
  ])
})

test.each<[string | null, FinishReason]>([
  ['end_turn', 'stop'],
  ['stop_sequence', 'stop'],
  ['tool_use', 'tool_calls'],
  ['max_tokens', 'length'],
  ['model_context_window_exceeded', 'length'],
  ['refusal', 'refusal'],
  ['pause_turn', 'pause'],
  ['compaction', 'pause'],
  ['constructor', 'other'],
  ['sunset', 'other'],
  [null, 'other'],
])('stop reason %s is %s', (stop_reason, finishReason) => {
  expect(decoded(message([], { stop_reason }))).toMatchObject({ finishReason, nativeFinishReason: stop_reason })
})

test.each<[string, unknown, Partial<TokenUsage>]>([
  ['none', undefined, {}],
  ['no object', [1], {}],
  ['no whole numbers', { input_tokens: '3', output_tokens: 1.5 }, {}],
  ['output alone', { output_tokens: 4 }, { outputTokens: 4 }],
  [
    'with a cache: input is the sum of all three',
    { input_tokens: 1, cache_read_input_tokens: 20, cache_creation_input_tokens: 300, output_tokens: 4 },
    { inputTokens: 321, cacheReadTokens: 20, cacheWriteTokens: 300, outputTokens: 4 },
  ],
  [
    'with a part that is cached for an hour',
    {
      ...{ input_tokens: 1, cache_creation_input_tokens: 300, output_tokens: 4 },
      cache_creation: { ephemeral_5m_input_tokens: 100, ephemeral_1h_input_tokens: 200 },
    },
    { inputTokens: 301, cacheWriteTokens: 300, longCacheWriteTokens: 200, outputTokens: 4 },
  ],
  [
    'with thoughts',
    { input_tokens: 1, output_tokens: 9, output_tokens_details: { thinking_tokens: 5 } },
    { inputTokens: 1, outputTokens: 9, reasoningTokens: 5 },
  ],
])('PR-21 usage is normalized, even if it is partial or missing: %s', (_name, given, wanted) => {
  expect(decoded({ ...(message([]) as JsonObject), usage: given }).usage).toEqual({ ...UNREPORTED_USAGE, ...wanted })
})

test.each<[string, unknown, { message: RegExp; retryable: boolean }]>([
  [
    'an error body',
    { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } },
    { message: /Overloaded/, retryable: true },
  ],
  [
    'an error body of a gateway',
    { error: { type: 'invalid_request_error', message: 'Bad thing' } },
    { message: /Bad thing/, retryable: false },
  ],
  ['nothing', null, { message: /not a message/, retryable: false }],
  ['another API', { choices: [] }, { message: /not a message/, retryable: false }],
  ['content that is no list', message('text' as unknown as []), { message: /not a message/, retryable: false }],
])('%s with status 200 is an error', (_name, body, { message: text, retryable }) => {
  const error = errorOf(() => decoded(body))

  expect(error).toMatchObject({ code: 'provider_error', retryable })
  expect(error.message).toMatch(text)
})
