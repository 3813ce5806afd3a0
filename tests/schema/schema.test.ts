import { describe, expect, expectTypeOf, test } from 'vitest'
import { z } from 'zod'
import { parseWith } from '#schema/schema-check.js'
import { jsonSchemaOf } from '#schema/schema.js'
import type { InferSchema, Schema } from '#schema/schema.js'
import type { JsonObject, JsonSchema } from '#util/json.js'
import { libraryOf } from '../core/tools/support/standard-schema.js'

const of = (schema: Schema): JsonSchema => jsonSchemaOf(schema, 'it')
/** The cleaned form of a schema that another library emitted. */
const cleaned = (emitted: JsonSchema): JsonSchema => of(libraryOf({ ...emitted }, () => ({ value: 1 })))

interface Tree {
  name: string
  children: Tree[]
}
const tree: z.ZodType<Tree> = z.object({
  name: z.string(),
  get children() {
    return z.array(tree)
  },
})

describe('jsonSchemaOf', () => {
  test('shared definitions are inlined, with the keywords next to the reference', () => {
    const id = z.string().min(3).meta({ id: 'OrderId', title: 'Order id', description: 'An id' })

    expect(of(z.object({ one: id, two: id.optional().describe('Another') }))).toEqual({
      type: 'object',
      properties: {
        one: { type: 'string', minLength: 3, description: 'An id' },
        two: { type: 'string', minLength: 3, description: 'Another' },
      },
      required: ['one'],
      additionalProperties: false,
    })
  })

  test('a recursive schema keeps its definition, even at the root', () => {
    const definition = (reference: string): JsonSchema => ({
      type: 'object',
      properties: { name: { type: 'string' }, children: { type: 'array', items: { $ref: reference } } },
      required: ['name', 'children'],
    })
    const nested = of(z.object({ left: tree, right: tree }))

    expect(of(tree)).toEqual({
      ...definition('#/$defs/root'),
      $defs: { root: definition('#/$defs/root') },
      additionalProperties: false,
    })
    expect(nested).toEqual({
      type: 'object',
      properties: { left: { $ref: '#/$defs/__schema0' }, right: { $ref: '#/$defs/__schema0' } },
      required: ['left', 'right'],
      $defs: { __schema0: definition('#/$defs/__schema0') },
      additionalProperties: false,
    })
  })

  test('mutually recursive definitions are kept, others inlined', () => {
    const schema = cleaned({
      type: 'object',
      properties: { a: { $ref: '#/definitions/A' }, leaf: { $ref: '#/definitions/Leaf' } },
      definitions: {
        A: { properties: { b: { $ref: '#/definitions/B' } } },
        B: { properties: { a: { $ref: '#/definitions/A' }, leaf: { $ref: '#/definitions/Leaf' } } },
        Leaf: { type: 'string' },
        Unused: { type: 'null' },
      },
    })

    expect(schema).toEqual({
      type: 'object',
      properties: { a: { $ref: '#/$defs/A' }, leaf: { type: 'string' } },
      $defs: {
        A: { properties: { b: { $ref: '#/$defs/B' } } },
        B: { properties: { a: { $ref: '#/$defs/A' }, leaf: { type: 'string' } } },
      },
      additionalProperties: false,
    })
  })

  test('definitions whose inlining would multiply stay definitions', () => {
    const definitions: Record<string, JsonSchema> = { d0: { type: 'string' } }
    for (let level = 1; level <= 40; level++) {
      const $ref = `#/$defs/d${level - 1}`
      definitions[`d${level}`] = { type: 'object', properties: { left: { $ref }, right: { $ref } } }
    }
    const schema = cleaned({ type: 'object', properties: { top: { $ref: '#/$defs/d40' } }, $defs: definitions })

    expect(schema['properties']).toEqual({ top: { $ref: '#/$defs/d40' } })
    expect(Object.keys(schema['$defs'] ?? {})).toHaveLength(41)
  })

  test('a root that is a reference is spelled out', () => {
    const $defs = { Root: { type: 'object', properties: { a: { type: 'string' } } } }

    expect(cleaned({ $ref: '#/$defs/Root', $defs })).toEqual({
      type: 'object',
      properties: { a: { type: 'string' } },
      additionalProperties: false,
    })
  })

  test('an unresolvable reference is rejected', () => {
    expect(() => cleaned({ type: 'object', properties: { a: { $ref: '#/$defs/Gone' } } })).toThrow(
      'it cannot be given to a model: The reference `#/$defs/Gone` leads nowhere.',
    )
  })

  test('FT-02 schema titles, discriminators and library marks are removed; fields with these names stay', () => {
    const schema = cleaned({
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      $id: 'https://example.com/x',
      title: 'Root',
      type: 'object',
      properties: {
        title: { type: 'string', title: 'Title' },
        discriminator: { type: 'string' },
        pet: {
          oneOf: [{ type: 'object', title: 'Cat', properties: { kind: { const: 'cat' } } }],
          discriminator: { propertyName: 'kind', mapping: { cat: '#/$defs/Cat' } },
        },
        preset: { default: { title: 'kept' }, enum: [{ title: 'kept' }] },
      },
      required: ['title'],
    })

    expect(schema).toEqual({
      type: 'object',
      properties: {
        title: { type: 'string' },
        discriminator: { type: 'string' },
        pet: { oneOf: [{ type: 'object', properties: { kind: { const: 'cat' } } }] },
        preset: { default: { title: 'kept' }, enum: [{ title: 'kept' }] },
      },
      required: ['title'],
      additionalProperties: false,
    })
  })

  test('null stays null, and defaults leave a field optional', () => {
    const inner = z.object({ c: z.number() })
    const schema = of(z.object({ a: z.string().nullable(), b: inner.nullable().default(null) }))

    expect(schema).toEqual({
      type: 'object',
      properties: {
        a: { type: ['string', 'null'] },
        b: {
          anyOf: [{ type: 'object', properties: { c: { type: 'number' } }, required: ['c'] }, { type: 'null' }],
          default: null,
        },
      },
      required: ['a'],
      additionalProperties: false,
    })
  })

  test('a long repetition of type and format is omitted', () => {
    expect(of(z.object({ at: z.iso.datetime(), n: z.int(), m: z.int().min(2), p: z.string().regex(/^a/) }))).toEqual({
      type: 'object',
      properties: {
        at: { type: 'string', format: 'date-time' },
        n: { type: 'integer' },
        m: { type: 'integer', minimum: 2 },
        p: { type: 'string', pattern: '^a' },
      },
      required: ['at', 'n', 'm', 'p'],
      additionalProperties: false,
    })
  })

  test.each<[string, Schema, unknown]>([
    ['a strict object', z.strictObject({ a: z.string() }), false],
    ['a loose object', z.looseObject({ a: z.string() }), {}],
    ['an object with a rest', z.object({ a: z.string() }).catchall(z.number()), { type: 'number' }],
    ['a record', z.record(z.string(), z.number()), { type: 'number' }],
  ])('%s keeps its statements about other fields', (_name, schema, expected) => {
    expect(of(schema)['additionalProperties']).toEqual(expected)
  })

  test.each<[string, Schema, JsonSchema]>([
    ['a text', z.string(), { type: 'string' }],
    ['a list', z.array(z.int()), { type: 'array', items: { type: 'integer' } }],
    ['a choice', z.union([z.string(), z.null()]), { type: ['string', 'null'] }],
  ])('%s at the root stays the same', (_name, schema, expected) => {
    expect(of(schema)).toEqual(expected)
  })

  test('it is created once per schema, and cannot be changed', () => {
    const schema = z.object({ a: z.string() })

    expect(of(schema)).toBe(of(schema))
    expect(() => Object.assign(of(schema)['properties'] ?? {}, { b: {} })).toThrow(TypeError)
  })

  test('a JSON Schema document is returned as it is', () => {
    const document = { $schema: 'x', title: 'T', $ref: '#/$defs/a', $defs: { a: { title: 'A' } } }

    expect(of(document)).toBe(document)
  })

  test('a schema may be a function', () => {
    const callable = Object.assign(
      () => undefined,
      libraryOf({ type: 'object' }, () => ({ value: 1 })),
    )

    expect(of(callable)).toEqual({ type: 'object', additionalProperties: false })
  })

  test('a field named as JavaScript names a prototype is a field', () => {
    const emitted = JSON.parse(
      '{"type":"object","properties":{"__proto__":{"type":"string"},"constructor":{"type":"null"}}}',
    ) as JsonSchema

    expect(JSON.stringify(cleaned(emitted))).toBe(
      '{"type":"object","properties":{"__proto__":{"type":"string"},"constructor":{"type":"null"}},"additionalProperties":false}',
    )
  })
})

