import fc from 'fast-check'
import { HarnessError, textOf, toolCallsOf } from 'thinharness'
import type { RequestConstants } from 'thinharness'
import { describe, expect, test } from 'vitest'
import type { WireSession } from '#providers/wire/wire-session.js'
import { WHOLE_REPLY } from '#providers/http/wire-format.js'
import type { AssistantEntry, TranscriptEntry } from '#contracts/entry.js'
import { hearing, listening, sessionOver } from '../echo-session.js'
import { assistant, call, constants, echoFormat, EchoTransport, result, user } from '../echo-format.js'

const overloaded = (): HarnessError =>
  new HarnessError('provider_error', 'Overloaded', { retryable: true, retryAfterMs: 0 })
const chunk = (data: unknown): { event: null; data: unknown } => ({ event: null, data })

test('a turn is the decoded reply', async () => {
  const reply = { id: 'r1', text: 'Hm.', call: { id: 'c1', args: '{"a":1}' } }
  const transport = new EchoTransport('bytes', reply)
  const turn = await sessionOver(transport).turn([user('Hi')], constants(), listening())
  expect(turn).toEqual({
    entry: {
      role: 'assistant',
      parts: [
        { type: 'text', text: 'Hm.' },
        { type: 'tool_call', callId: 'c1', name: 'tool', arguments: '{"a":1}' },
      ],
      provider: 'echo',
      model: 'm',
      finishReason: 'tool_calls',
      usage: turn.entry.usage,
    },
    nativeFinishReason: null,
    responseId: 'r1',
    responseModel: null,
    raw: reply,
  })
  expect(transport.requests[0]).toMatchObject({ path: '/echo', headers: { 'x-own': 'yes' } })
})

describe.each(['bytes', 'json'] as const)('the request as %s', (bodies) => {
  test('it grows by the new entries', async () => {
    const transport = new EchoTransport(bodies, { text: 'a' }, { text: 'b' })
    const session = sessionOver(transport)
    const transcript: TranscriptEntry[] = [user('one')]
    await session.turn(transcript, constants(), listening())
    transcript.push(assistant(call('c1')), result('c1'))
    const options = hearing()
    await expect(session.turn(transcript, constants(), options)).rejects.toThrow()
    expect(transport.sent).toEqual([
      { model: 'm', tools: [], messages: [{ system: 'Be brief.' }, { user: 'one' }] },
      {
        model: 'm',
        tools: [],
        messages: [{ system: 'Be brief.' }, { user: 'one' }, { assistant: ['c1'] }, { tool: 'c1' }],
        stream: true,
      },
    ])
    expect(options.busts).toEqual([])
  })
})

test('the bytes of a request begin with those of the one before, whatever joins', async () => {
  const joining = fc.array(
    fc.oneof(
      fc.string({ unit: 'grapheme' }).map((text): TranscriptEntry[] => [user(text)]),
      fc.nat(1e6).map((n): TranscriptEntry[] => [assistant(call(`c${n}`)), result(`c${n}`), user('more')]),
    ),
    { minLength: 1, maxLength: 8 },
  )
  await fc.assert(
    fc.asyncProperty(joining, fc.boolean(), async (turns, isCopied) => {
      const transport = new EchoTransport('bytes', ...turns.map(() => ({ text: 'x' })))
      const session = sessionOver(transport)
      const transcript: TranscriptEntry[] = []
      for (const entries of turns) {
        transcript.push(...entries)
        await session.turn(isCopied ? [...transcript] : transcript, constants(), listening())
      }
      for (const [index, text] of transport.texts.slice(1).entries()) {
        const before = transport.texts[index] ?? ''
        expect(text.startsWith(before.slice(0, before.lastIndexOf(']}')))).toBe(true)
      }
    }),
  )
})

