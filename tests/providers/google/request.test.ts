import { describe, expect, test } from 'vitest'
import { HarnessError } from 'thinharness'
import { gemini } from 'thinharness/providers'
import type { ReasoningEffort, ToolChoice } from '#core/model-session.js'
import type { JsonObject, JsonSchema } from '#util/json.js'
import { bodyOf, format, user } from './support.js'

const LOOK = {
  name: 'look',
  description: 'Looks.',
  parameters: { type: 'object', properties: { at: { type: 'string' } }, required: ['at'], additionalProperties: false },
}
const PAUSE = { name: 'pause', description: '', parameters: { type: 'object', properties: {} } }
const ASK = [user('Hi')]

test('a request has its parts in an order in which the conversation comes last', () => {
  const body = bodyOf(format(), ASK, { instructions: 'Be brief.', tools: [LOOK, PAUSE] })
  expect(body).toEqual({
    systemInstruction: { parts: [{ text: 'Be brief.' }] },
    tools: [
      {
        functionDeclarations: [
          { name: 'look', description: 'Looks.', parametersJsonSchema: LOOK.parameters },
          { name: 'pause' },
        ],
      },
    ],
    generationConfig: { thinkingConfig: { includeThoughts: true } },
    contents: [{ role: 'user', parts: [{ text: 'Hi' }] }],
  })
})

test.each<[ToolChoice, JsonObject]>([
  ['none', { mode: 'NONE' }],
  ['required', { mode: 'ANY' }],
  [{ tool: 'look' }, { mode: 'ANY', allowedFunctionNames: ['look'] }],
])('the tool choice %j, of all requests and of one', (toolChoice, functionCallingConfig) => {
  const all = bodyOf(format(), ASK, { tools: [LOOK], settings: { toolChoice } })
  expect(all['toolConfig']).toEqual({ functionCallingConfig })
  const retrievalConfig = { languageCode: 'de' }
  const wire = format({ defaults: { extraBody: { toolConfig: { retrievalConfig } } } })
  const one = bodyOf(wire, ASK, { tools: [LOOK] }, { toolChoice })
  expect(one['toolConfig']).toEqual({ functionCallingConfig, retrievalConfig })
})

function thinking(id: string, effort: ReasoningEffort | undefined, maxOutputTokens?: number): unknown {
  const body = bodyOf(format({ id, defaults: { reasoningEffort: effort, maxOutputTokens } }), ASK)
  return (body['generationConfig'] as JsonObject | undefined)?.['thinkingConfig']
}

describe('thinking', () => {
  test.each<[string, ReasoningEffort | undefined, unknown]>([
    ['gemini-3-pro-preview', undefined, { includeThoughts: true }],
    ['gemini-3-pro', 'minimal', { includeThoughts: true, thinkingLevel: 'LOW' }],
    ['gemini-3-pro', 'medium', { includeThoughts: true, thinkingLevel: 'HIGH' }],
    ['gemini-3.1-pro-preview', 'medium', { includeThoughts: true, thinkingLevel: 'MEDIUM' }],
    ['gemini-3-flash', 'minimal', { includeThoughts: true, thinkingLevel: 'MINIMAL' }],
    ['gemini-3.7-flash', 'minimal', { includeThoughts: true, thinkingLevel: 'LOW' }],
    ['gemini-flash-latest', 'max', { includeThoughts: true, thinkingLevel: 'HIGH' }],
    ['gemini-2.5-pro', 'max', { includeThoughts: true, thinkingBudget: 32_768 }],
    ['gemini-2.5-flash', 'max', { includeThoughts: true, thinkingBudget: 24_576 }],
    ['gemini-2.5-flash', 'none', { thinkingBudget: 0 }],
    ['gemini-2.5-flash-lite', undefined, undefined],
    ['gemini-2.5-flash-lite', 'minimal', { includeThoughts: true, thinkingBudget: 512 }],
    ['gemini-2.0-flash', undefined, undefined],
    ['gemini-2.5-flash-image', undefined, undefined],
  ])('%s with the effort %s', (id, effort, wanted) => {
    expect(thinking(id, effort)).toEqual(wanted)
  })

  test('thoughts leave room for the reply, also under a limit of one request', () => {
    expect(thinking('gemini-2.5-flash', 'high', 10_000)).toMatchObject({ thinkingBudget: 8000 })
    const wire = format({ id: 'gemini-2.5-flash', defaults: { reasoningEffort: 'high' } })
    expect(bodyOf(wire, ASK, {}, { maxOutputTokens: 1000 })['generationConfig']).toEqual({
      maxOutputTokens: 1000,
      thinkingConfig: { includeThoughts: true, thinkingBudget: 800 },
    })
  })

  test('a budget of the caller takes the place of our level, and thoughts that are off are not asked for', () => {
    const given = (thinkingBudget: number): unknown =>
      bodyOf(
        format({
          defaults: { reasoningEffort: 'low', extraBody: { generationConfig: { thinkingConfig: { thinkingBudget } } } },
        }),
        ASK,
      )['generationConfig']
    expect(given(64)).toEqual({ thinkingConfig: { includeThoughts: true, thinkingBudget: 64 } })
    expect(given(0)).toEqual({ thinkingConfig: { thinkingBudget: 0 } })
  })

  test('an effort that a model cannot take is refused with those that it can', () => {
    expect(() => gemini('gemini-3-pro', { apiKey: 'k', reasoningEffort: 'none' })).toThrow(/`low`, `medium`, `high`/)
    expect(() => gemini('gemini-2.0-flash', { apiKey: 'k', reasoningEffort: 'low' })).toThrow(/not a reasoning model/)
  })
})

