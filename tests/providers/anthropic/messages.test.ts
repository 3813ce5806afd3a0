import { describe, expect, test } from 'vitest'
import type { ContentPart, ToolEntry, TranscriptEntry } from '#contracts/entry.js'
import type { JsonObject } from '#util/json.js'
import { expectValidRequest } from '../../support/request-schemas.js'
import { assistant, bodyOf, call, errorOf, format, tool, user } from './support.js'

/** The messages of a request, checked against both versions' schemas. */
function messages(...entries: TranscriptEntry[]): unknown {
  const body = bodyOf(format(), entries)
  for (const version of ['2023-06-01', '2026-10-21']) expectValidRequest('anthropic-messages', body, { version })
  return body['messages']
}

const blocks = (...parts: ContentPart[]): unknown => (messages(user(parts)) as JsonObject[])[0]?.['content']
const base64 = (text: string): string => Buffer.from(text).toString('base64')
const text = (content: string): JsonObject & { type: 'text'; text: string } => ({ type: 'text', text: content })

describe('user messages', () => {
  test.each<[string, TranscriptEntry, unknown[]]>([
    ['a text is sent as it is', user('Hi'), [{ role: 'user', content: 'Hi' }]],
    ['a notice is a list of one text', user('Soon.', true), [{ role: 'user', content: [text('Soon.')] }]],
    ['an empty text is left out', user([text(''), text('b')]), [{ role: 'user', content: [text('b')] }]],
    ['a message without content is omitted', user([text('')]), []],
  ])('%s', (_name, entry, wanted) => {
    expect(messages(entry)).toEqual(wanted)
  })

  test.each<[string, ContentPart, unknown]>([
    [
      'an image',
      { type: 'image', data: 'iVBORw0KGgo=', mediaType: 'image/png' },
      { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo=' } },
    ],
    [
      'an image by a common misnomer',
      { type: 'image', data: '/9j/', mediaType: 'IMAGE/JPG' },
      { type: 'image', source: { type: 'base64', media_type: 'image/jpeg', data: '/9j/' } },
    ],
    [
      'an image by its address',
      { type: 'image', url: 'https://x/y.png' },
      { type: 'image', source: { type: 'url', url: 'https://x/y.png' } },
    ],
    [
      'an image within its address',
      { type: 'image', url: 'data:image/webp;base64,UklGRgAAAABXRUJQ' },
      { type: 'image', source: { type: 'base64', media_type: 'image/webp', data: 'UklGRgAAAABXRUJQ' } },
    ],
    [
      'a PDF',
      { type: 'file', data: 'JVBERi0=', mediaType: 'application/pdf', name: 'a.pdf' },
      { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: 'JVBERi0=' }, title: 'a.pdf' },
    ],
    [
      'a text file',
      { type: 'file', data: base64('naïve'), mediaType: 'text/markdown; charset=utf-8' },
      { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'naïve' } },
    ],
    [
      'a JSON file',
      { type: 'file', data: base64('{}'), mediaType: 'application/ld+json', name: 'a.json' },
      { type: 'document', source: { type: 'text', media_type: 'text/plain', data: '{}' }, title: 'a.json' },
    ],
    [
      'a file that is an image',
      { type: 'file', data: 'R0lGODlh', mediaType: 'image/gif', name: 'a.gif' },
      { type: 'image', source: { type: 'base64', media_type: 'image/gif', data: 'R0lGODlh' } },
    ],
  ])('%s is sent', (_name, part, block) => {
    expect(blocks(text('Look:'), part)).toEqual([text('Look:'), block])
  })

  test.each<[ContentPart, string, string]>([
    [{ type: 'audio', data: '', mediaType: 'audio/wav' }, '`audio`', '`audio/wav`'],
    [{ type: 'image', data: '', mediaType: 'image/tiff' }, '`image`', '`image/tiff`'],
    [{ type: 'file', data: '', mediaType: 'application/zip' }, '`file`', '`application/zip`'],
    [{ type: 'image', url: 'data:image/svg+xml;base64,aGk=' }, '`image`', '`image/svg+xml`'],
  ])('content that the API does not support is rejected before any request: %j', (part, kind, mediaType) => {
    const error = errorOf(() => blocks(part))

    expect(error.code).toBe('invalid_options')
    expect(error.message).toContain(kind)
    expect(error.message).toContain(mediaType)
  })
})

describe('results', () => {
  const image: ContentPart = { type: 'image', data: 'iVBORw0KGgo=', mediaType: 'image/png' }
  const imageBlock = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo=' } }
  const audio: ContentPart = { type: 'audio', data: 'aGk=', mediaType: 'audio/wav' }

  /** The messages for the results of a batch with the calls `a` and `b`. */
  function results(...entries: TranscriptEntry[]): unknown[] {
    const reply = assistant([call('a'), call('b')])
    return (messages(user('Go.'), reply, ...entries) as unknown[]).slice(2)
  }

  test('PR-07 RS-05 the results of a batch are one message, in order, followed by the notice', () => {
    expect(
      results(tool('a', '{"ok":true}'), tool('b', '{"ok":false}', true), user('Soon.', true), user('Go on.')),
    ).toEqual([
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: 'a', content: '{"ok":true}' },
          { type: 'tool_result', tool_use_id: 'b', content: '{"ok":false}', is_error: true },
          text('Soon.'),
        ],
      },
      { role: 'user', content: 'Go on.' },
    ])
  })

  test('PR-09 user text after results, and a second notice, are messages of their own', () => {
    expect(results(tool('a', '1'), user('Wait!'))).toEqual([
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a', content: '1' }] },
      { role: 'user', content: 'Wait!' },
    ])
    expect(results(tool('a', '1'), user('x', true), user('y', true), tool('b', '2'))).toEqual([
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a', content: '1' }, text('x')] },
      { role: 'user', content: [text('y')] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'b', content: '2' }] },
    ])
  })

  test.each<[string, ToolEntry['content'], boolean, unknown[]]>([
    [
      'images and texts',
      [text('{}'), image],
      false,
      [{ type: 'tool_result', tool_use_id: 'a', content: [text('{}'), imageBlock] }],
    ],
    [
      'of a failure, behind the results: the API takes only texts in it',
      [text('{}'), image],
      true,
      [{ type: 'tool_result', tool_use_id: 'a', content: [text('{}')], is_error: true }, imageBlock],
    ],
    [
      'what the API does not take, by name',
      [text('{}'), audio],
      false,
      [
        {
          type: 'tool_result',
          tool_use_id: 'a',
          content: [
            text('{}'),
            text(
              "[Left out of this result. Anthropic's API supports images (JPEG, PNG, GIF, WebP), PDF and text files, got `audio` of type `audio/wav`.]",
            ),
          ],
        },
      ],
    ],
    ['nothing', '', false, [{ type: 'tool_result', tool_use_id: 'a' }]],
  ])('%s', (_name, content, isError, wanted) => {
    expect(results(tool('a', content, isError))).toEqual([{ role: 'user', content: wanted }])
  })

  test('files of failures follow all results of the batch, before the notice', () => {
    expect(results(tool('a', [text('{}'), image], true), tool('b', '2'), user('Soon.', true))).toEqual([
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: 'a', content: [text('{}')], is_error: true },
          { type: 'tool_result', tool_use_id: 'b', content: '2' },
          imageBlock,
          text('Soon.'),
        ],
      },
    ])
  })
})
