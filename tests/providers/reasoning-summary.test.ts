import { expect, test } from 'vitest'
import { anthropic } from 'thinharness/providers'
import { contentFormat } from '#providers/google/request.js'
import { responsesFormat } from '#providers/openai/request.js'
import type { RequestDefaults } from '#providers/wire/request-settings.js'
import type { JsonObject } from '#util/json.js'
import { expectValidRequest } from '../support/request-schemas.js'
import { format } from './anthropic/support.js'
import { DIALECTS, formatOf } from './chat/wire.js'

const CONSTANTS = { instructions: '', tools: [], structuredOutput: null, settings: {} }
type Summary = NonNullable<RequestDefaults['reasoningSummary']>

const messages = [{ role: 'user', content: 'x' }]

function thinking(id: string, defaults: RequestDefaults): unknown {
  const head = format({ id, defaults }).head(CONSTANTS)
  expectValidRequest('anthropic-messages', { ...head, messages }, { version: '2026-10-21' })
  return head['thinking']
}

test.each<[string, RequestDefaults, unknown]>([
  ['claude-sonnet-5', { reasoningEffort: 'high' }, { type: 'adaptive' }],
  [
    'claude-sonnet-5',
    { reasoningEffort: 'high', reasoningSummary: 'auto' },
    { type: 'adaptive', display: 'summarized' },
  ],
  ['claude-sonnet-5', { reasoningEffort: 'high', reasoningSummary: 'none' }, { type: 'adaptive', display: 'omitted' }],
  [
    'claude-sonnet-4-5',
    { reasoningEffort: 'low', reasoningSummary: 'detailed' },
    { type: 'enabled', budget_tokens: 3276, display: 'summarized' },
  ],
  // It thinks although nobody asks.
  ['claude-opus-5-5', { reasoningSummary: 'auto' }, { type: 'adaptive', display: 'summarized' }],
  // It is not made to think.
  ['claude-opus-4-6', { reasoningSummary: 'auto' }, undefined],
  ['claude-sonnet-4-5', { reasoningSummary: 'auto' }, undefined],
  ['claude-sonnet-5', { reasoningEffort: 'none', reasoningSummary: 'auto' }, { type: 'disabled' }],
])('Anthropic: %s with %j thinks as %j', (id, defaults, fields) => {
  expect(thinking(id, defaults)).toEqual(fields)
})

test('Anthropic: a lower limit of a turn keeps what readers see', () => {
  const defaults = { reasoningEffort: 'high', reasoningSummary: 'none' } as const
  const tail = format({ id: 'claude-sonnet-4-5', defaults }).tail(
    {
      streamed: false,
      toolChoice: undefined,
      maxOutputTokens: 5000,
      previousResponseId: null,
    },
    CONSTANTS,
  )
  expect(tail['thinking']).toEqual({ type: 'enabled', budget_tokens: 4000, display: 'omitted' })
})

test.each<[string, RequestDefaults, unknown]>([
  ['gpt-5.5', {}, undefined],
  ['gpt-5.5', { reasoningSummary: 'detailed' }, { summary: 'detailed' }],
  ['gpt-5.5', { reasoningEffort: 'low', reasoningSummary: 'auto' }, { effort: 'low', summary: 'auto' }],
  ['gpt-5.5', { reasoningEffort: 'low', reasoningSummary: 'none' }, { effort: 'low' }],
  ['gpt-4.1', { reasoningSummary: 'auto' }, undefined],
  ['my-deployment', { reasoningSummary: 'concise' }, { summary: 'concise' }],
])('OpenAI: %s with %j reasons as %j', (id, options, fields) => {
  const head = responsesFormat(id, options).head(CONSTANTS)
  expectValidRequest('openai-responses', { ...head, input: 'x' })
  expect(head['reasoning']).toEqual(fields)
})

test.each<[keyof typeof DIALECTS, RequestDefaults, JsonObject]>([
  ['openrouter', { reasoningSummary: 'concise' }, { reasoning: { summary: 'concise' } }],
  [
    'openrouter',
    { reasoningEffort: 'high', reasoningSummary: 'none' },
    { reasoning: { effort: 'high', exclude: true } },
  ],
  ['openrouter', { reasoningEffort: 'high' }, { reasoning: { effort: 'high' } }],
  // The API has no field for it.
  ['openai', { reasoningEffort: 'high', reasoningSummary: 'auto' }, { reasoning_effort: 'high' }],
])('chat completions of %s with %j have %j', (dialect, defaults, fields) => {
  const { reasoning, reasoning_effort } = formatOf(DIALECTS[dialect], defaults).head(CONSTANTS)
  expect({
    ...(reasoning !== undefined && { reasoning }),
    ...(reasoning_effort !== undefined && { reasoning_effort }),
  }).toEqual(fields)
})

test.each<[Summary | undefined, boolean]>([
  [undefined, true],
  ['auto', true],
  ['none', false],
])('Gemini: thoughts with summary `%s` are asked for: %s', (reasoningSummary, isAsked) => {
  const head = contentFormat({
    id: 'gemini-3-pro',
    hasCallIds: true,
    defaults: { reasoningEffort: 'high', reasoningSummary },
  }).head(CONSTANTS)
  expect(head['generationConfig']).toMatchObject({ thinkingConfig: { includeThoughts: isAsked } })
})

test('another value is refused', () => {
  expect(() => anthropic('claude-sonnet-5', { reasoningSummary: 'long' as Summary })).toThrow(/reasoningSummary/)
})
