import OpenAI from 'openai'
import fc from 'fast-check'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { Harness, textOf } from 'thinharness'
import type { Model, ModelDelta, ModelTurn, RequestConstants, TurnOptions } from '#core/model-session.js'
import { openai } from '#providers/openai/index.js'
import type { OpenAiOptions } from '#providers/openai/index.js'
import type { TranscriptEntry } from '#contracts/entry.js'
import type { JsonObject } from '#util/json.js'
import { expectValidRequest } from '../../support/request-schemas.js'
import { NO_CONSTANTS, call, eventsOf, message, reasoning, response, told } from './replies.js'
import type { Fields } from './replies.js'
import { rounds } from '../../support/length.js'

const STAMP = { id: 'e1', at: '2026-01-01T00:00:00.000Z' }
const LOOKUP = { name: 'lookup', description: 'Looks it up.', parameters: { type: 'object', properties: {} } }
const CONSTANTS: RequestConstants = { ...NO_CONSTANTS, instructions: 'Be brief.', tools: [LOOKUP] }

afterEach(() => vi.unstubAllEnvs())

interface Heard {
  readonly url: string
  readonly headers: Record<string, string>
  readonly text: string
}

/** A server that sends these replies one after the other, streamed if requested; a number is a status. */
class Server {
  readonly heard: Heard[] = []
  readonly #replies: (Fields | number)[]

  constructor(...replies: (Fields | number)[]) {
    this.#replies = replies
  }

  get bodies(): Record<string, unknown>[] {
    return this.heard.map(({ text }) => JSON.parse(text) as Record<string, unknown>)
  }

  readonly fetch = async (url: string | URL | Request, init?: RequestInit): Promise<Response> => {
    const request = new Request(url, init)
    const text = await request.text()
    this.heard.push({ url: request.url, headers: Object.fromEntries(request.headers), text })
    const body = JSON.parse(text) as { stream?: boolean }
    for (const api of ['openai-responses', 'openai-responses-sdk'] as const) expectValidRequest(api, body)
    const reply = this.#replies.shift()
    if (reply === undefined) throw new Error('The script has run out.')
    if (typeof reply === 'number') return Response.json({ error: { message: 'No.' } }, { status: reply })
    if (body.stream !== true) return Response.json(reply)
    const events = eventsOf(reply).map((event) => `event: ${String(event['type'])}\ndata: ${JSON.stringify(event)}\n\n`)
    return new Response(events.join(''), { headers: { 'content-type': 'text/event-stream' } })
  }
}

function user(text: string): TranscriptEntry {
  return { role: 'user', ...STAMP, content: [{ type: 'text', text }] }
}

function result(callId: string, content = '{"ok":true}'): TranscriptEntry {
  return { role: 'tool', ...STAMP, callId, name: 'lookup', content, isError: false }
}

/** A conversation with `model`: each `say` adds entries, asks, and adds the answer. */
class Conversation {
  transcript: TranscriptEntry[] = []
  readonly #session: ReturnType<Model['openSession']>

  constructor(model: Model, transcript: readonly TranscriptEntry[] = []) {
    this.#session = model.openSession()
    this.transcript = [...transcript]
  }

  async say(
    entries: readonly TranscriptEntry[],
    options: Partial<TurnOptions> = {},
    constants = CONSTANTS,
  ): Promise<ModelTurn> {
    this.transcript = [...this.transcript, ...entries]
    const signal = new AbortController().signal
    const turn = await this.#session.turn(this.transcript, constants, { generation: 0, signal, ...options })
    this.transcript = [...this.transcript, { ...turn.entry, ...STAMP }]
    return turn
  }
}

function modelOf(server: Server, options: OpenAiOptions = {}, id = 'gpt-5.5'): Model {
  return openai(id, { apiKey: 'test-key', fetch: server.fetch, maxRetries: 0, ...options })
}

