import { describe, expect, test } from 'vitest'
import { fromMessages, Harness, HarnessError } from 'thinharness'
import { openai } from 'thinharness/providers'
import { APIS, expectAccepted, inShort, KEY, PNG } from './wires.js'

/** The same conversation, as each library writes it. */
const CONVERSATIONS: Readonly<Record<string, readonly object[]>> = {
  'the AI SDK': [
    {
      role: 'user',
      content: [
        { type: 'text', text: 'What is this?' },
        { type: 'image', image: `data:image/png;base64,${PNG}` },
      ],
    },
    {
      role: 'assistant',
      content: [
        { type: 'reasoning', text: 'I look.' },
        { type: 'text', text: 'Let me look.' },
        { type: 'tool-call', toolCallId: 'c1', toolName: 'look', input: { id: 1 } },
        { type: 'tool-call', toolCallId: 'c2', toolName: 'look', input: { id: 2 } },
      ],
    },
    {
      role: 'tool',
      content: [
        { type: 'tool-result', toolCallId: 'c1', toolName: 'look', output: { type: 'json', value: { a: 1 } } },
        { type: 'tool-result', toolCallId: 'c2', toolName: 'look', output: { type: 'error-text', value: 'Gone.' } },
      ],
    },
    { role: 'assistant', content: 'A dot.' },
  ],
  'chat completions': [
    {
      role: 'user',
      content: [
        { type: 'text', text: 'What is this?' },
        { type: 'image_url', image_url: { url: `data:image/png;base64,${PNG}` } },
      ],
    },
    {
      role: 'assistant',
      content: 'Let me look.',
      tool_calls: [
        { id: 'c1', type: 'function', function: { name: 'look', arguments: '{"id":1}' } },
        { id: 'c2', type: 'function', function: { name: 'look', arguments: '{"id":2}' } },
      ],
    },
    { role: 'tool', tool_call_id: 'c1', content: '{"a":1}' },
    { role: 'tool', tool_call_id: 'c2', content: [{ type: 'text', text: 'Gone.' }] },
    { role: 'assistant', content: null, refusal: 'A dot.' },
  ],
  'the Responses API': [
    {
      role: 'user',
      content: [
        { type: 'input_text', text: 'What is this?' },
        { type: 'input_image', image_url: `data:image/png;base64,${PNG}`, detail: 'auto' },
      ],
    },
    { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'I look.' }], encrypted_content: 'x' },
    { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'Let me look.', annotations: [] }] },
    { type: 'function_call', call_id: 'c1', name: 'look', arguments: '{"id":1}' },
    { type: 'function_call', call_id: 'c2', name: 'look', arguments: '{"id":2}' },
    { type: 'function_call_output', call_id: 'c1', output: '{"a":1}' },
    { type: 'function_call_output', call_id: 'c2', output: [{ type: 'input_text', text: 'Gone.' }] },
    { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'A dot.' }] },
  ],
  Anthropic: [
    {
      role: 'user',
      content: [
        { type: 'text', text: 'What is this?' },
        { type: 'image', source: { type: 'base64', media_type: 'image/png', data: PNG } },
      ],
    },
    {
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: 'I look.', signature: 'x' },
        { type: 'redacted_thinking', data: 'x' },
        { type: 'text', text: 'Let me look.' },
        { type: 'tool_use', id: 'c1', name: 'look', input: { id: 1 } },
        { type: 'tool_use', id: 'c2', name: 'look', input: { id: 2 } },
      ],
    },
    {
      role: 'user',
      content: [
        { type: 'tool_result', tool_use_id: 'c1', content: '{"a":1}' },
        { type: 'tool_result', tool_use_id: 'c2', content: [{ type: 'text', text: 'Gone.' }], is_error: true },
      ],
    },
    { role: 'assistant', content: [{ type: 'text', text: 'A dot.' }] },
  ],
}

describe.each(Object.entries(CONVERSATIONS))('`fromMessages` of the messages of %s', (name, messages) => {
  test('gives the entries of the conversation', () => {
    const entries = fromMessages(messages)
    expect(entries.map(inShort)).toEqual([
      ['What is this?', 'image'],
      ['Let me look.', 'look c1 {"id":1}', 'look c2 {"id":2}'],
      ['c1', 'look', '{"a":1}'],
      ['c2', 'look', 'Gone.', ...(/AI SDK|Anthropic/.test(name) ? ['error'] : [])],
      ['A dot.'],
    ])
    expect(entries.map(({ id }) => id)).toEqual(['e1', 'e2', 'e3', 'e4', 'e5'])
    const reasoning = entries.flatMap((entry) => (entry.role === 'assistant' ? entry.parts : []))
    expect(reasoning.filter(({ type }) => type === 'reasoning')).toHaveLength(name === 'chat completions' ? 0 : 1)
  })

  test.each(APIS)('is a history that %s accepts', async (api) => {
    await expectAccepted(api, messages)
  })
})

const call = { role: 'assistant', content: [{ type: 'tool_use', id: 'c1', name: 'look', input: {} }] }

