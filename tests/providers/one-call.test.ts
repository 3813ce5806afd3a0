import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { toolCallsOf } from 'thinharness'
import type { Model, ModelDelta } from 'thinharness'
import { anthropic, fromAiSdk, openai, openaiCompatible } from 'thinharness/providers'
import { withoutRepeatedCalls } from '#providers/wire/repeated-calls.js'
import { FakeLanguageModel } from './ai-sdk/support.js'

type Fields = Readonly<Record<string, unknown>>

interface Call {
  readonly id: string
  readonly name: string
  readonly text: string
}

/** A piece of a call under some number. Empty members are absent. */
interface Piece extends Call {
  readonly number: number
}

/** One API: a model that gets a reply, the events of a stream of pieces, and the whole reply of calls. */
interface Wire {
  readonly model: (reply: Fields | readonly Fields[]) => Model
  readonly stream: (pieces: readonly Piece[]) => readonly Fields[]
  readonly whole: (calls: readonly Call[]) => Fields
}

const answering = (reply: Fields | readonly Fields[]) => async (): Promise<Response> => {
  if (!Array.isArray(reply)) return Response.json(reply)
  const text = (reply as readonly Fields[]).map((event) => `data: ${JSON.stringify(event)}\n\n`).join('')
  return new Response(text, { headers: { 'content-type': 'text/event-stream' } })
}

const chatCall = ({ id, name, text }: Call): Fields => ({
  ...(id !== '' && { id }),
  function: { ...(name !== '' && { name }), ...(text !== '' && { arguments: text }) },
})
const chatChoice = (more: Fields, finish: string | null): Fields => ({
  choices: [{ index: 0, ...more, finish_reason: finish }],
})

const WIRES: Readonly<Record<string, Wire>> = {
  'chat completions': {
    model: (reply) => openaiCompatible('m', { fetch: answering(reply), baseUrl: 'http://any.invalid/v1' }),
    stream: (pieces) => [
      ...pieces.map(({ number: index, ...call }) =>
        chatChoice({ delta: { tool_calls: [{ index, ...chatCall(call) }] } }, null),
      ),
      chatChoice({ delta: {} }, 'tool_calls'),
    ],
    whole: (calls) => chatChoice({ message: { tool_calls: calls.map(chatCall) } }, 'tool_calls'),
  },
  Responses: {
    model: (reply) => openai('gpt-5.5', { fetch: answering(reply), apiKey: 'any' }),
    stream(pieces) {
      const ended = { type: 'response.completed', response: { id: 'r', status: 'completed', output: [] } }
      return [
        ...pieces.flatMap(({ number: output_index, id, name, text }) => [
          ...(name === ''
            ? []
            : [
                {
                  type: 'response.output_item.added',
                  output_index,
                  item: { type: 'function_call', ...(id !== '' && { id: `fc_${id}`, call_id: id }), name },
                },
              ]),
          ...(text === ''
            ? []
            : [
                {
                  type: 'response.function_call_arguments.delta',
                  output_index,
                  ...(id !== '' && { item_id: `fc_${id}` }),
                  delta: text,
                },
              ]),
        ]),
        ended,
      ]
    },
    whole: (calls) => ({
      id: 'r',
      status: 'completed',
      output: calls.map(({ id, name, text }) => ({ type: 'function_call', call_id: id, name, arguments: text })),
    }),
  },
  Messages: {
    model: (reply) => anthropic('claude-sonnet-5', { fetch: answering(reply), apiKey: 'any' }),
    stream: (pieces) => [
      { type: 'message_start', message: { id: 'm', type: 'message', role: 'assistant', content: [] } },
      ...pieces.flatMap(({ number: index, id, name, text }): readonly Fields[] => [
        ...(name === ''
          ? []
          : [{ type: 'content_block_start', index, content_block: { type: 'tool_use', id, name, input: {} } }]),
        ...(text === ''
          ? []
          : [{ type: 'content_block_delta', index, delta: { type: 'input_json_delta', partial_json: text } }]),
      ]),
      { type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 5 } },
      { type: 'message_stop' },
    ],
    whole: (calls) => ({
      type: 'message',
      content: calls.map(({ id, name, text }) => ({
        ...{ type: 'tool_use', id, name, input: text === '' ? {} : (JSON.parse(text) as unknown) },
      })),
      stop_reason: 'tool_use',
    }),
  },
  'AI SDK': {
    model: (reply) => fromAiSdk(new FakeLanguageModel([reply])),
    stream: (pieces) => [
      ...pieces.flatMap(({ id, name, text }) => [
        { type: 'tool-input-start', id, toolName: name },
        { type: 'tool-input-delta', id, delta: text },
        { type: 'tool-input-end', id },
        { type: 'tool-call', toolCallId: id, toolName: name, input: text },
      ]),
      { type: 'finish', finishReason: { unified: 'tool-calls', raw: 'tool_calls' }, usage: {} },
    ],
    whole: (calls) => ({
      content: calls.map(({ id, name, text }) => ({ type: 'tool-call', toolCallId: id, toolName: name, input: text })),
      finishReason: { unified: 'tool-calls', raw: 'tool_calls' },
      usage: {},
    }),
  },
}