test('a request equals that of the official client, with key, organization and project', async () => {
  vi.stubEnv('OPENAI_API_KEY', 'key-of-the-environment')
  vi.stubEnv('OPENAI_BASE_URL', 'https://gateway.test/openai/v1/')
  vi.stubEnv('OPENAI_ORG_ID', ' org-1\n')
  vi.stubEnv('OPENAI_PROJECT_ID', 'proj_1')
  const server = new Server(response([message('Hi.')]))
  await new Conversation(openai('gpt-5.5', { fetch: server.fetch })).say([user('Hi')])

  expect(server.heard[0]).toMatchObject({
    url: 'https://gateway.test/openai/v1/responses',
    headers: {
      authorization: 'Bearer key-of-the-environment',
      'openai-organization': 'org-1',
      'openai-project': 'proj_1',
      'content-type': 'application/json',
    },
  })
})

test('without a key in options or environment the request fails with the names of both', async () => {
  vi.stubEnv('OPENAI_API_KEY', '')
  const asked = new Conversation(openai('gpt-5.5', { fetch: new Server().fetch })).say([user('Hi')])

  await expect(asked).rejects.toMatchObject({
    code: 'missing_key',
    message: expect.stringMatching(/`OPENAI_API_KEY`.*`apiKey`/) as string,
  })
})

