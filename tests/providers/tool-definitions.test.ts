import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { Harness } from 'thinharness'
import type { HarnessOptions, Model, TranscriptEntry } from 'thinharness'
import type { ToolDefinition } from '#core/model-session.js'
import { fallback } from 'thinharness/models'
import { anthropic, openai } from 'thinharness/providers'
import { deferred, toolSearch } from 'thinharness/tools'
import { responsesFormat } from '#providers/openai/request.js'
import type { JsonObject } from '#util/json.js'
import { expectValidRequest } from '../support/request-schemas.js'
import { format } from './anthropic/support.js'
import { DIALECTS, formatOf } from './chat/wire.js'
import { tool } from '../harness/support.js'

const CLOSED = {
  type: 'object',
  properties: { city: { type: 'string', minLength: 2 }, days: { type: 'integer' } },
  required: ['city', 'days'],
  additionalProperties: false,
} as const
const WEATHER: ToolDefinition = { name: 'weather', description: 'The weather.', parameters: CLOSED }

const APIS = ['anthropic', 'older anthropic', 'openai', 'chat'] as const
type Api = (typeof APIS)[number]

/** The tools of a request to an API, which its published schema accepts. */
function wired(api: Api, tools: readonly ToolDefinition[]): readonly JsonObject[] {
  const constants = { instructions: '', tools, structuredOutput: null, settings: {} }
  const messages = [{ role: 'user', content: 'x' }]
  const head = FORMATS[api].head(constants)
  if (api === 'openai') expectValidRequest('openai-responses', { ...head, input: 'x' })
  else if (api === 'chat') expectValidRequest('openai-chat', { ...head, messages })
  else expectValidRequest('anthropic-messages', { ...head, messages }, { version: '2023-06-01' })
  return head['tools'] as readonly JsonObject[]
}

const FORMATS = {
  anthropic: format({ id: 'claude-sonnet-5' }),
  'older anthropic': format({ id: 'claude-sonnet-4-0' }),
  openai: responsesFormat('gpt-5.5'),
  chat: formatOf(DIALECTS.openai),
}

describe('a strict tool', () => {
  test.each(APIS)('is sent as such where the provider enforces schemas: %s', (api) => {
    const [sent] = wired(api, [{ ...WEATHER, strict: true }])
    const fields = api === 'chat' ? (sent?.['function'] as JsonObject) : sent
    if (api === 'older anthropic') expect(fields).not.toHaveProperty('strict')
    else expect(fields).toMatchObject({ strict: true })
    // What is enforced is not the whole schema.
    const schema = JSON.stringify(fields?.['input_schema'] ?? fields?.['parameters'])
    if (api !== 'older anthropic') expect(schema).not.toContain('"minLength":2')
  })

  test.each<[string, ToolDefinition['parameters']]>([
    ['has optional fields', { ...CLOSED, required: ['city'] }],
    ['is a map', { type: 'object', additionalProperties: { type: 'string' } }],
    ['takes anything', { ...CLOSED, properties: { city: {}, days: {} } }],
  ])('is sent as any other if its schema %s', (_name, parameters) => {
    expect(wired('openai', [{ ...WEATHER, parameters, strict: true }])).toEqual(
      wired('openai', [{ ...WEATHER, parameters }]),
    )
    expect(wired('anthropic', [{ ...WEATHER, parameters, strict: true }])).toEqual(
      wired('anthropic', [{ ...WEATHER, parameters }]),
    )
  })
})

test('examples have a field where the provider has one, and stand in the description elsewhere', () => {
  const examples = [{ city: 'Bern', days: 2 }]
  const described = 'The weather.\n\nExamples of arguments:\n- {"city":"Bern","days":2}'
  expect(wired('anthropic', [{ ...WEATHER, examples }])).toMatchObject([
    { description: 'The weather.', input_examples: examples },
  ])
  expect(wired('openai', [{ ...WEATHER, examples }])).toMatchObject([{ description: described }])
  expect(wired('chat', [{ ...WEATHER, examples }])).toMatchObject([{ function: { description: described } }])
  expect(wired('chat', [{ ...WEATHER, description: '', examples }])).toMatchObject([
    { function: { description: 'Examples of arguments:\n- {"city":"Bern","days":2}' } },
  ])
})

