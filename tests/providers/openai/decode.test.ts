import { describe, expect, test } from 'vitest'
import { HarnessError } from '#contracts/errors.js'
import type { FinishReason } from '#contracts/entry.js'
import { call, decoded, message, reasoning, response } from './replies.js'
import type { Fields } from './replies.js'

const REFUSAL = { type: 'refusal', refusal: 'I will not.' }

test('PR-19 a whole reply becomes parts in the order of its output, each with the data needed to send it back', () => {
  const thought = reasoning({ summary: [{ type: 'summary_text', text: 'Look it up.' }] })
  const search = { id: 'ws_1', type: 'web_search_call', status: 'completed', action: { type: 'search', query: 'x' } }
  const usage = {
    input_tokens: 75,
    input_tokens_details: { cached_tokens: 64, cache_write_tokens: 8 },
    output_tokens: 30,
    output_tokens_details: { reasoning_tokens: 12 },
    total_tokens: 105,
  }
  const whole = response([thought, search, message('On it.', { phase: 'commentary' }), call('call_1', '{"q":1}')], {
    usage,
  })

  expect(decoded(whole)).toEqual({
    parts: [
      {
        type: 'reasoning',
        text: 'Look it up.',
        native: { provider: 'openai', data: { kind: 'item', item: thought } },
      },
      {
        type: 'hosted',
        callId: 'ws_1',
        name: 'web_search',
        source: { kind: 'web', name: 'web_search' },
        arguments: '{"type":"search","query":"x"}',
        native: { provider: 'openai', data: { kind: 'item', item: search } },
      },
      {
        type: 'text',
        text: 'On it.',
        native: {
          provider: 'openai',
          data: {
            kind: 'block',
            block: { type: 'output_text', annotations: [], logprobs: [] },
            message: { id: 'msg_1', type: 'message', role: 'assistant', status: 'completed', phase: 'commentary' },
          },
        },
      },
      {
        type: 'tool_call',
        callId: 'call_1',
        name: 'lookup',
        arguments: '{"q":1}',
        native: {
          provider: 'openai',
          data: { kind: 'item', item: { id: 'fc_call_1', type: 'function_call', status: 'completed' } },
        },
      },
    ],
    finishReason: 'tool_calls',
    nativeFinishReason: 'completed',
    usage: {
      inputTokens: 75,
      outputTokens: 30,
      cacheReadTokens: 64,
      cacheWriteTokens: 8,
      reasoningTokens: 12,
      hostedCalls: { web_search: 1 },
    },
    responseId: 'resp_1',
    responseModel: 'gpt-5.5-2026',
    raw: whole,
  })
})

test.each<[string, Fields, FinishReason, string | null]>([
  ['text', response([message('Hi.')]), 'stop', 'completed'],
  ['nothing at all', response([]), 'stop', 'completed'],
  ['calls', response([message('Hi.'), call('a', '{}')]), 'tool_calls', 'completed'],
  ['no status', response([message('Hi.')], { status: undefined }), 'stop', null],
  ['a refusal', response([message('', { content: [REFUSAL] })]), 'refusal', 'completed'],
  ['a refusal beside a call', response([message('', { content: [REFUSAL] }), call('a', '{}')]), 'refusal', 'completed'],
  ['a call that was cut', response([call('a', '{"q', { status: 'incomplete' })]), 'length', 'completed'],
  [
    'a call that the server calls running',
    response([call('a', '{}', { status: 'in_progress' })]),
    'tool_calls',
    'completed',
  ],
  ['too long', incomplete('max_output_tokens'), 'length', 'incomplete:max_output_tokens'],
  ['filtered', incomplete('content_filter'), 'content_filter', 'incomplete:content_filter'],
  ['cut for a new reason', incomplete('max_patience'), 'error', 'incomplete:max_patience'],
  ['cut for no reason', response([message('Hi')], { status: 'incomplete' }), 'error', 'incomplete'],
  ['queued', response([], { status: 'queued' }), 'error', 'queued'],
  ['still running, with nothing yet', { id: 'r', status: 'in_progress' }, 'error', 'in_progress'],
  ['a status of tomorrow', response([message('Hi.')], { status: 'archived' }), 'other', 'archived'],
])('%s: a finish reason of ours, with the word of the API', (_name, reply, finishReason, nativeFinishReason) => {
  expect(decoded(reply)).toMatchObject({ finishReason, nativeFinishReason })
})

