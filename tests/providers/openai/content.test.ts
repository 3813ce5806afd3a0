import { describe, expect, test } from 'vitest'
import { responsesFormat } from '#providers/openai/request.js'
import type { FormatOptions } from '#providers/openai/request.js'
import type { ContentPart, ToolEntry, UserEntry } from '#contracts/entry.js'
import type { JsonObject } from '#util/json.js'
import { PIXEL, encoded, replied, result, user } from './entries.js'
import { NO_CONSTANTS, call } from './replies.js'

describe('user messages', () => {
  test.each<[string, UserEntry, unknown]>([
    ['text', user('Hi.'), 'Hi.'],
    ['nothing', user(), ''],
    ['several texts', user('a', 'b'), [text('a'), text('b')]],
    [
      'an image',
      user('See:', { type: 'image', data: PIXEL, mediaType: 'image/png' }),
      [text('See:'), image(`data:image/png;base64,${PIXEL}`)],
    ],
    ['an image elsewhere', user({ type: 'image', url: 'https://a.b/c.png' }), [image('https://a.b/c.png')]],
    [
      'a named file',
      user({ type: 'file', data: 'JVBERg==', mediaType: 'application/pdf', name: 'a.pdf' }),
      [file('a.pdf', 'data:application/pdf;base64,JVBERg==')],
    ],
    [
      'a file without a name',
      user({ type: 'file', data: 'JVBERg==', mediaType: 'application/pdf' }),
      [file('file.pdf', 'data:application/pdf;base64,JVBERg==')],
    ],
    [
      'a text file',
      user({ type: 'file', data: 'aGk=', mediaType: 'text/plain' }),
      [file('file.txt', 'data:text/plain;base64,aGk=')],
    ],
    [
      'a file of an odd type',
      user({ type: 'file', data: 'aGk=', mediaType: 'application/x-yaml; a=b' }),
      [file('file.yaml', 'data:application/x-yaml; a=b;base64,aGk=')],
    ],
    [
      'an image given as a file',
      user({ type: 'file', data: PIXEL, mediaType: 'image/png' }),
      [image(`data:image/png;base64,${PIXEL}`)],
    ],
  ])('%s', (_name, entry, content) => {
    expect(encoded([entry])).toEqual([{ role: 'user', content }])
  })

  test.each<[string, ContentPart, FormatOptions, string]>([
    [
      'audio',
      { type: 'audio', data: '', mediaType: 'audio/wav' },
      {},
      '(`text`, `image`, `file`), got `audio` (audio/wav).',
    ],
    [
      'a film',
      { type: 'file', data: '', mediaType: 'video/mp4' },
      {},
      '(`text`, `image`, `file`), got `file` (video/mp4).',
    ],
    [
      'an image, for a model without eyes',
      { type: 'image', url: 'https://a.b' },
      { capabilities: { inputs: [] } },
      '(`text`), got `image`.',
    ],
    [
      'audio, whatever is said of the model',
      { type: 'audio', data: '', mediaType: 'audio/wav' },
      { capabilities: { inputs: ['audio', 'image'] } },
      '(`text`, `image`), got `audio` (audio/wav).',
    ],
  ])('%s is rejected before any request', (_name, part, options, ending) => {
    const encode = (): unknown => responsesFormat('gpt-5.5', options).encode([user(part)], NO_CONSTANTS)

    expect(encode).toThrow(expect.objectContaining({ code: 'invalid_options' }))
    expect(encode).toThrow(`Expected \`content\` that this model supports in the Responses API ${ending}`)
  })
})

describe('tool results', () => {
  test.each<[string, ToolEntry['content'], unknown]>([
    ['text', '{"ok":true}', '{"ok":true}'],
    ['one part of text', [{ type: 'text', text: '{"ok":true}' }], '{"ok":true}'],
    [
      'an image and a file',
      [
        { type: 'text', text: '{}' },
        { type: 'image', data: PIXEL, mediaType: 'image/png' },
        { type: 'file', data: 'aGk=', mediaType: 'text/csv', name: 'a.csv' },
      ],
      [text('{}'), image(`data:image/png;base64,${PIXEL}`), file('a.csv', 'data:text/csv;base64,aGk=')],
    ],
    [
      'audio, which is named',
      [
        { type: 'text', text: '{}' },
        { type: 'audio', data: '', mediaType: 'audio/wav' },
      ],
      [text('{}'), text('[The tool also returned `audio` (audio/wav), which cannot be shown to this model.]')],
    ],
  ])('%s', (_name, content, output) => {
    expect(encoded([result('call_1', content)])).toEqual([{ type: 'function_call_output', call_id: 'call_1', output }])
  })

  test('PR-09 a notice after the results is a user message', () => {
    const entries = [replied(call('a', '{}'), call('b', '{}')), result('a'), result('b'), user('Last request.')]

    expect(encoded(entries).map((item) => item['type'] ?? item['role'])).toEqual([
      'function_call',
      'function_call',
      'function_call_output',
      'function_call_output',
      'user',
    ])
  })
})

function text(said: string): JsonObject {
  return { type: 'input_text', text: said }
}

function image(url: string): JsonObject {
  return { type: 'input_image', image_url: url, detail: 'auto' }
}

function file(filename: string, data: string): JsonObject {
  return { type: 'input_file', filename, file_data: data }
}
