import Anthropic from '@anthropic-ai/sdk'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { textOf, toolCallsOf } from 'thinharness'
import type { Model, ModelTurn, RequestConstants, TurnOptions } from 'thinharness'
import { anthropic } from '#providers/anthropic/index.js'
import type { AnthropicOptions } from '#providers/anthropic/index.js'
import type { TranscriptEntry } from '#contracts/entry.js'
import type { JsonObject } from '#util/json.js'
import { expectValidRequest } from '../../support/request-schemas.js'
import { assistant, AT, call, CONSTANTS as NO_CONSTANTS, errorOf, events, tool, user } from './support.js'

const LOOKUP = { name: 'lookup', description: 'Looks it up.', parameters: { type: 'object', properties: {} } }
const CONSTANTS: RequestConstants = { ...NO_CONSTANTS, instructions: 'Be brief.', tools: [LOOKUP] }

afterEach(() => vi.unstubAllEnvs())

interface Heard {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly text: string
}

/** Blocks of one reply. */
type Reply = readonly JsonObject[]

/** A server that sends these replies one after the other, streamed if requested. */
class Server {
  readonly heard: Heard[] = []
  readonly #replies: Reply[]

  constructor(...replies: Reply[]) {
    this.#replies = replies
  }

  get bodies(): JsonObject[] {
    return this.heard.map(({ text }) => JSON.parse(text) as JsonObject)
  }

  get messages(): JsonObject[][] {
    return this.bodies.map(({ messages }) => messages as JsonObject[])
  }

  readonly fetch = async (url: string | URL | Request, init?: RequestInit): Promise<Response> => {
    const request = new Request(url, init)
    const text = await request.text()
    const headers = Object.fromEntries(request.headers)
    this.heard.push({ url: request.url, headers, text })
    const body = JSON.parse(text) as JsonObject
    expectValidRequest('anthropic-messages', body, { version: headers['anthropic-version'] ?? 'none' })
    const content = this.#replies.shift()
    if (content === undefined) throw new Error('The script has run out.')
    if (body['stream'] !== true) return Response.json(message(content))
    const stream = events(content.map((block) => [block])).map((event) => {
      return `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`
    })
    return new Response(stream.join(''), { headers: { 'content-type': 'text/event-stream' } })
  }
}

function message(content: Reply): JsonObject {
  const usage = { input_tokens: 1, output_tokens: 2 }
  return {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'claude',
    content,
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage,
  }
}

const says = (text: string): Reply => [{ type: 'text', text }]
const calls = (...ids: string[]): Reply => ids.map((id) => ({ type: 'tool_use', id, name: 'lookup', input: { id } }))

/** A conversation with a model: each `say` adds entries, asks, and adds the answer. */
class Conversation {
  transcript: readonly TranscriptEntry[]
  readonly #session: ReturnType<Model['openSession']>

  constructor(model: Model, transcript: readonly TranscriptEntry[] = []) {
    this.transcript = transcript
    this.#session = model.openSession()
  }

  async say(
    entries: readonly TranscriptEntry[],
    constants = CONSTANTS,
    options: Partial<TurnOptions> = {},
  ): Promise<ModelTurn> {
    this.transcript = [...this.transcript, ...entries]
    const turn = await this.#session.turn(this.transcript, constants, {
      generation: 0,
      signal: new AbortController().signal,
      ...options,
    })
    this.transcript = [...this.transcript, { ...turn.entry, id: 'e', at: AT }]
    return turn
  }
}

function model(server: Server, options: AnthropicOptions = {}): Model {
  return anthropic('claude-sonnet-5', { apiKey: 'sk-test', fetch: server.fetch, maxRetries: 0, ...options })
}