describe('deferred tools are sent with the search of the provider', () => {
  const tools = [{ ...WEATHER, name: 'found', deferred: true }, WEATHER]

  test('of Anthropic, behind the tools of the prompt and their cache mark', () => {
    expect(wired('anthropic', tools)).toEqual([
      { name: 'weather', description: 'The weather.', input_schema: CLOSED },
      { type: 'tool_search_tool_bm25_20251119', name: 'tool_search_tool_bm25', cache_control: { type: 'ephemeral' } },
      { name: 'found', description: 'The weather.', input_schema: CLOSED, defer_loading: true },
    ])
  })

  test('of OpenAI', () => {
    expect(wired('openai', tools)).toMatchObject([
      { type: 'function', name: 'found', defer_loading: true },
      { type: 'function', name: 'weather' },
      { type: 'tool_search' },
    ])
  })
})

test.each<[string, Model, string | undefined]>([
  ['claude-sonnet-5', anthropic('claude-sonnet-5', { apiKey: 'k' }), 'definitions'],
  ['claude-haiku-4-5', anthropic('claude-haiku-4-5', { apiKey: 'k' }), 'definitions'],
  ['claude-sonnet-4-0', anthropic('claude-sonnet-4-0', { apiKey: 'k' }), undefined],
  ['gpt-5.5', openai('gpt-5.5', { apiKey: 'k' }), 'parameters'],
  ['gpt-5.4-mini', openai('gpt-5.4-mini', { apiKey: 'k' }), 'parameters'],
  ['gpt-5.10', openai('gpt-5.10', { apiKey: 'k' }), 'parameters'],
  ['gpt-6', openai('gpt-6', { apiKey: 'k' }), 'parameters'],
  ['gpt-5.3', openai('gpt-5.3', { apiKey: 'k' }), undefined],
  ['gpt-4.1', openai('gpt-4.1', { apiKey: 'k' }), undefined],
  ['a setting', openai('gpt-5.5', { apiKey: 'k', capabilities: { toolSearch: 'none' } }), 'none'],
  [
    'two of one kind',
    fallback([anthropic('claude-sonnet-5', { apiKey: 'k' }), anthropic('claude-opus-5', { apiKey: 'k' })]),
    'definitions',
  ],
  [
    'two of two kinds',
    fallback([anthropic('claude-sonnet-5', { apiKey: 'k' }), openai('gpt-5.5', { apiKey: 'k' })]),
    'parameters',
  ],
  [
    'one without',
    fallback([anthropic('claude-sonnet-5', { apiKey: 'k' }), openai('gpt-4.1', { apiKey: 'k' })]),
    'none',
  ],
])('the search that a model has: %s', (_name, { capabilities }, kind) => {
  expect(capabilities.toolSearch).toBe(kind)
})

interface Recording {
  readonly response: { readonly sse?: string; readonly body?: JsonObject; readonly headers: Record<string, string> }
}

const recorded = (path: string): Recording =>
  JSON.parse(readFileSync(new URL(`../fixtures/provider-cases/${path}`, import.meta.url), 'utf8')) as Recording

/** A `fetch` that answers with a recording first, then with `rest`; and the bodies that it was sent. */
function playing(
  { response }: Recording,
  rest: JsonObject,
): { readonly fetch: typeof fetch; readonly bodies: JsonObject[] } {
  const bodies: JsonObject[] = []
  const answer: typeof fetch = async (_url, init) => {
    bodies.push((await new Response(init?.body).json()) as JsonObject)
    if (bodies.length > 1) return Response.json(rest)
    const text = response.sse ?? JSON.stringify(response.body)
    const type = response.sse === undefined ? 'application/json' : 'text/event-stream'
    return new Response(text, { headers: { 'content-type': type } })
  }
  return { fetch: answer, bodies }
}

const DONE = {
  type: 'message',
  id: 'msg_2',
  role: 'assistant',
  model: 'claude-sonnet-4-6',
  content: [{ type: 'text', text: 'It is 0.9.' }],
  stop_reason: 'end_turn',
  usage: { input_tokens: 1, output_tokens: 1 },
}

