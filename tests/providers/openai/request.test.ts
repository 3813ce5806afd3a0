import { describe, expect, test } from 'vitest'
import type { ModelSettings, RequestConstants } from '#core/model-session.js'
import { responsesFormat } from '#providers/openai/request.js'
import type { FormatOptions } from '#providers/openai/request.js'
import { isReasoningModel } from '#providers/openai/models.js'
import type { JsonObject } from '#util/json.js'
import { expectValidRequest } from '../../support/request-schemas.js'
import { NO_CONSTANTS } from './replies.js'

const SCHEMA = { type: 'object', properties: { q: { type: 'string' } }, required: ['q'], additionalProperties: false }
const LOOKUP = { name: 'lookup', description: 'Looks it up.', parameters: SCHEMA }
const ANSWER = { name: 'answer', schema: SCHEMA, strict: true }

/** The fields of a request except its input, which the API's schemas must accept. */
function head(
  constants: Partial<RequestConstants> = {},
  options: FormatOptions = {},
  { id = 'gpt-4.1', allow = [] }: { readonly id?: string; readonly allow?: readonly string[] } = {},
): JsonObject {
  const fields = responsesFormat(id, options).head({ ...NO_CONSTANTS, ...constants })
  expectValidRequest('openai-responses', { ...fields, input: 'x' }, { allow })
  // The types of the official client are closed: no vendor field fits.
  if (allow.length === 0) expectValidRequest('openai-responses-sdk', { ...fields, input: 'x' })
  return fields
}

function settings(given: ModelSettings): Partial<RequestConstants> {
  return { settings: given }
}

const noCache = { promptCache: false } as const

test('a request without instructions and tools has no fields for them', () => {
  expect(head({}, noCache)).toEqual({ model: 'gpt-4.1', store: false })
})

test('PR-06 instructions and tools are those of the run; `strict` is explicit', () => {
  expect(head({ instructions: 'Be brief.', tools: [LOOKUP] }, noCache)).toEqual({
    model: 'gpt-4.1',
    instructions: 'Be brief.',
    tools: [{ type: 'function', name: 'lookup', description: 'Looks it up.', parameters: SCHEMA, strict: false }],
    store: false,
  })
})

test.each<[JsonObject, JsonObject]>([
  [{ type: 'object' }, { type: 'object', properties: {} }],
  [{}, { type: 'object', properties: {} }],
  [SCHEMA, SCHEMA],
  [
    { type: ['object', 'null'], additionalProperties: true },
    { type: 'object', additionalProperties: true, properties: {} },
  ],
])('an object schema gets the `properties` that the API requires: %j', (parameters, sent) => {
  expect(head({ tools: [{ ...LOOKUP, parameters }] })['tools']).toMatchObject([{ parameters: sent }])
})

describe('settings', () => {
  test('those of the run win over those of the model', () => {
    const options = { maxOutputTokens: 100, temperature: 0.1, reasoningEffort: 'low' } as const
    const wanted = { maxOutputTokens: 200, temperature: 0.2, reasoningEffort: 'max' } as const

    expect(head({}, options, { id: 'o3' })).toMatchObject({
      max_output_tokens: 100,
      temperature: 0.1,
      reasoning: { effort: 'low' },
    })
    expect(head(settings(wanted), options, { id: 'o3' })).toMatchObject({
      max_output_tokens: 200,
      temperature: 0.2,
      reasoning: { effort: 'max' },
    })
  })

  test.each<[ModelSettings['toolChoice'], unknown]>([
    [undefined, undefined],
    ['auto', undefined],
    ['none', 'none'],
    ['required', 'required'],
    [{ tool: 'lookup' }, { type: 'function', name: 'lookup' }],
  ])('tool choice %j', (toolChoice, sent) => {
    const wanted = toolChoice === undefined ? {} : { toolChoice }

    expect(head({ tools: [LOOKUP], settings: wanted })['tool_choice']).toEqual(sent)
    expect(head(settings(wanted))['tool_choice'], 'without tools there is nothing to choose').toBeUndefined()
  })

  test('extra fields are merged deeply, settings of the run last; the included items add up', () => {
    const options = {
      extraBody: { reasoning: { summary: 'auto' }, top_p: 0.5, include: ['message.output_text.logprobs'] },
    }
    const run = settings({
      reasoningEffort: 'high',
      providerOptions: {
        openai: { text: { verbosity: 'low' }, top_p: 0.9, include: ['web_search_call.results'] },
        anthropic: { top_k: 3 },
      },
    })

    expect(head(run, { ...options, ...noCache }, { id: 'gpt-5.5' })).toEqual({
      model: 'gpt-5.5',
      store: false,
      include: ['reasoning.encrypted_content', 'message.output_text.logprobs', 'web_search_call.results'],
      reasoning: { effort: 'high', summary: 'auto' },
      top_p: 0.9,
      text: { verbosity: 'low' },
    })
  })

  test('a vendor field is passed on', () => {
    const fields = head(
      {},
      { extraBody: { search_parameters: { mode: 'on' } }, ...noCache },
      { id: 'grok-4.3', allow: ['search_parameters'] },
    )

    expect(fields).toEqual({ model: 'grok-4.3', store: false, search_parameters: { mode: 'on' } })
  })

  test.each(['input', 'stream'])('`%s` cannot be set through extra fields', (name) => {
    const message = `\`${name}\` cannot be set by \`extraBody\` or \`providerOptions\`: the adapter writes it.`

    expect(() => head({}, { extraBody: { [name]: true } })).toThrow(message)
    expect(() => head(settings({ providerOptions: { openai: { [name]: true } } }))).toThrow(message)
  })
})

