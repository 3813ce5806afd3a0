import { hostile } from './hostile.js'
import type { Hostile } from './hostile.js'
import { number, object, text } from '../troublesome.js'

export const ROOTS: readonly Hostile[] = [
  hostile(
    'no type at the root',
    { properties: { a: text }, required: ['a'] },
    { fits: { a: 'x' }, misfits: {}, at: 'a' },
  ),
  hostile('no properties', { type: 'object' }, { fits: { a: 1 } }),
  hostile('properties of null', { type: 'object', properties: null }, { fits: {} }),
  hostile('properties as a list', { type: 'object', properties: [] }, { fits: {} }),
  hostile(
    '`allOf` at the root with required fields in its parts',
    { type: 'object', allOf: [{ properties: { a: text } }, { required: ['a'] }, true] },
    { fits: { a: 'x' }, misfits: {}, at: 'a' },
  ),
  hostile(
    '`anyOf` at the root beside properties',
    { ...object({ a: text, b: text }), anyOf: [{ required: ['a'] }, { required: ['b'] }] },
    { fits: { b: 'x' }, misfits: { a: 1 }, at: 'a' },
  ),
  hostile(
    '`oneOf` at the root with a discriminator',
    {
      type: 'object',
      discriminator: { propertyName: 'kind', mapping: { a: '#/oneOf/0' } },
      oneOf: [object({ kind: { const: 'a' }, n: number }, ['kind', 'n']), object({ kind: { const: 'b' } }, ['kind'])],
    },
    { fits: { kind: 'a', n: 1 }, misfits: { kind: 'a', n: 'many' }, at: 'n' },
  ),
  hostile(
    '`not` at the root',
    { ...object({ a: text, b: text }), not: { required: ['a', 'b'] } },
    { fits: { a: 'x' }, misfits: { a: 'x', b: 'y' } },
  ),
  hostile(
    '`if`, `then` and `else` at the root',
    {
      ...object({ mode: { enum: ['url', 'file'] }, url: text, path: text }, ['mode']),
      if: { properties: { mode: { const: 'url' } } },
      then: { required: ['url'] },
      else: { required: ['path'] },
    },
    { fits: { mode: 'file', path: 'p' }, misfits: { mode: 'url' }, at: 'url' },
  ),
  hostile(
    '`enum` at the root',
    { ...object({ a: number }), enum: [{ a: 1 }, { a: 2 }] },
    { fits: { a: 2 }, misfits: { a: 3 } },
  ),
  hostile('`const` at the root', { ...object({ a: number }), const: { a: 1 } }, { fits: { a: 1 }, misfits: { a: 2 } }),
  hostile(
    'a list of types with object at the root',
    { type: ['object'], properties: { a: text } },
    { fits: { a: 'x' }, misfits: { a: 1 }, at: 'a' },
  ),
  hostile(
    'an object or null at the root',
    { type: ['object', 'null'], properties: { a: text } },
    { fits: { a: 'x' }, misfits: { a: 1 }, at: 'a' },
  ),
  hostile(
    'a nullable root',
    { ...object({ a: text }), nullable: true },
    { fits: { a: 'x' }, misfits: { a: 1 }, at: 'a' },
  ),
  hostile(
    'an example as the schema beside it',
    { ...object({ a: text }), example: { a: 'x' }, examples: { one: { a: 'x' } } },
    { fits: { a: 'x' }, misfits: { a: 1 }, at: 'a' },
  ),
  hostile(
    'the words of draft 2020-12 for identity',
    {
      ...object({ a: { $anchor: 'here', type: 'string' } }),
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      $id: 'https://schemas.invalid/tool.json',
      $comment: 'generated',
      $dynamicAnchor: 'node',
      $vocabulary: { 'https://json-schema.org/draft/2020-12/vocab/core': true },
    },
    { fits: { a: 'x' }, misfits: { a: 1 }, at: 'a' },
  ),
  hostile(
    'a `$schema` that nobody knows',
    { ...object({ a: text }), $schema: 'https://schemas.invalid/mine' },
    { fits: { a: 'x' }, misfits: { a: 1 }, at: 'a' },
  ),
  hostile(
    'an `id` of draft 4',
    { ...object({ a: text }), $schema: 'http://json-schema.org/draft-04/schema#', id: 'tool' },
    { fits: { a: 'x' }, misfits: { a: 1 }, at: 'a' },
  ),
]
