import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { AssistantPart, ContentPart, TranscriptEntry } from '#contracts/entry.js'
import type { JsonObject } from '#util/json.js'
import { assistant, call, encoded, errorOf, own, result, user, VERSION_NAMES } from './support.js'
import type { VersionName } from './support.js'

const PNG = { type: 'image', data: 'iVBORw0KGgo=', mediaType: 'image/png' } as const
const PDF = { type: 'file', data: 'JVBERi0=', mediaType: 'application/pdf', name: 'a.pdf' } as const
const CSV = { type: 'file', data: Buffer.from('a,b').toString('base64'), mediaType: 'text/csv', name: 't.csv' } as const
const WAV = { type: 'audio', data: 'd2F2', mediaType: 'audio/x-wav' } as const
const AT_URL = { type: 'image', url: 'https://example.com/a.png' } as const
const URL_OBJECT = new URL(AT_URL.url)

describe('user messages', () => {
  test.each<[string, VersionName, ContentPart, object]>([
    ['text', 'v2', { type: 'text', text: 'Hi' }, { type: 'text', text: 'Hi' }],
    ['an image', 'v2', PNG, { type: 'file', data: 'iVBORw0KGgo=', mediaType: 'image/png' }],
    ['an image', 'v4', PNG, { type: 'file', data: { type: 'data', data: 'iVBORw0KGgo=' }, mediaType: 'image/png' }],
    ['an image elsewhere', 'v3', AT_URL, { type: 'file', data: URL_OBJECT, mediaType: 'image/*' }],
    ['an image elsewhere', 'v4', AT_URL, { type: 'file', data: { type: 'url', url: URL_OBJECT }, mediaType: 'image' }],
    [
      'an image in its address',
      'v3',
      { type: 'image', url: 'data:image/JPG;base64,/9j/' },
      { type: 'file', data: '/9j/', mediaType: 'image/jpeg' },
    ],
    ['a PDF', 'v3', PDF, { type: 'file', data: 'JVBERi0=', mediaType: 'application/pdf', filename: 'a.pdf' }],
    ['a text file', 'v3', CSV, { type: 'text', text: 'The file `t.csv` (text/csv):\n\na,b' }],
    ['a sound', 'v3', WAV, { type: 'file', data: 'd2F2', mediaType: 'audio/wav' }],
  ])('%s (%s)', (_name, version, part, expected) => {
    expect(encoded([user([part])], 'acme.chat', version)).toEqual([{ role: 'user', content: [expected] }])
  })

  test('empty strings and messages without content are omitted', () => {
    const empty = { type: 'text', text: '' } as const
    expect(encoded([user([empty]), user([empty, { type: 'text', text: 'Hi' }])])).toEqual([
      { role: 'user', content: [{ type: 'text', text: 'Hi' }] },
    ])
  })

  test('input that the model is known not to support is rejected before any request', async () => {
    const error = await errorOf(() => encoded([user([WAV])], 'acme.chat', 'v3', ['image']))
    expect(error).toMatchObject({
      code: 'invalid_options',
      message: 'The model of `ai-sdk:acme.chat` does not support `audio`.',
    })
  })

  test('an invalid address is rejected', async () => {
    const error = await errorOf(() => encoded([user([{ type: 'image', url: 'a.png' }])]))
    expect(error).toMatchObject({ code: 'invalid_options', message: expect.stringContaining('`a.png`') as string })
  })
})