const CONSTANTS = { instructions: '', tools: [], structuredOutput: null, settings: {} }

/** The calls of a reply, and their emitted arguments. */
async function callsOf(
  { model }: Wire,
  reply: Fields | readonly Fields[],
): Promise<{ readonly calls: readonly Call[]; readonly told: ReadonlyMap<string, string> }> {
  const told = new Map<string, string>()
  const onDelta = ({ text, callId = '' }: ModelDelta): void => void told.set(callId, (told.get(callId) ?? '') + text)
  const prompt = { role: 'user', id: 'e1', at: '', content: [{ type: 'text', text: 'Go.' }] } as const
  const options = { generation: 0, signal: new AbortController().signal, ...(Array.isArray(reply) && { onDelta }) }
  const { entry } = await model(reply).openSession().turn([prompt], CONSTANTS, options)
  const calls = toolCallsOf(entry.parts).map(({ callId, name, arguments: text }) => ({ id: callId, name, text }))
  return { calls, told }
}

const pay = (id: string, text = '{"cents":5}'): Call => ({ id, name: 'pay', text })
const WAYS = Object.entries(WIRES)

describe.each(WAYS)('in %s', (_api, wire) => {
  test('a call that comes again under another number is one call', async () => {
    const stream = wire.stream([
      { number: 0, ...pay('X') },
      { number: 1, ...pay('X') },
    ])
    for (const reply of [stream, wire.whole([pay('X'), pay('X')])])
      expect((await callsOf(wire, reply)).calls).toEqual([pay('X')])
  })

  test('calls of one id with other arguments, or of another name, stay two', async () => {
    for (const other of [pay('X', '{"cents":7}'), { ...pay('X'), name: 'refund' }]) {
      const stream = wire.stream([
        { number: 0, ...pay('X') },
        { number: 1, ...other },
      ])
      for (const reply of [stream, wire.whole([pay('X'), other])]) {
        const { calls } = await callsOf(wire, reply)
        expect(calls.map(({ name, text }) => [name, text])).toEqual([
          ['pay', '{"cents":5}'],
          [other.name, other.text],
        ])
        expect(new Set(calls.map(({ id }) => id)).size).toBe(2)
      }
    }
  })
})

describe.each(WAYS.filter(([api]) => api !== 'AI SDK'))('in a stream of %s', (_api, wire) => {
  test('a name alone, and then the whole call under another number, is one call', async () => {
    const stream = wire.stream([
      { number: 0, ...pay('X', '') },
      { number: 1, ...pay('X') },
    ])
    expect((await callsOf(wire, stream)).calls).toEqual([pay('X')])
  })

  test('the rest of a call under another number, without id and name, is of the open call', async () => {
    const stream = wire.stream([
      { number: 0, ...pay('X', '{"cents"') },
      { number: 1, id: '', name: '', text: ':5}' },
    ])
    const { calls, told } = await callsOf(wire, stream)
    expect([calls, told.get('X')]).toEqual([[pay('X')], '{"cents":5}'])
  })
})

