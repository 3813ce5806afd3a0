import { describe, expect, test } from 'vitest'
import type { AssistantPart, FinishReason, TokenUsage } from '#contracts/entry.js'
import { UNREPORTED_USAGE } from '#contracts/entry.js'
import { decode, replyOf } from './wire.js'

const native = (form: string, value: unknown): { provider: string; data: never } => {
  return { provider: 'here', data: { form, value } as never }
}

describe('the parts of a message', () => {
  test.each<[string, unknown, AssistantPart[]]>([
    ['a text', { content: 'Hello.' }, [{ type: 'text', text: 'Hello.' }]],
    ['nothing', { content: null }, []],
    ['an empty text', { content: '', refusal: '', annotations: [], audio: null, tool_calls: [] }, []],
    [
      'a list of blocks, each a part',
      {
        content: [
          {
            type: 'thinking',
            thinking: [
              { type: 'text', text: 'Hm' },
              { type: 'text', text: '.' },
            ],
            closed: true,
          },
          { type: 'text', text: 'One.' },
          { type: 'reference', reference_ids: [1] },
          { type: 'text', text: ' Two.' },
        ],
      },
      [
        {
          type: 'reasoning',
          text: 'Hm.',
          native: native('block', {
            type: 'thinking',
            thinking: [
              { type: 'text', text: 'Hm' },
              { type: 'text', text: '.' },
            ],
            closed: true,
          }),
        },
        { type: 'text', text: 'One.' },
        { type: 'opaque', native: native('block', { type: 'reference', reference_ids: [1] }) },
        { type: 'text', text: ' Two.' },
      ],
    ],
    [
      'reasoning under the name that it had',
      { content: 'Yes.', reasoning_content: 'Well' },
      [
        { type: 'reasoning', text: 'Well', native: native('field', 'reasoning_content') },
        { type: 'text', text: 'Yes.' },
      ],
    ],
    [
      'reasoning under two names, once',
      { reasoning: 'Well', reasoning_content: 'Well' },
      [{ type: 'reasoning', text: 'Well', native: native('field', 'reasoning_content') }],
    ],
    [
      'reasoning details, each a part, in place of the plain text',
      {
        reasoning: 'Well',
        reasoning_details: [
          { type: 'reasoning.summary', summary: 'Well', index: 0 },
          { type: 'reasoning.encrypted', data: 'x9', id: 'rs_1', index: 0 },
        ],
      },
      [
        {
          type: 'reasoning',
          text: 'Well',
          native: native('detail', { type: 'reasoning.summary', summary: 'Well', index: 0 }),
        },
        {
          type: 'reasoning',
          text: '',
          native: native('detail', { type: 'reasoning.encrypted', data: 'x9', id: 'rs_1', index: 0 }),
        },
      ],
    ],
    [
      'reasoning details that show nothing, beside the plain text',
      { reasoning: 'Well', reasoning_details: [{ type: 'reasoning.encrypted', data: 'x9' }] },
      [
        { type: 'reasoning', text: 'Well', native: native('field', 'reasoning') },
        { type: 'reasoning', text: '', native: native('detail', { type: 'reasoning.encrypted', data: 'x9' }) },
      ],
    ],
    [
      'what is no answer, by its field',
      {
        content: 'See there.',
        annotations: [{ type: 'url_citation', url_citation: { url: 'https://example.com' } }],
        audio: { id: 'audio_1', data: '', transcript: 'See' },
        surprise: { deep: [1] },
        channel: 'final',
        role: { name: 'assistant' },
      },
      [
        { type: 'text', text: 'See there.', annotations: [{ url: 'https://example.com', from: 0, to: 10 }] },
        {
          type: 'opaque',
          native: native('message', {
            annotations: [{ type: 'url_citation', url_citation: { url: 'https://example.com' } }],
          }),
        },
        { type: 'opaque', native: native('message', { audio: { id: 'audio_1', data: '', transcript: 'See' } }) },
        { type: 'opaque', native: native('message', { surprise: { deep: [1] } }) },
      ],
    ],
  ])('RF-03 a message becomes parts, and reasoning keeps its details: %s', (_name, message, parts) => {
    expect(decode(replyOf(message)).parts).toEqual(parts)
  })
})