describe('the encoding of a reply', () => {
  const parts = (...given: AssistantPart[]): object[] => {
    const [message] = encoded([assistant(...given)], 'anthropic.messages')
    return (message?.['content'] ?? []) as object[]
  }
  const signed = { providerMetadata: { anthropic: { signature: 'c2ln' } } }

  test.each<[string, AssistantPart, object[]]>([
    ['text', { type: 'text', text: 'Hm.' }, [{ type: 'text', text: 'Hm.' }]],
    [
      'text with metadata of its own',
      { type: 'text', text: '', ...own('anthropic.messages', { providerMetadata: { anthropic: { type: 'x' } } }) },
      [{ type: 'text', text: '', providerOptions: { anthropic: { type: 'x' } } }],
    ],
    ['an empty text', { type: 'text', text: '' }, []],
    [
      'signed reasoning',
      { type: 'reasoning', text: 'So.', ...own('anthropic.messages', signed) },
      [{ type: 'reasoning', text: 'So.', providerOptions: { anthropic: { signature: 'c2ln' } } }],
    ],
    [
      'redacted reasoning',
      {
        type: 'reasoning',
        text: '',
        ...own('anthropic.messages', { providerMetadata: { anthropic: { redactedData: 'x' } } }),
      },
      [{ type: 'reasoning', text: '', providerOptions: { anthropic: { redactedData: 'x' } } }],
    ],
    [
      'reasoning that was cut before its signature',
      { type: 'reasoning', text: 'So.', ...own('anthropic.messages', {}) },
      [{ type: 'text', text: '<thinking>\nSo.\n</thinking>' }],
    ],
    [
      'RF-09 reasoning of another provider becomes text, without any sealed data',
      {
        type: 'reasoning',
        text: 'So.',
        ...own('openai.responses', { providerMetadata: { openai: { itemId: 'rs' } } }),
      },
      [{ type: 'text', text: '<thinking>\nSo.\n</thinking>' }],
    ],
    [
      'reasoning of an adapter of ours, encrypted alone',
      { type: 'reasoning', text: '', native: { provider: 'openai', data: { encrypted_content: 'x' } } },
      [],
    ],
    ['a call', call('c1', '{"a":1}'), [callPart('c1', { a: 1 })]],
    ['a call without arguments', call('c1', ' '), [callPart('c1', {})]],
    ['a call whose arguments are no object', call('c1', '[1'), [callPart('c1', { invalid_arguments: '[1' })]],
    ['a call whose id another provider made', call('a.b:c'), [callPart('call_b2a25f70f5cf2429a9473fdc41f092c9', {})]],
    [
      'a call of a name that no API takes',
      { type: 'tool_call', callId: 'c1', name: 'web search!', arguments: '{}' },
      [{ ...callPart('c1', {}), toolName: 'web_search_' }],
    ],
    [
      'a refusal of another provider',
      { type: 'opaque', native: { provider: 'openai', data: { type: 'refusal', refusal: 'No.' } } },
      [{ type: 'text', text: 'No.' }],
    ],
    ['a block of another provider', { type: 'opaque', native: { provider: 'openai', data: { type: 'x' } } }, []],
    ['a source of its own', { type: 'opaque', ...own('anthropic.messages', { type: 'source', id: 's' }) }, []],
  ])('%s', (_name, part, expected) => {
    expect(parts(part)).toEqual(expected)
  })

  test('reasoning without metadata is returned to a provider that needs none', () => {
    const thought: AssistantPart = { type: 'reasoning', text: 'So.', ...own('acme.chat', {}) }
    expect(encoded([assistant(thought)])).toEqual([
      { role: 'assistant', content: [{ type: 'reasoning', text: 'So.' }] },
    ])
  })

  test('an id that is too long for OpenAI becomes the same short one for the call and its result', () => {
    const long = 'c'.repeat(65)
    const [reply, answer] = encoded([assistant(call(long)), result(long)], 'openai.responses')
    const [made] = reply!['content'] as unknown as [{ toolCallId: string }]
    expect(made.toolCallId).toMatch(/^call_[0-9a-f]{32}$/)
    expect(answer?.['content']).toMatchObject([{ toolCallId: made.toolCallId }])
  })
})

function callPart(toolCallId: string, input: object): object {
  return { type: 'tool-call', toolCallId, toolName: 'lookup', input }
}

