import { describe, expect, test } from 'vitest'
import { Harness, HarnessError, textOf, toolCallsOf } from 'thinharness'
import type { ModelDelta, ModelSession, ModelTurn, RequestConstants, TurnOptions } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'

type Transcript = Parameters<ModelSession['turn']>[0]
type Entry = Transcript[number]

const CONSTANTS: RequestConstants = {
  instructions: 'Be brief.',
  tools: [{ name: 'read', description: 'Reads a file.', parameters: { type: 'object' } }],
  structuredOutput: null,
  settings: {},
}
const AT = '2026-01-01T00:00:00.000Z'

function user(text: string, notice?: true): Entry {
  return { role: 'user', id: 'u', at: AT, content: [{ type: 'text', text }], ...(notice && { notice }) }
}

function result(callId: string, content: string): Entry {
  const envelope = JSON.stringify({ ok: true, content, metadata: {} })
  return { role: 'tool', id: 't', at: AT, callId, name: 'read', content: envelope, isError: false }
}

function ask(session: ModelSession, transcript: Transcript, options: Partial<TurnOptions> = {}): Promise<ModelTurn> {
  return session.turn(transcript, CONSTANTS, { generation: 0, signal: new AbortController().signal, ...options })
}

/** Asks anew after each reply, every call answered with its own arguments. */
async function converse(session: ModelSession, prompt: string, turns: number): Promise<ModelTurn[]> {
  const transcript: Entry[] = [user(prompt)]
  const replies: ModelTurn[] = []
  for (let count = 0; count < turns; count++) {
    const turn = await ask(session, transcript)
    replies.push(turn)
    transcript.push({ ...turn.entry, id: 'a', at: AT })
    transcript.push(...toolCallsOf(turn.entry.parts).map((call) => result(call.callId, call.arguments)))
  }
  return replies
}

const USAGE = { inputTokens: 10, outputTokens: 5, cacheReadTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 }

describe('a turn', () => {
  test('returns a text', async () => {
    using model = new ScriptedModel().says('Done.')
    expect(await ask(model.openSession(), [user('Hi.')])).toEqual({
      entry: {
        role: 'assistant',
        parts: [{ type: 'text', text: 'Done.' }],
        provider: 'scripted',
        model: 'scripted-1',
        finishReason: 'stop',
        usage: USAGE,
      },
      nativeFinishReason: 'stop',
      responseId: 'response_1',
      responseModel: 'scripted-1',
      raw: { parts: [{ type: 'text', text: 'Done.' }], finishReason: 'stop', nativeFinishReason: undefined, usage: {} },
    })
  })

  test('calls tools besides text and reasoning, with ids that count through the conversation', async () => {
    using model = new ScriptedModel()
      .calls('read', { path: 'a' }, { text: 'Let me look.', reasoning: 'A file?' })
      .callsAll([{ name: 'read', arguments: '{"path":' }, { name: 'read', callId: 'mine' }, { name: 'read' }])
    const [first, second] = await converse(model.openSession(), 'Look.', 2)
    expect(first?.entry.parts).toEqual([
      { type: 'reasoning', text: 'A file?' },
      { type: 'text', text: 'Let me look.' },
      { type: 'tool_call', callId: 'call_1', name: 'read', arguments: '{"path":"a"}' },
    ])
    expect(first?.entry.finishReason).toBe('tool_calls')
    expect(toolCallsOf(second?.entry.parts ?? [])).toMatchObject([
      { callId: 'call_2', name: 'read', arguments: '{"path":' },
      { callId: 'mine', name: 'read', arguments: '{}' },
      { callId: 'call_3', name: 'read', arguments: '{}' },
    ])
  })

  test('never gives an id that a call of the conversation or of the reply has', async () => {
    using model = new ScriptedModel().calls('read', {}, { callId: 'call_2' }).callsAll([{ name: 'read' }])
    const turns = await converse(model.openSession(), 'Look.', 2)
    expect(turns.flatMap((turn) => toolCallsOf(turn.entry.parts).map((call) => call.callId))).toEqual([
      'call_2',
      'call_3',
    ])
  })

  test.each([
    ['cut off', new ScriptedModel().says('Onc', { finishReason: 'length' }), 'length', 'Onc'],
    ['paused', new ScriptedModel().replies({ finishReason: 'pause' }), 'pause', ''],
    ['refused', new ScriptedModel().refuses('No.'), 'refusal', ''],
  ])('may be %s', async (_name, model, finishReason, text) => {
    const { entry } = await ask(model.openSession(), [user('Go.')])
    expect([entry.finishReason, textOf(entry.parts), toolCallsOf(entry.parts)]).toEqual([finishReason, text, []])
    model.assertDone()
  })

  test('holds the words of a refusal, and blocks that nobody knows, as opaque parts in their place', async () => {
    using model = new ScriptedModel().replies({
      parts: [
        { type: 'block', data: { type: 'search', query: 'q' } },
        { type: 'refusal', text: 'No.' },
      ],
      nativeFinishReason: 'declined',
    })
    const turn = await ask(model.openSession(), [user('Go.')])
    expect(turn.nativeFinishReason).toBe('declined')
    expect(turn.entry.parts).toEqual([
      { type: 'opaque', native: { provider: 'scripted', data: { type: 'search', query: 'q' } } },
      { type: 'opaque', native: { provider: 'scripted', data: { type: 'refusal', refusal: 'No.' } } },
    ])
  })

  test('costs the stated price, the rest as usual, or an unknown price', async () => {
    using model = new ScriptedModel().says('a', { usage: { inputTokens: 70 } }).says('b', { usage: null })
    const [first, second] = await converse(model.openSession(), 'Go.', 2)
    expect(first?.entry.usage).toEqual({ ...USAGE, inputTokens: 70 })
    expect(Object.values(second?.entry.usage ?? {})).toEqual([null, null, null, null, null])
  })

  test('is emitted in pieces to a listener, which add up to the parts', async () => {
    using model = new ScriptedModel().calls('read', { path: 'a b' }, { text: 'One two.', reasoning: 'Hm, so.' })
    const deltas: ModelDelta[] = []
    await ask(model.openSession(), [user('Go.')], { onDelta: (delta) => void deltas.push(delta) })
    expect(deltas).toEqual([
      { kind: 'reasoning_delta', text: 'Hm,' },
      { kind: 'reasoning_delta', text: ' so.' },
      { kind: 'text_delta', text: 'One' },
      { kind: 'text_delta', text: ' two.' },
      { kind: 'tool_input_delta', text: '{"path":"a', callId: 'call_1', toolName: 'read' },
      { kind: 'tool_input_delta', text: ' b"}', callId: 'call_1', toolName: 'read' },
    ])
  })

  test('has the name and the capabilities that the model was given', async () => {
    const capabilities = { supportsJsonSchemaOutput: true }
    using model = new ScriptedModel({ provider: 'acme', id: 'large', capabilities }).says('Hi.')
    expect(model.capabilities).toBe(capabilities)
    const turn = await ask(model.openSession(), [user('Go.')])
    expect(turn).toMatchObject({ entry: { provider: 'acme', model: 'large' }, responseModel: 'large' })
  })
})

