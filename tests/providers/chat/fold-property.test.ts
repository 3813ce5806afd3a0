import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { ModelDelta } from '#core/model-session.js'
import { toolCallsOf } from '#contracts/entry.js'
import { chunksOf, decode, hear, replyOf } from './wire.js'

describe('a streamed reply and a whole one', () => {
  const call = fc.record({
    id: fc.string({ minLength: 1 }),
    type: fc.constant('function'),
    function: fc.record({
      name: fc.constantFrom('look', 'write'),
      arguments: fc.object().map((value) => JSON.stringify(value)),
    }),
  })
  const message = fc.record({
    content: fc.string(),
    reasoning_content: fc.string(),
    refusal: fc.string(),
    tool_calls: fc.uniqueArray(call, { selector: ({ id }) => id, maxLength: 4 }),
    annotations: fc.array(fc.record({ type: fc.constant('url_citation'), n: fc.integer() }), { maxLength: 3 }),
  })
  const finish = fc.constantFrom('stop', 'length', 'tool_calls', 'content_filter')

  test('PR-13 both end in the same parts, and the deltas add up to them, however the stream is split', () => {
    fc.assert(
      fc.property(message, finish, fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1 }), (whole, word, sizes) => {
        const { reply, deltas } = hear(chunksOf(deltasOf(whole, sizes), word))
        const expected = decode(replyOf(whole, word))
        expect(reply.parts).toEqual(expected.parts)
        expect(reply.finishReason).toBe(expected.finishReason)
        expect(textTold(deltas, 'text_delta')).toBe(whole.content)
        expect(textTold(deltas, 'reasoning_delta')).toBe(whole.reasoning_content)
        for (const { callId, arguments: text } of toolCallsOf(reply.parts)) {
          expect(textTold(deltas, 'tool_input_delta', callId)).toBe(text)
        }
      }),
    )
  })

  /** Lengths of pieces, in turn. */
  type Sizes = readonly number[]

  interface Whole {
    readonly content: string
    readonly reasoning_content: string
    readonly refusal: string
    readonly annotations: readonly unknown[]
    readonly tool_calls: readonly {
      readonly id: string
      readonly function: { readonly name: string; readonly arguments: string }
    }[]
  }

  /** The deltas of a message as OpenAI sends them; the calls take turns. */
  function deltasOf({ tool_calls: calls, annotations, ...texts }: Whole, sizes: Sizes): unknown[] {
    const fields = (['reasoning_content', 'content', 'refusal'] as const).flatMap((field) =>
      cut(texts[field], sizes).map((piece) => ({ [field]: piece })),
    )
    const starts = calls.map(({ id, function: { name } }, index) => {
      return { tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }] }
    })
    const pieces = calls.flatMap(({ function: { arguments: text } }, index) =>
      cut(text, sizes).map((piece, turn) => ({
        turn,
        delta: { tool_calls: [{ index, function: { arguments: piece } }] },
      })),
    )
    const turns = pieces.sort((left, right) => left.turn - right.turn).map(({ delta }) => delta)
    return [
      { role: 'assistant' },
      ...fields,
      ...starts,
      ...turns,
      ...annotations.map((one) => ({ annotations: [one] })),
    ]
  }

  function cut(text: string, sizes: Sizes): string[] {
    const pieces: string[] = []
    for (let from = 0; from < text.length;) {
      const size = sizes[pieces.length % sizes.length] ?? 1
      pieces.push(text.slice(from, from + size))
      from += size
    }
    return pieces
  }

  function textTold(deltas: readonly ModelDelta[], kind: string, callId?: string): string {
    return deltas.flatMap((delta) => (delta.kind === kind && delta.callId === callId ? [delta.text] : [])).join('')
  }
})

test('arbitrary server data never fails the fold except with a provider error', () => {
  const names = ['content', 'tool_calls', 'reasoning', 'reasoning_details', 'function_call', 'refusal', 'audio', 'x']
  const value = fc.oneof(fc.jsonValue(), fc.array(fc.record({ index: fc.jsonValue(), function: fc.jsonValue() })))
  const delta = fc.dictionary(fc.constantFrom(...names), value)
  const choice = fc.record({ index: fc.constantFrom(0, null), delta, finish_reason: fc.constantFrom('stop', null, 7) })
  const data = fc.oneof(fc.record({ choices: fc.array(choice) }), fc.jsonValue())
  fc.assert(
    fc.property(fc.array(data), (list) => {
      try {
        hear(list.map((each) => ({ event: null, data: each })))
      } catch (error) {
        expect(error).toMatchObject({ code: 'provider_error' })
      }
    }),
  )
})
