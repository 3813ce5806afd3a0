import { describe, expect, test } from 'vitest'
import type { RequestConstants } from '#core/model-session.js'
import type { ProviderOptions } from '#providers/http/options.js'
import { bodyOf, constants, DIALECTS, formatOf, user } from './wire.js'

const TOOL = {
  name: 'look',
  description: 'Looks.',
  parameters: { type: 'object', properties: { at: { type: 'string' } } },
} as const
const WIRE_TOOL = { type: 'function', function: { ...TOOL } }
const OUTPUT = { name: 'final_result', schema: { type: 'object' }, strict: true } as const

function head(
  dialect: keyof typeof DIALECTS,
  given: Partial<RequestConstants> = {},
  options: ProviderOptions = {},
): unknown {
  return formatOf({ ...DIALECTS[dialect], cacheKeys: false }, options).head(constants(given))
}

describe('the shared part of all requests of a session', () => {
  test.each<[string, keyof typeof DIALECTS, Partial<RequestConstants>, ProviderOptions, object]>([
    ['RF-18 nothing except the model', 'compatible', {}, {}, {}],
    ['tools', 'compatible', { tools: [TOOL] }, {}, { tools: [WIRE_TOOL] }],
    [
      'a tool without description and parameters',
      'openai',
      { tools: [{ name: 'look', description: '', parameters: { type: 'object' } }] },
      {},
      { tools: [{ type: 'function', function: { name: 'look', parameters: { type: 'object', properties: {} } } }] },
    ],
    [
      'a tool whose parameters may be null: at the root only an object is taken',
      'openai',
      { tools: [{ ...TOOL, parameters: { type: ['object', 'null'] } }] },
      {},
      { tools: [{ type: 'function', function: { ...TOOL, parameters: { type: 'object', properties: {} } } }] },
    ],
    ['a tool choice without tools', 'compatible', { settings: { toolChoice: 'required' } }, {}, {}],
    [
      'the choice that is the default',
      'compatible',
      { tools: [TOOL], settings: { toolChoice: 'auto' } },
      {},
      { tools: [WIRE_TOOL] },
    ],
    [
      'a choice',
      'compatible',
      { tools: [TOOL], settings: { toolChoice: { tool: 'look' } } },
      {},
      { tools: [WIRE_TOOL], tool_choice: { type: 'function', function: { name: 'look' } } },
    ],
    [
      'settings',
      'compatible',
      { settings: { maxOutputTokens: 9, temperature: 0, reasoningEffort: 'low' } },
      {},
      { max_tokens: 9, temperature: 0, reasoning_effort: 'low' },
    ],
    [
      'settings of OpenAI',
      'openai',
      { settings: { maxOutputTokens: 9, reasoningEffort: 'max' } },
      {},
      { max_completion_tokens: 9, reasoning_effort: 'max' },
    ],
    [
      'settings of OpenRouter',
      'openrouter',
      { settings: { reasoningEffort: 'none' } },
      {},
      { reasoning: { effort: 'none' } },
    ],
    [
      'settings, which win over the defaults of the model',
      'compatible',
      { settings: { temperature: 0 } },
      { temperature: 1, maxOutputTokens: 5, reasoningEffort: 'high' },
      { max_tokens: 5, temperature: 0, reasoning_effort: 'high' },
    ],
    [
      'extra fields, merged deeply, with settings last',
      'openrouter',
      {
        settings: {
          reasoningEffort: 'low',
          providerOptions: { here: { provider: { sort: 'price' } }, there: { n: 2 } },
        },
      },
      { extraBody: { reasoning: { exclude: true }, provider: { order: ['a'], sort: 'speed' }, model: 'other' } },
      { model: 'other', reasoning: { effort: 'low', exclude: true }, provider: { order: ['a'], sort: 'price' } },
    ],
    [
      'PR-14 the reply format, which wins over every other',
      'openrouter',
      { structuredOutput: OUTPUT, settings: { providerOptions: { here: { response_format: { type: 'text' } } } } },
      { extraBody: { response_format: { type: 'json_object', more: 1 } } },
      {
        response_format: {
          type: 'json_schema',
          json_schema: { name: 'final_result', schema: { type: 'object' }, strict: true },
        },
      },
    ],
    [
      'the format with its description',
      'openai',
      { structuredOutput: { ...OUTPUT, strict: false, description: 'The answer.' } },
      {},
      {
        response_format: {
          type: 'json_schema',
          json_schema: { name: 'final_result', description: 'The answer.', schema: { type: 'object' }, strict: false },
        },
      },
    ],
  ])('%s (%s)', (_name, dialect, given, options, expected) => {
    expect(head(dialect, given, options)).toEqual({ model: 'some-model', ...expected })
  })

  test('efforts in the words of the server', () => {
    const format = formatOf({ ...DIALECTS.compatible, efforts: { minimal: 'low' } })
    expect(format.head(constants({ settings: { reasoningEffort: 'minimal' } }))).toMatchObject({
      reasoning_effort: 'low',
    })
    expect(format.head(constants({ settings: { reasoningEffort: 'high' } }))).toMatchObject({
      reasoning_effort: 'high',
    })
  })

  test.each(['messages', 'stream', 'stream_options'])('`%s` is reserved for the adapter', (name) => {
    const fields = { [name]: [] }
    expect(() => head('compatible', {}, { extraBody: fields })).toThrow(`\`${name}\` cannot be set by \`extraBody\``)
    expect(() => head('compatible', { settings: { providerOptions: { here: fields } } })).toThrow(
      expect.objectContaining({
        code: 'invalid_options',
        message: expect.stringContaining('`providerOptions`') as string,
      }),
    )
  })
})

