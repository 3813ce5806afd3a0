import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { defineTool, Harness, textOf } from 'thinharness'
import type { Model, TransportRetry } from 'thinharness'
import { scriptedProvider } from 'thinharness/testing'
import type { ScriptedProvider } from 'thinharness/testing'
import { fromAiSdk } from '#providers/ai-sdk/index.js'
import type { AiSdkOptions } from '#providers/ai-sdk/index.js'
import { isObject } from '#util/json.js'
import { expectValidRequest } from '../../support/request-schemas.js'
import type { RequestApi } from '../../support/request-schemas.js'
import { Conversation, errorOf, LOOKUP, result, user } from './support.js'
import { collect } from '../../support/collect.js'

type Provider = 'anthropic.messages' | 'openai.responses' | 'openai.chat'

/** The AI SDK's own providers, before this project's scripted one. */
function modelOf(name: Provider, server: ScriptedProvider, options: AiSdkOptions = {}): Model {
  const given = { maxRetries: 0, ...options }
  const openai = createOpenAI({ apiKey: 'sk-test', baseURL: server.url.responses })
  switch (name) {
    case 'anthropic.messages': {
      const anthropic = createAnthropic({ apiKey: 'sk-test', baseURL: `${server.url.messages}/v1` })
      return fromAiSdk(anthropic('claude-sonnet-5'), given)
    }
    case 'openai.responses':
      return fromAiSdk(openai.responses('gpt-5.5'), given)
    case 'openai.chat':
      return fromAiSdk(openai.chat('gpt-5.5'), given)
  }
}

const SCHEMAS: Readonly<Record<Provider, RequestApi>> = {
  'anthropic.messages': 'anthropic-messages',
  'openai.responses': 'openai-responses',
  'openai.chat': 'openai-chat',
}

function bodiesOf(name: Provider, server: ScriptedProvider): readonly Readonly<Record<string, unknown>>[] {
  const bodies = server.requests.map(({ body }) => body).filter(isObject)
  for (const body of bodies) expectValidRequest(SCHEMAS[name], body, { version: '2023-06-01' })
  return bodies
}

const PROVIDERS: readonly Provider[] = ['anthropic.messages', 'openai.responses', 'openai.chat']
const THINKING: readonly Provider[] = ['anthropic.messages', 'openai.responses']

