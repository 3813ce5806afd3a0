import { describe, expect, test } from 'vitest'
import type { ModelSettings, RequestConstants } from 'thinharness'
import type { ReasoningEffort, ToolChoice } from '#core/model-session.js'
import type { MessagesRequestOptions } from '#providers/anthropic/request.js'
import type { JsonObject } from '#util/json.js'
import { expectValidRequest } from '../../support/request-schemas.js'
import { bodyOf, CONSTANTS, errorOf, format, user } from './support.js'

const EPHEMERAL = { type: 'ephemeral' }
const HOUR = { type: 'ephemeral', ttl: '1h' }

const read = {
  name: 'read',
  description: 'Reads.',
  parameters: { type: 'object', properties: { path: { type: 'string' } } },
}
const list = { name: 'list', description: '', parameters: {} }

/** The whole body of a request that says "Hi", checked against the schema of its version. */
function body(
  constants: Partial<RequestConstants> = {},
  options: Partial<MessagesRequestOptions> = {},
  tail: { streamed?: boolean; toolChoice?: ToolChoice } = {},
): JsonObject {
  const made = bodyOf(format(options), [user('Hi')], { ...CONSTANTS, ...constants }, tail)
  expectValidRequest('anthropic-messages', made, { version: options.version ?? '2023-06-01' })
  return made
}

const BARE = { model: 'claude-sonnet-5', max_tokens: 16_384, messages: [{ role: 'user', content: 'Hi' }] }

test('a request holds no empty fields', () => {
  expect(body({}, { defaults: { promptCache: false } })).toEqual(BARE)
})

test('RF-18 a request holds instructions and tools, with a cache breakpoint after each and after the conversation', () => {
  expect(body({ instructions: 'Be brief.', tools: [list, read] })).toEqual({
    ...BARE,
    system: [{ type: 'text', text: 'Be brief.', cache_control: EPHEMERAL }],
    tools: [
      { name: 'list', input_schema: { type: 'object', properties: {} } },
      { name: 'read', description: 'Reads.', input_schema: read.parameters, cache_control: EPHEMERAL },
    ],
    cache_control: EPHEMERAL,
  })
})

describe('prompt caching', () => {
  const constants = { instructions: 'Be brief.', tools: [read] }

  /** The end of the cached part. */
  function marks({ system, tools, cache_control }: JsonObject): unknown {
    const [tool] = tools as readonly JsonObject[]
    return [
      typeof system === 'string' ? undefined : (system as readonly JsonObject[])[0]?.['cache_control'],
      tool?.['cache_control'],
      cache_control,
    ]
  }

  test.each<[string, Partial<MessagesRequestOptions>, unknown[]]>([
    ['is on by default', {}, [EPHEMERAL, EPHEMERAL, EPHEMERAL]],
    ['may be told to be on', { defaults: { promptCache: true } }, [EPHEMERAL, EPHEMERAL, EPHEMERAL]],
    ['may last an hour', { defaults: { promptCache: { ttl: '1h' } } }, [HOUR, HOUR, HOUR]],
    ['lasts five minutes unless told', { defaults: { promptCache: { ttl: '5m' } } }, [EPHEMERAL, EPHEMERAL, EPHEMERAL]],
    ['may be off', { defaults: { promptCache: false } }, [undefined, undefined, undefined]],
    [
      'has no mark at the top for a host that refuses it',
      { automaticCaching: false },
      [EPHEMERAL, EPHEMERAL, undefined],
    ],
  ])('%s', (_name, options, wanted) => {
    expect(marks(body(constants, options))).toEqual(wanted)
  })
})

describe('settings', () => {
  test.each<[string, ModelSettings, Partial<MessagesRequestOptions>, JsonObject]>([
    ['the limit of a reply', { maxOutputTokens: 5 }, {}, { max_tokens: 5 }],
    ['the limit of the model', {}, { defaults: { maxOutputTokens: 6 } }, { max_tokens: 6 }],
    ['settings win over options', { maxOutputTokens: 5 }, { defaults: { maxOutputTokens: 6 } }, { max_tokens: 5 }],
    ['temperature', { temperature: 0 }, { defaults: { temperature: 1 } }, { temperature: 0 }],
    ['temperature of the model', {}, { defaults: { temperature: 0.5 } }, { temperature: 0.5 }],
    ['extra fields', {}, { defaults: { extraBody: { top_k: 3 } } }, { top_k: 3 }],
    [
      'extra fields are merged deeply, other values are replaced, and settings win',
      {
        providerOptions: { anthropic: { metadata: { user_id: 'b' }, stop_sequences: ['x'] }, openai: { store: true } },
      },
      { defaults: { extraBody: { metadata: { user_id: 'a' }, stop_sequences: ['y', 'z'], service_tier: 'auto' } } },
      { metadata: { user_id: 'b' }, stop_sequences: ['x'], service_tier: 'auto' },
    ],
    ['extra fields may override base fields', {}, { defaults: { extraBody: { max_tokens: 7 } } }, { max_tokens: 7 }],
  ])('%s', (_name, settings, { defaults }, wanted) => {
    const made = body({ settings }, { defaults: { promptCache: false, ...defaults } })

    expect(made).toEqual({ ...BARE, ...wanted })
  })

  test('metadata of a run is not sent', () => {
    expect(body()).not.toHaveProperty('metadata')
  })

  test.each(['messages', 'stream'])('extra fields cannot set `%s`', (name) => {
    const error = errorOf(() => body({}, { defaults: { extraBody: { [name]: [] } } }))

    expect(error).toMatchObject({ code: 'invalid_options', message: expect.stringContaining(`\`${name}\``) as string })
  })

  test('version 2026-10-21 supports no temperature, and all other fields are valid for it', () => {
    const version = '2026-10-21'
    const settings = { reasoningEffort: 'high' } as const
    expect(body({ instructions: 'x', tools: [read, list], settings }, { version })).toMatchObject(BARE)

    const error = errorOf(() => body({ settings: { temperature: 1 } }, { version }))
    expect(error).toMatchObject({
      code: 'invalid_options',
      message: expect.stringContaining('`temperature`') as string,
    })
  })
})

