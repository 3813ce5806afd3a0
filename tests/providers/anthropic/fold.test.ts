import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { ModelDelta } from 'thinharness'
import type { JsonObject } from '#util/json.js'
import { callIdFor, decoded, errorOf, events, folded, format } from './support.js'

const text = (piece: string): JsonObject => ({ type: 'text_delta', text: piece })
const json = (partial_json: string): JsonObject => ({ type: 'input_json_delta', partial_json })
const thinking = (piece: string): JsonObject => ({ type: 'thinking_delta', thinking: piece })
const signature = (piece: string): JsonObject => ({ type: 'signature_delta', signature: piece })
const call = (id: string, more: JsonObject = {}): JsonObject => ({
  type: 'tool_use',
  id,
  name: 'read',
  input: {},
  ...more,
})

const TEXT = { type: 'text', text: '' }
const THINKING = { type: 'thinking', thinking: '', signature: '' }

test('PR-18 a streamed reply equals the same message unstreamed', () => {
  const streamed = folded(
    events([
      [THINKING, thinking('Let me '), thinking('see.'), signature('ab'), signature('cd')],
      [{ type: 'redacted_thinking', data: 'xyz' }],
      [TEXT, text('Look'), text(' it up.'), { type: 'citations_delta', citation: { type: 'page_location' } }],
      [{ type: 'server_tool_use', id: 's', name: 'web_search', input: {} }, json('{"q":'), json('"a"}')],
      [call('c', { caller: { type: 'direct' } }), json(''), json('{"path":'), json('"a"}')],
    ]),
  )

  const { raw, ...reply } = streamed.reply
  expect(raw).toEqual({
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'claude',
    content: [
      { type: 'thinking', thinking: 'Let me see.', signature: 'abcd' },
      { type: 'redacted_thinking', data: 'xyz' },
      { type: 'text', text: 'Look it up.', citations: [{ type: 'page_location' }] },
      { type: 'server_tool_use', id: 's', name: 'web_search', input: { q: 'a' } },
      { type: 'tool_use', id: 'c', name: 'read', input: { path: 'a' }, caller: { type: 'direct' } },
    ],
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage: { output_tokens: 5 },
  })
  expect({ ...reply, raw }).toEqual(decoded(raw))
})

test('each piece is emitted once and in order, a call with its id', () => {
  const { deltas } = folded(
    events([
      [THINKING, thinking('Hm.'), signature('s')],
      [{ type: 'text', text: 'O' }, text('k'), text('')],
      [call('c'), json('{"a":'), json('1}')],
    ]),
  )

  expect(deltas).toEqual([
    { kind: 'reasoning_delta', text: 'Hm.' },
    { kind: 'text_delta', text: 'O' },
    { kind: 'text_delta', text: 'k' },
    { kind: 'tool_input_delta', text: '{"a":', callId: 'c', toolName: 'read' },
    { kind: 'tool_input_delta', text: '1}', callId: 'c', toolName: 'read' },
  ])
})

test('calls with interleaved pieces, with the same id or without one are kept apart', () => {
  const start = (index: number, content_block: JsonObject): JsonObject => ({
    type: 'content_block_start',
    index,
    content_block,
  })
  const piece = (index: number, partial_json: string): JsonObject => ({
    type: 'content_block_delta',
    index,
    delta: json(partial_json),
  })
  const [open, ...rest] = events([])
  const { reply, deltas } = folded([
    open,
    start(0, call('a')),
    start(1, call('a')),
    start(2, { type: 'tool_use', name: 'read' }),
    piece(2, '{"n":3}'),
    piece(0, '{"n":'),
    piece(1, '{"n":2}'),
    piece(0, '1}'),
    ...rest,
  ])

  expect(reply.parts).toEqual([
    { type: 'tool_call', callId: 'a', name: 'read', arguments: '{"n":1}' },
    { type: 'tool_call', callId: 'call_9_2', name: 'read', arguments: '{"n":2}' },
    { type: 'tool_call', callId: 'call_9_3', name: 'read', arguments: '{"n":3}' },
  ])
  expect(deltas.map(({ callId }) => callId)).toEqual(['call_9_3', 'a', 'a', 'call_9_2'])
})