describe('changes of the history', () => {
  async function afterOne(first: TranscriptEntry[]): Promise<{ session: WireSession; transport: EchoTransport }> {
    const transport = new EchoTransport('bytes', { text: 'a' }, { text: 'b' }, { text: 'c' })
    const session = sessionOver(transport)
    await session.turn(first, constants(), listening())
    return { session, transport }
  }

  test('an earlier entry: everything is encoded again, which is reported with the position in the request', async () => {
    const first = [user('one'), assistant({ type: 'text', text: 'x' }), user('two')]
    const { session, transport } = await afterOne(first)
    const options = listening()
    await session.turn([first[0]!, first[1]!, user('2'), user('three')], constants(), options)
    expect(options.busts).toEqual([{ path: '$.messages[3].user', cause: 'entry_changed' }])
    expect(transport.sent[1]).toMatchObject({
      messages: [{ system: 'Be brief.' }, { user: 'one' }, { assistant: ['text'] }, { user: '2' }, { user: 'three' }],
    })
    const next = listening()
    await session.turn([first[0]!, first[1]!, user('2'), user('three')], constants(), next)
    expect(next.busts).toEqual([])
  })

  test('a later entry is noticed after one that is only another object', async () => {
    const first = [user('one'), user('two')]
    const { session } = await afterOne(first)
    const options = listening()
    await session.turn([structuredClone(first[0]!), user('2')], constants(), options)
    expect(options.busts).toEqual([{ path: '$.messages[2].user', cause: 'entry_changed' }])
  })

  test('an equal object is no change', async () => {
    const first = [user('one')]
    const { session, transport } = await afterOne(first)
    const options = listening()
    await session.turn([...structuredClone(first), user('two')], structuredClone(constants()), options)
    expect(options.busts).toEqual([])
    expect(transport.texts[1]?.startsWith(transport.texts[0]?.slice(0, -2) ?? '')).toBe(true)
  })

  test('another object is compared once, not in every turn', async () => {
    const transport = new EchoTransport('bytes', { text: 'a' }, { text: 'b' }, { text: 'c' })
    const encoded: number[] = []
    const format = {
      ...echoFormat,
      encode(entries: readonly TranscriptEntry[], shared: RequestConstants) {
        encoded.push(entries.length)
        return echoFormat.encode(entries, shared)
      },
    }
    const session = sessionOver(transport, { format })
    const [first, shared] = [user('one'), constants()]
    await session.turn([first], shared, listening())
    const copies = [structuredClone(first), user('two')]
    await session.turn(copies, shared, listening())
    encoded.length = 0
    await session.turn([...copies, user('three')], shared, listening())
    expect(encoded).toEqual([1])
  })

  test('a history that got shorter', async () => {
    const first = [user('one'), user('two')]
    const { session, transport } = await afterOne(first)
    const options = listening()
    await session.turn(first.slice(0, 1), constants(), options)
    expect(options.busts).toEqual([{ path: '$.messages[2]', cause: 'entry_changed' }])
    expect(transport.sent[1]).toMatchObject({ messages: [{ system: 'Be brief.' }, { user: 'one' }] })
  })

  test.each([
    ['the tools', { tools: [{ name: 't', description: '', parameters: {} }] }, '$.tools[0]'],
    ['the instructions', { instructions: 'Be long.' }, '$.messages[0].system'],
    ['the settings', { settings: { temperature: 1 } }, '$.temperature'],
  ])('PR-06 a request changes only where its constants do, which is reported: %s', async (_name, more, path) => {
    const first = [user('one')]
    const { session, transport } = await afterOne(first)
    const options = listening()
    await session.turn([...first, user('two')], constants(more), options)
    expect(options.busts).toEqual([{ path, cause: 'constants_changed' }])
    const instructions = 'instructions' in more ? more.instructions : 'Be brief.'
    expect(transport.sent[1]).toMatchObject({ messages: [{ system: instructions }, { user: 'one' }, { user: 'two' }] })
  })
})

test('a format that cannot encode an entry leaves the session as it was', async () => {
  const transport = new EchoTransport('bytes', { text: 'a' }, { text: 'b' })
  const refusing = {
    ...echoFormat,
    encode(entries: readonly TranscriptEntry[]) {
      if (entries.some((entry) => entry.role === 'user' && entry.content.some((part) => part.type === 'audio'))) {
        throw new HarnessError('invalid_options', 'No audio.')
      }
      return echoFormat.encode(entries, constants())
    },
  }
  const session = sessionOver(transport, { format: refusing })
  const first = user('one')
  const audio: TranscriptEntry = { ...user(''), content: [{ type: 'audio', data: '', mediaType: 'audio/wav' }] }
  await expect(session.turn([audio], constants(), listening())).rejects.toThrow('No audio.')
  await session.turn([first], constants(), listening())
  await expect(session.turn([first, audio], constants(), listening())).rejects.toThrow('No audio.')
  await session.turn([first, user('two')], constants(), listening())
  expect(transport.sent.at(-1)).toMatchObject({ messages: [{ system: 'Be brief.' }, { user: 'one' }, { user: 'two' }] })
})

