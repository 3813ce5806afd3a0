import { describe, expect, test, vi } from 'vitest'
import { defineTool, Harness } from 'thinharness'
import type { JsonObject, JsonSchema } from 'thinharness'
import { anthropic } from 'thinharness/providers'
import { scriptedProvider } from 'thinharness/testing'
import { isObject } from '#util/json.js'

const LONG = 'k'.repeat(70)
const address = { type: 'object', properties: { 'straße/nr': { type: 'string' } }, required: ['straße/nr'] }
const SCHEMA: JsonSchema = {
  type: 'object',
  properties: {
    名前: { type: 'string', description: 'The name.' },
    'a b': { type: 'number' },
    'a-b': { type: 'number' },
    [LONG]: { type: 'boolean' },
    wohnort: { $ref: '#/$defs/address' },
    andere: { type: 'array', items: { $ref: '#/properties/zwei%20orte' } },
    'zwei orte': address,
  },
  required: ['名前', 'wohnort'],
  additionalProperties: false,
  $defs: { address },
}
const ARGS = {
  名前: 'Ada',
  'a b': 1,
  'a-b': 2,
  [LONG]: true,
  wohnort: { 'straße/nr': 'Weg 1' },
  andere: [{ 'straße/nr': 'Weg 2' }],
}

/** Every key of a property in a schema. */
function keysIn(schema: unknown): string[] {
  if (Array.isArray(schema)) return schema.flatMap(keysIn)
  if (!isObject(schema)) return []
  const { properties } = schema
  return [...(isObject(properties) ? Object.keys(properties) : []), ...Object.values(schema).flatMap(keysIn)]
}

describe('keys of a tool schema that Anthropic rejects', () => {
  test('are left out, at any depth, with a warning; arguments may have them', async () => {
    const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined)
    let received: unknown
    const save = defineTool({
      name: 'save',
      description: 'Saves.',
      parameters: SCHEMA,
      handler: (args) => {
        received = args
        return 'ok'
      },
    })
    await using provider = await scriptedProvider()
    provider.calls('save', ARGS).says('Done.')
    const model = anthropic('claude-sonnet-5', { apiKey: 'k', baseUrl: provider.url.messages })
    const result = await new Harness({ model, tools: [save], builtinTools: [] }).run('Save it.')
    const { tools } = provider.requests[0]?.body as { tools: readonly JsonObject[] }
    const messages = warned.mock.calls.map(([message]) => String(message))
    warned.mockRestore()

    expect(result.text).toBe('Done.')
    expect(received).toEqual(ARGS)
    expect(keysIn(tools).sort()).toEqual(['a-b', 'andere', 'wohnort'])
    expect(tools).toMatchObject([{ input_schema: { required: ['wohnort'], additionalProperties: true } }])
    expect(messages.filter((message) => message.includes('`名前`'))).toHaveLength(1)
  })
})