/** A run whose first reply is the recording of a search by Anthropic, with its bodies. */
async function searchedRun(options: Partial<HarnessOptions> = {}, history?: readonly TranscriptEntry[]) {
  const { fetch, bodies } = playing(recorded('anthropic-messages/stream-server-block-tool-search-01.json'), DONE)
  const calls: unknown[] = []
  const rate = deferred(tool('get_exchange_rate', (args) => (calls.push(args), '0.9')))
  const model = anthropic('claude-sonnet-4-6', { apiKey: 'k', fetch })
  const harness = new Harness({
    model,
    builtinTools: [],
    tools: [rate, deferred(tool('stock_lookup'))],
    use: [toolSearch()],
    ...options,
  })
  const stream = harness.stream('What is the rate?', { deltas: true, ...(history !== undefined && { history }) })
  const result = await stream.result
  return { result, bodies, calls }
}

const blocksOf = (body: JsonObject | undefined): readonly JsonObject[] =>
  (body?.['messages'] as readonly JsonObject[]).flatMap(({ content }) =>
    Array.isArray(content) ? (content as JsonObject[]) : [],
  )

describe('a search by Anthropic', () => {
  const SEARCHED = [
    {
      type: 'server_tool_use',
      id: 'srvtoolu_01S5swZdBmTzLDVzwcT5LbHp',
      name: 'tool_search_tool_bm25',
      input: { query: 'USD EUR exchange rate currency conversion' },
    },
    {
      type: 'tool_search_tool_result',
      tool_use_id: 'srvtoolu_01S5swZdBmTzLDVzwcT5LbHp',
      content: {
        type: 'tool_search_tool_search_result',
        tool_references: [{ type: 'tool_reference', tool_name: 'get_exchange_rate' }],
      },
    },
  ]

  test('finds a tool, whose call is run, and is sent back as it came', async () => {
    const { result, bodies, calls } = await searchedRun()
    expect([result.text, calls]).toEqual(['It is 0.9.', [{ from_currency: 'USD', to_currency: 'EUR' }]])
    for (const body of bodies) expectValidRequest('anthropic-messages', body, { version: '2023-06-01' })
    expect((bodies[0]?.['tools'] as readonly JsonObject[]).map(({ name }) => name)).toEqual([
      'tool_search_tool_bm25',
      'get_exchange_rate',
      'stock_lookup',
    ])
    expect(JSON.stringify(bodies[1]?.['tools'])).toBe(JSON.stringify(bodies[0]?.['tools']))
    expect(blocksOf(bodies[1])).toEqual(expect.arrayContaining(SEARCHED))
  })

  const furtherBody = async (options: Partial<HarnessOptions>): Promise<JsonObject | undefined> => {
    const { result } = await searchedRun()
    const { bodies } = await searchedRun(options, result.transcript)
    const [body] = bodies
    expectValidRequest('anthropic-messages', body, { version: '2023-06-01' })
    return body
  }

  test('is sent back without a tool that is gone, which the API would reject', async () => {
    const body = await furtherBody({ tools: [deferred(tool('stock_lookup'))] })
    const blocks = JSON.stringify(blocksOf(body))
    expect(blocks).toContain('"tool_references":[]')
    expect(blocks).not.toContain('tool_reference"')
  })

  test('is left out where nothing is deferred for the provider', async () => {
    const body = await furtherBody({ use: [toolSearch({ hosted: false })] })
    expect((body?.['tools'] as readonly JsonObject[]).map(({ name }) => name)).toEqual(['search_tools', 'call_tool'])
    expect(JSON.stringify(body?.['messages'])).not.toMatch(/tool_search_tool|server_tool_use/)
  })
})

test('a search by OpenAI is sent back as it came', async () => {
  const recording = recorded('openai-responses/json-hosted-tool-search-01.json')
  const { fetch, bodies } = playing(recording, recording.response.body ?? {})
  const model = openai('gpt-5.4', { apiKey: 'k', fetch })
  const harness = new Harness({
    model,
    builtinTools: [],
    tools: [deferred(tool('get_exchange_rate'))],
    use: [toolSearch()],
  })
  const first = await harness.run('Load the tool.')
  await harness.run('And now?', { history: first.transcript })
  for (const body of bodies) expectValidRequest('openai-responses', body)
  expect(bodies[0]?.['tools']).toMatchObject([
    { name: 'get_exchange_rate', defer_loading: true },
    { type: 'tool_search' },
  ])
  const types = (list: unknown): readonly unknown[] => (list as readonly JsonObject[]).map(({ type }) => type)
  expect(types(recording.response.body?.['output'])).toEqual(['tool_search_call', 'tool_search_output', 'message'])
  expect(types(bodies[1]?.['input']).slice(1, 3)).toEqual(['tool_search_call', 'tool_search_output'])
})