describe.each(PROVIDERS)('%s', (name) => {
  test('PR-12 PR-13 a batch of calls, its results and the answer form one run, streamed or not', async () => {
    const turnsOf = async (way: 'say' | 'hear'): Promise<unknown> => {
      await using server = await scriptedProvider()
      const usage = { inputTokens: 20, outputTokens: 7, cacheReadTokens: 5, cacheWriteTokens: 0, reasoningTokens: 0 }
      server.callsAll(CALLS, { text: 'I look.', usage }).says('Found.', { usage })
      const conversation = new Conversation(modelOf(name, server), { instructions: 'Be brief.', tools: [LOOKUP] })
      const first = await conversation[way]('Find it.')
      const results = [result('call_a'), result('call_b', '{"ok":false}', true), user('Soon.', true)]
      const last = await conversation[way](results)
      expect(bodiesOf(name, server)).toHaveLength(2)
      if (way === 'hear') expectDeltas(conversation)
      return [first, last]
    }
    const turns = await turnsOf('say')
    expect(turns).toMatchObject([
      {
        entry: {
          parts: [
            { type: 'text', text: 'I look.' },
            { type: 'tool_call', callId: 'call_a', name: 'lookup', arguments: '{"n":1}' },
            { type: 'tool_call', callId: 'call_b', name: 'lookup', arguments: '{}' },
          ],
          finishReason: 'tool_calls',
          usage: { inputTokens: 20, outputTokens: 7, cacheReadTokens: 5 },
          provider: `ai-sdk:${name}`,
        },
      },
      { entry: { parts: [{ type: 'text', text: 'Found.' }], finishReason: 'stop' } },
    ])
    expect(comparable(await turnsOf('hear'))).toEqual(comparable(turns))
  })

  test('PR-24 an error status is reported with its number, and retried after the delay that the server asks for', async () => {
    await using server = await scriptedProvider()
    server
      .fails(429, { headers: { 'retry-after': '0' } })
      .says('Hm.')
      .fails(500, { message: 'Out of order.' })
    const retries: TransportRetry[] = []
    const options = { onRetry: (retry: TransportRetry) => void retries.push(retry) }
    expect(
      textOf((await new Conversation(modelOf(name, server, { maxRetries: 1 })).say('Hi', options)).entry.parts),
    ).toBe('Hm.')
    expect(retries).toMatchObject([{ attempt: 1, status: 429, withdrawn: false }])
    const error = await errorOf(new Conversation(modelOf(name, server)).hear('Hi'))
    expect(error).toMatchObject({ code: 'provider_error', status: 500, retryable: true })
    expect(error.message).toContain('Out of order.')
  })

  test.each(['truncate', 'reset', 'garble', 'error'] as const)(
    'a stream that ends by `%s` is a retryable error',
    async (how) => {
      await using server = await scriptedProvider()
      server.breaks(how, { after: 4 })
      const error = await errorOf(new Conversation(modelOf(name, server)).hear('Hi'))
      expect(error).toMatchObject({ code: 'provider_error', retryable: true })
    },
  )

  test('silence in the middle of a stream ends within the time limit', async () => {
    await using server = await scriptedProvider()
    server.breaks('idle', { after: 4 })
    const model = modelOf(name, server, { timeouts: { idleMs: 50, firstByteMs: 5000 } })
    const error = await errorOf(new Conversation(model).hear('Hi'))
    expect(error).toMatchObject({ code: 'provider_error', retryable: true })
    expect(error.message).toContain('`timeouts.idleMs`')
  })

  test('an abort in the middle of a stream ends the request at once', async () => {
    await using server = await scriptedProvider()
    server.breaks('idle', { after: 7 })
    const controller = new AbortController()
    const reason = new Error('Enough.')
    const asked = new Conversation(modelOf(name, server)).say('Hi', {
      signal: controller.signal,
      onDelta: () => controller.abort(reason),
    })
    await expect(asked).rejects.toBe(reason)
  })

  test('length and refusal are not clean answers', async () => {
    await using server = await scriptedProvider()
    server.says('It is', { finishReason: 'length' }).refuses('I may not.').refuses('I may not.')
    expect((await new Conversation(modelOf(name, server)).say('Hi')).entry.finishReason).toBe('length')
    expect((await new Conversation(modelOf(name, server)).say('Hi')).entry.finishReason).toBe('refusal')
    expect((await new Conversation(modelOf(name, server)).hear('Hi')).entry.finishReason).toBe('refusal')
  })

  test('images and files of prompts and results', async () => {
    await using server = await scriptedProvider()
    server.calls('lookup', {}, { callId: 'call_a' }).says('Seen.')
    const image = { type: 'image', data: PNG, mediaType: 'image/png' } as const
    const pdf = { type: 'file', data: 'JVBERi0=', mediaType: 'application/pdf', name: 'a.pdf' } as const
    const far = { type: 'image', url: 'https://example.com/a.png' } as const
    const conversation = new Conversation(modelOf(name, server), { tools: [LOOKUP] })
    await conversation.say([user([{ type: 'text', text: 'Look.' }, image, pdf, far])])
    await conversation.say([result('call_a', [{ type: 'text', text: '{"ok":true}' }, image, pdf])])
    const [, last] = bodiesOf(name, server)
    const sent = JSON.stringify(last)
    expect(sent.split(PNG)).toHaveLength(3)
    expect(sent.split('JVBERi0=')).toHaveLength(3)
    expect(sent).toContain(far.url)
  })

  test('input that the provider does not support is rejected before any request', async () => {
    await using server = await scriptedProvider()
    const zip = { type: 'file', data: 'UEs=', mediaType: 'application/zip' } as const
    const error = await errorOf(new Conversation(modelOf(name, server)).say([user([zip])]))
    expect(error).toMatchObject({ code: 'invalid_options', retryable: false })
    expect(server.requests).toEqual([])
  })

  test('an answer of a schema', async () => {
    await using server = await scriptedProvider()
    server.says('{"n":1}')
    const schema = {
      type: 'object',
      properties: { n: { type: 'number' } },
      required: ['n'],
      additionalProperties: false,
    }
    const structuredOutput = { name: 'answer', schema, strict: true }
    const turn = await new Conversation(modelOf(name, server), { structuredOutput }).say('Count.')
    expect(textOf(turn.entry.parts)).toBe('{"n":1}')
    expect(JSON.stringify(bodiesOf(name, server)[0])).toContain('"json_schema"')
  })

  test('a whole run: tools side by side, deltas, usage, a typed answer', async () => {
    await using server = await scriptedProvider()
    server
      .callsAll([
        { name: 'add', arguments: { a: 1, b: 2 } },
        { name: 'add', arguments: { a: 3, b: 4 } },
      ])
      .says('{"sum":10}')
    const add = defineTool({
      name: 'add',
      description: 'Adds.',
      parameters: z.object({ a: z.number(), b: z.number() }),
      handler: ({ a, b }) => String(a + b),
    })
    await using harness = new Harness({
      model: modelOf(name, server),
      builtinTools: [],
      tools: [add],
      outputType: z.object({ sum: z.number() }),
      outputMode: 'native',
    })
    const stream = harness.stream('Sum up.', { deltas: true })
    const events = await collect(stream)
    const run = await stream.result
    expect(run.output).toEqual({ sum: 10 })
    expect(run).toMatchObject({ stopReason: 'end_turn', usage: { modelRequests: 2, toolCalls: 2 } })
    const deltas = events.filter((event) => event.kind === 'text_delta')
    expect(deltas.map(({ text }) => text).join('')).toBe('{"sum":10}')
    bodiesOf(name, server)
  })
})