test('broken history is repaired in the request and reported; the transcript stays', async () => {
  const transport = new EchoTransport('bytes', { text: 'a' })
  const transcript = [user('one'), assistant(call('c1'))]
  const options = listening()
  await sessionOver(transport).turn(transcript, constants(), options)
  expect(transport.sent[0]).toMatchObject({
    messages: [{ system: 'Be brief.' }, { user: 'one' }, { assistant: ['c1'] }, { tool: 'c1' }],
  })
  expect(options.repairs).toEqual([{ problem: 'missing_result', callId: 'c1' }])
  expect(transcript).toHaveLength(2)
})

describe('call ids', () => {
  const asked = [user('one'), assistant(call('call_0')), result('call_0')]

  test('an id that the transcript already has is replaced in the turn', async () => {
    const transport = new EchoTransport(
      'bytes',
      { call: { id: 'call_0', args: '{}' } },
      { call: { id: 'call_0', args: '{}' } },
    )
    const session = sessionOver(transport)
    const turn = await session.turn(asked, constants(), listening())
    expect(toolCallsOf(turn.entry.parts).map((each) => each.callId)).toEqual(['call_0_2'])
    const second = { ...turn.entry, id: 'e', at: '' } as AssistantEntry
    const next = await session.turn([...asked, second, result('call_0_2')], constants(), listening())
    expect(toolCallsOf(next.entry.parts).map((each) => each.callId)).toEqual(['call_0_3'])
  })

  test('its deltas have the same id', async () => {
    const transport = new EchoTransport('bytes', [[chunk({ call: { id: 'call_0', args: '{}' } })]])
    const options = hearing()
    const turn = await sessionOver(transport).turn(asked, constants(), options)
    expect(options.deltas).toEqual([{ kind: 'tool_input_delta', text: '{}', callId: 'call_0_2' }])
    expect(toolCallsOf(turn.entry.parts)[0]?.callId).toBe('call_0_2')
  })

  test('an id that is no longer in the transcript is free', async () => {
    const transport = new EchoTransport('bytes', { text: 'a' }, { call: { id: 'call_0', args: '{}' } })
    const session = sessionOver(transport)
    await session.turn(asked, constants(), listening())
    const turn = await session.turn([user('other')], constants(), listening())
    expect(toolCallsOf(turn.entry.parts)[0]?.callId).toBe('call_0')
  })

  test('an id that is free stays', async () => {
    const transport = new EchoTransport('bytes', { call: { id: 'call_1', args: '{}' } })
    const turn = await sessionOver(transport).turn(asked, constants(), listening())
    expect(toolCallsOf(turn.entry.parts)[0]?.callId).toBe('call_1')
  })
})