describe('provider-executed tools', () => {
  const metadata = { acme: { x: 1 } }
  const opaque = (data: JsonObject): AssistantPart => ({ type: 'opaque', ...own('acme.chat', data) })
  const search = { type: 'tool-call', toolCallId: 's1', toolName: 'web_search', input: '{"q":"x"}' }

  test.each<[string, VersionName, JsonObject, object[]]>([
    [
      'a call',
      'v3',
      { ...search, providerExecuted: true, providerMetadata: metadata },
      [{ ...search, input: { q: 'x' }, providerExecuted: true, providerOptions: metadata }],
    ],
    [
      'a call whose input is no JSON',
      'v3',
      { ...search, input: 'x' },
      [{ ...search, input: 'x', providerExecuted: true }],
    ],
    [
      'its result',
      'v2',
      { type: 'tool-result', toolCallId: 's1', toolName: 'web_search', result: [{ url: 'u' }] },
      [
        {
          type: 'tool-result',
          toolCallId: 's1',
          toolName: 'web_search',
          output: { type: 'json', value: [{ url: 'u' }] },
        },
      ],
    ],
    [
      'its failure',
      'v3',
      { type: 'tool-result', toolCallId: 's1', toolName: 'web_search', result: 'no', isError: true },
      [{ type: 'tool-result', toolCallId: 's1', toolName: 'web_search', output: { type: 'error-json', value: 'no' } }],
    ],
    [
      'a file',
      'v3',
      { type: 'file', data: 'eA==', mediaType: 'image/png' },
      [{ type: 'file', data: 'eA==', mediaType: 'image/png' }],
    ],
    [
      'a file of an earlier version',
      'v4',
      { type: 'file', data: 'eA==', mediaType: 'image/png' },
      [{ type: 'file', data: { type: 'data', data: 'eA==' }, mediaType: 'image/png' }],
    ],
    [
      'a file elsewhere',
      'v4',
      {
        type: 'reasoning-file',
        data: { type: 'url', url: AT_URL.url },
        mediaType: 'image/png',
        providerMetadata: metadata,
      },
      [
        {
          type: 'reasoning-file',
          data: { type: 'url', url: URL_OBJECT },
          mediaType: 'image/png',
          providerOptions: metadata,
        },
      ],
    ],
    [
      'a block of its own',
      'v4',
      { type: 'custom', kind: 'acme.x', providerMetadata: metadata },
      [{ type: 'custom', kind: 'acme.x', providerOptions: metadata }],
    ],
    ['a block that the version cannot say', 'v3', { type: 'custom', kind: 'acme.x' }, []],
    ['a request for approval', 'v3', { type: 'tool-approval-request', approvalId: 'a', toolCallId: 's1' }, []],
  ])('%s (%s)', (_name, version, data, expected) => {
    const content = encoded([assistant(opaque(data))], 'acme.chat', version)[0]?.['content'] ?? []
    expect(content).toEqual(expected)
  })
})