describe('arguments', () => {
  test.each<[string, JsonObject, JsonObject[], string]>([
    ['none', call('c'), [], '{}'],
    ['empty', call('c'), [json('')], '{}'],
    ['cut off', call('c'), [json('{"path": "a')], '{"path": "a'],
    ['whole at the start', call('c', { input: { path: 'a' } }), [], '{"path":"a"}'],
    ['at the start and in pieces', call('c', { input: { path: 'a' } }), [json('{"path":"a"}')], '{"path":"a"}'],
    ['spelled as the model wrote them', call('c'), [json('{ "n" : 1.0 }')], '{ "n" : 1.0 }'],
  ])('%s', (_name, start, pieces, wanted) => {
    const { reply, deltas } = folded(events([[start, ...pieces]]))

    expect(reply.parts).toEqual([{ type: 'tool_call', callId: 'c', name: 'read', arguments: wanted }])
    expect(deltas.map((delta) => delta.text).join('') || '{}').toBe(wanted)
  })
})

test('PR-18 the last usage counts, field by field', () => {
  const { reply } = folded([
    {
      type: 'message_start',
      message: { id: 'm', usage: { input_tokens: 612, cache_read_input_tokens: 5, output_tokens: 1 } },
    },
    {
      type: 'message_delta',
      delta: {},
      usage: { input_tokens: 28, cache_read_input_tokens: null, output_tokens: 106 },
    },
    { type: 'message_stop' },
  ])

  expect(reply.usage).toMatchObject({ inputTokens: 33, cacheReadTokens: 5, outputTokens: 106 })
})

describe('unknown events and blocks', () => {
  const wanted = [{ type: 'text', text: 'Hi' }]

  test.each<[string, unknown[]]>([
    ['events of the future', [{ type: 'aurora', index: 0 }, { type: 'ping' }, {}, null, 'text', 7, []]],
    ['pieces of no known block', [{ type: 'content_block_delta', index: 9, delta: json('{}') }]],
    [
      'a piece that is none',
      [
        { type: 'content_block_delta', index: 0 },
        { type: 'content_block_start', index: 4 },
      ],
    ],
    ['a second start of the same message', [{ type: 'message_start', message: { id: 'msg_1' } }]],
  ])('%s', (_name, between) => {
    const [open, ...rest] = events([[TEXT, text('Hi')]])

    expect(folded([open, ...between, ...rest]).reply.parts).toEqual(wanted)
  })

  test('a repeated start of a block, a block without a start, and a repeated index are handled', () => {
    const at = (index: number, delta: JsonObject): JsonObject => ({ type: 'content_block_delta', index, delta })
    const start = (index: number, content_block: JsonObject): JsonObject => ({
      type: 'content_block_start',
      index,
      content_block,
    })
    const [open, ...rest] = events([])

    const { reply } = folded([
      open,
      start(0, TEXT),
      start(0, TEXT),
      at(0, text('one')),
      start(0, TEXT),
      at(0, text('two')),
      start(0, call('c')),
      at(0, json('{"a"')),
      start(0, call('c')),
      at(0, json(':1}')),
      at(5, text('three')),
      at(6, thinking('four')),
      ...rest,
    ])

    expect(reply.parts).toEqual([
      { type: 'text', text: 'one' },
      { type: 'text', text: 'two' },
      { type: 'tool_call', callId: 'c', name: 'read', arguments: '{"a":1}' },
      { type: 'text', text: 'three' },
      { type: 'reasoning', text: 'four' },
    ])
  })

  test('RF-12 the pieces of an unknown block are collected in it', () => {
    const block = { type: 'compaction', content: null, signs: [1] }
    const { reply, deltas } = folded(
      events([
        [
          block,
          { type: 'compaction_delta', content: 'So ' },
          { type: 'compaction_delta', content: 'far.', signs: [2], depth: 1 },
          text('!'),
        ],
      ]),
    )

    expect(reply.parts).toEqual([
      {
        type: 'opaque',
        native: {
          provider: 'anthropic',
          data: { type: 'compaction', content: 'So far.', signs: [1, 2], depth: 1, text: '!' },
        },
      },
    ])
    expect(deltas).toEqual([])
  })
})