describe('parseWith', () => {
  test('a typed schema parses', async () => {
    const parsed = await parseWith(z.object({ n: z.coerce.number(), d: z.string().default('x') }), { n: '5' })

    expect(parsed).toEqual({ ok: true, value: { n: 5, d: 'x' } })
  })

  test('an asynchronous schema is awaited', async () => {
    const later = z.string().refine(async (text) => Promise.resolve(text === 'a'), 'must be a')

    expect(await parseWith(later, 'a')).toEqual({ ok: true, value: 'a' })
    expect(await parseWith(later, 'b')).toEqual({
      ok: false,
      issues: [{ path: [], type: 'custom', message: 'must be a' }],
    })
  })

  test('a JSON Schema document checks', async () => {
    const document = { type: 'array', items: { type: 'number' } }

    expect(await parseWith(document, [1])).toEqual({ ok: true, value: [1] })
    expect(await parseWith(document, ['a'])).toEqual({
      ok: false,
      issues: [{ path: [0], type: 'type', message: 'Instance type "string" is invalid. Expected "number".' }],
    })
  })

  test('a document that cannot be used is an error of the host', async () => {
    const deep = JSON.parse(`${'{"items":'.repeat(600)}{}${'}'.repeat(600)}`) as JsonSchema
    await expect(parseWith(deep, 1)).rejects.toThrow(
      expect.objectContaining({ code: 'invalid_options', message: expect.stringContaining('500 levels') as string }),
    )
  })

  test('another library reports its own messages, with paths of keys', async () => {
    const schema = libraryOf({ type: 'object' }, () => ({
      issues: [
        { message: 'Needs an a', path: [{ key: 'a' }, 'b', 0] },
        { message: 'Is odd', path: ['x'] },
      ],
    }))

    expect(await parseWith(schema, { x: 1 })).toEqual({
      ok: false,
      issues: [
        { path: ['a', 'b', 0], type: 'invalid', message: 'Needs an a' },
        { path: ['x'], type: 'invalid', message: 'Is odd' },
      ],
    })
  })

  test('the parsed value has the type of the schema', () => {
    expectTypeOf<InferSchema<typeof tree>>().toEqualTypeOf<Tree>()
    expectTypeOf<InferSchema<{ readonly type: 'object' }>>().toEqualTypeOf<JsonObject>()
    const output = <T>(schema: Schema<T>): T[] => [schema as never]
    expectTypeOf(output(z.object({ a: z.string().default('') }))).toEqualTypeOf<{ a: string }[]>()
  })
})