describe('recorded requests', () => {
  test('are described by their new entries', async () => {
    const model = new ScriptedModel().always('Yes.')
    const image = { type: 'image', url: 'https://example.com/a.png' } as const
    const reply: Entry = { ...(await ask(model.openSession(), [user('Hi.')])).entry, id: 'a', at: AT }
    const session = model.openSession()
    const mixed: Entry = { role: 'user', id: 'u', at: AT, content: [{ type: 'text', text: 'See:' }, image] }
    const rich: Entry = {
      role: 'tool',
      id: 't',
      at: AT,
      callId: 'call_9',
      name: 'read',
      content: [{ type: 'text', text: 'plain' }, image],
      isError: true,
    }
    for (const news of [
      [mixed],
      [reply, user('And?')],
      [reply, user('Again.', true)],
      [reply],
      [reply, result('call_1', 'A'), rich, user('Notice.', true)],
    ]) {
      await ask(session, news)
    }
    expect(model.heard).toEqual([
      { kind: 'start', prompt: 'Hi.' },
      { kind: 'start', prompt: [{ type: 'text', text: 'See:' }, image] },
      { kind: 'message', prompt: 'And?' },
      { kind: 'correction', prompt: 'Again.' },
      { kind: 'continuation' },
      {
        kind: 'tool_outputs',
        outputs: [
          { callId: 'call_1', ok: true, content: 'A' },
          { callId: 'call_9', ok: false, content: 'plain', parts: [image] },
        ],
        prompt: 'Notice.',
      },
    ])
  })

  test('hold everything that was sent', async () => {
    const model = new ScriptedModel().always('Yes.')
    const transcript = [user('Hi.'), { ...(await converse(model.openSession(), 'x', 1))[0]!.entry, id: 'a', at: AT }]
    const asked = [...transcript, user('And?')]
    await ask(model.openSession(), asked, { toolChoice: 'none', onDelta: () => undefined })
    expect(model.requests[1]).toEqual({
      heard: { kind: 'message', prompt: 'And?' },
      entries: asked.slice(2),
      transcriptLength: 3,
      constants: CONSTANTS,
      toolChoice: 'none',
      streamed: true,
    })
  })
})

