import { z } from 'zod'
import type { JsonSchema, JsonValue } from 'thinharness'
import { number, object, of, text } from './troublesome.js'
import type { Troublesome } from './troublesome.js'

const deep = Array.from({ length: 8 }).reduce<JsonSchema>(
  (inner) => object({ inner }, ['inner'], { additionalProperties: false }),
  text,
)
const deepValue = Array.from({ length: 8 }).reduce<JsonValue>((inner) => ({ inner }), 'x')
const deeper = Array.from({ length: 14 }).reduce<JsonSchema>((inner) => object({ inner }, ['inner']), number)
const deeperValue = Array.from({ length: 14 }).reduce<JsonValue>((inner) => ({ inner }), 1)
const many = Object.fromEntries(Array.from({ length: 120 }, (_, index) => [`field_${index}`, { type: 'integer' }]))
const longName = 'the_name_of_a_field_that_somebody_generated_from_a_database_column_and_never_looked_at_again'

export const LISTS: readonly Troublesome[] = [
  of('a tuple, by zod', z.object({ range: z.tuple([z.number(), z.number()]) }), [{ range: [1, 2] }], [{ range: [1] }]),
  of(
    'a tuple of draft 7',
    {
      $schema: 'http://json-schema.org/draft-07/schema#',
      ...object({ pair: { type: 'array', items: [text, number], additionalItems: false, minItems: 2 } }, ['pair']),
    },
    [{ pair: ['a', 1] }],
    [{ pair: [1, 'a'] }],
  ),
  of(
    'a tuple with a rest',
    z.object({ row: z.tuple([z.string()]).rest(z.number()) }),
    [{ row: ['a', 1, 2] }],
    [{ row: ['a', 'b'] }],
  ),
  of(
    'a list of lists',
    object({ grid: { type: 'array', items: { type: 'array', items: number, minItems: 1 } } }, ['grid']),
    [{ grid: [[1], [2, 3]] }],
    [{ grid: [[]] }],
  ),
  of('a list of anything', object({ list: { type: 'array' } }, ['list']), [{ list: [1, 'x'] }], [{ list: 1 }]),
  of(
    'a set that must hold something',
    object({ set: { type: 'array', items: number, uniqueItems: true, contains: { const: 1 } } }, ['set']),
    [{ set: [1, 2] }],
    [{ set: [2, 2] }],
  ),
]

export const VALUES: readonly Troublesome[] = [
  of(
    'formats of all kinds',
    z.object({ id: z.uuid(), mail: z.email(), at: z.iso.datetime(), day: z.iso.date(), url: z.url(), ip: z.ipv4() }),
    [
      {
        id: '0f8fad5b-d9cb-469f-a165-70867728950e',
        mail: 'a@b.co',
        at: '2026-01-01T00:00:00Z',
        day: '2026-01-01',
        url: 'https://a.b',
        ip: '1.2.3.4',
      },
    ],
    [{ id: 'x', mail: 'a@b.co', at: '2026-01-01T00:00:00Z', day: '2026-01-01', url: 'https://a.b', ip: '1.2.3.4' }],
  ),
  of(
    'lengths and patterns that look ahead',
    object({ password: { type: 'string', minLength: 4, maxLength: 9, pattern: '^(?=.*\\d).+$' } }, ['password']),
    [{ password: 'abc1' }],
    [{ password: 'abcd' }],
  ),
  of(
    'exclusive limits and steps',
    object({ n: { type: 'number', exclusiveMinimum: 0, exclusiveMaximum: 1, multipleOf: 0.25 } }, ['n']),
    [{ n: 0.5 }],
    [{ n: 1 }],
  ),
  of(
    'long and odd names',
    object({ [longName]: text, 'with space': text, 'naïve-ключ': text, $ref_like: text, __proto__x: text }, [longName]),
    [{ [longName]: 'x', 'with space': 'y', 'naïve-ключ': 'z', $ref_like: 'a', __proto__x: 'b' }],
    [{ 'with space': 'y' }],
  ),
  of(
    'fields named like keywords',
    object(
      {
        type: text,
        properties: object({ required: { type: 'boolean' } }, ['required']),
        enum: { type: 'array', items: text },
        title: text,
      },
      ['type', 'properties'],
    ),
    [{ type: 'x', properties: { required: true }, enum: ['a'], title: 't' }],
    [{ type: 1, properties: { required: true } }],
  ),
  of('nesting to the limit', deep, [deepValue], [{ inner: 'x' }]),
  of('nesting beyond it', deeper, [deeperValue], [{ inner: 'x' }]),
  of('a hundred fields', object(many, ['field_0']), [{ field_0: 1, field_7: 2 }], [{ field_7: 2 }]),
  of(
    'words of vendors',
    object(
      {
        a: {
          type: 'string',
          'x-order': 1,
          examples: ['x'],
          deprecated: true,
          readOnly: true,
          $comment: 'c',
          markdownDescription: 'm',
        },
      },
      ['a'],
      { 'x-internal': true },
    ),
    [{ a: 'x' }],
    [{ a: 1 }],
  ),
]
