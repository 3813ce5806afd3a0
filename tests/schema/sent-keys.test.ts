import { describe, expect, test } from 'vitest'
import { defineTool, Harness } from 'thinharness'
import type { JsonObject, JsonSchema } from 'thinharness'
import { anthropic } from 'thinharness/providers'
import { scriptedProvider } from 'thinharness/testing'
import { sentKey } from '#schema/sent-keys.js'
import { isObject } from '#util/json.js'

const LONG = 'k'.repeat(70)
const address = { type: 'object', properties: { 'straße/nr': { type: 'string' } }, required: ['straße/nr'] }
const SCHEMA: JsonSchema = {
  type: 'object',
  properties: {
    名前: { type: 'string', description: 'The name.' },
    'a b': { type: 'number' },
    'a-b': { type: 'number' },
    'a/b': { type: 'number' },
    [LONG]: { type: 'boolean' },
    wohnort: { $ref: '#/$defs/address' },
    andere: { type: 'array', items: { $ref: '#/properties/zwei%20orte' } },
    'zwei orte': address,
  },
  required: ['名前', 'wohnort'],
  additionalProperties: { type: 'number' },
  $defs: { address },
}
const ARGS = {
  名前: 'Ada',
  'a b': 1,
  'a-b': 2,
  'a/b': 3,
  [LONG]: true,
  wohnort: { 'straße/nr': 'Weg 1' },
  andere: [{ 'straße/nr': 'Weg 2' }],
  frei: 4,
}

/** The arguments under the keys that were sent. */
function asSent(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(asSent)
  if (!isObject(value)) return value
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [sentKey(key), asSent(member)]))
}

/** Every key of a property in a schema. */
function keysIn(schema: unknown): string[] {
  if (Array.isArray(schema)) return schema.flatMap(keysIn)
  if (!isObject(schema)) return []
  const { properties } = schema
  return [...(isObject(properties) ? Object.keys(properties) : []), ...Object.values(schema).flatMap(keysIn)]
}

describe('keys of a tool schema that Anthropic rejects', () => {
  test.each<[string, (args: JsonObject) => unknown]>([
    ['sent', asSent],
    ['own', (args) => args],
  ])(
    'are replaced, at any depth, and the handler gets its own keys: the model writes the %s ones',
    async (_k, write) => {
      let got: unknown
      const save = defineTool({
        name: 'save',
        description: 'Saves.',
        parameters: SCHEMA,
        handler: (args) => {
          got = args
          return 'ok'
        },
      })
      await using provider = await scriptedProvider()
      const bodies: JsonObject[] = []
      provider
        .replies(({ body }) => {
          bodies.push(body as JsonObject)
          return { calls: [{ name: 'save', arguments: write(ARGS) as JsonObject }] }
        })
        .says('Done.')
      const model = anthropic('claude-sonnet-5', { apiKey: 'k', baseUrl: provider.url.messages })
      const result = await new Harness({ model, tools: [save] }).run('Save it.')
      expect(result.text).toBe('Done.')
      expect(got).toEqual(ARGS)
      const keys = keysIn(bodies[0]?.['tools'])
      expect(keys).toContain('a-b')
      expect(keys.filter((key) => !/^[a-zA-Z0-9_.-]{1,64}$/.test(key))).toEqual([])
      expect(JSON.stringify(bodies[0]?.['tools'])).toContain('"description":"名前: The name."')
    },
  )

  test('get names of their own, so that none collide', () => {
    const keys = ['a b', 'a/b', 'a\u00a0b', LONG, `${LONG}k`, '名', '前', '', '__proto__']
    expect(new Set(keys.map(sentKey)).size).toBe(keys.length)
    expect(sentKey('__proto__')).toBe('__proto__')
  })
})
