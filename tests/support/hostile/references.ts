import { hostile } from './hostile.js'
import type { Hostile } from './hostile.js'
import { number, object, text } from '../troublesome.js'

const node = object({ name: text, children: { type: 'array', items: { $ref: '#/$defs/node' } } }, ['name'])

export const REFERENCES: readonly Hostile[] = [
  hostile(
    'a reference at the root',
    { $ref: '#/$defs/args', $defs: { args: object({ a: text }, ['a']) } },
    { fits: { a: 'x' }, misfits: {}, at: 'a' },
  ),
  hostile(
    'a reference at the root beside type and description',
    {
      type: 'object',
      description: 'Args.',
      $ref: '#/definitions/args',
      definitions: { args: object({ a: text }, ['a']) },
    },
    { fits: { a: 'x' }, misfits: {}, at: 'a' },
  ),
  hostile(
    'a chain of references at the root',
    { $ref: '#/$defs/a', $defs: { a: { $ref: '#/$defs/b' }, b: object({ n: number }, ['n']) } },
    { fits: { n: 1 }, misfits: { n: 'x' }, at: 'n' },
  ),
  hostile(
    'a recursive root by definition',
    { $ref: '#/$defs/node', $defs: { node } },
    { fits: { name: 'a', children: [{ name: 'b' }] }, misfits: { name: 'a', children: [{}] }, at: 'name' },
  ),
  hostile('recursion through `#`', object({ v: number, next: { $ref: '#' } }, ['v']), {
    fits: { v: 1, next: { v: 2 } },
    misfits: { v: 1, next: { v: 'x' } },
    at: 'next',
  }),
  hostile(
    'recursion through `anyOf` and a list',
    {
      ...object({ filter: { $ref: '#/$defs/f' } }, ['filter']),
      $defs: {
        f: {
          anyOf: [
            object({ and: { type: 'array', items: { $ref: '#/$defs/f' } } }, ['and']),
            object({ eq: text }, ['eq']),
          ],
        },
      },
    },
    { fits: { filter: { and: [{ eq: 'x' }] } }, misfits: { filter: 5 }, at: 'filter' },
  ),
  hostile(
    'definitions in a property',
    object({ a: { ...object({ b: { $ref: '#/properties/a/$defs/t' } }), $defs: { t: text } } }),
    { fits: { a: { b: 'x' } }, misfits: { a: { b: 1 } }, at: 'a.b' },
  ),
  hostile(
    'definitions under another word',
    { ...object({ a: { $ref: '#/components/schemas/T' } }), components: { schemas: { T: { ...number, minimum: 1 } } } },
    { fits: { a: 1 }, misfits: { a: 0 }, at: 'a' },
  ),
  hostile(
    'unsound parts of definitions under another word',
    {
      ...object({ a: { $ref: '#/components/schemas/T' } }),
      components: {
        schemas: {
          T: object({
            'b c': { type: 'any' },
            l: { type: 'array', minItems: '1' },
            n: { $ref: '#/components/schemas/N' },
          }),
          N: { type: ['number', 'null'], enum: [] },
        },
      },
    },
    { fits: { a: { 'b c': 1, l: [1], n: null } }, misfits: { a: { n: 'x' } }, at: 'n' },
  ),
  hostile(
    'two parts with one `$id`',
    object({ a: { $id: 'urn:x', type: 'string' }, b: { $id: 'urn:x', type: 'number' } }),
    { fits: { a: 'x', b: 1 }, misfits: { a: 1 }, at: 'a' },
  ),
  hostile(
    'a reference into `allOf`',
    { type: 'object', allOf: [object({ a: text }, ['a'])], properties: { b: { $ref: '#/allOf/0/properties/a' } } },
    { fits: { a: 'x', b: 'y' }, misfits: { a: 'x', b: 1 }, at: 'b' },
  ),
  hostile(
    'a reference into `oneOf` of the root',
    { type: 'object', oneOf: [object({ a: text }, ['a']), object({ b: { $ref: '#/oneOf/0/properties/a' } }, ['b'])] },
    { fits: { b: 'y' }, misfits: { b: 1 } },
  ),
  hostile(
    'a reference into a list of items',
    object({ a: { type: 'array', items: [text, number] }, b: { $ref: '#/properties/a/items/1' } }),
    { fits: { a: ['x', 1], b: 2 }, misfits: { b: 'x' }, at: 'b' },
  ),
  hostile(
    'siblings that narrow a reference',
    {
      ...object({ a: { $ref: '#/$defs/t', maxLength: 2, title: 'A' } }),
      $defs: { t: { type: 'string', minLength: 1 } },
    },
    { fits: { a: 'xy' }, misfits: { a: 'xyz' }, at: 'a' },
  ),
  hostile(
    'a reference to itself',
    { ...object({ a: { $ref: '#/$defs/a' }, b: text }), $defs: { a: { $ref: '#/$defs/a' } } },
    { fits: { b: 'x' }, misfits: { b: 1 }, at: 'b' },
  ),
  hostile(
    'two references to each other',
    { ...object({ a: { $ref: '#/$defs/a' }, b: text }), $defs: { a: { $ref: '#/$defs/b' }, b: { $ref: '#/$defs/a' } } },
    { fits: { b: 'x' }, misfits: { b: 1 }, at: 'b' },
  ),
  hostile(
    'a root that refers to itself',
    { type: 'object', $ref: '#', properties: { a: text } },
    { fits: { a: 'x' }, misfits: { a: 1 }, at: 'a' },
  ),
  hostile(
    '`allOf` that holds itself',
    { ...object({ a: { $ref: '#/$defs/a' }, b: text }), $defs: { a: { allOf: [{ $ref: '#/$defs/a' }] } } },
    { fits: { b: 'x' }, misfits: { b: 1 }, at: 'b' },
  ),
  hostile('a reference that leads nowhere', object({ a: { $ref: '#/$defs/gone' }, b: text }, ['b']), {
    fits: { a: 1, b: 'x' },
    misfits: { b: 1 },
    at: 'b',
  }),
  hostile('an external reference', object({ a: { $ref: 'https://schemas.invalid/x.json#/a' }, b: text }), {
    fits: { a: 1, b: 'x' },
    misfits: { b: 1 },
    at: 'b',
  }),
  hostile('a reference to a file', object({ a: { $ref: './other.json' }, b: text }), {
    fits: { a: 1, b: 'x' },
    misfits: { b: 1 },
    at: 'b',
  }),
  hostile('a reference by the name of OpenAPI', object({ a: { $ref: 'Pet' }, b: text }), {
    fits: { a: 1, b: 'x' },
    misfits: { b: 1 },
    at: 'b',
  }),
  hostile(
    'a reference to an anchor',
    { ...object({ a: { $ref: '#t' } }), $defs: { t: { $anchor: 't', type: 'string' } } },
    { fits: { a: 'x' }, misfits: { a: 1 }, at: 'a' },
  ),
  hostile(
    'a reference by the `$id` of a part',
    {
      ...object({ a: { $ref: 't.json' } }),
      $id: 'https://schemas.invalid/root.json',
      $defs: { t: { $id: 't.json', type: 'string' } },
    },
    { fits: { a: 'x' }, misfits: { a: 1 }, at: 'a' },
  ),
  hostile(
    'a reference by the `$id` of the root',
    {
      ...object({ a: { $ref: 'https://schemas.invalid/root.json#/$defs/t' } }),
      $id: 'https://schemas.invalid/root.json',
      $defs: { t: text },
    },
    { fits: { a: 'x' }, misfits: { a: 1 }, at: 'a' },
  ),
  hostile(
    '`$dynamicRef` and `$recursiveRef`',
    object({ a: { $dynamicRef: '#node' }, b: { $recursiveRef: '#' }, c: text }),
    { fits: { c: 'x' }, misfits: { c: 1 }, at: 'c' },
  ),
  hostile(
    'a reference that is no text',
    object({ a: { $ref: { type: 'string' } }, b: { $ref: 5 }, c: { $ref: null }, d: text }),
    { fits: { d: 'x' }, misfits: { d: 1 }, at: 'd' },
  ),
  hostile(
    'a reference to a list, a text and a boolean',
    {
      ...object({ a: { $ref: '#/required' }, b: { $ref: '#/type' }, c: { $ref: '#/$defs/yes' }, d: text }),
      $defs: { yes: true },
    },
    { fits: { a: 1, b: 2, c: 3, d: 'x' }, misfits: { d: 1 }, at: 'd' },
  ),
  hostile(
    'a reference to what every object inherits',
    object({ a: { $ref: '#/constructor' }, b: { $ref: '#/__proto__' }, c: text }),
    { fits: { a: 1, c: 'x' }, misfits: { c: 1 }, at: 'c' },
  ),
  hostile(
    'a reference with a broken escape',
    { ...object({ a: { $ref: '#/$defs/50%' }, b: { $ref: '#/$defs/%zz' } }), $defs: { '50%': text } },
    { fits: { a: 'x' }, misfits: { a: 1 }, at: 'a' },
  ),
  hostile(
    'definitions that are no object',
    { ...object({ a: text }), $defs: [], definitions: null },
    { fits: { a: 'x' }, misfits: { a: 1 }, at: 'a' },
  ),
  hostile(
    'definitions of odd names',
    {
      ...object({ a: { $ref: '#/$defs/List%3CString%3E' }, b: { $ref: '#/$defs/com.x.Y' } }),
      $defs: { 'List<String>': { type: 'array', items: text }, 'com.x.Y': number },
    },
    { fits: { a: ['x'], b: 1 }, misfits: { a: [1] }, at: 'a' },
  ),
]