test('PR-12 in a tool loop each request repeats the bytes of the one before and appends the results', async () => {
  const server = new Server(calls('toolu_1', 'toolu_2'), says('Found.'))
  const conversation = new Conversation(model(server))

  const first = await conversation.say([user('Find it.')])
  const last = await conversation.say([
    tool('toolu_1', '{"ok":true}'),
    tool('toolu_2', '{"ok":false}', true),
    user('Soon.', true),
  ])

  expect(toolCallsOf(first.entry.parts)).toMatchObject([
    { callId: 'toolu_1', name: 'lookup', arguments: '{"id":"toolu_1"}' },
    { callId: 'toolu_2', name: 'lookup', arguments: '{"id":"toolu_2"}' },
  ])
  expect(last).toMatchObject({
    entry: { parts: [{ text: 'Found.' }], finishReason: 'stop' },
    nativeFinishReason: 'end_turn',
    responseId: 'msg_1',
  })
  expect(server.bodies[1]).toEqual({
    model: 'claude-sonnet-5',
    max_tokens: 16_384,
    system: [{ type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral' } }],
    tools: [
      {
        name: 'lookup',
        description: 'Looks it up.',
        input_schema: LOOKUP.parameters,
        cache_control: { type: 'ephemeral' },
      },
    ],
    cache_control: { type: 'ephemeral' },
    messages: [
      { role: 'user', content: 'Find it.' },
      { role: 'assistant', content: calls('toolu_1', 'toolu_2') },
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: 'toolu_1', content: '{"ok":true}' },
          { type: 'tool_result', tool_use_id: 'toolu_2', content: '{"ok":false}', is_error: true },
          { type: 'text', text: 'Soon.' },
        ],
      },
    ],
  })
  const [before, after] = server.heard.map(({ text }) => text)
  expect(after?.startsWith(before?.replace(/\]\}$/, '') ?? '?')).toBe(true)
})

test('a streamed turn equals the unstreamed one, and is emitted on the way', async () => {
  const reply = [...says('Let me see.'), { type: 'tool_use', id: 'toolu_1', name: 'lookup', input: { id: 1 } }]
  const server = new Server(reply, reply)
  const told: unknown[] = []

  const whole = await new Conversation(model(server)).say([user('Go.')])
  const streamed = await new Conversation(model(server)).say([user('Go.')], CONSTANTS, {
    onDelta: (delta) => told.push(delta),
  })

  expect(streamed.entry.parts).toEqual(whole.entry.parts)
  expect(server.bodies.map(({ stream }) => stream)).toEqual([undefined, true])
  expect(told).toEqual([
    { kind: 'text_delta', text: 'Let me see.' },
    { kind: 'tool_input_delta', text: '{"id":1}', callId: 'toolu_1', toolName: 'lookup' },
  ])
})

test('PR-03 two sessions of one model advance independently', async () => {
  const server = new Server(says('a'), says('b'), says('c'))
  const shared = model(server)
  const [left, right] = [new Conversation(shared), new Conversation(shared)]

  await left.say([user('1')])
  await right.say([user('2')])
  await left.say([user('3')])

  expect(server.messages.map((messages) => messages.map(({ content }) => content))).toEqual([
    ['1'],
    ['2'],
    ['1', [{ type: 'text', text: 'a' }], '3'],
  ])
})

test('RS-02 RS-06 a resumed conversation holds the calls with their results, and the current instructions', async () => {
  const server = new Server(says('Yes.'))
  const past = [
    user('Find it.'),
    assistant([call('call:1', '{"n":1}')], 'openai'),
    tool('call:1', 'x'),
    assistant([{ type: 'text', text: 'There.' }]),
  ]

  await new Conversation(model(server), past).say([user('Sure?')], { ...CONSTANTS, instructions: 'Be long.' })

  const [body] = server.bodies
  const [, asked, answered] = body?.['messages'] as { content: JsonObject[] }[]
  expect(body?.['system']).toMatchObject([{ text: 'Be long.' }])
  expect(asked?.content).toEqual([
    { type: 'tool_use', id: answered?.content[0]?.['tool_use_id'], name: 'read', input: { n: 1 } },
  ])
  expect(server.messages[0]?.map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'assistant', 'user'])
})

