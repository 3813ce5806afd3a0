import { describe, expect, test } from 'vitest'
import type { AssistantPart, ContentPart, TranscriptEntry } from '#contracts/entry.js'
import { envelopeOf, renderEnvelope } from '#core/tools/boundary/envelope.js'
import { assistant, call, contentsOf, format, tool, user } from './support.js'

const THIRD = format()
const SECOND = format({ id: 'gemini-2.5-flash' })
const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const SIGNED = { thoughtSignature: 'c2lnbmVk+/=' }
const DUMMY = 'skip_thought_signature_validator'

function partsOf(part: AssistantPart, wire = THIRD): unknown {
  return contentsOf(wire, [user('Go on.'), assistant([part])])[1]?.['parts']
}

describe('replies of Gemini', () => {
  test.each<[string, AssistantPart, unknown]>([
    [
      'a signed text',
      { type: 'text', text: 'Hi', native: { provider: 'google', data: SIGNED } },
      [{ text: 'Hi', ...SIGNED }],
    ],
    [
      'a thought',
      { type: 'reasoning', text: 'Hm', native: { provider: 'google', data: { thought: true } } },
      [{ text: 'Hm', thought: true }],
    ],
    [
      'a signed call',
      call('c1', SIGNED),
      [{ functionCall: { id: 'c1', name: 'read', args: { path: 'a' } }, ...SIGNED }],
    ],
    [
      'a picture',
      { type: 'opaque', native: { provider: 'google', data: { inlineData: { mimeType: 'image/png', data: PNG } } } },
      [{ inlineData: { mimeType: 'image/png', data: PNG } }],
    ],
    [
      'a signature alone',
      { type: 'reasoning', text: '', native: { provider: 'google', data: SIGNED } },
      [{ text: '', ...SIGNED }],
    ],
  ])('%s goes back as it came', (_name, part, wanted) => {
    expect(partsOf(part)).toEqual(wanted)
  })
})

describe('replies of other providers', () => {
  test('thoughts become text, and what another provider sealed is left out', () => {
    const sealed = { provider: 'anthropic', data: { type: 'thinking', signature: 's' } }
    expect(partsOf({ type: 'reasoning', text: 'Hm', native: sealed })).toEqual([
      { text: '<thinking>\nHm\n</thinking>' },
    ])
    expect(partsOf({ type: 'reasoning', text: '', native: sealed })).toBeUndefined()
    expect(partsOf({ type: 'opaque', native: { provider: 'openai', data: { refusal: 'No.' } } })).toEqual([
      { text: 'No.' },
    ])
  })

  test('the first of their calls gets the text that Google names in place of a signature, the others none', () => {
    const calls = [call('c1', { signature: 's' }, 'anthropic'), call('c2')]
    const [, content] = contentsOf(THIRD, [user('Go on.'), assistant(calls)])
    expect(content?.['parts']).toMatchObject([{ thoughtSignature: DUMMY }, { functionCall: { id: 'c2' } }])
    expect(JSON.stringify(content).split(DUMMY)).toHaveLength(2)
  })

  test('the second generation needs no signature', () => {
    expect(JSON.stringify(partsOf(call('c1'), SECOND))).not.toContain('thoughtSignature')
  })

  test('of parallel calls whose first is signed, no other gets a signature', () => {
    const [, content] = contentsOf(THIRD, [user('Go on.'), assistant([call('c1', SIGNED), call('c2')])])
    expect(JSON.stringify(content)).not.toContain(DUMMY)
  })

  test('ids and names that the API refuses are replaced, the same in the call and its result', () => {
    const odd: AssistantPart = { type: 'tool_call', callId: 'a b', name: '1 look', arguments: '{}' }
    const result: TranscriptEntry = { ...tool('a b', 'x'), name: '1 look' }
    const [, model, results] = contentsOf(THIRD, [user('Go on.'), assistant([odd]), result])
    const { functionCall } = (model!['parts'] as { functionCall: { id: string; name: string } }[])[0]!
    const { functionResponse } = (results!['parts'] as { functionResponse: { id: string; name: string } }[])[0]!
    expect(functionCall).toMatchObject({ name: '_1_look' })
    expect(functionCall.id).toMatch(/^call_[0-9a-f]{32}$/)
    expect(functionResponse).toMatchObject({ id: functionCall.id, name: functionCall.name })
  })
})

