import { describe, expect, test } from 'vitest'
import { defineTool, Harness, textOf, toolCallsOf } from 'thinharness'
import type { HarnessError, Model, ModelDelta, ModelTurn } from 'thinharness'
import { anthropic, openai, openaiCompatible } from 'thinharness/providers'
import { errorOf } from './support.js'

type Fetch = typeof globalThis.fetch

const chat = (fetch: Fetch): Model => openaiCompatible('m', { fetch, baseUrl: 'http://any.invalid/v1', maxRetries: 0 })
const responses = (fetch: Fetch): Model => openai('gpt-5.5', { fetch, apiKey: 'any', maxRetries: 0 })
const messages = (fetch: Fetch): Model => anthropic('claude-sonnet-5', { fetch, apiKey: 'any', maxRetries: 0 })

const CONSTANTS = { instructions: '', tools: [], structuredOutput: null, settings: {} }

/** The reply for a body; a list is a stream with its members as events. */
async function turnOf(
  make: (fetch: Fetch) => Model,
  body: unknown,
): Promise<{ readonly turn: ModelTurn; readonly deltas: readonly ModelDelta[] }> {
  const deltas: ModelDelta[] = []
  const events = Array.isArray(body) ? body.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('') : null
  const fetch = async (): Promise<Response> =>
    events === null ? Response.json(body) : new Response(events, { headers: { 'content-type': 'text/event-stream' } })
  const prompt = { role: 'user', id: 'e1', at: '', content: [{ type: 'text', text: 'Go.' }] } as const
  const onDelta = (delta: ModelDelta): void => void deltas.push(delta)
  const options = { generation: 0, signal: new AbortController().signal, ...(events !== null && { onDelta }) }
  return { turn: await make(fetch).openSession().turn([prompt], CONSTANTS, options), deltas }
}

const piece = (delta: unknown): unknown => ({ choices: [{ index: 0, delta, finish_reason: null }] })

describe('an error in a successful response', () => {
  const BODIES: readonly (readonly [string, unknown, Partial<HarnessError>])[] = [
    ['a code and a message', { code: 'InvalidApiKey', message: 'Bad key.' }, { message: 'Bad key. (InvalidApiKey)' }],
    ['a status and a message', { status: 401, message: 'Unauthorized' }, { status: 401, retryable: false }],
    ['a detail', { detail: 'Not authenticated' }, { message: 'Not authenticated' }],
    ['a list', { success: false, errors: [{ code: 7003, message: 'No route' }] }, { message: 'No route' }],
    ['a base_resp', { base_resp: { status_code: 1004, status_msg: 'login fail' } }, { message: 'login fail' }],
    ['too many', { message: 'Too many requests', code: 429 }, { status: 429, retryable: true }],
    ['an error text', { error: 'model not found' }, { message: 'model not found' }],
  ]
  test.each(BODIES)('of chat completions, with %s', async (_what, body, wanted) => {
    expect(await errorOf(turnOf(chat, body))).toMatchObject({ code: 'provider_error', ...wanted })
    expect(await errorOf(turnOf(chat, { choices: null, ...(body as object) }))).toMatchObject(wanted)
    expect(await errorOf(turnOf(chat, [piece({ content: 'a' }), body]))).toMatchObject(wanted)
  })

  test.each(BODIES)('of Messages, with %s', async (_what, body, wanted) => {
    expect(await errorOf(turnOf(messages, body))).toMatchObject({ code: 'provider_error', ...wanted })
  })
})

