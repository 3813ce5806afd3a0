import { describe, expect, test } from 'vitest'
import { toolCallsOf } from '#contracts/entry.js'
import { chunksOf, hear } from './wire.js'

type Call = readonly [callId: string, name: string, text: string]

/** The sum of these pieces, one list per chunk, and the emitted deltas. */
function callsOf(chunks: readonly (readonly unknown[])[]): { calls: Call[]; told: Record<string, string> } {
  const { reply, deltas } = hear(
    chunksOf(
      chunks.map((pieces) => ({ tool_calls: pieces })),
      'tool_calls',
    ),
  )
  const told: Record<string, string> = {}
  for (const { callId = '', text } of deltas) told[callId] = (told[callId] ?? '') + text
  return {
    calls: toolCallsOf(reply.parts).map(({ callId, name, arguments: text }) => [callId, name, text] as const),
    told,
  }
}

describe('assigning a piece to its call', () => {
  const f = (name: string | undefined, text: unknown) => ({ ...(name !== undefined && { name }), arguments: text })

  test.each<[string, readonly (readonly unknown[])[], Call[]]>([
    [
      'by index, interleaved',
      [
        [{ index: 0, id: 'a', type: 'function', function: f('one', '') }],
        [{ index: 1, id: 'b', type: 'function', function: f('two', '{"y"') }],
        [{ index: 0, function: f(undefined, '{"x":') }],
        [
          { index: 1, function: f(undefined, ':2}') },
          { index: 0, function: f(undefined, '1}') },
        ],
      ],
      [
        ['a', 'one', '{"x":1}'],
        ['b', 'two', '{"y":2}'],
      ],
    ],
    [
      'all calls in one chunk, without index',
      [
        [
          { id: 'a', function: f('one', '{}') },
          { id: 'b', function: f('two', '{"y":2}') },
        ],
      ],
      [
        ['a', 'one', '{}'],
        ['b', 'two', '{"y":2}'],
      ],
    ],
    [
      'without index and id: a name begins a call',
      [
        [{ function: f('one', { x: 1 }) }, { function: f('one', { x: 2 }) }],
        [{ function: f('two', '{"y"') }],
        [{ function: f(undefined, ':2}') }],
      ],
      [
        ['call_7_1', 'one', '{"x":1}'],
        ['call_7_2', 'one', '{"x":2}'],
        ['call_7_3', 'two', '{"y":2}'],
      ],
    ],
    [
      'id and name only in the first chunk, without index',
      [
        [{ id: 'a', function: f('one', '{"x":') }],
        [{ function: f(undefined, '1}') }],
        [{ id: 'b', function: f('two', '{"y"') }],
        [{ function: f(undefined, ':2}') }],
      ],
      [
        ['a', 'one', '{"x":1}'],
        ['b', 'two', '{"y":2}'],
      ],
    ],
    [
      'id and name in every chunk, without index',
      [
        [{ id: 'a', function: f('one', '{"x":') }],
        [{ id: 'a', function: f('one', '1}') }],
        [{ id: 'b', function: f('one', '{"x":2}') }],
      ],
      [
        ['a', 'one', '{"x":1}'],
        ['b', 'one', '{"x":2}'],
      ],
    ],
    [
      'another id in every chunk of one index, the name only in the first',
      [[{ index: 0, id: 'a', function: f('one', '{"x":') }], [{ index: 0, id: 'z', function: f(undefined, '1}') }]],
      [['a', 'one', '{"x":1}']],
    ],
    [
      'the same index for all calls, told apart by their ids',
      [[{ index: 0, id: 'a', function: f('one', '{"x":1}') }], [{ index: 0, id: 'b', function: f('two', '{"y":2}') }]],
      [
        ['a', 'one', '{"x":1}'],
        ['b', 'two', '{"y":2}'],
      ],
    ],
    [
      'the same index for all calls, no ids, each whole',
      [
        [
          { index: 0, id: '', function: f('one', '{"x":"}"}') },
          { index: 0, id: '', function: f('one', '{"x":"{"}') },
        ],
      ],
      [
        ['call_7_1', 'one', '{"x":"}"}'],
        ['call_7_2', 'one', '{"x":"{"}'],
      ],
    ],
    [
      'a start that comes twice, and arguments that are summed up at the end',
      [
        [{ index: 0, id: 'a', function: f('one', '') }],
        [{ index: 0, id: 'a', function: f('one', '') }],
        [{ index: 0, function: f(undefined, '{"x":1}') }],
        [{ index: 0, id: 'a', function: f('one', '{"x":1}') }],
      ],
      [['a', 'one', '{"x":1}']],
    ],
    [
      'a name that is repeated, without an id and with nothing new',
      [[{ index: 0, function: f('one', '{"x":1}') }], [{ index: 0, function: f('one', '') }]],
      [['call_7_1', 'one', '{"x":1}']],
    ],
    [
      'a name that is repeated, without an id, in the middle of the arguments',
      [
        [{ index: 0, function: f('one', '{"x":') }],
        [{ index: 0, function: f('one', '{"y":1}') }],
        [{ index: 0, function: f('one', '}') }],
      ],
      [['call_7_1', 'one', '{"x":{"y":1}}']],
    ],
    [
      'a name in pieces, an id that comes later',
      [
        [{ index: 0, function: f('lo', '') }],
        [{ index: 0, id: 'a', function: f('ok', '') }],
        [{ index: 0, function: f(undefined, '{}') }],
      ],
      [['a', 'look', '{}']],
    ],
    [
      'one id for two calls',
      [[{ index: 0, id: 'a', function: f('one', '{}') }], [{ index: 1, id: 'a', function: f('two', '{"y":2}') }]],
      [
        ['a', 'one', '{}'],
        ['call_7_2', 'two', '{"y":2}'],
      ],
    ],
    [
      'no arguments at all, null in every field, indices that do not count from 0',
      [
        [{ index: 5, id: 'a', type: null, function: { name: 'one', arguments: null } }],
        [{ index: 5, id: null, type: null, function: null }],
        [{ index: 3, id: 'b', function: { name: 'two' } }],
      ],
      [
        ['a', 'one', '{}'],
        ['b', 'two', '{}'],
      ],
    ],
    [
      'a custom tool',
      [
        [{ index: 0, id: 'a', type: 'custom', custom: { name: 'sql', input: 'select ' } }],
        [{ index: 0, type: null }],
        [{ index: 0, custom: { input: '"1"' } }],
        [{ index: 0, type: '' }],
      ],
      [['a', 'sql', '{"input":"select \\"1\\""}']],
    ],
    [
      'an empty start that only says where',
      [[{ index: 0 }], [{ index: 0, id: 'a', function: f('one', '{}') }]],
      [['a', 'one', '{}']],
    ],
    ['pieces that are none', [[null, 'x', 7]], []],
  ])('%s', (_name, chunks, expected) => {
    const { calls, told } = callsOf(chunks)
    expect(calls).toEqual(expected)
    for (const [callId, , text] of calls) expect(told[callId] ?? '{}').toBe(text)
  })

  test('extra data of a call is kept, even if it arrives with a later piece', () => {
    const { reply } = hear(
      chunksOf([
        { tool_calls: [{ index: 0, id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } }] },
        { tool_calls: [{ index: 0, extra_content: { google: { thought_signature: 's' } } }] },
      ]),
    )
    const own = { form: 'call', value: { extra_content: { google: { thought_signature: 's' } } } }
    expect(reply.parts).toMatchObject([{ callId: 'a', arguments: '{}', native: { provider: 'here', data: own } }])
  })

  test('a call of the old form', () => {
    const { reply, deltas } = hear(
      chunksOf(
        [
          { function_call: { name: 'f', arguments: '' } },
          { function_call: { arguments: '{"x"' } },
          { function_call: { arguments: ':1}' } },
        ],
        'function_call',
      ),
    )
    expect(reply.parts).toEqual([{ type: 'tool_call', callId: 'call_7_1', name: 'f', arguments: '{"x":1}' }])
    expect(reply.finishReason).toBe('tool_calls')
    expect(deltas).toEqual([
      { kind: 'tool_input_delta', text: '{"x"', callId: 'call_7_1', toolName: 'f' },
      { kind: 'tool_input_delta', text: ':1}', callId: 'call_7_1', toolName: 'f' },
    ])
  })
})