test.each<[string, unknown, string]>([
  [
    'a system message',
    [{ role: 'system', content: 'Be brief.' }],
    '`messages[0]`: is a system message: leave it out, and pass its text as `instructions`.',
  ],
  [
    'a developer message',
    [
      { role: 'user', content: 'x' },
      { role: 'developer', content: 'x' },
    ],
    '`messages[1]`: is a developer message',
  ],
  [
    'a UI message',
    [{ id: '1', role: 'user', parts: [{ type: 'text', text: 'x' }] }],
    'convert the list with `convertToModelMessages`',
  ],
  ['no list', { role: 'user' }, '`messages`: expected a list, got an object.'],
  ['no message', ['Hi.'], '`messages[0]`: expected an object'],
  ['another role', [{ role: 'function', content: 'x' }], '`messages[0].role`: expected `user`'],
  [
    'another part',
    [{ role: 'user', content: [{ type: 'video' }] }],
    '`messages[0].content[0].type`: `video` has no form in a transcript.',
  ],
  ['another item', [{ type: 'web_search_call' }], '`messages[0].type`: `web_search_call` has no entry'],
  ['no content', [{ role: 'assistant' }], '`messages[0].content`: is missing'],
  [
    'text that is none',
    [{ role: 'user', content: [{ type: 'text' }] }],
    '`messages[0].content[0].text`: expected a string, got nothing.',
  ],
  [
    'a file at an address',
    [
      {
        role: 'user',
        content: [{ type: 'file', data: new URL('https://x.test/a.pdf'), mediaType: 'application/pdf' }],
      },
    ],
    '`messages[0].content[0].data`: is an address',
  ],
  ['a call without a result', [call, { role: 'user', content: 'x' }], 'tool call `c1` has no result.'],
  ['a call at the end', [call], 'tool call `c1` has no result.'],
  [
    'a result without a call',
    [{ role: 'tool', tool_call_id: 'c9', content: 'x' }],
    '`messages[0]`: has the result of `c9`',
  ],
  [
    'a file that a provider stores',
    [
      {
        role: 'user',
        content: [{ type: 'file', mediaType: 'image', data: { type: 'reference', reference: { openai: 'file-1' } } }],
      },
    ],
    '`messages[0].content[0].data`: refers to a file that a provider stores: pass its bytes.',
  ],
  [
    'a media type without a format',
    [{ role: 'user', content: [{ type: 'file', mediaType: 'image', data: 'AAAA' }] }],
    '`messages[0].content[0].data`: has the media type `image`, which does not name a format.',
  ],
  [
    'a broken data URL',
    [{ role: 'user', content: [{ type: 'file', mediaType: 'text/plain', data: 'data:text/plain,%' }] }],
    'is a `data:` URL that cannot be decoded.',
  ],
  ['two calls of one id', [call, call], 'two tool calls have the id `c1`.'],
])('`fromMessages` refuses %s', (_name, messages, problem) => {
  // @ts-expect-error not every one is a list of messages
  const refuse = (): unknown => fromMessages(messages)
  expect(refuse).toThrow(HarnessError)
  expect(refuse).toThrow(expect.objectContaining({ code: 'invalid_options' }))
  expect(refuse).toThrow(problem)
})

test('`fromMessages` takes files, audio, bytes and addresses of images', () => {
  const [entry] = fromMessages([
    {
      role: 'user',
      content: [
        { type: 'image', image: new URL('https://x.test/a.png') },
        { type: 'image', image: Buffer.from(PNG, 'base64') },
        { type: 'file', data: { type: 'data', data: 'JVBERg==' }, mediaType: 'application/pdf', filename: 'a.pdf' },
        { type: 'file', data: { type: 'data', data: Buffer.from(PNG, 'base64') }, mediaType: 'image' },
        { type: 'file', data: { type: 'url', url: new URL('https://x.test/a.png') }, mediaType: 'image' },
        { type: 'file', data: { type: 'text', text: 'Hi.' }, mediaType: 'text/plain' },
        { type: 'file', data: 'data:text/markdown;charset=utf-8,Hi%2E', mediaType: 'text/plain' },
        { type: 'file', file: { file_data: 'data:application/pdf;base64,JVBERg==', filename: 'b.pdf' } },
        { type: 'input_audio', input_audio: { data: 'UklG', format: 'wav' } },
        { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'Hi.' }, title: 'c' },
      ],
    },
  ])
  expect(entry).toMatchObject({
    content: [
      { type: 'image', url: 'https://x.test/a.png' },
      { type: 'image', data: PNG, mediaType: 'image/png' },
      { type: 'file', data: 'JVBERg==', mediaType: 'application/pdf', name: 'a.pdf' },
      { type: 'image', data: PNG, mediaType: 'image/png' },
      { type: 'image', url: 'https://x.test/a.png' },
      { type: 'file', data: 'SGku', mediaType: 'text/plain' },
      { type: 'file', data: 'SGku', mediaType: 'text/markdown' },
      { type: 'file', data: 'JVBERg==', mediaType: 'application/pdf', name: 'b.pdf' },
      { type: 'audio', data: 'UklG', mediaType: 'audio/wav' },
      { type: 'file', data: 'SGku', mediaType: 'text/plain', name: 'c' },
    ],
  })
})

test('`fromMessages` gives a call whose id was used before an id of its own', () => {
  const turn = [call, { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c1', content: 'x' }] }]
  expect(fromMessages([...turn, ...turn]).map(inShort)).toEqual([
    ['look c1 {}'],
    ['c1', 'look', 'x'],
    ['look c1_2 {}'],
    ['c1_2', 'look', 'x'],
  ])
})

test('a message array as a prompt is rejected with a sentence that names `fromMessages`', async () => {
  const harness = new Harness({ model: openai('gpt-5.5', KEY), builtinTools: [] })
  // @ts-expect-error messages are no prompt
  await expect(harness.run([{ role: 'user', content: 'x' }])).rejects.toThrow('`fromMessages(messages)`')
})
