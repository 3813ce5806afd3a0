import { describe, expect, test } from 'vitest'
import { resultForModel } from 'thinharness'
import type { ContentPart } from 'thinharness'
import type { FailureMark } from '#contracts/entry.js'

const image: ContentPart = { type: 'image', mediaType: 'image/png', data: 'aW1hZ2U=' }

function envelope(ok: boolean, content: string, metadata: object = {}): string {
  return JSON.stringify({ ok, content, metadata })
}

function read(content: string, mark: FailureMark = 'flag'): unknown {
  const isError = content.startsWith('{"ok":false')
  return resultForModel({ content, isError }, mark)
}

describe('the model reads the content of a tool result', () => {
  test.each<FailureMark>(['flag', 'prefix'])('a success is its content, without metadata (%s)', (mark) => {
    expect(read(envelope(true, 'say "a"\n\tb', { path: '/home/me/a.txt' }), mark)).toBe('say "a"\n\tb')
    expect(read(envelope(true, '{"b":1,"a":2}'), mark)).toBe('{"b":1,"a":2}')
    expect(read(envelope(true, ''), mark)).toBe('')
    // A success may begin with any word.
    expect(read(envelope(true, 'Correct.', { retry: true }), mark)).toBe('Correct.')
  })

  test('a failure is its message; an API without a flag gets a prefix, once', () => {
    const failed = envelope(false, 'No such file.', { error_type: 'NotFound' })
    expect(read(failed, 'flag')).toBe('No such file.')
    expect(read(failed, 'prefix')).toBe('Error: No such file.')
    expect(read(envelope(false, 'Error: No.'), 'prefix')).toBe('Error: No.')
  })

  test('a failure that can be corrected says so, unless its message does', () => {
    const retry = { error_type: 'ModelRetry', retry: true }
    expect(read(envelope(false, 'The id has 8 digits.', retry))).toBe(
      'The id has 8 digits.\nCorrect this and call the tool again.',
    )
    expect(read(envelope(false, 'Call it again with 8 digits.', retry), 'prefix')).toBe(
      'Error: Call it again with 8 digits.',
    )
    expect(read(envelope(false, 'Gone.', { retry: false }))).toBe('Gone.')
  })

  test('arguments that a person edited are named', () => {
    expect(read(envelope(true, 'paid', { edited_arguments: { amount: 3 } }))).toBe(
      '[A person changed the arguments of this call to {"amount":3}]\npaid',
    )
  })

  test('images and files follow the text; an empty text is left out', () => {
    const withImage = (text: string): readonly ContentPart[] => [{ type: 'text', text }, image]
    expect(resultForModel({ content: withImage(envelope(true, 'A chart.')), isError: false }, 'prefix')).toEqual(
      withImage('A chart.'),
    )
    expect(resultForModel({ content: withImage(envelope(true, '')), isError: false }, 'flag')).toEqual([image])
    expect(resultForModel({ content: [image], isError: false }, 'flag')).toEqual([image])
  })

  test.each([
    'plain text',
    '',
    '{"ok":true',
    '{"rows":[]}',
    '[{"ok":true,"content":"a","metadata":{}}]',
    '{"ok":true,"content":"a","metadata":{},"more":1}',
    '{"ok":"yes","content":"a","metadata":{}}',
    '{"ok":true,"content":{"a":1},"metadata":{}}',
    '{"ok":true,"content":"a","metadata":[]}',
  ])('text that is not exactly an envelope is unchanged: %s', (text) => {
    expect(resultForModel({ content: text, isError: false }, 'prefix')).toBe(text)
    expect(resultForModel({ content: text, isError: true }, 'prefix')).toBe(text)
  })
})