describe('streams', () => {
  test('deltas are emitted in order, and the turn is their sum', async () => {
    const transport = new EchoTransport('bytes', [
      [chunk({ text: 'Hel' }), chunk({ text: 'lo' })],
      [chunk({ text: '.' })],
    ])
    const options = hearing()
    const turn = await sessionOver(transport).turn([user('Hi')], constants(), options)
    expect(options.deltas.map((delta) => delta.text)).toEqual(['Hel', 'lo', '.'])
    expect(textOf(turn.entry.parts)).toBe('Hello.')
  })

  test('deltas of a failed attempt are withdrawn and emitted again', async () => {
    const transport = new EchoTransport('bytes', [[chunk({ text: 'Hel' })], overloaded()], [[chunk({ text: 'Hi.' })]])
    const options = hearing()
    const turn = await sessionOver(transport, { maxRetries: 1 }).turn([user('Hi')], constants(), options)
    expect(options.retried).toEqual([
      { attempt: 1, delayMs: 0, reason: 'Overloaded', status: null, failure: 'unknown', withdrawn: true },
    ])
    expect([textOf(turn.entry.parts), options.deltas.map((delta) => delta.text)]).toEqual(['Hi.', ['Hel', 'Hi.']])
    expect(transport.texts[1]).toBe(transport.texts[0])
  })

  test('an attempt without deltas withdraws nothing', async () => {
    const transport = new EchoTransport('bytes', [overloaded()], [[chunk({ text: 'Hi.' })]])
    const options = hearing()
    await sessionOver(transport, { maxRetries: 1 }).turn([user('Hi')], constants(), options)
    expect(options.retried).toMatchObject([{ withdrawn: false }])
  })

  test('a whole reply in place of a stream is emitted as deltas', async () => {
    const reply = { text: 'Hi.', call: { id: 'c1', args: '{"a":1}' } }
    const empty = [[{ event: WHOLE_REPLY, data: { text: '' } }]]
    const transport = new EchoTransport('bytes', [[{ event: WHOLE_REPLY, data: reply }]], empty)
    const options = hearing()
    const turn = await sessionOver(transport).turn([user('Hi')], constants(), options)
    expect([textOf(turn.entry.parts), toolCallsOf(turn.entry.parts).length, turn.raw]).toEqual(['Hi.', 1, reply])
    expect(options.deltas).toEqual([
      { kind: 'text_delta', text: 'Hi.' },
      { kind: 'tool_input_delta', text: '{"a":1}', callId: 'c1', toolName: 'tool' },
    ])
    const silent = hearing()
    await sessionOver(transport).turn([user('Hi')], constants(), silent)
    expect(silent.deltas).toEqual([])
  })

  test('an abort after the last event is an abort', async () => {
    const abort = new AbortController()
    const transport = new EchoTransport('bytes', [[chunk({ text: 'Hi.' })]])
    const onDelta = (): void => abort.abort(new Error('Enough.'))
    const options = listening({ signal: abort.signal, onDelta })
    await expect(sessionOver(transport).turn([user('Hi')], constants(), options)).rejects.toThrow('Enough.')
  })
})

test('an error in a successful response is retried if that can help', async () => {
  const error = { error: { type: 'overloaded_error', message: 'Overloaded' } }
  const transport = new EchoTransport('bytes', error, { text: 'Hi.' })
  const options = listening()
  const turn = await sessionOver(transport, { maxRetries: 1 }).turn([user('Hi')], constants(), options)
  expect([textOf(turn.entry.parts), options.retried.length]).toEqual(['Hi.', 1])
})

test('a failed turn can be requested again in the same session', async () => {
  const transport = new EchoTransport('bytes', { error: { type: 'invalid_request_error' } }, { text: 'Hi.' })
  const session = sessionOver(transport)
  const transcript = [user('Hi')]
  await expect(session.turn(transcript, constants(), listening())).rejects.toThrow('invalid_request_error')
  expect(textOf((await session.turn(transcript, constants(), listening())).entry.parts)).toBe('Hi.')
  expect(transport.texts[1]).toBe(transport.texts[0])
})

test('a reasoning effort that the model does not support is rejected before any request', async () => {
  const transport = new EchoTransport('bytes')
  const session = sessionOver(transport, { capabilities: { reasoningEfforts: ['low', 'high'] } })
  const asking = session.turn([user('Hi')], constants({ settings: { reasoningEffort: 'max' } }), listening())
  await expect(asking).rejects.toMatchObject({
    code: 'invalid_options',
    message: 'Expected `reasoningEffort` of `m` to be one of `low`, `high`, got `max`.',
  })
  expect(transport.sent).toEqual([])
})

test('PR-03 two sessions advance independently', async () => {
  const transport = new EchoTransport('bytes', { text: 'a' }, { text: 'b' }, { text: 'c' })
  const [first, second] = [sessionOver(transport), sessionOver(transport)]
  const transcript = [user('one')]
  await first.turn(transcript, constants(), listening())
  await second.turn([user('other')], constants(), listening())
  await first.turn([...transcript, user('two')], constants(), listening())
  expect(transport.sent.map((body) => (body as { messages: unknown[] }).messages.slice(1))).toEqual([
    [{ user: 'one' }],
    [{ user: 'other' }],
    [{ user: 'one' }, { user: 'two' }],
  ])
})