describe('the calls of a message', () => {
  const call = (callId: string, name: string, text: string, extra?: unknown): AssistantPart => {
    const own = extra === undefined ? {} : { native: native('call', extra) }
    return { type: 'tool_call', callId, name, arguments: text, ...own }
  }

  test.each<[string, unknown, AssistantPart[]]>([
    [
      'several',
      {
        tool_calls: [
          { id: 'a', type: 'function', index: 0, function: { name: 'f', arguments: '{"x":1}' } },
          { id: 'b', type: 'function', index: 1, function: { name: 'g', arguments: '{}' } },
        ],
      },
      [call('a', 'f', '{"x":1}'), call('b', 'g', '{}')],
    ],
    [
      'ids that are missing or repeated are replaced',
      {
        tool_calls: [
          { id: 'a', function: { name: 'f', arguments: '{"x":1}' } },
          { id: 'a', function: { name: 'f', arguments: '{"x":2}' } },
          { function: { name: 'f', arguments: '{}' } },
        ],
      },
      [call('a', 'f', '{"x":1}'), call('call_7_2', 'f', '{"x":2}'), call('call_7_3', 'f', '{}')],
    ],
    [
      'an id that was made is not the id of another call',
      {
        tool_calls: [
          { id: 'call_7_2', function: { name: 'f' } },
          { id: '', function: { name: 'f' } },
        ],
      },
      [call('call_7_2', 'f', '{}'), call('call_7_3', 'f', '{}')],
    ],
    [
      'arguments as an object, empty or missing',
      {
        tool_calls: [
          { id: 'a', function: { name: 'f', arguments: { x: [1] } } },
          { id: 'b', function: { name: 'f', arguments: '' } },
          { id: 'c', function: { name: 'f', arguments: null } },
        ],
      },
      [call('a', 'f', '{"x":[1]}'), call('b', 'f', '{}'), call('c', 'f', '{}')],
    ],
    [
      'text that is no JSON stays as it is',
      { tool_calls: [{ id: 'a', function: { name: 'f', arguments: '{"x":' } }] },
      [call('a', 'f', '{"x":')],
    ],
    [
      'what a call has beside, such as a signature',
      {
        tool_calls: [
          { id: 'a', type: 'function', extra_content: { google: { thought_signature: 's' } }, function: { name: 'f' } },
        ],
      },
      [call('a', 'f', '{}', { extra_content: { google: { thought_signature: 's' } } })],
    ],
    [
      'a call of a custom tool',
      { tool_calls: [{ id: 'a', type: 'custom', custom: { name: 'sql', input: 'select "1"' } }] },
      [call('a', 'sql', '{"input":"select \\"1\\""}', { type: 'custom' })],
    ],
    [
      'a call of another type that is none for us',
      { tool_calls: [{ id: 'a', type: 'mcp', server: 'x' }] },
      [{ type: 'opaque', native: native('message', { tool_calls: [{ id: 'a', type: 'mcp', server: 'x' }] }) }],
    ],
    ['the old form', { function_call: { name: 'f', arguments: '{"x":1}' } }, [call('call_7_1', 'f', '{"x":1}')]],
    ['the old form, empty', { function_call: { name: '', arguments: '' } }, []],
  ])('%s', (_name, message, parts) => {
    expect(decode(replyOf(message, 'tool_calls')).parts).toEqual(parts)
  })
})

describe('the finish reason', () => {
  const calls = [{ id: 'a', function: { name: 'f', arguments: '{}' } }]

  test.each<[string, unknown, string | null, FinishReason]>([
    ['a stop', { content: 'x' }, 'stop', 'stop'],
    ['a stop of blocks', { content: [{ type: 'text', text: 'x' }] }, 'stop', 'stop'],
    ['a stop with calls', { tool_calls: calls }, 'stop', 'tool_calls'],
    ['calls', { tool_calls: calls }, 'tool_calls', 'tool_calls'],
    ['a call of the old form', { function_call: { name: 'f', arguments: '{}' } }, 'function_call', 'tool_calls'],
    ['nothing said, with calls', { tool_calls: calls }, null, 'tool_calls'],
    ['nothing said', { content: 'x' }, null, 'other'],
    ['an empty word', { content: 'x' }, '', 'other'],
    ['an unknown word', { content: 'x' }, 'constructor', 'other'],
    ['the limit', { content: 'x' }, 'length', 'length'],
    ['the limit, in the middle of a call', { tool_calls: calls }, 'length', 'length'],
    ['the limit, in other words', { content: 'x' }, 'MAX_TOKENS', 'length'],
    ['the filter', { content: '' }, 'content_filter', 'content_filter'],
    ['a refusal that says stop', { content: null, refusal: 'No.' }, 'stop', 'refusal'],
    ['a refusal as a block', { content: [{ type: 'refusal', refusal: 'No.' }] }, 'stop', 'refusal'],
    ['a pause', { content: 'x' }, 'pause_turn', 'pause'],
  ])(
    'PR-22 the finish reason is normalized, and a cut or a refusal wins over a plain end: %s',
    (_name, message, word, reason) => {
      const reply = decode(replyOf(message, word))
      expect([reply.finishReason, reply.nativeFinishReason]).toEqual([reason, word === '' ? null : word])
    },
  )

  test('a refusal that only the provider behind a gateway names is recognized', () => {
    const reply = { choices: [{ message: { content: 'No.' }, finish_reason: 'stop', native_finish_reason: 'refusal' }] }
    expect(decode(reply).finishReason).toBe('refusal')
  })

  test('a filter that left no message is recognized', () => {
    expect(decode({ choices: [{ finish_reason: 'content_filter' }] })).toMatchObject({
      parts: [],
      finishReason: 'content_filter',
    })
  })

  test('PR-22 only the first choice counts', () => {
    const choice = (content: string) => ({ message: { content }, finish_reason: 'stop' })
    const { parts } = decode({ choices: [choice('one'), choice('two')] })
    expect(parts).toEqual([{ type: 'text', text: 'one' }])
  })

  test('PR-20 the model of the reply wins over that of the choice, and an empty name is ignored', () => {
    const choice = { message: { content: 'x' }, finish_reason: 'stop', model: 'inner' }
    expect(decode({ id: '', model: '', choices: [choice] })).toMatchObject({ responseId: null, responseModel: 'inner' })
    expect(decode({ id: 'r', model: 'outer', choices: [choice] })).toMatchObject({ responseModel: 'outer' })
  })
})

