import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { responsesFormat } from '#providers/openai/request.js'
import { without } from '#providers/wire/wire-fields.js'
import type { AssistantPart, TranscriptEntry } from '#contracts/entry.js'
import type { JsonObject } from '#util/json.js'
import { assistant, encoded, replied, result, user } from './entries.js'
import { NO_CONSTANTS, call, decoded, message, reasoning, response } from './replies.js'
import { rounds } from '../../support/length.js'

describe('replies of the model', () => {
  test('RF-04 RF-08 a reply is sent back in order, without fields that only a server that stores it could know', () => {
    const thought = reasoning({ status: null, content: [], summary: [{ type: 'summary_text', text: 'Look.' }] })
    const search = { id: 'ws_1', type: 'web_search_call', status: 'completed', action: { type: 'search', query: 'x' } }
    const compaction = { id: 'cmp_1', type: 'compaction', encrypted_content: 'gAAB=' }
    const entry = replied(
      thought,
      search,
      message('On it.', { phase: 'commentary' }),
      call('call_1', '{ "q": 1 }'),
      compaction,
    )

    expect(encoded([entry, result('call_1', '{"ok":true}')])).toEqual([
      { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'Look.' }], encrypted_content: 'gAAA=' },
      search,
      { type: 'message', role: 'assistant', phase: 'commentary', content: [outputText('On it.')] },
      { type: 'function_call', call_id: 'call_1', name: 'lookup', arguments: '{ "q": 1 }' },
      compaction,
      { type: 'function_call_output', call_id: 'call_1', output: '{"ok":true}' },
    ])
  })

  test('blocks of one message are joined again, with their citations and refusals', () => {
    const cited = {
      type: 'output_text',
      text: 'A.',
      annotations: [{ type: 'url_citation', url: 'https://a.b', title: 'A', start_index: 0, end_index: 1 }],
    }
    const refusal = { type: 'refusal', refusal: 'Not that.' }
    const entry = replied(message('', { content: [cited, refusal, outputText('B.')] }), message('C.'))

    expect(encoded([entry])).toEqual([
      { type: 'message', role: 'assistant', content: [cited, refusal, outputText('B.')] },
      { type: 'message', role: 'assistant', content: [outputText('C.')] },
    ])
  })

  test('probabilities of a text are kept if they exist', () => {
    const logprobs = [{ token: 'A', logprob: -0.1, bytes: [65], top_logprobs: [] }]

    expect(
      encoded([replied(message('', { content: [{ type: 'output_text', text: 'A', annotations: [], logprobs }] }))]),
    ).toEqual([{ type: 'message', role: 'assistant', content: [{ ...outputText('A'), logprobs }] }])
  })

  test('null and missing fields of a text become the form that the API requires', () => {
    const block = { type: 'text', text: 'A', annotations: null, logprobs: null }

    expect(encoded([replied(message('', { content: [block], phase: null }))])).toEqual([
      { type: 'message', role: 'assistant', content: [outputText('A')] },
    ])
  })

  test('the name, the arguments and the id of the part win over the native data', () => {
    const [part] = decoded(response([call('call_1', "{'q':1}", { namespace: null, caller: null })])).parts
    const mended = { ...part, callId: 'call_1_2', name: 'find', arguments: '{"q":1}' } as AssistantPart

    expect(encoded([assistant([mended]), result('call_1_2')])).toEqual([
      { type: 'function_call', call_id: 'call_1_2', name: 'find', arguments: '{"q":1}' },
      { type: 'function_call_output', call_id: 'call_1_2', output: '{"ok":true}' },
    ])
  })

  test('arguments that are not JSON are sent back as the model wrote them, empty ones as an empty object', () => {
    const bad: AssistantPart = { type: 'tool_call', callId: 'a', name: 'lookup', arguments: '{"q":' }
    const empty: AssistantPart = { type: 'tool_call', callId: 'b', name: 'lookup', arguments: '' }

    expect(encoded([assistant([bad, empty])])).toMatchObject([{ arguments: '{"q":' }, { arguments: '{}' }])
  })

  test('a custom call and its result are sent back in their own form', () => {
    const custom = { type: 'custom_tool_call', id: 'ctc_1', call_id: 'call_1', name: 'patch', input: '*** Begin' }

    expect(encoded([replied(custom), result('call_1')])).toEqual([
      { type: 'custom_tool_call', call_id: 'call_1', name: 'patch', input: '*** Begin' },
      { type: 'custom_tool_call_output', call_id: 'call_1', output: '{"ok":true}' },
    ])
  })

  test('the result of a call that a program made returns to the program', () => {
    const caller = { type: 'program', caller_id: 'call_p' }

    expect(encoded([replied(call('call_1', '{}', { caller })), result('call_1')])).toMatchObject([
      { caller },
      { caller },
    ])
  })
})

