import type { JsonValue } from 'thinharness'
import { hostile } from './hostile.js'
import type { Hostile } from './hostile.js'
import { number, object, text } from '../troublesome.js'

export const KEYS: readonly Hostile[] = [
  hostile('an empty key', object({ '': text }, ['']), { fits: { '': 'x' }, misfits: { '': 1 } }),
  hostile('keys with dots, spaces and slashes', object({ 'a.b': text, 'a b': number, 'a/b': number }, ['a b']), {
    fits: { 'a.b': 'x', 'a b': 1, 'a/b': 2 },
    misfits: { 'a b': 'x' },
    at: 'a b',
  }),
  hostile(
    'keys with brackets, as query strings have them',
    object({ 'filter[name]': text, 'ids[]': { type: 'array', items: number } }, ['ids[]']),
    { fits: { 'filter[name]': 'x', 'ids[]': [1] }, misfits: { 'ids[]': ['x'] }, at: 'ids[]' },
  ),
  hostile('keys of OData', object({ $filter: text, $top: { type: 'integer' }, '@odata.type': text }, ['$filter']), {
    fits: { $filter: 'x', $top: 1, '@odata.type': 't' },
    misfits: { $filter: 'x', $top: 'x' },
    at: '$top',
  }),
  hostile('keys of other alphabets', object({ 名前: text, straße: number, '🙂': number }, ['名前']), {
    fits: { 名前: 'x', straße: 1, '🙂': 2 },
    misfits: { 名前: 1 },
    at: '名前',
  }),
  hostile('composed and decomposed letters', object({ é: text, 'e\u0301': number }), {
    fits: { é: 'x', 'e\u0301': 1 },
    misfits: { 'e\u0301': 'x' },
    at: 'e\u0301',
  }),
  hostile(
    'keys longer than 64 characters',
    object({ ['k'.repeat(65)]: text, ['k'.repeat(66)]: number }, ['k'.repeat(65)]),
    { fits: { ['k'.repeat(65)]: 'x', ['k'.repeat(66)]: 1 }, misfits: { ['k'.repeat(65)]: 1 }, at: 'kkk' },
  ),
  hostile(
    'keys that every object has',
    JSON.parse(
      '{"type":"object","properties":{"constructor":{"type":"string"},"toString":{"type":"number"},"hasOwnProperty":{"type":"string"}},"required":["toString"]}',
    ),
    {
      fits: { constructor: 'x', toString: 1 },
      misfits: { toString: 'x' },
      at: 'toString',
    },
  ),
  hostile(
    'the key `__proto__`',
    JSON.parse('{"type":"object","properties":{"__proto__":{"type":"string"},"a":{"type":"string"}},"required":["a"]}'),
    { fits: JSON.parse('{"__proto__":"x","a":"y"}') as JsonValue, misfits: { a: 1 }, at: 'a' },
  ),
  hostile(
    'required keys that are inherited',
    { type: 'object', properties: {}, required: ['constructor'] },
    { fits: JSON.parse('{"constructor":1}') as JsonValue, misfits: {}, at: 'constructor' },
  ),
  hostile(
    'keys named like keywords',
    object(
      {
        $ref: text,
        items: number,
        minimum: { type: 'boolean' },
        allOf: text,
        $defs: text,
        definitions: text,
        type: text,
      },
      ['items'],
    ),
    {
      fits: { $ref: 'x', items: 1, minimum: true, allOf: 'y', $defs: 'z', definitions: 'd', type: 't' },
      misfits: { items: 'x' },
      at: 'items',
    },
  ),
  hostile(
    'dependencies of a key named like a keyword',
    { ...object({ items: text, minimum: text }), dependencies: { items: ['minimum'] } },
    { fits: { items: 'x', minimum: 'y' }, misfits: { items: 'x' }, at: 'minimum' },
  ),
  hostile('keys that differ by their case', object({ id: text, ID: number, Id: { type: 'boolean' } }), {
    fits: { id: 'x', ID: 1, Id: true },
    misfits: { ID: 'x' },
    at: 'ID',
  }),
  hostile('a control character in a key', object({ 'a\u0000b': text, 'c\nd': text }, ['c\nd']), {
    fits: { 'a\u0000b': 'x', 'c\nd': 'y' },
    misfits: { 'c\nd': 1 },
  }),
  hostile('half of a surrogate pair in a key', object({ 'a\ud83d': text, b: text }, ['b']), {
    fits: { b: 'y' },
    misfits: { b: 1 },
    at: 'b',
  }),
  hostile(
    '`required` with absent, repeated and other names',
    { type: 'object', properties: { a: text }, required: ['a', 'a', 'b'] },
    { fits: { a: 'x', b: 1 }, misfits: { a: 'x' }, at: 'b' },
  ),
  hostile('`required` as a flag of a field', object({ a: { type: 'string', required: true } }), { fits: { a: 'x' } }),
  hostile(
    '`required: null` and `required: {}`',
    object({ a: { type: 'object', required: null }, b: { type: 'object', required: {} } }),
    { fits: { a: {}, b: {} } },
  ),
  hostile(
    'keys with pointers’ escapes',
    { ...object({ 'a~b': { $ref: '#/properties/c~1d' }, 'c/d': text, '100%': text }), required: ['a~b'] },
    { fits: { 'a~b': 'x', '100%': 'y' }, misfits: { 'a~b': 1 }, at: 'a~b' },
  ),
]