describe('the request', () => {
  test('it is sent to the Messages API, with key and version', async () => {
    const server = new Server(says('Hi.'))
    await new Conversation(model(server, { headers: { 'anthropic-beta': 'x-1' } })).say([user('Hi')])

    expect(server.heard[0]).toMatchObject({
      url: 'https://api.anthropic.com/v1/messages',
      headers: { 'x-api-key': 'sk-test', 'anthropic-version': '2023-06-01', 'anthropic-beta': 'x-1' },
    })
  })

  test('it uses the key and address of the environment, and the version of the option', async () => {
    vi.stubEnv('ANTHROPIC_API_KEY', 'sk-env')
    vi.stubEnv('ANTHROPIC_BASE_URL', 'https://proxy.example/')
    const server = new Server(says('Hi.'))
    const elsewhere = anthropic('claude-sonnet-5', { fetch: server.fetch, apiVersion: '2026-10-21' })
    await new Conversation(elsewhere).say([user('Hi')])

    expect(server.heard[0]).toMatchObject({
      url: 'https://proxy.example/v1/messages',
      headers: { 'x-api-key': 'sk-env', 'anthropic-version': '2026-10-21' },
    })
  })

  test('without a key it fails and names the missing variable', async () => {
    vi.stubEnv('ANTHROPIC_API_KEY', '')
    const asking = new Conversation(anthropic('claude-sonnet-5', { fetch: new Server().fetch })).say([user('Hi')])

    await expect(asking).rejects.toMatchObject({
      code: 'missing_key',
      message: expect.stringMatching(/`ANTHROPIC_API_KEY`.*`apiKey`/) as string,
    })
  })
})

describe('a handed-in client', () => {
  test('sends the same request, in its own version', async () => {
    const server = new Server(says('Hi.'), says('Ho.'))
    const client = new Anthropic({ apiKey: 'sk-client', fetch: server.fetch })
    const conversation = new Conversation(anthropic('claude-sonnet-5', { client }))

    const whole = await conversation.say([user('Hi')])
    const streamed = await conversation.say([user('Ho')], CONSTANTS, { onDelta: () => undefined })

    expect([textOf(whole.entry.parts), textOf(streamed.entry.parts)]).toEqual(['Hi.', 'Ho.'])
    expect(server.heard.map(({ headers }) => headers['anthropic-version'])).toEqual(['2026-10-21', '2026-10-21'])
    expect(server.bodies[0]).toHaveProperty('cache_control')
  })

  test.each(['https://bedrock-runtime.eu-west-1.amazonaws.com', 'https://europe-west1-aiplatform.googleapis.com/v1'])(
    '%s gets no `cache_control` at the top level, which it does not support',
    async (baseURL) => {
      const server = new Server(says('Hi.'))
      const client = new Anthropic({ apiKey: 'k', baseURL, fetch: server.fetch })
      await new Conversation(anthropic('claude-sonnet-5', { client })).say([user('Hi')])

      expect(server.bodies[0]).not.toHaveProperty('cache_control')
      expect(server.bodies[0]?.['system']).toMatchObject([{ cache_control: { type: 'ephemeral' } }])
    },
  )
})

describe('known facts about a model', () => {
  test.each<[string, boolean]>([
    ['claude-sonnet-5', true],
    ['something-of-next-year', true],
    ['claude-opus-4-8', true],
    ['claude-haiku-4-5', true],
    ['claude-opus-4-1-20250805', false],
    ['claude-sonnet-4-20250514', false],
    ['claude-3-7-sonnet-latest', false],
    ['claude-3-5-haiku-latest', false],
  ])('SO-28 native schemas are available as the model supports them: %s, %s', (id, supportsJsonSchemaOutput) => {
    expect(anthropic(id).capabilities).toMatchObject({ supportsJsonSchemaOutput, defaultStructuredOutputMode: 'tool' })
  })

  test.each([
    ['claude-3-5-haiku-latest', 'low'],
    ['claude-opus-5-5', 'none'],
    ['claude-fable-5', 'none'],
  ] as const)('the model %s does not support the effort `%s`', (id, reasoningEffort) => {
    expect(errorOf(() => anthropic(id, { reasoningEffort }))).toMatchObject({ code: 'invalid_options' })
  })
})

describe('options', () => {
  test.each<[string, object, RegExp]>([
    ['an unknown version', { apiVersion: '2024-01-01' }, /`apiVersion`.*`2023-06-01`, `2026-10-21`.*`2024-01-01`/],
    ['a temperature where there is none', { apiVersion: '2026-10-21', temperature: 1 }, /`temperature`/],
    ['an unknown option', { apiVersoin: '2023-06-01' }, /`apiVersoin`.*`apiVersion`/],
  ])('%s is rejected', (_name, options, wanted) => {
    const error = errorOf(() => anthropic('claude-sonnet-5', options))

    expect(error.code).toBe('invalid_options')
    expect(error.message).toMatch(wanted)
  })
})
