import { hostile } from './hostile.js'
import type { Hostile } from './hostile.js'
import { number, object, text } from '../troublesome.js'

export const FORMS: readonly Hostile[] = [
  hostile('a schema `true` and a schema `false`', object({ a: true, b: false }, ['a']), {
    fits: { a: [1] },
    misfits: { a: 1, b: 1 },
    at: 'b',
  }),
  hostile(
    '`items: true` and `items: false`',
    object({ a: { type: 'array', items: true }, b: { type: 'array', items: false } }),
    { fits: { a: [1, 'x'], b: [] }, misfits: { b: [1] }, at: 'b' },
  ),
  hostile(
    'an empty tuple of draft 7',
    { ...object({ a: { type: 'array', items: [] } }), $schema: 'http://json-schema.org/draft-07/schema#' },
    { fits: { a: [1] }, misfits: { a: 1 }, at: 'a' },
  ),
  hostile(
    'a tuple without `$schema`',
    object({ a: { type: 'array', items: [text, number], additionalItems: false } }, ['a']),
    { fits: { a: ['x', 1] }, misfits: { a: [1, 1] }, at: 'a' },
  ),
  hostile(
    '`prefixItems` with `items: false`',
    object({ a: { type: 'array', prefixItems: [text, number], items: false } }, ['a']),
    { fits: { a: ['x', 1] }, misfits: { a: ['x', 1, 2] }, at: 'a' },
  ),
  hostile(
    '`unevaluatedItems` and `unevaluatedProperties`',
    { ...object({ a: { type: 'array', prefixItems: [text], unevaluatedItems: false } }), unevaluatedProperties: false },
    { fits: { a: ['x'] }, misfits: { b: 1 }, at: 'b' },
  ),
  hostile(
    '`additionalProperties` as a schema',
    { ...object({ a: text }), additionalProperties: { type: 'integer' } },
    { fits: { a: 'x', n: 1 }, misfits: { n: 'x' }, at: 'n' },
  ),
  hostile(
    '`patternProperties` with an expression of another language',
    { type: 'object', patternProperties: { '(?<=x)\\p{L}': text, '^x-': number, '[': text } },
    { fits: { 'x-a': 1 } },
  ),
  hostile('`propertyNames` of an enum', object({ a: { type: 'object', propertyNames: { enum: ['x', 'y'] } } }), {
    fits: { a: { x: 1 } },
    misfits: { a: { z: 1 } },
    at: 'a',
  }),
  hostile(
    '`dependentRequired`, `dependentSchemas` and `dependencies`',
    {
      ...object({ a: text, b: text, c: text }),
      dependentRequired: { a: ['b'] },
      dependentSchemas: { b: { required: ['c'] } },
      dependencies: { c: ['a'] },
    },
    { fits: { a: 'x', b: 'y', c: 'z' }, misfits: { a: 'x' }, at: 'b' },
  ),
  hostile(
    '`minContains` and `maxContains`',
    object({ a: { type: 'array', contains: { const: 1 }, minContains: 1, maxContains: 2 } }, ['a']),
    { fits: { a: [1, 2] }, misfits: { a: [1, 1, 1] }, at: 'a' },
  ),
  hostile(
    'types that nobody knows',
    object({ a: { type: 'any' }, b: { type: ['string', 'date'] }, c: { type: 'String' }, d: { type: [] } }),
    { fits: { a: 1, b: 'x', c: 'y', d: 2 } },
  ),
  hostile('a type that is null or a number', object({ a: { type: null }, b: { type: 5 }, c: { type: {} } }), {
    fits: { a: 1, b: 'x' },
  }),
  hostile('empty alternatives', object({ a: { anyOf: [] }, b: { oneOf: [] }, c: { allOf: [] }, d: { enum: [] } }), {
    fits: {},
  }),
  hostile('alternatives that are no list', object({ a: { anyOf: { type: 'string' } }, b: { oneOf: null } }), {
    fits: {},
  }),
  hostile(
    'alternatives that are `true`, `false` and null',
    object({ a: { anyOf: [false, text] }, b: { anyOf: [true, text] } }),
    { fits: { a: 'x', b: 1 }, misfits: { a: 1 }, at: 'a' },
  ),
  hostile('`enum` of repeated and mixed values', object({ a: { enum: ['x', 'x', 1, null, { b: 1 }, [1]] } }, ['a']), {
    fits: { a: { b: 1 } },
    misfits: { a: 'y' },
    at: 'a',
  }),
  hostile('`enum` that its type forbids', object({ a: { type: 'string', enum: [1, 2, 'x'] } }, ['a']), {
    fits: { a: 'x' },
    misfits: { a: 'y' },
    at: 'a',
  }),
  hostile(
    '`const: null` and `const` beside `enum`',
    object({ a: { const: null }, b: { const: 'x', enum: ['x', 'y'] } }, ['a']),
    { fits: { a: null, b: 'x' }, misfits: { a: null, b: 'y' }, at: 'b' },
  ),
  hostile(
    '`nullable` of OpenAPI beside a reference',
    { ...object({ a: { $ref: '#/$defs/t', nullable: true } }), $defs: { t: text } },
    { fits: { a: 'x' }, misfits: { a: 1 }, at: 'a' },
  ),
  hostile(
    'words of OpenAPI',
    object({
      a: {
        type: 'string',
        readOnly: true,
        writeOnly: 'no',
        deprecated: true,
        xml: { name: 'a' },
        externalDocs: { url: 'https://a.invalid' },
        example: 'x',
      },
    }),
    { fits: { a: 'x' }, misfits: { a: 1 }, at: 'a' },
  ),
  hostile(
    'media in text',
    object({
      a: {
        type: 'string',
        contentEncoding: 'base64',
        contentMediaType: 'application/json',
        contentSchema: { type: 'object' },
      },
    }),
    { fits: { a: 'e30=' }, misfits: { a: 1 }, at: 'a' },
  ),
  hostile(
    'formats that nobody knows',
    object({
      a: { type: 'string', format: 'uuid4' },
      b: { type: 'integer', format: 'int64' },
      c: { type: 'string', format: 5 },
    }),
    { fits: { a: 'x', b: 1, c: 'y' }, misfits: { b: 'x' }, at: 'b' },
  ),
  hostile(
    'patterns of other languages',
    object({
      a: { type: 'string', pattern: '^(?P<x>a)\\Z' },
      b: { type: 'string', pattern: '[' },
      c: { type: 'string', pattern: '(?i)x' },
      d: { type: 'string', pattern: '^\\d+$' },
    }),
    { fits: { a: 'q', b: 'q', c: 'q', d: '1' }, misfits: { d: 'x' }, at: 'd' },
  ),
  hostile(
    'a pattern that looks ahead and behind',
    object({ a: { type: 'string', pattern: '^(?!x)(?=.*\\d).+(?<!y)$' } }, ['a']),
    { fits: { a: 'a1' }, misfits: { a: 'x1' }, at: 'a' },
  ),
  hostile('a pattern that backtracks without end', object({ a: { type: 'string', pattern: '^(a+)+$' } }, ['a']), {
    fits: { a: 'aaa' },
    misfits: { a: `${'a'.repeat(40)}!` },
  }),
  hostile(
    'a description and a title that are no text',
    object({ a: { type: 'string', description: { en: 'x' }, title: 5 } }),
    { fits: { a: 'x' }, misfits: { a: 1 }, at: 'a' },
  ),
  hostile(
    'defaults and examples of odd kinds',
    object({
      a: { type: 'string', default: { x: [1] }, examples: 'x' },
      b: { type: 'integer', default: 'none', examples: [null] },
    }),
    { fits: { a: 'x', b: 1 }, misfits: { b: 'x' }, at: 'b' },
  ),
  hostile(
    'a default with the words of a schema',
    object({
      a: { type: 'object', default: { $ref: '#/nowhere', type: 'array', items: [1] }, const: { $ref: '#/nowhere' } },
    }),
    { fits: {} },
  ),
  hostile('a field whose schema is null, a text or a list', object({ a: null, b: 'string', c: [text], d: text }), {
    fits: { d: 'x' },
    misfits: { d: 1 },
    at: 'd',
  }),
]