describe('tool choice', () => {
  test.each<[ToolChoice, JsonObject | undefined]>([
    ['auto', undefined],
    ['none', { type: 'none' }],
    ['required', { type: 'any' }],
    [{ tool: 'read' }, { type: 'tool', name: 'read' }],
  ])('%j of the settings', (toolChoice, wanted) => {
    expect(body({ tools: [read], settings: { toolChoice } })['tool_choice']).toEqual(wanted)
  })

  test('that of a turn wins', () => {
    const made = body({ tools: [read], settings: { toolChoice: 'required' } }, {}, { toolChoice: 'auto' })

    expect(made['tool_choice']).toEqual({ type: 'auto' })
  })

  test('without tools it is absent', () => {
    expect(body({ settings: { toolChoice: 'required' } })).not.toHaveProperty('tool_choice')
  })
})

test('a streamed request is marked as such at its end', () => {
  expect(Object.entries(body({}, {}, { streamed: true })).at(-1)).toEqual(['stream', true])
})

describe('reasoning effort', () => {
  const adaptive = (effort: string): JsonObject => ({ thinking: { type: 'adaptive' }, output_config: { effort } })
  const budget = (budget_tokens: number): JsonObject => ({ thinking: { type: 'enabled', budget_tokens } })

  test.each<[string, ReasoningEffort, JsonObject]>([
    ['claude-sonnet-5', 'none', { thinking: { type: 'disabled' } }],
    ['claude-sonnet-5', 'minimal', adaptive('low')],
    ['claude-sonnet-5', 'low', adaptive('low')],
    ['claude-sonnet-5', 'medium', adaptive('medium')],
    ['claude-sonnet-5', 'high', adaptive('high')],
    ['claude-sonnet-5', 'xhigh', adaptive('xhigh')],
    ['claude-sonnet-5', 'max', adaptive('max')],
    ['claude-sonnet-5-5', 'none', { thinking: { type: 'between_tools' } }],
    ['claude-sonnet-5-5', 'low', adaptive('low')],
    ['claude-opus-4-6', 'high', adaptive('high')],
    ['something-of-next-year', 'high', adaptive('high')],
    ['claude-haiku-4-5-20251001', 'none', { thinking: { type: 'disabled' } }],
    ['claude-haiku-4-5-20251001', 'minimal', budget(1638)],
    ['us.anthropic.claude-sonnet-4-5-20250929-v1:0', 'medium', budget(8192)],
    ['claude-sonnet-4-20250514', 'high', budget(13_107)],
    ['claude-opus-4-1@20250805', 'max', budget(15_564)],
    ['claude-3-7-sonnet-20250219', 'low', budget(3276)],
    ['claude-3-5-haiku-20241022', 'none', {}],
  ])('of %s: %s', (id, reasoningEffort, wanted) => {
    const made = body({ settings: { reasoningEffort } }, { id, defaults: { promptCache: false } })

    expect(made).toEqual({ ...BARE, model: id, ...wanted })
  })

  test.each([
    [1025, 1024],
    [2000, 1024],
    [20_000, 4000],
  ])('a budget stays below the cap of the reply: %i gives %i', (maxOutputTokens, budget_tokens) => {
    const made = body({ settings: { reasoningEffort: 'low', maxOutputTokens } }, { id: 'claude-sonnet-4-5' })

    expect(made['thinking']).toEqual({ type: 'enabled', budget_tokens })
  })

  test('a limit that leaves no room for thinking is rejected', () => {
    const settings = { reasoningEffort: 'low', maxOutputTokens: 1024 } as const
    const error = errorOf(() => body({ settings }, { id: 'claude-sonnet-4-5' }))

    expect(error).toMatchObject({
      code: 'invalid_options',
      message: expect.stringContaining('`maxOutputTokens`') as string,
    })
  })

  test('thinking can be configured in full', () => {
    const thinking = { type: 'adaptive', display: 'summarized' }
    const made = body({ settings: { reasoningEffort: 'high', providerOptions: { anthropic: { thinking } } } })

    expect(made).toMatchObject({ thinking, output_config: { effort: 'high' } })
  })
})

test('PR-11 the harness’s own output format wins over other configuration, which is kept', () => {
  const structuredOutput = { name: 'final_result', schema: { type: 'object', properties: {} }, strict: true }
  const extraBody = { output_config: { format: { type: 'json_schema', schema: { type: 'string' } }, effort: 'low' } }

  expect(body({ structuredOutput }, { defaults: { promptCache: false, extraBody } })).toEqual({
    ...BARE,
    output_config: { effort: 'low', format: { type: 'json_schema', schema: { type: 'object', properties: {} } } },
  })
})
