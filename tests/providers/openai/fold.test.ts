import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { HarnessError } from '#contracts/errors.js'
import { responsesFormat } from '#providers/openai/request.js'
import { without } from '#providers/wire/wire-fields.js'
import { assistant } from './entries.js'
import { NO_CONSTANTS, call, chunk, decoded, eventsOf, folded, message, reasoning, response, told } from './replies.js'
import type { Fields } from './replies.js'
import { rounds } from '../../support/length.js'

const SUMMARY = [
  { type: 'summary_text', text: 'First this.' },
  { type: 'summary_text', text: 'Then that.' },
]
const REFUSAL = { type: 'refusal', refusal: 'I will not.' }
const TEXT = { type: 'output_text', text: 'But this:', annotations: [{ type: 'url_citation', url: 'https://a.b' }] }
const CUSTOM = { type: 'custom_tool_call', id: 'ctc_1', call_id: 'call_9', name: 'patch', input: '*** Begin' }
const SEARCH = { id: 'ws_1', type: 'web_search_call', status: 'completed' }
const RICH = response([
  reasoning({ summary: SUMMARY }),
  SEARCH,
  message('', { content: [REFUSAL, TEXT] }),
  reasoning({ id: 'rs_2', content: [{ type: 'reasoning_text', text: 'Hm.' }] }),
  call('call_1', '{"q":"first"}'),
  call('call_2', '{"q":"second"}'),
  CUSTOM,
])

test('a streamed reply equals the whole reply, and its deltas add up to it', () => {
  const { reply, deltas } = folded(eventsOf(RICH))

  expect(reply).toEqual(decoded(RICH))
  expect(told(deltas, 'text_delta')).toBe('But this:')
  expect(told(deltas, 'reasoning_delta')).toBe('First this.\n\nThen that.Hm.')
  expect(told(deltas, 'tool_input_delta', 'call_1')).toBe('{"q":"first"}')
  expect(told(deltas, 'tool_input_delta', 'call_2')).toBe('{"q":"second"}')
  expect(told(deltas, 'tool_input_delta', 'call_9')).toBe('{"input":"*** Begin"}')
})

test('deltas are emitted as they arrive, each once', () => {
  const deltas: string[] = []
  const fold = responsesFormat('gpt-5.5').fold({
    callIdFor: String,
    onDelta: ({ kind, text }) => void deltas.push(`${kind} ${text}`),
  })
  const seen = eventsOf(response([message('Hello!'), call('call_1', '{"a":1}')])).map((event) => {
    fold.add(chunk(event))
    return deltas.splice(0)
  })

  expect(seen.filter((each) => each.length > 0)).toEqual([
    ['text_delta Hel'],
    ['text_delta lo!'],
    ['tool_input_delta {"a'],
    ['tool_input_delta ":1'],
    ['tool_input_delta }'],
  ])
})

