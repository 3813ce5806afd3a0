import { expect, test } from 'vitest'
import { inputSchema } from '#schema/tool-schema.js'
import { outputSchema } from '#providers/anthropic/request.js'
import type { JsonSchema } from '#util/json.js'

const text = { type: 'string' }
const number = { type: 'number' }

test.each<[string, JsonSchema, JsonSchema]>([
  ['nothing', {}, { type: 'object', properties: {} }],
  [
    'an object',
    { type: 'object', properties: { a: text }, required: ['a'], additionalProperties: false },
    { type: 'object', properties: { a: text }, required: ['a'], additionalProperties: false },
  ],
  [
    'an object that may be null',
    { type: ['object', 'null'], properties: { a: text } },
    { type: 'object', properties: { a: text } },
  ],
  [
    'alternatives: required is what all of them require',
    {
      description: 'x',
      oneOf: [
        { type: 'object', properties: { kind: { const: 'a' }, a: text }, required: ['kind', 'a'] },
        { type: 'object', properties: { kind: { const: 'b' }, b: text }, required: ['kind'] },
      ],
    },
    {
      description: 'x',
      type: 'object',
      properties: { kind: { anyOf: [{ const: 'a' }, { const: 'b' }] }, a: text, b: text },
      required: ['kind'],
    },
  ],
  [
    'parts that all hold, beside own properties and alternatives',
    {
      type: 'object',
      properties: { a: text },
      required: ['a'],
      allOf: [{ properties: { b: number }, required: ['b'] }, true],
      anyOf: [{ required: ['c'] }, { properties: { c: text } }],
    },
    { type: 'object', properties: { a: text, b: number, c: text }, required: ['a', 'b'] },
  ],
  [
    'references',
    {
      $ref: '#/$defs/a~1b',
      $defs: {
        'a/b': { allOf: [{ $ref: '#/$defs/leaf' }, { $ref: '#/$defs/a~1b' }] },
        leaf: { properties: { a: text } },
      },
    },
    {
      $defs: {
        // Endless: it describes nothing.
        'a/b': { allOf: [{ $ref: '#/$defs/leaf' }, {}] },
        leaf: { properties: { a: text } },
      },
      type: 'object',
      properties: { a: text },
    },
  ],
  [
    'references to nowhere',
    { anyOf: [{ $ref: 'http://example.com' }, { $ref: '#/$defs/none/deeper' }, { $ref: 7 }] },
    { type: 'object', properties: {} },
  ],
])('a tool’s schema, %s', (_name, schema, wanted) => {
  expect(inputSchema(schema, 'look')).toEqual(wanted)
})

test('a tool’s schema that refers to itself many times over is read once', () => {
  const names = Array.from({ length: 60 }, (_, index) => `d${index}`)
  const twice = (name: string): JsonSchema => ({ allOf: [{ $ref: `#/$defs/${name}` }, { $ref: `#/$defs/${name}` }] })
  const $defs = Object.fromEntries(names.map((name, index) => [name, twice(names[index + 1] ?? 'leaf')]))

  const schema = inputSchema({ $ref: '#/$defs/d0', $defs: { ...$defs, leaf: { properties: { a: text } } } }, 'look')

  expect(schema['properties']).toEqual({ a: text })
})

test.each<[string, JsonSchema, JsonSchema]>([
  [
    'what is enforced is kept',
    {
      $schema: 'x',
      type: 'object',
      properties: { a: { ...text, format: 'date' } },
      required: ['a'],
      additionalProperties: false,
    },
    { type: 'object', properties: { a: { ...text, format: 'date' } }, required: ['a'], additionalProperties: false },
  ],
  [
    'what is not is said',
    { type: 'string', description: 'A name.', minLength: 1, format: 'slug' },
    { type: 'string', description: 'A name.\n\n{minLength: 1, format: "slug"}' },
  ],
  ['without a description', { type: 'number', minimum: 1 }, { type: 'number', description: '{minimum: 1}' }],
  [
    'at any depth, and alternatives are any of them',
    {
      type: 'array',
      minItems: 2,
      items: { oneOf: [{ $ref: '#/$defs/n' }, { type: 'array', items: true, minItems: 1 }] },
      $defs: { n: { type: 'number', maximum: 9 } },
    },
    {
      type: 'array',
      description: '{minItems: 2}',
      items: { anyOf: [{ $ref: '#/$defs/n' }, { type: 'array', items: true, minItems: 1 }] },
      $defs: { n: { type: 'number', description: '{maximum: 9}' } },
    },
  ],
  [
    'properties may be named like keywords',
    {
      type: 'object',
      properties: { minimum: number, properties: { type: 'object', properties: { maximum: number } } },
    },
    {
      type: 'object',
      properties: { minimum: number, properties: { type: 'object', properties: { maximum: number } } },
    },
  ],
  [
    'values are left alone',
    { enum: [{ minimum: 1 }], const: { oneOf: [] }, default: [] },
    { enum: [{ minimum: 1 }], const: { oneOf: [] }, default: [] },
  ],
])('SO-30 an output schema is sent in the form that the API accepts: %s', (_name, schema, wanted) => {
  expect(outputSchema(schema)).toEqual(wanted)
})
