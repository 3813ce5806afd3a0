import { z } from 'zod'
import { number, object, of, text } from './troublesome.js'
import type { Troublesome } from './troublesome.js'
import { LISTS, VALUES } from './troublesome-values.js'

interface Folder {
  readonly name: string
  readonly entries: readonly (Folder | string)[]
}
const folder: z.ZodType<Folder> = z.lazy(() =>
  z.object({ name: z.string(), entries: z.array(z.union([folder, z.string()])) }),
)
interface Expression {
  readonly op: string
  readonly left?: Expression | number | undefined
}
const expression: z.ZodType<Expression> = z.lazy(() =>
  z.object({ op: z.enum(['+', '-']), left: z.union([expression, z.number()]).optional() }),
)
const event = z.discriminatedUnion('type', [
  z.object({ type: z.literal('created'), id: z.string(), by: z.string().optional() }),
  z.object({ type: z.literal('deleted'), id: z.string(), reason: z.string().nullable() }),
])
const REFERENCES: readonly Troublesome[] = [
  of('a tree of itself, by zod', folder, [{ name: 'a', entries: ['x', { name: 'b', entries: [] }] }], [{ name: 'a' }]),
  of(
    'an expression, recursive and optional',
    expression,
    [{ op: '+', left: { op: '-', left: 1 } }, { op: '-' }],
    [{ op: '*' }],
  ),
  of(
    'a linked list by `#`',
    object({ value: number, next: { anyOf: [{ $ref: '#' }, { type: 'null' }] } }, ['value', 'next']),
    [{ value: 1, next: { value: 2, next: null } }],
    [{ value: 1, next: { value: 'x', next: null } }],
  ),
  of(
    'draft 7 definitions',
    {
      $schema: 'http://json-schema.org/draft-07/schema#',
      definitions: { id: { type: 'string', pattern: '^[a-z]+$' } },
      ...object({ id: { $ref: '#/definitions/id' } }, ['id']),
    },
    [{ id: 'abc' }],
    [{ id: '123' }],
  ),
  of(
    'two definitions that need each other',
    {
      ...object({ a: { $ref: '#/$defs/a' } }, ['a']),
      $defs: { a: object({ b: { $ref: '#/$defs/b' } }), b: object({ a: { $ref: '#/$defs/a' } }) },
    },
    [{ a: { b: { a: {} } } }],
    [{ a: { b: 5 } }],
  ),
  of(
    'a definition used many times',
    {
      ...object({ from: { $ref: '#/$defs/point' }, to: { $ref: '#/$defs/point' } }, ['from', 'to']),
      $defs: { point: object({ x: number, y: number }, ['x', 'y']) },
    },
    [{ from: { x: 1, y: 2 }, to: { x: 3, y: 4 } }],
    [{ from: { x: 1 }, to: { x: 3, y: 4 } }],
  ),
  of(
    'a reference with words beside it',
    {
      ...object({ who: { $ref: '#/$defs/who', description: 'The author.' } }, ['who']),
      $defs: { who: { type: 'string', minLength: 1 } },
    },
    [{ who: 'a' }],
    [{ who: '' }],
  ),
  of(
    'a definition nobody uses',
    { ...object({ a: text }, ['a']), $defs: { unused: number } },
    [{ a: 'x' }],
    [{ a: 1 }],
  ),
  of(
    'a reference through escaped names',
    { ...object({ a: { $ref: '#/$defs/a~1b%20c' } }, ['a']), $defs: { 'a/b c': text } },
    [{ a: 'x' }],
    [{ a: 1 }],
  ),
]

const CHOICES: readonly Troublesome[] = [
  of(
    'a discriminated union inside',
    z.object({ event }),
    [{ event: { type: 'created', id: '1', by: 'me' } }, { event: { type: 'deleted', id: '1', reason: null } }],
    [{ event: { type: 'moved', id: '1' } }],
  ),
  of(
    'a list of a discriminated union',
    z.object({ events: z.array(event) }),
    [{ events: [{ type: 'deleted', id: '1', reason: 'x' }] }],
    [{ events: [{ type: 'deleted' }] }],
  ),
  of(
    '`oneOf` with overlapping forms',
    object({ v: { oneOf: [{ type: 'integer' }, text] } }, ['v']),
    [{ v: 1 }, { v: 'x' }],
    [{ v: true }],
  ),
  of(
    '`anyOf` of what is required',
    { ...object({ email: text, phone: text }), anyOf: [{ required: ['email'] }, { required: ['phone'] }] },
    [{ email: 'a', phone: 'b' }],
    [{}],
  ),
  of(
    '`oneOf` beside properties',
    {
      ...object({ kind: text }, ['kind']),
      oneOf: [object({ kind: { const: 'a' }, a: number }, ['a']), object({ kind: { const: 'b' }, b: number }, ['b'])],
    },
    [{ kind: 'a', a: 1 }],
    [{ kind: 'a', b: 1 }],
  ),
  of(
    '`allOf` of two objects',
    { type: 'object', allOf: [object({ a: text }, ['a']), object({ b: number }, ['b'])] },
    [{ a: 'x', b: 1 }],
    [{ a: 'x' }],
  ),
  of(
    'an intersection, by zod',
    z.object({ both: z.object({ a: z.string() }).and(z.object({ b: z.number() })) }),
    [{ both: { a: 'x', b: 1 } }],
    [{ both: { a: 'x' } }],
  ),
  of(
    '`if`, `then`, `else`',
    {
      ...object({ country: text, zip: text }, ['country', 'zip']),
      if: object({ country: { const: 'US' } }),
      then: object({ zip: { pattern: '^\\d{5}$' } }),
    },
    [
      { country: 'US', zip: '12345' },
      { country: 'DE', zip: 'x' },
    ],
    [{ country: 'US', zip: 'x' }],
  ),
  of(
    '`not`',
    object({ a: { type: 'string', not: { const: 'forbidden' } } }, ['a']),
    [{ a: 'x' }],
    [{ a: 'forbidden' }],
  ),
  of(
    'fields that need each other',
    { ...object({ card: text, cvc: text }), dependentRequired: { card: ['cvc'] } },
    [{ card: '1', cvc: '2' }],
    [{ card: '1' }],
  ),
  of(
    'fixed values and options of mixed types',
    object({ a: { enum: ['auto', 1, true, null] }, b: { const: 5 } }, ['a', 'b']),
    [
      { a: null, b: 5 },
      { a: 1, b: 5 },
    ],
    [{ a: 'x', b: 5 }],
  ),
  of('an enum without a type', object({ a: { enum: ['x', 'y'] } }, ['a']), [{ a: 'x' }], [{ a: 'z' }]),
  of('a fixed object', object({ a: { const: { b: 1 } } }, ['a']), [{ a: { b: 1 } }], [{ a: { b: 2 } }]),
  of(
    'an option that is empty text',
    object({ a: { type: 'string', enum: ['', 'x'] } }, ['a']),
    [{ a: '' }],
    [{ a: 'y' }],
  ),
  of(
    'a union of literals, by zod',
    z.object({ level: z.union([z.literal(1), z.literal(2), z.literal('max')]) }),
    [{ level: 'max' }, { level: 2 }],
    [{ level: 3 }],
  ),
]