describe('reasoning', () => {
  const said = reasoning({ summary: [{ type: 'summary_text', text: 'Hm.' }] })
  const fallback = { role: 'assistant', content: '<thinking>\nHm.\n</thinking>' }

  test('RF-07 a model that does not reason gets the text, without the sealed data', () => {
    expect(encoded([replied(said, message('Hi.'))], 'gpt-4.1')[0]).toEqual(fallback)
    expect(encoded([replied(reasoning(), message('Hi.'))], 'gpt-4.1')).toHaveLength(1)
  })

  test('declared capabilities of a model win over its name', () => {
    const entries = [replied(said, message('Hi.'))]

    expect(encoded(entries, 'gpt-4.1', { capabilities: { reasoningEfforts: ['low'] } })[0]).toMatchObject({
      type: 'reasoning',
    })
    expect(encoded(entries, 'gpt-5.5', { capabilities: { reasoningEfforts: [] } })[0]).toEqual(fallback)
    expect(encoded(entries, 'grok-4.3')[0]).toMatchObject({ type: 'reasoning' })
  })

  test("an item that only refers to a server's store is not sent", () => {
    const named = without(said, 'encrypted_content')

    expect(encoded([replied(named, message('Hi.'))])[0]).toEqual(fallback)
    expect(encoded([replied({ ...named, summary: [], encrypted_content: null }, message('Hi.'))])).toHaveLength(1)
  })

  test('unencrypted reasoning is sent back unchanged', () => {
    const content = [{ type: 'reasoning_text', text: 'Hm.' }]

    expect(encoded([replied(reasoning({ encrypted_content: null, content }), message('Hi.'))])[0]).toEqual({
      type: 'reasoning',
      id: 'rs_1',
      summary: [],
      content,
    })
  })

  test('reasoning without content, which the API rejects, becomes text', () => {
    expect(encoded([replied(message('Hi.'), said), user('Go on.')]).slice(1)).toEqual([
      fallback,
      { role: 'user', content: 'Go on.' },
    ])
  })

  test('RF-14 several items keep their order before the call', () => {
    const items = encoded([replied(reasoning(), reasoning({ id: 'rs_2' }), call('call_1', '{}'))])

    expect(items.map((item) => item['id'] ?? item['type'])).toEqual(['rs_1', 'rs_2', 'function_call'])
  })
})

describe('replies of another provider', () => {
  const foreign = (part: AssistantPart): AssistantPart => ({
    ...part,
    native: { provider: 'anthropic', data: { kind: 'item', item: { type: 'reasoning', encrypted_content: 'x' } } },
  })

  test('RF-09 they degrade part by part: thinking becomes text, unknown blocks are dropped', () => {
    const parts = [
      foreign({ type: 'reasoning', text: 'Hm.' }),
      foreign({ type: 'reasoning', text: '' }),
      foreign({ type: 'opaque' }),
      foreign({ type: 'text', text: 'On it.' }),
      foreign({ type: 'text', text: '' }),
      foreign({ type: 'tool_call', callId: 'toolu_1', name: 'lookup', arguments: '{}' }),
    ]

    expect(encoded([assistant(parts, 'anthropic'), result('toolu_1')])).toEqual([
      { role: 'assistant', content: '<thinking>\nHm.\n</thinking>' },
      { role: 'assistant', content: 'On it.' },
      { type: 'function_call', call_id: 'toolu_1', name: 'lookup', arguments: '{}' },
      { type: 'function_call_output', call_id: 'toolu_1', output: '{"ok":true}' },
    ])
  })

  test('RF-09 the part decides, not the entry', () => {
    const [own] = decoded(response([reasoning(), message('Hi.')])).parts
    const parts = [own!, foreign({ type: 'text', text: 'Hi.' })]

    expect(encoded([assistant(parts, 'router')])).toMatchObject([{ type: 'reasoning' }, { content: 'Hi.' }])
  })

  test('RS-04 ids that are too long for the API are translated, equally in call and result, without collisions', () => {
    const ids = ['x'.repeat(64), 'x'.repeat(65), `${'x'.repeat(64)}y`]
    const calls = ids.map((callId) => foreign({ type: 'tool_call', callId, name: 'lookup', arguments: '{}' }))
    const items = encoded([assistant(calls), ...ids.map((callId) => result(callId))])
    const sent = items.map((item) => item['call_id'] as string)

    expect(sent[0]).toBe(ids[0])
    expect(sent.slice(0, 3)).toEqual(sent.slice(3))
    expect(new Set(sent).size).toBe(3)
    expect(Math.max(...sent.map((id) => id.length))).toBeLessThanOrEqual(64)
  })

  test('foreign native data is ignored', () => {
    const broken = [null, 7, [], {}, { kind: 'item' }, { kind: 'block', block: 'x' }, { kind: 'other', item: {} }]
    const parts = broken.map((data): AssistantPart => ({
      type: 'text',
      text: 'Hi.',
      native: { provider: 'openai', data },
    }))

    expect(encoded([assistant(parts)])).toEqual(broken.map(() => ({ role: 'assistant', content: 'Hi.' })))
  })
})

const anyReply = fc.array(
  fc.oneof(
    fc.string().map((said) => message(said)),
    fc.boolean().map((blob) => reasoning(blob ? {} : { encrypted_content: null })),
    fc.constant({ type: 'web_search_call', id: 'ws_1', status: 'completed', action: { type: 'search', query: 'x' } }),
  ),
  { maxLength: 4 },
)
const anyBatch = fc
  .record({ output: anyReply, ids: fc.uniqueArray(fc.uuid(), { maxLength: 3 }), custom: fc.boolean() })
  .map(({ output, ids, custom }): TranscriptEntry[] => {
    const calls = ids.map((id) =>
      custom ? { type: 'custom_tool_call', call_id: id, name: 'patch', input: 'x' } : call(id, '{}'),
    )
    return [replied(...output, ...calls), ...ids.map((id) => result(id))]
  })
const anyTurn = fc.oneof(
  fc.string().map((said): TranscriptEntry[] => [user(said)]),
  anyBatch,
)

test('entries that join are encoded as if they had always been together', () => {
  fc.assert(
    fc.property(fc.array(anyTurn, { maxLength: 8 }), fc.nat(8), (turns, cut) => {
      const format = responsesFormat('gpt-5.5')
      const [before, after] = [turns.slice(0, cut).flat(), turns.slice(cut).flat()]

      expect([...format.encode(before, NO_CONSTANTS), ...format.encode(after, NO_CONSTANTS)]).toEqual(
        encoded([...before, ...after]),
      )
    }),
    rounds(50),
  )
})

function outputText(said: string): JsonObject {
  return { type: 'output_text', text: said, annotations: [] }
}