describe('finish reasons of chat completions servers', () => {
  test.each([
    ['eos_token', 'stop'],
    ['STOP', 'stop'],
    ['function_calls', 'tool_calls'],
    ['max_new_tokens', 'length'],
    ['MAX_TOKENS', 'length'],
    ['PROHIBITED_CONTENT', 'content_filter'],
    ['SPII', 'content_filter'],
    ['guardrail_intervened', 'content_filter'],
    ['somehow', 'other'],
  ])('`%s` is `%s`', async (word, reason) => {
    const body = { choices: [{ index: 0, message: { role: 'assistant', content: 'A.' }, finish_reason: word }] }
    expect((await turnOf(chat, body)).turn).toMatchObject({
      entry: { finishReason: reason, parts: [{ text: 'A.' }] },
      nativeFinishReason: word,
    })
  })

  test.each(['aborted', 'cancelled', 'error'])('`%s` is an error', async (word) => {
    const body = { choices: [{ index: 0, message: { role: 'assistant', content: 'A.' }, finish_reason: word }] }
    expect(await errorOf(turnOf(chat, body))).toMatchObject({ code: 'provider_error', retryable: true })
  })
})

describe('a Responses stream that sends only complete pieces', () => {
  const end = { type: 'response.completed', response: { id: 'r', status: 'completed', output: [] } }
  const at = { output_index: 0, content_index: 0, summary_index: 0 }
  const added = (type: string, more: object): unknown => ({
    type: 'response.output_item.added',
    ...at,
    item: { type, ...more },
  })

  test('a text', async () => {
    const done = { type: 'response.output_text.done', ...at, text: 'Hello.' }
    for (const events of [
      [done, end],
      [added('message', { id: 'm', content: [] }), done, end],
    ]) {
      const { turn, deltas } = await turnOf(responses, events)
      expect([textOf(turn.entry.parts), deltas]).toEqual(['Hello.', [{ kind: 'text_delta', text: 'Hello.' }]])
    }
  })

  test('a call', async () => {
    const done = { type: 'response.function_call_arguments.done', ...at, arguments: '{"x":1}' }
    const { turn, deltas } = await turnOf(responses, [
      added('function_call', { call_id: 'c', name: 'look' }),
      done,
      end,
    ])
    expect(toolCallsOf(turn.entry.parts)).toMatchObject([{ callId: 'c', name: 'look', arguments: '{"x":1}' }])
    expect(deltas).toEqual([{ kind: 'tool_input_delta', text: '{"x":1}', callId: 'c', toolName: 'look' }])
  })

  test('a thinking block', async () => {
    const done = { type: 'response.reasoning_summary_text.done', ...at, text: 'Hm.' }
    const { turn } = await turnOf(responses, [added('reasoning', { id: 'rs', summary: [] }), done, end])
    expect(turn.entry.parts).toMatchObject([{ type: 'reasoning', text: 'Hm.' }])
  })

  test('text that its deltas have shown is not repeated, nor text at another index', async () => {
    const delta = { type: 'response.output_text.delta', ...at, delta: 'Hel' }
    const rest = { type: 'response.output_text.delta', ...at, delta: 'lo.' }
    const done = { type: 'response.output_text.done', ...at, text: 'Hello.' }
    const astray = { ...done, output_index: 7 }
    const { turn, deltas } = await turnOf(responses, [delta, rest, done, astray, end])
    expect([textOf(turn.entry.parts), deltas.map(({ text }) => text)]).toEqual(['Hello.', ['Hel', 'lo.']])
  })
})

