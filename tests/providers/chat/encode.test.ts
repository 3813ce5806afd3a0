import { describe, expect, test } from 'vitest'
import type { AssistantPart, ContentPart } from '#contracts/entry.js'
import { assistant, chunksOf, decode, DIALECTS, encode, formatOf, hear, replyOf, result, user } from './wire.js'

const IMAGE = { type: 'image', data: 'iVBORw0KGgo=', mediaType: 'image/png' } as const
const PDF = { type: 'file', data: 'JVBERi0=', mediaType: 'application/pdf', name: 'a.pdf' } as const

describe('user messages', () => {
  test.each<[string, readonly (ContentPart | string)[], unknown]>([
    ['a text', ['Hello'], 'Hello'],
    ['nothing', [], ''],
    ['an empty text', [''], ''],
    [
      'two texts',
      ['One', 'Two'],
      [
        { type: 'text', text: 'One' },
        { type: 'text', text: 'Two' },
      ],
    ],
    [
      'an image, an empty text left out',
      ['', IMAGE],
      [{ type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } }],
    ],
    [
      'an image by its address',
      ['See:', { type: 'image', url: 'https://example.com/a.png' }],
      [
        { type: 'text', text: 'See:' },
        { type: 'image_url', image_url: { url: 'https://example.com/a.png' } },
      ],
    ],
    [
      'a PDF',
      [PDF],
      [{ type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,JVBERi0=' } }],
    ],
    [
      'a file without a name',
      [{ type: 'file', data: 'JVBERi0=', mediaType: 'application/pdf' }],
      [{ type: 'file', file: { filename: 'file.pdf', file_data: 'data:application/pdf;base64,JVBERi0=' } }],
    ],
    [
      'a text file, as text',
      [
        {
          type: 'file',
          data: Buffer.from('a,b\n1,ü').toString('base64'),
          mediaType: 'text/csv; charset=utf-8',
          name: 't.csv',
        },
      ],
      [{ type: 'text', text: 'The file `t.csv` (text/csv):\n\na,b\n1,ü' }],
    ],
    [
      'audio',
      [
        { type: 'audio', data: 'AA', mediaType: 'audio/x-wav' },
        { type: 'audio', data: 'BB', mediaType: 'audio/mp3' },
        { type: 'audio', data: 'CC', mediaType: 'audio/flac' },
      ],
      [
        { type: 'input_audio', input_audio: { data: 'AA', format: 'wav' } },
        { type: 'input_audio', input_audio: { data: 'BB', format: 'mp3' } },
        { type: 'input_audio', input_audio: { data: 'CC', format: 'flac' } },
      ],
    ],
  ])('%s', (_name, content, expected) => {
    expect(encode([user(...content)])).toEqual([{ role: 'user', content: expected }])
  })

  test.each<[string, ContentPart, RegExp]>([
    ['an image type', { ...IMAGE, data: 'SUkqAA==', mediaType: 'image/tiff' }, /`image`, got `image\/tiff`/],
    [
      'a file type',
      { ...PDF, data: 'UEsDBA==', mediaType: 'application/zip' },
      /supports `application\/pdf` as `file`, got `application\/zip`/,
    ],
    ['an audio type', { type: 'audio', data: 'AA', mediaType: 'audio/flac' }, /`audio\/wav`, `audio\/mpeg` as `audio`/],
  ])('%s that the API cannot accept is rejected before any request', (_name, part, message) => {
    expect(() => encode([user('Look', part)], formatOf(DIALECTS.openai))).toThrow(
      expect.objectContaining({ code: 'invalid_options', message: expect.stringMatching(message) as string }),
    )
  })

  test('content that the model does not support is rejected', () => {
    const textOnly = formatOf(DIALECTS.compatible, { capabilities: { inputs: ['file'] } })
    expect(() => encode([user(IMAGE)], textOnly)).toThrow('The model of `here` does not support `image`.')
    expect(encode([user(PDF)], textOnly)).toHaveLength(1)
  })

  test('a server that accepts no lists gets the texts as one string, and nothing else', () => {
    const format = formatOf(DIALECTS.deepseek)
    expect(encode([user('One', 'Two')], format)).toEqual([{ role: 'user', content: 'One\n\nTwo' }])
    expect(() => encode([user('One', IMAGE)], format)).toThrow('does not support `image`')
  })
})

describe('results of tools', () => {
  test('RS-05 each is a message of its own that holds the envelope', () => {
    expect(encode([result('a', '{"ok":true}'), result('b', [{ type: 'text', text: '{"ok":false}' }])])).toEqual([
      { role: 'tool', tool_call_id: 'a', content: '{"ok":true}' },
      { role: 'tool', tool_call_id: 'b', content: '{"ok":false}' },
    ])
  })

  test('PR-08 images and files, then user text and notices, follow the last result of their batch, with a note on their origin', () => {
    const text = { type: 'text', text: '{"ok":true}' } as const
    const entries = [result('a', [text, IMAGE]), result('b', 'plain'), result('c', [text, PDF, IMAGE]), user('Go on')]
    expect(encode(entries)).toEqual([
      { role: 'tool', tool_call_id: 'a', content: '{"ok":true}' },
      { role: 'tool', tool_call_id: 'b', content: 'plain' },
      { role: 'tool', tool_call_id: 'c', content: '{"ok":true}' },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'From the result of the call `a` of `look`:' },
          { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } },
          { type: 'text', text: 'From the result of the call `c` of `look`:' },
          { type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,JVBERi0=' } },
          { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } },
        ],
      },
      { role: 'user', content: 'Go on' },
    ])
  })

  test('further texts of a result follow the first', () => {
    const texts = ['{"ok":true}', 'One', 'Two'].map((text) => ({ type: 'text', text }) as const)
    expect(encode([result('a', texts)])).toEqual([
      { role: 'tool', tool_call_id: 'a', content: '{"ok":true}\n\nOne\n\nTwo' },
    ])
  })

  test('content that the model does not support is named, not lost', () => {
    const content = [{ type: 'text', text: '{"ok":true}' }, IMAGE] as const
    const format = formatOf(DIALECTS.compatible, { capabilities: { inputs: [] } })
    expect(encode([result('a', content)], format)).toEqual([
      {
        role: 'tool',
        tool_call_id: 'a',
        content: '{"ok":true}\n\n[Left out of this result. The model of `here` does not support `image`.]',
      },
    ])
  })
})