function incomplete(reason: string): Fields {
  return response([call('a', '{"q')], { status: 'incomplete', incomplete_details: { reason } })
}

test('a refusal is not text: its words are in an opaque part', () => {
  const { parts } = decoded(response([message('', { content: [REFUSAL] })]))

  expect(parts).toEqual([
    {
      type: 'opaque',
      native: { provider: 'openai', data: { kind: 'block', block: REFUSAL, message: expect.anything() as unknown } },
    },
  ])
})

test.each<[string, Fields, Partial<HarnessError>]>([
  [
    'a failed response',
    response([], { status: 'failed', error: { code: 'server_error', message: 'It broke.' } }),
    { message: expect.stringContaining('It broke.') as string, retryable: true },
  ],
  [
    'one that will fail again',
    response([], { status: 'failed', error: { code: 'invalid_prompt', message: 'Not this.' } }),
    { message: expect.stringContaining('Not this.') as string, retryable: false },
  ],
  ['one that says nothing', response([], { status: 'failed', error: null }), { message: 'The response failed.' }],
  [
    'a cancelled one',
    response([], { status: 'cancelled' }),
    { message: 'The provider cancelled the response.', retryable: false },
  ],
  [
    'an error with status 200',
    { error: { type: 'invalid_request_error', message: 'No such model.' } },
    { message: expect.stringContaining('No such model.') as string, retryable: false },
  ],
  [
    'a detail with status 200',
    { detail: 'Bad things.' },
    { message: expect.stringContaining('Bad things.') as string },
  ],
])('%s is a provider error, never an answer', (_name, reply, error) => {
  expect(failure(reply)).toMatchObject({ code: 'provider_error', ...error })
})

test.each<[unknown, string]>([
  [undefined, 'got nothing.'],
  [null, 'got null.'],
  ['hello', 'got "hello".'],
  [{ choices: [{ message: { content: 'Hi.' } }] }, 'got {"choices":[{"message":{"content":"Hi."}}]}.'],
  [{}, 'got {}.'],
  [{ text: 'x'.repeat(1000) }, `got {"text":"${'x'.repeat(191)}.`],
])('an invalid response is rejected by name: %j', (reply, ending) => {
  expect(failure(reply).message).toBe(`Expected a reply of the Responses API with \`output\`, ${ending}`)
})

function failure(reply: unknown): HarnessError {
  try {
    decoded(reply)
  } catch (error) {
    if (error instanceof HarnessError) return error
    throw error
  }
  throw new Error('Expected a HarnessError.')
}