describe('omissions of servers', () => {
  const all = eventsOf(RICH)
  const isOf = (event: Fields, ...types: string[]): boolean => types.includes(String(event['type']))
  const withFinal = (change: (final: Fields) => Fields): Fields[] =>
    all.map((event) =>
      isOf(event, 'response.completed') ? { ...event, response: change(event['response'] as Fields) } : event,
    )

  test.each<[string, Fields[]]>([
    ['the deltas', all.filter((event) => !String(event['type']).endsWith('.delta'))],
    ['the announcements', all.filter((event) => !isOf(event, 'response.output_item.added'))],
    ['the endings of items', all.filter((event) => !isOf(event, 'response.output_item.done'))],
    ['the output of the final response', withFinal((final) => ({ ...final, output: [] }))],
    ['the indexes', all.map((event) => without(event, 'output_index'))],
    ['the begin', all.slice(1)],
    ['everything but the final response', all.slice(-1)],
    [
      'the texts of the endings',
      all.map((event) => {
        const { item } = event as { item?: Fields }
        if (!isOf(event, 'response.output_item.done')) return event
        if (item?.['type'] === 'message') return { ...event, item: { ...item, content: [] } }
        return item?.['type'] === 'function_call' ? { ...event, item: { ...item, arguments: '' } } : event
      }),
    ],
  ])('a stream without %s yields the same reply', (_name, events) => {
    const { reply, deltas } = folded(events)

    expect(reply.parts).toEqual(decoded(RICH).parts)
    expect(told(deltas, 'text_delta')).toBe('But this:')
    expect(told(deltas, 'tool_input_delta', 'call_2')).toBe('{"q":"second"}')
    expect(told(deltas, 'tool_input_delta', 'call_9')).toBe('{"input":"*** Begin"}')
  })

  test('deltas alone are a reply too', () => {
    const events = all.filter((event) => String(event['type']).endsWith('.delta') || event === all[0])
    const { reply } = folded([...events, { type: 'response.completed', response: { status: 'completed' } }])

    expect(reply.parts.map((part) => ('text' in part ? part.text : part.type))).toEqual([
      'First this.\n\nThen that.',
      'opaque',
      'But this:',
      'Hm.',
      'tool_call',
      'tool_call',
      'tool_call',
    ])
    expect(reply).toMatchObject({ responseId: 'resp_1', responseModel: 'gpt-5.5-2026', finishReason: 'refusal' })
  })

  test('an incomplete response keeps its unfinished items', () => {
    const cut = message('Half a sent', { status: 'incomplete' })
    const whole = response([cut], { status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } })
    const events = eventsOf(whole).filter((event) => !isOf(event, 'response.output_item.done'))

    expect(folded(events).reply).toEqual(decoded(whole))
  })
})

