import { afterEach, describe, expect, test, vi } from 'vitest'
import { textOf, toolCallsOf } from 'thinharness'
import type { TransportRetry } from 'thinharness'
import type { CacheBust } from '#core/model-session.js'
import type { TranscriptRepair } from '#contracts/mend.js'
import { fromAiSdk } from '#providers/ai-sdk/index.js'
import type { TranscriptEntry } from '#contracts/entry.js'
import {
  assistant,
  call,
  Conversation,
  errorOf,
  FakeLanguageModel,
  finished,
  LOOKUP,
  NO_CONSTANTS,
  reply,
  result,
  text,
  unaborted,
  user,
} from './support.js'

afterEach(() => vi.useRealTimers())

const says = (words: string): object => reply([text(words)])
const overloaded = (): Error => Object.assign(new Error('Overloaded'), apiError(529, { 'retry-after': '0' }))
const apiError = (statusCode: number, responseHeaders: object): object => {
  return { name: 'AI_APICallError', url: 'http://127.0.0.1/', statusCode, responseHeaders, isRetryable: true }
}

describe('the prompt', () => {
  test('it grows by the new entries, after the same messages', async () => {
    const model = new FakeLanguageModel([
      reply([{ type: 'tool-call', toolCallId: 'c1', toolName: 'lookup', input: '{}' }]),
      says('Done.'),
    ])
    const conversation = new Conversation(fromAiSdk(model), { instructions: 'Be brief.', tools: [LOOKUP] })
    await conversation.say('Hi')
    await conversation.say([result('c1'), user('Soon.', true)])
    const [first, second] = model.calls.map(({ prompt }) => prompt as readonly object[])
    expect(second).toHaveLength(5)
    expect(first).toHaveLength(2)
    for (const [index, message] of first!.entries()) expect(second![index]).toBe(message)
  })

  test('it is encoded again if an earlier entry has changed, which is reported with its position', async () => {
    const model = new FakeLanguageModel([says('a'), says('b'), says('c'), says('d')])
    const session = fromAiSdk(model).openSession()
    const busts: CacheBust[] = []
    const options = { generation: 0, signal: unaborted(), onCacheBust: (bust: CacheBust) => void busts.push(bust) }
    const ask = (entries: readonly TranscriptEntry[], instructions = 'Be brief.'): Promise<unknown> =>
      session.turn(entries, { ...constants, instructions }, options)
    const constants = NO_CONSTANTS
    const image = user([{ type: 'image', url: 'https://example.com/a.png' }])
    const other = user([{ type: 'image', url: 'https://example.com/b.png' }])

    await ask([user('Hi'), image])
    await ask([user('Hi'), image, user('More.')])
    expect(busts).toEqual([])
    await ask([user('Hi'), other, user('More.')])
    expect(busts).toEqual([{ path: '$.prompt[2].content[0].data', cause: 'entry_changed' }])
    expect(model.calls[2]?.['prompt']).toMatchObject([
      { role: 'system' },
      { role: 'user' },
      { content: [{ data: new URL('https://example.com/b.png') }] },
      { content: [{ text: 'More.' }] },
    ])
    await ask([user('Hi'), other, user('More.')], 'Be long.')
    expect(busts[1]).toEqual({ path: '$.prompt[0].content', cause: 'constants_changed' })
  })

  test('a change of the tools is reported', async () => {
    const model = new FakeLanguageModel([says('a'), says('b')])
    const session = fromAiSdk(model).openSession()
    const onCacheBust = vi.fn()
    await session.turn([user('Hi')], NO_CONSTANTS, { generation: 0, signal: unaborted(), onCacheBust })
    await session.turn(
      [user('Hi')],
      { ...NO_CONSTANTS, tools: [LOOKUP] },
      { generation: 0, signal: unaborted(), onCacheBust },
    )
    expect(onCacheBust.mock.calls).toEqual([[{ path: '$.tools', cause: 'constants_changed' }]])
  })

  test('a broken history is repaired, which is reported', async () => {
    const model = new FakeLanguageModel([says('a')])
    const repairs: TranscriptRepair[] = []
    const conversation = new Conversation(fromAiSdk(model), {}, [user('Hi'), assistant(call('c1'))])
    await conversation.say('Go on.', { onRepair: (repair) => void repairs.push(repair) })
    expect(repairs).toEqual([{ problem: 'missing_result', callId: 'c1' }])
    expect(model.calls[0]?.['prompt']).toMatchObject([
      { role: 'user' },
      { role: 'assistant' },
      { role: 'tool', content: [{ toolCallId: 'c1', output: { type: 'error-text' } }] },
      { role: 'user' },
    ])
  })

  test('an entry that cannot be encoded changes nothing', async () => {
    const model = new FakeLanguageModel([says('a'), says('b')])
    const conversation = new Conversation(fromAiSdk(model, { capabilities: { inputs: [] } }))
    await conversation.say('Hi')
    const { transcript } = conversation
    const image = user([{ type: 'image', data: 'eA==', mediaType: 'image/png' }])
    expect(await errorOf(conversation.say([image]))).toMatchObject({ code: 'invalid_options' })
    conversation.transcript = transcript
    await conversation.say('Go on.')
    expect(model.calls[1]?.['prompt']).toHaveLength(3)
  })
})

