import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { ModelSettings } from 'thinharness'
import type { AssistantPart } from '#contracts/entry.js'
import type { JsonObject } from '#util/json.js'
import { expectValidRequest } from '../../support/request-schemas.js'
import { assistant, bodyOf, call, CONSTANTS, decoded, format, tool, user } from './support.js'

const ON: ModelSettings = { providerOptions: { anthropic: { thinking: { type: 'adaptive' } } } }
const OFF: ModelSettings = { providerOptions: { anthropic: { thinking: { type: 'disabled' } } } }

/** The blocks in which a reply of these parts is given back. */
function blocks(
  parts: readonly AssistantPart[],
  settings: ModelSettings = ON,
  id = 'claude-sonnet-5',
): readonly JsonObject[] {
  const body = bodyOf(format({ id }), [user('Go.'), assistant(parts), user('On.')], { ...CONSTANTS, settings })
  expectValidRequest('anthropic-messages-beta', body, { version: '2023-06-01' })
  const messages = body['messages'] as readonly JsonObject[]
  return messages.flatMap(({ role, content }) => (role === 'assistant' ? (content as readonly JsonObject[]) : []))
}

const signed = (text: string, signature = 'sig'): AssistantPart => ({
  type: 'reasoning',
  text,
  native: { provider: 'anthropic', data: { type: 'thinking', signature } },
})
const redacted: AssistantPart = {
  type: 'reasoning',
  text: '',
  native: { provider: 'anthropic', data: { type: 'redacted_thinking', data: 'xyz' } },
}
const text = (content: string): AssistantPart & { type: 'text' } => ({ type: 'text', text: content })

test('RF-05 RF-12 RF-14 a reply of the same provider is sent back block by block, unchanged', () => {
  const content = [
    { type: 'thinking', thinking: 'First.', signature: 'a' },
    { type: 'thinking', thinking: '', signature: 'b' },
    { type: 'redacted_thinking', data: 'xyz' },
    {
      type: 'text',
      text: 'Looking.',
      citations: [{ type: 'web_search_result_location', cited_text: 'x', encrypted_index: 'i', title: null, url: 'u' }],
    },
    {
      type: 'server_tool_use',
      id: 'srvtoolu_1',
      name: 'web_search',
      input: { query: 'q' },
      caller: { type: 'direct' },
    },
    { type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: [] },
    { type: 'container_upload', file_id: 'f' },
    {
      type: 'tool_use',
      id: 'toolu_1',
      name: 'read',
      input: { path: 'a' },
      caller: { type: 'code_execution_20260120', tool_id: 'srvtoolu_1' },
    },
  ]

  expect(blocks(decoded({ type: 'message', content }).parts)).toEqual(content)
})

test('citations are given back in the form of a request', () => {
  const cited = {
    type: 'char_location',
    cited_text: 'x',
    document_index: 0,
    document_title: null,
    start_char_index: 0,
    end_char_index: 1,
  }
  const { parts } = decoded({ content: [{ type: 'text', text: 'a', citations: [{ ...cited, file_id: null }] }] })

  expect(blocks(parts)).toEqual([{ ...text('a'), citations: [cited] }])
})

describe('thinking blocks', () => {
  const parts = [signed('Hm.'), redacted, text('Yes.')]
  const asText = [text('<thinking>\nHm.\n</thinking>'), text('Yes.')]
  const asTheyCame = [
    { type: 'thinking', thinking: 'Hm.', signature: 'sig' },
    { type: 'redacted_thinking', data: 'xyz' },
    text('Yes.'),
  ]

  test.each<[string, ModelSettings, string, unknown[]]>([
    ['RF-05 they are signed while the model thinks', ON, 'claude-sonnet-4-5', asTheyCame],
    ['RF-05 they are signed for a model that thinks by default', {}, 'claude-sonnet-5', asTheyCame],
    ['RF-05 they are signed for an unknown model', {}, 'some-model', asTheyCame],
    ['RF-05 they are signed if an effort is requested', { reasoningEffort: 'low' }, 'claude-sonnet-4-5', asTheyCame],
    [
      'RF-11 RF-13 they become text, and encrypted ones are dropped, if thinking is off',
      OFF,
      'claude-sonnet-5',
      asText,
    ],
    [
      'RF-11 RF-13 they become text without an effort, and encrypted ones are dropped',
      { reasoningEffort: 'none' },
      'claude-sonnet-5',
      asText,
    ],
    [
      'RF-11 RF-13 they become text for a model that does not think by default, and encrypted ones are dropped',
      {},
      'claude-sonnet-4-5',
      asText,
    ],
    ['RF-05 they are signed between tool calls', { reasoningEffort: 'none' }, 'claude-sonnet-5-5', asTheyCame],
  ])('%s', (_name, settings, id, wanted) => {
    expect(blocks(parts, settings, id)).toEqual(wanted)
  })

  test('without a signature they become text', () => {
    expect(blocks([{ type: 'reasoning', text: 'Cut o' }, text('Yes.')])).toEqual([
      text('<thinking>\nCut o\n</thinking>'),
      text('Yes.'),
    ])
  })
})

