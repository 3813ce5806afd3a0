import { createOpenAI } from '@ai-sdk/openai'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { ScriptedModel } from 'thinharness/testing'
import type { HandlerOptions } from 'thinharness/ui'
import { readFrames } from '#adapters/ui/client/frames.js'
import { served } from '../support/served.js'
import { URL_OF } from './client.js'

const integer = z.number().int()
const text = z.string()
const status = z.enum(['in_progress', 'completed', 'incomplete'])

/** The items, events and the response of the specification of 2026-04-24, as far as they are written here. */
const INPUT = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('input_text'), text }),
  z.strictObject({ type: z.literal('input_image'), image_url: text, detail: z.enum(['low', 'high', 'auto']) }),
  z.strictObject({ type: z.literal('input_file'), filename: text.optional(), file_url: text.optional() }),
])
const OUTPUT_TEXT = z.strictObject({
  ...{ type: z.literal('output_text'), text, annotations: z.array(z.never()), logprobs: z.array(z.never()) },
})
const SUMMARY = z.strictObject({ type: z.literal('summary_text'), text })
const ITEM = z.discriminatedUnion('type', [
  z.strictObject({
    ...{ type: z.literal('message'), id: text, status, role: z.enum(['user', 'assistant']) },
    content: z.array(z.union([OUTPUT_TEXT, INPUT])),
  }),
  z.strictObject({
    ...{ type: z.literal('function_call'), id: text, call_id: text, name: text, arguments: text, status },
  }),
  z.strictObject({
    ...{ type: z.literal('function_call_output'), id: text, call_id: text, status },
    output: z.union([text, z.array(INPUT)]),
  }),
  z.strictObject({ type: z.literal('reasoning'), id: text, summary: z.array(SUMMARY) }),
])
const RESPONSE = z.strictObject({
  ...{ id: text, object: z.literal('response'), created_at: integer, completed_at: integer.nullable(), status: text },
  ...{ incomplete_details: z.strictObject({ reason: text }).nullable(), model: text, instructions: text.nullable() },
  ...{ previous_response_id: text.nullable(), output: z.array(ITEM) },
  error: z.strictObject({ code: text, message: text }).nullable(),
  tools: z.array(
    z.strictObject({
      ...{ type: z.literal('function'), name: text, description: text.nullable(), strict: z.boolean().nullable() },
      parameters: z.record(text, z.unknown()).nullable(),
    }),
  ),
  ...{ tool_choice: z.enum(['none', 'auto', 'required']), truncation: z.enum(['auto', 'disabled']) },
  ...{
    parallel_tool_calls: z.boolean(),
    text: z.strictObject({ format: z.strictObject({ type: z.literal('text') }) }),
  },
  ...{ top_p: z.number(), presence_penalty: z.number(), frequency_penalty: z.number(), top_logprobs: integer },
  ...{ temperature: z.number(), reasoning: z.null(), max_output_tokens: integer.nullable() },
  usage: z
    .strictObject({
      ...{ input_tokens: integer, output_tokens: integer, total_tokens: integer },
      input_tokens_details: z.strictObject({ cached_tokens: integer }),
      output_tokens_details: z.strictObject({ reasoning_tokens: integer }),
    })
    .nullable(),
  ...{ max_tool_calls: integer.nullable(), store: z.boolean(), background: z.boolean(), service_tier: text },
  ...{ metadata: z.record(text, text), safety_identifier: text.nullable(), prompt_cache_key: text.nullable() },
})

const event = <Name extends string, Shape extends z.ZodRawShape>(name: Name, shape: Shape) =>
  z.strictObject({ type: z.literal(`response.${name}` as const), sequence_number: integer, ...shape })
const whole = { output_index: integer, item: ITEM }
const place = { item_id: text, output_index: integer }
const ofText = { ...place, content_index: integer }
const ofSummary = { ...place, summary_index: integer }
const logprobs = z.array(z.never())
const EVENT = z.discriminatedUnion('type', [
  event('created', { response: RESPONSE }),
  event('in_progress', { response: RESPONSE }),
  event('completed', { response: RESPONSE }),
  event('incomplete', { response: RESPONSE }),
  event('failed', { response: RESPONSE }),
  event('output_item.added', whole),
  event('output_item.done', whole),
  event('content_part.added', { ...ofText, part: OUTPUT_TEXT }),
  event('content_part.done', { ...ofText, part: OUTPUT_TEXT }),
  event('output_text.delta', { ...ofText, delta: text, logprobs }),
  event('output_text.done', { ...ofText, text, logprobs }),
  event('reasoning_summary_part.added', { ...ofSummary, part: SUMMARY }),
  event('reasoning_summary_part.done', { ...ofSummary, part: SUMMARY }),
  event('reasoning_summary_text.delta', { ...ofSummary, delta: text }),
  event('reasoning_summary_text.done', { ...ofSummary, text }),
  event('function_call_arguments.delta', { ...place, delta: text }),
  // The name is a member of the newer events of OpenAI.
  event('function_call_arguments.done', { ...place, arguments: text, name: text }),
])