describe('a broken stream', () => {
  const whole = events([[TEXT, text('Hi')]])

  test.each<[string, unknown[], { retryable: boolean; message: RegExp }]>([
    ['has no events', [], { retryable: true, message: /message_stop/ }],
    ['stops early', whole.slice(0, -2), { retryable: true, message: /message_stop/ }],
    ['has no message', [{ type: 'message_stop' }], { retryable: true, message: /message_stop/ }],
    [
      'begins another message',
      [...whole.slice(0, 3), { type: 'message_start', message: { id: 'msg_2' } }, ...whole.slice(3)],
      { retryable: true, message: /second message/ },
    ],
    [
      'has an error event',
      [...whole.slice(0, 3), { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }],
      { retryable: true, message: /Overloaded/ },
    ],
    [
      'has an error that will come again',
      [{ type: 'error', error: { type: 'invalid_request_error', message: 'Bad' } }],
      { retryable: false, message: /Bad/ },
    ],
    ['has an error without a type', [{ error: { message: 'Broken' } }], { retryable: true, message: /Broken/ }],
  ])('a stream that %s', (_name, chunks, { retryable, message }) => {
    const error = errorOf(() => folded(chunks))

    expect(error).toMatchObject({ code: 'provider_error', retryable })
    expect(error.message).toMatch(message)
  })

  test('an event with the name of an error is an error, whatever it holds', () => {
    const fold = format().fold({ callIdFor, onDelta: undefined })

    expect(
      errorOf(() => {
        fold.add({ event: 'error', data: 'Overloaded' })
      }),
    ).toMatchObject({ code: 'provider_error' })
  })

  test('events after the end are skipped', () => {
    const { reply } = folded([
      ...whole,
      { type: 'message_start', message: { id: 'msg_2' } },
      ...events([[TEXT, text('x')]]),
    ])

    expect(reply.parts).toEqual([{ type: 'text', text: 'Hi' }])
  })
})

test('deltas add up to the reply, however it is split', () => {
  const pieces = fc.array(fc.string(), { maxLength: 6 })
  fc.assert(
    fc.property(pieces, pieces, pieces, (texts, thoughts, inputs) => {
      const { reply, deltas } = folded(
        events([
          [THINKING, ...thoughts.map(thinking), signature('s')],
          [TEXT, ...texts.map(text)],
          [call('c'), ...inputs.map(json)],
        ]),
      )
      const joined = (kind: ModelDelta['kind']): string =>
        deltas.flatMap((delta) => (delta.kind === kind ? [delta.text] : [])).join('')
      const written = (type: string): string =>
        reply.parts.flatMap((part) => (part.type === type && 'text' in part ? [part.text] : [])).join('')

      expect(joined('text_delta')).toBe(written('text'))
      expect(joined('reasoning_delta')).toBe(written('reasoning'))
      expect(reply.parts).toContainEqual(
        expect.objectContaining({ type: 'tool_call', arguments: joined('tool_input_delta') || '{}' }),
      )
    }),
  )
})

test('blocks that come with the start of the message are a part of the reply', () => {
  const call = { type: 'tool_use', id: 'a', name: 'read', input: { n: 1 } }
  const [open, ...rest] = events([])
  const message = { ...(open?.['message'] as JsonObject), content: [{ type: 'text', text: 'Now.' }, call] }
  const { reply, deltas } = folded([{ ...open, message }, ...rest])

  expect(reply.parts).toEqual([
    { type: 'text', text: 'Now.' },
    { type: 'tool_call', callId: 'a', name: 'read', arguments: '{"n":1}' },
  ])
  expect(deltas.map(({ text }) => text)).toEqual(['Now.', '{"n":1}'])
})