test('a name without id and arguments, and then the whole call under another number, is one call', async () => {
  const wire = WIRES['chat completions']!
  const stream = wire.stream([
    { number: 0, ...pay('', '') },
    { number: 1, ...pay('X') },
  ])
  expect((await callsOf(wire, stream)).calls).toEqual([pay('X')])
})

describe('a reply with far more calls than a run takes, which refuses it', () => {
  const many = Array.from({ length: 5_000 }, (_, number) => ({ number, ...pay(`c${number}`) }))

  test.each(['chat completions', 'Messages'])('is read up to a number that is refused: a stream of %s', async (api) => {
    const wire = WIRES[api]!
    const { calls } = await callsOf(wire, wire.stream(many))
    expect(calls.length).toBeGreaterThan(1_000)
    expect(calls.length).toBeLessThanOrEqual(2_000)
  })

  test('is not taken for the pieces of one call, each of which has an id and a new number', async () => {
    const wire = WIRES['chat completions']!
    const input = JSON.stringify({ a: 'x'.repeat(4_000) })
    const pieces = Array.from(input, (character, number) => ({ ...pay('c1', character), number }))
    expect((await callsOf(wire, wire.stream(pieces))).calls).toEqual([pay('c1', input)])
  })

  test('is not compared call by call', () => {
    let looked = 0
    const counted = many.map(({ id, text }) => ({
      id,
      text,
      get name() {
        looked += 1
        return 'pay'
      },
    }))
    expect(withoutRepeatedCalls(counted, (each) => each)).toHaveLength(5_000)
    expect(looked).toBeLessThan(5_000_000)
  })
})

const text = fc
  .dictionary(fc.constantFrom('a', 'b', 'c'), fc.oneof(fc.integer(), fc.string(), fc.object({ maxDepth: 1 })))
  .map((value) => JSON.stringify(value))
const call = fc.record({ id: fc.constantFrom('X', 'Y', 'Z'), name: fc.constantFrom('pay', 'look'), text })
const calls = fc.uniqueArray(call, { selector: ({ id }) => id, minLength: 1, maxLength: 3 })
const choices = fc.array(fc.nat({ max: 7 }), { minLength: 1, maxLength: 20 })

test.each(WAYS)(
  'law: in %s, a call that is repeated whole, at any place and under any number, is one call',
  async (_api, wire) => {
    await fc.assert(
      fc.asyncProperty(calls, choices, async (given, repeated) => {
        const all = [...given]
        for (const choice of repeated.slice(0, 4)) all.push(given[choice % given.length]!)
        const stream = wire.stream(all.map((each, number) => ({ number, ...each })))
        const { calls: read, told } = await callsOf(wire, stream)
        expect(read.map(({ id, name, text: input }) => [id, name, input])).toEqual(
          given.map(({ id, name, text: input }) => [id, name, input]),
        )
        for (const { id, text: input } of read) expect([input, undefined]).toContain(told.get(id))
        expect((await callsOf(wire, wire.whole(all))).calls).toEqual(read)
      }),
      { numRuns: 60 },
    )
  },
)

test('law: in chat completions, a call whose pieces have an id and new numbers is one call', async () => {
  const wire = WIRES['chat completions']!
  await fc.assert(
    fc.asyncProperty(calls, choices, fc.boolean(), async (given, sizes, isNamed) => {
      const left = given.map((each) => ({ ...each, at: 0 }))
      const pieces: Piece[] = []
      for (let turn = 0; left.some(({ at, text: input }) => at < input.length); turn++) {
        const size = sizes[turn % sizes.length]! + 1
        const open = left.filter(({ at, text: input }) => at < input.length)
        const next = open[size % open.length]!
        const name = isNamed || next.at === 0 ? next.name : ''
        pieces.push({ number: pieces.length, id: next.id, name, text: next.text.slice(next.at, next.at + size) })
        next.at += size
      }
      const { calls: read, told } = await callsOf(wire, wire.stream(pieces))
      const byId = (one: Call, other: Call): number => one.id.localeCompare(other.id)
      expect(read.toSorted(byId)).toEqual(given.toSorted(byId))
      for (const { id, text: input } of read) expect(told.get(id)).toBe(input)
    }),
    { numRuns: 60 },
  )
})