describe('the prompt cache', () => {
  const claude = { ...DIALECTS.openrouter, cacheMarks: true }
  const given = constants({ instructions: 'Be brief.' })

  test.each<[string, ProviderOptions['promptCache'], object]>([
    ['on', true, { type: 'ephemeral' }],
    ['on by default', undefined, { type: 'ephemeral' }],
    ['for minutes', { ttl: '5m' }, { type: 'ephemeral' }],
    ['for an hour', { ttl: '1h' }, { type: 'ephemeral', ttl: '1h' }],
  ])('for Claude it is %s: the instructions are marked, and the end of each request', (_name, promptCache, mark) => {
    const format = formatOf(claude, promptCache === undefined ? {} : { promptCache })
    expect(format.opening(given)).toEqual([
      { role: 'system', content: [{ type: 'text', text: 'Be brief.', cache_control: mark }] },
    ])
    expect(format.head(given)).toEqual({ model: 'some-model', cache_control: mark })
  })

  test.each([
    ['switched off', formatOf(claude, { promptCache: false })],
    ['of no use', formatOf(DIALECTS.openrouter)],
  ])('nothing is marked if it is %s', (_name, format) => {
    expect(format.opening(given)).toEqual([{ role: 'system', content: 'Be brief.' }])
    expect(format.head(given)).toEqual({ model: 'some-model' })
  })

  test('for OpenAI it is selected by a key, the same for requests with the same beginning', () => {
    const keyOf = (options: ProviderOptions, instructions = 'Be brief.') => {
      const { prompt_cache_key: key, prompt_cache_retention: time } = formatOf(DIALECTS.openai, options).head(
        constants({ instructions }),
      )
      return [key, time]
    }
    const [key] = keyOf({})
    expect(key).toMatch(/^[0-9a-f]{32}$/)
    expect(keyOf({})).toEqual([key, undefined])
    expect(keyOf({}, 'Be long.')).not.toEqual([key, undefined])
    expect(keyOf({ promptCache: { key: 'mine', ttl: '1h' } })).toEqual(['mine', '24h'])
    expect(keyOf({ promptCache: false })).toEqual([undefined, undefined])
  })
})

describe('the frame of a conversation', () => {
  test('RS-06 the instructions come first, in the role that the server expects', () => {
    const given = constants({ instructions: 'Be brief.' })
    expect(formatOf().opening(given)).toEqual([{ role: 'system', content: 'Be brief.' }])
    const developer = formatOf({ ...DIALECTS.openai, instructionsRole: 'developer' })
    expect(developer.opening(given)).toEqual([{ role: 'developer', content: 'Be brief.' }])
    expect(formatOf().opening(constants())).toEqual([])
  })

  test('a stream is requested with its usage, if the server supports that', () => {
    const tail = (dialect: keyof typeof DIALECTS, streamed: boolean, toolChoice?: 'none' | { tool: string }) => {
      return formatOf(DIALECTS[dialect]).tail({ streamed, toolChoice, previousResponseId: null }, constants())
    }
    expect(tail('compatible', true)).toEqual({ stream: true, stream_options: { include_usage: true } })
    expect(tail('mistral', true)).toEqual({ stream: true })
    expect(tail('compatible', false)).toEqual({})
    expect(tail('compatible', false, 'none')).toEqual({ tool_choice: 'none' })
    expect(tail('openai', false, { tool: 'look' })).toEqual({
      tool_choice: { type: 'function', function: { name: 'look' } },
    })
  })

  test('PR-13 the whole body has the form of the API', () => {
    const given = constants({ instructions: 'Be brief.', tools: [TOOL] })
    expect(bodyOf(formatOf(), [user('Hello')], given, true)).toEqual({
      model: 'some-model',
      tools: [WIRE_TOOL],
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'Hello' },
      ],
      stream: true,
      stream_options: { include_usage: true },
    })
  })
})