function enforced(schema: JsonSchema): unknown {
  const structuredOutput = { name: 'answer', schema, strict: true }
  const { generationConfig } = bodyOf(format(), ASK, { structuredOutput })
  expect(generationConfig).toMatchObject({ responseMimeType: 'application/json' })
  return (generationConfig as JsonObject)['responseJsonSchema']
}

describe('structured output', () => {
  test('what the API does not enforce is in the description', () => {
    const name = { type: 'string', minLength: 1, description: 'A name.' }
    const tags = { type: 'array', items: { type: 'string' }, minItems: 1, maxItems: 3 }
    const schema = { type: 'object', properties: { name, tags, kind: { const: 'a' } }, required: ['name'] }
    expect(enforced({ $schema: 'x', ...schema })).toEqual({
      ...schema,
      properties: {
        name: { type: 'string', description: 'A name.\n\n{minLength: 1}' },
        tags: { type: 'array', items: { type: 'string' }, minItems: 1, description: '{maxItems: 3}' },
        kind: { type: 'string', enum: ['a'] },
      },
    })
  })

  test('a reference stands alone, and a property may be named like a keyword', () => {
    const schema = {
      type: 'object',
      properties: { pattern: { $ref: '#/$defs/p', description: 'x' } },
      $defs: { p: { type: 'string', pattern: '^a' } },
    }
    expect(enforced(schema)).toEqual({
      type: 'object',
      properties: { pattern: { $ref: '#/$defs/p' } },
      $defs: { p: { type: 'string', description: '{pattern: "^a"}' } },
    })
  })

  test('the second generation cannot have tools and a schema', () => {
    const structuredOutput = { name: 'answer', schema: { type: 'object' }, strict: true }
    const wire = format({ id: 'gemini-2.5-pro' })
    expect(() => bodyOf(wire, ASK, { tools: [LOOK], structuredOutput })).toThrow(HarnessError)
    expect(() => bodyOf(wire, ASK, { structuredOutput })).not.toThrow()
  })
})

describe('fields of the caller', () => {
  test("Google's own tools are added, and the third generation is asked to show their calls", () => {
    const defaults = { extraBody: { tools: [{ googleSearch: {} }] } }
    const third = bodyOf(format({ defaults }), ASK, { tools: [LOOK] })
    expect(third['tools']).toMatchObject([{ functionDeclarations: [{ name: 'look' }] }, { googleSearch: {} }])
    expect(third['toolConfig']).toEqual({
      functionCallingConfig: { mode: 'VALIDATED' },
      includeServerSideToolInvocations: true,
    })
    expect(bodyOf(format({ defaults }), ASK)['toolConfig']).toEqual({ includeServerSideToolInvocations: true })
    expect(bodyOf(format({ id: 'gemini-2.5-pro', defaults }), ASK, { tools: [LOOK] })).not.toHaveProperty('toolConfig')
  })

  test('what a cache of the caller contains is not sent again', () => {
    const settings = { providerOptions: { google: { cachedContent: 'cachedContents/1' } } }
    const body = bodyOf(format(), ASK, { instructions: 'Be brief.', tools: [LOOK], settings })
    expect(Object.keys(body).sort()).toEqual(['cachedContent', 'contents', 'generationConfig'])
  })

  test('the conversation cannot be replaced', () => {
    expect(() => bodyOf(format({ defaults: { extraBody: { contents: [] } } }), ASK)).toThrow(/`contents` cannot be set/)
  })
})