describe('mistakes of servers', () => {
  test('duplicate start and announcement events change nothing', () => {
    const events = eventsOf(RICH).flatMap((event) =>
      ['response.created', 'response.output_item.added'].includes(String(event['type'])) ? [event, event] : [event],
    )

    expect(folded(events).reply).toEqual(decoded(RICH))
  })

  test('items that all have the same index stay apart', () => {
    const events = eventsOf(response([message('Hi.'), call('call_1', '{"a":1}'), call('call_2', '{"a":2}')])).map(
      (event) => ('output_index' in event ? { ...event, output_index: 0 } : event),
    )
    const { reply, deltas } = folded(events)

    expect(reply.parts.map((part) => (part.type === 'tool_call' ? part.arguments : part.type))).toEqual([
      'text',
      '{"a":1}',
      '{"a":2}',
    ])
    expect(told(deltas, 'tool_input_delta', 'call_2')).toBe('{"a":2}')
  })

  test('item ids that differ from event to event change nothing', () => {
    let count = 0
    const events = eventsOf(RICH).map((event) => ('item_id' in event ? { ...event, item_id: `x_${count++}` } : event))

    expect(folded(events).reply.parts).toEqual(decoded(RICH).parts)
  })

  test('interleaved calls get their own arguments', () => {
    const [a, b] = [call('call_a', '{"q":"aaa"}'), call('call_b', '{"q":"bbb"}')]
    const events = eventsOf(response([a, b]))
    const [first, second] = [0, 1].map((index) => events.filter((event) => event['output_index'] === index))
    const mixed = first!.flatMap((event, at) => [event, second![at]!])
    const { reply, deltas } = folded([...mixed, events.at(-1)!])

    expect(reply.parts).toEqual(decoded(response([a, b])).parts)
    expect(told(deltas, 'tool_input_delta', 'call_a')).toBe('{"q":"aaa"}')
    expect(told(deltas, 'tool_input_delta', 'call_b')).toBe('{"q":"bbb"}')
  })

  test.each([null, '', 'in_progress', undefined])(
    'an end with the status %j is the end that its event names',
    (status) => {
      const whole = response([message('Half a')], { incomplete_details: { reason: 'max_output_tokens' } })
      const events = eventsOf(whole).slice(0, -1)
      const end = { type: 'response.incomplete', response: { ...whole, status } }

      expect(folded([...events, end]).reply).toMatchObject({ finishReason: 'length' })
      expect(folded([...events, { ...end, type: 'response.completed' }]).reply).toMatchObject({ finishReason: 'stop' })
    },
  )

  test('a call without an id is emitted under its new id', () => {
    const events = eventsOf(response([message('Hi.'), call('', '{"a":1}', { id: '' })]))
    const { reply, deltas } = folded(events)

    expect(reply.parts[1]).toMatchObject({ callId: 'call_2_2', arguments: '{"a":1}' })
    expect(told(deltas, 'tool_input_delta', 'call_2_2')).toBe('{"a":1}')
  })

  test('a call with a late id is emitted once the id is known', () => {
    const events = eventsOf(response([call('call_1', '{"a":1}')])).map((event) =>
      event['type'] === 'response.output_item.added'
        ? { ...event, item: { ...(event['item'] as Fields), call_id: '' } }
        : event,
    )
    const { reply, deltas } = folded(events)

    expect(reply.parts).toMatchObject([{ callId: 'call_1' }])
    expect(told(deltas, 'tool_input_delta', 'call_1')).toBe('{"a":1}')
  })

  test('empty arguments are an empty object', () => {
    expect(folded(eventsOf(response([call('call_1', '')]))).reply.parts).toMatchObject([{ arguments: '{}' }])
  })

  test.each<[string, unknown]>([
    ['an event of tomorrow', { type: 'response.thought_bubble.delta', delta: '?', output_index: 0 }],
    ['an event about nothing', { type: 'response.output_item.added' }],
    ['a delta that is no text', { type: 'response.output_text.delta', output_index: 0, delta: { text: 'x' } }],
    ['an empty delta', { type: 'response.output_text.delta', output_index: 0, delta: '' }],
    ['the end mark', null],
    ['a number', 7],
    ['an empty object', {}],
    ['a progress report with an error field', { type: 'response.mcp_call.failed', output_index: 0, error: { a: 1 } }],
  ])('%s is skipped', (_name, data) => {
    const events = eventsOf(RICH)
    const fold = responsesFormat('gpt-5.5').fold({ callIdFor: String, onDelta: undefined })
    for (const event of [...events.slice(0, 3), data, ...events.slice(3), data]) fold.add(chunk(event))

    expect(fold.end().parts).toEqual(decoded(RICH).parts)
  })
})

describe('errors', () => {
  test.each<[string, string | null, Fields, string, boolean]>([
    ['its fields in the event', null, { type: 'error', code: 'server_error', message: 'Broken.' }, 'Broken.', true],
    [
      'an object in the event',
      null,
      { type: 'error', error: { type: 'invalid_request_error', message: 'No.' } },
      'No.',
      false,
    ],
    ['no type but the name of the event', 'error', { message: 'Overloaded.', code: 'overloaded' }, 'Overloaded.', true],
    ['no type at all', null, { error: { code: 'rate_limit_exceeded', message: 'Slow.' } }, 'Slow.', true],
    [
      'a failed response',
      null,
      {
        type: 'response.failed',
        response: { status: 'failed', error: { code: 'rate_limit_exceeded', message: 'Slow.' } },
      },
      'Slow.',
      true,
    ],
  ])('an error in the stream, with %s, is thrown', (_name, event, data, words, retryable) => {
    const fold = responsesFormat('gpt-5.5').fold({ callIdFor: String, onDelta: undefined })
    fold.add(chunk(eventsOf(RICH)[0]))
    const error = thrownBy(() => fold.add({ event, data }))

    expect(error).toMatchObject({ code: 'provider_error', retryable })
    expect(error.message).toContain(words)
  })

  test('a stream that stops before its end is an error, even after text', () => {
    const events = eventsOf(RICH)
    for (let length = 0; length < events.length; length++) {
      const error = thrownBy(() => folded(events.slice(0, length)))
      expect(error).toMatchObject({ code: 'provider_error', retryable: true })
    }
  })
})