describe('deviations of compatible servers', () => {
  test.each<[string, Fields, string]>([
    ['text at the top level alone', { id: 'r', status: 'completed', output_text: 'Hi.' }, 'Hi.'],
    ['text at the top level too', response([message('Hi.')], { output_text: 'Hi.' }), 'Hi.'],
    ['blocks of type text', response([message('', { content: [{ type: 'text', text: 'Hi.' }] })]), 'Hi.'],
    ['content as plain text', response([message('', { content: 'Hi.' })]), 'Hi.'],
    ['no content', response([message('', { content: null }), message('Hi.')]), 'Hi.'],
    ['several blocks and messages', response([message('H'), message('i'), message('.')]), 'Hi.'],
    ['items that are none', response([null, 7, message('Hi.')]), 'Hi.'],
  ])('PR-21 replies of compatible servers are read even if fields are missing: %s', (_name, reply, text) => {
    const texts = decoded(reply).parts.flatMap((part) => (part.type === 'text' ? [part.text] : []))
    expect(texts.join('')).toBe(text)
  })

  test.each<[string, unknown, string]>([
    ['no arguments', undefined, '{}'],
    ['empty ones', '', '{}'],
    ['an object in place of text', { q: 1 }, '{"q":1}'],
    ['text that is no JSON', '{"q":', '{"q":'],
  ])('a call with %s is a call', (_name, args, expected) => {
    const [part] = decoded(response([call('a', '', { arguments: args })])).parts
    expect(part).toMatchObject({ type: 'tool_call', arguments: expected })
  })

  test('missing and repeated call ids are replaced, the others kept', () => {
    const calls = [
      call('a', '{"n":1}'),
      call('a', '{"n":2}'),
      call('', '{}', { id: undefined }),
      call('', '{}', { id: 'item_4' }),
      { type: 'tool_call', id: 'b', name: 'lookup', arguments: '{}' },
    ]
    const ids = decoded(response(calls)).parts.map((part) => part.type === 'tool_call' && part.callId)

    expect(ids).toEqual(['a', 'call_2_2', 'call_2_3', 'item_4', 'b'])
  })

  test('a replacement id never equals an id of the same reply', () => {
    const ids = decoded(response([call('call_2_2', '{}'), call('', '{}', { id: '' })])).parts.map(
      (part) => part.type === 'tool_call' && part.callId,
    )

    expect(ids).toEqual(['call_2_2', 'call_2_3'])
  })

  test('RF-01 reasoning holds the text that the provider shows: summaries, full text, or nothing', () => {
    const shown = reasoning({
      summary: [
        { type: 'summary_text', text: 'One.' },
        { type: 'summary_text', text: '' },
        { type: 'summary_text', text: 'Two.' },
      ],
      content: [{ type: 'reasoning_text', text: 'Three.' }],
    })
    const texts = decoded(response([shown, reasoning()])).parts.map((part) => part.type === 'reasoning' && part.text)

    expect(texts).toEqual(['One.\n\nTwo.\n\nThree.', ''])
  })

  test('a custom tool is called with its input as JSON', () => {
    const custom = { type: 'custom_tool_call', id: 'ctc_1', call_id: 'call_1', name: 'patch', input: '*** "Begin"' }

    expect(decoded(response([custom]))).toMatchObject({
      finishReason: 'tool_calls',
      parts: [
        {
          type: 'tool_call',
          callId: 'call_1',
          name: 'patch',
          arguments: '{"input":"*** \\"Begin\\""}',
          native: { data: { item: { type: 'custom_tool_call', id: 'ctc_1' } } },
        },
      ],
    })
  })
})

test.each<[string, unknown, (number | null)[]]>([
  ['nothing', undefined, [null, null, null, null, null]],
  ['null', null, [null, null, null, null, null]],
  ['no details', { input_tokens: 3, output_tokens: 4 }, [3, 4, null, null, null]],
  ['null details', { input_tokens: 3, output_tokens: 4, input_tokens_details: null }, [3, 4, null, null, null]],
  ['fractions and texts', { input_tokens: 1.5, output_tokens: '4' }, [null, null, null, null, null]],
  [
    'the names of the chat API',
    { prompt_tokens: 3, completion_tokens: 4, prompt_tokens_details: { cached_tokens: 1 } },
    [3, 4, 1, null, null],
  ],
])('PR-21 usage is normalized, even if it is partial or missing: %s', (_name, usage, counts) => {
  const { usage: found } = decoded(response([], { usage }))
  expect([
    found.inputTokens,
    found.outputTokens,
    found.cacheReadTokens,
    found.cacheWriteTokens,
    found.reasoningTokens,
  ]).toEqual(counts)
})
