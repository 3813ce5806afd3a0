import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { ModelDelta } from 'thinharness'
import { StreamFold } from '#providers/ai-sdk/stream.js'
import type { AiSdkReply } from '#providers/ai-sdk/reply.js'
import { errorOf, finished } from './support.js'

function folded(parts: readonly unknown[]): { reply: AiSdkReply; deltas: ModelDelta[] } {
  const deltas: ModelDelta[] = []
  const fold = new StreamFold({
    callIdFor: (index) => `made_${index}`,
    onDelta: (delta) => void deltas.push(delta),
  })
  for (const part of parts) fold.add(part)
  return { reply: fold.end(), deltas }
}

const content = (...parts: readonly unknown[]): readonly object[] => folded([...parts, finished()]).reply.content
const delta = (words: string, id = '0'): object => ({ type: 'text-delta', id, delta: words })
const start = (id: string, beside: object = {}): object => ({
  type: 'tool-input-start',
  id,
  toolName: 'lookup',
  ...beside,
})
const input = (id: string, words: string): object => ({ type: 'tool-input-delta', id, delta: words })
const end = (id: string, words: string): object => ({
  type: 'tool-call',
  toolCallId: id,
  toolName: 'lookup',
  input: words,
})

describe('malformed streams', () => {
  test('a text whose start is missing or repeated is read', () => {
    expect(content(delta('a'), { type: 'text-start', id: '0' }, delta('b'))).toEqual([{ type: 'text', text: 'ab' }])
  })

  test('an id that is used again after its end starts a new text', () => {
    expect(content(delta('a'), { type: 'text-end', id: '0' }, delta('b'))).toEqual([
      { type: 'text', text: 'a' },
      { type: 'text', text: 'b' },
    ])
  })

  test('concurrent texts are ordered by their start', () => {
    expect(content(delta('a', '1'), delta('x', '2'), delta('b', '1'))).toEqual([
      { type: 'text', text: 'ab' },
      { type: 'text', text: 'x' },
    ])
  })

  test('metadata that comes in pieces is one', () => {
    const noted = (type: string, acme: object): object => ({ type, id: '0', providerMetadata: { acme } })
    expect(
      content(noted('reasoning-start', { id: 'r', sealed: null }), noted('reasoning-end', { sealed: 'x' })),
    ).toEqual([{ type: 'reasoning', text: '', providerMetadata: { acme: { id: 'r', sealed: 'x' } } }])
  })

  test('ends, input and deltas without a start, and unknown parts, are skipped', () => {
    expect(
      content({ type: 'text-end', id: '9' }, input('c9', 'x'), { type: 'text-delta', id: '0' }, null, 'x'),
    ).toEqual([{ type: 'text', text: '' }])
  })

  test('two calls with one id, and one without: each piece is emitted with the id that the call gets', () => {
    const { reply, deltas } = folded([
      start('c'),
      input('c', '{"a":1}'),
      end('c', '{"a":1}'),
      start('c'),
      input('c', '{"b":2}'),
      end('c', '{"b":2}'),
      end('', '{}'),
      finished(),
    ])
    expect(reply.content).toMatchObject([{ toolCallId: 'c' }, { toolCallId: 'made_1' }, { toolCallId: 'made_2' }])
    expect(deltas).toEqual([
      { kind: 'tool_input_delta', text: '{"a":1}', callId: 'c', toolName: 'lookup' },
      { kind: 'tool_input_delta', text: '{}', callId: 'made_2', toolName: 'lookup' },
      { kind: 'tool_input_delta', text: '{"b":2}', callId: 'made_1', toolName: 'lookup' },
    ])
  })

  test.each<[string, object]>([
    ['as its start says', start('s', { providerExecuted: true })],
    ['as only its end says', start('s')],
  ])('input of a provider-executed call is not a call, %s', (_name, first) => {
    const search = { ...end('s', '{}'), providerExecuted: true }
    expect(content(first, search)).toEqual([search])
  })

  test.each(['length', 'content-filter'])('a call that was cut off (`%s`) is kept as far as it arrived', (unified) => {
    const { reply } = folded([start('c'), input('c', '{"a'), finished({ unified, raw: 'x' })])
    expect(reply.content).toEqual([{ type: 'tool-call', toolCallId: 'c', toolName: 'lookup', input: '{"a' }])
  })
})

describe('a truncated stream', () => {
  test.each<[string, unknown[]]>([
    ['before anything', []],
    ['without a finish', [delta('Hm.')]],
    ['v2: with an unknown finish', [delta('Hm.'), finished('unknown')]],
    ['v3: with a finish that the API did not give', [delta('Hm.'), finished({ unified: 'other', raw: undefined })]],
    ['v4: with a finish that says so', [delta('Hm.'), finished({ unified: 'interrupted', raw: undefined })]],
    ['in a call, without a word on it', [start('c'), finished()]],
    ['in a call', [start('c'), input('c', '{}'), finished({ unified: 'tool-calls', raw: 'tool_calls' })]],
  ])('it is a retryable error, %s', async (_name, parts) => {
    const error = await errorOf(() => folded(parts))
    expect(error).toMatchObject({ code: 'provider_error', retryable: true })
    expect(error.message).toMatch(/^The language model's stream ended before .*: the reply is incomplete\.$/)
  })

  test('`other` as a finish reason of v2, and with a reason of the API, is a regular end', () => {
    expect(folded([delta('Hm.'), finished('other')]).reply.finishReason).toBe('other')
    expect(() => folded([finished({ unified: 'other', raw: 'new' })])).not.toThrow()
  })
})

test('however the texts are split, they add up, and so do the deltas', () => {
  const texts = fc.array(fc.array(fc.string()), { minLength: 1, maxLength: 4 })
  fc.assert(
    fc.property(texts, fc.infiniteStream(fc.nat()), (blocks, choices) => {
      const left = blocks.map((pieces, index) => pieces.map((piece) => delta(piece, String(index))))
      const parts: object[] = blocks.map((_, index) => ({ type: 'text-start', id: String(index) }))
      for (const choice of choices) {
        const open = left.filter((pieces) => pieces.length > 0)
        if (open.length === 0) break
        parts.push(open[choice % open.length]!.shift()!)
      }
      const { reply, deltas } = folded([...parts, finished()])
      expect(reply.content).toEqual(blocks.map((pieces) => ({ type: 'text', text: pieces.join('') })))
      expect(deltas.map(({ text }) => text).join('').length).toBe(blocks.flat().join('').length)
    }),
  )
})
