import { describe, expect, test } from 'vitest'
import type { JsonSchema, JsonValue } from 'thinharness'
import { answerDocument } from '#schema/answer-schema.js'
import { withoutFillers } from '#schema/fillers.js'
import { strictSchema } from '#schema/strict-schema.js'

const text = { type: 'string' }
const closed = { additionalProperties: false }
const object = (properties: JsonSchema, required: readonly string[] = Object.keys(properties)): JsonSchema => ({
  type: 'object',
  properties,
  required,
  ...closed,
})

describe('SO-30 SO-31 the strict form closes every object and requires every field', () => {
  test.each<[string, JsonSchema, JsonSchema]>([
    ['of a closed object is itself', object({ a: text }), object({ a: text })],
    [
      'has null in place of what may be absent',
      object({ a: text, b: { enum: ['x'] }, c: object({}), d: { $ref: '#/$defs/d' } }, ['a']),
      object({
        a: text,
        b: { type: ['string', 'null'], enum: ['x', null] },
        c: { anyOf: [object({}), { type: 'null' }] },
        d: { anyOf: [{ $ref: '#/$defs/d' }, { type: 'null' }] },
      }),
    ],
    [
      'says what is not enforced',
      object({ a: { ...text, description: 'A name.', minLength: 2, format: 'slug', default: 'x' } }),
      object({ a: { ...text, description: 'A name.\n\n{minLength: 2, format: "slug"}' } }),
    ],
    [
      'keeps what is enforced',
      object({ a: { type: 'integer', minimum: 1, maximum: 9 }, b: { ...text, format: 'date', pattern: '^2' } }),
      object({ a: { type: 'integer', minimum: 1, maximum: 9 }, b: { ...text, format: 'date', pattern: '^2' } }),
    ],
    ['leaves out patterns that look ahead', text, text],
    ['of `oneOf` is `anyOf`', { oneOf: [text, { type: 'null' }] }, { anyOf: [text, { type: 'null' }] }],
    [
      'of alternatives beside properties has these in each',
      { ...object({ kind: text }), anyOf: [{ properties: { a: text }, required: ['a'] }, { required: ['kind'] }] },
      { anyOf: [object({ kind: text, a: text }), object({ kind: text })] },
    ],
    [
      'of a tuple is a list of as many items',
      { type: 'array', prefixItems: [text, { type: 'number' }] },
      {
        type: 'array',
        items: { anyOf: [text, { type: 'number' }] },
        minItems: 2,
        maxItems: 2,
        description: '{prefixItems: [{"type":"string"},{"type":"number"}]}',
      },
    ],
    [
      'of fixed values names their type',
      { enum: ['a', 1, null] },
      { type: ['string', 'number', 'null'], enum: ['a', 1, null] },
    ],
    [
      'of several types with an object has a form for each',
      { type: ['object', 'null'], properties: { a: text }, required: ['a'], ...closed },
      { anyOf: [object({ a: text }), { type: 'null' }] },
    ],
  ])('%s', (_name, schema, wanted) => {
    expect(strictSchema(schema)).toEqual(wanted)
  })

  const deep = Array.from({ length: 11 }).reduce<JsonSchema>((inner) => object({ a: inner }), text)
  test.each<[string, JsonSchema]>([
    ['an open object', { ...object({}), additionalProperties: true }],
    ['a map', { type: 'object', additionalProperties: text }],
    ['fields by pattern', { ...object({}), patternProperties: { '^x': text } }],
    ['any value', object({ a: {} })],
    ['a field that is demanded and not described', object({}, ['a'])],
    ['parts that all hold', { allOf: [{ minimum: 1 }, { minimum: 2 }] }],
    ['fixed objects', { const: { a: 1 } }],
    ['items of any kind', { type: 'array' }],
    ['what is too deep', deep],
    ['too many options', { enum: Array.from({ length: 1_001 }, (_, index) => index) }],
  ])('none exists for %s', (_name, schema) => {
    expect(strictSchema(schema)).toBeNull()
  })
})

describe('a document', () => {
  test('keeps recursion and joins parts that all apply, without closing each', () => {
    const part = (name: string): JsonSchema => ({ type: 'object', properties: { [name]: text }, required: [name] })
    expect(answerDocument({ allOf: [part('a'), part('b')] })).toEqual(object({ a: text, b: text }))
    const clash = { allOf: [part('a'), { ...part('a'), properties: { a: { type: 'number' } } }] }
    expect(answerDocument(clash)).toEqual(clash)
    expect(answerDocument(object({ next: { $ref: '#' } }, []))).toMatchObject({
      properties: { next: { $ref: '#/$defs/root' } },
      $defs: { root: { properties: { next: { $ref: '#/$defs/root' } } } },
    })
  })
})

describe('nulls for absent values', () => {
  const a = object({ kind: { const: 'a' }, n: { type: 'number' } }, ['kind'])
  const b = object({ kind: { const: 'b' }, n: { type: ['number', 'null'] } }, ['kind'])
  const node: JsonSchema = { ...object({ next: { $ref: '#/$defs/node' } }, []), $defs: {} }
  test.each<[string, JsonSchema, JsonValue, JsonValue]>([
    ['are left out', object({ a: text, b: text }, ['a']), { a: 'x', b: null }, { a: 'x' }],
    ['stay where the schema takes null', object({ a: { type: ['string', 'null'] } }, []), { a: null }, { a: null }],
    ['stay where the property is demanded', object({ a: text }), { a: null }, { a: null }],
    ['stay where anything goes', object({ a: {} }, []), { a: null }, { a: null }],
    ['are told apart by fixed values', { anyOf: [a, b] }, { kind: 'a', n: null }, { kind: 'a' }],
    ['and stay in the other form', { anyOf: [a, b] }, { kind: 'b', n: null }, { kind: 'b', n: null }],
    ['are left out at any depth', { type: 'array', items: object({ a: text }, []) }, [{ a: null }, null], [{}, null]],
    [
      'are left out through references',
      { ...node, $defs: { node: object({ next: { $ref: '#/$defs/node' } }, []) } },
      { next: { next: null } },
      { next: {} },
    ],
    ['stay in what no schema describes', object({}), { x: null }, { x: null }],
  ])('%s', (_name, schema, given, wanted) => {
    expect(withoutFillers(schema, given)).toEqual(wanted)
  })
})