describe('structured output', () => {
  test("PR-11 the harness's own format wins over any other, and the rest of `text` is kept", () => {
    const options = { extraBody: { text: { format: { type: 'text', extra: 1 }, verbosity: 'low' } } }

    expect(head({ structuredOutput: { ...ANSWER, description: 'It.' } }, options)['text']).toEqual({
      format: { type: 'json_schema', name: 'answer', schema: SCHEMA, strict: true, description: 'It.' },
      verbosity: 'low',
    })
  })

  test('it wins over an invalid `text`', () => {
    expect(head({ structuredOutput: ANSWER }, { extraBody: { text: null } })['text']).toEqual({
      format: { type: 'json_schema', name: 'answer', schema: SCHEMA, strict: true },
    })
  })
})

describe('caching', () => {
  const run = { instructions: 'Be brief.', tools: [LOOKUP] }

  test('requests with the same beginning have the same key, others another', () => {
    const key = head(run)['prompt_cache_key']

    expect(key).toMatch(/^[0-9a-f]{32}$/)
    expect(head({ ...run, settings: { temperature: 1 } })['prompt_cache_key']).toBe(key)
    expect(head({ ...run, instructions: 'Be long.' })['prompt_cache_key']).not.toBe(key)
    expect(head({ ...run, tools: [] })['prompt_cache_key']).not.toBe(key)
  })

  test.each<[FormatOptions['promptCache'], JsonObject]>([
    [false, {}],
    [{ key: 'mine' }, { prompt_cache_key: 'mine' }],
    [{ key: 'mine', ttl: '5m' }, { prompt_cache_key: 'mine' }],
    [
      { key: 'mine', ttl: '1h' },
      { prompt_cache_key: 'mine', prompt_cache_retention: '24h' },
    ],
  ])('%j', (promptCache, fields) => {
    expect(head({}, promptCache === undefined ? {} : { promptCache })).toEqual({
      model: 'gpt-4.1',
      store: false,
      ...fields,
    })
  })
})

describe('reasoning models', () => {
  test.each<[string, boolean | null]>([
    ['gpt-5-mini', true],
    ['o3-mini', true],
    ['o1', true],
    ['gpt-5.1', true],
    ['openai.gpt-oss-120b-1:0', true],
    ['gpt-4.1-mini', false],
    ['gpt-4o', false],
    ['gpt-5-chat', false],
    ['gpt-5.3-chat-latest', false],
  ])('RF-20 reasoning models are recognized by their names: %s, %s', (id, reasons) => {
    expect(isReasoningModel(id)).toBe(reasons)
  })

  test.each<[string, boolean | null]>([
    ['gpt-5', true],
    ['gpt-5-chat-latest', false],
    ['gpt-5.1-chat-latest', true],
    ['gpt-5.6-sol', true],
    ['gpt-6', true],
    ['gpt-10-mini', true],
    ['openai/GPT-5.5', true],
    ['ft:gpt-4.1-mini:me::1', false],
    ['ft:o4-mini:me', true],
    ['gpt-oss-120b', true],
    ['us.openai.gpt-oss-20b-1:0', true],
    ['bedrock/openai.gpt-oss-safeguard-20b', true],
    ['openai.gpt-4.1', false],
    ['codex-mini-latest', true],
    ['chatgpt-4o-latest', false],
    ['gpt-3.5-turbo', false],
    ['gpt-35-turbo', false],
    ['openchat-7b', null],
    ['grok-4.3', null],
    ['my-deployment', null],
  ])('declared and unknown models: %s, %s', (id, reasons) => {
    expect(isReasoningModel(id)).toBe(reasons)
  })

  test('RF-01 RF-17 a reasoning model is asked for its encrypted reasoning, which is the only difference in the request', () => {
    const [plain, reasons] = [head({}, {}, { id: 'gpt-4.1' }), head({}, {}, { id: 'o3' })]

    expect(reasons).toEqual({ ...plain, model: 'o3', include: ['reasoning.encrypted_content'] })
  })

  test('declared capabilities of a model win over its name', () => {
    const include = ['reasoning.encrypted_content']

    expect(head({}, { capabilities: { reasoningEfforts: ['low'] } }, { id: 'my-deployment' })).toMatchObject({
      include,
    })
    expect(head({}, { capabilities: { reasoningEfforts: [] } }, { id: 'o3' })).not.toHaveProperty('include')
  })
})

test('PR-04 a server that stores the conversation is asked to store, and receives the previous response id', () => {
  const format = responsesFormat('gpt-5.5', { chain: true })

  expect(format.head(NO_CONSTANTS)).toMatchObject({ store: true, include: ['reasoning.encrypted_content'] })
  expect(format.tail({ streamed: true, toolChoice: undefined, previousResponseId: 'resp_1' }, NO_CONSTANTS)).toEqual({
    previous_response_id: 'resp_1',
    stream: true,
  })
})

test('differences between requests are at their end', () => {
  const format = responsesFormat('gpt-5.5')

  expect(format.tail({ streamed: false, toolChoice: undefined, previousResponseId: null }, NO_CONSTANTS)).toEqual({})
  expect(
    format.tail({ streamed: true, toolChoice: { tool: 'lookup' }, previousResponseId: null }, NO_CONSTANTS),
  ).toEqual({
    tool_choice: { type: 'function', name: 'lookup' },
    stream: true,
  })
})