describe('a Responses stream that counts from elsewhere', () => {
  const item = { type: 'message', id: 'm', role: 'assistant' }
  const block = (text: string): unknown => ({ type: 'output_text', text, annotations: [] })
  const delta = (text: string, content_index: number, output_index = 0): unknown => ({
    ...{ type: 'response.output_text.delta', delta: text, content_index, output_index },
  })
  const end = (output: unknown): unknown => ({
    ...{ type: 'response.completed', response: { id: 'r', status: 'completed', output } },
  })
  const whole = (...texts: string[]): unknown => ({ ...item, status: 'completed', content: texts.map(block) })
  const done = (...texts: string[]): unknown => {
    return { type: 'response.output_item.done', output_index: 0, item: whole(...texts) }
  }
  const textDone = { type: 'response.output_text.done', output_index: 0, content_index: 0, text: 'Hello.' }
  const moved = { type: 'message', role: 'assistant', id: 'other', content: [block('Hello.')] }

  test.each<[string, unknown[], string]>([
    ['the first text has the index 1', [delta('Hel', 1), delta('lo.', 1), done('Hello.'), end([])], 'Hello.'],
    ['only the final response is whole', [delta('Hello.', 1), end([whole('Hello.')])], 'Hello.'],
    ['the whole text has another index', [delta('Hello.', 1), textDone, done('Hello.'), end([])], 'Hello.'],
    ['the last piece is missing', [delta('Hel', 1), done('Hello.'), end([])], 'Hello.'],
    ['two texts', [delta('One, ', 1), delta('two.', 2), done('One, ', 'two.'), end([])], 'One, two.'],
    ['the second of two texts has no deltas', [delta('One, ', 1), done('One, ', 'two.'), end([])], 'One, two.'],
    ['the item has another index and id at the end', [delta('Hello.', 0, 1), end([moved])], 'Hello.'],
  ])('PR-30 a text is emitted and stored once: %s', async (_how, events, text) => {
    const { turn, deltas } = await turnOf(responses, events)

    expect([textOf(turn.entry.parts), deltas.map((each) => each.text).join('')]).toEqual([text, text])
  })
})

describe('a Responses reply that waits for the client', () => {
  const items: readonly Record<string, unknown>[] = [
    { type: 'computer_call', id: 'x', call_id: 'c', action: { type: 'screenshot' }, pending_safety_checks: [] },
    { type: 'shell_call', id: 'x', call_id: 'c', action: { commands: ['ls'] } },
    { type: 'local_shell_call', id: 'x', call_id: 'c', action: { type: 'exec', command: ['ls'], env: {} } },
    { type: 'apply_patch_call', id: 'x', call_id: 'c', operation: { type: 'delete_file', path: 'a' } },
    { type: 'mcp_approval_request', id: 'x', name: 'delete', arguments: '{}', server_label: 's' },
    { type: 'tool_search_call', id: 'x', call_id: 'c', execution: 'client', arguments: {} },
  ].map((item) => ({ ...item, status: 'completed' }))
  const call = { type: 'function_call', id: 'f', call_id: 'f', name: 'look', arguments: '{}', status: 'completed' }
  const reply = (...output: unknown[]): object => ({ id: 'r', status: 'completed', output })
  const streamed = (response: object): unknown[] => [{ type: 'response.completed', response }]

  test.each(items.map((item) => [item['type'], item] as const))(
    'PR-32 it ends the run with an error that names the item, and no call runs: %s',
    async (type, item) => {
      for (const body of [reply(item), reply(call, item), streamed(reply(item))]) {
        const error = await errorOf(turnOf(responses, body))
        expect(error).toMatchObject({ code: 'unexpected_model_behavior', retryable: false })
        expect(error.message).toContain(`\`${String(type)}\``)
      }
      let hasRun = false
      const parameters = { type: 'object' } as const
      const handler = (): string => String((hasRun = true))
      const look = defineTool({ name: 'look', description: 'Looks.', parameters, handler })
      const model = responses(async () => Response.json(reply(call, item)))
      const run = new Harness({ model, tools: [look], builtinTools: [] }).run('Go.')
      await expect(run).rejects.toMatchObject({ code: 'unexpected_model_behavior' })
      expect(hasRun).toBe(false)
    },
  )

  test('PR-32 a call that the server has answered itself does not wait', async () => {
    const [, shell] = items
    const output = { type: 'shell_call_output', id: 'o', call_id: 'c', output: [] }
    const message = { type: 'message', id: 'm', role: 'assistant', content: [{ type: 'output_text', text: 'Done.' }] }
    const { turn } = await turnOf(responses, reply(shell, output, message))
    expect(textOf(turn.entry.parts)).toBe('Done.')
  })
})