describe('usage and cost of a reply', () => {
  const usage = (changes: Partial<TokenUsage>): TokenUsage => ({ ...UNREPORTED_USAGE, ...changes })

  test.each<[string, unknown, TokenUsage]>([
    ['nothing reported', undefined, UNREPORTED_USAGE],
    ['no object', 'much', UNREPORTED_USAGE],
    ['tokens', { prompt_tokens: 3, completion_tokens: 5 }, usage({ inputTokens: 3, outputTokens: 5 })],
    ['the other names', { input_tokens: 3, output_tokens: 5 }, usage({ inputTokens: 3, outputTokens: 5 })],
    ['no whole numbers', { prompt_tokens: 1.5, completion_tokens: '5' }, UNREPORTED_USAGE],
    [
      'details',
      {
        prompt_tokens: 9,
        completion_tokens: 5,
        prompt_tokens_details: { cached_tokens: 4, cache_write_tokens: 2 },
        completion_tokens_details: { reasoning_tokens: 1 },
      },
      usage({ inputTokens: 9, outputTokens: 5, cacheReadTokens: 4, cacheWriteTokens: 2, reasoningTokens: 1 }),
    ],
    ['cached tokens without details', { cached_tokens: 4 }, usage({ cacheReadTokens: 4 })],
    ['cached tokens by another name', { prompt_cache_hit_tokens: 4 }, usage({ cacheReadTokens: 4 })],
  ])('PR-20 PR-21 usage and cost are normalized, even if they are partial or missing: %s', (_name, given, expected) => {
    expect(decode({ ...replyOf({ content: 'x' }), usage: given }).usage).toEqual(expected)
  })
})

describe('an error in a successful response', () => {
  const broken = { message: 'Upstream is down', code: 502 }

  test.each<[string, unknown, object]>([
    ['beside nothing', { error: broken }, { status: 502, retryable: true, message: 'Upstream is down' }],
    ['beside a choice', { ...replyOf({ content: 'x' }), error: broken }, { status: 502, retryable: true }],
    ['in a list', [{ error: broken }], { status: 502, message: 'Upstream is down' }],
    ['as a text', { error: 'no memory' }, { message: 'no memory' }],
    ['as the reply itself', { object: 'error', message: 'too long', code: 400 }, { message: 'too long', status: 400 }],
    [
      'in a choice',
      { choices: [{ error: broken, message: { content: 'Part' }, finish_reason: 'error' }] },
      { status: 502, message: 'Upstream is down' },
    ],
    ['as a word only', replyOf({ content: 'Part' }, 'error'), { retryable: true }],
    [
      'no word of its end, and a call that is cut',
      replyOf({ tool_calls: [{ id: 'a', function: { name: 'f', arguments: '{"x":' } }] }, null),
      { retryable: true },
    ],
    ['in a list of lists', [[{ error: broken }]], { retryable: true }],
    ['no choices', { id: 'x', choices: [] }, { retryable: true }],
    ['choices that are none', { choices: null }, { retryable: true }],
    ['no object', 'Service starting', { retryable: true }],
    ['nothing', null, { retryable: true }],
    ['nothing at all', undefined, { retryable: true }],
  ])('%s', (_name, reply, error) => {
    expect(() => decode(reply)).toThrow(expect.objectContaining({ code: 'provider_error', ...error }))
  })

  test.each([null, {}, ''])('an `error` of %j is not one', (error) => {
    expect(decode({ ...replyOf({ content: 'x' }), error }).parts).toEqual([{ type: 'text', text: 'x' }])
  })
})
