import { expect, test } from 'vitest'
import type { ToolOutcome } from 'thinharness'
import { outcomeOfResult } from '#adapters/mcp/client/result-content.js'

const source = { source: 'mcp', mcp_server_id: 's', mcp_tool_name: 't' }

function outcome(result: unknown, retryErrors = false): ToolOutcome {
  return outcomeOfResult(result, source, retryErrors)
}

test.each<[string, unknown, Partial<ToolOutcome & { kind: 'succeeded' }>]>([
  ['texts are joined by a newline', { content: [text('a'), text('b')] }, { content: 'a\nb' }],
  ['nothing is said to be nothing', { content: [] }, { content: 'The tool ran and returned nothing.' }],
  ['no object at all is nothing', 'odd', { content: 'The tool ran and returned nothing.' }],
  [
    'structured content is given as JSON, in place of the texts',
    { content: [text('{"n":1}')], structuredContent: { n: 1, a: [true] } },
    { content: '{"n":1,"a":[true]}' },
  ],
  [
    'an image is a marker in the text, and a part',
    { content: [text('see'), { type: 'image', data: 'aWk=', mimeType: 'image/png' }] },
    { content: 'see\n[image: image/png]', parts: [{ type: 'image', data: 'aWk=', mediaType: 'image/png' }] },
  ],
  [
    'audio the same',
    { content: [{ type: 'audio', data: 'aWk=', mimeType: 'audio/wav' }] },
    { content: '[audio: audio/wav]', parts: [{ type: 'audio', data: 'aWk=', mediaType: 'audio/wav' }] },
  ],
  [
    'an embedded text is read',
    { content: [{ type: 'resource', resource: { uri: 'x://a', text: 'inside' } }] },
    { content: '[resource: x://a]\ninside' },
  ],
  [
    'an embedded file is a part with its name',
    {
      content: [{ type: 'resource', resource: { uri: 'x://d/a.pdf?v=1', mimeType: 'application/pdf', blob: 'aWk=' } }],
    },
    {
      content: '[resource: x://d/a.pdf?v=1]',
      parts: [{ type: 'file', data: 'aWk=', mediaType: 'application/pdf', name: 'a.pdf' }],
    },
  ],
  [
    'a link is named, and kept for the host',
    { content: [{ type: 'resource_link', uri: 'x://a', name: 'A', description: 'the first', mimeType: 'text/plain' }] },
    {
      content: '[resource: x://a] A: the first',
      metadata: { ...source, resource_links: [{ uri: 'x://a', name: 'A', mime_type: 'text/plain' }] },
    },
  ],
  [
    'what is not known is passed over',
    { content: [{ type: 'hologram' }, text('b')] },
    { content: '[content of an unknown type: hologram]\nb' },
  ],
])('MC-01 a result of a server becomes content for the model: %s', (_name, result, expected) => {
  expect(outcome(result)).toEqual({ kind: 'succeeded', metadata: source, ...expected })
})

test('a part that is too large is reported, not passed on', () => {
  const data = 'x'.repeat(9 * 1024 * 1024)

  expect(outcome({ content: [{ type: 'image', data, mimeType: 'image/png' }] })).toEqual({
    kind: 'succeeded',
    content: '[image: image/png; omitted: 7077888 bytes is too large]',
    metadata: source,
  })
})

test('MC-04 an error result is a failure, which counts as a retry only with `retryErrors`', () => {
  const result = { content: [text('no such file')], isError: true }
  const failed = { kind: 'failed', errorType: 'MCPToolError', content: 'no such file', metadata: source }

  expect(outcome(result)).toEqual({ ...failed, retry: false })
  expect(outcome(result, true)).toEqual({ ...failed, retry: true })
})

function text(value: string): object {
  return { type: 'text', text: value }
}

test('MC-44 a result has no terminal escapes', () => {
  const given = 'a\x1b[2J\x1b]0;title\x07\tb\x9b31m\r\nc'

  expect(outcome({ content: [text(given)] })).toMatchObject({ content: 'a\tb\r\nc' })
  expect(outcome({ content: [], structuredContent: { a: 'x\x9b31my' } })).toMatchObject({
    content: expect.stringContaining('"xy"') as unknown,
  })
})