describe('results', () => {
  test('the results of a batch are one content in order, with the notice after them', () => {
    const done = renderEnvelope(envelopeOf({ kind: 'succeeded', content: 'Found.' }))
    const failed = renderEnvelope(envelopeOf({ kind: 'failed', errorType: 'E', content: 'Broken.', retry: false }))
    const entries = [
      user('Go on.'),
      assistant([call('c1'), call('c2')]),
      tool('c1', done),
      tool('c2', failed, true),
      user('Two requests are left.', true),
      user('Thanks.'),
    ]
    const contents = contentsOf(THIRD, entries)
    expect(contents.map(({ role }) => role)).toEqual(['user', 'model', 'user', 'user'])
    expect(contents[2]?.['parts']).toEqual([
      { functionResponse: { id: 'c1', name: 'read', response: { output: 'Found.' } } },
      { functionResponse: { id: 'c2', name: 'read', response: { error: 'Broken.' } } },
      { text: 'Two requests are left.' },
    ])
  })

  const picture: ContentPart = { type: 'image', data: PNG, mediaType: 'image/png' }
  const sound: ContentPart = { type: 'audio', data: 'SUQzBAAAAAAAI1RTU0UAAAAPAAADTGF2', mediaType: 'audio/mpeg' }

  test('the third generation gets a picture within its result; sound comes after the results', () => {
    const [, , content] = contentsOf(THIRD, [
      user('Go on.'),
      assistant([call('c1')]),
      tool('c1', [{ type: 'text', text: 'Seen.' }, picture, sound]),
    ])
    expect(content?.['parts']).toMatchObject([
      { functionResponse: { response: { output: 'Seen.' }, parts: [{ inlineData: { mimeType: 'image/png' } }] } },
      { inlineData: { mimeType: 'audio/mpeg' } },
    ])
  })

  test('the second generation gets all media after the results', () => {
    const [, , content] = contentsOf(SECOND, [user('Go on.'), assistant([call('c1')]), tool('c1', [picture])])
    expect(content?.['parts']).toEqual([
      { functionResponse: { id: 'c1', name: 'read', response: { output: '' } } },
      { inlineData: { mimeType: 'image/png', data: PNG } },
    ])
  })

  test('Vertex AI gets no ids', () => {
    const contents = contentsOf(format({ hasCallIds: false }), [user('a'), assistant([call('c1')]), tool('c1', 'x')])
    expect(JSON.stringify(contents)).not.toContain('"id"')
  })
})

describe('messages of people', () => {
  const bytes = (text: string): string => Buffer.from(text).toString('base64')
  test.each<[string, ContentPart, unknown]>([
    ['a picture', { type: 'image', data: PNG, mediaType: 'image/jpeg' }, { mimeType: 'image/png', data: PNG }],
    [
      'a PDF',
      { type: 'file', data: bytes('%PDF-1.7 a'), mediaType: 'application/pdf' },
      { mimeType: 'application/pdf', data: bytes('%PDF-1.7 a') },
    ],
    [
      'JSON',
      { type: 'file', data: bytes('{}'), mediaType: 'application/json' },
      { mimeType: 'text/plain', data: bytes('{}') },
    ],
    [
      'a film',
      { type: 'file', data: bytes('film'), mediaType: 'video/mp4' },
      { mimeType: 'video/mp4', data: bytes('film') },
    ],
  ])('%s is sent as data, with its own type', (_name, part, inlineData) => {
    expect(contentsOf(THIRD, [user([part])])).toEqual([{ role: 'user', parts: [{ inlineData }] }])
  })

  test('an address is sent as an address', () => {
    const part = { type: 'image', url: 'https://example.org/cat.png?size=1' } as const
    expect(contentsOf(THIRD, [user([part])])[0]?.['parts']).toEqual([
      { fileData: { fileUri: part.url, mimeType: 'image/png' } },
    ])
  })

  test('what the API does not support is refused by name, and a broken file is left out with a word', () => {
    const word = { type: 'file', data: bytes('PK'), mediaType: 'application/msword' } as const
    expect(() => contentsOf(THIRD, [user([word])])).toThrow(/Gemini's API supports .*`application\/msword`/)
    const broken = { type: 'image', data: '', mediaType: 'image/png' } as const
    expect(contentsOf(THIRD, [user([broken])])[0]?.['parts']).toMatchObject([{ text: /is empty/ }])
  })

  test('a message without content is left out', () => {
    expect(contentsOf(THIRD, [user(' '), user('Hi')])).toEqual([{ role: 'user', parts: [{ text: 'Hi' }] }])
  })
})