describe('a function as a line', () => {
  test('computes its answer from the conversation so far', async () => {
    using model = new ScriptedModel()
      .replies(({ heard }) => ({ calls: [{ name: 'read', arguments: { heard: heard.kind } }] }))
      .replies(async ({ turn, messages, tools, instructions, transcript }) => {
        await Promise.resolve()
        return JSON.stringify({ turn, messages, tools, instructions, entries: transcript.length })
      })
    const [, second] = await converse(model.openSession(), 'Go.', 2)
    expect(JSON.parse(textOf(second?.entry.parts ?? []))).toEqual({
      turn: 1,
      messages: [
        { role: 'user', content: 'Go.' },
        { role: 'assistant', text: '', calls: [{ callId: 'call_1', name: 'read', arguments: '{"heard":"start"}' }] },
        {
          role: 'tool',
          callId: 'call_1',
          content: '{"heard":"start"}',
          isError: false,
        },
      ],
      tools: ['read'],
      instructions: 'Be brief.',
      entries: 3,
    })
  })

  test('can emit the events of an adapter', async () => {
    const retry = { attempt: 1, delayMs: 5, reason: 'busy', status: 529, withdrawn: false }
    using model = new ScriptedModel().replies(({ options }) => {
      options.onRetry?.(retry)
      return 'Done.'
    })
    const told: unknown[] = []
    await ask(model.openSession(), [user('Go.')], { onRetry: (each) => void told.push(each) })
    expect(told).toEqual([retry])
  })

  test.each<[string, unknown, RegExp]>([
    ['nothing', undefined, /Expected a reply to be an object, got nothing/],
    ['an unknown field', { txt: 'Hi.' }, /Unknown field of a reply: `txt`. Did you mean `text`\?/],
    ['a text that is not a string', { text: 7 }, /Expected `text` of a reply to be a string, got `7`/],
    ['calls that are not a list', { calls: {} }, /Expected `calls` of a reply to be a list/],
    ['a call without a name', { calls: [{}] }, /Expected `calls\[0\].name` of a reply to be a string/],
  ])('that returns %s fails the request clearly', async (_name, answer, message) => {
    const model = new ScriptedModel().replies(() => answer as string)
    await expect(ask(model.openSession(), [user('Go.')])).rejects.toThrow(message)
  })
})

describe('strictness', () => {
  test('a request without a line fails, and so does `assertDone`', async () => {
    const model = new ScriptedModel().says('Hi.')
    await ask(model.openSession(), [user('Go.')])
    const failure: unknown = await ask(model.openSession(), [user('Go.')]).catch((error: unknown) => error)
    expect(failure).toBeInstanceOf(HarnessError)
    expect(failure).toMatchObject({
      code: 'provider_error',
      retryable: false,
      message:
        'The script of `scripted:scripted-1` was not followed. Request 2 (`start`) has no scripted reply; the script has 1.',
    })
    expect(() => model.assertDone()).toThrow(/has no scripted reply/)
  })

  test('a line without a request fails `assertDone`, also at the end of a `using` block', async () => {
    const model = new ScriptedModel().says('Hi.').calls('read').refuses('No.')
    await ask(model.openSession(), [user('Go.')])
    const message =
      'The script of `scripted:scripted-1` was not followed. Nobody asked for: calls `read`; refuses "No.".'
    expect(() => model.assertDone()).toThrow(message)
    expect(() => model[Symbol.dispose]()).toThrow(message)
  })

  test('`always` answers all later requests, none included, and is the last line', async () => {
    using model = new ScriptedModel().says('First.').always(({ turn }) => `Again ${turn}.`)
    const turns = await converse(model.openSession(), 'Go.', 3)
    expect(turns.map((turn) => textOf(turn.entry.parts))).toEqual(['First.', 'Again 1.', 'Again 2.'])
    expect(() => model.says('More.')).toThrow('Expected no line after `always`, got `says "More."`.')
  })

  test('an invalid line is rejected when it is written', () => {
    expect(() => new ScriptedModel().calls('')).toThrow(/`calls\[0\].name` of a reply/)
    expect(() => new ScriptedModel().waits(Promise.resolve()).assertDone()).toThrow(/no line after it/)
  })
})