test('an id that a later reply repeats is replaced in its deltas and its calls', async () => {
  const calls = { type: 'tool-call', toolCallId: 'c1', toolName: 'lookup', input: '{}' }
  const finish = finished({ unified: 'tool-calls', raw: 'tools' })
  const model = new FakeLanguageModel([
    [calls, finish],
    [calls, finish],
  ])
  const conversation = new Conversation(fromAiSdk(model))
  await conversation.hear('Hi')
  const turn = await conversation.hear([result('c1')])
  expect(toolCallsOf(turn.entry.parts)).toMatchObject([{ callId: 'c1_2', name: 'lookup', arguments: '{}' }])
  expect(conversation.deltas.map(({ callId }) => callId)).toEqual(['c1', 'c1_2'])
})

describe('retries', () => {
  test('they are reported, and the report says whether deltas are withdrawn', async () => {
    const model = new FakeLanguageModel([
      overloaded(),
      [{ type: 'text-delta', id: '0', delta: 'Wr' }, overloaded()],
      [{ type: 'text-delta', id: '0', delta: 'Right.' }, finished()],
    ])
    const conversation = new Conversation(fromAiSdk(model))
    const retries: TransportRetry[] = []
    const turn = await conversation.hear('Hi', { onRetry: (retry) => void retries.push(retry) })
    expect(textOf(turn.entry.parts)).toBe('Right.')
    expect(retries).toEqual([
      { attempt: 1, delayMs: 0, reason: 'Overloaded', status: 529, failure: 'overloaded', withdrawn: false },
      { attempt: 2, delayMs: 0, reason: 'Overloaded', status: 529, failure: 'overloaded', withdrawn: true },
    ])
  })

  test('end with the last error', async () => {
    const model = new FakeLanguageModel([overloaded(), overloaded(), overloaded()])
    const error = await errorOf(new Conversation(fromAiSdk(model, { maxRetries: 1 })).say('Hi'))
    expect(error).toMatchObject({ code: 'provider_error', status: 529, retryable: true, retryAfterMs: 0 })
    expect(model.calls).toHaveLength(2)
  })
})

describe('an abort', () => {
  const reason = new Error('Enough.')

  test('before the call', async () => {
    const model = new FakeLanguageModel([])
    const asked = new Conversation(fromAiSdk(model)).say('Hi', { signal: AbortSignal.abort(reason) })
    await expect(asked).rejects.toBe(reason)
    expect(model.calls).toEqual([])
  })

  test.each([false, true])(
    'before the first byte stops the call at once, heeded or not (streamed: %s)',
    async (streamed) => {
      const controller = new AbortController()
      let given: AbortSignal | undefined
      const model = new FakeLanguageModel([
        (_call, signal) => {
          given = signal
          setImmediate(() => controller.abort(reason))
          return new Promise<object>(() => undefined)
        },
      ])
      const conversation = new Conversation(fromAiSdk(model))
      const options = { generation: 0, signal: controller.signal }
      await expect(streamed ? conversation.hear('Hi', options) : conversation.say('Hi', options)).rejects.toBe(reason)
      expect(given?.aborted).toBe(true)
    },
  )

  test('in the middle of a stream gives the stream back', async () => {
    const controller = new AbortController()
    const model = new FakeLanguageModel([[{ type: 'text-delta', id: '0', delta: 'Hm.' }, new Promise(() => undefined)]])
    const asked = new Conversation(fromAiSdk(model)).say('Hi', {
      signal: controller.signal,
      onDelta: () => setImmediate(() => controller.abort(reason)),
    })
    await expect(asked).rejects.toBe(reason)
    expect(model.cancelled).toBe(1)
  })
})

describe('time limits', () => {
  const never = new Promise<object>(() => undefined)

  test('no answer', async () => {
    const model = new FakeLanguageModel([() => never])
    const options = { maxRetries: 0, timeouts: { firstByteMs: 20 } }
    const error = await errorOf(new Conversation(fromAiSdk(model, options)).say('Hi'))
    expect(error).toMatchObject({ code: 'provider_error', retryable: true })
    expect(error.message).toContain('`timeouts.firstByteMs`')
  })

  test('silence in the middle of a stream', async () => {
    const model = new FakeLanguageModel([[{ type: 'text-delta', id: '0', delta: 'Hm.' }, never]])
    const options = { maxRetries: 0, timeouts: { idleMs: 20 } }
    const error = await errorOf(new Conversation(fromAiSdk(model, options)).hear('Hi'))
    expect(error).toMatchObject({ code: 'provider_error', retryable: true })
    expect(error.message).toContain('`timeouts.idleMs`')
    expect(model.cancelled).toBe(1)
  })

  test('a stream that does not close after its finish is complete', async () => {
    const model = new FakeLanguageModel([[{ type: 'text-delta', id: '0', delta: 'Hm.' }, finished(), never]])
    const conversation = new Conversation(fromAiSdk(model, { timeouts: { idleMs: 20 } }))
    expect(textOf((await conversation.hear('Hi')).entry.parts)).toBe('Hm.')
    expect(model.cancelled).toBe(1)
  })
})

test('a stream that fails after its finish is complete', async () => {
  const model = new FakeLanguageModel([[{ type: 'text-delta', id: '0', delta: 'Hm.' }, finished(), new Error('late')]])
  expect(textOf((await new Conversation(fromAiSdk(model)).hear('Hi')).entry.parts)).toBe('Hm.')
})

test('a model that returns no stream for a streamed request is reported as the cause', async () => {
  const model = new FakeLanguageModel([])
  model.doStream = () => Promise.resolve({})
  const error = await errorOf(new Conversation(fromAiSdk(model)).hear('Hi'))
  expect(error).toMatchObject({ code: 'provider_error', retryable: false })
})