describe.each(THINKING)('%s, reasoning', (name) => {
  test.each(['say', 'hear'] as const)(
    'RF-04 RF-05 RF-14 sealed reasoning is returned unchanged and in its place (%s)',
    async (way) => {
      await using server = await scriptedProvider()
      const thinks = (text: string): { type: 'reasoning'; text: string } => ({ type: 'reasoning', text })
      server
        .replies({ parts: [thinks('First.'), thinks(''), { type: 'call', name: 'lookup', callId: 'call_a' }] })
        .replies({ parts: [thinks('Then.'), { type: 'text', text: 'Hm.' }] })
        .says('Done.')
      const model = modelOf(name, server, { reasoningEffort: 'high' })
      const conversation = new Conversation(model, { tools: [LOOKUP] })
      const first = await conversation[way]('Think.')
      expect(first.entry.parts.map((part) => (part.type === 'reasoning' ? part.text : part.type))).toEqual([
        'First.',
        '',
        'tool_call',
      ])
      await conversation[way]([result('call_a')])
      // A stored transcript can be continued too.
      conversation.transcript = JSON.parse(JSON.stringify(conversation.transcript)) as typeof conversation.transcript
      await conversation[way]('And?')
      const bodies = bodiesOf(name, server)
      // The scripted provider rejects changed reasoning.
      const seals = JSON.stringify(bodies[2]).match(/"(?:signature|encrypted_content)":"[^"]+"/g)
      expect(seals?.length).toBeGreaterThanOrEqual(2)
      if (way === 'hear') expectDeltas(conversation)
    },
  )

  test('RF-09 reasoning of another provider becomes text', async () => {
    await using server = await scriptedProvider()
    server.says('Hm.', { reasoning: 'So it is.' }).says('Done.')
    const other = name === 'anthropic.messages' ? 'openai.responses' : 'anthropic.messages'
    const conversation = new Conversation(modelOf(other, server, { reasoningEffort: 'high' }))
    await conversation.say('Think.')
    const moved = new Conversation(modelOf(name, server), {}, conversation.transcript)
    await moved.say('And?')
    const sent = JSON.stringify(server.requests[1]?.body)
    expect(sent).toContain('<thinking>\\nSo it is.\\n</thinking>')
    expect(sent).not.toMatch(/"(?:signature|encrypted_content)"/)
  })
})

test('a missing key of the AI SDK is reported as `missing_key`', async () => {
  const model = fromAiSdk(createOpenAI({ apiKey: undefined as never, baseURL: 'http://127.0.0.1:9/v1' })('gpt-5.5'))
  const before = process.env['OPENAI_API_KEY']
  delete process.env['OPENAI_API_KEY']
  try {
    const error = await errorOf(new Conversation(model).say('Hi'))
    expect(error).toMatchObject({ code: 'missing_key', message: expect.stringContaining('OPENAI_API_KEY') as string })
  } finally {
    if (before !== undefined) process.env['OPENAI_API_KEY'] = before
  }
})

const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

const CALLS = [
  { name: 'lookup', arguments: { n: 1 }, callId: 'call_a' },
  { name: 'lookup', arguments: {}, callId: 'call_b' },
]

/** Turns without the values that the server creates for each reply, and without `raw`, which differs in a stream. */
function comparable(turns: unknown): unknown {
  const text = JSON.stringify(turns, (key, value: unknown) => (key === 'raw' ? undefined : value))
  return JSON.parse(text.replaceAll(/"(itemId|responseId)":"[^"]*"/g, '"$1":""')) as unknown
}

/** The deltas of a conversation are what its replies say. */
function expectDeltas({ deltas, transcript }: Conversation): void {
  const told = (kind: string, callId?: string): string =>
    deltas
      .filter((delta) => delta.kind === kind && delta.callId === callId)
      .map(({ text }) => text)
      .join('')
  const parts = transcript.flatMap((entry) => (entry.role === 'assistant' ? entry.parts : []))
  const said = (type: 'text' | 'reasoning'): string =>
    parts.map((part) => (part.type === type ? part.text : '')).join('')
  expect(told('text_delta')).toBe(said('text'))
  expect(told('reasoning_delta')).toBe(said('reasoning'))
  for (const part of parts) {
    if (part.type === 'tool_call') expect(told('tool_input_delta', part.callId)).toBe(part.arguments)
  }
}