function thrownBy(act: () => unknown): HarnessError {
  try {
    act()
  } catch (error) {
    if (error instanceof HarnessError) return error
    throw error
  }
  throw new Error('Expected a HarnessError.')
}

const anyText = fc.string({ unit: 'grapheme', maxLength: 12 })
const anyItem = fc.oneof(
  anyText.map((text) => message(text)),
  fc
    .array(anyText, { maxLength: 3 })
    .map((texts) => message('', { content: texts.map((text) => ({ type: 'output_text', text, annotations: [] })) })),
  fc
    .array(anyText, { maxLength: 3 })
    .map((texts) => reasoning({ summary: texts.map((text) => ({ type: 'summary_text', text })) })),
  fc.tuple(fc.uuid(), fc.json({ maxDepth: 1 })).map(([id, args]) => call(id, args)),
  fc.constant(SEARCH),
)

test('any response, streamed in pieces of any length, yields the same reply', () => {
  fc.assert(
    fc.property(fc.array(anyItem, { maxLength: 6 }), fc.integer({ min: 1, max: 20 }), (output, length) => {
      const items = output.map((item, index) => ({ ...item, id: `item_${index}` }))
      const { reply, deltas } = folded(eventsOf(response(items), length))

      expect(reply).toEqual(decoded(response(items)))
      const texts = reply.parts.map((part) => (part.type === 'text' ? part.text : ''))
      const thoughts = reply.parts.map((part) => (part.type === 'reasoning' ? part.text : ''))
      expect(told(deltas, 'text_delta')).toBe(texts.join(''))
      expect(told(deltas, 'reasoning_delta')).toBe(thoughts.join(''))
      for (const part of reply.parts) {
        if (part.type === 'tool_call') expect(told(deltas, 'tool_input_delta', part.callId)).toBe(part.arguments)
      }
    }),
  )
})

const anyEvent = fc.record(
  {
    type: fc.constantFrom(
      'response.created',
      'response.output_item.added',
      'response.output_item.done',
      'response.output_text.delta',
      'response.reasoning_summary_text.delta',
      'response.function_call_arguments.delta',
      'response.custom_tool_call_input.delta',
      'response.completed',
      'error',
    ),
    output_index: fc.constantFrom(0, 1, null, 'x'),
    item_id: fc.constantFrom('a', null, 7),
    content_index: fc.constantFrom(0, 1, null),
    delta: fc.oneof(fc.string(), fc.jsonValue()),
    item: fc.oneof(anyBadItem(), fc.jsonValue()),
    response: fc.oneof(
      fc.record({ status: fc.constantFrom('completed', 'failed', null), output: fc.array(anyBadItem()) }),
      fc.jsonValue(),
    ),
  },
  { requiredKeys: ['type'] },
)

function anyBadItem(): fc.Arbitrary<unknown> {
  const odd = fc.oneof(fc.string(), fc.jsonValue())
  return fc.record(
    {
      type: fc.constantFrom('message', 'reasoning', 'function_call', 'custom_tool_call', null, 7),
      id: odd,
      call_id: odd,
      name: odd,
      arguments: odd,
      input: odd,
      summary: odd,
      content: fc.oneof(fc.array(fc.record({ type: fc.constantFrom('output_text', 'refusal', 'x'), text: odd })), odd),
    },
    { requiredKeys: ['type'] },
  )
}

test('arbitrary server data yields a reply that can be sent back, or a provider error', () => {
  fc.assert(
    fc.property(fc.array(anyEvent, { maxLength: 8 }), (events) => {
      try {
        const { parts, finishReason } = folded([...events, { type: 'response.completed' }]).reply
        responsesFormat('gpt-5.5').encode([{ ...assistant(parts), finishReason }], NO_CONSTANTS)
      } catch (error) {
        expect(error).toMatchObject({ code: 'provider_error' })
      }
    }),
    rounds(500),
  )
})