describe('many sessions', () => {
  test('follow one script together, in the order in which they ask', async () => {
    using model = new ScriptedModel().says('1').says('2').says('3')
    const sessions = [model.openSession(), model.openSession()]
    const turns = await Promise.all([0, 1, 0].map((which) => ask(sessions[which]!, [user('Go.')])))
    expect(turns.map((turn) => textOf(turn.entry.parts))).toEqual(['1', '2', '3'])
  })

  test('`each` gives every session a script of its own, chosen by its first request', async () => {
    using model = ScriptedModel.each(({ heard }) => {
      const name = heard.kind === 'start' ? heard.prompt : ''
      return new ScriptedModel().calls('read', { for: String(name) }).says(`Done for ${String(name)}.`)
    })
    const runs = await Promise.all(['a', 'b', 'c'].map((name) => converse(model.openSession(), name, 2)))
    expect(
      runs.map((run) => run.map((turn) => textOf(turn.entry.parts) || toolCallsOf(turn.entry.parts)[0]?.arguments)),
    ).toEqual([
      ['{"for":"a"}', 'Done for a.'],
      ['{"for":"b"}', 'Done for b.'],
      ['{"for":"c"}', 'Done for c.'],
    ])
    expect(model.heard).toHaveLength(6)
  })

  test('`each` is strict with every script', async () => {
    const model = ScriptedModel.each(() => new ScriptedModel().says('1').says('2'))
    await ask(model.openSession(), [user('Go.')])
    expect(() => model.assertDone()).toThrow('Nobody asked for: says "2".')
  })
})

describe('failures, waits and aborts', () => {
  test('`fails` fails the request, with an error of the caller or a provider error', async () => {
    const own = new RangeError('mine')
    using model = new ScriptedModel().fails(own).fails('busy')
    const session = model.openSession()
    await expect(ask(session, [user('Go.')])).rejects.toBe(own)
    await expect(ask(session, [user('Go.')])).rejects.toMatchObject({ code: 'provider_error', message: 'busy' })
  })

  test('`waits` holds the next line until the promise has settled', async () => {
    const gate = resolvers()
    using model = new ScriptedModel().waits(gate.promise).says('Late.').says('Soon.')
    const session = model.openSession()
    const order: string[] = []
    const first = ask(session, [user('Go.')]).then((turn) => order.push(textOf(turn.entry.parts)))
    await ask(session, [user('Go.')]).then((turn) => order.push(textOf(turn.entry.parts)))
    gate.resolve(undefined)
    await first
    expect(order).toEqual(['Soon.', 'Late.'])
  })

  test('an abort ends a request with the reason: before it, while it waits, and between two deltas', async () => {
    const reason = new Error('stop')
    const model = new ScriptedModel()
      .waits(new Promise(() => undefined))
      .says('Never.')
      .says('One two three.')
    const session = model.openSession()
    await expect(ask(session, [user('Go.')], { signal: AbortSignal.abort(reason) })).rejects.toBe(reason)

    const waiting = new AbortController()
    const pending = ask(session, [user('Go.')], { signal: waiting.signal })
    waiting.abort(reason)
    await expect(pending).rejects.toBe(reason)

    const listening = new AbortController()
    const deltas: string[] = []
    const onDelta = (delta: ModelDelta): void => {
      deltas.push(delta.text)
      listening.abort(reason)
    }
    await expect(ask(session, [user('Go.')], { signal: listening.signal, onDelta })).rejects.toBe(reason)
    expect(deltas).toEqual(['One'])
    model.assertDone()
  })
})

function resolvers(): { promise: Promise<undefined>; resolve: (value: undefined) => void } {
  let resolve: (value: undefined) => void = () => undefined
  const promise = new Promise<undefined>((done) => {
    resolve = done
  })
  return { promise, resolve }
}

test.each(['tool', 'prompted'] as const)(
  '`answers` is a structured answer, in the form that the request asks for: %s',
  async (outputMode) => {
    using model = new ScriptedModel({ capabilities: { supportsTools: true } }).answers({ late: true })
    const outputType = { type: 'object', properties: { late: { type: 'boolean' } }, required: ['late'] } as const
    const harness = new Harness({ model, builtinTools: [], outputType, outputMode })
    expect((await harness.run('Is it late?')).output).toEqual({ late: true })
  },
)

test('a script without a structured answer says which line is missing', async () => {
  const outputType = { type: 'object', properties: { late: { type: 'boolean' } }, required: ['late'] } as const
  const run = (model: ScriptedModel) => new Harness({ model, builtinTools: [], outputType }).run('Is it late?')
  await expect(run(new ScriptedModel())).rejects.toThrow(
    'Request 1 (`start`) has no scripted reply; the script has 0. Expected an answer of the `outputType`: add `.answers({ … })`.',
  )
  await expect(run(new ScriptedModel().says('Yes.'))).rejects.toThrow(
    'The last reply is not an answer of the `outputType`. Expected an answer of the `outputType`: add `.answers({ … })`.',
  )
})