test.each([{}, { incomplete_details: { reason: 'max_patience' } }])(
  'an incomplete reply is not an answer, whatever the reason: %j',
  async (details) => {
    const said = { type: 'message', id: 'm', role: 'assistant', content: [{ type: 'output_text', text: 'Half a' }] }
    const reply = { id: 'r', status: 'incomplete', output: [said], ...details }
    const model = openai('gpt-5.5', { apiKey: 'k', fetch: () => Promise.resolve(Response.json(reply)) })
    await using harness = new Harness({ model, builtinTools: [] })
    await expect(harness.run('Go.')).rejects.toMatchObject({
      code: 'unexpected_model_behavior',
      message: expect.stringMatching(/^The provider ended the reply with an error \(`incomplete/) as string,
    })
  },
)

test.each<[string, unknown, string]>([
  ['chain', 'yes', 'Expected `chain` of `openai` to be a boolean, got `yes`.'],
  ['chian', true, 'Unknown option of `openai`: `chian`. Did you mean `chain`?'],
  ['reasoningEffort', 'extreme', 'Expected `reasoningEffort` of `openai` to be one of'],
])('an invalid option `%s` is rejected when the model is created', (name, value, words) => {
  const make = (): unknown => openai('gpt-5.5', { [name]: value })

  expect(make).toThrow(expect.objectContaining({ code: 'invalid_options' }))
  expect(make).toThrow(words)
})

test("the capabilities of a model follow from its name and from the user's declaration", () => {
  const hostedTools = ['web_search', 'code_execution', 'file_search', 'image_generation', 'connector']
  const known = {
    hostedTools,
    supportsJsonSchemaOutput: true,
    defaultStructuredOutputMode: 'native',
    inputs: ['image', 'file'],
  }

  expect(openai('gpt-5.5')).toMatchObject({ provider: 'openai', id: 'gpt-5.5', capabilities: known })
  expect(openai('gpt-4.1').capabilities).toEqual({ ...known, reasoningEfforts: [] })
  expect(openai('gpt-5.3', { capabilities: { inputs: [] } }).capabilities).toEqual({ ...known, inputs: [] })
})

test('an effort is rejected for a model that does not reason', () => {
  expect(() => openai('gpt-4.1', { reasoningEffort: 'low' })).toThrow('`gpt-4.1`, which is not a reasoning model')
})

test.each([false, true])(
  'RF-04 RS-14 a tool loop is stateless: every request holds the whole conversation (streamed: %s)',
  async (streamed) => {
    const server = new Server(
      response([reasoning(), call('call_1', '{"q":1}')]),
      response([message('It is 1.')], { id: undefined }),
      response([message('Yes.')]),
    )
    const deltas: ModelDelta[] = []
    const options = streamed ? { onDelta: (delta: ModelDelta) => void deltas.push(delta) } : {}
    const talk = new Conversation(modelOf(server))
    await talk.say([user('What is it?')], options)
    const second = await talk.say([result('call_1')], options)
    await talk.say([user('Sure?')], options)

    const call1 = { type: 'function_call', call_id: 'call_1', name: 'lookup', arguments: '{"q":1}' }
    const input = [
      { role: 'user', content: 'What is it?' },
      { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'gAAA=' },
      call1,
      { type: 'function_call_output', call_id: 'call_1', output: '{"ok":true}' },
      { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'It is 1.', annotations: [] }] },
      { role: 'user', content: 'Sure?' },
    ]
    const wanted = { instructions: 'Be brief.', store: false, include: ['reasoning.encrypted_content'] }
    expect(server.bodies).toEqual([
      expect.objectContaining({ ...wanted, input: input.slice(0, 1) }),
      expect.objectContaining({ ...wanted, input: input.slice(0, 4) }),
      expect.objectContaining({ ...wanted, input }),
    ])
    expect(server.bodies.map((body) => 'previous_response_id' in body)).toEqual([false, false, false])
    expect(second).toMatchObject({ entry: { finishReason: 'stop' }, responseModel: 'gpt-5.5-2026' })
    expect(textOf(second.entry.parts)).toBe('It is 1.')
    expect(told(deltas, 'text_delta')).toBe(streamed ? 'It is 1.Yes.' : '')
  },
)

const anyOutput = fc.array(
  fc.oneof(
    fc.string({ unit: 'grapheme' }).map((text) => message(text)),
    fc.constant(reasoning()),
    fc.constant({ type: 'web_search_call', id: 'ws_1', status: 'completed', action: { type: 'search', query: 'x' } }),
  ),
  { maxLength: 3 },
)

test('each request begins with the bytes of the one before, up to the end of its messages', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(anyOutput, fc.nat(2)), { minLength: 2, maxLength: 5 }), async (turns) => {
      const ids = turns.map(([, calls], turn) => Array.from({ length: calls }, (_, index) => `call_${turn}_${index}`))
      const server = new Server(
        ...turns.map(([output], turn) => response([...output, ...ids[turn]!.map((id) => call(id, '{}'))])),
      )
      const talk = new Conversation(modelOf(server))
      for (const turn of turns.keys()) {
        const results = (ids[turn - 1] ?? []).map((id) => result(id))
        await talk.say(results.length > 0 ? results : [user(`Turn ${turn}.`)])
      }
      const texts = server.heard.map(({ text }) => text)

      for (const [index, text] of texts.slice(1).entries()) {
        const before = texts[index]!
        expect(before.endsWith(']}')).toBe(true)
        expect(text.startsWith(before.slice(0, -2))).toBe(true)
      }
    }),
    rounds(30),
  )
})

test('a tool choice for one turn replaces that of the run once', async () => {
  const server = new Server(response([message('Hi.')]), response([message('Hi.')]))
  const constants: RequestConstants = { ...CONSTANTS, settings: { toolChoice: 'required' } }
  const talk = new Conversation(modelOf(server))
  await talk.say([user('Hi')], {}, constants)
  await talk.say([user('Hi')], { toolChoice: 'none' }, constants)

  expect(server.bodies.map((body) => body['tool_choice'])).toEqual(['required', 'none'])
  expect(server.heard[1]?.text.match(/"tool_choice"/g)).toHaveLength(1)
})

describe('`chain`: the server stores the conversation', () => {
  const first = response([reasoning(), call('call_1', '{}')], { id: 'resp_1' })
  const second = response([message('Done.')], { id: 'resp_2' })
  const third = response([message('Bye.')], { id: 'resp_3' })
  const asked = { role: 'user', content: 'Do it.' }
  const answered = { type: 'function_call_output', call_id: 'call_1', output: '{"ok":true}' }

  function sentOf(server: Server): unknown[] {
    return server.bodies.map(({ input, previous_response_id: previous, store, instructions }) => {
      expect({ store, instructions }).toEqual({ store: true, instructions: 'Be brief.' })
      return { previous, input: (input as JsonObject[]).map((item) => item['role'] ?? item['type']) }
    })
  }

  test('PR-04 only new entries are sent, with the previous response id and the instructions', async () => {
    const server = new Server(first, second, third)
    const talk = new Conversation(modelOf(server, { chain: true }))
    await talk.say([user('Do it.')])
    await talk.say([result('call_1'), user('Hurry.')])
    await talk.say([user('Thanks.')])

    expect(sentOf(server)).toEqual([
      { previous: undefined, input: ['user'] },
      { previous: 'resp_1', input: ['function_call_output', 'user'] },
      { previous: 'resp_2', input: ['user'] },
    ])
    expect(server.bodies.map(({ input }) => (input as unknown[])[0])).toEqual([
      asked,
      answered,
      { role: 'user', content: 'Thanks.' },
    ])
  })

  test('RS-01 a resumed run sends its whole transcript, then chains', async () => {
    const server = new Server(first, second, third)
    const before = new Conversation(modelOf(server, { chain: true }))
    await before.say([user('Do it.')])
    const resumed = new Conversation(modelOf(server, { chain: true }), before.transcript)
    await resumed.say([result('call_1')])
    await resumed.say([user('Thanks.')])

    expect(sentOf(server).slice(1)).toEqual([
      { previous: undefined, input: ['user', 'reasoning', 'function_call', 'function_call_output'] },
      { previous: 'resp_2', input: ['user'] },
    ])
  })

  test('PR-04 sessions of one model are independent', async () => {
    const server = new Server(first, second)
    const model = modelOf(server, { chain: true })
    await new Conversation(model).say([user('Do it.')])
    await new Conversation(model).say([user('Do it.')])

    expect(sentOf(server)).toEqual([
      { previous: undefined, input: ['user'] },
      { previous: undefined, input: ['user'] },
    ])
  })

  test('RS-14 after a reply without an id the whole transcript is sent again', async () => {
    const server = new Server({ ...first, id: undefined }, second)
    const talk = new Conversation(modelOf(server, { chain: true }))
    await talk.say([user('Do it.')])
    await talk.say([result('call_1')])

    expect(sentOf(server)[1]).toEqual({
      previous: undefined,
      input: ['user', 'reasoning', 'function_call', 'function_call_output'],
    })
  })

  test('a failed request is sent again whole, with the same previous response', async () => {
    const server = new Server(first, 500, second)
    const talk = new Conversation(modelOf(server, { chain: true }))
    await talk.say([user('Do it.')])
    await expect(talk.say([result('call_1')])).rejects.toMatchObject({ status: 500 })
    await talk.say([])

    expect(sentOf(server).slice(1)).toEqual([
      { previous: 'resp_1', input: ['function_call_output'] },
      { previous: 'resp_1', input: ['function_call_output'] },
    ])
  })

  test('an initial response id is accepted, and gives way to those of the run', async () => {
    const server = new Server(first, second)
    const talk = new Conversation(modelOf(server, { chain: true, extraBody: { previous_response_id: 'resp_0' } }))
    await talk.say([user('Do it.')])
    await talk.say([result('call_1')])

    expect(server.bodies.map((body) => body['previous_response_id'])).toEqual(['resp_0', 'resp_1'])
    expect(server.heard[1]?.text.match(/"previous_response_id"/g)).toHaveLength(1)
  })
})

describe('a supplied official client', () => {
  test.each([false, true])('it sends and reads like our own transport (streamed: %s)', async (streamed) => {
    const whole = response([reasoning(), message('Hi.'), call('call_1', '{"q":1}')])
    const [ours, theirs] = [new Server(whole), new Server(whole)]
    const client = new OpenAI({ apiKey: 'k', fetch: theirs.fetch })
    const deltas: ModelDelta[][] = []
    const turns = [modelOf(ours), openai('gpt-5.5', { client })].map((model) => {
      const heard: ModelDelta[] = []
      deltas.push(heard)
      const options = streamed ? { onDelta: (delta: ModelDelta) => void heard.push(delta) } : {}
      return new Conversation(model).say([user('Hi')], options)
    })
    const [own, other] = await Promise.all(turns)

    expect(theirs.bodies).toEqual(ours.bodies)
    expect(other?.entry).toEqual(own?.entry)
    expect(deltas[1]).toEqual(deltas[0])
  })

  test('a stream that stops early, which the client treats as complete, is an error', async () => {
    const events = eventsOf(response([message('Hi.')])).slice(0, -1)
    const cut = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('')
    const fetch = async (): Promise<Response> => new Response(cut, { headers: { 'content-type': 'text/event-stream' } })
    const client = new OpenAI({ apiKey: 'k', fetch })
    const talk = new Conversation(openai('gpt-5.5', { client, maxRetries: 0 }))

    await expect(talk.say([user('Hi')], { onDelta: () => undefined })).rejects.toMatchObject({
      code: 'provider_error',
      retryable: true,
    })
  })
})