describe('the results of a batch', () => {
  const batch = (provider: string, version: VersionName, ...content: ContentPart[]): object[] => {
    const entry = result('c1', [{ type: 'text', text: '{"ok":true}' }, ...content])
    return encoded([assistant(call('c1')), entry], provider, version).slice(1)
  }
  const answered = (output: object): object => {
    return { role: 'tool', content: [{ type: 'tool-result', toolCallId: 'c1', toolName: 'lookup', output }] }
  }
  const envelope = { type: 'text', text: '{"ok":true}' }

  test('they are together in one message, in the order of the calls', () => {
    const entries = [
      assistant(call('c1'), call('c2')),
      result('c1'),
      result('c2', '{"ok":false}', true),
      user('Go on.'),
    ]
    expect(encoded(entries).slice(1)).toEqual([
      {
        role: 'tool',
        content: [
          { type: 'tool-result', toolCallId: 'c1', toolName: 'lookup', output: { type: 'text', value: '{"ok":true}' } },
          {
            type: 'tool-result',
            toolCallId: 'c2',
            toolName: 'lookup',
            output: { type: 'error-text', value: '{"ok":false}' },
          },
        ],
      },
      { role: 'user', content: [{ type: 'text', text: 'Go on.' }] },
    ])
  })

  test("a failure has no error mark if the provider's API has none: the envelope stays as it is", () => {
    const entries = [assistant(call('c1')), result('c1', '{"ok":false}', true)]
    expect(encoded(entries, 'openai.responses').at(-1)).toEqual(answered({ type: 'text', value: '{"ok":false}' }))
  })

  test.each<[VersionName, object]>([
    ['v2', { type: 'media', data: 'iVBORw0KGgo=', mediaType: 'image/png' }],
    ['v3', { type: 'image-data', data: 'iVBORw0KGgo=', mediaType: 'image/png' }],
    ['v4', { type: 'file', data: { type: 'data', data: 'iVBORw0KGgo=' }, mediaType: 'image/png' }],
  ])('an image stays within the result if the provider supports it (%s)', (version, image) => {
    expect(batch('anthropic.messages', version, PNG)).toEqual([answered({ type: 'content', value: [envelope, image] })])
  })

  test.each<[VersionName, object]>([
    ['v3', { type: 'file-data', data: 'JVBERi0=', mediaType: 'application/pdf', filename: 'a.pdf' }],
    ['v4', { type: 'file', data: { type: 'data', data: 'JVBERi0=' }, mediaType: 'application/pdf', filename: 'a.pdf' }],
  ])('so does a PDF (%s)', (version, file) => {
    expect(batch('openai.responses', version, PDF)).toEqual([answered({ type: 'content', value: [envelope, file] })])
  })

  test('an image elsewhere, in the form of the version', () => {
    expect(batch('anthropic.messages', 'v3', AT_URL)).toEqual([
      answered({ type: 'content', value: [envelope, { type: 'image-url', url: AT_URL.url }] }),
    ])
  })

  test.each(VERSION_NAMES)('otherwise it follows the results, with a note on its origin (%s)', (version) => {
    const [image] = (encoded([user([PNG])], 'acme.chat', version)[0]?.['content'] ?? []) as object[]
    expect(batch('acme.chat', version, PNG)).toEqual([
      answered({ type: 'text', value: '{"ok":true}' }),
      { role: 'user', content: [{ type: 'text', text: 'From the result of the call `c1` of `lookup`:' }, image] },
    ])
  })

  test('content without a form within a result follows it', () => {
    expect(batch('anthropic.messages', 'v2', AT_URL)).toMatchObject([
      answered({ type: 'text', value: '{"ok":true}' }),
      { role: 'user', content: [{ type: 'text' }, { type: 'file', data: URL_OBJECT }] },
    ])
  })

  test('content that the model does not support is named in the result', () => {
    const entry = result('c1', [{ type: 'text', text: 'E' }, WAV])
    expect(encoded([entry], 'acme.chat', 'v3', ['image'])).toEqual([
      answered({
        type: 'text',
        value: 'E\n\n[Left out of this result. The model of `ai-sdk:acme.chat` does not support `audio`.]',
      }),
    ])
  })
})

const somePart = fc.constantFrom<AssistantPart>(
  { type: 'text', text: 'Hm.' },
  { type: 'text', text: '' },
  { type: 'reasoning', text: 'So.' },
  { type: 'reasoning', text: 'So.', ...own('acme.chat', { providerMetadata: { acme: { s: 1 } } }) },
  { type: 'opaque', ...own('acme.chat', { type: 'tool-call', toolCallId: 's', toolName: 'x', input: '{}' }) },
  { type: 'opaque', ...own('other.chat', { type: 'file', data: 'eA==', mediaType: 'image/png' }) },
)
const someContent = fc.array(fc.constantFrom<ContentPart>({ type: 'text', text: 'Hi' }, PNG, PDF, CSV, AT_URL), {
  maxLength: 3,
})
/** Entries that join the conversation together. */
const someEntries = fc.oneof(
  fc.tuple(someContent, fc.boolean()).map(([content, notice]): TranscriptEntry[] => [user(content, notice)]),
  fc
    .tuple(fc.array(somePart, { maxLength: 4 }), fc.array(someContent, { maxLength: 3 }), fc.boolean())
    .map(([parts, results, isError]): TranscriptEntry[] => [
      assistant(...parts, ...results.map((_, index) => call(`c${index}`))),
      ...results.map((content, index) => result(`c${index}`, content, isError)),
    ]),
)

test('entries that join are encoded alone as they are together', () => {
  const provider = fc.constantFrom('acme.chat', 'openai.responses', 'anthropic.messages')
  fc.assert(
    fc.property(fc.array(someEntries), provider, fc.constantFrom(...VERSION_NAMES), (groups, name, version) => {
      const apart = groups.flatMap((entries) => encoded(entries, name, version))
      expect(apart).toEqual(encoded(groups.flat(), name, version))
    }),
  )
})