describe('problems that zod finds, in its own sentences', () => {
  const schema = z.object({
    text: z.string().min(2).max(4).optional(),
    number: z.number().min(1).lt(9).multipleOf(2).optional(),
    whole: z.int().optional(),
    list: z.array(z.string()).min(1).max(2).optional(),
    map: z.record(z.string().max(3), z.number()).optional(),
    email: z.email().optional(),
    starts: z.string().startsWith('q').optional(),
    one: z.enum(['a', 'b']).optional(),
    fixed: z.literal('k').optional(),
    either: z.union([z.string(), z.object({ n: z.number() })]).optional(),
    shape: z
      .discriminatedUnion('kind', [
        z.object({ kind: z.literal('dot') }),
        z.object({ kind: z.literal('line'), length: z.number() }),
      ])
      .optional(),
    worded: z.string('say a word').optional(),
    flag: z.boolean().optional(),
    pair: z.tuple([z.string(), z.number()]).optional(),
  })
  test.each<[unknown, string, string]>([
    [{ text: 'a' }, 'text', 'Too small: expected string to have >=2 characters'],
    [{ text: 'abcde' }, 'text', 'Too big: expected string to have <=4 characters'],
    [{ text: 5 }, 'text', 'Invalid input: expected string, received number'],
    [{ number: 0 }, 'number', 'Too small: expected number to be >=1'],
    [{ number: 10 }, 'number', 'Too big: expected number to be <9'],
    [{ number: 3 }, 'number', 'Invalid number: must be a multiple of 2'],
    [{ whole: 1.5 }, 'whole', 'Invalid input: expected int, received number'],
    [{ list: [] }, 'list', 'Too small: expected array to have >=1 items'],
    [{ list: ['a', null] }, 'list.1', 'Invalid input: expected string, received null'],
    [{ map: { abcd: 1 } }, 'map.abcd', 'Invalid key in record'],
    [{ map: { a: 'x' } }, 'map.a', 'Invalid input: expected number, received string'],
    [{ email: 'x' }, 'email', 'Invalid email address'],
    [{ starts: 'x' }, 'starts', 'Invalid string: must start with "q"'],
    [{ one: 'c' }, 'one', 'Invalid option: expected one of "a"|"b"'],
    [{ fixed: 'c' }, 'fixed', 'Invalid input: expected "k"'],
    [{ shape: { kind: 'ring' } }, 'shape.kind', "Invalid discriminator value. Expected 'dot' | 'line'"],
    [{ shape: {} }, 'shape.kind', "Invalid discriminator value. Expected 'dot' | 'line'"],
    [{ shape: { kind: 'line' } }, 'shape.length', 'Invalid input: expected number, received undefined'],
    [{ worded: 1 }, 'worded', 'say a word'],
    [{ flag: 'yes' }, 'flag', 'Invalid input: expected boolean, received string'],
    [{ pair: 'x' }, 'pair', 'Invalid input: expected tuple, received string'],
  ])('%j', async (value, path, message) => {
    const parsed = await parseWith(schema, value)
    if (parsed.ok) throw new Error('Expected issues.')

    expect(parsed.issues.map((issue) => ({ path: issue.path.join('.'), message: issue.message }))).toEqual([
      { path, message },
    ])
  })

  test('the problems of all alternatives of a union follow the sentence about them', async () => {
    const parsed = await parseWith(schema, { either: { n: 'x' } })
    if (parsed.ok) throw new Error('Expected issues.')

    expect(parsed.issues).toEqual([
      { path: ['either'], type: 'invalid_union', message: 'Invalid input' },
      { path: ['either'], type: 'invalid_type', message: 'Invalid input: expected string, received object' },
      { path: ['either', 'n'], type: 'invalid_type', message: 'Invalid input: expected number, received string' },
    ])
  })

  test('unknown fields of a strict object are reported with the object as the place', async () => {
    const strict = z.object({ at: z.strictObject({ latitude: z.number() }) })

    expect(await parseWith(strict, { at: { latitude: 1, lattitude: 2, x: 3 } })).toEqual({
      ok: false,
      issues: [{ path: ['at'], type: 'unrecognized_keys', message: 'Unrecognized keys: "lattitude", "x"' }],
    })
  })

  test('of very many issues the first fifty are reported', async () => {
    const parsed = await parseWith(z.array(z.string()), new Array(10_000).fill(1))

    expect(parsed.ok ? [] : parsed.issues).toHaveLength(50)
  })
})
