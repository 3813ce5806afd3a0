import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { HarnessError } from 'thinharness'
import type { JsonObject } from '#util/json.js'
import { callIdFor, event, folded, format } from './support.js'

const google = (data: JsonObject): unknown => ({ provider: 'google', data })

function errorOf(work: () => unknown): HarnessError {
  try {
    work()
  } catch (error) {
    if (error instanceof HarnessError) return error
    throw error
  }
  throw new Error('It did not fail.')
}

describe('a reply', () => {
  test('text and thoughts are joined; a signature keeps the part that it came with', () => {
    const { reply, deltas } = folded([
      event([{ text: 'One ', thought: true }]),
      event([{ text: 'two.', thought: true }]),
      event([{ text: 'Yes' }]),
      event([{ text: ', it is.' }]),
      event([{ text: '', thoughtSignature: 's1' }], 'STOP'),
    ])
    expect(reply.parts).toEqual([
      { type: 'reasoning', text: 'One two.', native: google({ thought: true }) },
      { type: 'text', text: 'Yes, it is.' },
      { type: 'reasoning', text: '', native: google({ thoughtSignature: 's1' }) },
    ])
    expect(deltas.map(({ kind, text }) => `${kind} ${text}`)).toEqual([
      'reasoning_delta One ',
      'reasoning_delta two.',
      'text_delta Yes',
      'text_delta , it is.',
    ])
  })

  test('calls without ids get ids, those with ids keep them, and a call that is sent twice is one', () => {
    const twice = { functionCall: { id: 'x', name: 'read', args: { path: 'b' } } }
    const { reply, deltas } = folded([
      event([{ functionCall: { name: 'read', args: { path: 'a' } }, thoughtSignature: 's' }]),
      event([twice, { functionCall: { name: 'read', args: { path: 'a' } } }]),
      event([twice], 'STOP'),
    ])
    expect(reply.finishReason).toBe('tool_calls')
    expect(reply.parts).toEqual([
      {
        ...{ type: 'tool_call', callId: 'call_9_1', name: 'read', arguments: '{"path":"a"}' },
        native: google({ thoughtSignature: 's' }),
      },
      { type: 'tool_call', callId: 'x', name: 'read', arguments: '{"path":"b"}' },
      { type: 'tool_call', callId: 'call_9_3', name: 'read', arguments: '{"path":"a"}' },
    ])
    expect(deltas.map(({ callId }) => callId)).toEqual(['call_9_1', 'x', 'call_9_3'])
  })

  test('a call without arguments has empty ones', () => {
    const { reply } = folded([event([{ functionCall: { name: 'read' } }], 'STOP')])
    expect(reply.parts).toMatchObject([{ arguments: '{}' }])
  })

  test('the pieces of a stream do not matter, and a whole reply is the same', () => {
    const part = fc.oneof(
      fc.record({ text: fc.string() }),
      fc.record({ text: fc.string(), thought: fc.constant(true) }),
      fc.record({ text: fc.string(), thoughtSignature: fc.base64String({ minLength: 4 }) }),
      fc.record({
        functionCall: fc.record({ name: fc.constant('f'), args: fc.dictionary(fc.string(), fc.integer()) }),
      }),
      fc.record({ inlineData: fc.record({ mimeType: fc.constant('image/png'), data: fc.base64String() }) }),
    )
    fc.assert(
      fc.property(fc.array(part, { minLength: 1 }), fc.infiniteStream(fc.boolean()), (given, cuts) => {
        const events: JsonObject[] = []
        let piece: JsonObject[] = []
        for (const each of given as JsonObject[]) {
          piece.push(each)
          if (!(cuts.next().value ?? false)) continue
          events.push(event(piece))
          piece = []
        }
        events.push(event(piece, 'STOP', { responseId: 'r' }))
        const { reply } = folded(events)
        const whole = format().decode(event(given, 'STOP', { responseId: 'r' }), {
          callIdFor,
          onDelta: undefined,
        })
        expect(reply).toEqual(whole)
      }),
    )
  })
})

describe('how a reply ends', () => {
  test.each([
    ['STOP', 'stop'],
    ['MAX_TOKENS', 'length'],
    ['SAFETY', 'content_filter'],
    ['RECITATION', 'content_filter'],
    ['PROHIBITED_CONTENT', 'content_filter'],
    ['SPII', 'content_filter'],
    ['OTHER', 'other'],
    ['NEW_REASON', 'other'],
  ])('%s', (word, finishReason) => {
    const { reply } = folded([event([{ text: 'a' }], word)])
    expect(reply).toMatchObject({ finishReason, nativeFinishReason: word })
  })

  test.each(['MALFORMED_FUNCTION_CALL', 'UNEXPECTED_TOOL_CALL', 'TOO_MANY_TOOL_CALLS'])(
    '%s may go better another time',
    (word) => {
      const error = errorOf(() => folded([event([], word)]))
      expect(error).toMatchObject({ code: 'provider_error', retryable: true, failure: 'server' })
      expect(error.message).toContain(word)
    },
  )

  test('a prompt that was blocked', () => {
    const usageMetadata = { promptTokenCount: 9, totalTokenCount: 9 }
    const blocked = { promptFeedback: { blockReason: 'PROHIBITED_CONTENT' }, usageMetadata }
    const { reply } = folded([blocked])
    expect(reply).toMatchObject({
      ...{ parts: [], finishReason: 'content_filter', nativeFinishReason: 'PROHIBITED_CONTENT' },
      usage: { inputTokens: 9, outputTokens: 0 },
    })
  })

  test('a stream without a finish reason is broken; an error in it is the error', () => {
    expect(errorOf(() => folded([event([{ text: 'a' }])]))).toMatchObject({ retryable: true, failure: 'connection' })
    const error = { code: 503, message: 'The model is overloaded. Please try again later.', status: 'UNAVAILABLE' }
    expect(errorOf(() => folded([event([{ text: 'a' }]), { error }]))).toMatchObject({
      ...{ status: 503, retryable: true, failure: 'overloaded' },
    })
  })

  test('an answer that is no reply is refused', () => {
    const options = { callIdFor, onDelta: undefined }
    for (const answer of [{}, [], 'x', { candidates: [] }])
      expect(errorOf(() => format().decode(answer, options)).message).toContain('no reply')
  })

  test('arguments in pieces are refused with the option that turns them off', () => {
    const piece = { functionCall: { name: 'read', willContinue: true } }
    expect(errorOf(() => folded([event([piece], 'STOP')])).message).toContain('streamFunctionCallArguments')
  })
})

describe('usage', () => {
  test.each<[string, JsonObject, (number | null)[]]>([
    [
      'thoughts, the cache and results of tools',
      {
        ...{ promptTokenCount: 55, candidatesTokenCount: 51, thoughtsTokenCount: 56, toolUsePromptTokenCount: 89 },
        ...{ cachedContentTokenCount: 40, totalTokenCount: 251 },
      },
      [144, 107, 40, null, 56],
    ],
    ['only thoughts', { promptTokenCount: 15, thoughtsTokenCount: 2, totalTokenCount: 17 }, [15, 2, 0, null, 2]],
    ['nothing but the traffic', { trafficType: 'ON_DEMAND' }, [null, null, null, null, null]],
  ])('%s', (_name, usageMetadata, wanted) => {
    const { usage } = folded([event([{ text: 'a' }], 'STOP', { usageMetadata })]).reply
    const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens, reasoningTokens } = usage
    expect([inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens, reasoningTokens]).toEqual(wanted)
  })
})