test('RF-09 replies of other providers are sent as far as the API has a form for them', () => {
  const native = (data: JsonObject): { native: { provider: string; data: JsonObject } } => ({
    native: { provider: 'openai', data },
  })
  const parts: AssistantPart[] = [
    { type: 'reasoning', text: 'Hm.', ...native({ id: 'rs_1', encrypted_content: 'xyz' }) },
    { type: 'reasoning', text: '', ...native({ id: 'rs_2', encrypted_content: 'xyz' }) },
    { type: 'text', text: 'Yes.', ...native({ id: 'msg_1', citations: [{}] }) },
    { type: 'opaque', ...native({ type: 'web_search_call', id: 'ws_1' }) },
    { type: 'opaque', ...native({ type: 'refusal', refusal: 'No.' }) },
    { type: 'opaque', ...native({ kind: 'block', block: { type: 'refusal', refusal: 'Never.' } }) },
    { type: 'opaque' },
    { type: 'tool_call', callId: 'call_1', name: 'read', arguments: '{}', ...native({ id: 'fc_1' }) },
  ]

  expect(blocks(parts)).toEqual([
    text('<thinking>\nHm.\n</thinking>'),
    text('Yes.'),
    text('No.'),
    text('Never.'),
    { type: 'tool_use', id: 'call_1', name: 'read', input: {} },
  ])
})

describe('texts of spaces, which the API rejects if they are the only text', () => {
  test.each<[string, AssistantPart[], unknown[]]>([
    ['alone', [text(' \n')], []],
    ['before a call', [text('\n\n'), call('a')], [{ type: 'tool_use', id: 'a', name: 'read', input: {} }]],
    ['beside another', [text('\n\n'), text('Yes.')], [text('\n\n'), text('Yes.')]],
    ['none at all', [text('')], []],
  ])('%s', (_name, parts, wanted) => {
    expect(blocks(parts)).toEqual(wanted)
  })
})

describe('calls', () => {
  test('the id, name and arguments of the part win over the native data', () => {
    const data = { type: 'tool_use', id: 'old', name: 'old', input: { old: true }, caller: { type: 'direct' } }

    expect(blocks([call('new', '{"n":1}', data)])).toEqual([
      { type: 'tool_use', id: 'new', name: 'read', input: { n: 1 }, caller: { type: 'direct' } },
    ])
  })

  test.each<[string, JsonObject]>([
    ['{"a":1}', { a: 1 }],
    ['', {}],
    [' ', {}],
    ['{"path": "a', { invalid_arguments: '{"path": "a' }],
    ['[1]', { invalid_arguments: '[1]' }],
    ['null', { invalid_arguments: 'null' }],
  ])("RS-09 a call's arguments are sent as an object, whatever the model wrote: `%s`", (given, input) => {
    expect(blocks([call('a', given)])).toEqual([{ type: 'tool_use', id: 'a', name: 'read', input }])
  })

  test.each([
    ['functions.read', 'functions_read'],
    ['', 'unnamed'],
    ['lesen ä', 'lesen__'],
  ])('a call of an unknown tool keeps its name as far as the API supports it: `%s`', (name, wanted) => {
    expect(blocks([{ type: 'tool_call', callId: 'a', name, arguments: '{}' }])).toMatchObject([{ name: wanted }])
  })

  test('RS-04 ids of other providers are translated equally in call and result, without collisions', () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.string(), { maxLength: 20 }), (ids) => {
        const entries = [
          user('Go.'),
          assistant(
            ids.map((id) => call(id)),
            'openai',
          ),
          ...ids.map((id) => tool(id, 'x')),
        ]
        const [, calls, results] = bodyOf(format(), entries)['messages'] as { content: JsonObject[] }[]
        const sent = calls?.content.map(({ id }) => id) ?? []

        expect(results?.content.map(({ tool_use_id }) => tool_use_id) ?? []).toEqual(sent)
        expect(new Set(sent).size).toBe(ids.length)
        for (const id of sent) expect(id).toMatch(/^[a-zA-Z0-9_-]+$/)
      }),
    )
    expect(blocks([call('toolu_01-x')])).toMatchObject([{ id: 'toolu_01-x' }])
  })
})