const PIXEL =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

const said = (role: string, content: unknown): object => ({ type: 'message', role, content })

/** The requests of the public compliance tests. */
const REQUESTS: Readonly<Record<string, readonly object[]>> = {
  'a text': [said('user', 'Say hello in three words.')],
  'a message of the system': [said('system', 'Speak like a pirate.'), said('user', 'Say hello.')],
  'an image': [
    said('user', [
      { type: 'input_text', text: 'What is this?' },
      { type: 'input_image', image_url: PIXEL },
    ]),
  ],
  'several turns': [said('user', 'My name is Ada.'), said('assistant', 'Hello Ada!'), said('user', 'What is my name?')],
}

async function post(
  body: object,
  model: ScriptedModel,
  options: Pick<HandlerOptions, 'clientTools'> = {},
): Promise<Response> {
  const { responses } = served('harness', model, options)
  const response = await responses(
    new Request(`${URL_OF}/responses`, { method: 'POST', body: JSON.stringify({ model: 'agent', ...body }) }),
  )
  expect(response.status).toBe(200)
  return response
}

async function eventsOf(response: Response): Promise<readonly z.infer<typeof EVENT>[]> {
  const events: z.infer<typeof EVENT>[] = []
  if (response.body === null) throw new Error('There is no body.')
  for await (const { data, event: name } of readFrames(response.body)) {
    if (data === '[DONE]') continue
    const parsed = EVENT.parse(JSON.parse(data))
    expect(parsed.type).toBe(name)
    events.push(parsed)
  }
  return events
}

test.each(Object.entries(REQUESTS))('OR-05 a request of the compliance tests passes: %s', async (_, input) => {
  const model = (): ScriptedModel => new ScriptedModel().says('Hello there, friend.')
  const response = RESPONSE.parse(await (await post({ input }, model())).json())
  expect(response).toMatchObject({ status: 'completed', output: [{ type: 'message' }] })
  const events = await eventsOf(await post({ input, stream: true }, model()))
  expect(events.at(-1)).toMatchObject({ type: 'response.completed', response: { output: [{ type: 'message' }] } })
})

test('OR-03 OR-05 the requests of the compliance tests with tools of the client pass with `clientTools`', async () => {
  const tools = [{ type: 'function', name: 'get_weather', description: 'The weather.', parameters: { type: 'object' } }]
  const body = { input: [said('user', 'What is the weather?')], tools }
  const model = (): ScriptedModel => new ScriptedModel().calls('get_weather', { place: 'Rome' })
  const on = { clientTools: true }
  const response = RESPONSE.parse(await (await post(body, model(), on)).json())
  expect(response.output).toMatchObject([{ type: 'function_call', name: 'get_weather' }])
  const events = await eventsOf(await post({ ...body, stream: true }, model(), on))
  const types = events.map(({ type }) => type)
  expect(types).toContain('response.function_call_arguments.delta')
  expect(types).toContain('response.function_call_arguments.done')
})

test('OR-01 every event and item of a run of all kinds has the form of the specification', async () => {
  const model = new ScriptedModel()
    .replies({ reasoning: 'Hm.', text: 'Looking.', calls: [{ name: 'look' }, { name: 'pay' }] })
    .says('Done.')
  const events = await eventsOf(await post({ input: 'Look and pay.', stream: true }, model))
  expect(events.at(-1)).toMatchObject({ type: 'response.incomplete' })
})

test('OR-01 the provider of the AI SDK reads a stream: reasoning, calls and text', async () => {
  const model = new ScriptedModel().replies({ reasoning: 'Hm.', calls: [{ name: 'look' }] }).says('Done.')
  const { responses } = served('harness', model)
  const provider = createOpenAI({
    ...{ apiKey: 'none', baseURL: URL_OF },
    fetch: (url, init) => responses(new Request(url, init)),
  })
  const { stream } = await provider.responses('agent').doStream({
    prompt: [{ role: 'user', content: [{ type: 'text', text: 'Look.' }] }],
  })
  const parts: { readonly type: string }[] = []
  for await (const part of stream) parts.push(part)
  const deltas = parts.filter(({ type }) => type === 'text-delta').map((part) => (part as { delta?: string }).delta)
  expect(deltas.join('')).toBe('Done.')
  const types = parts.map(({ type }) => type)
  expect(types).toContain('tool-call')
  expect(types).toContain('reasoning-delta')
  expect(types).not.toContain('error')
  expect(parts.at(-1)).toMatchObject({ type: 'finish' })
})