const ABSENCE: readonly Troublesome[] = [
  of(
    'optional, nullable and both, by zod',
    z.object({ a: z.string().optional(), b: z.string().nullable(), c: z.string().nullish() }),
    [{ a: 'x', b: null, c: null }, { b: 'y' }],
    [{ a: 1, b: null }],
  ),
  of(
    'a type list with null',
    object({ a: { type: ['string', 'null'] } }, ['a']),
    [{ a: null }, { a: 'x' }],
    [{ a: 1 }],
  ),
  of(
    'a type list of everything',
    object({ a: { type: ['string', 'number', 'boolean', 'object', 'array', 'null'] } }, ['a']),
    [{ a: { b: 1 } }, { a: [1] }],
    [{}],
  ),
  of(
    'a nullable object by type list',
    object({ a: { type: ['object', 'null'], properties: { b: text }, required: ['b'] } }, ['a']),
    [{ a: null }, { a: { b: 'x' } }],
    [{ a: {} }],
  ),
  of(
    'a nullable enum',
    object({ a: { type: ['string', 'null'], enum: ['x', null] } }, ['a']),
    [{ a: null }],
    [{ a: 'y' }],
  ),
  of(
    'defaults, by zod',
    z.object({ limit: z.number().default(10), order: z.enum(['asc', 'desc']).default('asc') }),
    [{ limit: 5, order: 'desc' }, {}],
    [{ limit: 'x' }],
  ),
  of('the old word `nullable`', object({ a: { type: 'string', nullable: true } }, ['a']), [{ a: 'x' }], [{ a: 1 }]),
  of('nothing at all', {}, [{}, { a: 1 }], []),
  of('an object of nothing', z.object({}), [{}], []),
  of('an empty schema inside', object({ anything: {} }, ['anything']), [{ anything: [1, { a: null }] }], [{}]),
  of('`true` in place of a schema', object({ a: true }, ['a']), [{ a: 1 }], [{}]),
]

const OPEN: readonly Troublesome[] = [
  of(
    'a map, by zod',
    z.object({ scores: z.record(z.string(), z.number()) }),
    [{ scores: { a: 1 } }],
    [{ scores: { a: 'x' } }],
  ),
  of(
    'a map of objects',
    object({ users: { type: 'object', additionalProperties: object({ age: number }, ['age']) } }, ['users']),
    [{ users: { ann: { age: 3 } } }],
    [{ users: { ann: {} } }],
  ),
  of(
    'an object that says it is open',
    object({ a: text }, ['a'], { additionalProperties: true }),
    [{ a: 'x', b: 1 }],
    [{ b: 1 }],
  ),
  of(
    'a loose object, by zod',
    z.object({ meta: z.looseObject({ id: z.string() }) }),
    [{ meta: { id: 'x', more: 1 } }],
    [{ meta: {} }],
  ),
  of(
    'an object without a word of its fields',
    object({ payload: { type: 'object' } }, ['payload']),
    [{ payload: { a: 1 } }],
    [{ payload: 1 }],
  ),
  of(
    'fields by a pattern of their names',
    object({ env: { type: 'object', patternProperties: { '^[A-Z_]+$': text }, additionalProperties: false } }, ['env']),
    [{ env: { PATH: 'x' } }],
    [{ env: { path: 'x' } }],
  ),
  of(
    'names that must fit',
    object({ tags: { type: 'object', propertyNames: { pattern: '^[a-z]+$' }, additionalProperties: text } }, ['tags']),
    [{ tags: { a: 'x' } }],
    [{ tags: { A: 'x' } }],
  ),
  of(
    'at least one field',
    object({ patch: { type: 'object', minProperties: 1, additionalProperties: number } }, ['patch']),
    [{ patch: { a: 1 } }],
    [{ patch: {} }],
  ),
]

export const TROUBLESOME: readonly Troublesome[] = [...REFERENCES, ...CHOICES, ...ABSENCE, ...OPEN, ...LISTS, ...VALUES]