describe('assistant messages of this provider', () => {
  const call = { id: 'a', type: 'function', function: { name: 'look', arguments: '{"x":1}' } }

  test.each<[string, keyof typeof DIALECTS, object, object]>([
    ['a text', 'compatible', { content: 'Hi' }, { content: 'Hi' }],
    ['nothing', 'compatible', { content: null }, { content: '' }],
    ['calls alone', 'compatible', { content: '', tool_calls: [call] }, { content: null, tool_calls: [call] }],
    [
      'RS-03 calls without text are sent back',
      'openrouter',
      { content: null, tool_calls: [call] },
      { tool_calls: [call] },
    ],
    ['text and calls', 'openai', { content: 'Hi', tool_calls: [call] }, { content: 'Hi', tool_calls: [call] }],
    [
      'RF-06 reasoning details are sent back unchanged and in order',
      'openrouter',
      {
        content: 'Hi',
        reasoning: 'Well',
        reasoning_details: [
          { type: 'reasoning.text', text: 'Well', signature: 's', index: 0 },
          { type: 'reasoning.encrypted', data: 'x', index: 1 },
        ],
      },
      {
        content: 'Hi',
        reasoning_details: [
          { type: 'reasoning.text', text: 'Well', signature: 's', index: 0 },
          { type: 'reasoning.encrypted', data: 'x', index: 1 },
        ],
      },
    ],
    [
      'reasoning under the name that it had',
      'compatible',
      { content: 'Hi', reasoning: 'Well' },
      { content: 'Hi', reasoning: 'Well' },
    ],
    [
      'reasoning as a block',
      'mistral',
      {
        content: [
          { type: 'thinking', thinking: [{ type: 'text', text: 'Hm' }] },
          { type: 'text', text: 'Hi' },
        ],
      },
      {
        content: [
          { type: 'thinking', thinking: [{ type: 'text', text: 'Hm' }] },
          { type: 'text', text: 'Hi' },
        ],
      },
    ],
    [
      'what a call had beside',
      'compatible',
      { tool_calls: [{ ...call, extra_content: { google: { thought_signature: 's' } } }] },
      { content: null, tool_calls: [{ ...call, extra_content: { google: { thought_signature: 's' } } }] },
    ],
    [
      'a call of a custom tool',
      'openai',
      { tool_calls: [{ id: 'a', type: 'custom', custom: { name: 'sql', input: 'select 1' } }] },
      { content: null, tool_calls: [{ id: 'a', type: 'custom', custom: { name: 'sql', input: 'select 1' } }] },
    ],
    [
      'other fields, where all are wanted',
      'openrouter',
      { content: 'Hi', annotations: [{ type: 'file' }], audio: { id: 'au', data: 'AA' } },
      { content: 'Hi', annotations: [{ type: 'file' }], audio: { id: 'au' } },
    ],
    [
      'other fields, where few are wanted',
      'openai',
      { refusal: 'No.', annotations: [{ type: 'url_citation' }], audio: { id: 'au', data: 'AA' }, surprise: { a: 1 } },
      { content: '', refusal: 'No.', audio: { id: 'au' } },
    ],
    ['other fields, where none are wanted', 'mistral', { content: 'Hi', surprise: { a: 1 } }, { content: 'Hi' }],
    ['audio that has no id', 'compatible', { content: 'Hi', audio: { id: '', data: '' } }, { content: 'Hi' }],
    [
      'a call that was none for us',
      'compatible',
      { content: 'Hi', tool_calls: [{ id: 'a', type: 'mcp', server: 's' }] },
      { content: 'Hi' },
    ],
  ])('%s (%s)', (_name, dialect, received, sent) => {
    const format = formatOf(DIALECTS[dialect])
    const { parts } = decode(replyOf({ role: 'assistant', ...received }), format)
    expect(encode([assistant(parts)], format)).toEqual([{ role: 'assistant', ...sent }])
  })

  test('a stream goes back like the whole reply', () => {
    const { reply } = hear(chunksOf([{ reasoning_content: 'We' }, { reasoning_content: 'll' }, { content: 'Hi' }]))
    expect(encode([assistant(reply.parts)])).toEqual([{ role: 'assistant', content: 'Hi', reasoning_content: 'Well' }])
  })

  test('a repaired call wins over the native data', () => {
    const { parts } = decode(replyOf({ tool_calls: [{ ...call, extra_content: { a: 1 } }] }))
    const repaired = parts.map((part): AssistantPart => {
      return part.type === 'tool_call' ? { ...part, callId: 'a_2', name: 'see', arguments: '{"x":"1"}' } : part
    })
    expect(encode([assistant(repaired)])).toEqual([
      {
        role: 'assistant',
        content: null,
        tool_calls: [
          { id: 'a_2', type: 'function', function: { name: 'see', arguments: '{"x":"1"}' }, extra_content: { a: 1 } },
        ],
      },
    ])
  })

  test.each(['select 1', '[1]', '{"input":1}', '{"query":"x"}'])(
    'the input %s of a custom tool is not an object',
    (text) => {
      const native = { provider: 'here', data: { form: 'call', value: { type: 'custom' } } }
      const part: AssistantPart = { type: 'tool_call', callId: 'a', name: 'sql', arguments: text, native }
      expect(encode([assistant([part])])).toMatchObject([{ tool_calls: [{ custom: { name: 'sql', input: text } }] }])
    },
  )

  test('a server that does not accept its reasoning gets none, not even as text', () => {
    const format = formatOf({ ...DIALECTS.compatible, replaysReasoning: false })
    const message = {
      reasoning_content: 'Well',
      content: [
        { type: 'thinking', thinking: 'Hm' },
        { type: 'text', text: 'Hi' },
      ],
    }
    const { parts } = decode(replyOf(message), format)
    expect(encode([assistant(parts)], format)).toEqual([{ role: 'assistant', content: 'Hi' }])
  })

  test('a server that requires reasoning in every message gets it, even if it is empty', () => {
    const format = formatOf(DIALECTS.deepseek)
    const own = decode(replyOf({ content: 'Hi', reasoning_content: 'Well' }), format).parts
    const messages = encode([assistant(own), assistant([{ type: 'text', text: 'Ho' }], 'anthropic')], format)
    expect(messages).toEqual([
      { role: 'assistant', content: 'Hi', reasoning_content: 'Well' },
      { role: 'assistant', content: 'Ho', reasoning_content: '' },
    ])
  })
})
